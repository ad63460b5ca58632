//===- BindCompose.cpp: composites that have the same form in Python --------===//
// Gives:    one function per composite, its Graph first. Those of networks, with options: BindNetworks.cpp.
#include "Bind.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Creation.h"
#include "astra/Compose/Einsum.h"
#include "astra/Compose/ElementLoss.h"
#include "astra/Compose/Elementary.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Loss.h"
#include "astra/Compose/Matrix.h"
#include "astra/Compose/Median.h"
#include "astra/Compose/Movement.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/Random.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Special.h"
#include "astra/Numerics/MatrixUnit.h"

using namespace astra;
using namespace astra::compose;
using namespace astra::python;
using namespace nb::literals;

static ReduceKind reduceKind(const std::string &name) {
  return named<ReduceKind>(name,
                           {{"sum", ReduceKind::Sum},
                            {"prod", ReduceKind::Prod},
                            {"max", ReduceKind::Max},
                            {"min", ReduceKind::Min},
                            {"and", ReduceKind::And},
                            {"or", ReduceKind::Or}},
                           "fold");
}

static void bindElements(nb::module_ &m) {
  m.def("binary", guarded([](Graph &g, std::string op, UOpRef x, UOpRef y) {
          std::optional<Op> o = opNamed(op);
          if (!o) throw std::invalid_argument("there is no op '" + op + "'");
          return g.bin(*o, x, y);
        }),
        inside, "Both are broadcast to their common shape.");
  m.def("select", guarded([](Graph &g, UOpRef c, UOpRef x, UOpRef y) { return g.select(c, x, y); }), inside);
  m.def("cast",
        guarded([](Graph &g, UOpRef x, std::string t, bool saturate) { return g.cast(x, dtypeOf(t), saturate); }),
        "g"_a, "x"_a, "to"_a, "saturate"_a = false, inside);
  m.def("remainder", checked(&compose::remainder), inside);
  m.def("power", checked(&power), inside);
  m.def("log10", checked(&compose::log10), inside);
  m.def("atan2", checked(&arcTangent2), inside);
  m.def("erfc", checked(&complementaryError), inside);
  m.def("hypot", checked(&hypotenuse), inside);
  m.def("logaddexp", checked(&logAddExp), inside);
  m.def("nextafter", checked(&nextAfter), inside);
  m.def("floor_quotient", checked(&floorQuotient), inside);
  m.def("signbit", checked(&signBit), inside);
  m.def("isinf", guarded([](Graph &g, UOpRef x) { return isInfinite(g, x); }), inside);
  m.def("isfinite", checked(&isFinite), inside);
  m.def("sign_or_zero", checked(&signOrZero), inside);
  m.def("maximum_number", checked(&maximumNumber), inside);
  m.def("minimum_number", checked(&minimumNumber), inside);
  m.def("interpolated", checked(&interpolated), inside);
  m.def("sinc", checked(&sinc), inside);
  m.def("complex_function", guarded([](Graph &g, std::string name, UOpRef z) -> UOpRef {
          const ComplexFunction *f = findComplexFunction(name);
          if (!f) throw std::invalid_argument(name + " is not defined on complex numbers");
          return f->apply(g, z);
        }),
        inside);
  m.def("complex_power", checked(&complexPower), inside);
  m.def("complex_sign", checked(&complexSign), inside);
  m.def("conjugate", checked(&conjugate), inside);
  m.def("clip", checked(&clip), "g"_a, "x"_a, "lo"_a.none(), "hi"_a.none(), inside);
  m.def("activation",
        guarded([](Graph &g, std::string name, UOpRef x, std::optional<double> alpha,
                   std::optional<double> beta) -> UOpRef {
          const Activation *f = findActivation(name);
          if (!f) throw std::invalid_argument("there is no activation '" + name + "'; there are " + activationNames());
          return activation(g, *f, x, alpha.value_or(f->alpha), beta.value_or(f->beta));
        }),
        "g"_a, "name"_a, "x"_a, "alpha"_a = nb::none(), "beta"_a = nb::none(), inside);
  m.def("prelu", checked(&prelu), inside);
  m.def("scaled_elu", checked(&scaledElu), inside);
  m.def("celu", checked(&celu), inside);
  m.def("selu", checked(&selu), inside);
  m.def("hard_swish", checked(&hardSwish), inside);
  m.def("mish", checked(&mish), inside);
  m.def("softplus", checked(&thresholdedSoftplus), inside);
  m.def("log_sigmoid", checked(&logSigmoid), inside);
  m.def("tanh_shrink", checked(&tanhShrink), inside);
  m.def("glu", checked(&glu), inside);
  m.def("swish", checked(&swish), inside);
  m.def("gelu", checked(&gelu), inside);
  m.def("shrinkage", checked(&shrinkage), inside);
  m.def("sign", checked(&sign), inside);
}

