//===- Call.cpp: submitting and running a call ----------------------------===//
// Takes:    a session, an entry, tensors.
// Gives:    astra_session_submit: every check before anything changes, then a task in a stream; and what the task does.
// Keeps:    a refusal leaves session, tensors and streams as they were; a failure after the first launch marks the
//           states that the entry writes as lost.
// Does not: wait.
#include "Device.h"
#include "IndexSets.h"
#include "Session.h"

using namespace astra::rt;
using astra::fmt::BufferKind;

namespace {

/// Where GPU kernels expect buffers to begin (manifest.fbs, KernelCode).
constexpr uint64_t kGpuAlign = 16;

/// One submit. The session is taken; whatever is refused gives it back in the end.
struct Submit {
  astra_session *session;
  astra_stream *stream;
  const astra_call &call;
  astra_diag *diag;
  const fmt::Entry &e = *call.entry->table;
  const astra_bundle &bundle = *session->loaded->bundle;
  const fmt::Manifest &m = bundle.manifest();
  View *inputs = session->views.data();
  View *outputs = inputs + e.inputs()->size();

  astra_device *device = session->loaded->device;
  uint64_t staging = 0, packing = 0; ///< bytes so far

  Status states();
  Status readInputs();
  Status readOutputs();
  Status strides();
  Status sizes();
  Status overlaps();
  Status bindBuffers();
  Status promises();
  bool order();
  Status conflicts();
  Status prepare();
  Status queue(astra_promise **out);

  RoutineMemory &memory() { return session->memoryOf(*call.entry); }
  const fmt::StridedTensor *stridedTensor(uint32_t index, bool isOutput) const;
  bool takesStrides(const View &v, uint32_t index, bool isOutput) const;
  /// Notes whether a tensor stays where it is although it is not row-major.
  Status checkStrides(View &v, uint32_t index, bool isOutput, const char *name) {
    v.isStrided = !v.dense && takesStrides(v, index, isOutput);
    session->isStrided |= v.isStrided;
    if (v.dense || v.isStrided || call.flags & ASTRA_CALL_ALLOW_COPY) return ASTRA_OK;
    return fail(diag, ASTRA_WRONG_STRIDES,
                "%s %.64s is not row-major; make it so, or allow a copy with ASTRA_CALL_ALLOW_COPY",
                isOutput ? "output" : "input", name);
  }
  /// Notes a tensor that the program cannot use where it is.
  Status stage(const View &v, uint32_t index, bool isOutput) {
    bool strided = !v.dense && !v.isStrided;
    bool elsewhere = device->gpu && v.bytes && (!v.gpu || reinterpret_cast<uintptr_t>(v.data) % kGpuAlign);
    if (!strided && !elsewhere) return ASTRA_OK;
    session->staged[session->numStaged++] = {v, index, staging, packing, isOutput};
    if (!add(staging, v.bytes, staging) || !roundUp(staging, fmt::kAlign, staging)) return noMemory("copied tensors");
    if (device->gpu && strided)
      if (!add(packing, v.bytes, packing) || !roundUp(packing, fmt::kAlign, packing)) return noMemory("copied tensors");
    return ASTRA_OK;
  }
  /// Of what a buffer is, for a sentence.
  const char *nameOf(const fmt::Buffer &b) const {
    switch (b.kind()) {
    case BufferKind::Input: return e.inputs()->Get(b.index())->name()->c_str();
    case BufferKind::Output: return e.outputs()->Get(b.index())->name()->c_str();
    case BufferKind::State: return m.states()->Get(b.index())->name()->c_str();
    case BufferKind::Param: return m.params()->Get(b.index())->name()->c_str();
    default: return "";
    }
  }
  Status noMemory(const char *what) {
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the %s of entry %.64s", what, e.name()->c_str());
  }
};

Status Submit::states() {
  for (const auto *list : {e.reads(), e.writes()})
    for (uint32_t s : *list)
      if (session->states[s].lost)
        return fail(diag, ASTRA_STATE_LOST, "state %.64s was lost when a call failed; set it or reset the session",
                    m.states()->Get(s)->name()->c_str());
  return ASTRA_OK;
}

Status Submit::readInputs() {
  if (call.num_inputs != e.inputs()->size())
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%u inputs; entry %.64s takes %u", call.num_inputs, e.name()->c_str(),
                e.inputs()->size());
  session->numStaged = session->numAccesses = session->numBlocks = 0;
  session->isStrided = false;
  for (uint32_t i = 0; i < call.num_inputs; i++) {
    const char *name = e.inputs()->Get(i)->name()->c_str();
    astra_tensor t;
    if (Status s = readTensor(t, call.inputs, i, "astra_tensor", diag)) return s;
    if (t.buffer)
      if (Status s = checkHandle(t.buffer, name, diag)) return s;
    if ((t.flags & ASTRA_TENSOR_DONATED) && !t.buffer)
      return fail(diag, ASTRA_INVALID_ARGUMENT, "input %.64s is donated and has no buffer; only buffers can be donated",
                  name);
    View &v = inputs[i];
    if (Status s = resolve(v, t, name, diag)) return s;
    if (Status s = checkPlace(v, device, name, diag)) return s;
    if (Status s = checkStrides(v, i, false, name)) return s;
    if (Status s = stage(v, i, false)) return s;
  }
  if (Status s = bindDims(session, e, inputs, session->dims.data(), diag)) return s;
  for (uint32_t i = 0; i < call.num_inputs; i++)
    if (Status s = checkInput(bundle, *e.inputs()->Get(i), inputs[i], session->dims.data(), diag)) return s;
  return ASTRA_OK;
}

