//===- Params.cpp: params that users set, and what depends on them --------===//
// Takes:    a tensor for a param, of a loaded bundle or of one session.
// Gives:    its stored form, and the stored form of every param that the compiler computed from it.
// Keeps:    all of the old values when anything fails. A session's params and what depends on them come before those of
//           the loaded bundle; what depends on both follows both (Note [Who follows whom]).
// Does not: run while a call that reads the params is in flight.
//
// Note [Who follows whom]. A derived param of the loaded bundle depends on the bundle's params alone, and is made when
// one of them is set. A session has derived params of its own where it has set something that goes into them; they are
// made when it sets a param, and at its next call after the loaded bundle's params changed.
#include "Device.h"
#include "Session.h"

using namespace astra::rt;

void astra::rt::freeParam(astra_device *device, ParamValue &value) {
  if (value.data) device->type.release(device, value.data, value.bytes);
  value = {};
}

Status astra::rt::findUserParam(const astra_bundle *bundle, const char *name, uint32_t &index, astra_diag *diag) {
  if (!name) return fail(diag, ASTRA_INVALID_ARGUMENT, "the name of the param is NULL; give one");
  for (uint64_t i = 0; i < bundle->userParams.size(); i++)
    if (strcmp(bundle->manifest().params()->Get(bundle->userParams[i])->name()->c_str(), name) == 0) {
      index = bundle->userParams[i];
      return ASTRA_OK;
    }
  return fail(diag, ASTRA_UNKNOWN_NAME, "the bundle has no param '%.64s' among %llu that can be set", name,
              static_cast<unsigned long long>(bundle->userParams.size()));
}