static void bindReductions(nb::module_ &m) {
  m.def("reduce", guarded([](Graph &g, std::string kind, UOpRef x, Numbers axes, bool keep) {
          ReduceKind k = reduceKind(kind);
          UOpRef out = g.reduce(k, x, axes);
          return keep ? out : g.squeeze(out, axes);
        }),
        inside);
  m.def("fold", guarded([](Graph &g, std::string kind, UOpRef x, Numbers axes, bool keep) {
          Folding f = named<Folding>(kind,
                                     {{"sum", plainFold<ReduceKind::Sum>},
                                      {"prod", plainFold<ReduceKind::Prod>},
                                      {"max", plainFold<ReduceKind::Max>},
                                      {"min", plainFold<ReduceKind::Min>},
                                      {"and", plainFold<ReduceKind::And>},
                                      {"or", plainFold<ReduceKind::Or>},
                                      {"mean", mean},
                                      {"l1", sumOfMagnitudes},
                                      {"sum_squares", sumOfSquares},
                                      {"l2", euclideanNorm},
                                      {"log_sum", logOfSum},
                                      {"logsumexp", logOfSumOfExp}},
                                     "fold");
          return reduction(g, f, x, axes, keep);
        }),
        inside, "Narrow floats compute in f32 and round once.");
  m.def("variance", checked(&variance), inside);
  m.def("median", checked(&median), inside);
  m.def("lower_median", guarded([](Graph &g, UOpRef x, int64_t axis, bool ignoresNaNs) {
          FirstOfAxis f = lowerMedian(g, x, axis, ignoresNaNs);
          return std::pair(f.values, f.indices);
        }),
        inside);
  m.def("arg_reduce", checked(&argReduce), inside);
  m.def("softmax", checked(&softmax), inside);
  m.def("log_softmax", checked(&logSoftmax), inside);
  m.def("safe_softmax", checked(&safeSoftmax), inside);
  m.def("softmax_gradient", checked(&softmaxGradient), inside);
  m.def("log_softmax_gradient", checked(&logSoftmaxGradient), inside);
  m.def("hardmax", checked(&hardmax), inside);
  m.def("cumulate", guarded([](Graph &g, std::string kind, UOpRef x, int64_t axis, bool exclusive, bool reverse) {
          CumulateKind k = named<CumulateKind>(kind,
                                               {{"sum", CumulateKind::Sum},
                                                {"prod", CumulateKind::Prod},
                                                {"max", CumulateKind::Max},
                                                {"min", CumulateKind::Min}},
                                               "fold");
          return cumulate(g, k, x, axis, {exclusive, reverse});
        }),
        inside);
}

