//===- External.cpp: calls of functions of the program --------------------===//
// Takes:    a call in a program; the functions as they were registered when the bundle was loaded.
// Gives:    its effect: on the host's memory, for a GPU by copies or by the function's own way on the GPU's memory.
// Keeps:    extents as they are now; the function sees nothing but these tensors. A function's way on a GPU's memory
//           waits for nothing; what it leaves in the queue is settled before anything waits for the queue.
// Does not: know what functions do.
#include "Gpu.h"
#include "Interpreter.h"

using namespace astra::rt;
using astra::fmt::BufferKind;

namespace {

//===- What a function may do with a GPU -----------------------------------===//

struct GpuCall : astra_gpu_call {
  explicit GpuCall(Frame &frame);
  Frame &frame;
  astra_device *device;
};
const GpuCall &of(const astra_gpu_call *gpu) { return *static_cast<const GpuCall *>(gpu); }

Status copyOn(const astra_gpu_call *gpu, void *to, const void *from, uint64_t bytes, astra_diag *diag) {
  return of(gpu).device->type.copy(of(gpu).device, gpu->queue, Way::On, to, from, bytes, diag);
}
Status zeroOn(const astra_gpu_call *gpu, void *to, uint64_t bytes, astra_diag *diag) {
  return clear(of(gpu).device, gpu->queue, to, bytes, diag);
}
Status writeOn(const astra_gpu_call *gpu, void *to, const void *host, uint64_t bytes, astra_diag *diag) {
  return of(gpu).device->type.copy(of(gpu).device, gpu->queue, Way::In, to, host, bytes, diag);
}

/// What the call at hand failed with, for a function that asked for it.
Status pass(const Frame &frame, Status status, astra_diag *diag) {
  return fail(diag, status, "%.400s", frame.diag ? frame.diag->text : "");
}

Status room(const astra_gpu_call *gpu, uint64_t bytes, void **out, astra_diag *diag) {
  Frame &frame = of(gpu).frame;
  if (bytes > frame.room->size()) { // the old one may be in use
    if (Status s = frame.settle()) return pass(frame, s, diag);
    if (Status s = frame.room->reserve(of(gpu).device, bytes, diag)) return s;
  }
  *out = frame.room->data();
  return ASTRA_OK;
}

/// Whether an entry maps vectors of one length, its only dim, to others.
bool isOfVectors(const fmt::Entry &e, uint32_t vectors) {
  if (e.inputs()->size() + e.outputs()->size() != vectors || e.host_dims()->size() || e.equations()->size() ||
      e.reads()->size() || e.writes()->size() || (e.multiples() && e.multiples()->size()) || !e.binds()->size())
    return false;
  for (const fmt::DimBind *bind : *e.binds())
    if (bind->dim() != e.binds()->Get(0)->dim()) return false;
  for (const auto *list : {e.inputs(), e.outputs()})
    for (const fmt::Tensor *t : *list)
      if (!t->shape() || t->shape()->size() != 1) return false;
  for (const fmt::Buffer *b : *e.routine()->buffers())
    if (b->kind() != BufferKind::Input && b->kind() != BufferKind::Output) return false;
  return true;
}

Status runEntry(const astra_gpu_call *gpu, const char *name, void *const *vectors, uint32_t num_vectors, int64_t length,
                astra_diag *diag) {
  const Frame &outer = of(gpu).frame;
  const astra_loaded &loaded = outer.loaded;
  const fmt::Manifest &m = loaded.bundle->manifest();
  const fmt::Entry *e = nullptr;
  for (const fmt::Entry *some : *m.entries())
    if (strcmp(some->name()->c_str(), name) == 0) e = some;
  if (!e || !isOfVectors(*e, num_vectors))
    return fail(diag, ASTRA_UNSUPPORTED, "the bundle has no entry '%.64s' of %u vectors; compile it for GPUs again",
                name, num_vectors);
  const fmt::Routine &r = *e->routine();
  uint32_t dim = e->binds()->Get(0)->dim();
  Heap &heap = loaded.runtime->heap;
  Array<int64_t> dims;
  Array<void *> buffers;
  RoutineMemory memory;
  if (!dims.init(heap, m.dims()->size()) || !buffers.init(heap, r.buffers()->size()) || !memory.init(heap, m, r))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a call of entry %.64s", name);
  for (uint32_t d = 0; d < m.dims()->size(); d++)
    if (m.dims()->Get(d)->source() == fmt::DimSource::Internal) dims[d] = m.dims()->Get(d)->lo();
  if (Status s = checkDim(m, dim, length, dims.data(), ASTRA_OUT_OF_BOUNDS, diag)) return s;
  dims[dim] = length;
  if (Status s = memory.evaluate(m, r, loaded.target, dims.data(), diag)) return s;
  for (uint32_t i = 0; i < r.buffers()->size(); i++) {
    const fmt::Buffer *b = r.buffers()->Get(i);
    buffers[i] = vectors[b->index() + (b->kind() == BufferKind::Output ? e->inputs()->size() : 0)];
  }
  Frame frame{loaded, r, memory, dims.data(), buffers.data(), nullptr, outer.queue, nullptr, nullptr, diag};
  return frame.run(0);
}

Status mark(const astra_gpu_call *gpu, void **out, astra_diag *diag) {
  const DeviceType &type = of(gpu).device->type;
  void *event;
  if (Status s = type.makeEvent(of(gpu).device, event, diag)) return s;
  if (Status s = type.record(of(gpu).device, event, gpu->queue, diag)) {
    type.freeEvent(of(gpu).device, event);
    return s;
  }
  *out = event;
  return ASTRA_OK;
}
Status reached(const astra_gpu_call *gpu, void *event) {
  return of(gpu).device->type.ended(of(gpu).device, event, false);
}
void unmark(const astra_gpu_call *gpu, void *event) { of(gpu).device->type.freeEvent(of(gpu).device, event); }

GpuCall::GpuCall(Frame &frame)
    : astra_gpu_call{sizeof(astra_gpu_call),
                     frame.loaded.device->gpu->kind->isCuda ? "cuda" : "hip",
                     frame.loaded.device->gpu->ordinal,
                     frame.queue,
                     copyOn,
                     zeroOn,
                     writeOn,
                     ::room,
                     runEntry,
                     ::mark,
                     ::reached,
                     ::unmark},
      frame(frame), device(frame.loaded.device) {}

Status callOnGpu(Frame &frame, HostCall &host, astra_diag &said) {
  const HostFunction &f = *host.function;
  if (frame.settling && (frame.settling != f.settle || frame.settlingSelf != f.settleSelf))
    if (Status s = frame.quiet()) return pass(frame, s, &said);
  frame.settling = f.settle, frame.settlingSelf = f.settleSelf;
  struct Job {
    GpuCall call;
    HostCall &host;
    astra_diag &said;
  } job{GpuCall(frame), host, said};
  auto run = [](void *arg) {
    auto &j = *static_cast<Job *>(arg);
    HostCall &h = j.host;
    return h.function->gpu(h.function->self, &j.call, h.tensors, h.inputs, h.tensors + h.inputs, h.count - h.inputs,
                           &j.said);
  };
  return within(frame.loaded.device, run, &job);
}

/// Traced with all of its work, which is waited for then alone.
Status runOnGpu(Frame &frame, HostCall &call) {
  frame.launched = true;
  uint64_t begin = nowNs();
  astra_diag said{};
  said.size = sizeof(said);
  if (Status own = callOnGpu(frame, call, said)) return functionFailed(call.name, own, said, frame.diag);
  if (!frame.trace) return ASTRA_OK;
  if (Status s = frame.settle()) return s;
  call.report(begin, frame.trace, frame.traceSelf);
  return ASTRA_OK;
}

} // namespace