Status Submit::readOutputs() {
  if (call.num_outputs != e.outputs()->size())
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%u outputs; entry %.64s gives %u", call.num_outputs, e.name()->c_str(),
                e.outputs()->size());
  for (uint32_t i = 0; i < call.num_outputs; i++) {
    const fmt::Tensor *row = e.outputs()->Get(i);
    const char *name = row->name()->c_str();
    astra_tensor t;
    if (Status s = readTensor(t, call.outputs, i, "astra_tensor", diag)) return s;
    if (t.buffer)
      if (Status s = checkHandle(t.buffer, name, diag)) return s;
    if (t.flags & ~uint32_t(ASTRA_TENSOR_CONJUGATE))
      return fail(diag, ASTRA_INVALID_ARGUMENT, "output %.64s has flags %#x; outputs can be conjugated and no more",
                  name, t.flags);
    if (Status s = resolve(outputs[i], t, name, diag)) return s;
    if (Status s = checkStrides(outputs[i], i, true, name)) return s;
    if (Status s = checkWritable(outputs[i], "output", name, diag)) return s;
    if (Status s = checkPlace(outputs[i], device, name, diag)) return s;
    if (Status s = stage(outputs[i], i, true)) return s;
    int64_t shape[ASTRA_MAX_RANK];
    if (Status s = outputShape(bundle, *row, true, session->dims.data(), shape, diag)) return s;
    if (Status s = expect(outputs[i], int32_t(row->dtype()), row->shape() ? row->shape()->size() : 0, shape, "output",
                          name, diag))
      return s;
  }
  return ASTRA_OK;
}

/// What the entry's routine for strides says of a tensor; null: it takes it row-major, or there is none.
const fmt::StridedTensor *Submit::stridedTensor(uint32_t index, bool isOutput) const {
  if (!e.strided() || device->gpu) return nullptr;
  for (const fmt::StridedTensor *t : *e.strided()->tensors())
    if (t->index() == index && t->output() == isOutput) return t;
  return nullptr;
}

/// An element's place is a sum of products of no more than these numbers, which `resolve` has computed without
/// overflow: it lies in the tensor's memory, as kernels are proved to stay within its span.
bool Submit::takesStrides(const View &v, uint32_t index, bool isOutput) const {
  const fmt::StridedTensor *t = stridedTensor(index, isOutput);
  if (!t || v.conjugate || v.rank != t->strides()->size()) return false;
  for (uint32_t i = 0; i < v.rank; i++)
    if (v.strides[i] < 0 || v.strides[i] > m.dims()->Get(t->strides()->Get(i))->hi()) return false;
  return (v.high - v.low) / (v.dtype->bits / 8) <= m.dims()->Get(t->span())->hi();
}

