//===- Pool.cpp: recycled memory ------------------------------------------===//
// Takes:    sizes.
// Gives:    pools, buffers, views.
// Keeps:    a block goes back to its pool when the last buffer and the last call in flight have let it go; the smallest
//           free block that is large enough serves a request.
// Does not: touch the content.
#include "Device.h"

using namespace astra::rt;

namespace {

constexpr uint64_t kBlockAlign = fmt::kAlign;

/// The smallest free block of at least `bytes`, unlinked; null if there is none. The pool is locked.
Block *takeFree(astra_pool *pool, uint64_t bytes) {
  Block **link = &pool->free;
  while (*link && (*link)->bytes < bytes) link = &(*link)->next;
  Block *block = *link;
  if (block) *link = block->next;
  return block;
}

void dropFree(astra_pool *pool) {
  while (Block *block = pool->free) {
    pool->free = block->next;
    pool->stats.bytes_held -= block->bytes;
    pool->device->type.release(pool->device, block->memory, block->bytes);
    pool->runtime->heap.destroy(block);
  }
}

/// New memory; what is unused goes back first where the limit or the device is short of it.
Status takeFresh(astra_pool *pool, uint64_t bytes, Block *&out, astra_diag *diag) {
  Heap &heap = pool->runtime->heap;
  astra_device *device = pool->device;
  auto isAbove = [&] {
    return pool->maxBytes && (bytes > pool->maxBytes || pool->stats.bytes_held > pool->maxBytes - bytes);
  };
  if (isAbove()) dropFree(pool);
  if (isAbove()) return ASTRA_OUT_OF_MEMORY;
  Block *block = heap.make<Block>();
  if (!block) return ASTRA_OUT_OF_MEMORY;
  void *memory = nullptr;
  Status s = device->type.allocate(device, bytes, false, memory, diag);
  if (s == ASTRA_OUT_OF_MEMORY && device->gpu && pool->free) {
    dropFree(pool);
    s = device->type.allocate(device, bytes, false, memory, diag);
  }
  if (s) {
    heap.destroy(block);
    return s;
  }
  block->memory = memory, block->bytes = bytes, block->pool = pool;
  pool->stats.bytes_held += bytes;
  out = block;
  return ASTRA_OK;
}

} // namespace

void astra::rt::retain(Block *block) {
  if (block) block->refs.fetch_add(1, std::memory_order_relaxed);
}

void astra::rt::release(Block *block) {
  if (!block || block->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  astra_pool *pool = block->pool;
  {
    Lock lock(pool->mutex);
    Block **link = &pool->free;
    while (*link && (*link)->bytes < block->bytes) link = &(*link)->next;
    block->next = *link, *link = block;
    pool->stats.bytes_in_use -= block->bytes;
  }
  pool->users--;
}

astra_status astra_pool_init(astra_pool **out, astra_device *device, const astra_pool_options *options,
                             astra_diag *diag) {
  if (Status s = checkHandle(device, "the device", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  if (Status s = checkDevice(device, diag)) return s;
  astra_pool_options o;
  if (Status s = readOptions(o, options, "astra_pool_options", diag)) return s;
  astra_pool *pool = device->runtime->heap.make<astra_pool>(device, o.max_bytes);
  if (!pool) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a pool");
  device->users++;
  *out = pool;
  return ASTRA_OK;
}

astra_status astra_pool_free(astra_pool **pool) {
  if (!pool || !*pool) return ASTRA_OK;
  if (Status s = checkFree(*pool, "the pool")) return s;
  astra_device *device = (*pool)->device;
  dropFree(*pool);
  device->runtime->heap.destroy(*pool);
  device->users--;
  *pool = nullptr;
  return ASTRA_OK;
}

astra_status astra_pool_get_stats(astra_pool *pool, astra_pool_stats *out) {
  if (Status s = checkHandle(pool, "the pool", nullptr)) return s;
  progress(pool->device);
  Lock lock(pool->mutex);
  return writeStruct(out, pool->stats);
}

astra_status astra_pool_trim(astra_pool *pool) {
  if (Status s = checkHandle(pool, "the pool", nullptr)) return s;
  progress(pool->device);
  Lock lock(pool->mutex);
  dropFree(pool);
  return ASTRA_OK;
}

astra_status astra_buffer_init(astra_buffer **out, astra_pool *pool, uint64_t bytes, astra_diag *diag) {
  if (Status s = checkHandle(pool, "the pool", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  if (Status s = checkDevice(pool->device, diag)) return s;
  progress(pool->device);
  uint64_t rounded;
  if (!roundUp(bytes, bytes < 65536 ? kBlockAlign : 4096, rounded) || rounded > INT64_MAX)
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for %llu bytes", static_cast<unsigned long long>(bytes));
  astra_buffer *buffer = pool->runtime->heap.make<astra_buffer>(pool, nullptr, uint64_t(0), bytes);
  if (!buffer) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a buffer");
  if (bytes) {
    Lock lock(pool->mutex);
    Block *block = takeFree(pool, rounded);
    (block ? pool->stats.recycled : pool->stats.fresh)++;
    Status s = block ? ASTRA_OK : takeFresh(pool, rounded, block, diag);
    if (s) {
      pool->stats.fresh--;
      pool->runtime->heap.destroy(buffer);
      if (s != ASTRA_OUT_OF_MEMORY) return s;
      return fail(diag, ASTRA_OUT_OF_MEMORY,
                  "no memory for %llu bytes (the pool holds %llu of at most %llu, 0 is no limit)",
                  static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(pool->stats.bytes_held),
                  static_cast<unsigned long long>(pool->maxBytes));
    }
    pool->stats.bytes_in_use += block->bytes;
    if (pool->stats.bytes_in_use > pool->stats.peak_in_use) pool->stats.peak_in_use = pool->stats.bytes_in_use;
    block->refs.store(1, std::memory_order_relaxed);
    buffer->block = block;
    pool->users++;
  }
  pool->users++;
  *out = buffer;
  return ASTRA_OK;
}

astra_status astra_buffer_init_view(astra_buffer **out, astra_buffer *parent, uint64_t offset, uint64_t bytes,
                                    astra_diag *diag) {
  if (Status s = checkHandle(parent, "the parent buffer", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  uint64_t end;
  if (!add(offset, bytes, end) || end > parent->bytes)
    return fail(diag, ASTRA_CAPACITY, "a view of %llu bytes at byte %llu does not fit into a buffer of %llu bytes",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(parent->bytes));
  astra_buffer *view =
      parent->runtime->heap.make<astra_buffer>(parent->pool, parent->block, parent->offset + offset, bytes);
  if (!view) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a view");
  retain(parent->block);
  parent->pool->users++;
  *out = view;
  return ASTRA_OK;
}

astra_status astra_buffer_free(astra_buffer **buffer) {
  if (!buffer || !*buffer) return ASTRA_OK;
  if (Status s = checkHandle(*buffer, "the buffer", nullptr)) return s;
  astra_pool *pool = (*buffer)->pool;
  release((*buffer)->block);
  pool->runtime->heap.destroy(*buffer);
  pool->users--;
  *buffer = nullptr;
  return ASTRA_OK;
}

void *astra_buffer_data(astra_buffer *buffer) { return buffer && !buffer->onGpu() ? buffer->data() : nullptr; }

uint64_t astra_buffer_bytes(const astra_buffer *buffer) { return buffer ? buffer->bytes : 0; }
