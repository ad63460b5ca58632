//===- OpsResize.cpp: Resize and Upsample ----------------------------------===//
// Takes:    nodes whose scales or sizes are known while importing.
// Gives:    the composites of Resize.h.
#include "OpTable.h"
#include "astra/Compose/Resize.h"
#include "astra/Compose/Settled.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

using compose::AspectRatio;
using compose::Coordinates;
using compose::NearestRounding;
using compose::ResizeMode;
using compose::ResizeOptions;

constexpr std::pair<const char *, Coordinates> coordinates[] = {
    {"half_pixel", Coordinates::HalfPixel},
    {"pytorch_half_pixel", Coordinates::PytorchHalfPixel},
    {"asymmetric", Coordinates::Asymmetric},
    {"align_corners", Coordinates::AlignCorners},
    {"half_pixel_symmetric", Coordinates::HalfPixelSymmetric},
    {"tf_crop_and_resize", Coordinates::CropAndResize},
    {"tf_half_pixel_for_nn", Coordinates::HalfPixelForNearest},
};
constexpr std::pair<const char *, NearestRounding> roundings[] = {
    {"round_prefer_floor", NearestRounding::PreferFloor},
    {"round_prefer_ceil", NearestRounding::PreferCeil},
    {"floor", NearestRounding::Floor},
    {"ceil", NearestRounding::Ceil},
};
constexpr std::pair<const char *, AspectRatio> policies[] = {
    {"stretch", AspectRatio::Stretch},
    {"not_larger", AspectRatio::NotLarger},
    {"not_smaller", AspectRatio::NotSmaller},
};

/// What the attribute names in a table.
template <class Table, class Value>
void named(Node &n, const Table &table, const char *attribute, const char *otherwise, Value &value) {
  std::string given = n.stringAttr(attribute, otherwise);
  for (auto [name, meaning] : table) {
    if (given != name) continue;
    value = meaning;
    return;
  }
  n.fail("attribute '" + llvm::Twine(attribute) + "' is '" + given + "', which is not one of ONNX's");
}

/// The input, when it is there and not empty, which has the same meaning.
bool isGiven(Node &n, unsigned i) {
  return n.has(i) && !(n.in(i)->rank() == 1 && n.in(i)->shape[0]->constIndex() == 0);
}

std::vector<double> knownScales(Node &n, unsigned i) {
  if (std::optional<std::vector<double>> values = settledNumbers(n, n.in(i))) return *values;
  n.knownDims(i, "the scales"); // which says that they depend on data
  return {};
}

ResizeMode readMode(Node &n, bool cubic) {
  std::string mode = n.stringAttr("mode", "nearest");
  if (mode == "linear" || mode == "bilinear") return ResizeMode::Linear;
  if (mode == "cubic" && cubic) return ResizeMode::Cubic;
  if (mode != "nearest") n.fail("attribute 'mode' is '" + mode + "', which is not one of ONNX's");
  return ResizeMode::Nearest;
}

/// Upsample, and Resize of opset 10: coordinates are index / scale.
void resizeByScales(Node &n, std::vector<double> scales, NearestRounding rounding) {
  UOpRef x = n.in(0);
  ResizeOptions options;
  options.mode = readMode(n, false);
  options.coordinates = Coordinates::Asymmetric;
  options.rounding = rounding;
  if (x) n.give(compose::resizeByScales(n, x, compose::axesBetween(0, x->rank()), scales, options));
}
void upsampleAttr(Node &n) {
  auto scales = n.floatsAttr("scales");
  resizeByScales(n, {scales.begin(), scales.end()}, NearestRounding::Floor);
}
/// The two scales of an image.
void upsampleImage(Node &n) {
  double height = n.floatAttr("height_scale", 0), width = n.floatAttr("width_scale", 0);
  if (n.requireRank(n.in(0), 4, 4)) resizeByScales(n, {1, 1, height, width}, NearestRounding::Floor);
}
void upsample(Node &n) { resizeByScales(n, knownScales(n, 1), NearestRounding::Floor); }
void resizeOf10(Node &n) { resizeByScales(n, knownScales(n, 1), NearestRounding::FloorUnlessShrinking); }

void resize(Node &n) {
  UOpRef x = n.in(0);
  ResizeOptions options;
  options.mode = readMode(n, true);
  named(n, coordinates, "coordinate_transformation_mode", "half_pixel", options.coordinates);
  named(n, roundings, "nearest_mode", "round_prefer_floor", options.rounding);
  n.ignoreAttr("keep_aspect_ratio_policy"); // of sizes alone
  options.cubicCoefficient = n.floatAttr("cubic_coeff_a", -0.75);
  options.extrapolation = n.floatAttr("extrapolation_value", 0);
  options.excludeOutside = n.intAttr("exclude_outside", 0) != 0;
  options.antialias = n.intAttr("antialias", 0) != 0;
  Ints given = n.intsAttr("axes");
  if (!x || n.failed()) return;
  bool byScale = isGiven(n, 2), bySize = isGiven(n, 3);
  if (byScale == bySize) n.fail("exactly one of scales and sizes must be given");
  Ints axes;
  for (int64_t axis : given) axes.push_back(n.axis(axis, x->rank()));
  n.axes(given, x->rank()); // refuses an axis that is named twice
  if (!n.hasAttr("axes")) axes = compose::axesBetween(0, x->rank());
  if (n.failed()) return;
  if (isGiven(n, 1)) options.region = n.in(1);
  if (byScale) return n.give(compose::resizeByScales(n, x, axes, knownScales(n, 2), options));
  named(n, policies, "keep_aspect_ratio_policy", "stretch", options.aspectRatio);
  n.give(resizeToSizes(n, x, axes, n.knownDims(3, "the sizes"), options));
}

constexpr Row rows[] = {
    {"Upsample", 1, 6, 1, 1, upsampleImage},
    {"Upsample", 7, 8, 1, 1, upsampleAttr},
    {"Upsample", 9, 9, 2, 2, upsample},
    {"Resize", 10, 10, 2, 2, resizeOf10, anyType,
     "integers are interpolated in f32, wider ones in f64, and rounded to nearest"},
    {"Resize", 11, latest, 1, 4, resize, anyType,
     "bool and complex numbers in mode nearest only; antialiasing needs a scale that is known; align_corners with "
     "scales "
     "goes by the length that they ask for, which need not be whole, as ONNX's cases have it (ONNX Runtime and PyTorch "
     "round it down: give sizes for that); where rounding decides which element is nearest (scale 0.3) ONNX's "
     "reference "
     "is followed, not ONNX Runtime"},
};

} // namespace

llvm::ArrayRef<Row> resizeRows() { return rows; }

} // namespace astra::onnx
