//===- ValueTaps.cpp: contractions with windows that reach outside ----------===//
// Takes:    a contraction with a third operand (Contract.h) at an index of its result, and of a tile the taps that are
//           inside there (Phases.h).
// Gives:    folds in the order of chain512 (N4): what lies between taps that are inside is the third operand's
//           elements.
// Keeps:    the order, in which an accumulator comes to each tap: zeros that are added elsewhere would not be the same
//           where it is -0.0 (a sum may become that by underflow, at any tap).
// Does not: know plans whose sums are spilled, or whose operands threads share: they are refused of such contractions.
#include "Value.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
/// Of a summed label: all taps, and which of them are summed, by the numbers of the third operand's axis.
struct Taps {
  int64_t all, first, count;
  int64_t origin; // of the label's 0
};
} // namespace

UOpRef ValueAt::contractOfTaps(UOpRef r, ArrayRef<UOpRef> index, UOpRef gate) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  ArrayRef<UOpRef> extents = r->indices().take_front(s.kept + s.reduced);
  const Phase *phase = r == spec.rootOp && index == this->phase.index ? this->phase.labels : nullptr;
  size_t depth = s.reduced - 1, cut = 0; // labels before `cut` and that one have taps that are left out
  SmallVector<Taps, 3> taps;
  for (size_t j = 0; j < depth; ++j) {
    int64_t origin = s.outside[j].constant, first = 0, count = *extents[s.kept + j]->constIndex();
    if (phase && !phase->taps.empty()) std::tie(first, count) = phase->taps[j];
    taps.push_back({*r->src[2]->shape[j]->constIndex(), origin + first, count, origin});
    if (count < taps.back().all) cut = j;
  }
  SmallVector<UOpRef, 8> labels(index.begin(), index.end());
  labels.resize(s.kept + s.reduced);
  UOpRef start = c.literal(r->dtype, reduceIdentity(ReduceKind::Sum, r->dtype)), block = c.index(0), begin = block;
  UOpRef all = extents.back(), blocks = r->src[2]->shape[depth], outer = nullptr;
  if (blocks->constIndex() != 1) {
    outer = block = range(blocks, RangeKind::Fold);
    begin = idxMul(c, block, c.index(chainBlock));
  }
  UOpRef length = simplifyIndex(c, idxMin(c, c.index(chainBlock), idxSub(c, all, begin)));

  auto along = [&](int64_t n, llvm::SmallVectorImpl<UOpRef> &ranges) {
    if (n == 1) return c.index(0);
    ranges.push_back(range(c.index(n), RangeKind::Fold));
    return ranges.back();
  };
  auto fold = [&](UOpRef first, ArrayRef<UOpRef> values, ArrayRef<UOpRef> ranges) {
    SmallVector<UOpRef, 8> src{first};
    src.append(values.begin(), values.end());
    src.append(ranges.begin(), ranges.end());
    Combine combine = values.size() == 2 ? Combine::Fma : Combine::Add;
    return c.make(Op::Fold, src, {int64_t(combine), int64_t(values.size())});
  };
  // `number` of the labels outside of j; of that one `count` from `first` on; all of those inside of it.
  SmallVector<UOpRef, 4> number(depth + 1);
  number[depth] = block;
  auto skip = [&](UOpRef sum, size_t j, int64_t first, int64_t count) {
    if (count <= 0) return sum;
    SmallVector<UOpRef, 4> ranges;
    for (size_t k = j; k < depth; ++k)
      number[k] = simplifyIndex(c, idxAdd(c, c.index(k == j ? first : 0), along(k == j ? count : taps[k].all, ranges)));
    SmallVector<UOpRef, 6> at(number.begin(), number.end());
    for (const AffineForm &f : ArrayRef(s.outside).drop_front(depth + 1)) {
      UOpRef e = c.index(f.constant);
      for (auto [label, k] : f.terms) e = idxAdd(c, e, idxMul(c, labels[label], c.index(k)));
      at.push_back(simplifyIndex(c, e));
    }
    UOpRef zero = this->at(r->src[2], at, gate);
    return ranges.empty() ? c.make(Op::Add, {sum, zero}) : fold(sum, zero, ranges);
  };
  auto take = [&](UOpRef sum) {
    SmallVector<UOpRef, 6> ranges;
    for (size_t k = 0; k < depth; ++k) {
      UOpRef n = k < cut ? number[k] : idxAdd(c, c.index(taps[k].first), along(taps[k].count, ranges));
      labels[s.kept + k] = simplifyIndex(c, idxSub(c, n, c.index(taps[k].origin)));
    }
    UOpRef step = c.index(0), takesPart = nullptr;
    if (length->constIndex() != 1) ranges.push_back(step = range(length, RangeKind::Fold));
    labels.back() = simplifyIndex(c, idxAdd(c, begin, step));
    auto inside = gate || masked || shared.threads ? ArrayRef<UOpRef>() : extents;
    SmallVector<unsigned, 2> windows[2];
    if (phase)
      for (auto [side, axis] : phase->inside) windows[side].push_back(axis);
    UOpRef a = operand(r->src[0], s.a, labels, takesPart, gate, inside, windows[0]),
           b = operand(r->src[1], s.b, labels, takesPart, gate, inside, windows[1]);
    return ranges.empty() ? c.make(Op::Fma, {a, b, sum}) : fold(sum, {a, b}, ranges);
  };
  std::function<UOpRef(UOpRef, size_t)> sumFrom = [&](UOpRef sum, size_t j) { // no deeper than there are labels
    sum = skip(sum, j, 0, taps[j].first);
    if (j == cut)
      sum = taps[j].count > 0 ? take(sum) : sum;
    else
      for (int64_t n = 0; n < taps[j].count; ++n) {
        number[j] = c.index(taps[j].first + n);
        sum = sumFrom(sum, j + 1);
      }
    int64_t behind = taps[j].first + taps[j].count;
    return skip(sum, j, behind, taps[j].all - behind);
  };
  UOpRef sum = sumFrom(start, 0);
  return outer ? fold(start, sum, outer) : sum;
}
