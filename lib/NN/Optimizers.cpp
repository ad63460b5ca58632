//===- Optimizers.cpp: optimizers as graphs --------------------------------===//
// Takes:    a parameter, its gradient, what is kept of it, the rate and the number of the step.
// Gives:    their next values.
// Keeps:    one row an optimizer: its parameters, what it keeps, its step.
#include "Elements.h"
#include "astra/NN/Optimizer.h"
#include <cmath>

using namespace astra;
using namespace astra::nn;
using llvm::ArrayRef;

namespace {
constexpr Parameter rateOf(double v) { return {"lr", v, notNegative, "the learning rate"}; }
constexpr Parameter decayOf(double v) {
  return {"weight_decay", v, notNegative, "how much of the parameter is taken away"};
}
constexpr Parameter beta1{"beta1", 0.9, zeroToBelowOne, "what the mean of gradients keeps"},
    beta2{"beta2", 0.999, zeroToBelowOne, "what the mean of squares keeps"};
constexpr Parameter epsOf(double v) { return {"eps", v, notNegative, "added to the divisor"}; }

constexpr Parameter sgdParameters[] = {rateOf(1e-3),
                                       {"momentum", 0, zeroToOne, "what the mean of gradients keeps"},
                                       {"dampening", 0, zeroToOne, "the part of a gradient that is left out"},
                                       {"nesterov", 0, yesOrNo, "1: look ahead"},
                                       decayOf(0)};
constexpr Relation sgdRelations[] = {
    {[](const Recipe &r) { return r["nesterov"] == 0 || (r["momentum"] > 0 && r["dampening"] == 0); },
     "nesterov goes with a momentum above 0 and a dampening of 0"}};
constexpr Parameter adamParameters[] = {rateOf(1e-3), beta1, beta2, epsOf(1e-8), decayOf(0)};
constexpr Parameter adamwParameters[] = {rateOf(1e-3), beta1, beta2, epsOf(1e-8), decayOf(1e-2)};
constexpr Parameter rmspropParameters[] = {rateOf(1e-2),
                                           {"alpha", 0.99, zeroToOne, "what the mean of squares keeps"},
                                           epsOf(1e-8),
                                           decayOf(0),
                                           {"momentum", 0, zeroToOne, "what the mean of steps keeps"},
                                           {"centered", 0, yesOrNo, "1: by the variance"}};
constexpr Parameter adagradParameters[] = {rateOf(1e-2),
                                           {"lr_decay", 0, notNegative, "of the rate, a step"},
                                           decayOf(0),
                                           {"initial_accumulator_value", 0, notNegative, "of the sum of squares"},
                                           epsOf(1e-10)};
constexpr Parameter lionParameters[] = {
    rateOf(1e-4),
    beta1,
    {"beta2", 0.99, zeroToBelowOne, "what the mean of gradients keeps for the next step"},
    decayOf(0)};
constexpr Parameter lambParameters[] = {rateOf(1e-3), beta1, beta2, epsOf(1e-6), decayOf(0)};
constexpr Parameter muonParameters[] = {
    rateOf(1e-3),
    {"momentum", 0.95, zeroToOne, "what the mean of gradients keeps"},
    {"nesterov", 1, yesOrNo, "1: look ahead"},
    {"steps", 5, Bounds{.least = 0, .most = 99, .whole = true}, "of the Newton-Schulz iteration"},
    decayOf(0.1),
    beta1,
    beta2,
    epsOf(1e-8)};

/// What a step sees.
struct At {
  Builder &b;
  const Recipe &r;
  UOpRef x, g;
  ArrayRef<UOpRef> kept;
  UOpRef rate, count; // f64

