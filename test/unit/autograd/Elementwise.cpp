//===- Elementwise.cpp: cases of the formulas ------------------------------===//
#include "Check.h"

using namespace astra;
using namespace astra::test;

static Case unary(Op op, double lo, double hi) {
  return {
      info(op).mnemonic, op, {{3}}, [op](Builder &b, llvm::ArrayRef<UOpRef> x) { return b.un(op, x[0]); }, lo, hi, {}};
}
static Case binary(Op op, double lo, double hi) {
  return {info(op).mnemonic,
          op,
          {{2, 2}, {2, 2}},
          [op](Builder &b, llvm::ArrayRef<UOpRef> x) { return b.bin(op, x[0], x[1]); },
          lo,
          hi,
          {}};
}
/// The same case at points where the op is not smooth: the modes are compared with each other alone.
static Case kinked(Case c, std::vector<Array> points, bool twice = true) {
  c.name += ", where it is not smooth";
  c.special = std::move(points);
  c.smooth = false;
  c.twice = twice;
  return c;
}

std::vector<Case> test::elementwiseCases() {
  std::vector<Case> cases = {
      unary(Op::Neg, -2, 2),      unary(Op::Abs, 0.1, 2),       unary(Op::Sqrt, 0.3, 2),     binary(Op::Add, -2, 2),
      binary(Op::Sub, -2, 2),     binary(Op::Mul, -2, 2),       binary(Op::Div, 0.5, 2),     binary(Op::Max, -2, 2),
      binary(Op::Min, -2, 2),     binary(Op::CopySign, 0.1, 2), unary(Op::Exp2, -3, 3),      unary(Op::Exp, -3, 3),
      unary(Op::Expm1, -1, 1),    unary(Op::Log2, 0.5, 3),      unary(Op::Log, 0.5, 3),      unary(Op::Log1p, -0.4, 1),
      unary(Op::Sin, -4, 4),      unary(Op::Cos, -4, 4),        unary(Op::Tan, -1, 1),       unary(Op::Tanh, -2, 2),
      unary(Op::Erf, -2, 2),      unary(Op::Sigmoid, -4, 4),    unary(Op::Rsqrt, 0.5, 3),    unary(Op::Asin, -0.7, 0.7),
      unary(Op::Acos, -0.7, 0.7), unary(Op::Atan, -3, 3),       unary(Op::Sinh, -2, 2),      unary(Op::Cosh, -2, 2),
      unary(Op::Asinh, -3, 3),    unary(Op::Acosh, 1.5, 3),     unary(Op::Atanh, -0.7, 0.7), binary(Op::Pow, 0.5, 2),
  };
  for (const DerivativeRow &r : derivativeRows()) { // formulas without a line above: where most functions are smooth
    bool plain = has(r.op, Elementwise) && !*info(r.op).attributes && r.kind == DerivativeKind::Formula;
    if (!plain || r.op == Op::Scale2 || llvm::any_of(cases, [&](const Case &c) { return c.row == r.op; })) continue;
    if (info(r.op).sources == 1) cases.push_back(unary(r.op, 0.3, 0.7));
    if (info(r.op).sources == 2) cases.push_back(binary(r.op, 0.3, 0.7));
  }
  for (const char *name : {"abs", "log", "div", "tan"}) // the other side of zero, wider ranges
    for (size_t i = 0, n = cases.size(); i < n; ++i)
      if (cases[i].name == name && cases[i].row != Op::Log) {
        Case c = cases[i];
        c.name += " of negative numbers";
        std::swap(c.lo, c.hi), c.lo = -c.lo, c.hi = -c.hi;
        cases.push_back(c);
      }
  cases.push_back(kinked(unary(Op::Abs, -1, 1), {{0, -0.0, 1}}));
  for (Op op : {Op::Max, Op::Min}) {
    cases.push_back(kinked(binary(op, -1, 1), {{0.5, 0, -0.0, 1, 0.5, -0.0, 0, 2}}));
    Case scalar = binary(op, -1, 1);
    scalar.name += " of a scalar";
    scalar.shapes = {{2, 3}, {}};
    cases.push_back(scalar);
  }
  cases.push_back(kinked(binary(Op::CopySign, -1, 1), {{0, 1, -1, -0.0, -1, -2, 3, 0}}));
  Case halves = binary(Op::Pow, 0.5, 2); // x to numbers
  for (double y : {2.0, 3.0, -1.0, 0.5}) {
    halves.name = "pow to " + std::to_string(y);
    halves.shapes = {{3}};
    halves.build = [y](Builder &b, llvm::ArrayRef<UOpRef> x) { return b.bin(Op::Pow, x[0], b.lit(DType::F64, y)); };
    cases.push_back(halves);
  }
  halves.name = "pow of negative numbers to 3";
  halves.lo = -2, halves.hi = -0.5;
  halves.build = [](Builder &b, llvm::ArrayRef<UOpRef> x) { return b.bin(Op::Pow, x[0], b.lit(DType::F64, 3)); };
  cases.push_back(halves);
  cases.push_back({"scale2", Op::Scale2, {{3}}, [](Builder &b, llvm::ArrayRef<UOpRef> x) {
                     return b.scale2(x[0], b.litInt(DType::I32, -3));
                   }});
  cases.push_back(
      {"fma", Op::Fma, {{3}, {3}, {3}}, [](Builder &b, llvm::ArrayRef<UOpRef> x) { return b.fma(x[0], x[1], x[2]); }});
  cases.push_back({"select", Op::Select, {{4}, {4}}, [](Builder &b, llvm::ArrayRef<UOpRef> x) {
                     return b.select(b.lt(x[0], x[1]), b.mul(x[0], x[1]), b.sub(x[1], x[0]));
                   }});
  cases.push_back({"select of one value", Op::Select, {{4}}, [](Builder &b, llvm::ArrayRef<UOpRef> x) {
                     return b.select(b.lt(x[0], b.lit(DType::F64, 0)), b.lit(DType::F64, 0), b.mul(x[0], x[0]));
                   }});
  cases.push_back({"x * x + x", Op::Mul, {{3}}, [](Builder &b, llvm::ArrayRef<UOpRef> x) {
                     return b.add(b.mul(x[0], x[0]), x[0]);
                   }});
  return cases;
}