Status Frame::quiet() {
  if (!settling) return ASTRA_OK;
  astra_diag said{};
  said.size = sizeof(said);
  struct Job {
    GpuCall call;
    astra_gpu_settle_fn fn;
    void *self;
    astra_diag &said;
  } job{GpuCall(*this), std::exchange(settling, nullptr), settlingSelf, said};
  auto run = [](void *arg) {
    auto &j = *static_cast<Job *>(arg);
    return j.fn(j.self, &j.call, &j.said);
  };
  Status s = within(loaded.device, run, &job);
  if (!s) return s;
  if (Status lost = checkDevice(loaded.device, diag)) return lost;
  bool stays = s == ASTRA_PEER_LOST || s == ASTRA_PEER_DIFFERS || s == ASTRA_DEVICE_LOST;
  return fail(diag, stays ? s : Status(ASTRA_FUNCTION_FAILED), "%.500s",
              *said.text ? said.text : "a function of the program failed and does not say why");
}

Status Frame::settle() {
  if (Status s = quiet()) return s;
  return loaded.device->type.settle(loaded.device, queue, diag);
}

Status Frame::give(const fmt::External &x, HostCall &call) {
  call.function = &loaded.functions[x.function()];
  call.name = loaded.bundle->manifest().functions()->Get(x.function())->name()->c_str();
  call.inputs = x.inputs(), call.count = x.tensors()->size(), call.bytes = 0;
  for (uint32_t i = 0; i < call.count; i++) {
    const fmt::HostTensor *t = x.tensors()->Get(i);
    astra_tensor &to = call.tensors[i] = {};
    uint32_t rank = t->shape() ? t->shape()->size() : 0;
    for (uint32_t k = 0; k < rank; k++)
      if (Status s = evaluate(*loaded.bundle, t->shape()->Get(k), dims, call.shapes[i][k], diag)) return s;
    to.size = sizeof(to), to.dtype = static_cast<int32_t>(t->dtype()), to.ndim = int32_t(rank);
    to.shape = call.shapes[i], to.data = buffers[t->buffer()];
    uint64_t end;
    if (!denseBytes(*dtypeOf(to.dtype), to.shape, rank, to.data_bytes) ||
        to.data_bytes > memory.bufferBytes[t->buffer()] || !add(call.bytes, to.data_bytes, end) ||
        !roundUp(end, fmt::kAlign, call.bytes))
      return malformed(diag, "a tensor of the function '%.64s' leaves its buffer; the compiler made a mistake",
                       call.name);
  }
  return ASTRA_OK;
}