  double operator[](const char *name) const { return r[name]; }
  UOpRef n(double v) const { return b.lit(x->dtype, v); }
  /// An f64 scalar, rounded once.
  UOpRef here(UOpRef scalar) const { return b.cast(scalar, x->dtype); }
  UOpRef mix(UOpRef old, UOpRef now, double keeps) const { // old * keeps + now * (1 - keeps)
    return b.add(b.mul(old, n(keeps)), b.mul(now, n(1 - keeps)));
  }
  /// 1 - beta^count: what a mean that began at 0 is divided by.
  UOpRef correction(double beta) const {
    return b.sub(b.lit(DType::F64, 1), b.bin(Op::Pow, b.lit(DType::F64, beta), count));
  }
  /// The gradient with the weight decay that older optimizers add to it.
  UOpRef decayed() const { return r["weight_decay"] == 0 ? g : b.add(g, b.mul(x, n(r["weight_decay"]))); }
  /// The parameter less its decay, which newer ones take from it directly.
  UOpRef shrunk() const {
    if (r["weight_decay"] == 0) return x;
    return b.mul(x, here(b.sub(b.lit(DType::F64, 1), b.mul(rate, b.lit(DType::F64, r["weight_decay"])))));
  }
};

Update sgd(const At &a) {
  Builder &b = a.b;
  UOpRef g = a.decayed();
  if (a["momentum"] == 0) return {b.sub(a.x, b.mul(g, a.here(a.rate))), {}};
  UOpRef first = b.eq(a.count, b.lit(DType::F64, 1)), go = b.mul(a.kept[0], a.n(a["momentum"]));
  UOpRef mean = b.select(b.splat(first, g->shape), g, b.add(go, b.mul(g, a.n(1 - a["dampening"]))));
  UOpRef step = a["nesterov"] != 0 ? b.add(g, b.mul(mean, a.n(a["momentum"]))) : mean;
  return {b.sub(a.x, b.mul(step, a.here(a.rate))), {mean}};
}

struct Moments {
  UOpRef mean, squares;
};
Moments moments(const At &a, UOpRef g) {
  return {a.mix(a.kept[0], g, a["beta1"]), a.mix(a.kept[1], a.b.mul(g, g), a["beta2"])};
}
/// x - rate / c1 * mean / (sqrt(squares) / sqrt(c2) + eps)
Update adamStep(const At &a, UOpRef x, Moments m) {
  Builder &b = a.b;
  UOpRef rate = a.here(b.div(a.rate, a.correction(a["beta1"]))),
         root = a.here(b.un(Op::Sqrt, a.correction(a["beta2"])));
  UOpRef divisor = b.add(b.div(b.un(Op::Sqrt, m.squares), root), a.n(a["eps"]));
  return {b.sub(x, b.mul(rate, b.div(m.mean, divisor))), {m.mean, m.squares}};
}
Update adam(const At &a) { return adamStep(a, a.x, moments(a, a.decayed())); }
Update adamw(const At &a) { return adamStep(a, a.shrunk(), moments(a, a.g)); }

Update rmsprop(const At &a) {
  Builder &b = a.b;
  UOpRef g = a.decayed(), squares = a.mix(a.kept[0], b.mul(g, g), a["alpha"]), variance = squares;
  Update u{nullptr, {squares}};
  if (a["centered"] != 0) {
    UOpRef mean = a.mix(a.kept[u.slots.size()], g, a["alpha"]);
    u.slots.push_back(mean);
    variance = b.sub(squares, b.mul(mean, mean));
  }
  UOpRef step = b.div(g, b.add(b.un(Op::Sqrt, variance), a.n(a["eps"])));
  if (a["momentum"] != 0) {
    step = b.add(b.mul(a.kept[u.slots.size()], a.n(a["momentum"])), step);
    u.slots.push_back(step);
  }
  u.value = b.sub(a.x, b.mul(step, a.here(a.rate)));
  return u;
}

Update adagrad(const At &a) {
  Builder &b = a.b;
  UOpRef one = b.lit(DType::F64, 1), g = a.decayed(), sum = b.add(a.kept[0], b.mul(g, g));
  UOpRef rate = b.div(a.rate, b.add(one, b.mul(b.sub(a.count, one), b.lit(DType::F64, a["lr_decay"]))));
  return {b.sub(a.x, b.mul(a.here(rate), b.div(g, b.add(b.un(Op::Sqrt, sum), a.n(a["eps"]))))), {sum}};
}

Update lion(const At &a) {
  Builder &b = a.b;
  UOpRef zero = a.n(0), mixed = a.mix(a.kept[0], a.g, a["beta1"]);
  UOpRef sign = b.select(b.lt(zero, mixed), a.n(1), b.select(b.lt(mixed, zero), a.n(-1), b.splat(zero, mixed->shape)));
  return {b.sub(a.shrunk(), b.mul(sign, a.here(a.rate))), {a.mix(a.kept[0], a.g, a["beta2"])}};
}

UOpRef normOf(Builder &b, UOpRef x) { return b.un(Op::Sqrt, sumOf(b, b.mul(x, x))); }

Update lamb(const At &a) {
  Builder &b = a.b;
  Moments m = moments(a, a.g);
  UOpRef mean = b.div(m.mean, a.here(a.correction(a["beta1"]))),
         squares = b.div(m.squares, a.here(a.correction(a["beta2"])));
  UOpRef step = b.add(b.div(mean, b.add(b.un(Op::Sqrt, squares), a.n(a["eps"]))), b.mul(a.x, a.n(a["weight_decay"])));
  UOpRef own = normOf(b, a.x), its = normOf(b, step), zero = a.n(0), one = a.n(1);
  UOpRef some = b.bin(Op::And, b.lt(zero, own), b.lt(zero, its));
  UOpRef trust = b.select(some, b.div(own, b.select(some, its, one)), one);
  return {b.sub(a.x, b.mul(step, b.mul(trust, a.here(a.rate)))), {m.mean, m.squares}};
}

UOpRef turned(Builder &b, UOpRef x) { return b.permute(x, {1, 0}); }
/// The nearest orthogonal matrix, about: the quintic iteration of Jordan (2024), whose coefficients bring every
/// singular value near 1.
UOpRef orthogonal(const At &a, UOpRef x) {
  Builder &b = a.b;
  bool tall = x->shape[0]->lo > x->shape[1]->hi;
  if (tall) x = turned(b, x);
  x = b.div(x, b.max(normOf(b, x), a.n(1e-7)));
  for (int i = 0; i < int(a["steps"]); ++i) {
    UOpRef gram = b.matmul(x, turned(b, x));
    UOpRef mixed = b.add(b.mul(gram, a.n(-4.7750)), b.mul(b.matmul(gram, gram), a.n(2.0315)));
    x = b.add(b.mul(x, a.n(3.4445)), b.matmul(mixed, x));
  }
  return tall ? turned(b, x) : x;
}
/// Of matrices; what is none goes the way of adamw.
Update muon(const At &a) {
  if (a.x->rank() != 2) return adamw(a);
  Builder &b = a.b;
  UOpRef mean = a.mix(a.kept[0], a.g, a["momentum"]),
         step = a["nesterov"] != 0 ? a.mix(mean, a.g, a["momentum"]) : mean;
  UOpRef rows = b.fromIndex(a.x->shape[0], DType::F64), columns = b.fromIndex(a.x->shape[1], DType::F64);
  UOpRef scale = b.un(Op::Sqrt, b.max(b.div(rows, columns), b.lit(DType::F64, 1)));
  return {b.sub(a.shrunk(), b.mul(orthogonal(a, step), a.here(b.mul(a.rate, scale)))), {mean}};
}

// All names that rows below give.
constexpr llvm::StringLiteral slotNames[] = {"mean", "squares", "steps"};

using Slots = llvm::SmallVector<Slot, 3>;
Slots none(const Recipe &, unsigned) { return {}; }
Slots one(const Recipe &, unsigned) { return {{"mean", 0}}; }
Slots two(const Recipe &, unsigned) { return {{"mean", 0}, {"squares", 0}}; }
Slots ofSgd(const Recipe &r, unsigned rank) { return r["momentum"] == 0 ? none(r, rank) : one(r, rank); }
Slots ofRmsprop(const Recipe &r, unsigned) {
  Slots s{{"squares", 0}};
  if (r["centered"] != 0) s.push_back({"mean", 0});
  if (r["momentum"] != 0) s.push_back({"steps", 0});
  return s;
}
Slots ofAdagrad(const Recipe &r, unsigned) { return {{"squares", r["initial_accumulator_value"]}}; }
Slots ofMuon(const Recipe &r, unsigned rank) { return rank == 2 ? one(r, rank) : two(r, rank); }

struct Row {
  Signature signature;
  Slots (*slots)(const Recipe &, unsigned rank);
  Update (*step)(const At &);
};
const Row rows[] = {
    {{"sgd", sgdParameters, "stochastic gradient descent; momentum as Sutskever et al. 2013", sgdRelations},
     ofSgd,
     sgd},
    {{"adam", adamParameters, "Kingma and Ba 2014"}, two, adam},
    {{"adamw", adamwParameters, "Loshchilov and Hutter 2017"}, two, adamw},
    {{"rmsprop", rmspropParameters, "Hinton 2012; centered as Graves 2013"}, ofRmsprop, rmsprop},
    {{"adagrad", adagradParameters, "Duchi et al. 2011"}, ofAdagrad, adagrad},
    {{"lion", lionParameters, "Chen et al. 2023"}, one, lion},
    {{"lamb", lambParameters, "You et al. 2019"}, two, lamb},
    {{"muon", muonParameters, "Jordan 2024, of matrices; adamw for all else"}, ofMuon, muon},
};
} // namespace