namespace {

/// What the buffers of a routine that runs outside of calls point to.
struct Given {
  void *input;
  uint64_t inputBytes;
  void *output;
  uint64_t outputBytes;
  const void *const *own; ///< a session's params, or null
};

/// Runs a prepare or derive routine. Everything it needs lives for this call only.
Status runOnce(const astra_loaded *loaded, const fmt::Routine &routine, const Given &given, astra_diag *diag) {
  const fmt::Manifest &m = loaded->bundle->manifest();
  Heap &heap = loaded->runtime->heap;
  auto noMemory = [&] { return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to prepare a param"); };
  astra_device *device = loaded->device;
  RoutineMemory memory{};
  Array<int64_t> dims;
  Array<void *> buffers;
  DeviceMemory arena, scratch;
  if (!memory.init(heap, m, routine) || !dims.init(heap, m.dims()->size()) ||
      !buffers.init(heap, routine.buffers()->size()))
    return noMemory();
  if (Status s = memory.evaluate(m, routine, loaded->target, dims.data(), diag)) return s;
  uint64_t scratchBytes;
  if (!mul(memory.scratchStride, device->executor.num_workers, scratchBytes)) return noMemory();
  Status s = arena.reserve(device, memory.arenaBytes(), diag);
  if (!s) s = scratch.reserve(device, scratchBytes, diag);
  if (s) return s == ASTRA_OUT_OF_MEMORY ? noMemory() : s;
  for (uint32_t i = 0; i < routine.buffers()->size(); i++) {
    const fmt::Buffer *b = routine.buffers()->Get(i);
    uint32_t k = b->index();
    uint64_t room = memory.bufferBytes[i];
    switch (b->kind()) {
    case fmt::BufferKind::Input: buffers[i] = given.input, room = given.inputBytes; break;
    case fmt::BufferKind::Output: buffers[i] = given.output, room = given.outputBytes; break;
    case fmt::BufferKind::Param: {
      const void *stored = given.own && given.own[k] ? given.own[k] : loaded->params[k];
      if (!stored)
        return fail(diag, ASTRA_MISSING_VALUE, "param %.64s is not stored in the bundle; set it first",
                    m.params()->Get(k)->name()->c_str());
      buffers[i] = const_cast<void *>(stored), room = m.params()->Get(k)->stored_bytes();
      break;
    }
    default: buffers[i] = arena.data() + memory.slotOffsets[k] + b->offset(); break;
    }
    if (memory.bufferBytes[i] > room)
      return malformed(diag, "a prepare program has a buffer larger than its param; the compiler made a mistake");
  }
  void *queue = ownQueue(device);
  Frame frame{*loaded, routine, memory, dims.data(), buffers.data(), scratch.data(), queue, nullptr, nullptr, diag};
  s = frame.run(0);
  Status settled = device->type.settle(device, queue, s ? nullptr : diag);
  return s ? s : settled;
}

/// The routine that makes param `index` from others, or null.
const fmt::Routine *deriveOf(const fmt::Manifest &m, uint32_t index) {
  uint32_t derive = m.params()->Get(index)->derive();
  return derive == kNone ? nullptr : m.derives()->Get(derive);
}

/// Makes every derived param that reads `changed` or, if there are `own` params, one of those. On failure nothing is
/// kept.
Status deriveAll(const astra_loaded *loaded, uint32_t changed, const void *const *own, Array<ParamValue> &made,
                 astra_diag *diag) {
  const fmt::Manifest &m = loaded->bundle->manifest();
  Heap &heap = loaded->runtime->heap;
  if (!m.derives() || !m.derives()->size()) return ASTRA_OK;
  if (!made.init(heap, m.params()->size())) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to prepare a param");
  Status s = ASTRA_OK;
  for (uint32_t i = 0; i < m.params()->size() && !s; i++) {
    const fmt::Routine *routine = deriveOf(m, i);
    bool stale = false;
    for (uint32_t k = 0; routine && k < routine->buffers()->size(); k++) {
      const fmt::Buffer *b = routine->buffers()->Get(k);
      if (b->kind() == fmt::BufferKind::Param) stale |= b->index() == changed || (own && own[b->index()]);
    }
    if (!stale) continue;
    uint64_t bytes = m.params()->Get(i)->stored_bytes();
    made[i].bytes = bytes ? bytes : 1;
    astra_device *device = loaded->device;
    s = device->type.allocate(device, made[i].bytes, true, made[i].data, diag);
    if (s == ASTRA_OUT_OF_MEMORY) fail(diag, s, "no memory for param %.64s", m.params()->Get(i)->name()->c_str());
    if (!s) s = runOnce(loaded, *routine, Given{nullptr, 0, made[i].data, bytes, own}, diag);
  }
  if (s)
    for (ParamValue &value : made) freeParam(loaded->device, value);
  return s;
}

/// The new values take the places of the old ones.
void keep(astra_device *device, Array<ParamValue> &made, Array<const void *> &params, Array<ParamValue> &owned) {
  for (uint32_t i = 0; i < made.size(); i++) {
    if (!made[i].data) continue;
    freeParam(device, owned[i]);
    owned[i] = made[i];
    params[i] = made[i].data;
  }
}

/// Param `index` becomes `value`, and all that depends on it follows; on failure everything is as before and `value` is
/// free.
Status replace(astra_loaded *loaded, astra_session *session, uint32_t index, ParamValue value, astra_diag *diag) {
  astra_device *device = loaded->device;
  Array<const void *> &params = session ? session->params : loaded->params;
  Array<ParamValue> &owned = session ? session->owned : loaded->owned;
  const void *before = params[index];
  params[index] = value.data;
  Array<ParamValue> made;
  if (Status s = deriveAll(loaded, index, session ? params.data() : nullptr, made, diag)) {
    params[index] = before;
    freeParam(device, value);
    return s;
  }
  freeParam(device, owned[index]);
  owned[index] = value;
  keep(device, made, params, owned);
  return ASTRA_OK;
}

/// The stored form of a tensor, into `to`.
Status store(const astra_loaded *loaded, const fmt::Param &p, const View &view, const ParamValue &to,
             astra_diag *diag) {
  Heap &heap = loaded->runtime->heap;
  astra_device *device = loaded->device;
  void *queue = ownQueue(device);
  // Row-major, where the device can read it.
  const void *dense = view.data;
  Array<uint8_t> packed;
  DeviceMemory there;
  if (!view.dense) {
    if (!packed.init(heap, view.bytes, kParamAlign))
      return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for param %.64s", p.name()->c_str());
    gather(packed.data(), view);
    dense = packed.data();
  }
  Way way = view.gpu ? Way::On : Way::In;
  if (p.prepare() == kNone) {
    Status s = device->type.copy(device, queue, way, to.data, dense, view.bytes, diag);
    return s ? s : device->type.settle(device, queue, diag);
  }
  if (device->gpu && !view.gpu && view.bytes) {
    if (Status s = there.reserve(device, view.bytes, diag)) return s;
    if (Status s = device->type.copy(device, queue, way, there.data(), dense, view.bytes, diag)) return s;
    dense = there.data();
  }
  return runOnce(loaded, *loaded->bundle->manifest().prepares()->Get(p.prepare()),
                 Given{const_cast<void *>(dense), view.bytes, to.data, p.stored_bytes(), nullptr}, diag);
}

} // namespace

Status astra::rt::followLoaded(astra_session *session, uint64_t changes, astra_diag *diag) {
  if (session->changesSeen == changes) return ASTRA_OK;
  Array<ParamValue> made;
  if (Status s = deriveAll(session->loaded, kNone, session->params.data(), made, diag)) return s;
  keep(session->loaded->device, made, session->params, session->owned);
  session->changesSeen = changes;
  return ASTRA_OK;
}

Status astra::rt::makeParam(astra_loaded *loaded, uint32_t index, const astra_tensor *value, ParamValue &out,
                            astra_diag *diag) {
  const fmt::Manifest &m = loaded->bundle->manifest();
  const fmt::Param *p = m.params()->Get(index);
  const char *name = p->name()->c_str();
  astra_tensor tensor;
  View view;
  if (Status s = readStruct(tensor, value, "the tensor", diag)) return s;
  if (Status s = resolve(view, tensor, name, diag)) return s;
  if (Status s = expect(view, int32_t(p->dtype()), p->shape() ? p->shape()->size() : 0,
                        p->shape() ? p->shape()->data() : nullptr, "param", name, diag))
    return s;
  astra_device *device = loaded->device;
  if (Status s = checkPlace(view, device, name, diag)) return s;
  ParamValue made{nullptr, p->stored_bytes() ? p->stored_bytes() : 1};
  Status s = device->type.allocate(device, made.bytes, true, made.data, diag);
  if (s == ASTRA_OUT_OF_MEMORY) return fail(diag, s, "no memory for param %.64s", name);
  if (!s) s = store(loaded, *p, view, made, diag);
  if (s) {
    freeParam(device, made);
    return s;
  }
  out = made;
  return ASTRA_OK;
}

astra_status astra_loaded_set_param(astra_loaded *loaded, const char *name, const astra_tensor *value,
                                    astra_diag *diag) {
  if (Status s = checkHandle(loaded, "the loaded bundle", diag)) return s;
  uint32_t index = 0;
  if (Status s = findUserParam(loaded->bundle, name, index, diag)) return s;
  progress(loaded->device);
  auto isBusy = [&] { return loaded->flying.load(std::memory_order_acquire) != 0; };
  auto busy = [&] {
    return fail(diag, ASTRA_BUSY,
                "a call is in flight; wait for its promise or for a mark of its stream before param %.64s is replaced",
                name);
  };
  if (isBusy()) return busy();
  ParamValue made;
  if (Status s = makeParam(loaded, index, value, made, diag)) return s;
  Lock lock(loaded->mutex);
  if (isBusy()) { // since then
    freeParam(loaded->device, made);
    return busy();
  }
  if (Status s = replace(loaded, nullptr, index, made, diag)) return s;
  loaded->changes++;
  return ASTRA_OK;
}

astra_status astra_session_set_param(astra_session *session, const char *name, const astra_tensor *value,
                                     astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  uint32_t index = 0;
  if (Status s = findUserParam(session->loaded->bundle, name, index, diag)) return s;
  Taken taken(session, diag);
  if (taken.status) return taken.status;
  ParamValue made;
  if (Status s = makeParam(session->loaded, index, value, made, diag)) return s;
  Lock lock(session->loaded->mutex); // what goes into a derived param stays meanwhile
  if (Status s = replace(session->loaded, session, index, made, diag)) return s;
  session->changesSeen = session->loaded->changes;
  return ASTRA_OK;
}