/// Sets the dims of the routine for strides, if some tensor needs it: of the others those of row-major order.
Status Submit::strides() {
  if (!session->isStrided) return ASTRA_OK;
  for (const fmt::StridedTensor *t : *e.strided()->tensors()) {
    const View &v = (t->output() ? outputs : inputs)[t->index()];
    auto set = [&](uint32_t dim, int64_t value) {
      session->dims[dim] = value;
      return value <= m.dims()->Get(dim)->hi();
    };
    int64_t expected = 1;
    bool fits = set(t->span(), (v.isStrided ? v.high - v.low : int64_t(v.bytes)) / (v.dtype->bits / 8));
    for (uint32_t i = v.rank; i-- > 0;) {
      fits &= set(t->strides()->Get(i), !v.isStrided ? expected : v.shape[i] > 1 ? v.strides[i] : 1);
      if (v.shape[i] > 1) expected *= v.shape[i];
    }
    if (!fits)
      return fail(diag, ASTRA_OVERFLOW,
                  "a tensor of entry %.64s is too large beside one with strides; make all row-major",
                  e.name()->c_str());
  }
  return ASTRA_OK;
}

Status Submit::sizes() {
  Heap &heap = session->runtime->heap;
  RoutineMemory &memory = this->memory();
  if (Status s =
          memory.evaluate(m, session->routineOf(*call.entry), session->loaded->target, session->dims.data(), diag))
    return s;
  uint64_t scratch;
  if (!mul(memory.scratchStride, device->executor.num_workers, scratch)) return noMemory("workers");
  struct {
    DeviceMemory &memory;
    uint64_t bytes;
    const char *what;
  } needs[] = {{session->staging, staging, "copied tensors"},
               {session->arena, memory.arenaBytes(), "arena"},
               {session->scratch, scratch, "workers"}};
  for (auto &need : needs) {
    Status s = need.memory.reserve(device, need.bytes, diag);
    if (s) return s == ASTRA_OUT_OF_MEMORY ? noMemory(need.what) : s;
  }
  if (!session->packing.reserve(heap, packing, fmt::kAlign)) return noMemory("copied tensors");
  return ASTRA_OK;
}

/// Outputs share no byte with any other tensor of the call.
Status Submit::overlaps() {
  for (uint32_t i = 0; i < call.num_inputs + call.num_outputs; i++) {
    const View &v = inputs[i];
    if (v.block) session->blocks[session->numBlocks++] = v.block;
    if (v.low == v.high) continue;
    bool writes = i >= call.num_inputs;
    for (uint32_t k = 0; k < session->numAccesses && writes; k++)
      if (Meeting met = meet(v, *session->accesses[k].view); met != Meeting::No)
        return fail(diag, ASTRA_OVERLAP, "output %.64s %s another tensor of the call; give it memory of its own",
                    e.outputs()->Get(i - call.num_inputs)->name()->c_str(),
                    met == Meeting::Yes ? "overlaps" : "is not shown to be disjoint from");
    session->accesses[session->numAccesses++] = {&v, writes};
  }
  return ASTRA_OK;
}

Status Submit::bindBuffers() {
  const fmt::Routine &r = session->routineOf(*call.entry);
  const RoutineMemory &memory = this->memory();
  auto roomOf = [](const View &v) { return v.isStrided ? uint64_t(v.high - v.low) : v.bytes; };
  for (uint32_t i = 0; i < r.buffers()->size(); i++) {
    const fmt::Buffer *b = r.buffers()->Get(i);
    uint32_t k = b->index();
    void *&at = session->buffers[i];
    uint64_t room = 0;
    switch (b->kind()) {
    case BufferKind::Input: at = inputs[k].data, room = roomOf(inputs[k]); break;
    case BufferKind::Output: at = outputs[k].data, room = roomOf(outputs[k]); break;
    case BufferKind::State: at = session->states[k].data, room = session->states[k].bytes; break;
    case BufferKind::Param: {
      const void *stored = session->params[k] ? session->params[k] : session->loaded->params[k];
      if (!stored)
        return fail(diag, ASTRA_MISSING_VALUE,
                    "param %.64s is not stored in the bundle; set it with astra_loaded_set_param",
                    m.params()->Get(k)->name()->c_str());
      at = const_cast<void *>(stored), room = m.params()->Get(k)->stored_bytes();
      break;
    }
    default: at = session->arena.data() + memory.slotOffsets[k] + b->offset(), room = memory.bufferBytes[i]; break;
    }
    if (memory.bufferBytes[i] > room)
      return malformed(diag, "buffer %u needs %llu bytes of %.64s, which has %llu; the compiler made a mistake", i,
                       static_cast<unsigned long long>(memory.bufferBytes[i]), nameOf(*b),
                       static_cast<unsigned long long>(room));
    for (uint32_t t = 0; t < session->numStaged; t++) {
      const StagedTensor &staged = session->staged[t];
      if (b->kind() == (staged.isOutput ? BufferKind::Output : BufferKind::Input) && k == staged.index)
        at = session->staging.data() + staged.offset;
    }
  }
  return ASTRA_OK;
}

