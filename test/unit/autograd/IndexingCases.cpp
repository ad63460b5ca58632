//===- IndexingCases.cpp: cases of gather, scatter, sorting, windows -------===//
#include "Check.h"

using namespace astra;
using namespace astra::test;
using Sources = llvm::ArrayRef<UOpRef>;

namespace {
UOpRef square(Builder &b, UOpRef x) { return b.mul(x, x); }
/// (k * i0 + 2 * i1 + ... + c) mod m - low: indices that repeat, and some outside.
UOpRef indices(Builder &b, std::initializer_list<int64_t> shape, int64_t k, int64_t m, int64_t low = 0) {
  llvm::SmallVector<UOpRef, 4> s;
  for (int64_t d : shape) s.push_back(b.idx(d));
  UOpRef at = b.splat(b.litInt(DType::I64, 1), s);
  for (size_t axis = 0; axis < s.size(); ++axis)
    at = b.add(at, b.mul(b.iota(DType::I64, s, axis), b.litInt(DType::I64, axis ? 2 : k)));
  return b.sub(b.bin(Op::Mod, at, b.litInt(DType::I64, m)), b.litInt(DType::I64, low));
}
UOpRef scalar(Builder &b, int64_t v) { return b.litInt(DType::I64, v); }
} // namespace

std::vector<Case> test::indexingCases() {
  std::vector<Case> cases = {
      {"gather",
       Op::Gather,
       {{3, 2, 2}},
       [](Builder &b, Sources x) {
         return square(b, b.gather(x[0], indices(b, {2, 3}, 1, 3), 1)); // index 2 lies outside
       }},
      {"gather by a scalar",
       Op::Gather,
       {{3, 2}},
       [](Builder &b, Sources x) { return square(b, b.gather(x[0], indices(b, {}, 1, 3), 0)); }},
      {"pick",
       Op::Pick,
       {{4, 2}},
       [](Builder &b, Sources x) {
         return square(b, b.pick(x[0], indices(b, {3, 2}, 2, 6, 1), 0)); // -1 ... 4
       }},
      {"sort",
       Op::Pick,
       {{3, 4}},
       [](Builder &b, Sources x) {
         UOpRef sorted = b.pick(x[0], b.argSort(x[0], 1, true), 1);
         return b.mul(sorted, b.cast(b.iota(DType::I64, sorted->shape, 1), DType::F64));
       }},
      {"slice_at",
       Op::SliceAt,
       {{4, 3}},
       [](Builder &b, Sources x) {
         return square(b, b.sliceAt(x[0], {scalar(b, 1), scalar(b, 5)}, {b.idx(2), b.idx(2)})); // the second is clamped
       }},
      {"update_at",
       Op::UpdateAt,
       {{4, 3}, {2, 2}},
       [](Builder &b, Sources x) {
         return square(b, b.updateAt(b.mul(x[0], x[0]), x[1], {scalar(b, -1), scalar(b, 1)}));
       }},
      {"update_at of the update alone",
       Op::UpdateAt,
       {{2, 2}},
       [](Builder &b, Sources x) {
         UOpRef zero = b.splat(b.lit(DType::F64, 2), {b.idx(4), b.idx(3)});
         return square(b, b.updateAt(zero, x[0], {scalar(b, 1), scalar(b, 1)}));
       }},
      {"compact",
       Op::Compact,
       {{4, 2}},
       [](Builder &b, Sources x) { // summed: a tensor at its bound has no shape here
         UOpRef keep = b.bin(Op::Ne, b.iota(DType::I64, {b.idx(4)}, 0), scalar(b, 1));
         return b.reduce(ReduceKind::Sum, square(b, b.compact(x[0], keep)), {0});
       }},
  };
  for (ScatterKind kind : {ScatterKind::Set, ScatterKind::Add, ScatterKind::Mul, ScatterKind::Max, ScatterKind::Min}) {
    static constexpr const char *names[] = {"set", "add", "mul", "max", "min"};
    std::string name = std::string("scatter ") + names[unsigned(kind)];
    auto build = [kind](Builder &b, Sources x) {
      return square(b, b.scatter(kind, x[0], indices(b, {4, 2}, 1, 5, 1), x[1], 0));
    };
    bool smoothExtreme = kind == ScatterKind::Max || kind == ScatterKind::Min;
    cases.push_back({name, Op::Scatter, {{3, 2}, {4, 2}}, build});
    cases.push_back({name + " of the updates alone", Op::Scatter, {{4, 2}}, [kind](Builder &b, Sources x) {
                       UOpRef zero = b.splat(b.lit(DType::F64, 0.5), {b.idx(3), b.idx(2)});
                       return square(b, b.scatter(kind, zero, indices(b, {4, 2}, 1, 5, 1), x[0], 0));
                     }});
    if (smoothExtreme || kind == ScatterKind::Mul)
      cases.push_back({name + (smoothExtreme ? " with ties" : " with zeros"),
                       Op::Scatter,
                       {{3, 2}, {4, 2}},
                       build,
                       -2,
                       2,
                       {{1, 1, 0, 2}, {0}, {2, 0, 1}},
                       false});
  }
  // At zeros of a product, one and several of it, against differences.
  cases.push_back(
      {"scatter mul at zeros",
       Op::Scatter,
       {{3, 2}, {4, 2}},
       [](Builder &b, Sources x) { return b.scatter(ScatterKind::Mul, x[0], indices(b, {4, 2}, 1, 5, 1), x[1], 0); },
       -2,
       2,
       {{1, 0, 2}, {0}, {2, 0, 0, 1}},
       true});
  return cases;
}
