//===- CheckRoutine.cpp: buffers, slots and programs ----------------------===//
// Takes:    a routine of an entry, or of a prepare or derive step, in the scope of dims that the Checker holds.
// Gives:    the promise that the interpreter may follow every index without looking.
// Keeps:    nesting at most kMaxProgramDepth, no recursion.
// Does not: prove that a kernel stays inside its buffers; code is trusted once its hash is.
#include "Checker.h"
#include "DType.h"

using namespace astra::rt;
using astra::fmt::Access;
using astra::fmt::BufferKind;
using astra::fmt::DimSource;
using astra::fmt::Instr;

namespace {

struct RoutineChecker {
  Checker &c;
  const fmt::Routine &r;
  const fmt::Entry *entry;
  bool derives; ///< of a derive step

  Status buffers();
  Status program(uint32_t index);
  Status launch(const fmt::Launch &l);
  [[gnu::cold]] Status external(const fmt::External &x);
  Status nesting();
  Status buffer(uint32_t index, Access access, const char *what);
  Status internalDim(uint32_t dim, const char *what);
  Status body(uint32_t index, const char *what);
};

Status RoutineChecker::buffers() {
  for (const fmt::Buffer *b : *r.buffers()) {
    uint32_t count = 0;
    switch (b->kind()) {
    case BufferKind::Input: count = entry ? entry->inputs()->size() : !derives; break;
    case BufferKind::Output: count = entry ? entry->outputs()->size() : 1; break;
    case BufferKind::Param: count = entry || derives ? c.m.params()->size() : 0; break;
    case BufferKind::State: count = entry ? c.m.states()->size() : 0; break;
    case BufferKind::Slot: count = r.slots()->size(); break;
    default: return malformed(c.diag, "a buffer has the unknown kind %u", unsigned(b->kind()));
    }
    if (b->index() >= count)
      return malformed(c.diag, "a buffer names %s %u of %u", fmt::EnumNameBufferKind(b->kind()), b->index(), count);
    if (b->kind() == BufferKind::Param && derives && c.m.params()->Get(b->index())->fixed())
      return malformed(c.diag, "a derive program reads the fixed param %.64s",
                       c.m.params()->Get(b->index())->name()->c_str());
    if (b->device() != 0)
      return malformed(c.diag, "a buffer is on device slot %u; the bundle is for one device", b->device());
    if (b->offset() % fmt::kAlign || (b->kind() != BufferKind::Slot && b->offset()))
      return malformed(c.diag, "a buffer begins at byte %llu of its slot, which is not allowed",
                       static_cast<unsigned long long>(b->offset()));
    if (b->kind() == BufferKind::State && c.readIn[b->index()] != c.scope && c.writtenIn[b->index()] != c.scope)
      return malformed(c.diag, "entry %.64s uses state %.64s without listing it", entry->name()->c_str(),
                       c.m.states()->Get(b->index())->name()->c_str());
    if (Status s = c.expression(b->bytes(), DimLevel::Entry, "the size of a buffer")) return s;
  }
  for (uint32_t slot : *r.slots())
    if (Status s = c.expression(slot, DimLevel::Entry, "the size of a slot")) return s;
  return ASTRA_OK;
}

Status RoutineChecker::buffer(uint32_t index, Access access, const char *what) {
  if (index >= r.buffers()->size()) return malformed(c.diag, "%s is buffer %u of %u", what, index, r.buffers()->size());
  if (access == Access::Read) return ASTRA_OK;
  const fmt::Buffer *b = r.buffers()->Get(index);
  if (b->kind() == BufferKind::Output || b->kind() == BufferKind::Slot) return ASTRA_OK;
  if (b->kind() == BufferKind::State && c.writtenIn[b->index()] == c.scope) return ASTRA_OK;
  return malformed(c.diag, "%s writes %s %u, which is not writable there", what, fmt::EnumNameBufferKind(b->kind()),
                   b->index());
}

Status RoutineChecker::internalDim(uint32_t dim, const char *what) {
  if (dim >= c.m.dims()->size() || c.levelOf(dim) != DimLevel::Internal)
    return malformed(c.diag, "%s sets dim %u, which is not an internal dim that it may set", what, dim);
  return ASTRA_OK;
}

Status RoutineChecker::body(uint32_t index, const char *what) {
  if (index >= r.programs()->size())
    return malformed(c.diag, "%s runs program %u of %u", what, index, r.programs()->size());
  return ASTRA_OK;
}

Status RoutineChecker::launch(const fmt::Launch &l) {
  uint32_t variants = l.variants()->size();
  if (variants == 0 || variants > fmt::kMaxVariants)
    return malformed(c.diag, "a launch has %u variants; it must have 1 to %u", variants, fmt::kMaxVariants);
  for (uint32_t v = 0; v < variants; v++) {
    const fmt::Variant *variant = l.variants()->Get(v);
    if ((variant->guard() == kNone) != (v + 1 == variants))
      return malformed(c.diag, "of the variants of a launch, exactly the last one has no guard");
    if (variant->guard() != kNone)
      if (Status s = c.expression(variant->guard(), DimLevel::Internal, "a guard")) return s;
    if (variant->kernel() >= c.m.kernels()->size())
      return malformed(c.diag, "a launch names kernel %u of %u", variant->kernel(), c.m.kernels()->size());
    const fmt::Kernel *k = c.m.kernels()->Get(variant->kernel());
    if (k->access()->size() != l.buffers()->size())
      return malformed(c.diag, "kernel %.64s takes %u buffers and is given %u", k->name()->c_str(), k->access()->size(),
                       l.buffers()->size());
    for (uint32_t i = 0; i < l.buffers()->size(); i++)
      if (Status s = buffer(l.buffers()->Get(i), static_cast<Access>(k->access()->Get(i)), k->name()->c_str()))
        return s;
    for (const fmt::KernelCode *code : *k->code()) {
      if (Status s = c.expression(code->items(), DimLevel::Internal, "a number of work items")) return s;
      if (Status s = c.expression(code->scratch(), DimLevel::Entry, "a size of scratch memory")) return s;
    }
    for (uint32_t cost : {k->flops(), k->bytes(), k->steps()})
      if (cost != kNone)
        if (Status s = c.expression(cost, DimLevel::Internal, "a cost")) return s;
  }
  uint32_t origins = l.origins() ? l.origins()->size() : 0, names = c.m.origins() ? c.m.origins()->size() : 0;
  if (origins > fmt::kMaxOrigins)
    return malformed(c.diag, "a launch has %u origins; at most %u are possible", origins, fmt::kMaxOrigins);
  for (uint32_t i = 0; i < origins; i++)
    if (l.origins()->Get(i) >= names)
      return malformed(c.diag, "a launch names origin %u of %u", l.origins()->Get(i), names);
  return ASTRA_OK;
}

Status RoutineChecker::external(const fmt::External &x) {
  uint32_t functions = c.m.functions() ? c.m.functions()->size() : 0, count = x.tensors()->size();
  if (!entry || x.function() >= functions)
    return malformed(c.diag, "a program that may not, or of %u functions, calls function %u", functions, x.function());
  if (count > fmt::kMaxHostTensors || x.inputs() > count)
    return malformed(c.diag, "a function is given %u tensors, %u of them inputs", count, x.inputs());
  for (uint32_t i = 0; i < count; i++) {
    const fmt::HostTensor *t = x.tensors()->Get(i);
    if (Status s = buffer(t->buffer(), i < x.inputs() ? Access::Read : Access::Write, "a function")) return s;
    uint32_t rank = t->shape() ? t->shape()->size() : 0;
    if (!dtypeOf(static_cast<int32_t>(t->dtype())) || rank > fmt::kMaxRank)
      return malformed(c.diag, "a function is given a tensor of an unknown dtype, or of %u axes", rank);
    for (uint32_t k = 0; k < rank; k++)
      if (Status s = c.expression(t->shape()->Get(k), DimLevel::Internal, "the shape of a tensor")) return s;
  }
  return ASTRA_OK;
}

Status RoutineChecker::program(uint32_t index) {
  const fmt::Program *p = r.programs()->Get(index);
  for (uint32_t i = 0; i < p->code()->size(); i++) {
    Status s = ASTRA_OK;
    switch (p->code_type()->GetEnum<Instr>(i)) {
    case Instr::Launch: s = launch(*p->code()->GetAs<fmt::Launch>(i)); break;
    case Instr::Copy: {
      const auto *copy = p->code()->GetAs<fmt::Copy>(i);
      s = buffer(copy->dst(), Access::Write, "a copy");
      if (!s) s = buffer(copy->src(), Access::Read, "a copy");
      if (!s) s = c.expression(copy->bytes(), DimLevel::Internal, "the size of a copy");
      break;
    }
    case Instr::SetDim: {
      const auto *set = p->code()->GetAs<fmt::SetDim>(i);
      s = internalDim(set->dim(), "an instruction");
      if (!s) s = c.expression(set->value(), DimLevel::Internal, "the value of a dim");
      break;
    }
    case Instr::ReadDim: {
      const auto *read = p->code()->GetAs<fmt::ReadDim>(i);
      s = internalDim(read->dim(), "an instruction");
      if (!s) s = buffer(read->buffer(), Access::Read, "the source of a dim");
      break;
    }
    case Instr::While: {
      const auto *loop = p->code()->GetAs<fmt::While>(i);
      s = body(loop->cond(), "a while");
      if (!s) s = body(loop->body(), "a while");
      if (!s) s = buffer(loop->flag(), Access::Read, "the flag of a while");
      break;
    }
    case Instr::Loop: {
      const auto *loop = p->code()->GetAs<fmt::Loop>(i);
      s = body(loop->body(), "a loop");
      if (!s) s = internalDim(loop->counter(), "a loop");
      if (!s) s = c.expression(loop->count(), DimLevel::Internal, "the count of a loop");
      break;
    }
    case Instr::Cond: {
      const auto *cond = p->code()->GetAs<fmt::Cond>(i);
      s = body(cond->then(), "a cond");
      if (!s && cond->otherwise() != kNone) s = body(cond->otherwise(), "a cond");
      if (!s) s = buffer(cond->flag(), Access::Read, "the flag of a cond");
      break;
    }
    case Instr::Swap: {
      const auto *swap = p->code()->GetAs<fmt::Swap>(i);
      for (uint32_t b : {swap->a(), swap->b()}) {
        if (!s) s = buffer(b, Access::Write, "a swap");
        if (!s && r.buffers()->Get(b)->kind() != BufferKind::Slot)
          s = malformed(c.diag, "a swap exchanges a buffer that is no slot");
      }
      break;
    }
    case Instr::External: s = external(*p->code()->GetAs<fmt::External>(i)); break;
    case Instr::Wait: break; // of any number
    default: s = malformed(c.diag, "a program has an unknown instruction"); break;
    }
    if (s) return s;
  }
  return ASTRA_OK;
}

/// height[p] = 1 + the greatest height of a body; kMaxProgramDepth rounds settle every legal routine.
Status RoutineChecker::nesting() {
  Array<uint32_t> height;
  uint32_t count = r.programs()->size();
  if (!height.init(c.heap, count)) return fail(c.diag, ASTRA_OUT_OF_MEMORY, "no memory to check the manifest");
  for (uint32_t round = 0; round <= fmt::kMaxProgramDepth; round++) {
    bool changed = false;
    for (uint32_t p = 0; p < count; p++) {
      const fmt::Program *program = r.programs()->Get(p);
      uint32_t deepest = 0;
      auto visit = [&](uint32_t b) { deepest = b != kNone && height[b] > deepest ? height[b] : deepest; };
      for (uint32_t i = 0; i < program->code()->size(); i++) switch (program->code_type()->GetEnum<Instr>(i)) {
        case Instr::While:
          visit(program->code()->GetAs<fmt::While>(i)->cond()), visit(program->code()->GetAs<fmt::While>(i)->body());
          break;
        case Instr::Loop: visit(program->code()->GetAs<fmt::Loop>(i)->body()); break;
        case Instr::Cond:
          visit(program->code()->GetAs<fmt::Cond>(i)->then()), visit(program->code()->GetAs<fmt::Cond>(i)->otherwise());
          break;
        default: break;
        }
      changed |= height[p] != deepest + 1;
      height[p] = deepest + 1;
    }
    if (!changed) return ASTRA_OK;
  }
  return malformed(c.diag, "programs are nested deeper than %u or run themselves", fmt::kMaxProgramDepth);
}

} // namespace

Status Checker::routine(const fmt::Routine &routine, const fmt::Entry *entry, bool derives) {
  RoutineChecker checker{*this, routine, entry, derives};
  if (routine.programs()->size() == 0) return malformed(diag, "a routine has no program");
  if (Status s = checker.buffers()) return s;
  for (uint32_t p = 0; p < routine.programs()->size(); p++)
    if (Status s = checker.program(p)) return s;
  return checker.nesting();
}
