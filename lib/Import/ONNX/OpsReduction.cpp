//===- OpsReduction.cpp: reductions, softmax, normalizations ---------------===//
// Takes:    nodes that fold axes.
// Gives:    reduce UOps in lane64 order (N4) and what is composed of them; composites on f16 and bf16 stay in f32 and
//           round once.
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

UOpRef mean(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!x || n.failed()) return nullptr;
  UOpRef count = n.c.index(1);
  for (int64_t axis : axes) count = idxMul(n.c, count, x->shape[axis]);
  UOpRef sum = n.reduce(ReduceKind::Sum, x, axes);
  return axes.empty() ? x : n.bin(isInt(x->dtype) ? Op::TruncDiv : Op::Div, sum, n.fromIndex(count, x->dtype));
}

/// The root, which is taken of 1 where x is 0, so that no gradient is infinite.
static UOpRef flatRoot(Node &n, UOpRef x) {
  UOpRef none = n.bin(Op::Eq, x, 0.0);
  return n.select(none, n.literal(x, 0), n.un(Op::Sqrt, n.select(none, n.literal(x, 1), x)));
}

UOpRef rootOfSquares(Node &n, UOpRef sum) { return n.training() ? flatRoot(n, sum) : n.un(Op::Sqrt, sum); }

UOpRef shiftBy(Node &n, UOpRef most) { return n.un(Op::Detach, most); }

UOpRef withSoftmaxGradient(Node &n, UOpRef p, UOpRef x, llvm::function_ref<UOpRef(UOpRef)> sum) {
  if (!p || !n.training() || llvm::any_of(p->shape, isDataDim)) return p;
  UOpRef result = n.b.arg(0, p->dtype, p->shape), g = n.b.arg(2, p->dtype, p->shape);
  UOpRef gradient = n.bin(Op::Mul, n.bin(Op::Sub, g, sum(n.bin(Op::Mul, g, result))), result);
  if (!gradient) return nullptr;
  return n.c.make(Op::WithGradient, {p, x}, {}, {}, DType::Void, {n.c.make(Op::Func, {gradient}, {3})});
}

UOpRef softmax(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  auto sum = [&](UOpRef v) { return n.reduce(ReduceKind::Sum, v, axes); };
  UOpRef e = n.un(Op::Exp, n.bin(Op::Sub, x, shiftBy(n, n.reduce(ReduceKind::Max, x, axes))));
  return withSoftmaxGradient(n, n.bin(Op::Div, e, sum(e)), x, sum);
}

UOpRef logSoftmax(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  UOpRef shifted = n.bin(Op::Sub, x, shiftBy(n, n.reduce(ReduceKind::Max, x, axes)));
  return n.bin(Op::Sub, shifted, n.un(Op::Log, n.reduce(ReduceKind::Sum, n.un(Op::Exp, shifted), axes)));
}

