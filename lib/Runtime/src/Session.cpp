//===- Session.cpp: sessions, their state and dims ------------------------===//
// Takes:    a loaded bundle, values of dims.
// Gives:    astra_session_* except submit (Call.cpp).
// Keeps:    NaNs of a state are canonical from the moment it is set (numerics clause N6).
// Does not: run anything.
#include "Session.h"
#include "IndexSets.h"

using namespace astra::rt;
using astra::fmt::DimSource;

astra_session::~astra_session() {
  astra_device *device = loaded->device;
  for (StateValue &state : states) {
    if (state.data) device->type.release(device, state.data, state.bytes ? state.bytes : 1);
    runtime->heap.release(state.mirror, state.bytes ? state.bytes : 1, kParamAlign);
  }
  for (ParamValue &value : owned) freeParam(device, value);
  runtime->heap.destroy(lane);
}

Status astra::rt::takeSession(astra_session *session, astra_diag *diag) {
  bool free = false;
  if (session->busy.compare_exchange_strong(free, true, std::memory_order_acquire)) return ASTRA_OK;
  progress(session->loaded->device);
  free = false;
  if (session->busy.compare_exchange_strong(free, true, std::memory_order_acquire)) return ASTRA_OK;
  return fail(
      diag, ASTRA_BUSY,
      "a call of this session is in flight, or its state is leased; wait for the call's promise, or, if none was "
      "asked for, for a mark of its stream (astra_stream_mark); return the state; or make a second session");
}

void astra::rt::leaveSession(astra_session *session) { session->busy.store(false, std::memory_order_release); }

namespace {

Status setDim(astra_session *session, const char *name, int64_t value, bool first, astra_diag *diag) {
  const fmt::Manifest &m = session->loaded->bundle->manifest();
  if (!name) return fail(diag, ASTRA_INVALID_ARGUMENT, "the name of the dim is NULL; give one");
  for (uint32_t i = 0; i < m.dims()->size(); i++) {
    const fmt::Dim *dim = m.dims()->Get(i);
    if (strcmp(dim->name()->c_str(), name) != 0) continue;
    if (dim->source() != DimSource::Host && !(first && dim->source() == DimSource::Session))
      return fail(diag, ASTRA_UNKNOWN_NAME, "dim %.64s is not one that can be set here: %s", name,
                  dim->source() == DimSource::Shape     ? "the shape of an input gives it"
                  : dim->source() == DimSource::Session ? "it is given when the session is made"
                                                        : "the program computes it");
    if (value < dim->lo() || value > dim->hi())
      return fail(diag, ASTRA_OUT_OF_BOUNDS, "dim %.64s is %lld; it must be in %lld .. %lld", name,
                  static_cast<long long>(value), static_cast<long long>(dim->lo()), static_cast<long long>(dim->hi()));
    session->given[i] = value;
    session->isGiven[i] = true;
    return ASTRA_OK;
  }
  return fail(diag, ASTRA_UNKNOWN_NAME, "the bundle has no dim '%.64s'", name);
}

/// The state becomes what `fill` writes, with canonical NaNs; on failure it is as it was, or lost.
template <typename Fill> Status fillState(astra_session *session, uint32_t index, astra_diag *diag, Fill fill) {
  const fmt::State *row = session->loaded->bundle->manifest().states()->Get(index);
  StateValue &state = session->states[index];
  astra_device *device = session->loaded->device;
  const DType &dtype = *dtypeOf(int32_t(row->dtype()));
  if (!device->gpu) {
    if (Status s = fill(state.data)) return s;
    canonicalizeNaNs(dtype, state.data, state.bytes);
  } else if (state.bytes) {
    Array<uint8_t> bytes;
    void *queue = ownQueue(device);
    if (!bytes.init(session->runtime->heap, state.bytes, kParamAlign))
      return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to copy state %.64s (%llu bytes)", row->name()->c_str(),
                  static_cast<unsigned long long>(state.bytes));
    if (Status s = fill(bytes.data())) return s;
    canonicalizeNaNs(dtype, bytes.data(), state.bytes);
    Status s = device->type.copy(device, queue, Way::In, state.data, bytes.data(), state.bytes, diag);
    if (!s) s = device->type.settle(device, queue, diag);
    state.lost |= s != ASTRA_OK;
    if (s) return s;
  }
  state.lost = false;
  return ASTRA_OK;
}

