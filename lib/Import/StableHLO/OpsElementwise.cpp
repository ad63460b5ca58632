//===- OpsElementwise.cpp: ops on one element of each operand ---------------===//
// Takes:    operands of one shape, scalars among them where StableHLO allows it.
// Gives:    elementwise UOps.
#include "Lowering.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Elementary.h"
#include "astra/Compose/Special.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::stablehlo {

namespace {

using compose::complementaryError;
using compose::cubeRoot;
using compose::leadingZeros;
using compose::roundAwayFromZero;

/// Whether two operands have one shape: StableHLO broadcasts nothing. Of dynamic extents what is known counts.
bool alike(Statement &s, UOpRef x, UOpRef y) {
  if (!x || !y) return false;
  if (s.b.isLifted || x->shape == y->shape) return true;
  if (x->rank() == y->rank()) {
    bool fits = true;
    for (auto [a, b] : llvm::zip(x->shape, y->shape)) fits = fits && s.b.requireEqual(a, b, "extents of the operands");
    if (fits) return true;
  }
  s.fail("the operands are " + typeText(x->dtype, x->shape) + " and " + typeText(y->dtype, y->shape) +
         ", expected one shape");
  return false;
}

template <Op op> void unary(Statement &s) { s.give(s.b.un(op, s.in(0))); }

template <Op op> void binary(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (alike(s, x, y)) s.give(s.b.bin(op, x, y));
}

template <UOpRef (*f)(compose::Composer &, UOpRef)> void function(Statement &s) { s.give(f(s.b, s.in(0))); }

/// One that has a form for complex numbers too, in ComplexFunction.h by the op's name.
template <Op op> void orComplex(Statement &s) {
  UOpRef x = s.in(0);
  bool isPair = x && isComplex(x->dtype);
  s.give(isPair ? compose::findComplexFunction(info(op).mnemonic)->apply(s.b, x) : s.b.un(op, x));
}

/// Of bools a logical op.
template <Op op, Op ofBools> void number(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (alike(s, x, y)) s.give(s.b.bin(x->dtype == DType::Bool ? ofBools : op, x, y));
}

/// abs of bool and unsigned integers is the operand.
void magnitude(Statement &s) {
  UOpRef x = s.in(0);
  s.give(x && isUnsigned(x->dtype) ? x : s.b.un(Op::Abs, x));
}

void divide(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (alike(s, x, y)) s.give(isInt(x->dtype) ? quotient(s.b, x, y) : s.b.bin(Op::Div, x, y));
}

void remainderOp(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (alike(s, x, y)) s.give(remainder(s.b, x, y, /*truncating=*/true));
}

void powerOp(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (alike(s, x, y)) s.give(isComplex(x->dtype) ? complexPower(s.b, x, y) : power(s.b, x, y));
}

void atan2Op(Statement &s) {
  UOpRef y = s.in(0), x = s.in(1);
  if (alike(s, x, y)) s.give(arcTangent2(s.b, y, x));
}

template <bool arithmetic> void shiftRightOp(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (alike(s, x, y)) s.give(shiftRight(s.b, x, y, arithmetic));
}

void signOp(Statement &s) {
  UOpRef x = s.in(0);
  s.give(x && isComplex(x->dtype) ? complexSign(s.b, x) : sign(s.b, x));
}

void clampOp(Statement &s) {
  UOpRef lo = s.in(0), x = s.in(1), hi = s.in(2);
  s.give(s.b.bin(Op::Min, s.b.bin(Op::Max, x, lo), hi));
}

void selectOp(Statement &s) {
  UOpRef p = s.in(0), x = s.in(1), y = s.in(2);
  if (p && p->dtype != DType::Bool) s.fail("the first operand must be of type i1");
  if (alike(s, x, y) && (p->rank() == 0 || alike(s, p, x))) s.give(s.b.select(p, x, y));
}

/// LE of TOTALORDER is that of integers in the same order.
UOpRef compared(Statement &s, UOpRef x, UOpRef y, llvm::StringRef direction) {
  struct Direction {
    const char *word;
    Op op;
    bool swaps;
  };
  static constexpr Direction directions[] = {{"EQ", Op::Eq, false}, {"NE", Op::Ne, false}, {"LT", Op::Lt, false},
                                             {"LE", Op::Le, false}, {"GT", Op::Lt, true},  {"GE", Op::Le, true}};
  for (const Direction &d : directions)
    if (direction == d.word) return d.swaps ? s.b.bin(d.op, y, x) : s.b.bin(d.op, x, y);
  return s.fail("comparison_direction is '" + direction + "', expected EQ, NE, LT, LE, GT or GE");
}

void compareOp(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  std::string direction = s.word("comparison_direction"), type = s.word("compare_type", "NOTYPE");
  if (!alike(s, x, y)) return;
  bool total = type == "TOTALORDER" && isFloat(x->dtype);
  s.give(total ? compared(s, orderKey(s.b, x), orderKey(s.b, y), direction) : compared(s, x, y, direction));
}

void convert(Statement &s) {
  UOpRef x = s.in(0);
  DType to = s.resultDType();
  if (!x || s.b.failed()) return;
  if (!isComplex(to) && to != DType::Bool) x = realPart(s.b, x);
  s.give(s.b.cast(x, to));
}

void reducePrecision(Statement &s) {
  int64_t exponent = s.intAttr("exponent_bits"), mantissa = s.intAttr("mantissa_bits");
  s.give(reducedPrecision(s.b, s.in(0), exponent, mantissa));
}

void complexOp(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (alike(s, x, y)) s.give(s.b.make(Op::Complex, {x, y}));
}

void square(Statement &s) { s.give(s.b.bin(Op::Mul, s.in(0), s.in(0))); }

template <bool positive, bool negative> void infinite(Statement &s) {
  s.give(compose::isInfinite(s.b, s.in(0), positive, negative));
}

/// CHLO's binary ops broadcast as NumPy does.
template <Op op, Op ofBools> void broadcasting(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (s.has("broadcast_dimensions")) s.unsupported("broadcast_dimensions are not supported");
  if (x && y) s.give(s.b.bin(x->dtype == DType::Bool ? ofBools : op, x, y));
}
void broadcastingDivide(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (s.has("broadcast_dimensions")) s.unsupported("broadcast_dimensions are not supported");
  if (x && y) s.give(isInt(x->dtype) ? quotient(s.b, x, y) : s.b.bin(Op::Div, x, y));
}
void broadcastingCompare(Statement &s) {
  UOpRef x = s.in(0), y = s.in(1);
  if (s.has("broadcast_dimensions")) s.unsupported("broadcast_dimensions are not supported");
  std::string direction = s.word("comparison_direction");
  bool total = s.word("compare_type", "NOTYPE") == "TOTALORDER";
  if (x && y) s.give(total ? compared(s, orderKey(s.b, x), orderKey(s.b, y), direction) : compared(s, x, y, direction));
}
void broadcastingSelect(Statement &s) { s.give(s.b.select(s.in(0), s.in(1), s.in(2))); }

void constantLike(Statement &s) {
  UOpRef x = s.in(0);
  const Attribute *value = s.op.find("value");
  if (!value || (value->kind != Attribute::Kind::Float && value->kind != Attribute::Kind::Int)) {
    s.fail("attribute 'value' must be a number");
    return;
  }
  double v = value->kind == Attribute::Kind::Float ? value->number : double(value->integer);
  if (x) s.give(s.b.broadcastTo(s.b.literal(x, v), x->shape));
}

const char *legalized = "this op is not supported: jax.export writes it as ops of StableHLO, as MLIR's pass "
                        "chlo-legalize-to-stablehlo does";

const Row rows[] = {
    {"stablehlo.abs", magnitude, "", 1, 1, true},
    {"stablehlo.add", number<Op::Add, Op::Or>, "i1: or", 2, 2, true},
    {"stablehlo.and", binary<Op::And>, "", 2, 2, true},
    {"stablehlo.atan2", atan2Op, "floats", 2, 2, true},
    {"stablehlo.cbrt", function<cubeRoot>, "floats", 1, 1, true},
    {"stablehlo.ceil", unary<Op::Ceil>, "", 1, 1, true},
    {"stablehlo.clamp", clampOp, "a NaN passes", 3, 3, true},
    {"stablehlo.compare", compareOp,
     "TOTALORDER: a NaN is the greatest, whatever its sign; -0 below +0. Of complex numbers EQ and NE", 2, 2, true},
    {"stablehlo.complex", complexOp, "", 2, 2, true},
    {"stablehlo.convert", convert, "float to integer truncates and saturates, a NaN gives 0", 1, 1, true},
    {"stablehlo.cosine", orComplex<Op::Cos>, "", 1, 1, true},
    {"stablehlo.count_leading_zeros", function<leadingZeros>, "", 1, 1, true},
    {"stablehlo.divide", divide, "integers round to zero; by 0 gives -1, as XLA has it; MIN by -1 gives MIN", 2, 2,
     true},
    {"stablehlo.exponential", orComplex<Op::Exp>, "", 1, 1, true},
    {"stablehlo.exponential_minus_one", orComplex<Op::Expm1>, "", 1, 1, true},
    {"stablehlo.floor", unary<Op::Floor>, "", 1, 1, true},
    {"stablehlo.imag", function<compose::imaginaryPart>, "", 1, 1, true},
    {"stablehlo.is_finite", function<compose::isFinite>, "", 1, 1, true},
    {"stablehlo.log", orComplex<Op::Log>, "", 1, 1, true},
    {"stablehlo.log_plus_one", orComplex<Op::Log1p>, "", 1, 1, true},
    {"stablehlo.logistic", orComplex<Op::Sigmoid>, "", 1, 1, true},
    {"stablehlo.maximum", number<Op::Max, Op::Or>, "a NaN wins, -0 below +0; no complex numbers", 2, 2, true},
    {"stablehlo.minimum", number<Op::Min, Op::And>, "a NaN wins, -0 below +0; no complex numbers", 2, 2, true},
    {"stablehlo.multiply", number<Op::Mul, Op::And>, "i1: and", 2, 2, true},
    {"stablehlo.negate", unary<Op::Neg>, "", 1, 1, true},
    {"stablehlo.not", unary<Op::Not>, "", 1, 1, true},
    {"stablehlo.or", binary<Op::Or>, "", 2, 2, true},
    {"stablehlo.popcnt", unary<Op::PopCount>, "", 1, 1, true},
    {"stablehlo.power", powerOp, "integers to a negative power: 1 and -1 as they are, else 0", 2, 2, true},
    {"stablehlo.real", function<compose::realPart>, "", 1, 1, true},
    {"stablehlo.reduce_precision", reducePrecision, "below the least normal number 0, as XLA has it", 1, 1, true},
    {"stablehlo.remainder", remainderOp, "of the dividend's sign; floats exact; integers by 0 give the dividend", 2, 2,
     true},
    {"stablehlo.round_nearest_afz", function<roundAwayFromZero>, "", 1, 1, true},
    {"stablehlo.round_nearest_even", unary<Op::RoundEven>, "", 1, 1, true},
    {"stablehlo.rsqrt", orComplex<Op::Rsqrt>, "", 1, 1, true},
    {"stablehlo.select", selectOp, "", 3, 3, true},
    {"stablehlo.shift_left", binary<Op::Shl>, "by the width or more gives 0", 2, 2, true},
    {"stablehlo.shift_right_arithmetic", shiftRightOp<true>, "by the width or more gives the sign", 2, 2, true},
    {"stablehlo.shift_right_logical", shiftRightOp<false>, "by the width or more gives 0", 2, 2, true},
    {"stablehlo.sign", signOp, "", 1, 1, true},
    {"stablehlo.sine", orComplex<Op::Sin>, "", 1, 1, true},
    {"stablehlo.sqrt", orComplex<Op::Sqrt>, "", 1, 1, true},
    {"stablehlo.subtract", binary<Op::Sub>, "", 2, 2, true},
    {"stablehlo.tan", orComplex<Op::Tan>, "", 1, 1, true},
    {"stablehlo.tanh", orComplex<Op::Tanh>, "", 1, 1, true},
    {"stablehlo.xor", binary<Op::Xor>, "", 2, 2, true},
    {"chlo.acos", unary<Op::Acos>, "floats", 1, 1, true},
    {"chlo.acosh", unary<Op::Acosh>, "floats", 1, 1, true},
    {"chlo.asin", unary<Op::Asin>, "floats", 1, 1, true},
    {"chlo.asinh", unary<Op::Asinh>, "floats", 1, 1, true},
    {"chlo.atan", unary<Op::Atan>, "floats", 1, 1, true},
    {"chlo.atanh", unary<Op::Atanh>, "floats", 1, 1, true},
    {"chlo.bessel_i1e", nullptr, legalized},
    {"chlo.broadcast_add", broadcasting<Op::Add, Op::Or>, "", 2, 2, true},
    {"chlo.broadcast_and", broadcasting<Op::And, Op::And>, "", 2, 2, true},
    {"chlo.broadcast_atan2", nullptr, legalized},
    {"chlo.broadcast_compare", broadcastingCompare, "", 2, 2, true},
    {"chlo.broadcast_complex", nullptr, legalized},
    {"chlo.broadcast_divide", broadcastingDivide, "", 2, 2, true},
    {"chlo.broadcast_maximum", broadcasting<Op::Max, Op::Or>, "", 2, 2, true},
    {"chlo.broadcast_minimum", broadcasting<Op::Min, Op::And>, "", 2, 2, true},
    {"chlo.broadcast_multiply", broadcasting<Op::Mul, Op::And>, "", 2, 2, true},
    {"chlo.broadcast_next_after", nullptr, legalized},
    {"chlo.broadcast_or", broadcasting<Op::Or, Op::Or>, "", 2, 2, true},
    {"chlo.broadcast_polygamma", nullptr, legalized},
    {"chlo.broadcast_power", nullptr, legalized},
    {"chlo.broadcast_remainder", nullptr, legalized},
    {"chlo.broadcast_select", broadcastingSelect, "", 3, 3, true},
    {"chlo.broadcast_shift_left", nullptr, legalized},
    {"chlo.broadcast_shift_right_arithmetic", nullptr, legalized},
    {"chlo.broadcast_shift_right_logical", nullptr, legalized},
    {"chlo.broadcast_subtract", broadcasting<Op::Sub, Op::Sub>, "", 2, 2, true},
    {"chlo.broadcast_xor", broadcasting<Op::Xor, Op::Xor>, "", 2, 2, true},
    {"chlo.broadcast_zeta", nullptr, legalized},
    {"chlo.conj", function<compose::conjugate>, "", 1, 1, true},
    {"chlo.constant_like", constantLike, "real types", 1, 1},
    {"chlo.cosh", unary<Op::Cosh>, "floats", 1, 1, true},
    {"chlo.digamma", nullptr, legalized},
    {"chlo.erf", unary<Op::Erf>, "floats", 1, 1, true},
    {"chlo.erf_inv", nullptr, legalized},
    {"chlo.erfc", function<complementaryError>, "floats; computed in f64", 1, 1, true},
    {"chlo.is_inf", infinite<true, true>, "", 1, 1, true},
    {"chlo.is_neg_inf", infinite<false, true>, "", 1, 1, true},
    {"chlo.is_pos_inf", infinite<true, false>, "", 1, 1, true},
    {"chlo.lgamma", nullptr, legalized},
    {"chlo.next_after", nullptr, legalized},
    {"chlo.polygamma", nullptr, legalized},
    {"chlo.ragged_dot", nullptr, legalized},
    {"chlo.sinh", unary<Op::Sinh>, "floats", 1, 1, true},
    {"chlo.square", square, "", 1, 1, true},
    {"chlo.tan", unary<Op::Tan>, "floats", 1, 1, true},
    {"chlo.zeta", nullptr, legalized},
};

} // namespace

llvm::ArrayRef<Row> elementwiseRows() { return rows; }

} // namespace astra::stablehlo