namespace {

Ints axesFrom(int64_t first, int64_t rank) {
  Ints axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

// ---- Reduce*: up to some opset the axes are an attribute, from then on an input

enum class AxesAre { Attribute, Input };

/// What a Reduce* op gives from its operand and axes, which stay with extent 1.
using Folding = UOpRef (*)(Node &, UOpRef, llvm::ArrayRef<int64_t>);

template <ReduceKind kind> UOpRef plain(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return n.reduce(kind, x, axes);
}
UOpRef sumOfMagnitudes(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return n.reduce(ReduceKind::Sum, n.un(Op::Abs, x), axes);
}
UOpRef sumOfSquares(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return n.reduce(ReduceKind::Sum, n.bin(Op::Mul, x, x), axes);
}
/// Functions of integers are computed in f64; the way back truncates.
UOpRef real(Node &n, UOpRef x) { return x && isInt(x->dtype) ? n.cast(x, DType::F64) : x; }
/// The gradient of a row of zeros is 0, as in PyTorch.
UOpRef euclidean(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  UOpRef sum = real(n, sumOfSquares(n, x, axes));
  return sum && isFloat(sum->dtype) ? flatRoot(n, sum) : n.un(Op::Sqrt, sum);
}
UOpRef logOfSum(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return n.un(Op::Log, real(n, n.reduce(ReduceKind::Sum, x, axes)));
}
UOpRef logOfSumOfExp(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  x = real(n, x);
  UOpRef most = shiftBy(n, n.reduce(ReduceKind::Max, x, axes));
  // An infinite maximum is no shift: a row of -inf gives -inf, one with +inf gives +inf.
  UOpRef finite = n.bin(Op::Eq, n.bin(Op::Sub, most, most), n.literal(most, 0));
  UOpRef shift = n.select(finite, most, n.literal(most, 0));
  return n.bin(Op::Add, shift, logOfSum(n, n.un(Op::Exp, n.bin(Op::Sub, x, shift)), axes));
}

template <Folding fold, AxesAre where> void reduction(Node &n) {
  UOpRef x = n.widen(n.in(0));
  if (!x) return;
  Ints given;
  if (where == AxesAre::Attribute)
    given = n.intsAttr("axes");
  else if (n.has(1))
    given = n.knownInts(1, "the axes");
  bool keep = n.intAttr("keepdims", 1) != 0, noneIfEmpty = n.intAttr("noop_with_empty_axes", 0) != 0;
  Ints axes = n.axes(given, x->rank());
  if (given.empty() && !noneIfEmpty) axes = axesFrom(0, x->rank());
  UOpRef folded = n.cast(fold(n, x, axes), n.in(0)->dtype);
  n.give(keep ? folded : n.squeeze(folded, axes));
}

template <bool max> void argReduce(Node &n) {
  UOpRef x = n.in(0);
  bool last = n.intAttr("select_last_index", 0) != 0;
  bool keep = n.intAttr("keepdims", 1) != 0;
  int64_t axis = n.axis(n.intAttr("axis", 0), x ? x->rank() : 0);
  if (n.failed()) return;
  UOpRef extent = x->shape[axis];
  if (last) x = n.make(Op::Flip, {x}, {axis}); // the first one from the back
  UOpRef index = n.make(Op::ArgReduce, {x}, {max ? 0 : 1, axis});
  if (last) index = n.bin(Op::Sub, n.fromIndex(idxSub(n.c, extent, n.c.index(1)), DType::I64), index);
  n.give(keep && index ? n.unsqueeze(index, {axis}) : index);
}

// ---- softmax

/// Before opset 13 the axes from `axis` on form one row.
template <Folding f, bool row> void softmaxNode(Node &n) {
  UOpRef x = n.widen(n.in(0));
  if (!n.requireFloat(x)) return;
  int64_t axis = n.axis(n.intAttr("axis", row ? 1 : -1), x->rank());
  if (!n.failed()) n.give(n.cast(f(n, x, row ? axesFrom(axis, x->rank()) : Ints{axis}), n.in(0)->dtype));
}

/// 1 at the first maximum of each row, else 0.
template <bool row> void hardmax(Node &n) {
  UOpRef x = n.in(0);
  if (!n.requireFloat(x)) return;
  int64_t axis = n.axis(n.intAttr("axis", row ? 1 : -1), x->rank());
  if (n.failed()) return;
  UOpRef flat = x;
  if (row) {
    Dims dims(x->shape.begin(), x->shape.begin() + axis);
    dims.push_back(idxProduct(n.c, x->shape.drop_front(axis)));
    flat = n.reshape(x, dims);
  }
  if (!flat) return;
  UOpRef first = n.make(Op::ArgReduce, {flat}, {0, axis});
  UOpRef hit = n.bin(Op::Eq, n.unsqueeze(first, {axis}), n.iota(DType::I64, flat->shape, axis));
  n.give(n.cast(n.reshape(hit, x->shape), x->dtype));
}

// ---- normalizations

/// scale * x + shift with one scale and shift per channel (axis 1), of x's dtype.
UOpRef perChannelAffine(Node &n, UOpRef x, UOpRef scale, UOpRef shift) {
  return n.bin(Op::Add, n.bin(Op::Mul, x, n.perChannel(scale, x->rank())), n.perChannel(shift, x->rank()));
}

/// Whether the statistics are those of this batch. Before opset 14 outputs of training say so, before opset 7 an
/// attribute too.
bool inTraining(Node &n) {
  bool more = false;
  for (unsigned i = 1; i < n.numOutputs(); ++i) more |= n.wants(i);
  if (n.opset >= 14) {
    bool training = n.intAttr("training_mode", 0) != 0;
    if (more && !training) n.fail("outputs of training are of training_mode 1");
    return training;
  }
  if (n.opset >= 7) return more;
  if (n.opset < 6) n.ignoreAttr("consumed_inputs");
  bool training = !n.intAttr("is_test", 0);
  if (more && !training) n.fail("outputs of training are of is_test 0");
  return training;
}

/// Scale / sqrt(variance + epsilon) and bias - mean * that, per channel, before opset 9 and with `spatial` 0 per
/// element of a sample; then one product and one sum per element (N4).
void batchNormalization(Node &n) {
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  double momentum = n.floatAttr("momentum", 0.9f);
  Shared::Training *t = n.training();
  bool training = inTraining(n) || t, spatial = n.opset >= 9 || n.intAttr("spatial", 1) != 0;
  UOpRef x = n.widen(n.in(0));
  UOpRef p[4];
  for (unsigned i = 0; i < 4 && x; ++i) p[i] = n.cast(n.in(i + 1), x->dtype);
  if (n.failed() || !n.requireFloat(x) || !n.requireRank(x, 2)) return;
  if (training) { // the statistics of this batch; the running ones move toward them
    Ints axes;
    for (unsigned axis = 0; axis < x->rank(); ++axis)
      if (spatial ? axis != 1 : axis == 0) axes.push_back(axis);
    UOpRef count = n.c.index(1); // of values of a channel
    for (int64_t axis : axes) count = idxMul(n.c, count, x->shape[axis]);
    if (t) t->counts.push_back(count);
    UOpRef m = mean(n, x, axes), centred = n.bin(Op::Sub, x, m);
    UOpRef variance = mean(n, n.bin(Op::Mul, centred, centred), axes);
    for (unsigned i = 0; t && i < 2; ++i) {
      UOpRef running = n.in(3 + i), now = n.squeeze(i ? variance : m, axes);
      if (!running || !running->is(Op::Param) || n.failed()) continue;
      if (i) { // of a sample: n / (n - 1)
        UOpRef less = idxMax(n.c, idxSub(n.c, count, n.c.index(1)), n.c.index(1));
        now = n.bin(Op::Mul, now, n.bin(Op::Div, n.fromIndex(count, x->dtype), n.fromIndex(less, x->dtype)));
      }
      UOpRef next =
          n.bin(Op::Add, n.bin(Op::Mul, n.cast(running, x->dtype), momentum), n.bin(Op::Mul, now, 1 - momentum));
      t->running.push_back({running, n.cast(next, running->dtype)});
    }
    for (unsigned i = 0; i < 2; ++i) {
      UOpRef now = n.squeeze(i ? variance : m, axes), old = p[2 + i];
      p[2 + i] = now;
      UOpRef running = n.bin(Op::Add, n.bin(Op::Mul, old, momentum), n.bin(Op::Mul, now, 1 - momentum));
      if (n.wants(1 + i)) n.give(1 + i, n.cast(running, n.in(3 + i)->dtype));
      if (n.wants(3 + i)) n.give(3 + i, n.cast(now, n.in(3 + i)->dtype));
    }
  }
  UOpRef scale = n.bin(Op::Div, p[0], n.un(Op::Sqrt, n.bin(Op::Add, p[3], epsilon)));
  UOpRef shift = n.bin(Op::Sub, p[1], n.bin(Op::Mul, p[2], scale));
  UOpRef y = spatial ? perChannelAffine(n, x, scale, shift) : n.bin(Op::Add, n.bin(Op::Mul, x, scale), shift);
  n.give(n.cast(y, n.in(0)->dtype));
}

struct Standardized {
  UOpRef value, mean, inverse;
};

/// (x - mean) / sqrt(variance + epsilon), the variance two-pass, the inverse once per row.
Standardized standardize(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes, double epsilon) {
  UOpRef m = mean(n, x, axes), centred = n.bin(Op::Sub, x, m);
  UOpRef variance = mean(n, n.bin(Op::Mul, centred, centred), axes);
  UOpRef deviation = n.un(Op::Sqrt, n.bin(Op::Add, variance, epsilon));
  UOpRef inverse = n.bin(Op::Div, n.literal(deviation, 1), deviation);
  return {n.bin(Op::Mul, centred, inverse), m, inverse};
}

/// The type of the first stage of a normalization, the standardization. The operand goes into it rounded once; what
/// comes out is rounded to it only where it is another narrow type than the operand's.
class Stage {
public:
  explicit Stage(Node &n) : n(n) {
    constexpr std::pair<int64_t, DType> codes[] = {
        {1, DType::F32}, {10, DType::F16}, {11, DType::F64}, {16, DType::BF16}};
    int64_t given = n.intAttr("stash_type", 1);
    const auto *found = llvm::find_if(codes, [&](auto code) { return code.first == given; });
    if (found == std::end(codes))
      n.fail("attribute 'stash_type' is " + llvm::Twine(given) +
             ", expected 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
    else
      type = found->second;
  }
  UOpRef in(UOpRef x) { return n.widen(n.cast(x, type)); }
  UOpRef round(UOpRef y) { return n.cast(y, type); }
  /// y in the type in which the second stage computes: that of `like`, widened.
  UOpRef out(UOpRef y, UOpRef like) {
    if (!y || !like) return nullptr;
    if (like->dtype != type) y = round(y);
    return n.cast(y, like->dtype == DType::F64 ? DType::F64 : DType::F32);
  }

private:
  Node &n;
  DType type = DType::F32;
};

void layerNormalization(Node &n) {
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  Stage stage(n);
  UOpRef x = stage.in(n.in(0));
  if (!n.requireFloat(n.in(0))) return;
  int64_t axis = n.axis(n.intAttr("axis", -1), x->rank());
  if (n.failed()) return;
  Standardized s = standardize(n, x, axesFrom(axis, x->rank()), epsilon);
  UOpRef y = n.bin(Op::Mul, stage.out(s.value, n.in(0)), n.widen(n.in(1)));
  if (n.has(2)) y = n.bin(Op::Add, y, n.widen(n.in(2)));
  n.give(n.cast(y, n.in(0)->dtype));
  if (n.wants(1)) n.give(1, stage.round(s.mean));
  if (n.wants(2)) n.give(2, stage.round(s.inverse));
}

/// The result is of the scale's type, which may differ from the operand's.
void rmsNormalization(Node &n) {
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  Stage stage(n);
  UOpRef x = stage.in(n.in(0)), scale = n.in(1);
  if (!n.requireFloat(n.in(0)) || !n.requireFloat(scale)) return;
  int64_t axis = n.axis(n.intAttr("axis", -1), x->rank());
  if (n.failed()) return;
  UOpRef root = n.un(Op::Sqrt, n.bin(Op::Add, mean(n, n.bin(Op::Mul, x, x), axesFrom(axis, x->rank())), epsilon));
  UOpRef inverse = n.bin(Op::Div, n.literal(root, 1), root);
  UOpRef y = stage.out(n.bin(Op::Mul, x, inverse), n.in(0));
  if (y && scale->dtype == DType::F64) y = n.cast(y, DType::F64);
  n.give(n.cast(n.bin(Op::Mul, y, n.cast(scale, y ? y->dtype : DType::F32)), scale->dtype));
}

void instanceNormalization(Node &n) {
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  UOpRef x = n.widen(n.in(0));
  if (!n.requireFloat(x) || !n.requireRank(x, 3)) return;
  UOpRef y = standardize(n, x, axesFrom(2, x->rank()), epsilon).value;
  if (y) n.give(n.cast(perChannelAffine(n, y, n.widen(n.in(1)), n.widen(n.in(2))), n.in(0)->dtype));
}

/// From opset 21 on scale and bias are per channel and the first stage has a type; in 18 to 20 they were per group.
template <bool perGroup> void groupNormalization(Node &n) {
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  std::optional<Stage> stage;
  if (!perGroup) stage.emplace(n);
  int64_t groups = n.intAttr("num_groups", 0);
  UOpRef x = stage ? stage->in(n.in(0)) : n.widen(n.in(0));
  if (!n.requireFloat(n.in(0)) || !n.requireRank(x, 2)) return;
  int64_t channels = n.constExtent(x, 1, "the number of channels");
  if (groups < 1 || channels % groups)
    n.fail(llvm::Twine(groups) + " groups do not divide " + llvm::Twine(channels) + " channels");
  if (n.failed()) return;
  Dims grouped(x->shape.begin(), x->shape.end());
  grouped[1] = n.c.index(channels / groups);
  grouped.insert(grouped.begin() + 1, n.c.index(groups));
  UOpRef y = standardize(n, n.reshape(x, grouped), axesFrom(2, grouped.size()), epsilon).value;
  if (stage) y = stage->out(y, n.in(0));
  UOpRef scale = n.widen(n.in(1)), shift = n.widen(n.in(2));
  if (!y || n.failed()) return;
  y = perGroup ? n.reshape(perChannelAffine(n, y, scale, shift), x->shape)
               : perChannelAffine(n, n.reshape(y, x->shape), scale, shift);
  n.give(n.cast(y, n.in(0)->dtype));
}

#define REDUCTION(name, until, fold, types)                                                                            \
  {name, 1, until, 1, 1, reduction<fold, AxesAre::Attribute>, types}, {                                                \
    name, until + 1, latest, 1, 2, reduction<fold, AxesAre::Input>, types                                              \
  }

constexpr Row rows[] = {
    REDUCTION("ReduceSum", 12, plain<ReduceKind::Sum>, numberTypes),
    REDUCTION("ReduceProd", 17, plain<ReduceKind::Prod>, numberTypes),
    REDUCTION("ReduceMax", 17, plain<ReduceKind::Max>, anyType),
    REDUCTION("ReduceMin", 17, plain<ReduceKind::Min>, anyType),
    REDUCTION("ReduceMean", 17, mean, numberTypes),
    REDUCTION("ReduceL1", 17, sumOfMagnitudes, numberTypes),
    REDUCTION("ReduceL2", 17, euclidean, realTypes),
    REDUCTION("ReduceSumSquare", 17, sumOfSquares, numberTypes),
    REDUCTION("ReduceLogSum", 17, logOfSum, realTypes),
    REDUCTION("ReduceLogSumExp", 17, logOfSumOfExp, realTypes),
    {"ArgMax", 1, latest, 1, 1, argReduce<true>},
    {"ArgMin", 1, latest, 1, 1, argReduce<false>},
    {"Softmax", 1, 12, 1, 1, softmaxNode<softmax, true>, floatTypes},
    {"Softmax", 13, latest, 1, 1, softmaxNode<softmax, false>, floatTypes},
    {"LogSoftmax", 1, 12, 1, 1, softmaxNode<logSoftmax, true>, floatTypes},
    {"LogSoftmax", 13, latest, 1, 1, softmaxNode<logSoftmax, false>, floatTypes},
    {"Hardmax", 1, 12, 1, 1, hardmax<true>, floatTypes},
    {"Hardmax", 13, latest, 1, 1, hardmax<false>, floatTypes},
    {"BatchNormalization", 1, latest, 5, 5, batchNormalization, floatTypes,
     "outputs saved_mean and saved_var (before opset 14) are the mean and the variance of the batch"},
    {"LayerNormalization", 17, latest, 2, 3, layerNormalization, floatTypes},
    {"RMSNormalization", 23, latest, 2, 2, rmsNormalization, floatTypes},
    {"InstanceNormalization", 6, latest, 3, 3, instanceNormalization, floatTypes},
    {"GroupNormalization", 18, 20, 3, 3, groupNormalization<true>, floatTypes},
    {"GroupNormalization", 21, latest, 3, 3, groupNormalization<false>, floatTypes},
};
#undef REDUCTION

} // namespace

llvm::ArrayRef<Row> reductionRows() { return rows; }

} // namespace astra::onnx