static void bindMovement(nb::module_ &m) {
  m.def("reshape", guarded([](Graph &g, UOpRef x, Nodes dims) { return g.reshape(x, dims); }), inside);
  m.def("permute", guarded([](Graph &g, UOpRef x, Numbers perm) { return g.permute(x, perm); }), inside);
  m.def("flip", guarded([](Graph &g, UOpRef x, Numbers axes) { return g.make(Op::Flip, {x}, axes); }), inside);
  m.def("broadcast_to", guarded([](Graph &g, UOpRef x, Nodes dims) { return g.broadcastTo(x, dims); }), inside);
  m.def("broadcast_shape", guarded([](Graph &g, std::vector<Nodes> shapes) {
          std::vector<llvm::ArrayRef<UOpRef>> parts(shapes.begin(), shapes.end());
          Dims out = g.broadcastShape(parts);
          return Nodes(out.begin(), out.end());
        }),
        inside);
  m.def("concat", guarded([](Graph &g, Nodes xs, int64_t axis) { return g.concat(xs, axis); }), inside);
  m.def("squeeze", guarded([](Graph &g, UOpRef x, Numbers axes) { return g.squeeze(x, axes); }), inside);
  m.def("unsqueeze", guarded([](Graph &g, UOpRef x, Numbers axes) { return g.unsqueeze(x, axes); }), inside);
  m.def("part", guarded([](Graph &g, UOpRef x, int64_t axis, UOpRef begin, UOpRef size) {
          return g.part(x, axis, begin, size);
        }),
        inside);
  m.def("slice", guarded([](Graph &g, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step) {
          return slice(g, x, axis, start, end, step);
        }),
        inside);
  m.def("slice_by_data", guarded([](Graph &g, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step) {
          return sliceByData(g, x, axis, start, end, step);
        }),
        inside);
  m.def("pad", guarded([](Graph &g, UOpRef x, Nodes before, Nodes after, std::string mode, UOpRef value) {
          PadMode how = named<PadMode>(mode,
                                       {{"constant", PadMode::Constant},
                                        {"edge", PadMode::Edge},
                                        {"reflect", PadMode::Reflect},
                                        {"wrap", PadMode::Wrap}},
                                       "mode of padding");
          return padAround(g, x, before, after, how, 0, value);
        }),
        "g"_a, "x"_a, "before"_a, "after"_a, "mode"_a, "value"_a.none(), inside);
  m.def("tile", checked(&tile), inside);
  m.def("triangle", checked(&triangle), inside);
  auto order = [](const std::string &name) {
    return named<BlockOrder>(name, {{"dcr", BlockOrder::DepthColumnRow}, {"crd", BlockOrder::ColumnRowDepth}},
                             "order of blocks");
  };
  m.def("depth_to_space", guarded([order](Graph &g, UOpRef x, int64_t block, std::string how) {
          return depthToSpace(g, x, block, order(how));
        }),
        inside);
  m.def("space_to_depth", guarded([order](Graph &g, UOpRef x, int64_t block, std::string how) {
          return spaceToDepth(g, x, block, order(how));
        }),
        inside);
  m.def("eye", checked(&eye), inside);
  m.def("iota",
        guarded([](Graph &g, std::string t, Nodes dims, int64_t axis) { return g.iota(dtypeOf(t), dims, axis); }),
        inside);
}

