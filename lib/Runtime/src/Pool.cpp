//===- Pool.cpp: recycled memory ------------------------------------------===//
// Takes:    sizes.
// Gives:    pools, buffers, views.
// Keeps:    a block goes back to its pool when the last buffer and the last call in flight have let it go; the smallest
//           free block that is large enough serves a request; of it at most a sixteenth more than was asked for is kept
//           from others.
// Does not: touch the content.
//
// Note [What a pool holds]
// A device gives segments. A request takes the beginning of a free block and leaves the rest as another (unless that is
// less than a sixteenth of what was asked for, which would only make the search longer); a freed block
// becomes one with its free neighbours, so that a segment is whole again when all of it is free. Two rules keep what is
// held near what is used: a large segment that is whole is not carved up for a request of less than a sixteenth, which
// would keep all of it from those who want much; and before new memory is taken, segments that are whole go back if
// more than 1.25 of the largest use so far would be held. Where memory is short neither rule stands in the way: what
// fits is carved, what is whole goes back.
//
// Note [Blocks of calls in flight]
// A block whose buffers were freed stays with the calls in flight that have it. A request on behalf of a stream takes
// such a block at once if all of these calls are ordered before what the stream does next: their clocks say so (Note
// [Order between calls] in Stream.cpp). It is not split, and at most twice what was asked for. Who uses the new buffer
// on another stream is held to the order of calls like any other: the old calls are in flight, and their tensors share
// memory with his.
#include "Numa.h"
#include "Stream.h"

using namespace astra::rt;