/// First value of a state: stored bytes or zeros.
Status resetState(astra_session *session, uint32_t index, astra_diag *diag) {
  const astra_bundle *bundle = session->loaded->bundle;
  const fmt::Place *init = bundle->manifest().states()->Get(index)->init();
  uint64_t bytes = session->states[index].bytes;
  return fillState(session, index, diag, [&](void *to) {
    if (init && bytes)
      memcpy(to, bundle->file.data + bundle->file.weights->offset + init->offset(), bytes);
    else
      memset(to, 0, bytes);
    return ASTRA_OK;
  });
}

Status makeStates(astra_session *session, astra_diag *diag) {
  const fmt::Manifest &m = session->loaded->bundle->manifest();
  for (uint32_t i = 0; i < m.states()->size(); i++) {
    const fmt::State *row = m.states()->Get(i);
    StateValue &state = session->states[i];
    state.rank = row->shape() ? row->shape()->size() : 0;
    for (uint32_t k = 0; k < state.rank; k++) {
      for (const fmt::ExprOp *op : *m.exprs()->Get(row->shape()->Get(k))->code())
        if (op->code() == fmt::ExprCode::Dim && !session->isGiven[uint64_t(op->value())])
          return fail(diag, ASTRA_MISSING_VALUE, "state %.64s needs dim %.64s; give it in astra_session_options.dims",
                      row->name()->c_str(), m.dims()->Get(uint32_t(op->value()))->name()->c_str());
      if (Status s = evaluate(m, row->shape()->Get(k), session->given.data(), state.shape[k], diag)) return s;
    }
    if (!denseBytes(*dtypeOf(int32_t(row->dtype())), state.shape, state.rank, state.bytes))
      return fail(diag, ASTRA_OVERFLOW, "the shape of state %.64s is negative or too large", row->name()->c_str());
    astra_device *device = session->loaded->device;
    // Zeros that are fresh from the system take no memory before something is written there: a cache's unused end.
    bool zeros = !row->init();
    Status s = device->type.allocate(device, state.bytes ? state.bytes : 1, zeros, state.data, diag);
    if (s == ASTRA_OUT_OF_MEMORY)
      return fail(diag, s, "no memory for state %.64s (%llu bytes)", row->name()->c_str(),
                  static_cast<unsigned long long>(state.bytes));
    if (!s && !zeros) s = resetState(session, i, diag);
    if (s) return s;
  }
  return ASTRA_OK;
}

Status build(astra_session *session, const astra_session_options &o, astra_diag *diag) {
  const fmt::Manifest &m = session->loaded->bundle->manifest();
  Heap &heap = session->runtime->heap;
  uint32_t dims = m.dims()->size(), params = m.params()->size(), entries = m.entries()->size();
  bool room = session->states.init(heap, m.states()->size()) && session->given.init(heap, dims) &&
              session->isGiven.init(heap, dims) && session->params.init(heap, params) &&
              session->owned.init(heap, params) && session->dims.init(heap, dims) &&
              session->memories.init(heap, uint64_t(entries) * 2);
  uint32_t tensors = 0, buffers = 0;
  for (uint32_t i = 0; i < entries && room; i++) {
    const fmt::Entry *e = m.entries()->Get(i);
    room = session->memories[i].init(heap, m, *e->routine());
    if (e->strided() && room) {
      const fmt::Routine *r = e->strided()->routine();
      room = session->memories[entries + i].init(heap, m, *r);
      buffers = r->buffers()->size() > buffers ? r->buffers()->size() : buffers;
    }
    uint32_t n = e->inputs()->size() + e->outputs()->size();
    tensors = n > tensors ? n : tensors;
    buffers = e->routine()->buffers()->size() > buffers ? e->routine()->buffers()->size() : buffers;
  }
  room = room && session->views.init(heap, tensors) && session->buffers.init(heap, buffers) &&
         session->staged.init(heap, tensors) && session->accesses.init(heap, tensors) &&
         session->blocks.init(heap, tensors);
  if (!room) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a session");
  if (o.num_dims && !o.dims)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "dims is NULL and num_dims is %u; give both", o.num_dims);
  for (uint32_t i = 0; i < o.num_dims; i++)
    if (Status s = setDim(session, o.dims[i].name, o.dims[i].value, true, diag)) return s;
  if (session->loaded->bundle->file.header->features & fmt::kFeatureBeside && !session->loaded->device->gpu) {
    session->lane = heap.make<Lane>(heap);
    if (!session->lane) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a session");
    if (Status s = session->lane->init(diag)) return s;
  }
  return makeStates(session, diag);
}

