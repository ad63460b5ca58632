//===- Losses.cpp: losses as graphs ----------------------------------------===//
// Takes:    a prediction and a target that fit (`loss` sees to it).
// Gives:    elements, then their mean or sum.
// Keeps:    one row a loss: what its target is, its parameters, its formula.
#include "Elements.h"
#include "astra/Compose/ElementLoss.h"
#include "astra/Compose/Elementary.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Text.h"
#include "astra/NN/Loss.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace astra;
using namespace astra::nn;

namespace {
enum class Target { Same, Classes, Sequence }; // what a target is beside the prediction

constexpr Parameter sum{"sum", 0, yesOrNo, "1: the sum of the elements instead of their mean"};
constexpr Parameter ignored{"ignore_index", -100, wholeNumber, "a class number whose elements do not count"};

constexpr Parameter plainParameters[] = {sum};
constexpr Parameter smoothParameters[] = {{"beta", 1, notNegative, "where the square becomes a line"}, sum};
constexpr Parameter huberParameters[] = {{"delta", 1, positive, "where the square becomes a line"}, sum};
constexpr Parameter crossParameters[] = {
    {"label_smoothing", 0, zeroToOne, "the part of a target that is spread over all classes"}, ignored, sum};
constexpr Parameter nllParameters[] = {ignored, sum};
constexpr Parameter logitParameters[] = {{"pos_weight", 1, notNegative, "the weight of targets that are 1"}, sum};
constexpr Parameter klParameters[] = {{"log_target", 0, yesOrNo, "1: the target is a logarithm too"},
                                      {"batchmean", 0, yesOrNo, "1: the sum over the number of rows"},
                                      sum};
constexpr Relation klRelations[] = {
    {[](const Recipe &r) { return r["batchmean"] == 0 || r["sum"] == 0; }, "not both batchmean and sum are 1"}};
constexpr Parameter hingeParameters[] = {{"margin", 1, anyNumber, "the distance that costs nothing"}, sum};
constexpr Parameter ctcParameters[] = {{"blank", 0, wholeFromZero, "the class number of the blank"}, sum};

// One for each row: of a prediction and a target that fit.
using Elements = UOpRef (*)(Builder &, const Recipe &, UOpRef x, UOpRef target);

/// What is composed over a Composer, of operands that fit: nothing is refused.
template <class Make> UOpRef composed(Builder &b, Make make) {
  compose::Composer composer(b.c);
  return llvm::cantFail(compose::composed(composer, make(composer)));
}
UOpRef squares(Builder &b, const Recipe &, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::squaredError(c, x, y); });
}
UOpRef distances(Builder &b, const Recipe &, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::absoluteError(c, x, y); });
}
UOpRef smooth(Builder &b, const Recipe &r, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::smoothAbsoluteError(c, x, y, r["beta"]); });
}
UOpRef huber(Builder &b, const Recipe &r, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::huberLoss(c, x, y, r["delta"]); });
}
UOpRef binary(Builder &b, const Recipe &, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::binaryCrossEntropy(c, x, y); });
}
UOpRef binaryOfLogits(Builder &b, const Recipe &r, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::binaryCrossEntropyWithLogits(c, x, y, r["pos_weight"]); });
}
UOpRef divergence(Builder &b, const Recipe &r, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::divergence(c, x, y, r["log_target"] != 0); });
}
UOpRef embeddingHinge(Builder &b, const Recipe &r, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::hingeEmbedding(c, x, y, r["margin"]); });
}

// ---- of classes: [N, C, ...] beside class numbers [N, ...]