/// The promise of this call and those that it waits for.
Status Submit::promises() {
  if (call.num_after && !call.after)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "after is NULL and num_after is %u; give both", call.num_after);
  if (!session->after.reserve(session->runtime->heap, call.num_after)) return noMemory("promises");
  for (uint32_t i = 0; i < call.num_after; i++) {
    if (Status s = checkHandle(call.after[i], "a promise in after", diag)) return s;
    if (call.after[i]->runtime != session->runtime)
      return fail(diag, ASTRA_INVALID_ARGUMENT, "a promise in after belongs to another runtime; use one runtime");
    session->after[i] = call.after[i];
  }
  astra_promise *promise = makePromise(session->runtime, diag);
  if (!promise) return ASTRA_OUT_OF_MEMORY;
  session->task = {};
  session->task.promise = promise;
  session->task.session = session;
  session->task.after = session->after.data(), session->task.numAfter = call.num_after;
  uint64_t numbers = e.outputs()->size();
  for (const fmt::Tensor *t : *e.outputs()) numbers += t->shape() ? t->shape()->size() : 0;
  promise->numOutputs = e.outputs()->size();
  if (promise->extents.reserve(session->runtime->heap, numbers)) return ASTRA_OK;
  release(promise);
  return noMemory("promise");
}

/// Whether two calls share memory that one of them writes.
Meeting sharedMemory(const astra_session *a, const astra_session *b) {
  Meeting all = Meeting::No;
  for (uint32_t i = 0; i < a->numAccesses; i++)
    for (uint32_t k = 0; k < b->numAccesses; k++) {
      const Access &one = a->accesses[i], &other = b->accesses[k];
      if (!one.writes && !other.writes) continue;
      Meeting met = meet(*one.view, *other.view);
      if (met == Meeting::Yes) return met;
      if (met == Meeting::Unknown) all = met;
    }
  return all;
}

/// With runtime.order locked, before `place`: the call starts after those in flight that it may not run beside. False
/// when memory is short.
bool Submit::order() {
  uint32_t given = session->task.numAfter, count = given;
  for (const astra_session *other = session->runtime->flight; other; other = other->nextInFlight) count++;
  if (session->after.size() < count) {
    Array<astra_promise *> larger;
    if (!larger.init(session->runtime->heap, uint64_t(count) * 2)) return false;
    for (uint32_t i = 0; i < given; i++) larger[i] = session->after[i];
    session->after.swap(larger);
    session->task.after = session->after.data();
  }
  for (const astra_session *other = session->runtime->flight; other; other = other->nextInFlight)
    if (sharedMemory(session, other) != Meeting::No) session->after[session->task.numAfter++] = other->task.promise;
  return true;
}

/// With runtime.order locked, after `place`: calls in flight that are not ordered before this one share no memory with
/// it that one of them writes. See Note [Order between calls].
Status Submit::conflicts() {
  for (const astra_session *other = session->runtime->flight; other; other = other->nextInFlight) {
    if (session->runtime->next[other->streamNumber] >= other->tick) continue;
    if (Meeting met = sharedMemory(session, other); met != Meeting::No)
      return fail(diag, ASTRA_OVERLAP,
                  "entry %.64s %s with a call in flight on another stream; wait for its promise, name it in after, or "
                  "let the runtime order them with ASTRA_CALL_ORDER",
                  e.name()->c_str(), met == Meeting::Yes ? "shares memory" : "is not shown to share no memory");
  }
  return ASTRA_OK;
}

Status Submit::prepare() {
  for (auto step : {&Submit::states, &Submit::readInputs, &Submit::readOutputs, &Submit::strides, &Submit::sizes,
                    &Submit::overlaps, &Submit::bindBuffers, &Submit::promises})
    if (Status s = (this->*step)()) return s;
  return ASTRA_OK;
}

