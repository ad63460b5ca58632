//===- Interpreter.cpp: runs programs -------------------------------------===//
// Takes:    see Interpreter.h.
// Gives:    launches, copies, loops and branches, in the order of the program.
// Keeps:    manifest.fbs's meaning of each instruction.
// Does not: know streams or promises.
#include "Interpreter.h"

#include <ctime>

using namespace astra::rt;
using astra::fmt::Instr;

uint64_t astra::rt::nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}

bool RoutineMemory::init(Heap &heap, const fmt::Manifest &m, const fmt::Routine &r) {
  valid = false;
  return key.init(heap, m.dims()->size()) && bufferBytes.init(heap, r.buffers()->size()) &&
         slotOffsets.init(heap, r.slots()->size() + 1);
}

// Of a launch by itself, and of a call that takes less than a worker takes to come to it: 0.1 and 1 us, at 100
// operations or bytes a nanosecond.
static constexpr int64_t kLaunchCost = 10000, kSmallCost = 100000;

bool RoutineMemory::isSmall() const { return cost >= 0 && cost < kSmallCost; }

/// Operations or bytes of all launches together, of each whichever are more, and what a launch costs by itself; -1 if
/// not known: the routine loops, branches or reads dims, or a kernel does not say how many operations it has.
static int64_t costOf(const fmt::Manifest &m, const fmt::Routine &r, const int64_t *dims) {
  int64_t all = 0;
  const fmt::Program *p = r.programs()->Get(0);
  for (uint32_t i = 0; i < p->code()->size(); i++) {
    if (p->code_type()->GetEnum<Instr>(i) != Instr::Launch) return -1;
    int64_t most = 0;
    for (const fmt::Variant *v : *p->code()->GetAs<fmt::Launch>(i)->variants()) {
      const fmt::Kernel *k = m.kernels()->Get(v->kernel());
      if (k->steps() == kNone) return -1;
      for (uint32_t x : {k->steps(), k->bytes()}) {
        int64_t value;
        if (x != kNone && astra::rt::evaluate(m, x, dims, value, nullptr)) return -1;
        if (x != kNone && value > most) most = value;
      }
    }
    if (__builtin_add_overflow(all, kLaunchCost, &all) || __builtin_add_overflow(all, most, &all)) return -1;
  }
  return all;
}

Status RoutineMemory::evaluate(const fmt::Manifest &m, const fmt::Routine &r, uint32_t target, const int64_t *dims,
                               astra_diag *diag) {
  if (valid && (key.size() == 0 || memcmp(key.data(), dims, key.size() * sizeof(int64_t)) == 0)) return ASTRA_OK;
  valid = false;
  uint64_t end = 0;
  for (uint32_t i = 0; i < r.slots()->size(); i++) {
    uint64_t bytes;
    slotOffsets[i] = end;
    if (Status s = evaluateBytes(m, r.slots()->Get(i), dims, bytes, diag)) return s;
    if (!add(end, bytes, end) || !roundUp(end, fmt::kAlign, end))
      return fail(diag, ASTRA_OVERFLOW, "the arena of module %.64s leaves 64 bits; use smaller dims",
                  m.module_()->c_str());
  }
  slotOffsets[r.slots()->size()] = end;
  for (uint32_t i = 0; i < r.buffers()->size(); i++) {
    const fmt::Buffer *b = r.buffers()->Get(i);
    if (Status s = evaluateBytes(m, b->bytes(), dims, bufferBytes[i], diag)) return s;
    uint64_t last;
    if (b->kind() == fmt::BufferKind::Slot &&
        (!add(b->offset(), bufferBytes[i], last) || last > slotOffsets[b->index() + 1] - slotOffsets[b->index()]))
      return malformed(diag, "buffer %u does not fit into its slot for these dims; the compiler made a mistake", i);
  }
  scratchStride = 0;
  for (const fmt::Program *p : *r.programs())
    for (uint32_t i = 0; i < p->code()->size(); i++) {
      if (p->code_type()->GetEnum<Instr>(i) != Instr::Launch) continue;
      for (const fmt::Variant *v : *p->code()->GetAs<fmt::Launch>(i)->variants()) {
        uint64_t bytes;
        if (Status s =
                evaluateBytes(m, m.kernels()->Get(v->kernel())->code()->Get(target)->scratch(), dims, bytes, diag))
          return s;
        if (!roundUp(bytes, fmt::kAlign, bytes))
          return fail(diag, ASTRA_OVERFLOW, "the scratch memory of a kernel leaves 64 bits");
        if (bytes > scratchStride) scratchStride = bytes;
      }
    }
  cost = costOf(m, r, dims);
  if (key.size()) memcpy(key.data(), dims, key.size() * sizeof(int64_t));
  valid = true;
  return ASTRA_OK;
}