/// -log p of each target's class, and where it counts; [N, ...].
struct Likelihood {
  UOpRef nll, counts;
};
UOpRef along(Builder &b, UOpRef target, UOpRef x) { // [N, ...] as [N, 1, ...]
  llvm::SmallVector<UOpRef, 6> shape(x->shape);
  shape[1] = b.idx(1);
  return b.reshape(target, shape);
}
Likelihood likelihood(Builder &b, const Recipe &r, UOpRef logs, UOpRef target) {
  UOpRef index = b.cast(target, DType::I64);
  UOpRef ignore = b.eq(index, b.litInt(DType::I64, int64_t(r["ignore_index"])));
  UOpRef picked = b.reshape(b.pick(logs, along(b, index, logs), 1), target->shape);
  UOpRef counts = b.un(Op::Not, ignore);
  return {b.select(counts, b.un(Op::Neg, picked), num(b, logs, 0)), counts};
}
/// The mean over what counts, or the sum.
UOpRef ofCounted(Builder &b, const Recipe &r, UOpRef elements, UOpRef counts) {
  UOpRef total = sumOf(b, elements);
  if (r["sum"] != 0) return total;
  return b.div(total, sumOf(b, b.cast(counts, elements->dtype)));
}
UOpRef nll(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  Likelihood l = likelihood(b, r, x, target);
  return ofCounted(b, r, l.nll, l.counts);
}
UOpRef crossEntropy(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  UOpRef logs = logSoftmax(b, x, 1);
  Likelihood l = likelihood(b, r, logs, target);
  double s = r["label_smoothing"];
  if (s == 0) return ofCounted(b, r, l.nll, l.counts);
  UOpRef every = b.un(Op::Neg, b.reduce(ReduceKind::Sum, logs, {1}));
  UOpRef spread = b.div(b.mul(every, num(b, x, s)), b.fromIndex(x->shape[1], x->dtype));
  UOpRef both = b.add(b.mul(l.nll, num(b, x, 1 - s)), b.select(l.counts, spread, num(b, x, 0)));
  return ofCounted(b, r, both, l.counts);
}
/// The mean over all classes but the target's of max(0, margin - x[target] + x[class]).
UOpRef multiMargin(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  UOpRef index = along(b, b.cast(target, DType::I64), x), zero = num(b, x, 0);
  UOpRef own = b.expand(b.pick(x, index, 1), x->shape);
  UOpRef margins = b.add(b.sub(num(b, x, r["margin"]), own), x);
  UOpRef over = composed(b, [&](auto &c) { return compose::hinge(c, margins); });
  UOpRef isTarget = b.eq(b.expand(index, x->shape), b.iota(DType::I64, x->shape, 1));
  UOpRef rows =
      b.div(b.reduce(ReduceKind::Sum, b.select(isTarget, zero, over), {1}), b.fromIndex(x->shape[1], x->dtype));
  return r["sum"] != 0 ? sumOf(b, rows) : mean(b, rows);
}

