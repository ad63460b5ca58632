//===- Open.cpp: the bundle of operations on a device ----------------------===//
// Takes:    a runtime, a device, the path of the bundle.
// Gives:    the handle; launches of its entries by any thread.
// Keeps:    an entry is found by its name once, here. A call takes a session that is free, and makes one if none is.
// Does not: know what entries compute.
#include "Ops.h"
#include <dlfcn.h>
#include <new>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

using namespace astra::ops;

Status astra::ops::fail(astra_diag *diag, Status status, const char *format, ...) {
  if (!diag || diag->size < sizeof(astra_diag)) return status;
  diag->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(diag->text, sizeof(diag->text), format, args);
  va_end(args);
  return status;
}

static uint32_t hashOf(const char *name) {
  uint32_t h = 2166136261u;
  for (; *name; name++) h = (h ^ uint8_t(*name)) * 16777619u;
  return h;
}

uint32_t astra::ops::findRow(const astra_ops *ops, const char *name) {
  for (uint32_t at = hashOf(name);; at++) {
    uint32_t row = ops->byName[at % 512];
    if (!row) return kNumRows;
    if (!strcmp(kRows[row - 1].name, name)) return row - 1;
  }
}

namespace {

constexpr char kFile[] = "libastra_ops.astra";

/// The file in the folder of this code (a library, or the program that has it inside), or in lib beside that folder.
Status findBundle(char *out, size_t size, astra_diag *diag) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&findBundle), &info) || !info.dli_fname)
    return fail(diag, ASTRA_IO, "the folder of this library is not known; give the path of %s", kFile);
  const char *slash = strrchr(info.dli_fname, '/');
  int folder = slash ? int(slash - info.dli_fname) : 0;
  for (const char *between : {"/", "/../lib/"}) {
    const char *first = slash ? info.dli_fname : ".";
    snprintf(out, size, "%.*s%s%s", slash ? folder : 1, first, between, kFile);
    if (access(out, R_OK) == 0) return ASTRA_OK;
  }
  return fail(diag, ASTRA_IO, "%s is not in the folder %.200s of this library; give its path", kFile,
              slash ? (snprintf(out, size, "%.*s", folder, info.dli_fname), out) : ".");
}

Status findEntries(astra_ops *ops, astra_diag *diag) {
  Status status = ASTRA_OK;
  forEachEntry([&](uint32_t row, int32_t from, int32_t to, uint32_t form, uint32_t number) {
    if (status) return;
    char name[64];
    entryName(name, row, from, to, form);
    const astra_entry *&at = to ? ops->casts[from][to] : ops->entries[row][from][form];
    astra_entry_info info = ASTRA_INIT(astra_entry_info);
    if (astra_bundle_get_entry(ops->bundle, number, &at) || astra_entry_get_info(at, &info) || strcmp(info.name, name))
      status = fail(diag, ASTRA_UNKNOWN_NAME, "entry %u of the bundle is not %s; use the %s of this library's version",
                    number, name, kFile);
  });
  return status;
}

/// Frees what is idle; ASTRA_BUSY if a call is in flight.
Status freeSessions(astra_ops *ops) {
  Status status = ASTRA_OK;
  for (Slot &slot : ops->slots) {
    if (slot.taken.exchange(true, std::memory_order_acquire)) {
      status = ASTRA_BUSY;
      continue;
    }
    astra_session *session = slot.session.load(std::memory_order_relaxed);
    if (Status s = astra_session_free(&session)) status = s;
    slot.session.store(session, std::memory_order_relaxed);
    slot.taken.store(false, std::memory_order_release);
  }
  return status;
}

} // namespace

astra_status astra_ops_init(astra_ops **out, astra_runtime *runtime, astra_device *device,
                            const astra_ops_options *options, astra_diag *diag) {
  if (!out || !runtime || !device) return fail(diag, ASTRA_INVALID_ARGUMENT, "out, the runtime or the device is NULL");
  if (options && options->size < sizeof(astra_ops_options))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the size of astra_ops_options is not set; begin with ASTRA_INIT");
  char found[4096];
  const char *path = options ? options->path : nullptr;
  if (!path) {
    if (Status s = findBundle(found, sizeof(found), diag)) return s;
    path = found;
  }
  auto *ops = static_cast<astra_ops *>(calloc(1, sizeof(astra_ops)));
  if (!ops) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the operations");
  ops->runtime = runtime, ops->device = device, ops->pool = options ? options->pool : nullptr;
  for (uint32_t i = 0; i < kNumRows; i++) {
    uint32_t at = hashOf(kRows[i].name) % 512;
    while (ops->byName[at]) at = (at + 1) % 512;
    ops->byName[at] = uint8_t(i + 1);
  }
  astra_device *devices[] = {device};
  Status s = astra_bundle_init_file(&ops->bundle, runtime, path, nullptr, diag);
  if (!s) s = findEntries(ops, diag);
  if (!s) s = astra_loaded_init(&ops->loaded, ops->bundle, devices, 1, diag);
  if (!s && !ops->pool) s = astra_pool_init(&ops->pool, device, nullptr, diag), ops->ownsPool = !s;
  if (s) {
    astra_loaded_free(&ops->loaded);
    astra_bundle_free(&ops->bundle);
    free(ops);
    return s;
  }
  *out = ops;
  return ASTRA_OK;
}

