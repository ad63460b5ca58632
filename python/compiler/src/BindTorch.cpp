//===- BindTorch.cpp: what the rows of ATen ask for beside the rest ---------===//
// Gives:    sampling, the inverses of pooling and of windows, resizing with all that PyTorch says of it, steps of
//           optimizers, Fourier transforms.
#include "Bind.h"
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Sampling.h"
#include "astra/Compose/Signal.h"
#include "astra/NN/Optimizer.h"

using namespace astra;
using namespace astra::compose;
using namespace astra::python;
using namespace nb::literals;

using Nodes = std::vector<UOpRef>;
using Numbers = std::vector<int64_t>;
constexpr auto inside = nb::rv_policy::reference;

static compose::Ints ints(const Numbers &x) { return compose::Ints(x.begin(), x.end()); }

template <typename T> static T named(const std::string &name, std::initializer_list<std::pair<const char *, T>> table) {
  for (const auto &[n, value] : table)
    if (name == n) return value;
  throw std::invalid_argument("there is no '" + name + "'");
}

static ResizeMode resizeMode(const std::string &name) {
  return named<ResizeMode>(
      name, {{"nearest", ResizeMode::Nearest}, {"linear", ResizeMode::Linear}, {"cubic", ResizeMode::Cubic}});
}

static WindowOptions windowOf(const Numbers &kernel, const Numbers &strides, const Numbers &dilations,
                              const Numbers &pads) {
  WindowOptions w;
  w.kernel = ints(kernel), w.strides = ints(strides), w.dilations = ints(dilations), w.pads = ints(pads);
  return w;
}

static void bindImages(nb::module_ &m) {
  m.def("grid_sample",
        guarded([](Graph &g, UOpRef x, UOpRef grid, std::string mode, std::string outside, bool corners) {
          Outside o = named<Outside>(
              outside, {{"zeros", Outside::Zero}, {"border", Outside::Clamp}, {"reflection", Outside::Reflect}});
          return gridSample(g, x, grid, {resizeMode(mode), o, corners});
        }),
        inside);
  m.def("columns_to_image",
        guarded([](Graph &g, UOpRef x, Nodes image, Numbers kernel, Numbers strides, Numbers dilations, Numbers pads) {
          return columnsToImage(g, x, image, windowOf(kernel, strides, dilations, pads));
        }),
        inside);
  m.def(
      "resize_as",
      guarded([](Graph &g, UOpRef x, Numbers axes, Nodes sizes, std::optional<std::vector<double>> scales,
                 std::string mode, std::string coordinates, std::string rounding, bool antialias, double cubic) {
        ResizeOptions o;
        o.mode = resizeMode(mode);
        using C = Coordinates;
        o.coordinates =
            named<C>(coordinates,
                     {{"half_pixel", C::HalfPixel}, {"asymmetric", C::Asymmetric}, {"align_corners", C::AlignCorners}});
        using R = NearestRounding;
        o.rounding = named<R>(
            rounding,
            {{"floor", R::Floor}, {"prefer_floor", R::PreferFloor}, {"prefer_ceil", R::PreferCeil}, {"ceil", R::Ceil}});
        o.antialias = antialias, o.cubicCoefficient = cubic;
        return scales ? resizeByScales(g, x, axes, *scales, o) : resizeToSizes(g, x, axes, sizes, o);
      }),
      "g"_a, "x"_a, "axes"_a, "sizes"_a, "scales"_a.none(), "mode"_a, "coordinates"_a, "rounding"_a, "antialias"_a,
      "cubic"_a, inside);
}

static void bindTransforms(nb::module_ &m) {
  m.def("fourier_transform", guarded([](Graph &g, UOpRef x, int64_t axis, UOpRef length, bool inverse, bool onesided) {
          return fourierTransform(g, x, axis, length, {inverse, onesided});
        }),
        "g"_a, "x"_a, "axis"_a, "length"_a.none(), "inverse"_a, "onesided"_a, inside);
}

static void bindOptimizers(nb::module_ &m) {
  m.def(
      "optimizer_slots",
      [](const std::string &recipe, unsigned rank) {
        std::vector<std::pair<std::string, double>> out;
        for (const nn::Slot &s : nn::slots(taken(nn::parseOptimizer(recipe)), rank))
          out.emplace_back(s.name, s.initial);
        return out;
      },
      "What an optimizer keeps of a parameter of this rank: names and first values.");
  m.def("optimizer_update",
        guarded([](Graph &g, const std::string &recipe, UOpRef value, UOpRef gradient, Nodes slots, UOpRef rate,
                   UOpRef count) {
          nn::Update u = nn::update(g.b, taken(nn::parseOptimizer(recipe)), value, gradient, slots, rate, count);
          return std::pair(u.value, Nodes(u.slots.begin(), u.slots.end()));
        }),
        inside, "One step; rate and count are f64 scalars.");
}

void python::bindTorch(nb::module_ &m) {
  bindImages(m);
  bindTransforms(m);
  bindOptimizers(m);
}
