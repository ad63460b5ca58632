//===- StraightKernel.cpp: a kernel's body without control ops --------------===//
// Takes:    the results of a function that runs for every point of a grid.
// Gives:    equal ones: loops that add up, multiply or take extremes as folds, others of a few trips written out, both
//           sides of branches; integers that are known computed. Or a sentence, and the op that stands in the way.
// Does not: know other loops (CustomLoops.cpp).
#include "StraightKernel.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

static constexpr int64_t fewTrips = 4;          // that are rather written out
static constexpr int64_t mostTrips = 256;       // of a loop that is unrolled
static constexpr size_t mostUnrolled = 1 << 18; // nodes of a body

namespace {
/// A body without control ops: loops that add up as folds, others of a constant number of trips written out, both sides
/// of branches; integers that are known computed.
class Straight {
public:
  explicit Straight(Builder &b) : b(b) {}
  std::string error;
  UOpRef blocked = nullptr; // of the body itself

  SmallVector<UOpRef, 4> run(llvm::ArrayRef<UOpRef> roots, llvm::ArrayRef<UOpRef> args) {
    llvm::DenseMap<UOpRef, UOpRef> now;
    llvm::DenseMap<UOpRef, SmallVector<UOpRef, 4>> results;
    for (UOpRef n : topoSort(roots)) {
      if (!error.empty()) return {};
      SmallVector<UOpRef, 8> src;
      for (UOpRef s : n->src) src.push_back(now.lookup(s));
      if (n->op == Op::Arg && !args.empty())
        now[n] = args[n->ints[0]];
      else if (n->op == Op::Scan)
        results[n] = scan(n, src);
      else if (n->op == Op::Cond)
        results[n] = cond(n, src);
      else if (n->op == Op::Proj && results.count(n->src[0]))
        now[n] = results[n->src[0]][n->ints[0]];
      else if (has(n->op, Control))
        error =
            (llvm::Twine("custom: ") + info(n->op).mnemonic + " in a kernel is not compiled yet; the evaluator runs it")
                .str();
      else
        now[n] = known(n, src);
      if (!error.empty() && args.empty()) blocked = n;
    }
    if (!error.empty()) return {};
    return llvm::to_vector<4>(llvm::map_range(roots, [&](UOpRef r) { return now.lookup(r); }));
  }

private:
  /// Whether a length is read from a value, or is another in each step of a loop around.
  static bool isData(UOpRef trips) {
    return llvm::any_of(topoSort(trips), [](UOpRef x) { return !x->isIndex() || x->op == Op::Range; });
  }
  SmallVector<UOpRef, 4> scan(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    auto trips = src.back()->constIndex();
    size_t carries = n->ints[0], slices = n->ints[1];
    if (n->fns[0]->src.size() > carries)
      error = "custom: a store in a loop of a kernel, of whose steps each program decides the number, is not compiled "
              "yet; the evaluator runs it";
    else if (isData(src.back())) // each program has its own number of steps
      error =
          "custom: a loop of a kernel whose length is arithmetic of data is not compiled yet; the evaluator runs it";
    else if (!trips || *trips >= fewTrips)
      if (auto all = folds(n, src); !all.empty() || !error.empty()) return all;
    if (error.empty() && (!trips || *trips > mostTrips))
      error = "custom: a loop in a kernel of " +
              (trips ? std::to_string(*trips) : std::string("a symbolic number of")) +
              " trips whose values are no sums, products or extremes is not compiled yet: loops of up to " +
              std::to_string(mostTrips) + " known trips are written out; the evaluator runs it";
    if (!error.empty()) return {};
    SmallVector<UOpRef, 4> args(src.begin(), src.begin() + n->ntensors);
    for (int64_t t = 0; t < *trips && error.empty(); ++t) {
      for (size_t s = carries; s < carries + slices; ++s) args[s] = slice(src[s], b.idx(t));
      SmallVector<UOpRef, 4> next = run(n->fns[0]->src, args);
      llvm::copy(next, args.begin());
      if (b.c.size() > before + mostUnrolled)
        error = "custom: a kernel has more than " + std::to_string(mostUnrolled) + " nodes with its loops written out";
    }
    return {args.begin(), args.begin() + carries};
  }
  /// Of a loop whose carried values are counters, stay, or are folded with what does not depend on any of them: these
  /// folds. Nothing where it is another.
  SmallVector<UOpRef, 4> folds(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    UOpRef trips = src.back(), r = b.c.make(Op::Range, {trips}, {ours + number++, int64_t(RangeKind::Fold)});
    llvm::ArrayRef<UOpRef> next = n->fns[0]->src;
    SmallVector<UOpRef, 4> args(src.begin(), src.begin() + n->ntensors), last(args), carried(args.size());
    auto isArg = [](UOpRef x, size_t j) { return x->op == Op::Arg && x->ints[0] == int64_t(j); };
    size_t carries = n->ints[0], slices = n->ints[1];
    for (size_t j = carries; j < carries + slices; ++j) args[j] = slice(src[j], r);
    for (size_t j = 0; j < carries; ++j) {
      UOpRef x = next[j], step = nullptr;
      if (isArg(x, j)) continue;
      if (x->op == Op::Add && x->dtype == DType::I64 && !x->rank())
        step = isArg(x->src[0], j) ? x->src[1] : isArg(x->src[1], j) ? x->src[0] : nullptr;
      if (step && step->isConst() && std::abs(int64_t(step->ints[0])) <= INT32_MAX) {
        auto after = [&](UOpRef count) {
          UOpRef way = b.fromIndex(idxMul(b.c, count, b.idx(step->ints[0])), DType::I64),
                 z = asIndex(Op::Add, src[j], way);
          return z ? z : b.add(src[j], way);
        };
        last[j] = after(trips), args[j] = after(r);
      } else
        args[j] = carried[j] = b.c.make(Op::Param, x->shape, {}, "%carried" + std::to_string(number++), x->dtype);
    }
    SmallVector<UOpRef, 4> values = run(next, args);
    if (!error.empty()) return {};
    last.truncate(carries);
    for (size_t j = 0; j < carries; ++j) {
      if (!carried[j]) continue;
      static const std::pair<Op, Combine> ways[] = {{Op::Add, Combine::Add},
                                                    {Op::Mul, Combine::Mul},
                                                    {Op::Max, Combine::Max},
                                                    {Op::Min, Combine::Min},
                                                    {Op::Fma, Combine::Fma}};
      auto way = llvm::find_if(ways, [&](auto &w) { return w.first == values[j]->op; });
      SmallVector<UOpRef, 4> parts; // the last first
      UOpRef x = values[j];
      auto dependsOn = [](UOpRef v, UOpRef on) { return llvm::is_contained(topoSort(v), on); };
      while (way != std::end(ways) && x->op == way->first) {
        if (x->op == Op::Fma) {
          parts.push_back(x->src[1]), parts.push_back(x->src[0]);
          x = x->src[2];
          continue;
        }
        bool first = dependsOn(x->src[0], carried[j]);
        parts.push_back(x->src[first]);
        x = x->src[!first];
      }
      if (x != carried[j] || isComplex(x->dtype)) return {};
      for (UOpRef p : parts)
        for (UOpRef other : carried)
          if (other && dependsOn(p, other)) return {};
      parts.push_back(src[j]);
      std::reverse(parts.begin(), parts.end());
      int64_t steps = int64_t(parts.size()) - 1;
      parts.push_back(r);
      last[j] = b.c.make(Op::Fold, parts, {int64_t(way->second), steps});
    }
    return last;
  }
  /// Arithmetic of i64 scalars, as a symbolic integer where both are; else null.
  UOpRef asIndex(Op op, UOpRef a, UOpRef y) {
    auto index = [&](UOpRef x) {
      return x->op == Op::FromIndex ? x->src[0] : x->isConst() ? b.idx(x->ints[0]) : nullptr;
    };
    UOpRef i = index(a), k = index(y);
    if (!i || !k) return nullptr;
    UOpRef z = op == Op::Add ? idxAdd(b.c, i, k) : op == Op::Sub ? idxSub(b.c, i, k) : idxMul(b.c, i, k);
    constexpr int64_t most = int64_t(1) << 61; // what wraps is no symbolic integer
    return z->lo > -most && z->hi < most ? b.fromIndex(z, DType::I64) : nullptr;
  }
  /// What a trip sees of what a loop goes through: element r along axis 0.
  UOpRef slice(UOpRef x, UOpRef r) {
    if (x->op == Op::Iota && x->dtype == DType::I64 && x->rank() == 1) return b.fromIndex(r, DType::I64);
    IndexBlock one = idxBlock(b.c, x->shape[0], r, 1);
    SmallVector<UOpRef, 6> begin(x->rank(), b.idx(0)), size(x->shape.begin(), x->shape.end()), none = begin,
                                                                                               missing = begin;
    begin[0] = one.begin, size[0] = one.size, missing[0] = idxSub(b.c, b.idx(1), one.size);
    UOpRef part = b.shrink(x, begin, size);
    if (one.size->constIndex() != 1) part = b.pad(part, none, missing);
    return b.reshape(part, x->shape.drop_front());
  }
  /// Both branches: values have no effects.
  SmallVector<UOpRef, 4> cond(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    llvm::ArrayRef<UOpRef> args = src.slice(1, n->ntensors - 1);
    SmallVector<UOpRef, 4> yes = run(n->fns[0]->src, args), no = run(n->fns[1]->src, args);
    if (!error.empty()) return {};
    for (auto [y, x] : llvm::zip_equal(yes, no)) y = b.select(b.splat(src[0], y->shape), y, x);
    return yes;
  }
  /// The node on these sources; a literal, or a symbolic integer, where they say its value.
  UOpRef known(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    if (n->dtype == DType::I64 && !n->rank() && (n->op == Op::Add || n->op == Op::Sub || n->op == Op::Mul))
      if (UOpRef z = asIndex(n->op, src[0], src[1])) return z;
    if (n->op != Op::Extent) return b.c.withSources(n, src);
    UOpRef i = src[0]->isConst() ? b.idx(src[0]->ints[0]) : src[0]->op == Op::FromIndex ? src[0]->src[0] : nullptr;
    if (!i) return b.c.withSources(n, src);
    if (i->lo < n->ints[0])
      i = idxMax(b.c, i, b.idx(n->ints[0])); // what is outside is refused: whoever reads it relies on that
    if (i->hi > n->ints[1]) i = idxMin(b.c, i, b.idx(n->ints[1]));
    return i;
  }

  Builder &b;
  size_t before = b.c.size();
  static constexpr int64_t ours = int64_t(1) << 20; // numbers of ranges that no lowering has
  int64_t number = 0;
};
} // namespace

StraightKernel astra::straighten(Builder &b, llvm::ArrayRef<UOpRef> roots) {
  Straight body(b);
  StraightKernel k;
  k.roots = body.run(roots, {});
  k.why = std::move(body.error), k.blocked = body.blocked;
  return k;
}
