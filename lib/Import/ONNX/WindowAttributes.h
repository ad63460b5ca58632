//===- WindowAttributes.h: the attributes of convolutions and pools --------===//
#pragma once
#include "Node.h"
#include "astra/Compose/Convolution.h"

namespace astra::onnx {

/// kernel_shape, strides, dilations, pads and auto_pad.
compose::WindowOptions windowAttributes(Node &n);
/// The same and group.
compose::ConvolutionOptions convolutionAttributes(Node &n);
/// strides, dilations and pads alone.
compose::WindowOptions plainWindowAttributes(Node &n);

} // namespace astra::onnx