Status Submit::queue(astra_promise **out) {
  astra_runtime *runtime = session->runtime;
  astra_promise *promise = session->task.promise;
  bool starts = false, small = stream->device->threads && &stream->device->type == &cpuDevice && memory().isSmall();
  Status s = ASTRA_OK;
  {
    Lock lock(runtime->order);
    if (((call.flags & ASTRA_CALL_ORDER) && !order()) || !place(stream, session->task)) {
      s = noMemory("promise");
    } else if (!(s = conflicts())) {
      session->entry = call.entry;
      session->streamNumber = stream->number;
      session->tick = runtime->next[stream->number];
      session->nextInFlight = runtime->flight;
      runtime->flight = session;
      for (uint32_t i = 0; i < session->numBlocks; i++)
        retain(session->blocks[i], session->streamNumber, session->tick);
      for (uint32_t i = 0; i < session->task.numAfter; i++) retain(session->after[i]);
      if (out) retain(promise);
      starts = append(stream, session->task);
    }
  }
  if (s) {
    release(promise);
    return s;
  }
  // Donated buffers: the call holds their blocks.
  for (uint32_t i = 0; i < call.num_inputs; i++) {
    astra_tensor t;
    readTensor(t, call.inputs, i, "astra_tensor", nullptr);
    if (t.flags & ASTRA_TENSOR_DONATED) astra_buffer_free(&t.buffer);
  }
  if (out) *out = promise;
  if (starts) start(stream, small ? promise : nullptr);
  return ASTRA_OK;
}

/// Actual extents into the promise; a data dim beyond the bound would be a compiler's mistake.
Status writeExtents(astra_session *session, const fmt::Entry &e, astra_diag *diag) {
  const astra_bundle &bundle = *session->loaded->bundle;
  int64_t *ranks = session->task.promise->extents.data(), *next = ranks + e.outputs()->size();
  for (uint32_t i = 0; i < e.outputs()->size(); i++) {
    const fmt::Tensor *t = e.outputs()->Get(i);
    int64_t bound[ASTRA_MAX_RANK];
    ranks[i] = t->shape() ? t->shape()->size() : 0;
    if (Status s = outputShape(bundle, *t, false, session->dims.data(), next, diag)) return s;
    if (Status s = outputShape(bundle, *t, true, session->dims.data(), bound, diag)) return s;
    for (int64_t k = 0; k < ranks[i]; k++)
      if (next[k] < 0 || next[k] > bound[k])
        return fail(diag, ASTRA_DATA_DIM, "axis %lld of output %.64s has %lld elements; its bound is %lld",
                    static_cast<long long>(k), t->name()->c_str(), static_cast<long long>(next[k]),
                    static_cast<long long>(bound[k]));
    next += ranks[i];
  }
  return ASTRA_OK;
}

/// Where the bytes of what is not row-major are packed on the host.
uint8_t *packedAt(astra_session *session, const StagedTensor &t) {
  return session->loaded->device->gpu ? session->packing.data() + t.packed : session->staging.data() + t.offset;
}

/// A copy between strides and row-major bytes of these extents out of the shape, which the trace says.
void copyStrided(astra_session *session, const StagedTensor &t, const int64_t *extents) {
  View outside = t.view, packed = denseOf(t.view, packedAt(session, t));
  for (View *v : {&outside, &packed}) {
    if (v->rank) memcpy(v->shape, extents, v->rank * sizeof(int64_t));
    denseBytes(*v->dtype, v->shape, v->rank, v->bytes); // no more than of the shape
  }
  uint64_t begin = session->trace ? nowNs() : 0;
  t.isOutput ? copyElements(outside, packed) : copyElements(packed, outside);
  if (!session->trace) return;
  const fmt::Entry &e = *session->entry->table;
  const char *origin = (t.isOutput ? e.outputs() : e.inputs())->Get(t.index)->name()->c_str();
  astra_trace_event event{};
  event.size = sizeof(event);
  event.name = t.isOutput ? "scatter" : "gather";
  event.begin_ns = begin, event.end_ns = nowNs();
  event.items = 1, event.bytes = int64_t(outside.bytes), event.flops = 0;
  event.origins = &origin, event.num_origins = 1;
  session->trace(session->traceSelf, &event);
}

/// What was packed of outputs goes to their places; only as many elements as there are. The program has written them
/// where they are in a tensor of the bound.
void unpack(astra_session *session) {
  const int64_t *ranks = session->task.promise->extents.data();
  for (uint32_t i = 0; i < session->numStaged; i++) {
    const StagedTensor &t = session->staged[i];
    if (!t.isOutput || t.view.dense) continue;
    const int64_t *extents = ranks + session->entry->table->outputs()->size();
    for (uint32_t k = 0; k < t.index; k++) extents += ranks[k];
    copyStrided(session, t, extents);
  }
}