Status Frame::launch(const fmt::Launch &l) {
  const astra_bundle &bundle = *loaded.bundle;
  const fmt::Manifest &m = bundle.manifest();
  const fmt::Kernel *kernel = nullptr;
  uint32_t number = 0;
  for (const fmt::Variant *v : *l.variants()) {
    int64_t accepts = 1;
    if (v->guard() != kNone)
      if (Status s = evaluate(bundle, v->guard(), dims, accepts, diag)) return s;
    if (!accepts) continue;
    kernel = m.kernels()->Get(number = v->kernel());
    break;
  }
  const fmt::KernelCode *code = kernel->code()->Get(loaded.target);
  int64_t items, flops = -1, bytes = -1;
  if (Status s = evaluate(bundle, code->items(), dims, items, diag)) return s;
  if (items < 0)
    return malformed(diag, "kernel %.64s has %lld work items; the compiler made a mistake", kernel->name()->c_str(),
                     static_cast<long long>(items));
  if (items == 0) return ASTRA_OK;
  if (kernel->flops() != kNone)
    if (Status s = evaluate(bundle, kernel->flops(), dims, flops, diag)) return s;
  if (kernel->bytes() != kNone)
    if (Status s = evaluate(bundle, kernel->bytes(), dims, bytes, diag)) return s;
  void *arguments[fmt::kMaxKernelBuffers];
  uint64_t argumentBytes[fmt::kMaxKernelBuffers];
  for (uint32_t i = 0; i < l.buffers()->size(); i++) {
    arguments[i] = buffers[l.buffers()->Get(i)];
    argumentBytes[i] = memory.bufferBytes[l.buffers()->Get(i)];
  }
  launched = true;
  const void *const *functions = loaded.code.functions;
  Launch request{functions ? functions[number] : static_cast<const char *>(loaded.code.base) + code->offset(),
                 arguments,
                 dims,
                 items,
                 scratch,
                 memory.scratchStride,
                 flops > bytes ? flops : bytes,
                 kernel,
                 code,
                 m.targets()->Get(loaded.target),
                 argumentBytes,
                 queue};
  if (!trace) return loaded.device->type.launch(loaded.device, request, diag);
  astra_trace_event event{};
  event.size = sizeof(event);
  event.name = kernel->name()->c_str();
  event.begin_ns = nowNs();
  Status status = loaded.device->type.launch(loaded.device, request, diag);
  if (!status) status = settle();
  event.end_ns = nowNs();
  event.items = items, event.bytes = bytes, event.flops = flops;
  const char *origins[fmt::kMaxOrigins];
  event.num_origins = l.origins() ? l.origins()->size() : 0;
  for (uint32_t i = 0; i < event.num_origins; i++) origins[i] = m.origins()->Get(l.origins()->Get(i))->c_str();
  event.origins = origins, event.more_origins = l.more_origins();
  trace(traceSelf, &event);
  return status;
}

Status Frame::copy(const fmt::Copy &c) {
  uint64_t bytes;
  if (Status s = evaluateBytes(loaded.bundle->manifest(), c.bytes(), dims, bytes, diag)) return s;
  char *dst = static_cast<char *>(buffers[c.dst()]);
  const char *src = static_cast<const char *>(buffers[c.src()]);
  if (bytes > memory.bufferBytes[c.dst()] || bytes > memory.bufferBytes[c.src()] ||
      (bytes && dst < src + bytes && src < dst + bytes))
    return malformed(diag, "a copy of %llu bytes leaves its buffers or overlaps; the compiler made a mistake",
                     static_cast<unsigned long long>(bytes));
  launched = true;
  astra_trace_event event{};
  if (trace) event.begin_ns = nowNs();
  Status status = loaded.device->type.copy(loaded.device, queue, Way::On, dst, src, bytes, diag);
  if (!trace) return status;
  if (!status) status = settle();
  event.size = sizeof(event);
  event.name = "copy";
  event.end_ns = nowNs();
  event.items = 1, event.bytes = int64_t(bytes), event.flops = 0;
  trace(traceSelf, &event);
  return status;
}

