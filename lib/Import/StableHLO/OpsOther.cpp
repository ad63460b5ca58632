//===- OpsOther.cpp: transforms, random numbers, batch norms ----------------===//
// Takes:    operands and attributes.
// Gives:    composites.
#include "Lowering.h"
#include "astra/Compose/Fourier.h"
#include "astra/Compose/Generators.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Random.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::stablehlo {

namespace {

/// The transform along the last axes, one after another from the first of them: of a real one the last axis comes
/// first, or last on the way back, since it alone is cut in half. fftn and its like do them from the back of the list.
void fft(Statement &s) {
  using Transform = UOpRef (*)(compose::Composer &, UOpRef, const compose::FourierAxes &);
  constexpr std::pair<const char *, Transform> kinds[] = {
      {"FFT", compose::fftn}, {"IFFT", compose::ifftn}, {"RFFT", compose::rfftn}, {"IRFFT", compose::irfftn}};
  UOpRef x = s.in(0);
  std::string kind = s.word("fft_type");
  Ints lengths = s.intsAttr("fft_length");
  if (s.b.failed()) return;
  int64_t rank = x->rank(), n = lengths.size();
  bool real = kind == "RFFT", toReal = kind == "IRFFT";
  const auto *found = llvm::find_if(kinds, [&](auto k) { return kind == k.first; });
  if (n < 1 || n > 3 || n > rank || found == std::end(kinds)) {
    s.fail("fft_type '" + kind + "' of " + llvm::Twine(n) + " axes of rank " + llvm::Twine(rank));
    return;
  }
  if (isComplex(x->dtype) == real) s.fail(llvm::Twine("the operand is of type ") + info(x->dtype).text);
  compose::FourierAxes options;
  auto add = [&](int64_t i) {
    options.axes.push_back(rank - n + i);
    options.lengths.push_back(s.b.idx(lengths[i]));
  };
  for (int64_t i = 0; toReal && i < n; ++i) add(i);
  for (int64_t i = n - 1 - real; !toReal && i >= 0; --i) add(i);
  if (real) add(n - 1);
  if (!s.b.failed()) s.give(found->second(s.b, x, options));
}

/// Numbers from a up to b, or with the mean a and the deviation b.
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
  s.give(kind == "UNIFORM" ? uniformBetween(s.b, g, shape, t, a, b) : normalAround(s.b, g, shape, t, a, b));
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

// ---- batch norms

/// The options of a batch norm, whose operands are of one type.
std::optional<compose::BatchNormalizationOptions> batchNormOptions(Statement &s, bool ofBatch) {
  std::vector<UOpRef> xs = s.inputs(0, s.numInputs());
  compose::BatchNormalizationOptions options;
  options.epsilon = s.floatAttr("epsilon");
  options.axis = s.intAttr("feature_index");
  options.ofBatch = ofBatch;
  options.centred = true;
  if (s.b.failed()) return std::nullopt;
  if (options.axis < 0 || options.axis >= int64_t(xs[0]->rank()))
    s.fail("attribute 'feature_index' is outside rank " + llvm::Twine(xs[0]->rank()));
  for (UOpRef x : xs)
    if (x->dtype != xs[0]->dtype) s.fail("the operands must be of one type");
  return s.b.failed() ? std::nullopt : std::optional(options);
}

void batchNormInference(Statement &s) {
  if (auto options = batchNormOptions(s, false))
    s.give(batchNormalization(s.b, s.in(0), s.in(1), s.in(2), s.in(3), s.in(4), *options).value);
}

void batchNormTraining(Statement &s) {
  auto options = batchNormOptions(s, true);
  if (!options) return;
  UOpRef x = s.in(0);
  compose::BatchNormalized r = batchNormalization(s.b, x, s.in(1), s.in(2), nullptr, nullptr, *options);
  if (!s.b.failed()) s.give({r.value, s.b.cast(r.mean, x->dtype), s.b.cast(r.variance, x->dtype)});
}

/// By operand, scale and offset.
void batchNormGrad(Statement &s) {
  auto options = batchNormOptions(s, true);
  if (!options) return;
  compose::BatchNormalizationGradients r =
      batchNormalizationGradients(s.b, s.in(4), s.in(0), s.in(1), s.in(2), s.in(3), nullptr, *options);
  if (!s.b.failed()) s.give({r.x, r.scale, r.bias});
}

const char *quantized = "this op is not supported: quantized element types are not";

const Row rows[] = {
    {"stablehlo.batch_norm_grad", batchNormGrad, "", 5, 5},
    {"stablehlo.batch_norm_inference", batchNormInference, "", 5, 5},
    {"stablehlo.batch_norm_training", batchNormTraining, "", 3, 3},
    {"stablehlo.fft", fft, "", 1, 1},
    {"stablehlo.rng", rng, "floats, by the numeric contract's generator: StableHLO leaves the numbers open", 3, 3},
    {"stablehlo.rng_bit_generator", rngBitGenerator, "THREE_FRY and PHILOX as XLA; DEFAULT is PHILOX", 1, 1},
    {"stablehlo.uniform_dequantize", nullptr, quantized},
    {"stablehlo.uniform_quantize", nullptr, quantized},
};

} // namespace

llvm::ArrayRef<Row> otherRows() { return rows; }

} // namespace astra::stablehlo