/// Brings staged inputs to where the program reads them, or staged outputs from where it wrote them.
Status moveStaged(astra_session *session, void *queue, bool outputs, astra_diag *diag) {
  astra_device *device = session->loaded->device;
  for (uint32_t i = 0; i < session->numStaged; i++) {
    const StagedTensor &t = session->staged[i];
    if (t.isOutput != outputs) continue;
    uint8_t *place = session->staging.data() + t.offset;
    Way way = t.view.gpu ? Way::On : outputs ? Way::Out : Way::In;
    void *outside = t.view.dense ? static_cast<void *>(t.view.data) : packedAt(session, t);
    if (!t.view.dense && !outputs) copyStrided(session, t, t.view.shape);
    if (outside == place) continue;
    void *to = outputs ? outside : place;
    const void *from = outputs ? place : outside;
    if (Status s = device->type.copy(device, queue, way, to, from, t.view.bytes, diag)) return s;
  }
  return ASTRA_OK;
}

} // namespace

Status astra::rt::runCall(astra_session *session, astra_stream *stream, bool afterFailed, astra_diag *error) {
  const fmt::Entry &e = *session->entry->table;
  session->launched = false;
  if (Status s = checkDevice(stream->device, error)) return s;
  if (afterFailed)
    return fail(error, ASTRA_DEPENDENCY, "entry %.64s did not run: a call that it waits for failed", e.name()->c_str());
  if (Status s = moveStaged(session, stream->queue, false, error)) return s;
  Frame frame{*session->loaded,
              session->routineOf(*session->entry),
              session->memoryOf(*session->entry),
              session->dims.data(),
              session->buffers.data(),
              session->scratch.data(),
              stream->queue,
              session->trace,
              session->traceSelf,
              error,
              session->lane,
              &session->room};
  Status status = frame.runAll();
  session->launched = frame.launched;
  if (!status) {
    status = frame.quiet();
  } else {
    frame.diag = nullptr; // the first failure is the one that counts
    frame.quiet();
  }
  if (!status) status = moveStaged(session, stream->queue, true, error);
  return status ? status : writeExtents(session, e, error);
}

void astra::rt::endCall(astra_session *session, Status status) {
  astra_runtime *runtime = session->runtime;
  if (!status) unpack(session);
  if (status && session->launched)
    for (uint32_t s : *session->entry->table->writes()) session->states[s].lost = true;
  {
    Lock lock(runtime->order);
    astra_session **link = &runtime->flight;
    while (*link != session) link = &(*link)->nextInFlight;
    *link = session->nextInFlight;
  }
  for (uint32_t i = 0; i < session->numBlocks; i++) release(session->blocks[i]);
  for (uint32_t i = 0; i < session->task.numAfter; i++) release(session->after[i]);
  session->loaded->flying--;
  leaveSession(session);
}

astra_status astra_session_submit(astra_session *session, astra_stream *stream, const astra_call *call,
                                  astra_promise **promise, astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  if (Status s = checkHandle(stream, "the stream", diag)) return s;
  astra_call c;
  if (Status s = readStruct(c, call, "astra_call", diag)) return s;
  if (!c.entry || c.entry->bundle != session->loaded->bundle)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the entry is NULL or of another bundle than the session");
  if (stream->device != session->loaded->device)
    return fail(diag, ASTRA_INVALID_ARGUMENT,
                "the stream is of another device than the session; make one on its device");
  if (c.flags & ~uint32_t(ASTRA_CALL_ALLOW_COPY | ASTRA_CALL_ORDER))
    return fail(diag, ASTRA_NEWER_CLIENT, "the flags %#x are not known to this library; use a newer one", c.flags);
  if (Status s = checkDevice(stream->device, diag)) return s;
  if (Status s = takeSession(session, diag)) return s;
  uint64_t changes;
  {
    Lock lock(session->loaded->mutex);
    session->loaded->flying++; // from here on the loaded params stay
    changes = session->loaded->changes;
  }
  Submit submit{session, stream, c, diag};
  Status s = followLoaded(session, changes, diag);
  if (!s) s = submit.prepare();
  if (!s) s = submit.queue(promise);
  if (s) {
    session->loaded->flying--;
    leaveSession(session);
  }
  return s;
}
