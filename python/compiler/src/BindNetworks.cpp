//===- BindNetworks.cpp: composites of networks, with their options ---------===//
// Gives:    convolutions, pools, norms, attention, recurrent layers, resizing, sampling.
#include "Bind.h"
#include "astra/Compose/Attention.h"
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Embedding.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Recurrent.h"
#include "astra/Compose/Resize.h"
#include "astra/Compose/Sampling.h"
#include "astra/Compose/Sequence.h"

using namespace astra;
using namespace astra::compose;
using namespace astra::python;
using namespace nb::literals;

static compose::Ints ints(const Numbers &x) { return compose::Ints(x.begin(), x.end()); }

/// pads: before all axes, then behind all; or "same_upper", "same_lower", "valid".
static WindowOptions windowOf(std::optional<Numbers> kernel, const Numbers &strides, const Numbers &dilations,
                              std::variant<std::string, Numbers> pads) {
  WindowOptions w;
  if (kernel) w.kernel = ints(*kernel);
  if (!strides.empty()) w.strides = ints(strides);
  if (!dilations.empty()) w.dilations = ints(dilations);
  if (auto *name = std::get_if<std::string>(&pads))
    w.automatic = named<AutoPad>(
        *name, {{"same_upper", AutoPad::SameUpper}, {"same_lower", AutoPad::SameLower}, {"valid", AutoPad::Valid}},
        "padding");
  else
    w.pads = ints(std::get<Numbers>(pads));
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
  m.def("unpool", checked(&unpool), inside);
  m.def("average_pool",
        guarded([](Graph &g, UOpRef x, Numbers kernel, Numbers strides, Numbers dilations, Numbers pads, bool ceil,
                   bool padsCount, double divisor) {
          return averagePool(g, x, {windowOf(kernel, strides, dilations, pads), ceil, padsCount, divisor});
        }),
        "g"_a, "x"_a, "kernel"_a, "strides"_a, "dilations"_a, "pads"_a, "ceil"_a, "pads_count"_a, "divisor"_a = 0.0,
        inside, "divisor 0: the number of elements of each window.");
  m.def("adaptive_average_pool", checked(&adaptiveAveragePool), inside);
  m.def("adaptive_max_pool", guarded([](Graph &g, UOpRef x, Numbers size) {
          MaxPoolResult r = adaptiveMaxPool(g, x, size);
          return std::pair(r.values, r.indices);
        }),
        inside);
  m.def("image_to_columns",
        guarded([](Graph &g, UOpRef x, Numbers kernel, Numbers strides, Numbers dilations, Numbers pads) {
          return imageToColumns(g, x, windowOf(kernel, strides, dilations, pads));
        }),
        inside);
  m.def("columns_to_image",
        guarded([](Graph &g, UOpRef x, Nodes image, Numbers kernel, Numbers strides, Numbers dilations, Numbers pads) {
          return columnsToImage(g, x, image, windowOf(kernel, strides, dilations, pads));
        }),
        inside);
  m.def("global_average_pool", checked(&globalAveragePool), inside);
  m.def("global_max_pool", checked(&globalMaxPool), inside);
}

/// The type in which the first stage of a norm computes.
static DType stageOf(UOpRef x) { return x->dtype == DType::F64 ? DType::F64 : DType::F32; }

static auto parts(const LayerNormalized &n) { return std::tuple(n.value, n.mean, n.inverse); }
static auto parts(const BatchNormalizationGradients &r) { return std::tuple(r.x, r.scale, r.bias); }

static BatchNormalizationOptions batchOptions(double epsilon, bool ofBatch, bool centred) {
  BatchNormalizationOptions o;
  o.epsilon = epsilon, o.ofBatch = ofBatch, o.centred = centred;
  return o;
}