/// The state's index and the caller's tensor, checked against it.
Status findState(astra_session *session, const char *name, uint32_t &index, astra_diag *diag) {
  const fmt::Manifest &m = session->loaded->bundle->manifest();
  if (!name) return fail(diag, ASTRA_INVALID_ARGUMENT, "the name of the state is NULL; give one");
  for (index = 0; index < m.states()->size(); index++)
    if (strcmp(m.states()->Get(index)->name()->c_str(), name) == 0) return ASTRA_OK;
  return fail(diag, ASTRA_UNKNOWN_NAME, "the bundle has no state '%.64s' among %u", name, m.states()->size());
}

Status stateTensor(astra_session *session, const char *name, const astra_tensor *tensor, uint32_t &index, View &view,
                   astra_diag *diag) {
  astra_tensor t;
  if (Status s = findState(session, name, index, diag)) return s;
  if (Status s = readStruct(t, tensor, "the tensor", diag)) return s;
  if (Status s = resolve(view, t, name, diag)) return s;
  if (Status s = checkPlace(view, session->loaded->device, name, diag)) return s;
  const StateValue &state = session->states[index];
  return expect(view, int32_t(session->loaded->bundle->manifest().states()->Get(index)->dtype()), state.rank,
                state.shape, "state", name, diag);
}

/// The bytes of a GPU's state, on the host.
Status mirror(astra_session *session, const StateValue &state, void *to, astra_diag *diag) {
  astra_device *device = session->loaded->device;
  void *queue = ownQueue(device);
  if (Status s = checkDevice(device, diag)) return s;
  if (Status s = device->type.copy(device, queue, Way::Out, to, state.data, state.bytes, diag)) return s;
  return device->type.settle(device, queue, diag);
}

} // namespace

