//===- GemmAttributes.h: the product of Gemm and of what fuses with it -----===//
#pragma once
#include "Node.h"

namespace astra::onnx {

/// alpha A B + beta C, by transA, transB, alpha and beta; refuses operands that are no matrices.
UOpRef generalMatrixProduct(Node &n);

} // namespace astra::onnx
