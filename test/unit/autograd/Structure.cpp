//===- Structure.cpp: cases of movement, sums and extremes -----------------===//
// Most cases square what they move: a movement alone has no second derivative.
#include "Check.h"

using namespace astra;
using namespace astra::test;
using Sources = llvm::ArrayRef<UOpRef>;

static UOpRef square(Builder &b, UOpRef x) { return b.mul(x, x); }

std::vector<Case> test::structureCases() {
  auto idx = [](Builder &b, std::initializer_list<int64_t> v) {
    llvm::SmallVector<UOpRef, 4> out;
    for (int64_t i : v) out.push_back(b.idx(i));
    return out;
  };
  std::vector<Case> cases = {
      {"reshape",
       Op::Reshape,
       {{2, 3}},
       [=](Builder &b, Sources x) { return square(b, b.reshape(x[0], idx(b, {3, 2}))); }},
      {"permute",
       Op::Permute,
       {{2, 3, 2}},
       [](Builder &b, Sources x) { return square(b, b.permute(x[0], {2, 0, 1})); }},
      {"expand",
       Op::Expand,
       {{2, 1, 3}},
       [=](Builder &b, Sources x) { return square(b, b.expand(x[0], idx(b, {2, 4, 3}))); }},
      {"broadcasting",
       Op::Expand,
       {{3}, {2, 3}, {}},
       [](Builder &b, Sources x) { return b.mul(b.add(b.broadcastTo(x[0], x[1]->shape), x[1]), x[2]); }},
      {"pad",
       Op::Pad,
       {{2, 3}},
       [=](Builder &b, Sources x) {
         return square(b, b.pad(x[0], idx(b, {1, 0}), idx(b, {0, 2}), 0x3ff8000000000000));
       }},
      {"shrink",
       Op::Shrink,
       {{4, 3}},
       [=](Builder &b, Sources x) { return square(b, b.shrink(x[0], idx(b, {1, 0}), idx(b, {2, 2}))); }},
      {"flip", Op::Flip, {{2, 3}}, [](Builder &b, Sources x) { return square(b, b.add(b.flip(x[0], {1}), x[0])); }},
      {"concat", Op::Pad, {{2, 2}, {3, 2}}, [](Builder &b, Sources x) { return square(b, b.concat({x[0], x[1]}, 0)); }},
      {"window", Op::Window, {{2, 7}}, [](Builder &b, Sources x) { return square(b, b.window(x[0], 1, 3, 1, 1)); }},
      {"window with stride and dilation",
       Op::Window,
       {{9, 2}},
       [](Builder &b, Sources x) { return square(b, b.window(x[0], 0, 2, 2, 3)); }},
      {"window that leaves elements out",
       Op::Window,
       {{8}},
       [](Builder &b, Sources x) { return square(b, b.window(x[0], 0, 2, 4, 1)); }},
      {"a window of 600",
       Op::Window,
       {{603}},
       [](Builder &b, Sources x) { return b.reduce(ReduceKind::Sum, square(b, b.window(x[0], 0, 600, 1, 1)), {0}); }},
      {"after",
       Op::After,
       {{3}},
       [](Builder &b, Sources x) { return square(b, b.c.make(Op::After, {x[0], b.un(Op::Sin, x[0])})); }},
      {"tap", Op::Tap, {{3}}, [](Builder &b, Sources x) { return square(b, b.c.make(Op::Tap, {x[0]}, {}, "t")); }},
      {"sum",
       Op::Reduce,
       {{3, 4}},
       [](Builder &b, Sources x) { return square(b, b.reduce(ReduceKind::Sum, x[0], {1})); }},
      {"sum of all, in a chain",
       Op::Reduce,
       {{3, 4}},
       [](Builder &b, Sources x) { return square(b, b.reduce(ReduceKind::Sum, x[0], {0, 1}, true)); }},
      {"sum over a domain",
       Op::Reduce,
       {{3, 3}},
       [](Builder &b, Sources x) { // j <= i
         ReduceSpec s{ReduceKind::Sum, ReduceOrder::Lane64, {1}, {AffineForm{{{0, 1}, {1, -1}}, 0, 1}}};
         return square(b, b.reduce(s, x[0], b.idx(0)));
       }},
      {"prod",
       Op::Reduce,
       {{2, 4}},
       [](Builder &b, Sources x) { return b.reduce(ReduceKind::Prod, x[0], {1}); },
       -2,
       2,
       {{1, 0, 2, 3, 1, 0, 2, 0}, {0, 0, 0, 3, -1, 2, 0.5, 3}}},
      {"prod over two axes",
       Op::Reduce,
       {{2, 2, 2}},
       [](Builder &b, Sources x) { return b.reduce(ReduceKind::Prod, x[0], {0, 2}); },
       -2,
       2,
       {{0, 1, 2, 0.5}}},
      {"prod over a domain",
       Op::Reduce,
       {{3, 3}},
       [](Builder &b, Sources x) {
         ReduceSpec s{ReduceKind::Prod, ReduceOrder::Lane64, {1}, {AffineForm{{{0, 1}, {1, -1}}, 0, 1}}};
         return b.reduce(s, x[0], b.idx(0));
       },
       -2,
       2,
       {{0, 1, 2, 0.5}}},
  };
  for (ReduceKind kind : {ReduceKind::Max, ReduceKind::Min}) {
    std::string name = kind == ReduceKind::Max ? "max" : "min";
    auto build = [kind](Builder &b, Sources x) { return square(b, b.reduce(kind, x[0], {1})); };
    cases.push_back({name + " of an axis", Op::Reduce, {{3, 4}}, build});
    cases.push_back(
        {name + " with ties", Op::Reduce, {{2, 4}}, build, -2, 2, {{1, 1, 0, 1}, {2}, {0, -0.0, 1, 1}}, false});
    cases.push_back({name + " over a domain", Op::Reduce, {{3, 3}}, [kind](Builder &b, Sources x) {
                       ReduceSpec s{kind, ReduceOrder::Exact, {1}, {AffineForm{{{0, 1}, {1, -1}}, 0, 1}}};
                       return square(b, b.reduce(s, x[0], b.idx(0)));
                     }});
  }
  for (CumulateKind kind : {CumulateKind::Sum, CumulateKind::Prod, CumulateKind::Max, CumulateKind::Min})
    for (int64_t axis : {0, 1}) {
      std::string name = std::string("running ") + (kind == CumulateKind::Sum    ? "sum"
                                                    : kind == CumulateKind::Prod ? "prod"
                                                    : kind == CumulateKind::Max  ? "max"
                                                                                 : "min");
      auto build = [=](Builder &b, Sources x) { return square(b, b.cumulate(kind, x[0], axis)); };
      Case c{name + " along axis " + std::to_string(axis), Op::Cumulate, {{3, 4}}, build};
      if (kind == CumulateKind::Prod) c.special = {{0, 1, 2, 3}, {2, 0, 0, 1, 0, 1}};
      cases.push_back(c);
      if (kind != CumulateKind::Max && kind != CumulateKind::Min) continue;
      c.name += ", with ties";
      c.special = {{1, 1, 0, 2, 2}, {0}};
      c.smooth = false;
      cases.push_back(c);
    }
  return cases;
}
