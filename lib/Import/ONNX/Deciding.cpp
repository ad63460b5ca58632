//===- Deciding.cpp: what would make a condition known ---------------------===//
#include "Deciding.h"
#include "Lowering.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

constexpr size_t mostNodes = 256; // of a condition
constexpr unsigned mostTrials = 128, mostRuns = 4;
constexpr int64_t mostElements = 64; // of an input that is worth a constant

struct Run {
  int64_t lo, hi;
  bool truth;
};

/// Tries bounds of one dim.
class Trial {
public:
  Trial(Node &n, UOpRef condition, UOpRef dim) : n(n), nodes(topoSort(condition)), dim(dim) {}

  /// The values of the dim for which the condition is known, in ascending order; none where they are too many.
  std::vector<Run> runs();

private:
  std::optional<bool> truth(int64_t lo, int64_t hi);

  Node &n;
  std::vector<UOpRef> nodes;
  UOpRef dim;
};

/// The condition for a dim within these bounds.
std::optional<bool> Trial::truth(int64_t lo, int64_t hi) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  now[dim] = lo == hi ? n.c.index(lo) : n.b.dim(dim->str.str() + " in part", lo, hi);
  for (UOpRef x : nodes) {
    if (now.count(x)) continue;
    llvm::SmallVector<UOpRef, 4> src;
    for (UOpRef s : x->src) src.push_back(now[s]);
    llvm::Expected<UOpRef> made =
        src == x->src ? llvm::Expected<UOpRef>(x) : n.c.tryMake(x->op, src, x->ints, x->str, x->dtype, x->fns);
    if (!made) {
      llvm::consumeError(made.takeError());
      return std::nullopt;
    }
    now[x] = *made;
  }
  const auto *known = n.elements(now[nodes.back()]);
  auto value = known ? known->front()->constIndex() : std::nullopt;
  return value ? std::optional(*value != 0) : std::nullopt;
}

std::vector<Run> Trial::runs() {
  std::vector<Run> runs;
  std::vector<std::pair<int64_t, int64_t>> open = {{dim->lo, dim->hi}};
  for (unsigned trial = 0; !open.empty(); ++trial) {
    if (trial == mostTrials) return {};
    auto [lo, hi] = open.back();
    open.pop_back();
    if (auto known = truth(lo, hi)) {
      bool joins = !runs.empty() && runs.back().truth == *known && runs.back().hi + 1 == lo;
      joins ? void(runs.back().hi = hi) : runs.push_back({lo, hi, *known});
    } else if (lo < hi) {
      int64_t middle = lo + (hi - lo) / 2;
      open.push_back({middle + 1, hi});
      open.push_back({lo, middle});
    }
  }
  return runs.size() > mostRuns ? std::vector<Run>() : runs;
}

} // namespace

std::string decidingHint(Node &n, UOpRef condition) {
  if (!n.lowering.failures.matters()) return "";
  std::vector<UOpRef> nodes = topoSort(condition);
  std::string flags;
  Dims dims;
  bool ofData = false, large = false;
  for (UOpRef x : nodes) {
    if (x->is(Op::Dim) && llvm::is_contained(n.lowering.module.dims, x)) dims.push_back(x);
    if (!x->is(Op::Arg)) continue;
    int64_t count = 1;
    for (UOpRef d : x->shape) count *= std::min(d->hi, mostElements + 1), count = std::min(count, mostElements + 1);
    ofData = true, large |= count > mostElements;
  }
  if (nodes.size() <= mostNodes)
    for (UOpRef dim : dims)
      for (const Run &run : Trial(n, condition, dim).runs()) {
        std::string values = std::to_string(run.lo) + (run.lo == run.hi ? "" : ".." + std::to_string(run.hi));
        flags += (flags.empty() ? "--dim " : " or --dim ") + shellWord((dim->str + "=" + values).str());
      }
  if (!flags.empty()) return "; it is known with " + flags;
  if (ofData) return large ? "" : n.cause(condition);
  return fixHint(dims);
}

} // namespace astra::onnx