astra_status astra_session_init(astra_session **out, astra_loaded *loaded, const astra_session_options *options,
                                astra_diag *diag) {
  if (Status s = checkHandle(loaded, "the loaded bundle", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  if (Status s = checkDevice(loaded->device, diag)) return s;
  astra_session_options o;
  if (Status s = readOptions(o, options, "astra_session_options", diag)) return s;
  Heap &heap = loaded->runtime->heap;
  astra_session *session = heap.make<astra_session>(loaded);
  if (!session) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a session");
  if (Status s = build(session, o, diag)) {
    heap.destroy(session);
    return s;
  }
  loaded->users++;
  *out = session;
  return ASTRA_OK;
}

astra_status astra_session_free(astra_session **session) {
  if (!session || !*session) return ASTRA_OK;
  if (Status s = checkFree(*session, "the session")) return s;
  if (Status s = takeSession(*session, nullptr)) return s;
  astra_loaded *loaded = (*session)->loaded;
  loaded->runtime->heap.destroy(*session);
  loaded->users--;
  *session = nullptr;
  return ASTRA_OK;
}

astra_status astra_session_set_dim(astra_session *session, const char *name, int64_t value, astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  Taken taken(session, diag);
  return taken.status ? taken.status : setDim(session, name, value, false, diag);
}

astra_status astra_session_set_state(astra_session *session, const char *name, const astra_tensor *value,
                                     astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  Taken taken(session, diag);
  if (taken.status) return taken.status;
  uint32_t index = 0;
  View view;
  if (Status s = stateTensor(session, name, value, index, view, diag)) return s;
  return fillState(session, index, diag, [&](void *to) { return fetch(to, view, diag); });
}

astra_status astra_session_get_state(astra_session *session, const char *name, const astra_tensor *out,
                                     astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  Taken taken(session, diag);
  if (taken.status) return taken.status;
  uint32_t index = 0;
  View view;
  if (Status s = stateTensor(session, name, out, index, view, diag)) return s;
  if (Status s = checkWritable(view, "the copy of state", name, diag)) return s;
  if (session->states[index].lost)
    return fail(diag, ASTRA_STATE_LOST, "state %.64s was lost when a call failed; set it or reset the session", name);
  const StateValue &state = session->states[index];
  if (!session->loaded->device->gpu) return give(view, state.data, diag);
  Array<uint8_t> bytes;
  if (state.bytes && !bytes.init(session->runtime->heap, state.bytes, kParamAlign))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to copy state %.64s", name);
  if (Status s = mirror(session, state, bytes.data(), diag)) return s;
  return give(view, bytes.data(), diag);
}

astra_status astra_session_lease_state(astra_session *session, const char *name, const void **data, uint64_t *bytes,
                                       astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  if (!data || !bytes) return fail(diag, ASTRA_INVALID_ARGUMENT, "data or bytes is NULL; give both");
  uint32_t index = 0;
  if (Status s = findState(session, name, index, diag)) return s;
  if (Status s = takeSession(session, diag)) return s;
  if (session->states[index].lost) {
    leaveSession(session);
    return fail(diag, ASTRA_STATE_LOST, "state %.64s was lost when a call failed; set it or reset the session", name);
  }
  StateValue &state = session->states[index];
  if (session->loaded->device->gpu) {
    Heap &heap = session->runtime->heap;
    uint64_t size = state.bytes ? state.bytes : 1;
    state.mirror = heap.allocate(size, kParamAlign, false);
    Status s = state.mirror ? mirror(session, state, state.mirror, diag)
                            : fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to copy state %.64s", name);
    if (s) {
      heap.release(std::exchange(state.mirror, nullptr), size, kParamAlign);
      leaveSession(session);
      return s;
    }
  }
  state.leased = true;
  *data = state.mirror ? state.mirror : state.data;
  *bytes = session->states[index].bytes;
  return ASTRA_OK;
}

astra_status astra_session_return_state(astra_session *session, const char *name, astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  uint32_t index = 0;
  if (Status s = findState(session, name, index, diag)) return s;
  if (!session->states[index].leased) return fail(diag, ASTRA_INVALID_ARGUMENT, "state %.64s is not leased", name);
  StateValue &state = session->states[index];
  state.leased = false;
  session->runtime->heap.release(std::exchange(state.mirror, nullptr), state.bytes ? state.bytes : 1, kParamAlign);
  leaveSession(session);
  return ASTRA_OK;
}

astra_status astra_session_reset(astra_session *session, astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  Taken taken(session, diag);
  if (taken.status) return taken.status;
  for (uint32_t i = 0; i < session->states.size(); i++)
    if (Status s = resetState(session, i, diag)) return s;
  return ASTRA_OK;
}

astra_status astra_session_set_trace(astra_session *session, astra_trace_fn fn, void *self) {
  if (Status s = checkHandle(session, "the session", nullptr)) return s;
  Taken taken(session, nullptr);
  if (taken.status) return taken.status;
  session->trace = fn, session->traceSelf = self;
  return ASTRA_OK;
}
