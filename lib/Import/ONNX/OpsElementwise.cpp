//===- OpsElementwise.cpp: ops on one element of each input ----------------===//
// Takes:    nodes whose inputs broadcast.
// Gives:    elementwise UOps; activations on f16 and bf16 compute in f32 and round once (N4).
#include "OpTable.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/Special.h"
#include "onnx.pb.h"
#include <cmath>
#include <limits>

namespace astra::onnx {

namespace {

namespace activations = compose::activations;

template <Op op> void unary(Node &n) { n.give(n.un(op, n.in(0))); }
template <Op op> void binary(Node &n) { n.give(n.bin(op, n.in(0), n.in(1))); }
template <Op op> void swapped(Node &n) { n.give(n.bin(op, n.in(1), n.in(0))); }

/// Any number of inputs, folded from the left.
template <Op op> void variadic(Node &n) {
  UOpRef result = n.in(0);
  for (unsigned i = 1; i < n.numInputs(); ++i) result = n.bin(op, result, n.in(i));
  n.give(result);
}

void meanOfInputs(Node &n) {
  llvm::SmallVector<UOpRef, 4> xs;
  for (unsigned i = 0; i < n.numInputs(); ++i) xs.push_back(n.in(i));
  n.give(compose::meanOfAll(n, xs));
}

void divide(Node &n) {
  UOpRef x = n.in(0);
  n.give(n.bin(x && isInt(x->dtype) ? Op::TruncDiv : Op::Div, x, n.in(1)));
}

void bitShift(Node &n) {
  std::string direction = n.stringAttr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.fail("attribute 'direction' is '" + direction + "', expected LEFT or RIGHT");
  n.give(n.bin(direction == "LEFT" ? Op::Shl : Op::Shr, n.in(0), n.in(1)));
}

void identity(Node &n) { n.isList(0) ? n.give(0, n.list(0)) : n.give(n.in(0)); }

/// `round_mode` of a cast to e8m0.
std::optional<compose::PowerRounding> powerRounding(Node &n, llvm::StringRef mode) {
  using compose::PowerRounding;
  constexpr std::pair<const char *, PowerRounding> names[] = {
      {"up", PowerRounding::Up}, {"down", PowerRounding::Down}, {"nearest", PowerRounding::Nearest}};
  for (auto [name, rounding] : names)
    if (mode == name) return rounding;
  n.fail("attribute 'round_mode' is '" + mode + "', expected up, down or nearest");
  return std::nullopt;
}

/// The dtype that an attribute names.
DType orFailure(Node &n, llvm::StringRef attribute, llvm::Expected<DType> t) {
  if (t) return *t;
  llvm::handleAllErrors(t.takeError(), [&](const llvm::ErrorInfoBase &e) {
    std::string sentence = ("attribute '" + attribute + "': " + e.message()).str();
    e.convertToErrorCode() == std::errc::not_supported ? n.unsupported(sentence) : n.fail(sentence);
  });
  return DType::Void;
}

/// `saturate` speaks of casts to 8-bit floats only, `round_mode` of those to e8m0.
void castTo(Node &n, DType to) {
  bool saturate = n.intAttr("saturate", 1) != 0;
  std::string mode = n.stringAttr("round_mode", "up");
  if (to == DType::F8E8M0 && n.in(0) && isFloat(n.in(0)->dtype)) {
    auto rounding = powerRounding(n, mode);
    return n.give(rounding ? compose::powersOfTwo(n, n.in(0), *rounding, saturate) : nullptr);
  }
  n.give(n.cast(n.in(0), to, saturate && info(to).cls == DTypeClass::Storage && bitWidth(to) == 8));
}

void cast(Node &n) {
  DType to = dtypeAttr(n, "to");
  if (to == DType::Void) n.fail("attribute 'to' is missing");
  if (!n.failed()) castTo(n, to);
}

/// Before opset 6 the type has a name.
void castByName(Node &n) {
  std::string name = n.stringAttr("to", "");
  if (DType to = orFailure(n, "to", elementType(name)); !n.failed()) castTo(n, to);
}

/// The same bits; a NaN is canonical first (numerics N6). A byte read as bool is whether it is not 0.
void bitCast(Node &n) {
  UOpRef x = n.in(0);
  DType to = dtypeAttr(n, "to");
  if (to == DType::Void) n.fail("attribute 'to' is missing");
  if (n.failed()) return;
  if (x->dtype == to) return n.give(x);
  if (bitWidth(to) != bitWidth(x->dtype))
    n.fail(llvm::Twine("attribute 'to' is ") + info(to).text + ", of another width than " + info(x->dtype).text);
  else if (!isArithmetic(to) || !isArithmetic(x->dtype))
    n.unsupported(llvm::Twine("from ") + info(x->dtype).text + " to " + info(to).text +
                  " is not supported: bool, integers, f16, bf16, f32 and f64 are");
  else if (to == DType::Bool)
    n.give(n.bin(Op::Ne, x, 0.0));
  else
    n.give(n.make(Op::Bitcast, {x}, {}, to));
}

void castLike(Node &n) {
  if (UOpRef like = n.in(1)) castTo(n, like->dtype);
}

void where(Node &n) { n.give(n.select(n.in(0), n.in(1), n.in(2))); }

// ---- activations

void clip(Node &n) { n.give(clip(n, n.in(0), n.has(1) ? n.in(1) : nullptr, n.has(2) ? n.in(2) : nullptr)); }

/// From opset 6 on the bounds of floats are those of finite f32 numbers unless given.
void clipByAttributes(Node &n) {
  UOpRef x = n.in(0);
  double far = n.opset < 6 || !x || !isFloat(x->dtype) ? std::numeric_limits<float>::infinity()
                                                       : std::numeric_limits<float>::max();
  double least = n.floatAttr("min", -far), most = n.floatAttr("max", far);
  UOpRef lo = std::isinf(least) ? nullptr : n.literal(x, least), hi = std::isinf(most) ? nullptr : n.literal(x, most);
  n.give(clip(n, x, lo, hi));
}

void relu(Node &n) { n.give(activations::relu.apply(n, n.in(0), 0, 0)); }

/// One that the recurrent ops name too: its parameters are attributes.
template <const compose::Activation &a> void shared(Node &n) {
  double alpha = a.takesAlpha ? n.floatAttr("alpha", a.alpha) : 0, beta = a.takesBeta ? n.floatAttr("beta", a.beta) : 0;
  n.give(activation(n, a, n.in(0), alpha, beta));
}

void prelu(Node &n) { n.give(prelu(n, n.in(0), n.in(1))); }
void thresholdedRelu(Node &n) { n.give(thresholdedRelu(n, n.in(0), n.floatAttr("alpha", 1))); }
void celu(Node &n) { n.give(celu(n, n.in(0), n.floatAttr("alpha", 1))); }

void selu(Node &n) {
  bool early = n.opset < 6; // which rounded them
  double alpha = n.floatAttr("alpha", early ? 1.6732f : 1.67326319217681884765625f),
         gamma = n.floatAttr("gamma", early ? 1.0507f : 1.05070102214813232421875f);
  n.give(selu(n, n.in(0), alpha, gamma));
}

void hardSwish(Node &n) { n.give(hardSwish(n, n.in(0))); }
void mish(Node &n) { n.give(mish(n, n.in(0))); }
void swish(Node &n) { n.give(swish(n, n.in(0), n.floatAttr("alpha", 1))); }
void swiGLU(Node &n) { n.give(swiGLU(n, n.in(0), n.in(1), n.floatAttr("alpha", 1))); }
void shrink(Node &n) { n.give(shrinkage(n, n.in(0), n.floatAttr("bias", 0), n.floatAttr("lambd", 0.5))); }

void gelu(Node &n) {
  std::string approximate = n.stringAttr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    n.fail("attribute 'approximate' is '" + approximate + "', expected none or tanh");
  n.give(gelu(n, n.in(0), approximate == "tanh"));
}

void sign(Node &n) { n.give(sign(n, n.in(0))); }

void reciprocal(Node &n) { n.give(reciprocal(n, n.in(0))); }
void isNaN(Node &n) { n.give(isNaN(n, n.in(0))); }
void isInf(Node &n) {
  bool positive = n.intAttr("detect_positive", 1), negative = n.intAttr("detect_negative", 1);
  n.give(isInfinite(n, n.in(0), positive, negative));
}

constexpr Types byteFloats =
    only(DType::F8E4M3FN) | only(DType::F8E5M2) | only(DType::F8E4M3FNUZ) | only(DType::F8E5M2FNUZ);

constexpr Row rows[] = {
    {"Abs", 6, latest, 1, 1, unary<Op::Abs>, numberTypes},
    {"Neg", 6, latest, 1, 1, unary<Op::Neg>, numberTypes},
    {"Sqrt", 6, latest, 1, 1, unary<Op::Sqrt>, floatTypes},
    {"Exp", 6, latest, 1, 1, unary<Op::Exp>, floatTypes},
    {"Log", 6, latest, 1, 1, unary<Op::Log>, floatTypes},
    {"Sin", 7, latest, 1, 1, unary<Op::Sin>, floatTypes},
    {"Cos", 7, latest, 1, 1, unary<Op::Cos>, floatTypes},
    {"Tan", 7, latest, 1, 1, unary<Op::Tan>, floatTypes},
    {"Asin", 7, latest, 1, 1, unary<Op::Asin>, floatTypes},
    {"Acos", 7, latest, 1, 1, unary<Op::Acos>, floatTypes},
    {"Atan", 7, latest, 1, 1, unary<Op::Atan>, floatTypes},
    {"Sinh", 9, latest, 1, 1, unary<Op::Sinh>, floatTypes},
    {"Cosh", 9, latest, 1, 1, unary<Op::Cosh>, floatTypes},
    {"Asinh", 9, latest, 1, 1, unary<Op::Asinh>, floatTypes},
    {"Acosh", 9, latest, 1, 1, unary<Op::Acosh>, floatTypes},
    {"Atanh", 9, latest, 1, 1, unary<Op::Atanh>, floatTypes},
    {"Tanh", 6, latest, 1, 1, unary<Op::Tanh>, floatTypes},
    {"Erf", 9, latest, 1, 1, unary<Op::Erf>, floatTypes},
    {"Sigmoid", 6, latest, 1, 1, unary<Op::Sigmoid>, floatTypes},
    {"Floor", 6, latest, 1, 1, unary<Op::Floor>, floatTypes},
    {"Ceil", 6, latest, 1, 1, unary<Op::Ceil>, floatTypes},
    {"Round", 11, latest, 1, 1, unary<Op::RoundEven>, floatTypes},
    {"Not", 1, latest, 1, 1, unary<Op::Not>, boolType},
    {"BitwiseNot", 18, latest, 1, 1, unary<Op::Not>, intTypes},
    {"Reciprocal", 6, latest, 1, 1, reciprocal, floatTypes},
    {"Sign", 9, latest, 1, 1, sign, realTypes},
    {"IsNaN", 9, latest, 1, 1, isNaN, floatTypes | byteFloats},
    {"IsInf", 10, latest, 1, 1, isInf, floatTypes | byteFloats},
    {"Add", 7, latest, 2, 2, binary<Op::Add>, numberTypes},
    {"Sub", 7, latest, 2, 2, binary<Op::Sub>, numberTypes},
    {"Mul", 7, latest, 2, 2, binary<Op::Mul>, numberTypes},
    {"Div", 7, latest, 2, 2, divide, numberTypes},
    {"And", 7, latest, 2, 2, binary<Op::And>, boolType},
    {"Or", 7, latest, 2, 2, binary<Op::Or>, boolType},
    {"Xor", 7, latest, 2, 2, binary<Op::Xor>, boolType},
    {"BitwiseAnd", 18, latest, 2, 2, binary<Op::And>, intTypes},
    {"BitwiseOr", 18, latest, 2, 2, binary<Op::Or>, intTypes},
    {"BitwiseXor", 18, latest, 2, 2, binary<Op::Xor>, intTypes},
    {"BitShift", 11, latest, 2, 2, bitShift, intTypes},
    {"Less", 7, latest, 2, 2, binary<Op::Lt>, realTypes},
    {"LessOrEqual", 12, latest, 2, 2, binary<Op::Le>, realTypes},
    {"Greater", 7, latest, 2, 2, swapped<Op::Lt>, realTypes},
    {"GreaterOrEqual", 12, latest, 2, 2, swapped<Op::Le>, realTypes},
    {"Equal", 7, latest, 2, 2, binary<Op::Eq>},
    {"Max", 6, latest, 1, anyNumber, variadic<Op::Max>, realTypes},
    {"Min", 6, latest, 1, anyNumber, variadic<Op::Min>, realTypes},
    {"Sum", 6, latest, 1, anyNumber, variadic<Op::Add>, numberTypes},
    {"Mean", 6, latest, 1, anyNumber, meanOfInputs, floatTypes},
    {"Where", 9, latest, 3, 3, where},
    {"Identity", 1, latest, 1, 1, identity, anyType, "", 0, /*takesLists=*/true},
    {"Cast", 1, 5, 1, 1, castByName},
    {"Cast", 6, latest, 1, 1, cast},
    {"BitCast", 26, latest, 1, 1, bitCast, anyType, "of a NaN the canonical bits; no complex or narrow types"},
    {"CastLike", 15, latest, 2, 2, castLike},
    {"Clip", 6, 10, 1, 1, clipByAttributes, realTypes},
    {"Clip", 11, latest, 1, 3, clip, realTypes, "", input(1) | input(2)},
    {"Relu", 6, latest, 1, 1, relu, realTypes},
    {"LeakyRelu", 6, latest, 1, 1, shared<activations::leakyRelu>, floatTypes},
    {"PRelu", 7, latest, 2, 2, prelu, realTypes},
    {"ThresholdedRelu", 10, latest, 1, 1, thresholdedRelu, floatTypes},
    {"Elu", 6, latest, 1, 1, shared<activations::elu>, floatTypes},
    {"Celu", 12, latest, 1, 1, celu, floatTypes},
    {"Selu", 6, latest, 1, 1, selu, floatTypes},
    {"HardSigmoid", 6, latest, 1, 1, shared<activations::hardSigmoid>, floatTypes},
    {"HardSwish", 14, latest, 1, 1, hardSwish, floatTypes},
    {"Softplus", 1, latest, 1, 1, shared<activations::softplus>, floatTypes},
    {"Softsign", 1, latest, 1, 1, shared<activations::softsign>, floatTypes},
    {"Mish", 18, latest, 1, 1, mish, floatTypes},
    {"Swish", 24, latest, 1, 1, swish, floatTypes},
    {"SwiGLU", 28, latest, 2, 2, swiGLU, floatTypes},
    {"Shrink", 9, latest, 1, 1, shrink, realTypes},
    {"Gelu", 20, latest, 1, 1, gelu, floatTypes},
};

} // namespace

DType dtypeAttr(Node &n, llvm::StringRef name) {
  int64_t value = n.intAttr(name, 0);
  if (!value) return DType::Void;
  if (value != int32_t(value)) {
    n.fail("attribute '" + name + "' is " + llvm::Twine(value) + ", which is not the number of a type");
    return DType::Void;
  }
  return orFailure(n, name, elementType(int32_t(value)));
}

llvm::ArrayRef<Row> elementwiseRows() { return rows; }

} // namespace astra::onnx
