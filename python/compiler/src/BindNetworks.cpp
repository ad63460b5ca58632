//===- BindNetworks.cpp: composites of networks, with their options ---------===//
// Gives:    convolutions, pools, norms, attention, recurrent layers, resizing, sampling.
#include "Bind.h"
#include "astra/Compose/Attention.h"
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Recurrent.h"
#include "astra/Compose/Resize.h"
#include "astra/Compose/Sequence.h"

using namespace astra;
using namespace astra::compose;
using namespace astra::python;
using namespace nb::literals;

using Nodes = std::vector<UOpRef>;
using Numbers = std::vector<int64_t>;
constexpr auto inside = nb::rv_policy::reference;

static compose::Ints ints(const Numbers &x) { return compose::Ints(x.begin(), x.end()); }

/// pads: before all axes, then behind all; or "same_upper", "same_lower", "valid".
static WindowOptions windowOf(std::optional<Numbers> kernel, const Numbers &strides, const Numbers &dilations,
                              std::variant<std::string, Numbers> pads) {
  WindowOptions w;
  if (kernel) w.kernel = ints(*kernel);
  if (!strides.empty()) w.strides = ints(strides);
  if (!dilations.empty()) w.dilations = ints(dilations);
  if (auto *name = std::get_if<std::string>(&pads)) {
    if (*name == "same_upper")
      w.automatic = AutoPad::SameUpper;
    else if (*name == "same_lower")
      w.automatic = AutoPad::SameLower;
    else if (*name == "valid")
      w.automatic = AutoPad::Valid;
    else
      throw std::invalid_argument("padding is numbers, 'same_upper', 'same_lower' or 'valid', not '" + *name + "'");
  } else {
    w.pads = ints(std::get<Numbers>(pads));
  }
  return w;
}

static void bindWindows(nb::module_ &m) {
  m.def("convolution",
        guarded([](Graph &g, UOpRef x, UOpRef w, UOpRef bias, Numbers strides, Numbers dilations,
                   std::variant<std::string, Numbers> pads, int64_t groups) {
          return convolution(g, x, w, bias, {windowOf({}, strides, dilations, pads), groups});
        }),
        "g"_a, "x"_a, "w"_a, "bias"_a.none(), "strides"_a, "dilations"_a, "pads"_a, "groups"_a, inside);
  m.def("transposed_convolution",
        guarded([](Graph &g, UOpRef x, UOpRef w, UOpRef bias, Numbers strides, Numbers dilations, Numbers pads,
                   int64_t groups, Numbers outputPadding) {
          TransposedConvolutionOptions o;
          o.window = windowOf({}, strides, dilations, pads);
          o.groups = groups;
          o.outputPadding = ints(outputPadding);
          return transposedConvolution(g, x, w, bias, o);
        }),
        "g"_a, "x"_a, "w"_a, "bias"_a.none(), "strides"_a, "dilations"_a, "pads"_a, "groups"_a,
        "output_padding"_a = Numbers(), inside);
  m.def("max_pool",
        guarded([](Graph &g, UOpRef x, Numbers kernel, Numbers strides, Numbers dilations, Numbers pads, bool ceil) {
          return maxPool(g, x, {windowOf(kernel, strides, dilations, pads), ceil});
        }),
        inside);
  m.def("max_pool_with_indices",
        guarded([](Graph &g, UOpRef x, Numbers kernel, Numbers strides, Numbers dilations, Numbers pads, bool ceil) {
          MaxPoolResult r = maxPoolWithIndices(g, x, {windowOf(kernel, strides, dilations, pads), ceil});
          return std::pair(r.values, r.indices);
        }),
        inside);
  m.def("average_pool",
        guarded([](Graph &g, UOpRef x, Numbers kernel, Numbers strides, Numbers dilations, Numbers pads, bool ceil,
                   bool padsCount) {
          return averagePool(g, x, {windowOf(kernel, strides, dilations, pads), ceil, padsCount});
        }),
        inside);
  m.def("global_average_pool", checked(&globalAveragePool), inside);
  m.def("global_max_pool", checked(&globalMaxPool), inside);
}