/// Connectionist temporal classification (Graves et al. 2006): the forward variables over blanks and labels, in
/// logarithms, one step of a scan each. The mean is over rows, each divided by the length of its target, as PyTorch has
/// it.
UOpRef ctc(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  Context &c = b.c;
  DType t = x->dtype;
  int64_t blank = int64_t(r["blank"]);
  UOpRef rows = x->shape[1], labels = target->shape[1], zero = b.idx(0), one = b.idx(1), two = b.idx(2);
  UOpRef states = idxAdd(c, idxMul(c, labels, two), one);
  UOpRef least = b.lit(t, -std::numeric_limits<double>::infinity());
  UOpRef index = b.cast(target, DType::I64), blanks = b.splat(b.litInt(DType::I64, blank), {rows, labels, one});
  // blank, label, blank, label ... blank
  UOpRef pairs = b.concat({blanks, b.reshape(index, {rows, labels, one})}, 2);
  UOpRef path = b.pad(b.reshape(pairs, {rows, idxMul(c, labels, two)}), {zero, zero}, {zero, one}, uint64_t(blank));
  UOpRef isLabel = b.bin(Op::Ne, index, b.litInt(DType::I64, blank));
  UOpRef length =
      b.reduce(ReduceKind::Sum, b.cast(b.cumulate(CumulateKind::Min, b.cast(isLabel, DType::I32), 1), DType::I64), {1});
  auto shifted = [&](UOpRef v, int64_t by, UOpRef fill) { // along the path
    UOpRef n = b.idx(by);
    return b.shrink(b.pad(v, {zero, n}, {zero, zero}, uint64_t(fill->ints[0])), {zero, zero}, v->shape);
  };
  UOpRef before = shifted(path, 2, b.litInt(DType::I64, blank));
  UOpRef skips = b.bin(Op::And, b.bin(Op::Ne, path, b.litInt(DType::I64, blank)), b.bin(Op::Ne, path, before));
  // One step: alpha, the logarithms of the classes now, path, skips.
  UOpRef alpha = b.arg(0, t, {rows, states}), now = b.arg(1, t, x->shape.drop_front()),
         pathIn = b.arg(2, DType::I64, {rows, states}), skipsIn = b.arg(3, DType::Bool, {rows, states});
  auto either = [&](UOpRef v, UOpRef w) { return composed(b, [&](auto &c) { return compose::logAddExp(c, v, w); }); };
  UOpRef from = either(alpha, shifted(alpha, 1, least));
  from = either(from, b.select(skipsIn, shifted(alpha, 2, least), least));
  UOpRef next = b.add(from, b.pick(now, pathIn, 1));
  UOpRef step = c.make(Op::Func, {next}, {4});
  // Before the first step all is in a state in front of the path, from which the first blank and label are reached.
  UOpRef place = b.iota(DType::I64, {rows, states}, 1);
  UOpRef start = b.select(b.eq(place, b.litInt(DType::I64, 0)), b.lit(t, 0), least);
  UOpRef scan = c.make(Op::Scan, {start, x, path, skips, x->shape[0]}, {1, 1}, {}, DType::Void, {step});
  UOpRef last = c.make(Op::Proj, {scan, rows, states}, {0}, {}, t);
  auto at = [&](UOpRef state) { // [N]
    return b.reshape(b.pick(last, b.reshape(state, {rows, one}), 1), {rows});
  };
  UOpRef end = b.mul(length, b.litInt(DType::I64, 2)), label = b.sub(end, b.litInt(DType::I64, 1));
  UOpRef hasLabel = b.lt(b.litInt(DType::I64, 0), length);
  UOpRef losses = b.un(Op::Neg, either(at(end), b.select(hasLabel, at(label), least)));
  if (r["sum"] != 0) return sumOf(b, losses);
  return mean(b, b.div(losses, b.cast(b.max(length, b.litInt(DType::I64, 1)), t)));
}

struct Row {
  Signature signature;
  Target target;
  Elements make;
  bool isWhole; // gives the scalar itself
};
const Row rows[] = {
    {{"mse", plainParameters, "(x - y)^2"}, Target::Same, squares, false},
    {{"l1", plainParameters, "|x - y|"}, Target::Same, distances, false},
    {{"smooth_l1", smoothParameters, "(x - y)^2 / (2 beta) below beta, |x - y| - beta / 2 beyond"},
     Target::Same,
     smooth,
     false},
    {{"huber", huberParameters, "(x - y)^2 / 2 up to delta, delta (|x - y| - delta / 2) beyond"},
     Target::Same,
     huber,
     false},
    {{"cross_entropy", crossParameters, "-log(softmax(x)) of the target's class"}, Target::Classes, crossEntropy, true},
    {{"nll", nllParameters, "-x of the target's class; x is a logarithm"}, Target::Classes, nll, true},
    {{"multi_margin", hingeParameters, "max(0, margin - x[target] + x[class]) over the other classes"},
     Target::Classes,
     multiMargin,
     true},
    {{"bce", plainParameters, "-(y log(x) + (1 - y) log(1 - x))"}, Target::Same, binary, false},
    {{"bce_with_logits", logitParameters, "bce of sigmoid(x), without overflow"}, Target::Same, binaryOfLogits, false},
    {{"kl_div", klParameters, "y (log(y) - x); x is a logarithm", klRelations}, Target::Same, divergence, false},
    {{"hinge_embedding", hingeParameters, "x where y is 1, max(0, margin - x) where it is -1"},
     Target::Same,
     embeddingHinge,
     false},
    {{"ctc", ctcParameters, "-log of the sum over all alignments of the target (Graves et al. 2006)"},
     Target::Sequence,
     ctc,
     true},
};
} // namespace

llvm::ArrayRef<Signature> nn::losses() {
  static const std::vector<Signature> all = signaturesOf(rows);
  return all;
}
llvm::Expected<Recipe> nn::parseLoss(llvm::StringRef text) { return Recipe::parse(text, losses(), "loss"); }

