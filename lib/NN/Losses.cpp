//===- Losses.cpp: losses as graphs ----------------------------------------===//
// Takes:    a prediction and a target that fit (`loss` sees to it).
// Gives:    elements, then their mean or sum.
// Keeps:    one row a loss: what its target is, its parameters, its formula.
#include "Elements.h"
#include "astra/Compose/ElementLoss.h"
#include "astra/Compose/Loss.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Text.h"
#include "astra/NN/Loss.h"
#include "llvm/ADT/STLExtras.h"

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

compose::ClassLossOptions classOptions(const Recipe &r) {
  using Reduction = compose::ClassLossOptions::Reduction;
  compose::ClassLossOptions options;
  options.reduction = r["sum"] != 0 ? Reduction::Sum : Reduction::Mean;
  options.ignored = int64_t(r["ignore_index"]);
  return options;
}
UOpRef nll(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  UOpRef index = b.cast(target, DType::I64);
  return composed(b, [&](auto &c) { return negativeLogLikelihood(c, x, index, nullptr, classOptions(r)); });
}
UOpRef crossEntropy(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  UOpRef index = b.cast(target, DType::I64);
  compose::ClassLossOptions options = classOptions(r);
  options.smoothing = r["label_smoothing"];
  return composed(b, [&](auto &c) { return compose::crossEntropy(c, x, index, nullptr, options).loss; });
}
UOpRef multiMargin(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  UOpRef rows = composed(b, [&](auto &c) { return compose::multiMargin(c, x, target, r["margin"]); });
  return r["sum"] != 0 ? sumOf(b, rows) : mean(b, rows);
}

/// The mean is over rows, each divided by the length of its target, as PyTorch has it.
UOpRef ctc(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  UOpRef lengths = nullptr;
  UOpRef losses = composed(b, [&](auto &c) {
    compose::TemporalLoss found = compose::temporalLoss(c, x, target, int64_t(r["blank"]));
    lengths = found.lengths;
    return found.losses;
  });
  if (r["sum"] != 0) return sumOf(b, losses);
  return mean(b, b.div(losses, b.cast(b.max(lengths, b.litInt(DType::I64, 1)), x->dtype)));
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

llvm::Error nn::checkTarget(Builder &b, const Recipe &recipe, const llvm::Twine &what, UOpRef x, UOpRef target) {
  const Row &row = rows[recipe.row];
  auto wanted = targetOf(b, recipe, x);
  if (!wanted) return wanted.takeError();
  bool fits = isInt(wanted->dtype) ? isInt(target->dtype) : target->dtype == wanted->dtype;
  size_t last = wanted->shape.size() - (row.target == Target::Sequence); // of any length
  fits &= target->rank() == wanted->shape.size() &&
          llvm::ArrayRef<UOpRef>(wanted->shape).take_front(last) == target->shape.take_front(last);
  if (fits) return llvm::Error::success();
  return llvm::createStringError(what + ": a prediction " + typeText(x->dtype, x->shape) + " needs a target " +
                                 typeText(wanted->dtype, wanted->shape) + ", found " +
                                 typeText(target->dtype, target->shape));
}

llvm::Expected<UOpRef> nn::loss(Builder &b, const Recipe &recipe, UOpRef x, UOpRef target) {
  const Row &row = rows[recipe.row];
  if (llvm::Error e = checkTarget(b, recipe, "loss " + llvm::Twine(row.signature.name), x, target)) return e;
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
