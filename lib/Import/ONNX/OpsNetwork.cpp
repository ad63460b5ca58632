//===- OpsNetwork.cpp: products and convolutions ---------------------------===//
// Takes:    nodes whose operands have fixed roles.
// Gives:    the composites of Product.h and Convolution.h.
#include "GemmAttributes.h"
#include "OpTable.h"
#include "WindowAttributes.h"
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Product.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

UOpRef optional(Node &n, unsigned i) { return n.has(i) ? n.in(i) : nullptr; }

void matmul(Node &n) {
  if (UOpRef y = product(n, n.in(0), n.in(1))) n.give(y);
}

void gemm(Node &n) { n.give(generalMatrixProduct(n)); }

void conv(Node &n) { n.give(convolution(n, n.in(0), n.in(1), optional(n, 2), convolutionAttributes(n))); }

void convTranspose(Node &n) {
  compose::TransposedConvolutionOptions options{convolutionAttributes(n), n.intsAttr("output_padding"),
                                                n.intsAttr("output_shape")};
  n.give(transposedConvolution(n, n.in(0), n.in(1), optional(n, 2), options));
}

void col2im(Node &n) {
  Dims image = n.knownDims(1, "the image's shape");
  compose::WindowOptions options = plainWindowAttributes(n);
  options.kernel = n.knownInts(2, "the block's shape");
  n.give(columnsToImage(n, n.in(0), image, options));
}

constexpr Row rows[] = {
    {"MatMul", 1, latest, 2, 2, matmul, numberTypes},  {"Gemm", 7, latest, 2, 3, gemm, numberTypes},
    {"Conv", 1, latest, 2, 3, conv, numberTypes},      {"ConvTranspose", 1, latest, 2, 3, convTranspose, numberTypes},
    {"Col2Im", 18, latest, 3, 3, col2im, numberTypes},
};

} // namespace

llvm::ArrayRef<Row> networkRows() { return rows; }

UOpRef generalMatrixProduct(Node &n) {
  UOpRef x = n.in(0), y = n.in(1);
  if (!n.requireRank(x, 2, 2) || !n.requireRank(y, 2, 2)) return nullptr;
  compose::AffineProductOptions options;
  options.transposeX = n.intAttr("transA", 0);
  options.transposeY = n.intAttr("transB", 0);
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  if (alpha != 1) options.alpha = n.literal(x, alpha);
  if (beta != 1 && n.has(2)) options.beta = n.literal(x, beta);
  return affineProduct(n, x, y, optional(n, 2), options);
}

} // namespace astra::onnx
