//===- Schedules.cpp: how the learning rate goes ---------------------------===//
// Takes:    the number of a step.
// Gives:    the factor of the learning rate, in f64.
// Keeps:    PyTorch's definitions (torch.optim.lr_scheduler) with t = step - 1, beyond the end the last value; a warmup
//           goes in a straight line to 1, which its last step has.
#include "Elements.h"
#include "astra/NN/Optimizer.h"
#include <numbers>

using namespace astra;
using namespace astra::nn;

namespace {
constexpr Parameter stepsParameter{"steps", 1000, wholeFromOne, "the number of steps of the whole"},
    warmupParameter{"warmup", 0, wholeFromZero, "steps that lead up to 1"},
    leastParameter{"min", 0, zeroToOne, "the last factor"};
constexpr Parameter stepParameters[] = {{"size", 30, wholeFromOne, "steps from one fall to the next"},
                                        {"gamma", 0.1, notNegative, "the factor of a fall"}};
constexpr Parameter exponentialParameters[] = {{"gamma", 0.99, notNegative, "the factor of a step"}};
constexpr Parameter linearParameters[] = {stepsParameter, warmupParameter, leastParameter};
constexpr Relation linearRelations[] = {
    {[](const Recipe &r) { return r["warmup"] <= r["steps"]; }, "warmup is at most steps"}};
constexpr Parameter warmupParameters[] = {{"steps", 100, wholeFromOne, "steps that lead up to 1"}};
constexpr Parameter cycleParameters[] = {stepsParameter,
                                         {"pct_start", 0.3, zeroToOne, "the part of the steps that leads up"},
                                         {"div_factor", 25, positive, "1 over the first factor"},
                                         {"final_div_factor", 1e4, positive, "the first factor over the last"}};

struct At {
  Builder &b;
  const Recipe &r;
  UOpRef t; // f64, from 0

  UOpRef n(double v) const { return b.lit(DType::F64, v); }
  double operator[](const char *name) const { return r[name]; }
  /// How far t is between two numbers: 0 ... 1, within bounds.
  UOpRef between(double from, double to) const {
    if (!(to > from)) return b.select(b.lt(t, n(from)), n(0), n(1));
    return b.max(b.min(b.div(b.sub(t, n(from)), n(to - from)), n(1)), n(0));
  }
  /// From one number to another along half a cosine.
  UOpRef glide(double from, double to, UOpRef part) const {
    UOpRef wave = b.add(b.un(Op::Cos, b.mul(part, n(std::numbers::pi))), n(1));
    return b.add(n(to), b.mul(n((from - to) / 2), wave));
  }
  UOpRef warmed(double warmup, UOpRef rest) const {
    if (warmup < 1) return rest;
    return b.select(b.lt(t, n(warmup)), b.div(b.add(t, n(1)), n(warmup)), rest);
  }
};

UOpRef constant(const At &a) { return a.n(1); }
UOpRef step(const At &a) { return a.b.bin(Op::Pow, a.n(a["gamma"]), a.b.un(Op::Floor, a.b.div(a.t, a.n(a["size"])))); }
UOpRef exponential(const At &a) { return a.b.bin(Op::Pow, a.n(a["gamma"]), a.t); }
UOpRef warmup(const At &a) { return a.warmed(a["steps"], a.n(1)); }
UOpRef linear(const At &a) {
  UOpRef part = a.between(a["warmup"], a["steps"]);
  return a.warmed(a["warmup"], a.b.sub(a.n(1), a.b.mul(part, a.n(1 - a["min"]))));
}
UOpRef cosine(const At &a) { return a.warmed(a["warmup"], a.glide(1, a["min"], a.between(a["warmup"], a["steps"]))); }
UOpRef oneCycle(const At &a) {
  double first = 1 / a["div_factor"], last = first / a["final_div_factor"], top = a["pct_start"] * a["steps"] - 1;
  UOpRef up = a.glide(first, 1, a.between(0, top)), down = a.glide(1, last, a.between(top, a["steps"] - 1));
  return a.b.select(a.b.bin(Op::Le, a.t, a.n(top)), up, down);
}

struct Row {
  Signature signature;
  UOpRef (*factor)(const At &);
};
const Row rows[] = {
    {{"constant", {}, "1"}, constant},
    {{"step", stepParameters, "falls by gamma every `size` steps"}, step},
    {{"exponential", exponentialParameters, "falls by gamma every step"}, exponential},
    {{"warmup", warmupParameters, "up to 1 in a straight line"}, warmup},
    {{"linear", linearParameters, "down to `min` in a straight line", linearRelations}, linear},
    {{"cosine", linearParameters, "down to `min` along half a cosine (Loshchilov and Hutter 2016)", linearRelations},
     cosine},
    {{"one_cycle", cycleParameters, "up and down along cosines (Smith and Topin 2017)"}, oneCycle},
};
} // namespace

llvm::ArrayRef<Signature> nn::schedules() {
  static const std::vector<Signature> all = signaturesOf(rows);
  return all;
}
llvm::Expected<Recipe> nn::parseSchedule(llvm::StringRef text) { return Recipe::parse(text, schedules(), "schedule"); }

UOpRef nn::rateAt(Builder &b, const Recipe &optimizer, const Recipe &schedule, UOpRef count) {
  UOpRef t = b.sub(count, b.lit(DType::F64, 1));
  return b.mul(b.lit(DType::F64, optimizer["lr"]), rows[schedule.row].factor({b, schedule, t}));
}
