//===- OpsNormalization.cpp: normalizations by a norm or a neighbourhood ---===//
// Takes:    LRN, LpNormalization, MeanVarianceNormalization.
// Gives:    sums of powers along axes or windows and a quotient; f16 and bf16 compute in f32 and round once.
#include "OpTable.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

/// x / (bias + alpha / size * the sum of squares over `size` neighbouring channels) ^ beta.
void localResponse(Node &n) {
  double alpha = n.floatAttr("alpha", 0.0001f), beta = n.floatAttr("beta", 0.75), bias = n.floatAttr("bias", 1);
  int64_t size = n.intAttr("size", 0);
  UOpRef x = n.widen(n.in(0));
  if (!n.requireFloat(x) || !n.requireRank(x, 2)) return;
  if (size < 1 || size > (1 << 24)) n.fail("attribute 'size' is " + llvm::Twine(size) + ", expected 1..2^24");
  n.requireLeast(x->shape[1], 1, "the number of channels", "0");
  if (n.failed()) return;
  Dims before(x->rank(), n.c.index(0)), after = before;
  before[1] = n.c.index((size - 1) / 2);
  after[1] = n.c.index(size / 2);
  UOpRef squares = n.pad(n.bin(Op::Mul, x, x), before, after, uint64_t(n.b.lit(x->dtype, -0.0)->ints[0]));
  UOpRef seen = squares ? n.make(Op::Window, {squares}, {1, size, 1, 1}) : nullptr;
  if (!seen) return;
  int64_t last = seen->rank() - 1;
  UOpRef sum = n.squeeze(n.reduce(ReduceKind::Sum, seen, {last}, /*chain=*/true), {last});
  UOpRef base = n.bin(Op::Add, n.bin(Op::Mul, sum, alpha / double(size)), bias);
  n.give(n.cast(n.bin(Op::Div, x, n.bin(Op::Pow, base, beta)), n.in(0)->dtype));
}

/// x over its norm along one axis; 0 where the norm is 0, and there of the gradient 0.
void lpNormalization(Node &n) {
  int64_t p = n.intAttr("p", 2);
  UOpRef x = n.widen(n.in(0));
  if (p != 1 && p != 2) n.fail("attribute 'p' is " + llvm::Twine(p) + ", expected 1 or 2");
  if (!n.requireFloat(x) || !n.requireRank(x, 1)) return;
  int64_t axis = n.axis(n.intAttr("axis", -1), x->rank());
  if (n.failed()) return;
  UOpRef norm = n.reduce(ReduceKind::Sum, p == 1 ? n.un(Op::Abs, x) : n.bin(Op::Mul, x, x), {axis});
  if (p == 2) norm = rootOfSquares(n, norm);
  UOpRef zero = n.literal(x, 0), none = n.bin(Op::Eq, norm, zero);
  if (n.training()) norm = n.select(none, n.literal(x, 1), norm); // what is chosen away must be finite in a gradient
  n.give(n.cast(n.select(none, zero, n.bin(Op::Div, x, norm)), n.in(0)->dtype));
}

/// (x - mean) / (deviation + 1e-9), as ONNX's function has it; the variance two-pass.
void meanVariance(Node &n) {
  UOpRef x = n.widen(n.in(0));
  Ints given = n.intsAttr("axes", {0, 2, 3});
  if (!n.requireFloat(x)) return;
  Ints axes = n.axes(given, x->rank());
  if (n.failed()) return;
  UOpRef centred = n.bin(Op::Sub, x, mean(n, x, axes));
  UOpRef deviation = rootOfSquares(n, mean(n, n.bin(Op::Mul, centred, centred), axes));
  n.give(n.cast(n.bin(Op::Div, centred, n.bin(Op::Add, deviation, 1e-9)), n.in(0)->dtype));
}

constexpr Row rows[] = {
    {"LRN", 1, latest, 1, 1, localResponse, floatTypes},
    {"LpNormalization", 1, latest, 1, 1, lpNormalization, floatTypes},
    {"MeanVarianceNormalization", 9, latest, 1, 1, meanVariance, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> normalizationRows() { return rows; }

} // namespace astra::onnx
