//===- OpsOther.cpp: transforms, random numbers, batch norms, matrices ------===//
// Takes:    operands and attributes.
// Gives:    composites.
#include "Lowering.h"
#include "astra/Compose/Generators.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Random.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Signal.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::stablehlo {

namespace {

/// Complex numbers as pairs along a last axis, and back.
UOpRef pairs(Lowering &b, UOpRef x) {
  if (!x) return nullptr;
  int64_t last = x->rank();
  if (!isComplex(x->dtype)) return b.unsqueeze(x, {last});
  return b.concat({b.unsqueeze(b.un(Op::Real, x), {last}), b.unsqueeze(b.un(Op::Imag, x), {last})}, last);
}
UOpRef complexOf(Lowering &b, UOpRef x) {
  int64_t last = x ? int64_t(x->rank()) - 1 : 0;
  return b.make(Op::Complex, {b.element(x, last, 0), b.element(x, last, 1)});
}

/// The transform along the last axes, one after another: of a real one the last axis comes first, or last on the way
/// back, since it alone is cut in half.
void fft(Statement &s) {
  UOpRef x = s.in(0);
  std::string kind = s.word("fft_type");
  Ints lengths = s.intsAttr("fft_length");
  if (s.b.failed()) return;
  int64_t rank = x->rank(), n = lengths.size();
  bool real = kind == "RFFT", toReal = kind == "IRFFT", inverse = kind == "IFFT" || toReal;
  if (n < 1 || n > 3 || n > rank || (!real && !inverse && kind != "FFT")) {
    s.fail("fft_type '" + kind + "' of " + llvm::Twine(n) + " axes of rank " + llvm::Twine(rank));
    return;
  }
  if (isComplex(x->dtype) == real) s.fail(llvm::Twine("the operand is of type ") + info(x->dtype).text);
  x = pairs(s.b, x);
  auto along = [&](int64_t i, bool onesided) {
    if (!x) return;
    compose::FourierOptions options{inverse, onesided};
    x = fourierTransform(s.b, x, rank - n + i, s.b.idx(lengths[i]), options);
  };
  if (real) along(n - 1, true);
  for (int64_t i = 0; i < n - (real || toReal); ++i) along(i, false);
  if (toReal) along(n - 1, true);
  if (s.b.failed() || !x) return;
  s.give(toReal ? s.b.squeeze(x, {rank}) : complexOf(s.b, x));
}

void rng(Statement &s) {
  std::string kind = s.word("rng_distribution");
  UOpRef a = s.in(0), b = s.in(1);
  Dims shape = s.knownDims(2, "the shape");
  DType t = s.resultDType();
  if (s.b.failed()) return;
  compose::Generator g = compose::nextGenerator(s.b);
  if (!isFloat(t) || (kind != "UNIFORM" && kind != "NORMAL")) {
    s.unsupported("rng of this type or distribution is not supported: uniform and normal floats are");
    return;
  }
  DType drawn = compose::drawnType(t);
  a = s.b.cast(a, drawn);
  b = s.b.cast(b, drawn);
  UOpRef unit = kind == "UNIFORM" ? uniform(s.b, g, shape, drawn) : normal(s.b, g, shape, drawn);
  UOpRef scale = kind == "UNIFORM" ? s.b.bin(Op::Sub, b, a) : b;
  s.give(s.b.cast(s.b.bin(Op::Add, s.b.bin(Op::Mul, unit, scale), a), t));
}

void rngBitGenerator(Statement &s) {
  std::string kind = s.word("rng_algorithm", "DEFAULT");
  UOpRef state = s.in(0);
  if (s.outputs.size() != 2) s.fail("the op has two results");
  DType t = s.resultDType(s.b.failed() ? 0 : 1);
  if (s.b.failed()) return;
  s.resultDims(1);
  if (s.b.failed()) return;
  const std::vector<int64_t> &shape = s.resultType(1).dims;
  compose::Drawn d = kind == "THREE_FRY" ? threefryBits(s.b, state, shape, t) : philoxBits(s.b, state, shape, t);
  if (!s.b.failed()) s.give({d.state, d.bits});
}

// ---- batch norms: the feature axis becomes axis 1

struct Features {
  UOpRef x;
  int64_t axis;
  Ints others;
};
std::optional<Features> featuresOf(Statement &s, unsigned i) {
  UOpRef x = s.in(i);
  int64_t axis = s.intAttr("feature_index");
  if (s.b.failed()) return std::nullopt;
  if (axis < 0 || axis >= int64_t(x->rank())) {
    s.fail("attribute 'feature_index' is outside rank " + llvm::Twine(x->rank()));
    return std::nullopt;
  }
  Features f{x, axis, {}};
  for (int64_t i = 0; i < int64_t(x->rank()); ++i)
    if (i != axis) f.others.push_back(i);
  return f;
}
UOpRef perFeature(Statement &s, const Features &f, UOpRef v) {
  if (!v || !s.b.requireRank(v, 1, 1)) return nullptr;
  Dims dims(f.x->rank(), s.b.idx(1));
  dims[f.axis] = v->shape[0];
  return s.b.reshape(v, dims);
}
UOpRef meanOf(Statement &s, const Features &f, UOpRef x) {
  return s.b.reshape(mean(s.b, x, f.others), {f.x->shape[f.axis]});
}

UOpRef normalized(Statement &s, const Features &f, UOpRef scale, UOpRef offset, UOpRef mean, UOpRef variance) {
  UOpRef deviation = s.b.un(Op::Sqrt, s.b.bin(Op::Add, variance, s.floatAttr("epsilon")));
  UOpRef x = s.b.bin(Op::Div, s.b.bin(Op::Sub, s.b.widen(f.x), perFeature(s, f, mean)), perFeature(s, f, deviation));
  x = s.b.bin(Op::Mul, x, perFeature(s, f, s.b.widen(scale)));
  return s.b.cast(s.b.bin(Op::Add, x, perFeature(s, f, s.b.widen(offset))), f.x->dtype);
}

void batchNormInference(Statement &s) {
  auto f = featuresOf(s, 0);
  if (f) s.give(normalized(s, *f, s.in(1), s.in(2), s.b.widen(s.in(3)), s.b.widen(s.in(4))));
}

std::pair<UOpRef, UOpRef> moments(Statement &s, const Features &f) {
  UOpRef x = s.b.widen(f.x), mean = meanOf(s, f, x), away = s.b.bin(Op::Sub, x, perFeature(s, f, mean));
  return {mean, meanOf(s, f, s.b.bin(Op::Mul, away, away))};
}

void batchNormTraining(Statement &s) {
  auto f = featuresOf(s, 0);
  if (!f) return;
  auto [mean, variance] = moments(s, *f);
  UOpRef y = normalized(s, *f, s.in(1), s.in(2), mean, variance);
  if (!s.b.failed()) s.give({y, s.b.cast(mean, f->x->dtype), s.b.cast(variance, f->x->dtype)});
}

/// The gradient of batch_norm_training by operand, scale and offset.
void batchNormGrad(Statement &s) {
  auto f = featuresOf(s, 0);
  if (!f) return;
  Lowering &b = s.b;
  UOpRef x = b.widen(f->x), scale = b.widen(s.in(1)), mean = b.widen(s.in(2)), variance = b.widen(s.in(3)),
         g = b.widen(s.in(4));
  UOpRef deviation = b.un(Op::Sqrt, b.bin(Op::Add, variance, s.floatAttr("epsilon")));
  UOpRef unit = b.bin(Op::Div, b.bin(Op::Sub, x, perFeature(s, *f, mean)), perFeature(s, *f, deviation));
  auto sum = [&](UOpRef v) { return b.reshape(b.reduce(ReduceKind::Sum, v, f->others), {f->x->shape[f->axis]}); };
  UOpRef byScale = sum(b.bin(Op::Mul, g, unit)), byOffset = sum(g);
  UOpRef meanG = meanOf(s, *f, g), meanGU = meanOf(s, *f, b.bin(Op::Mul, g, unit));
  UOpRef rest =
      b.bin(Op::Sub, b.bin(Op::Sub, g, perFeature(s, *f, meanG)), b.bin(Op::Mul, unit, perFeature(s, *f, meanGU)));
  UOpRef byX = b.bin(Op::Mul, rest, perFeature(s, *f, b.bin(Op::Div, scale, deviation)));
  DType t = f->x->dtype;
  if (!b.failed()) s.give({b.cast(byX, t), b.cast(byScale, t), b.cast(byOffset, t)});
}

const char *quantized = "this op is not supported: quantized element types are not";
const char *matrix = "this op is not supported: factorizations of matrices are not";

const Row rows[] = {
    {"stablehlo.batch_norm_grad", batchNormGrad, "", 5, 5},
    {"stablehlo.batch_norm_inference", batchNormInference, "", 5, 5},
    {"stablehlo.batch_norm_training", batchNormTraining, "", 3, 3},
    {"stablehlo.cholesky", nullptr, matrix},
    {"stablehlo.fft", fft, "", 1, 1},
    {"stablehlo.rng", rng, "floats, by the numeric contract's generator: StableHLO leaves the numbers open", 3, 3},
    {"stablehlo.rng_bit_generator", rngBitGenerator, "THREE_FRY and PHILOX as XLA; DEFAULT is PHILOX", 1, 1},
    {"stablehlo.triangular_solve", nullptr, matrix},
    {"stablehlo.uniform_dequantize", nullptr, quantized},
    {"stablehlo.uniform_quantize", nullptr, quantized},
};

} // namespace

llvm::ArrayRef<Row> otherRows() { return rows; }

} // namespace astra::stablehlo