llvm::Expected<Type> nn::targetOf(Builder &b, const Recipe &recipe, UOpRef x) {
  const Row &row = rows[recipe.row];
  auto fail = [&](const llvm::Twine &why) {
    return llvm::createStringError("loss " + llvm::Twine(row.signature.name) + ": " + why + ", found " +
                                   typeText(x->dtype, x->shape));
  };
  if (x->dtype != DType::F32 && x->dtype != DType::F64) return fail("the prediction must be of type f32 or f64");
  Type t{x->dtype, {x->shape.begin(), x->shape.end()}};
  if (row.target == Target::Classes) {
    if (x->rank() < 2) return fail("expected a prediction [N, C, ...]");
    t.dtype = DType::I64;
    t.shape.erase(t.shape.begin() + 1);
  } else if (row.target == Target::Sequence) {
    if (x->rank() != 3) return fail("expected a prediction [T, N, C]");
    if (int64_t blank = int64_t(recipe["blank"]); blank >= x->shape[2]->hi)
      return fail("'blank' is " + llvm::Twine(blank) + ", expected the number of a class, below " +
                  llvm::Twine(x->shape[2]->hi));
    t = {DType::I64, {x->shape[1], b.dim("target_length", 0, x->shape[0]->hi)}};
  }
  return t;
}

llvm::Expected<UOpRef> nn::loss(Builder &b, const Recipe &recipe, UOpRef x, UOpRef target) {
  const Row &row = rows[recipe.row];
  auto wanted = targetOf(b, recipe, x);
  if (!wanted) return wanted.takeError();
  bool fits = isInt(wanted->dtype) ? isInt(target->dtype) : target->dtype == wanted->dtype;
  size_t last = wanted->shape.size() - (row.target == Target::Sequence); // of any length
  fits &= target->rank() == wanted->shape.size() &&
          llvm::ArrayRef<UOpRef>(wanted->shape).take_front(last) == target->shape.take_front(last);
  if (!fits)
    return llvm::createStringError("loss " + llvm::Twine(row.signature.name) + ": a prediction " +
                                   typeText(x->dtype, x->shape) + " needs a target " +
                                   typeText(wanted->dtype, wanted->shape) + ", found " +
                                   typeText(target->dtype, target->shape));
  UOpRef y = row.make(b, recipe, x, target);
  if (row.isWhole) return y;
  auto asked = [&](llvm::StringRef parameter) {
    return llvm::any_of(row.signature.parameters, [&](const Parameter &p) { return parameter == p.name; }) &&
           recipe[parameter] != 0;
  };
  if (asked("sum")) return sumOf(b, y);
  if (asked("batchmean")) return b.div(sumOf(b, y), b.fromIndex(x->rank() ? x->shape[0] : b.idx(1), x->dtype));
  return mean(b, y);
}

UOpRef nn::classesOf(const Recipe &recipe, UOpRef x) {
  switch (rows[recipe.row].target) {
  case Target::Classes: return x->shape[1];
  case Target::Sequence: return x->shape[2];
  case Target::Same: break;
  }
  return nullptr;
}

bool nn::isOfClasses(const Recipe &recipe) { return rows[recipe.row].target == Target::Classes; }

UOpRef nn::countedTargets(Builder &b, const Recipe &recipe, UOpRef target) {
  if (llvm::none_of(recipe.signature->parameters,
                    [](const Parameter &p) { return llvm::StringRef(p.name) == ignored.name; }))
    return nullptr;
  return b.bin(Op::Ne, b.cast(target, DType::I64), b.litInt(DType::I64, int64_t(recipe[ignored.name])));
}

UOpRef nn::wrongTargets(Builder &b, const Recipe &recipe, UOpRef classes, UOpRef target) {
  UOpRef index = b.cast(target, DType::I64), none = b.litInt(DType::I64, 0);
  UOpRef wrong = b.bin(Op::Or, b.lt(index, none), b.bin(Op::Le, b.fromIndex(classes, DType::I64), index));
  UOpRef counted = countedTargets(b, recipe, target);
  return counted ? b.bin(Op::And, wrong, counted) : wrong;
}

UOpRef nn::logSoftmax(Builder &b, UOpRef x, int64_t axis) {
  return composed(b, [&](auto &c) { return compose::logSoftmax(c, x, {axis}); });
}