static void bindIndexing(nb::module_ &m) {
  m.def("gather", checked(&gather), inside);
  m.def("gather_elements", checked(&gatherElements), inside);
  m.def("gather_tuples", checked(&gatherTuples), inside);
  auto kind = [](const std::string &name) {
    return named<ScatterKind>(name,
                              {{"set", ScatterKind::Set},
                               {"add", ScatterKind::Add},
                               {"mul", ScatterKind::Mul},
                               {"max", ScatterKind::Max},
                               {"min", ScatterKind::Min}},
                              "kind of scatter");
  };
  m.def("scatter_elements",
        guarded([kind](Graph &g, std::string how, UOpRef x, UOpRef index, UOpRef update, int64_t axis) {
          return scatterElements(g, kind(how), x, index, update, axis);
        }),
        inside);
  m.def("scatter_tuples", guarded([kind](Graph &g, std::string how, UOpRef x, UOpRef index, UOpRef update) {
          return scatterTuples(g, kind(how), x, index, update);
        }),
        inside);
  m.def("one_hot", checked(&oneHot), inside);
  m.def("slice_at", guarded([](Graph &g, UOpRef x, Nodes start, Nodes size) {
          Nodes src = {x};
          src.insert(src.end(), start.begin(), start.end());
          src.insert(src.end(), size.begin(), size.end());
          return g.make(Op::SliceAt, src);
        }),
        inside);
  m.def("update_at", guarded([](Graph &g, UOpRef x, UOpRef value, Nodes start) {
          Nodes src = {x, value};
          src.insert(src.end(), start.begin(), start.end());
          return g.make(Op::UpdateAt, src);
        }),
        inside);
  m.def("argsort", guarded([](Graph &g, UOpRef x, int64_t axis, bool descending) {
          return g.make(Op::ArgSort, {x}, {axis, descending});
        }),
        inside);
  m.def("topk", guarded([](Graph &g, UOpRef x, UOpRef k, int64_t axis, bool largest) {
          FirstOfAxis f = topK(g, x, k, axis, largest);
          return std::pair(f.values, f.indices);
        }),
        inside);
  m.def("running_extreme", guarded([](Graph &g, UOpRef x, int64_t axis, bool greatest) {
          FirstOfAxis f = runningExtreme(g, x, axis, greatest);
          return std::pair(f.values, f.indices);
        }),
        inside);
  m.def("compress", checked(&compress), "g"_a, "x"_a, "mask"_a, "axis"_a.none(), inside);
  m.def("non_zero", checked(&nonZero), inside);
  m.def("unique", guarded([](Graph &g, UOpRef x, std::optional<int64_t> axis, bool ascending, bool nansAreEqual) {
          Unique u = unique(g, x, axis, ascending, nansAreEqual);
          return std::tuple(u.values, u.first, u.group, u.counts);
        }),
        "g"_a, "x"_a, "axis"_a.none(), "ascending"_a, "nans_are_equal"_a, inside);
  m.def("searchsorted", checked(&searchSorted), inside);
  m.def("isin", checked(&isIn), inside);
}

static void bindProducts(nb::module_ &m) {
  m.def("product", guarded([](Graph &g, UOpRef x, UOpRef y, UOpRef diagonal, const std::string &order) {
          UOpRef sum = product(g, x, y, diagonal);
          if (!sum || order.empty()) return sum;
          llvm::Expected<UOpRef> named = orderedBy(g.c, sum, order);
          return named ? *named : g.fail(llvm::toString(named.takeError()));
        }),
        "g"_a, "x"_a, "y"_a, "diagonal"_a.none() = nb::none(), "order"_a = "", inside);
  m.def("affine_product", guarded([](Graph &g, UOpRef x, UOpRef y, UOpRef z, UOpRef alpha, UOpRef beta) {
          return affineProduct(g, x, y, z, {false, false, alpha, beta});
        }),
        "g"_a, "x"_a, "y"_a, "z"_a.none(), "alpha"_a.none(), "beta"_a.none(), inside);
  m.def("einsum", checked(&einsum), inside);
  m.def("einsum_plan", [](const std::string &text, const std::vector<std::vector<int64_t>> &shapes) {
    Graph g;
    std::vector<Dims> dims;
    for (const auto &shape : shapes) {
      dims.emplace_back();
      for (int64_t n : shape) dims.back().push_back(g.idx(n));
    }
    std::optional<EinsumPlan> plan = einsumPlan(g, text, dims);
    check(g);
    std::vector<std::vector<unsigned>> path;
    for (const PathStep &step : plan->path.steps) path.emplace_back(step.begin(), step.end());
    std::vector<std::tuple<std::string, std::string, std::string>> steps;
    for (auto [step, cost] : llvm::zip(plan->steps, plan->cost.steps))
      steps.emplace_back(step, costText(cost.flops), costText(cost.elements));
    return std::tuple(plan->text, path, plan->slices, costText(plan->naive), costText(plan->cost.flops),
                      costText(plan->cost.largest), steps);
  });
  m.def("determinant", checked(&determinant), inside);
}