astra_status astra_ops_free(astra_ops **handle) {
  astra_ops *ops = handle ? *handle : nullptr;
  if (!ops) return ASTRA_OK;
  if (Status s = freeSessions(ops)) return s;
  if (ops->ownsPool)
    if (Status s = astra_pool_free(&ops->pool)) return s;
  astra_loaded_free(&ops->loaded);
  astra_bundle_free(&ops->bundle);
  free(ops);
  *handle = nullptr;
  return ASTRA_OK;
}

astra_status astra_ops_trim(astra_ops *ops) {
  if (!ops) return ASTRA_INVALID_ARGUMENT;
  freeSessions(ops);
  return astra_pool_trim(ops->pool);
}

astra_pool *astra_ops_pool(astra_ops *ops) { return ops ? ops->pool : nullptr; }

const char *astra_ops_name(uint32_t index) {
  return index < kNumRows && !kRows[index].isInner ? kRows[index].name : nullptr;
}

astra_status Temporary::init(Work &w, int32_t dtype, int32_t ndim, const int64_t *shape) {
  astra_buffer *memory = nullptr;
  return astra_view_init_pool(&view, &memory, w.ops->pool, dtype, ndim, shape, w.diag);
}

Status Work::launch(const astra_entry *entry, const View *inputs, uint32_t count, const View &out, int64_t host) {
  astra_tensor tensors[4];
  for (uint32_t i = 0; i <= count; i++) {
    const View &v = i < count ? inputs[i] : out;
    astra_tensor &t = tensors[i] = ASTRA_INIT(astra_tensor);
    t.buffer = v.buffer, t.data = v.data, t.data_bytes = v.data_bytes, t.byte_offset = v.byte_offset;
    t.dtype = v.dtype, t.ndim = v.ndim, t.shape = v.shape, t.strides = v.strides;
    t.flags = v.flags & ASTRA_VIEW_CONJUGATE ? uint32_t(ASTRA_TENSOR_CONJUGATE) : 0;
  }
  astra_call call = ASTRA_INIT(astra_call);
  call.entry = entry;
  call.inputs = tensors, call.num_inputs = count;
  call.outputs = tensors + count, call.num_outputs = 1;
  call.after = op->after, call.num_after = op->num_after;
  call.flags = ASTRA_CALL_ALLOW_COPY | ASTRA_CALL_ORDER;
  astra_promise *made = nullptr;
  auto submit = [&](astra_session *session, astra_diag *d) {
    Status s = host < 0 ? Status(ASTRA_OK) : astra_session_set_dim(session, "N", host, d);
    return s ? s : astra_session_submit(session, stream, &call, promise ? &made : nullptr, d);
  };
  for (;;) {
    for (Slot &slot : ops->slots) {
      if (slot.taken.load(std::memory_order_relaxed) || slot.taken.exchange(true, std::memory_order_acquire)) continue;
      Status s = ASTRA_OK;
      astra_session *session = slot.session.load(std::memory_order_relaxed);
      if (!session && !(s = astra_session_init(&session, ops->loaded, nullptr, diag)))
        slot.session.store(session, std::memory_order_relaxed);
      if (session && (s = submit(session, nullptr)) && s != ASTRA_BUSY) s = submit(session, diag); // the sentence
      slot.taken.store(false, std::memory_order_release);
      if (s == ASTRA_BUSY) continue;
      if (s || !promise) return s;
      astra_promise_free(&last);
      last = made;
      return ASTRA_OK;
    }
    // As many calls are in flight as there are sessions: the stream's own come first.
    astra_promise *all = nullptr;
    if (Status s = astra_stream_mark(stream, &all, diag)) return s;
    astra_promise_wait(all, nullptr);
    astra_promise_free(&all);
  }
}
