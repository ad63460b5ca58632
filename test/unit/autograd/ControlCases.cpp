//===- ControlCases.cpp: cases of cond, scan and while ---------------------===//
#include "Check.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::test;
using Sources = llvm::ArrayRef<UOpRef>;

namespace {
UOpRef func(Builder &b, std::vector<UOpRef> results, int64_t nargs) { return b.c.make(Op::Func, results, {nargs}); }
UOpRef call(Builder &b, Op op, std::vector<UOpRef> src, std::vector<UOpRef> fns, std::vector<int64_t> ints = {}) {
  return b.c.make(op, src, ints, {}, DType::Void, fns);
}
UOpRef result(Builder &b, UOpRef call, int64_t i, Shape shape, DType t = DType::F64) {
  std::vector<UOpRef> src{call};
  llvm::append_range(src, shape);
  return b.c.make(Op::Proj, src, {i}, {}, t);
}
UOpRef arg(Builder &b, int64_t i, UOpRef like) { return b.arg(i, like->dtype, like->shape); }
UOpRef rowArg(Builder &b, int64_t i, UOpRef like) { return b.arg(i, like->dtype, like->shape.drop_front()); }
UOpRef sum(Builder &b, UOpRef x) {
  llvm::SmallVector<int64_t, 4> axes;
  for (unsigned i = 0; i < x->rank(); ++i) axes.push_back(i);
  return b.reduce(ReduceKind::Sum, x, axes);
}

/// if sum(x) < 0: sin(x) * y, else x * x (which does not use y)
UOpRef branch(Builder &b, UOpRef x, UOpRef y) {
  UOpRef a = arg(b, 0, x), c = arg(b, 1, y);
  UOpRef then = func(b, {b.mul(b.un(Op::Sin, a), c), b.iota(DType::I64, x->shape, 0)}, 2);
  UOpRef other = func(b, {b.mul(a, a), b.iota(DType::I64, x->shape, 0)}, 2);
  return result(b, call(b, Op::Cond, {b.lt(sum(b, x), b.lit(DType::F64, 0)), x, y}, {then, other}), 0, x->shape);
}

/// h = tanh(h * w + x[i]), from h0; gives h, and h * x[i] stacked, summed with it.
UOpRef recurrence(Builder &b, UOpRef h0, UOpRef x, UOpRef w) {
  UOpRef h = arg(b, 0, h0), xi = rowArg(b, 1, x), wi = arg(b, 2, w);
  UOpRef next = b.un(Op::Tanh, b.add(b.mul(h, wi), xi));
  UOpRef scan = call(b, Op::Scan, {h0, x, w, x->shape[0]}, {func(b, {next, b.mul(h, xi)}, 3)}, {1, 1});
  UOpRef rows = result(b, scan, 1, x->shape);
  return b.add(result(b, scan, 0, h0->shape), b.reduce(ReduceKind::Sum, rows, {0}));
}

/// i from 0, while i < limit (and h stays below 100): h = sin(h) * w + h, i = i + 1
UOpRef loop(Builder &b, UOpRef h0, UOpRef w, UOpRef limit) {
  UOpRef zero = b.litInt(DType::I64, 0), i = b.arg(0, DType::I64, {}), h = arg(b, 1, h0), k = arg(b, 2, w);
  UOpRef small = b.lt(sum(b, h), b.lit(DType::F64, 100));
  UOpRef go = func(b, {b.bin(Op::And, small, b.lt(i, limit))}, 3);
  UOpRef body = func(b, {b.add(i, b.litInt(DType::I64, 1)), b.add(b.mul(b.un(Op::Sin, h), k), h), k}, 3);
  UOpRef w_ = call(b, Op::While, {zero, h0, w}, {go, body});
  return result(b, w_, 1, h0->shape);
}
} // namespace