static void bindNorms(nb::module_ &m) {
  m.def("batch_norm",
        guarded([](Graph &g, UOpRef x, UOpRef scale, UOpRef bias, UOpRef mean, UOpRef variance, double epsilon,
                   bool ofBatch, bool centred) {
          BatchNormalized n =
              batchNormalization(g, x, scale, bias, mean, variance, batchOptions(epsilon, ofBatch, centred));
          UOpRef sample = ofBatch && n.value ? unbiased(g, n.variance, n.count) : nullptr;
          return std::tuple(n.value, n.mean, n.inverse, n.variance, sample);
        }),
        "g"_a, "x"_a, "scale"_a.none(), "bias"_a.none(), "mean"_a.none(), "variance"_a.none(), "epsilon"_a,
        "of_batch"_a, "centred"_a = false, inside,
        "value, mean, 1 / deviation, variance, and of a batch its unbiased variance.");
  m.def("batch_norm_gradients",
        guarded([](Graph &g, UOpRef cotangent, UOpRef x, UOpRef scale, UOpRef mean, UOpRef variance, UOpRef inverse,
                   double epsilon, bool ofBatch) {
          return parts(batchNormalizationGradients(g, cotangent, x, scale, mean, variance, inverse,
                                                   batchOptions(epsilon, ofBatch, true)));
        }),
        "g"_a, "cotangent"_a, "x"_a, "scale"_a.none(), "mean"_a, "variance"_a.none(), "inverse"_a.none(), "epsilon"_a,
        "of_batch"_a, inside, "By x, scale and bias.");
  m.def("moving_average", checked(&movingAverage), inside);
  m.def("layer_norm", guarded([](Graph &g, UOpRef x, UOpRef scale, UOpRef bias, int64_t axis, double epsilon) {
          return parts(layerNormalization(g, x, scale, bias, {axis, epsilon, stageOf(x)}));
        }),
        "g"_a, "x"_a, "scale"_a.none(), "bias"_a.none(), "axis"_a, "epsilon"_a, inside,
        "value, mean, 1 / deviation; so are those of other norms.");
  m.def("layer_norm_gradients",
        guarded([](Graph &g, UOpRef cotangent, UOpRef x, UOpRef scale, UOpRef mean, UOpRef inverse, int64_t axis) {
          return parts(layerNormalizationGradients(g, cotangent, x, scale, mean, inverse, axis));
        }),
        "g"_a, "cotangent"_a, "x"_a, "scale"_a.none(), "mean"_a, "inverse"_a, "axis"_a, inside,
        "By x, scale and bias.");
  m.def("rms_norm", guarded([](Graph &g, UOpRef x, UOpRef scale, int64_t axis, double epsilon) {
          return parts(rmsNormalization(g, x, scale, {axis, epsilon, stageOf(x)}));
        }),
        "g"_a, "x"_a, "scale"_a.none(), "axis"_a, "epsilon"_a, inside);
  m.def("instance_norm", checked(&instanceNormalization), "g"_a, "x"_a, "scale"_a.none(), "bias"_a.none(), "epsilon"_a,
        inside);
  m.def("group_norm", guarded([](Graph &g, UOpRef x, UOpRef scale, UOpRef bias, int64_t groups, double epsilon) {
          GroupNormalizationOptions o;
          o.groups = groups, o.epsilon = epsilon, o.stage = std::nullopt;
          return parts(groupNormalization(g, x, scale, bias, o));
        }),
        "g"_a, "x"_a, "scale"_a.none(), "bias"_a.none(), "groups"_a, "epsilon"_a, inside);
  m.def("group_norm_gradients",
        guarded([](Graph &g, UOpRef cotangent, UOpRef x, UOpRef scale, UOpRef mean, UOpRef inverse, int64_t groups) {
          return parts(groupNormalizationGradients(g, cotangent, x, scale, mean, inverse, groups));
        }),
        "g"_a, "cotangent"_a, "x"_a, "scale"_a.none(), "mean"_a, "inverse"_a, "groups"_a, inside,
        "By x, scale and bias.");
  m.def("local_response_norm", guarded([](Graph &g, UOpRef x, int64_t size, double alpha, double beta, double bias) {
          return localResponseNormalization(g, x, {size, alpha, beta, bias});
        }),
        inside);
}