static void bindNorms(nb::module_ &m) {
  m.def("batch_norm",
        guarded([](Graph &g, UOpRef x, UOpRef scale, UOpRef bias, UOpRef mean, UOpRef variance, double epsilon,
                   bool ofBatch) {
          BatchNormalizationOptions o;
          o.epsilon = epsilon, o.ofBatch = ofBatch;
          BatchNormalized n = batchNormalization(g, x, scale, bias, mean, variance, o);
          UOpRef sample = ofBatch && n.value ? unbiased(g, n.variance, n.count) : nullptr;
          return std::tuple(n.value, n.mean, n.variance, sample);
        }),
        "g"_a, "x"_a, "scale"_a, "bias"_a, "mean"_a.none(), "variance"_a.none(), "epsilon"_a, "of_batch"_a, inside,
        "value, mean, variance, and of a batch its unbiased variance.");
  m.def("moving_average", checked(&movingAverage), inside);
  m.def("layer_norm", guarded([](Graph &g, UOpRef x, UOpRef scale, UOpRef bias, int64_t axis, double epsilon) {
          LayerNormalized n =
              layerNormalization(g, x, scale, bias, {axis, epsilon, x->dtype == DType::F64 ? DType::F64 : DType::F32});
          return std::tuple(n.value, n.mean, n.inverse);
        }),
        "g"_a, "x"_a, "scale"_a, "bias"_a.none(), "axis"_a, "epsilon"_a, inside);
  m.def("rms_norm", guarded([](Graph &g, UOpRef x, UOpRef scale, int64_t axis, double epsilon) {
          return rmsNormalization(g, x, scale, {axis, epsilon, x->dtype == DType::F64 ? DType::F64 : DType::F32});
        }),
        inside);
  m.def("instance_norm", checked(&instanceNormalization), inside);
  m.def("group_norm", guarded([](Graph &g, UOpRef x, UOpRef scale, UOpRef bias, int64_t groups, double epsilon) {
          GroupNormalizationOptions o;
          o.groups = groups, o.epsilon = epsilon, o.stage = std::nullopt;
          return groupNormalization(g, x, scale, bias, o);
        }),
        inside);
  m.def("local_response_norm", guarded([](Graph &g, UOpRef x, int64_t size, double alpha, double beta, double bias) {
          return localResponseNormalization(g, x, {size, alpha, beta, bias});
        }),
        inside);
}

static void bindSequences(nb::module_ &m) {
  m.def("attention",
        guarded([](Graph &g, UOpRef q, UOpRef k, UOpRef v, UOpRef mask, bool causal, std::optional<double> scale,
                   double softcap) {
          AttentionOptions o;
          o.causal = causal, o.scale = scale, o.softcap = softcap;
          return attention(g, {q, k, v, mask}, o).result;
        }),
        "g"_a, "q"_a, "k"_a, "v"_a, "mask"_a.none(), "causal"_a, "scale"_a.none(), "softcap"_a, inside);
  m.def("recurrent",
        guarded([](Graph &g, std::string cell, UOpRef x, UOpRef w, UOpRef r, UOpRef bias, UOpRef hidden, UOpRef state,
                   std::string direction, bool linearBeforeReset, std::vector<std::string> activations) {
          RecurrentCell kind = cell == "lstm"  ? RecurrentCell::LSTM
                               : cell == "gru" ? RecurrentCell::GRU
                                               : RecurrentCell::RNN;
          RecurrentOperands in;
          in.x = x, in.w = w, in.r = r, in.bias = bias, in.hidden = hidden, in.cell = state;
          RecurrentOptions o;
          using D = RecurrentOptions::Direction;
          o.direction = direction == "reverse" ? D::Reverse : direction == "both" ? D::Bidirectional : D::Forward;
          o.linearBeforeReset = linearBeforeReset;
          o.activations = std::move(activations);
          RecurrentResult out = recurrent(g, kind, in, o);
          return std::tuple(out.all, out.hidden, out.cell);
        }),
        "g"_a, "cell"_a, "x"_a, "w"_a, "r"_a, "bias"_a.none(), "hidden"_a.none(), "state"_a.none(), "direction"_a,
        "linear_before_reset"_a, "activations"_a, inside);
  m.def("rotary",
        guarded(
            [](Graph &g, UOpRef x, UOpRef cosines, UOpRef sines, UOpRef positions, bool interleaved, int64_t columns) {
              RotaryOptions o;
              o.interleaved = interleaved, o.columns = columns;
              return rotaryEmbedding(g, x, cosines, sines, positions, o);
            }),
        "g"_a, "x"_a, "cosines"_a, "sines"_a, "positions"_a.none(), "interleaved"_a, "columns"_a, inside);
}

static void bindImages(nb::module_ &m) {
  m.def("resize",
        guarded([](Graph &g, UOpRef x, Numbers axes, Nodes sizes, std::string mode, std::string coordinates,
                   bool antialias) {
          ResizeOptions o;
          o.mode = mode == "nearest" ? ResizeMode::Nearest : mode == "cubic" ? ResizeMode::Cubic : ResizeMode::Linear;
          o.coordinates = coordinates == "asymmetric"      ? Coordinates::Asymmetric
                          : coordinates == "align_corners" ? Coordinates::AlignCorners
                                                           : Coordinates::HalfPixel;
          o.antialias = antialias;
          if (o.mode == ResizeMode::Nearest && o.coordinates == Coordinates::Asymmetric)
            o.rounding = NearestRounding::Floor;
          return resizeToSizes(g, x, axes, sizes, o);
        }),
        inside);
}

void python::bindNetworks(nb::module_ &m) {
  bindWindows(m);
  bindNorms(m);
  bindSequences(m);
  bindImages(m);
}
