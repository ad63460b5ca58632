//===- Sampling.h: what ops that read between elements share ---------------===//
#pragma once
#include "Node.h"

namespace astra::onnx {

/// A symbolic integer as a scalar: a literal when it is constant.
UOpRef scalar(Node &n, UOpRef index, DType t);

/// The cubic convolution kernel with coefficient a at distances d >= 0; 0 from 2 on.
UOpRef cubicKernel(Node &n, UOpRef d, double a);

/// x between lo and hi, by two selects; a NaN passes.
UOpRef clampBetween(Node &n, UOpRef x, UOpRef lo, UOpRef hi);

} // namespace astra::onnx