namespace {

constexpr uint64_t kBlockAlign = fmt::kAlign;
constexpr uint64_t kPagesAtOnce = 64 << 10; // of memory that is mapped or pinned for the pool
constexpr uint64_t kMostCarved = 16, kAlwaysCarved = 1 << 20, kLeastRest = 16;

FreeBlocks &listOf(astra_pool *pool, Block *block) { return block->isWhole() ? pool->whole : pool->parts; }

Block *makeBlock(astra_pool *pool, void *memory, uint64_t bytes) {
  Block *block = pool->spareBlocks;
  if (block)
    pool->spareBlocks = block->behind;
  else if (!(block = pool->runtime->heap.make<Block>()))
    return nullptr;
  block->memory = memory, block->bytes = bytes, block->pool = pool;
  block->before = block->behind = nullptr;
  block->isFree = false;
  block->buffers = block->numUses = 0;
  uint64_t mixed = ++pool->made * 0x9e3779b97f4a7c15; // Fibonacci hashing: numbers in a row far apart
  block->priority = uint32_t((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 32);
  return block;
}

void forget(astra_pool *pool, Block *block) {
  block->behind = pool->spareBlocks;
  pool->spareBlocks = block;
}

/// The block keeps `bytes`, the rest is free; it keeps all if the rest is of little use, or there is no memory for its
/// description.
void split(astra_pool *pool, Block *block, uint64_t bytes) {
  uint64_t left = block->bytes - bytes;
  if (left < kBlockAlign || left < bytes / kLeastRest) return;
  Block *rest = makeBlock(pool, static_cast<char *>(block->memory) + bytes, block->bytes - bytes);
  if (!rest) return;
  rest->segment = block->segment;
  rest->before = block, rest->behind = block->behind;
  if (rest->behind) rest->behind->before = rest;
  block->behind = rest, block->bytes = bytes;
  rest->isFree = true;
  listOf(pool, rest).insert(rest);
}

/// The smallest free block of at least `bytes`, in use now; null if there is none. The pool is locked.
Block *takeFree(astra_pool *pool, uint64_t bytes, bool carvesAll) {
  Block **part = pool->parts.bestFit(bytes), **whole = pool->whole.bestFit(bytes);
  if (whole && !carvesAll && (*whole)->bytes > kAlwaysCarved && (*whole)->bytes / kMostCarved > bytes) whole = nullptr;
  if (!part && !whole) return nullptr;
  bool takesPart = part && (!whole || (*part)->bytes <= (*whole)->bytes);
  Block *block = takesPart ? pool->parts.take(part) : pool->whole.take(whole);
  block->isFree = false;
  block->numUses = 0;
  split(pool, block, bytes);
  return block;
}

/// Memory for a segment: of the device, or as the pool's options say.
Status takeSegment(astra_pool *pool, uint64_t bytes, void *&out, astra_diag *diag) {
  if (pool->isPinned()) return pin(pool->device, bytes, out, diag);
  if (pool->flags & ASTRA_POOL_ON_NODE) return mapOnNode(pool->node, bytes, out, diag);
  return pool->device->type.allocate(pool->device, bytes, false, out, diag);
}
void releaseSegment(astra_pool *pool, void *memory, uint64_t bytes) {
  if (pool->isPinned())
    unpin(pool->device, memory);
  else if (pool->flags & ASTRA_POOL_ON_NODE)
    unmapNode(memory, bytes);
  else
    pool->device->type.release(pool->device, memory, bytes);
}

/// A segment that nobody uses goes back to the device; false if there is none.
bool dropOne(astra_pool *pool) {
  Block *block = pool->whole.large();
  if (!block) return false;
  pool->whole.remove(block);
  pool->stats.bytes_held -= block->bytes;
  releaseSegment(pool, block->memory, block->bytes);
  forget(pool, block);
  return true;
}

void dropFree(astra_pool *pool) {
  while (dropOne(pool)) {
  }
}

bool isAbove(const astra_pool *pool, uint64_t bytes) {
  return pool->maxBytes && (bytes > pool->maxBytes || pool->stats.bytes_held > pool->maxBytes - bytes);
}

/// New memory; what is unused goes back first where it is too much, or the limit or the device is short of it.
Status takeFresh(astra_pool *pool, uint64_t wanted, Block *&out, astra_diag *diag) {
  astra_device *device = pool->device;
  uint64_t bytes = wanted;
  if (pool->flags && !roundUp(wanted, kPagesAtOnce, bytes)) return ASTRA_OUT_OF_MEMORY;
  auto isTooMuch = [&] {
    uint64_t use = pool->stats.bytes_in_use + bytes;
    if (use < pool->stats.peak_in_use) use = pool->stats.peak_in_use;
    return pool->stats.bytes_held + bytes > use + use / 4;
  };
  while ((isTooMuch() || isAbove(pool, bytes)) && dropOne(pool)) {
  }
  if (isAbove(pool, bytes)) return ASTRA_OUT_OF_MEMORY;
  Block *block = makeBlock(pool, nullptr, bytes);
  if (!block) return ASTRA_OUT_OF_MEMORY;
  Status s = takeSegment(pool, bytes, block->memory, diag);
  if (s == ASTRA_OUT_OF_MEMORY && device->gpu && pool->whole.large()) {
    dropFree(pool);
    s = takeSegment(pool, bytes, block->memory, diag);
  }
  if (s) {
    forget(pool, block);
    return s;
  }
  block->segment = uint16_t(pool->stats.fresh);
  pool->stats.bytes_held += bytes;
  split(pool, block, wanted);
  out = block;
  return ASTRA_OK;
}

} // namespace

void astra::rt::retain(Block *block) {
  if (block) block->refs.fetch_add(1, std::memory_order_relaxed);
}

void astra::rt::retain(Block *block, uint32_t stream, uint64_t tick) {
  if (!block) return;
  retain(block);
  uint32_t i = 0, known = block->numUses < Block::kMostUses ? block->numUses : Block::kMostUses;
  while (i < known && block->uses[i].stream != stream) i++;
  if (i == Block::kMostUses)
    block->numUses = uint8_t(i + 1);
  else
    block->uses[i] = {stream, tick}, block->numUses = uint8_t(block->numUses + (i == known));
}

namespace {

/// The last buffer of the block was freed, and calls have it; or they no longer do. The pool is locked.
void addBusy(Block *block) {
  astra_pool *pool = block->pool;
  block->beforeBusy = nullptr, block->behindBusy = pool->busy;
  if (pool->busy) pool->busy->beforeBusy = block;
  pool->busy = block;
}
void removeBusy(Block *block) {
  (block->beforeBusy ? block->beforeBusy->behindBusy : block->pool->busy) = block->behindBusy;
  if (block->behindBusy) block->behindBusy->beforeBusy = block->beforeBusy;
}

/// Whether all tasks that have had the block end before what the stream does next. runtime.order is locked.
bool isBefore(const Block *block, const astra_stream *stream) {
  if (block->numUses > Block::kMostUses) return false;
  for (uint32_t i = 0; i < block->numUses; i++) {
    const Block::Use &use = block->uses[i];
    if (use.stream >= stream->clock.size() || stream->clock[use.stream] < use.tick) return false;
  }
  return true;
}

/// The smallest block of `bytes` to twice as many that calls before the stream's next task have, counted; null if there
/// is none among the last ones. The pool and runtime.order are locked.
Block *takeBusy(astra_pool *pool, const astra_stream *stream, uint64_t bytes) {
  constexpr uint32_t most = 256;
  Block *best = nullptr;
  uint32_t seen = 0;
  for (Block *b = pool->busy; b && seen++ < most; b = b->behindBusy)
    if (b->bytes >= bytes && b->bytes / 2 <= bytes && (!best || b->bytes < best->bytes) && isBefore(b, stream))
      best = b;
  if (!best) return nullptr;
  uint32_t refs = best->refs.load(std::memory_order_relaxed);
  do
    if (!refs) return nullptr; // the last call has let it go, and waits for the pool
  while (!best->refs.compare_exchange_weak(refs, refs + 1, std::memory_order_acquire, std::memory_order_relaxed));
  removeBusy(best);
  return best;
}

/// The block is free again, one with its free neighbours. The pool is locked.
void giveBack(astra_pool *pool, Block *block) {
  pool->stats.bytes_in_use -= block->bytes;
  if (Block *next = block->behind; next && next->isFree) {
    pool->parts.remove(next);
    block->bytes += next->bytes, block->behind = next->behind;
    if (block->behind) block->behind->before = block;
    forget(pool, next);
  }
  if (Block *first = block->before; first && first->isFree) {
    pool->parts.remove(first);
    first->bytes += block->bytes, first->behind = block->behind;
    if (first->behind) first->behind->before = first;
    forget(pool, block);
    block = first;
  }
  block->isFree = true;
  listOf(pool, block).insert(block);
}

/// A buffer, which counts as a user of the pool; null when memory is short. The pool is locked.
astra_buffer *makeBuffer(astra_pool *pool, Block *block, uint64_t offset, uint64_t bytes) {
  astra_buffer *buffer = pool->spareBuffers;
  if (buffer)
    pool->spareBuffers = buffer->nextSpare, new (buffer) astra_buffer(pool, block, offset, bytes);
  else
    buffer = pool->runtime->heap.make<astra_buffer>(pool, block, offset, bytes);
  if (buffer) pool->users++;
  return buffer;
}

void dropBuffer(astra_buffer *buffer) {
  astra_pool *pool = buffer->pool;
  buffer->nextSpare = pool->spareBuffers;
  pool->spareBuffers = buffer;
}

} // namespace

void astra::rt::release(Block *block) {
  if (!block || block->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  astra_pool *pool = block->pool;
  {
    Lock lock(pool->mutex);
    removeBusy(block);
    giveBack(pool, block);
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
  if (o.flags & ~uint32_t(ASTRA_POOL_ON_NODE | ASTRA_POOL_PINNED))
    return fail(diag, ASTRA_NEWER_CLIENT, "the flags %#x are not known to this library; use a newer one", o.flags);
  bool pinned = o.flags & ASTRA_POOL_PINNED, onNode = o.flags & ASTRA_POOL_ON_NODE;
  if (pinned && (onNode || !device->gpu))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "memory is pinned by a GPU's driver: make the pool on a GPU, of no node");
  if (onNode && device->gpu)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "memory of a GPU is of no NUMA node; make the pool on a CPU");
  if (onNode)
    if (Status s = checkNode(o.sysfs, o.node, diag)) return s;
  astra_pool *pool = device->runtime->heap.make<astra_pool>(device, o);
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
  while (astra_buffer *spare = (*pool)->spareBuffers) {
    (*pool)->spareBuffers = spare->nextSpare;
    device->runtime->heap.destroy(spare);
  }
  while (Block *spare = (*pool)->spareBlocks) {
    (*pool)->spareBlocks = spare->behind;
    device->runtime->heap.destroy(spare);
  }
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

/// `stream`: on whose behalf; null: nobody's.
static Status initBuffer(astra_buffer **out, astra_pool *pool, const astra_stream *stream, uint64_t bytes,
                         astra_diag *diag) {
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  if (Status s = checkDevice(pool->device, diag)) return s;
  progress(pool->device);
  uint64_t rounded;
  if (!roundUp(bytes, bytes < 65536 ? kBlockAlign : 4096, rounded) || rounded > INT64_MAX)
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for %llu bytes", static_cast<unsigned long long>(bytes));
  astra_buffer *buffer = nullptr;
  if (stream && bytes) {
    Lock order(pool->runtime->order);
    Lock lock(pool->mutex);
    buffer = makeBuffer(pool, nullptr, 0, bytes);
    if (buffer && (buffer->block = takeBusy(pool, stream, rounded))) {
      buffer->block->buffers = 1;
      pool->stats.recycled++, pool->stats.in_order++;
      *out = buffer;
      return ASTRA_OK;
    }
  }
  Lock lock(pool->mutex);
  if (!buffer) buffer = makeBuffer(pool, nullptr, 0, bytes);
  if (!buffer) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a buffer");
  if (bytes) {
    Block *block = takeFree(pool, rounded, isAbove(pool, rounded));
    bool isFresh = !block;
    Status s = block ? ASTRA_OK : takeFresh(pool, rounded, block, diag);
    if (s) {
      dropBuffer(buffer);
      pool->users--;
      if (s != ASTRA_OUT_OF_MEMORY) return s;
      return fail(diag, ASTRA_OUT_OF_MEMORY,
                  "no memory for %llu bytes (the pool holds %llu of at most %llu, 0 is no limit)",
                  static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(pool->stats.bytes_held),
                  static_cast<unsigned long long>(pool->maxBytes));
    }
    (isFresh ? pool->stats.fresh : pool->stats.recycled)++;
    pool->stats.bytes_in_use += block->bytes;
    if (pool->stats.bytes_in_use > pool->stats.peak_in_use) pool->stats.peak_in_use = pool->stats.bytes_in_use;
    block->refs.store(1, std::memory_order_relaxed);
    block->buffers = 1;
    buffer->block = block;
    pool->users++;
  }
  *out = buffer;
  return ASTRA_OK;
}

astra_status astra_buffer_init(astra_buffer **out, astra_pool *pool, uint64_t bytes, astra_diag *diag) {
  if (Status s = checkHandle(pool, "the pool", diag)) return s;
  return initBuffer(out, pool, nullptr, bytes, diag);
}

astra_status astra_buffer_init_on(astra_buffer **out, astra_pool *pool, astra_stream *stream, uint64_t bytes,
                                  astra_diag *diag) {
  if (Status s = checkHandle(pool, "the pool", diag)) return s;
  if (Status s = checkHandle(stream, "the stream", diag)) return s;
  if (stream->device != pool->device)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the stream is of another device than the pool; make one on its device");
  return initBuffer(out, pool, stream, bytes, diag);
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
  Lock lock(parent->pool->mutex);
  astra_buffer *view = makeBuffer(parent->pool, parent->block, parent->offset + offset, bytes);
  if (!view) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a view");
  if (parent->block) parent->block->buffers++;
  retain(parent->block);
  *out = view;
  return ASTRA_OK;
}

astra_status astra_buffer_free(astra_buffer **buffer) {
  if (!buffer || !*buffer) return ASTRA_OK;
  if (Status s = checkHandle(*buffer, "the buffer", nullptr)) return s;
  astra_pool *pool = (*buffer)->pool;
  Block *block = (*buffer)->block;
  bool isLast = false;
  {
    Lock lock(pool->mutex);
    bool hasOthers = block && --block->buffers;
    isLast = block && block->refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (isLast)
      giveBack(pool, block);
    else if (block && !hasOthers)
      addBusy(block);
    dropBuffer(*buffer);
  }
  pool->users -= 1 + isLast;
  *buffer = nullptr;
  return ASTRA_OK;
}

void *astra_buffer_data(astra_buffer *buffer) { return buffer && !buffer->onGpu() ? buffer->data() : nullptr; }

uint64_t astra_buffer_bytes(const astra_buffer *buffer) { return buffer ? buffer->bytes : 0; }
