//===- Session.cpp: sessions, their state and dims ------------------------===//
// Takes:    a loaded bundle, values of dims.
// Gives:    astra_session_* except submit (Call.cpp).
// Keeps:    NaNs of a state are canonical from the moment it is set (numerics clause N6).
// Does not: run anything.
#include "Session.h"

using namespace astra::rt;
using astra::fmt::DimSource;

astra_session::~astra_session() {
  Heap &heap = runtime->heap;
  for (StateValue &state : states) heap.release(state.data, state.bytes ? state.bytes : 1, kParamAlign);
  for (ParamValue &value : owned) freeParam(heap, value);
}

Status astra::rt::takeSession(astra_session *session, astra_diag *diag) {
  bool free = false;
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

/// First value of a state: stored bytes or zeros.
void resetState(astra_session *session, uint32_t index) {
  const astra_bundle *bundle = session->loaded->bundle;
  const fmt::State *row = bundle->manifest().states()->Get(index);
  StateValue &state = session->states[index];
  if (const fmt::Place *init = row->init()) {
    if (state.bytes) memcpy(state.data, bundle->file.data + bundle->file.weights->offset + init->offset(), state.bytes);
    canonicalizeNaNs(*dtypeOf(int32_t(row->dtype())), state.data, state.bytes);
  } else {
    memset(state.data, 0, state.bytes);
  }
  state.lost = false;
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
    state.data = session->runtime->heap.allocate(state.bytes ? state.bytes : 1, kParamAlign, false);
    if (!state.data)
      return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for state %.64s (%llu bytes)", row->name()->c_str(),
                  static_cast<unsigned long long>(state.bytes));
    resetState(session, i);
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
              session->memories.init(heap, entries);
  uint32_t tensors = 0, buffers = 0, inputs = 0;
  for (uint32_t i = 0; i < entries && room; i++) {
    const fmt::Entry *e = m.entries()->Get(i);
    room = session->memories[i].init(heap, m, *e->routine());
    uint32_t n = e->inputs()->size() + e->outputs()->size();
    tensors = n > tensors ? n : tensors;
    inputs = e->inputs()->size() > inputs ? e->inputs()->size() : inputs;
    buffers = e->routine()->buffers()->size() > buffers ? e->routine()->buffers()->size() : buffers;
  }
  room = room && session->views.init(heap, tensors) && session->buffers.init(heap, buffers) &&
         session->staged.init(heap, inputs) && session->ranges.init(heap, tensors) &&
         session->blocks.init(heap, tensors);
  if (!room) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a session");
  if (o.num_dims && !o.dims)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "dims is NULL and num_dims is %u; give both", o.num_dims);
  for (uint32_t i = 0; i < o.num_dims; i++)
    if (Status s = setDim(session, o.dims[i].name, o.dims[i].value, true, diag)) return s;
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
  const StateValue &state = session->states[index];
  return expect(view, int32_t(session->loaded->bundle->manifest().states()->Get(index)->dtype()), state.rank,
                state.shape, "state", name, diag);
}

} // namespace

astra_status astra_session_init(astra_session **out, astra_loaded *loaded, const astra_session_options *options,
                                astra_diag *diag) {
  if (Status s = checkHandle(loaded, "the loaded bundle", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
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
  StateValue &state = session->states[index];
  gather(state.data, view);
  canonicalizeNaNs(*view.dtype, state.data, state.bytes);
  state.lost = false;
  return ASTRA_OK;
}

astra_status astra_session_get_state(astra_session *session, const char *name, const astra_tensor *out,
                                     astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  Taken taken(session, diag);
  if (taken.status) return taken.status;
  uint32_t index = 0;
  View view;
  if (Status s = stateTensor(session, name, out, index, view, diag)) return s;
  if (session->states[index].lost)
    return fail(diag, ASTRA_STATE_LOST, "state %.64s was lost when a call failed; set it or reset the session", name);
  scatter(view, session->states[index].data);
  return ASTRA_OK;
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
  session->states[index].leased = true;
  *data = session->states[index].data;
  *bytes = session->states[index].bytes;
  return ASTRA_OK;
}

astra_status astra_session_return_state(astra_session *session, const char *name, astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  uint32_t index = 0;
  if (Status s = findState(session, name, index, diag)) return s;
  if (!session->states[index].leased) return fail(diag, ASTRA_INVALID_ARGUMENT, "state %.64s is not leased", name);
  session->states[index].leased = false;
  leaveSession(session);
  return ASTRA_OK;
}

astra_status astra_session_reset(astra_session *session, astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  Taken taken(session, diag);
  if (taken.status) return taken.status;
  for (uint32_t i = 0; i < session->states.size(); i++) resetState(session, i);
  return ASTRA_OK;
}

astra_status astra_session_set_trace(astra_session *session, astra_trace_fn fn, void *self) {
  if (Status s = checkHandle(session, "the session", nullptr)) return s;
  Taken taken(session, nullptr);
  if (taken.status) return taken.status;
  session->trace = fn, session->traceSelf = self;
  return ASTRA_OK;
}