std::vector<Case> test::controlCases() {
  std::vector<Case> cases = {
      {"cond, then", Op::Cond, {{3}, {3}}, [](Builder &b, Sources x) { return branch(b, x[0], x[1]); }, -2, -1},
      {"cond, else", Op::Cond, {{3}, {3}}, [](Builder &b, Sources x) { return branch(b, x[0], x[1]); }, 1, 2},
      {"scan", Op::Scan, {{2}, {4, 2}, {2}}, [](Builder &b, Sources x) { return recurrence(b, x[0], x[1], x[2]); }},
      {"scan of one step",
       Op::Scan,
       {{2}, {1, 2}, {2}},
       [](Builder &b, Sources x) { return recurrence(b, x[0], x[1], x[2]); }},
      {"scan of no step",
       Op::Scan,
       {{2}, {0, 2}, {2}},
       [](Builder &b, Sources x) { return recurrence(b, x[0], x[1], x[2]); }},
      {"scan over values of which some are constant",
       Op::Scan,
       {{2}},
       [](Builder &b, Sources x) {
         UOpRef rows = b.cast(b.iota(DType::I64, {b.idx(3), b.idx(2)}, 0), DType::F64);
         return recurrence(b, x[0], rows, b.splat(b.lit(DType::F64, 0.5), x[0]->shape));
       }},
      {"scan with a counter",
       Op::Scan,
       {{2}},
       [](Builder &b, Sources x) { // h = h * h / (i + 2)
         UOpRef i = b.arg(0, DType::I64, {}), h = arg(b, 1, x[0]);
         UOpRef next = b.div(b.mul(h, h), b.cast(b.add(i, b.litInt(DType::I64, 2)), DType::F64));
         UOpRef body = func(b, {b.add(i, b.litInt(DType::I64, 1)), next}, 2);
         UOpRef scan = call(b, Op::Scan, {b.litInt(DType::I64, 0), x[0], b.idx(3)}, {body}, {2, 0});
         return result(b, scan, 1, x[0]->shape);
       },
       -1,
       1},
      {"scan in a scan",
       Op::Scan,
       {{2}, {2, 3, 2}, {2}},
       [](Builder &b, Sources x) {
         UOpRef h = arg(b, 0, x[0]), xi = rowArg(b, 1, x[1]), w = arg(b, 2, x[2]);
         UOpRef body = func(b, {recurrence(b, h, xi, w)}, 3);
         UOpRef scan = call(b, Op::Scan, {x[0], x[1], x[2], x[1]->shape[0]}, {body}, {1, 1});
         return result(b, scan, 0, x[0]->shape);
       },
       -1,
       1},
      {"cond in a scan",
       Op::Cond,
       {{2}, {3, 2}},
       [](Builder &b, Sources x) {
         UOpRef h = arg(b, 0, x[0]), xi = rowArg(b, 1, x[1]);
         UOpRef scan =
             call(b, Op::Scan, {x[0], x[1], x[1]->shape[0]}, {func(b, {branch(b, b.mul(h, xi), xi)}, 2)}, {1, 1});
         return result(b, scan, 0, x[0]->shape);
       },
       -1,
       1},
      {"a step that detaches",
       Op::Scan,
       {{2}, {3, 2}},
       [](Builder &b, Sources x) {
         UOpRef h = arg(b, 0, x[0]), xi = rowArg(b, 1, x[1]);
         UOpRef scan = call(b, Op::Scan, {x[0], x[1], x[1]->shape[0]},
                            {func(b, {b.mul(b.c.make(Op::Detach, {h}), xi)}, 2)}, {1, 1});
         return result(b, scan, 0, x[0]->shape);
       },
       -1,
       1,
       {},
       false},
      {"a derivative that is stated",
       Op::WithGradient,
       {{3}, {3}},
       [](Builder &b, Sources x) { // sigmoid(x) * y, by its value
         UOpRef v = arg(b, 0, x[0]), d = arg(b, 3, x[0]), s = b.un(Op::Sigmoid, arg(b, 1, x[0]));
         UOpRef gradient = func(b, {b.mul(b.mul(v, b.sub(b.lit(DType::F64, 1), s)), d), b.mul(s, d)}, 4);
         UOpRef value = b.mul(b.un(Op::Sigmoid, x[0]), x[1]);
         return call(b, Op::WithGradient, {value, x[0], x[1]}, {gradient});
       }},
      {"while",
       Op::While,
       {{2}, {2}},
       [](Builder &b, Sources x) { return loop(b, x[0], x[1], b.litInt(DType::I64, 3)); },
       -1,
       1},
      {"while that ends early",
       Op::While,
       {{2}, {2}},
       [](Builder &b, Sources x) { // after two or three of nine
         return loop(b, b.mul(x[0], b.lit(DType::F64, 20)), b.mul(x[1], b.lit(DType::F64, 20)),
                     b.litInt(DType::I64, 9));
       },
       1,
       1.5,
       {},
       false},
      {"while that does not run",
       Op::While,
       {{2}, {2}},
       [](Builder &b, Sources x) { return loop(b, x[0], x[1], b.litInt(DType::I64, 0)); }},
  };
  return cases;
}