static void bindRandom(nb::module_ &m) {
  m.def("random_bits", guarded([](Graph &g, UOpRef seed, UOpRef stream, Nodes shape) {
          Nodes src = {seed, stream};
          src.insert(src.end(), shape.begin(), shape.end());
          return g.make(Op::Random, src);
        }),
        inside);
  m.def("uniform",
        guarded([](Graph &g, UOpRef seed, UOpRef stream, Nodes shape, std::string t, double low, double high) {
          return uniform(g, {seed, stream}, shape, dtypeOf(t), low, high);
        }),
        inside);
  m.def("normal",
        guarded([](Graph &g, UOpRef seed, UOpRef stream, Nodes shape, std::string t, double mean, double scale) {
          return normal(g, {seed, stream}, shape, dtypeOf(t), mean, scale);
        }),
        inside);
  using Distribution = UOpRef (*)(Composer &, const Generator &, llvm::ArrayRef<UOpRef>, DType);
  static const std::pair<const char *, Distribution> distributions[] = {
      {"exponential", exponential}, {"cauchy", cauchy}, {"gumbel", gumbel}, {"logistic", logistic}};
  for (auto [name, f] : distributions)
    m.def(name, guarded([f = f](Graph &g, UOpRef seed, UOpRef stream, Nodes shape, std::string t) {
            return f(g, {seed, stream}, shape, dtypeOf(t));
          }),
          inside);
  m.def("bernoulli", guarded([](Graph &g, UOpRef seed, UOpRef stream, UOpRef p, std::string t) {
          return bernoulli(g, {seed, stream}, p, dtypeOf(t));
        }),
        inside);
  m.def("multinomial", guarded([](Graph &g, UOpRef seed, UOpRef stream, UOpRef x, int64_t samples, std::string t) {
          return multinomial(g, {seed, stream}, x, samples, dtypeOf(t));
        }),
        inside);
  m.def("dropout", guarded([](Graph &g, UOpRef seed, UOpRef stream, UOpRef x, double ratio) {
          Dropped d = dropout(g, {seed, stream}, x, g.b.lit(drawnType(x->dtype), ratio));
          return std::pair(d.value, d.keep);
        }),
        inside);
}

static void bindLosses(nb::module_ &m) {
  m.def("squared_error", checked(&squaredError), inside);
  m.def("absolute_error", checked(&absoluteError), inside);
  m.def("smooth_absolute_error", checked(&smoothAbsoluteError), inside);
  m.def("huber_loss", checked(&huberLoss), inside);
  m.def("binary_cross_entropy", checked(&binaryCrossEntropy), inside);
  m.def("binary_cross_entropy_with_logits", checked(&binaryCrossEntropyWithLogits), inside);
  m.def("divergence", checked(&divergence), inside);
  m.def("hinge_embedding", checked(&hingeEmbedding), inside);
  auto options = [](const std::string &reduction, std::optional<int64_t> ignored) {
    using R = ClassLossOptions::Reduction;
    return ClassLossOptions{named<R>(reduction, {{"none", R::None}, {"sum", R::Sum}, {"mean", R::Mean}}, "reduction"),
                            ignored};
  };
  m.def("negative_log_likelihood",
        guarded([options](Graph &g, UOpRef logs, UOpRef target, UOpRef weights, std::string reduction,
                          std::optional<int64_t> ignored) {
          return negativeLogLikelihood(g, logs, target, weights, options(reduction, ignored));
        }),
        "g"_a, "logs"_a, "target"_a, "weights"_a.none(), "reduction"_a, "ignored"_a.none(), inside);
  m.def("cross_entropy",
        guarded([options](Graph &g, UOpRef scores, UOpRef target, UOpRef weights, std::string reduction,
                          std::optional<int64_t> ignored) {
          CrossEntropy c = crossEntropy(g, scores, target, weights, options(reduction, ignored));
          return std::pair(c.loss, c.logs);
        }),
        "g"_a, "scores"_a, "target"_a, "weights"_a.none(), "reduction"_a, "ignored"_a.none(), inside);
}

void python::bindCompose(nb::module_ &m) {
  bindElements(m);
  bindReductions(m);
  bindMovement(m);
  bindIndexing(m);
  bindProducts(m);
  bindRandom(m);
  bindLosses(m);
}