Status Frame::external(const fmt::External &x) {
  astra_device *device = loaded.device;
  if (lane && x.beside()) {
    if (Status s = wait(Lane::kMost - 1)) return s;
    if (Status s = give(x, lane->next())) return s;
    launched = true;
    lane->start(trace, traceSelf);
    return ASTRA_OK;
  }
  if (Status s = wait(0)) return s;
  HostCall call;
  if (Status s = give(x, call)) return s;
  if (device->gpu && call.function->gpu) return runOnGpu(*this, call);
  Heap &heap = loaded.runtime->heap;
  uint8_t *host = nullptr;
  if (device->gpu && call.bytes && !(host = static_cast<uint8_t *>(heap.allocate(call.bytes, fmt::kAlign, false))))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the tensors of the function '%.64s'", call.name);
  Status s = ASTRA_OK;
  auto move = [&](Way way, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to && !s; i++) {
      void *there = buffers[x.tensors()->Get(i)->buffer()], *here = call.tensors[i].data;
      if (call.tensors[i].data_bytes)
        s = device->type.copy(device, queue, way, way == Way::In ? there : here, way == Way::In ? here : there,
                              call.tensors[i].data_bytes, diag);
    }
    if (!s) s = settle();
  };
  uint64_t offset = 0;
  for (uint32_t i = 0; host && i < call.count; i++) {
    call.tensors[i].data = host + offset;
    offset = (offset + call.tensors[i].data_bytes + fmt::kAlign - 1) / fmt::kAlign * fmt::kAlign;
  }
  if (host) move(Way::Out, 0, call.inputs);
  launched = true;
  if (!s) s = call.run(trace, traceSelf, diag);
  if (host && !s) move(Way::In, call.inputs, call.count);
  heap.release(host, call.bytes, fmt::kAlign);
  return s;
}