llvm::ArrayRef<Signature> nn::optimizers() {
  static const std::vector<Signature> all = signaturesOf(rows);
  return all;
}
llvm::Expected<Recipe> nn::parseOptimizer(llvm::StringRef text) {
  return Recipe::parse(text, optimizers(), "optimizer");
}

llvm::SmallVector<Slot, 3> nn::slots(const Recipe &optimizer, unsigned rank) {
  return rows[optimizer.row].slots(optimizer, rank);
}

bool nn::isSlot(llvm::StringRef name) { return llvm::is_contained(slotNames, name); }

Update nn::update(Builder &b, const Recipe &optimizer, UOpRef value, UOpRef gradient, ArrayRef<UOpRef> slots,
                  UOpRef rate, UOpRef count) {
  return rows[optimizer.row].step({b, optimizer, value, gradient, slots, rate, count});
}

llvm::SmallVector<UOpRef> nn::clipNorm(Builder &b, ArrayRef<UOpRef> gradients, double most) {
  UOpRef squares = b.lit(DType::F64, 0);
  for (UOpRef g : gradients) squares = b.add(squares, b.cast(sumOf(b, b.mul(g, g)), DType::F64));
  UOpRef limit = b.lit(DType::F64, most), norm = b.add(b.un(Op::Sqrt, squares), b.lit(DType::F64, 1e-6));
  UOpRef factor = b.min(b.div(limit, norm), b.lit(DType::F64, 1));
  llvm::SmallVector<UOpRef> scaled;
  for (UOpRef g : gradients) scaled.push_back(b.mul(g, b.cast(factor, g->dtype)));
  return scaled;
}
