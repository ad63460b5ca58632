//===- OpsSignal.cpp: Fourier transforms and windows ---------------------===//
// Takes:    nodes on signals [.., time, .., 1 (real) or 2 (real and imaginary part)].
// Gives:    the composites of Signal.h.
#include "OpTable.h"
#include "astra/Compose/Signal.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

/// A scalar input that follows from constants and shapes; null where it is absent.
UOpRef knownScalar(Node &n, unsigned i, const char *what) {
  if (!n.has(i)) return nullptr;
  Dims values = n.knownDims(i, what);
  if (!n.failed() && values.size() != 1) n.fail(llvm::Twine(what) + " must be a scalar");
  return n.failed() ? nullptr : values[0];
}

/// Up to opset 19 the axis is an attribute.
template <bool axisIsInput> void dft(Node &n) {
  compose::FourierOptions options{n.intAttr("inverse", 0) != 0, n.intAttr("onesided", 0) != 0};
  UOpRef length = knownScalar(n, 1, "the length of the transform");
  int64_t axis = axisIsInput ? -2 : n.intAttr("axis", 1);
  if (axisIsInput && n.has(2)) {
    UOpRef given = knownScalar(n, 2, "the axis");
    if (given && !given->constIndex()) n.fail("the axis must be a constant");
    if (given) axis = given->constIndex().value_or(0);
  }
  n.give(fourierTransform(n, n.in(0), axis, length, options));
}

void stft(Node &n) {
  bool onesided = n.intAttr("onesided", 1) != 0;
  UOpRef step = n.in(1) ? knownScalar(n, 1, "the frame step") : nullptr, length = knownScalar(n, 3, "the frame length");
  n.give(shortTimeFourierTransform(n, n.in(0), step, n.has(2) ? n.in(2) : nullptr, length, onesided));
}

/// The attribute output_datatype; f32 without it.
DType outputType(Node &n) {
  DType t = dtypeAttr(n, "output_datatype");
  return t == DType::Void ? DType::F32 : t;
}

template <const compose::CosineWindow &form> void window(Node &n) {
  bool periodic = n.intAttr("periodic", 1) != 0;
  DType t = outputType(n);
  UOpRef size = n.in(0) ? knownScalar(n, 0, "the size") : nullptr;
  n.give(compose::window(n, form, size, periodic, t));
}

void melWeightMatrix(Node &n) {
  DType t = outputType(n);
  int64_t sizes[3];
  for (unsigned i = 0; i < 3; ++i) {
    Ints v = n.knownInts(i, "a size");
    if (!n.failed() && (v.size() != 1 || v[0] < 1 || v[0] > 1 << 30))
      n.fail("input " + llvm::Twine(i) + " must be one number in 1..2^30");
    sizes[i] = n.failed() ? 1 : v[0];
  }
  double edges[2] = {n.literalNumber(3, "the lower edge"), n.literalNumber(4, "the upper edge")};
  if (n.failed()) return;
  n.give(melWeights(n, sizes[0], sizes[1], sizes[2], edges[0], edges[1], t));
}

constexpr const char *atImport = "the size must follow from constants and shapes";

constexpr Row rows[] = {
    {"DFT", 17, 19, 1, 2, dft<false>, floatTypes},
    {"DFT", 20, latest, 1, 3, dft<true>, floatTypes},
    {"STFT", 17, latest, 2, 4, stft, floatTypes},
    {"HannWindow", 17, latest, 1, 1, window<compose::hannWindow>, intTypes, atImport},
    {"HammingWindow", 17, latest, 1, 1, window<compose::hammingWindow>, intTypes, atImport},
    {"BlackmanWindow", 17, latest, 1, 1, window<compose::blackmanWindow>, intTypes, atImport},
    {"MelWeightMatrix", 17, latest, 5, 5, melWeightMatrix, intTypes, "all inputs must be constants"},
};

} // namespace

llvm::ArrayRef<Row> signalRows() { return rows; }

} // namespace astra::onnx
