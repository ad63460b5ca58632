//===- OpsSampling.cpp: ops that read a tensor at places that are data ---===//
// Takes:    GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv.
// Gives:    the composites of Sampling.h.
#include "OpTable.h"
#include "WindowAttributes.h"
#include "astra/Compose/Sampling.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

using compose::Outside;
using compose::ResizeMode;

/// Names of the modes changed with opset 20, which also allows any number of spatial axes.
template <bool old> void gridSample(Node &n) {
  std::string mode = n.stringAttr("mode", old ? "bilinear" : "linear"), padding = n.stringAttr("padding_mode", "zeros");
  compose::GridSampleOptions options;
  options.alignCorners = n.intAttr("align_corners", 0) != 0;
  if (mode == (old ? "bicubic" : "cubic"))
    options.mode = ResizeMode::Cubic;
  else if (mode == "nearest")
    options.mode = ResizeMode::Nearest;
  else if (mode != (old ? "bilinear" : "linear"))
    n.fail("attribute 'mode' is '" + mode + "', which is not one of ONNX's");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    n.fail("attribute 'padding_mode' is '" + padding + "', which is not one of ONNX's");
  options.outside = padding == "zeros" ? Outside::Zero : padding == "border" ? Outside::Clamp : Outside::Reflect;
  if (!old || n.requireRank(n.in(0), 4, 4)) n.give(gridSample(n, n.in(0), n.in(1), options));
}

void affineGrid(Node &n) {
  n.give(affineGrid(n, n.in(0), n.knownDims(1, "the size"), n.intAttr("align_corners", 0) != 0));
}

void roiAlign(Node &n) {
  std::string mode = n.stringAttr("mode", "avg"), transform = "output_half_pixel";
  if (n.opset >= 16) transform = n.stringAttr("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") n.fail("attribute 'mode' is '" + mode + "', expected avg or max");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    n.fail("attribute 'coordinate_transformation_mode' is '" + transform + "', which is not one of ONNX's");
  compose::RoiAlignOptions options;
  options.samplingRatio = n.intAttr("sampling_ratio", 0);
  options.bins = {n.intAttr("output_height", 1), n.intAttr("output_width", 1)};
  options.scale = n.floatAttr("spatial_scale", 1);
  options.greatest = mode == "max";
  options.halfPixel = transform == "half_pixel";
  n.give(roiAlign(n, n.in(0), n.in(1), n.in(2), options));
}

void maxRoiPool(Node &n) {
  n.give(maxRoiPool(n, n.in(0), n.in(1), {n.intsAttr("pooled_shape"), n.floatAttr("spatial_scale", 1)}));
}

void deformConv(Node &n) {
  compose::DeformableConvolutionOptions options{convolutionAttributes(n), n.intAttr("offset_group", 1)};
  UOpRef bias = n.has(3) ? n.in(3) : nullptr, mask = n.has(4) ? n.in(4) : nullptr;
  n.give(deformableConvolution(n, n.in(0), n.in(1), n.in(2), bias, mask, options));
}

constexpr Row rows[] = {
    {"com.microsoft::GridSample", 1, latest, 2, 2, gridSample<true>, anyType},
    {"GridSample", 16, 19, 2, 2, gridSample<true>, anyType},
    {"GridSample", 20, latest, 2, 2, gridSample<false>, anyType,
     "what lies beyond a border is decided for each neighbour, as PyTorch does; bool and complex with mode nearest "
     "alone"},
    {"AffineGrid", 20, latest, 2, 2, affineGrid, floatTypes, "an extent of 1 with align_corners stands at 0"},
    {"RoiAlign", 10, latest, 3, 3, roiAlign, floatTypes,
     "where the number of samples is adaptive, at most 4096 along an axis"},
    {"MaxRoiPool", 1, latest, 2, 2, maxRoiPool, floatTypes},
    {"DeformConv", 19, latest, 3, 5, deformConv, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> samplingRows() { return rows; }

} // namespace astra::onnx