static RecurrentCell cellOf(const std::string &name) {
  using C = RecurrentCell;
  return named<C>(name, {{"rnn", C::RNN}, {"gru", C::GRU}, {"lstm", C::LSTM}}, "cell");
}

static void bindSequences(nb::module_ &m) {
  m.def("attention",
        guarded([](Graph &g, UOpRef q, UOpRef k, UOpRef v, UOpRef mask, bool causal, std::optional<double> scale,
                   double softcap, UOpRef pastKey, UOpRef pastValue) {
          AttentionOptions o;
          o.causal = causal, o.scale = scale, o.softcap = softcap, o.shown = AttentionOptions::Shown::Masked;
          AttentionResult r = attention(g, {q, k, v, mask, pastKey, pastValue}, o);
          return std::tuple(r.result, r.keys, r.values, r.scores);
        }),
        "g"_a, "q"_a, "k"_a, "v"_a, "mask"_a.none(), "causal"_a, "scale"_a.none(), "softcap"_a,
        "past_key"_a = nb::none(), "past_value"_a = nb::none(), inside,
        "The result, keys and values with the past ones before them, and the masked scores.");
  m.def("recurrent",
        guarded([](Graph &g, std::string cell, UOpRef x, UOpRef w, UOpRef r, UOpRef bias, UOpRef hidden, UOpRef state,
                   std::string direction, bool linearBeforeReset, std::vector<std::string> activations) {
          RecurrentOperands in;
          in.x = x, in.w = w, in.r = r, in.bias = bias, in.hidden = hidden, in.cell = state;
          RecurrentOptions o;
          using D = RecurrentOptions::Direction;
          o.direction = named<D>(
              direction, {{"forward", D::Forward}, {"reverse", D::Reverse}, {"both", D::Bidirectional}}, "direction");
          o.linearBeforeReset = linearBeforeReset;
          o.activations = std::move(activations);
          RecurrentResult out = recurrent(g, cellOf(cell), in, o);
          return std::tuple(out.all, out.hidden, out.cell);
        }),
        "g"_a, "cell"_a, "x"_a, "w"_a, "r"_a, "bias"_a.none(), "hidden"_a.none(), "state"_a.none(), "direction"_a,
        "linear_before_reset"_a, "activations"_a, inside);
  m.def("gates_in_order",
        guarded([](Graph &g, std::string cell, UOpRef w) { return gatesInOrder(g, cellOf(cell), w); }), inside,
        "From PyTorch's order of gates to that of `recurrent`.");
  m.def("rotary_tables", guarded([](Graph &g, UOpRef positions, int64_t size, double base, std::string t) {
          RotaryTables r = rotaryTables(g, positions, size, base, dtypeOf(t));
          return std::pair(r.cosines, r.sines);
        }),
        inside);
  m.def("alibi", checked(&alibi), inside);
  m.def("rotary",
        guarded(
            [](Graph &g, UOpRef x, UOpRef cosines, UOpRef sines, UOpRef positions, bool interleaved, int64_t columns) {
              RotaryOptions o;
              o.interleaved = interleaved, o.columns = columns;
              return rotaryEmbedding(g, x, cosines, sines, positions, o);
            }),
        "g"_a, "x"_a, "cosines"_a, "sines"_a, "positions"_a.none(), "interleaved"_a, "columns"_a, inside);
}

static ResizeMode resizeMode(const std::string &name) {
  using M = ResizeMode;
  return named<M>(name, {{"nearest", M::Nearest}, {"linear", M::Linear}, {"cubic", M::Cubic}}, "mode");
}