Status Frame::wait(uint32_t left) {
  while (lane && lane->flying() > left)
    if (Status s = lane->land(diag)) return s;
  return ASTRA_OK;
}

Status Frame::runAll() {
  Status s = run(0), ended = ASTRA_OK;
  while (lane && lane->flying()) {
    Status one = lane->land(s || ended ? nullptr : diag);
    if (!ended) ended = one;
  }
  return s ? s : ended;
}

Status Frame::fetch(void *to, uint32_t buffer, uint64_t bytes) {
  astra_device *device = loaded.device;
  if (Status s = device->type.copy(device, queue, Way::Out, to, buffers[buffer], bytes, diag)) return s;
  return settle();
}

Status Frame::readDim(const fmt::ReadDim &r) {
  int64_t value;
  if (memory.bufferBytes[r.buffer()] < sizeof(value))
    return malformed(diag, "a dim is read from a buffer of less than 8 bytes; the compiler made a mistake");
  if (Status s = fetch(&value, r.buffer(), sizeof(value))) return s;
  if (Status s = checkDim(loaded.bundle->manifest(), r.dim(), value, dims, ASTRA_DATA_DIM, diag)) return s;
  dims[r.dim()] = value;
  return ASTRA_OK;
}

Status Frame::flag(uint32_t buffer, bool &out) {
  if (memory.bufferBytes[buffer] == 0) return malformed(diag, "a flag has no byte; the compiler made a mistake");
  uint8_t byte = 0;
  if (Status s = fetch(&byte, buffer, 1)) return s;
  out = byte != 0;
  return ASTRA_OK;
}

Status Frame::step(Instr type, const void *instruction) {
  const fmt::Manifest &m = loaded.bundle->manifest();
  switch (type) {
  case Instr::Launch: return launch(*static_cast<const fmt::Launch *>(instruction));
  case Instr::Copy: return copy(*static_cast<const fmt::Copy *>(instruction));
  case Instr::External: return external(*static_cast<const fmt::External *>(instruction));
  case Instr::Wait: return wait(static_cast<const fmt::Wait *>(instruction)->left());
  case Instr::ReadDim: return readDim(*static_cast<const fmt::ReadDim *>(instruction));
  case Instr::SetDim: {
    const auto &set = *static_cast<const fmt::SetDim *>(instruction);
    int64_t value;
    if (Status s = evaluate(m, set.value(), dims, value, diag)) return s;
    if (Status s = checkDim(m, set.dim(), value, dims, ASTRA_DATA_DIM, diag)) return s;
    dims[set.dim()] = value;
    return ASTRA_OK;
  }
  case Instr::While: {
    const auto &loop = *static_cast<const fmt::While *>(instruction);
    for (;;) {
      bool more = false;
      if (Status s = run(loop.cond())) return s;
      if (Status s = flag(loop.flag(), more)) return s;
      if (!more) return ASTRA_OK;
      if (Status s = run(loop.body())) return s;
    }
  }
  case Instr::Loop: {
    const auto &loop = *static_cast<const fmt::Loop *>(instruction);
    int64_t count;
    if (Status s = evaluate(m, loop.count(), dims, count, diag)) return s;
    dims[loop.counter()] = 0;
    for (int64_t i = 0; i < count; i++) {
      if (Status s = checkDim(m, loop.counter(), i, dims, ASTRA_DATA_DIM, diag)) return s;
      dims[loop.counter()] = i;
      if (Status s = run(loop.body())) return s;
    }
    return ASTRA_OK;
  }
  case Instr::Cond: {
    const auto &cond = *static_cast<const fmt::Cond *>(instruction);
    bool yes = false;
    if (Status s = flag(cond.flag(), yes)) return s;
    uint32_t chosen = yes ? cond.then() : cond.otherwise();
    return chosen == kNone ? ASTRA_OK : run(chosen);
  }
  default: {
    const auto &swap = *static_cast<const fmt::Swap *>(instruction);
    if (memory.bufferBytes[swap.a()] != memory.bufferBytes[swap.b()])
      return malformed(diag, "a swap exchanges buffers of different sizes; the compiler made a mistake");
    std::swap(buffers[swap.a()], buffers[swap.b()]);
    return ASTRA_OK;
  }
  }
}

Status Frame::run(uint32_t index) {
  const fmt::Program *program = routine.programs()->Get(index);
  for (uint32_t i = 0; i < program->code()->size(); i++)
    if (Status s = step(program->code_type()->GetEnum<Instr>(i), program->code()->Get(i))) return s;
  return ASTRA_OK;
}
