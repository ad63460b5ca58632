//===- VerifyKernel.cpp: rules for kernels ---------------------------------===//
// Takes:    the sink of a kernel.
// Gives:    nothing, or the first rule broken.
#include "VerifyNode.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

using namespace astra;

llvm::Error astra::verifyKernel(UOpRef sink, Stage stage) {
  auto fail = [](UOpRef n, const llvm::Twine &what) {
    return llvm::createStringError("kernel, at " + verifier::placeOf(n, nullptr) + ": " + what);
  };
  if (sink->op != Op::Sink) return fail(sink, "a kernel is a sink of stores");
  std::map<int64_t, UOpRef> axes, slots;
  llvm::DenseMap<UOpRef, unsigned> number; // of ranges
  std::vector<UOpRef> ranges, order = topoSort(sink);
  for (UOpRef n : order) {
    if (auto rule = verifier::brokenRule(n, stage)) return fail(n, *rule);
    if (n->op == Op::Range) {
      if (!axes.emplace(n->ints[0], n).second)
        return fail(n, "two ranges have the axis number " + llvm::Twine(n->ints[0]));
      number[n] = ranges.size();
      ranges.push_back(n);
    }
    if (n->op == Op::Buffer && !slots.emplace(n->ints[0], n).second)
      return fail(n, "two buffers have the slot " + llvm::Twine(n->ints[0]));
    if (n != sink)
      for (UOpRef s : n->src)
        if (s->op == Op::Store) return fail(n, "a store is used as a value");
  }
  // The ranges each value still depends on.
  llvm::DenseMap<UOpRef, llvm::BitVector> open;
  llvm::DenseSet<UOpRef> runAlong; // ranges
  auto isLane = [](UOpRef r) {
    return RangeKind(r->ints[1]) == RangeKind::Vector || RangeKind(r->ints[1]) == RangeKind::Thread;
  };
  for (UOpRef n : order) {
    llvm::BitVector bits(ranges.size());
    bool closes = n->op == Op::Fold || n->op == Op::LaneFold || n->op == Op::Stage;
    size_t operands = closes ? n->ntensors : n->src.size();
    for (size_t i = 0; i < operands; ++i) bits |= open[n->src[i]];
    UOpRef along = nullptr; // of what is closed
    if (closes)
      for (UOpRef r : n->indices()) {
        if (r->op != Op::Range) return fail(n, "closes something that is not a range");
        if (along && !isLane(r))
          return fail(n, "closes axis " + llvm::Twine(along->ints[0]) + ", along which something runs, around axis " +
                             llvm::Twine(r->ints[0]));
        if (runAlong.contains(r)) along = r;
        bits.reset(number[r]);
      }
    if (n->op == Op::Range) bits.set(number[n]);
    if (n->op == Op::Running) {
      along = n->indices()[0];
      runAlong.insert(along);
      bool inLoop = RangeKind(along->ints[1]) == RangeKind::Loop;
      for (unsigned r : bits.set_bits())
        if ((ranges[r]->ints[0] > along->ints[0] && (inLoop || !isLane(ranges[r]))) ||
            (inLoop && RangeKind(ranges[r]->ints[1]) == RangeKind::Fold))
          return fail(n, "runs along axis " + llvm::Twine(along->ints[0]) + " and depends on axis " +
                             llvm::Twine(ranges[r]->ints[0]) + ", which is inside of it");
    }
    if (n->op == Op::Store) {
      unsigned parallel = 0;
      for (unsigned r : bits.set_bits()) {
        RangeKind kind = RangeKind(ranges[r]->ints[1]);
        parallel += kind == RangeKind::Parallel;
        if (kind == RangeKind::Fold || kind == RangeKind::Around)
          return fail(n, "depends on the fold range of axis " + llvm::Twine(ranges[r]->ints[0]) +
                             ", which nothing closes");
      }
      if (parallel > 1)
        return fail(n, "depends on " + llvm::Twine(parallel) + " parallel ranges, at most one is allowed");
    }
    open[n] = std::move(bits);
  }
  return llvm::Error::success();
}