static void bindImages(nb::module_ &m) {
  m.def("grid_sample",
        guarded([](Graph &g, UOpRef x, UOpRef grid, std::string mode, std::string outside, bool corners) {
          using O = Outside;
          O o = named<O>(outside, {{"zeros", O::Zero}, {"border", O::Clamp}, {"reflection", O::Reflect}}, "border");
          return gridSample(g, x, grid, {resizeMode(mode), o, corners});
        }),
        inside);
  m.def(
      "resize",
      guarded([](Graph &g, UOpRef x, Numbers axes, Nodes sizes, std::optional<std::vector<double>> scales,
                 std::string mode, std::string coordinates, std::string rounding, bool antialias, double cubic) {
        ResizeOptions o;
        o.mode = resizeMode(mode);
        using C = Coordinates;
        o.coordinates =
            named<C>(coordinates,
                     {{"half_pixel", C::HalfPixel}, {"asymmetric", C::Asymmetric}, {"align_corners", C::AlignCorners}},
                     "kind of coordinates");
        using R = NearestRounding;
        o.rounding = named<R>(
            rounding,
            {{"floor", R::Floor}, {"prefer_floor", R::PreferFloor}, {"prefer_ceil", R::PreferCeil}, {"ceil", R::Ceil}},
            "rounding");
        o.antialias = antialias, o.cubicCoefficient = cubic;
        return scales ? resizeByScales(g, x, axes, *scales, o) : resizeToSizes(g, x, axes, sizes, o);
      }),
      "g"_a, "x"_a, "axes"_a, "sizes"_a, "scales"_a.none(), "mode"_a, "coordinates"_a, "rounding"_a, "antialias"_a,
      "cubic"_a, inside);
}

static void bindEmbedding(nb::module_ &m) {
  auto bagsOf = [](UOpRef indices, UOpRef offsets, UOpRef weights, const std::string &mode, int64_t padding) {
    auto how =
        named<BagMode>(mode, {{"sum", BagMode::Sum}, {"mean", BagMode::Mean}, {"max", BagMode::Max}}, "fold of bags");
    return Bags{indices, offsets, weights, how, padding};
  };
  m.def("embedding_bag",
        guarded([bagsOf](Graph &g, UOpRef table, UOpRef indices, UOpRef offsets, UOpRef weights, std::string mode,
                         int64_t padding) {
          EmbeddingBag e = embeddingBag(g, table, bagsOf(indices, offsets, weights, mode, padding));
          return std::tuple(e.value, e.bag, e.sizes, e.rows);
        }),
        "g"_a, "table"_a, "indices"_a, "offsets"_a, "weights"_a.none(), "mode"_a, "padding"_a, inside);
  m.def("embedding_gradient", checked(&embeddingGradient), inside);
  m.def("embedding_bag_gradient",
        guarded([bagsOf](Graph &g, UOpRef gradient, UOpRef indices, UOpRef offsets, UOpRef weights, std::string mode,
                         int64_t padding, UOpRef rows, bool byFrequency) {
          return embeddingBagGradient(g, gradient, bagsOf(indices, offsets, weights, mode, padding), rows, byFrequency);
        }),
        "g"_a, "gradient"_a, "indices"_a, "offsets"_a, "weights"_a.none(), "mode"_a, "padding"_a, "rows"_a,
        "by_frequency"_a, inside);
  m.def("embedding_maxima_gradient", checked(&embeddingMaximaGradient), inside);
  m.def("embedding_weights_gradient",
        guarded([](Graph &g, UOpRef gradient, UOpRef table, UOpRef indices, UOpRef offsets, int64_t padding) {
          return embeddingWeightsGradient(g, gradient, table, {indices, offsets, nullptr, BagMode::Sum, padding});
        }),
        inside);
}

void python::bindNetworks(nb::module_ &m) {
  bindWindows(m);
  bindNorms(m);
  bindSequences(m);
  bindImages(m);
  bindEmbedding(m);
}
