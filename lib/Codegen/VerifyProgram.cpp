//===- VerifyProgram.cpp: every buffer is as large as kernels take it to be ---===//
// Takes:    a schedule.
// Gives:    nothing, or the first launch, copy or slot whose memory is not proved to suffice.
#include "Inequalities.h"
#include "astra/Codegen/Accesses.h"
#include "astra/IR/Text.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;
using Facts = Inequalities::Facts;

namespace {
/// Sizes of memory, in bytes: whether one is never below another.
class Sizes {
public:
  bool holds(UOpRef size, UOpRef needed, ArrayRef<UOpRef> facts) {
    if (size == needed) return true;
    SmallVector<UOpRef, 8> todo{size}; // a maximum is no less than each of its sides
    while (!todo.empty()) {
      UOpRef x = todo.pop_back_val();
      if (x == needed) return true;
      if (x->op == Op::Max) todo.append(x->src.begin(), x->src.end());
    }
    Facts known;
    for (UOpRef f : facts) in.assume(known, in.of(f));
    return in.proves(in.sum(in.of(size), in.of(needed), -1), known);
  }

private:
  Inequalities in;
};
} // namespace

llvm::Error astra::verifyProgram(Context &c, const Schedule &s, bool joins, AccessCount &count) {
  AccessTimer timer{count};
  Sizes sizes;
  auto fail = [](const llvm::Twine &what) { return llvm::createStringError("internal error: " + what); };
  auto routine = [&](const Routine &r, const std::string &name) -> llvm::Error {
    for (auto [i, b] : llvm::enumerate(r.buffers))
      if (b.kind == BufferKind::Slot && !sizes.holds(r.slots[b.index], b.bytes, {}))
        return fail(name + ": buffer " + llvm::Twine(i) + " of " + indexText(b.bytes) +
                    " bytes is not proved to fit slot " + llvm::Twine(b.index) + " of " + indexText(r.slots[b.index]));
    for (const std::vector<Instr> &program : r.programs)
      for (const Instr &i : program) {
        if (auto *copy = std::get_if<CopyInstr>(&i))
          for (uint32_t b : {copy->dst, copy->src})
            if (!sizes.holds(r.buffers[b].bytes, copy->bytes, {}))
              return fail(name + ": a copy of " + indexText(copy->bytes) + " bytes is not proved to fit buffer " +
                          llvm::Twine(b) + " of " + indexText(r.buffers[b].bytes));
        if (auto *call = std::get_if<ExternalInstr>(&i))
          for (auto *list : {&call->operands, &call->results})
            for (const ExternalInstr::Tensor &t : *list)
              if (UOpRef bytes = idxMul(c, idxProduct(c, t.shape), c.index(byteSize(t.dtype)));
                  !sizes.holds(r.buffers[t.buffer].bytes, bytes, {}))
                return fail(name + ": the function '" + call->function + "' is given " + indexText(bytes) +
                            " bytes, which are not proved to fit buffer " + llvm::Twine(t.buffer) + " of " +
                            indexText(r.buffers[t.buffer].bytes));
        auto *launch = std::get_if<LaunchInstr>(&i);
        if (!launch) continue;
        for (const LaunchInstr::Variant &v : launch->variants) {
          const KernelSpec &spec = s.kernels[v.kernel];
          SmallVector<UOpRef, 1> facts;
          if (v.left) facts.push_back(idxSub(c, v.right, v.left));
          SmallVector<const Placed *, 8> placed;
          for (const Placed &p : spec.inputs) placed.push_back(&p);
          if (!spec.inPlace)
            for (const Placed &p : spec.outputs) placed.push_back(&p);
          if (placed.size() != launch->buffers.size())
            return fail(name + ": a launch of '" + spec.name + "' with " + llvm::Twine(launch->buffers.size()) +
                        " buffers, expected " + llvm::Twine(placed.size()));
          if (joins && spec.follows) continue; // it has no items
          for (auto [i, p, b] : llvm::enumerate(placed, launch->buffers)) {
            // What passes between joined kernels lies in the worker's memory (verifyRegions).
            if (joins && !spec.followers.empty() && i >= spec.inputs.size() && i + 1 < placed.size()) continue;
            ++count.accesses;
            UOpRef bytes = idxMul(c, elementCount(c, p->layout, p->allocated), c.index(byteSize(p->value->dtype)));
            if (!sizes.holds(r.buffers[b].bytes, bytes, facts))
              return fail(name + ": kernel '" + spec.name + "' takes " + indexText(bytes) +
                          " bytes, which are not proved to fit buffer " + llvm::Twine(b) + " of " +
                          indexText(r.buffers[b].bytes));
          }
        }
      }
    return llvm::Error::success();
  };
  for (const ScheduledEntry &e : s.entries) {
    if (auto error = routine(e.routine, "entry '" + e.entry->name + "'")) return error;
    if (!e.strided) continue;
    if (auto error = routine(e.strided->routine, "entry '" + e.entry->name + "' at strides")) return error;
  }
  for (const std::vector<Routine> *more : {&s.prepares, &s.derives})
    for (const Routine &r : *more)
      if (auto error = routine(r, "a routine of parameters")) return error;
  return llvm::Error::success();
}
