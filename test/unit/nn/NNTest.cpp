//===- NNTest.cpp: what training is made of, beside PyTorch ----------------===//
// Takes:    expected.txt, which make_expected.py writes with PyTorch.
// Gives:    the reference evaluator's values, within 1e-15 of the expected ones in f64, 6e-7 in f32, over the largest
//           magnitude: a tolerance, since the question is whether the meaning is what people expect.
#include "astra/Autograd/Autograd.h"
#include "astra/IR/Eval.h"
#include "astra/NN/Initializer.h"
#include "astra/NN/Loss.h"
#include "astra/NN/LossScale.h"
#include "astra/NN/Metric.h"
#include "astra/NN/Optimizer.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Random.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <set>

using namespace astra;
using namespace astra::nn;
using llvm::StringRef;

namespace {
struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
Numbers numbers(StringRef text) {
  Numbers n;
  auto [shape, values] = text.split(':');
  llvm::SmallVector<StringRef, 8> items;
  shape.split(items, ',', -1, false);
  for (StringRef s : items) n.shape.push_back(std::stoll(s.str()));
  items.clear();
  values.split(items, ',', -1, false);
  for (StringRef s : items) n.values.push_back(std::strtod(s.str().c_str(), nullptr));
  return n;
}
template <class T> void append(Tensor &t, T v) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(&v);
  t.bytes.insert(t.bytes.end(), bytes, bytes + sizeof v);
}
Tensor tensor(const Numbers &n, DType t) {
  Tensor result{t, n.shape, {}};
  for (double v : n.values)
    if (t == DType::F32)
      append(result, float(v));
    else if (t == DType::F64)
      append(result, v);
    else
      append(result, int64_t(v));
  return result;
}
std::vector<double> values(const Tensor &t) {
  std::vector<double> result;
  for (int64_t i = 0; i < t.count(); ++i) {
    float f;
    double d;
    if (t.dtype == DType::F32) {
      std::memcpy(&f, &t.bytes[i * 4], 4);
      result.push_back(f);
    } else {
      std::memcpy(&d, &t.bytes[i * 8], 8);
      result.push_back(d);
    }
  }
  return result;
}

/// One line of the file.
struct Line {
  StringRef kind, recipe, text;
  DType type;
  Numbers a, b, expected, gradient;
};
const std::vector<Line> &lines() {
  static const auto file = llvm::MemoryBuffer::getFile(ASTRA_EXPECTED);
  static const std::vector<Line> all = [] {
    std::vector<Line> list;
    llvm::SmallVector<StringRef, 128> rows;
    (*file)->getBuffer().split(rows, '\n', -1, false);
    for (StringRef row : rows) {
      llvm::SmallVector<StringRef, 6> f;
      row.split(f, '|');
      f.resize(6);
      auto [kind, recipe] = f[0].split(' ');
      list.push_back({kind, recipe, f[0], f[1] == "f32" ? DType::F32 : DType::F64, numbers(f[2]), numbers(f[3]),
                      numbers(f[4]), numbers(f[5])});
    }
    return list;
  }();
  return all;
}

struct Graph {
  Context c;
  Builder b{c};
  EvalInputs in;
  UOpRef input(const Numbers &n, DType t) {
    llvm::SmallVector<UOpRef> shape;
    for (int64_t e : n.shape) shape.push_back(c.index(e));
    in.inputs.push_back(tensor(n, t));
    return b.arg(in.inputs.size() - 1, t, shape);
  }
  std::vector<double> values(llvm::ArrayRef<UOpRef> roots) {
    EvalOptions options;
    options.function = evalFunction;
    auto r = evalNodes(roots, in, options);
    if (!r) {
      ADD_FAILURE() << llvm::toString(r.takeError());
      return {};
    }
    std::vector<double> all;
    for (const Tensor &t : *r)
      for (double v : ::values(t)) all.push_back(v);
    return all;
  }
};

struct Tolerances {
  double f32 = 6e-7, f64 = 1e-15; // three times what is seen
};
void expectNear(const Line &line, const Numbers &expected, const std::vector<double> &found, Tolerances t = {}) {
  ASSERT_EQ(found.size(), expected.values.size()) << line.text.str();
  double most = 0, tolerance = line.type == DType::F32 ? t.f32 : t.f64;
  for (double v : expected.values) most = std::max(most, std::fabs(v));
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_LE(std::fabs(found[i] - expected.values[i]), tolerance * most)
        << line.text.str() << ", number " << i << ": " << found[i] << " instead of " << expected.values[i];
}
void expectNear(const Line &line, const std::vector<double> &found) { expectNear(line, line.expected, found); }
/// Tensor i of a stack of them.
Numbers part(const Numbers &n, size_t i) {
  Numbers p{{n.shape.begin() + 1, n.shape.end()}, {}};
  size_t count = n.values.size() / n.shape[0];
  p.values.assign(n.values.begin() + i * count, n.values.begin() + (i + 1) * count);
  return p;
}

TEST(NN, LossesAreThoseOfPyTorch) {
  std::set<std::string> seen;
  for (const Line &line : lines()) {
    if (line.kind != "loss") continue;
    auto recipe = parseLoss(line.recipe);
    ASSERT_TRUE(bool(recipe)) << llvm::toString(recipe.takeError());
    seen.insert(recipe->signature->name);
    Graph g;
    bool same = line.a.shape == line.b.shape;
    UOpRef x = g.input(line.a, line.type), target = g.input(line.b, same ? line.type : DType::I64);
    auto value = loss(g.b, *recipe, x, target);
    ASSERT_TRUE(bool(value)) << llvm::toString(value.takeError());
    expectNear(line, g.values({*value}));
  }
  for (const Signature &s : losses()) EXPECT_TRUE(seen.count(s.name)) << s.name << " has no line";
}

/// Reverse mode, as training takes it.
TEST(NN, GradientsOfLossesAreThoseOfPyTorch) {
  for (const Line &line : lines()) {
    if (line.kind != "loss") continue;
    Recipe recipe = llvm::cantFail(parseLoss(line.recipe));
    Graph g;
    StringRef name = recipe.signature->name;
    bool same = line.a.shape == line.b.shape, isCtc = name == "ctc";
    UOpRef x = g.input(line.a, line.type), target = g.input(line.b, same ? line.type : DType::I64);
    UOpRef value = llvm::cantFail(loss(g.b, recipe, isCtc ? logSoftmax(g.b, x, 2) : x, target));
    auto d = vjp(g.c, value, g.b.lit(line.type, 1), x);
    ASSERT_TRUE(bool(d)) << line.text.str() << ": " << llvm::toString(d.takeError());
    Tolerances t;
    if (isCtc) t.f64 = 1.5e-14; // logarithms near 10
    // The 1e-12 that is divided by where x is 0 or 1 is a float in PyTorch.
    if (name == "bce" && llvm::is_contained(line.a.values, 0.0)) t.f64 = 5e-9;
    expectNear(line, line.gradient, g.values(d->derivatives), t);
  }
}

TEST(NN, OptimizersAreThoseOfPyTorchAndThePapers) {
  std::set<std::string> seen;
  for (const Line &line : lines()) {
    if (line.kind != "optimizer") continue;
    auto recipe = parseOptimizer(line.recipe);
    ASSERT_TRUE(bool(recipe)) << llvm::toString(recipe.takeError());
    seen.insert(recipe->signature->name);
    Recipe constant = llvm::cantFail(parseSchedule("constant"));
    Graph g;
    Update now{g.input(line.a, line.type), {}};
    for (const Slot &s : slots(*recipe, now.value->rank()))
      now.slots.push_back(g.b.splat(g.b.lit(line.type, s.initial), now.value->shape));
    for (int64_t step = 1; step <= line.b.shape[0]; ++step) {
      UOpRef count = g.b.lit(DType::F64, double(step)), gradient = g.input(part(line.b, step - 1), line.type);
      UOpRef value = now.value;
      auto kept = now.slots;
      now = update(g.b, *recipe, value, gradient, kept, rateAt(g.b, *recipe, constant, count), count);
      ASSERT_EQ(now.slots.size(), kept.size()) << line.text.str();
    }
    expectNear(line, g.values({now.value}));
  }
  for (const Signature &s : optimizers()) EXPECT_TRUE(seen.count(s.name)) << s.name << " has no line";
}

TEST(NN, EveryTensorOfAnOptimizerHasAKnownName) {
  size_t kept = 0;
  for (const Signature &s : optimizers())
    for (const char *more : {"", "momentum=0.5", "momentum=0.5, centered=1"})
      for (unsigned rank : {1u, 2u}) {
        auto recipe = parseOptimizer((llvm::Twine(s.name) + "(lr=0.1" + (*more ? ", " : "") + more + ")").str());
        if (!recipe) {
          llvm::consumeError(recipe.takeError()); // it has no such parameter
          continue;
        }
        for (const Slot &slot : slots(*recipe, rank)) {
          EXPECT_TRUE(isSlot(slot.name)) << slot.name;
          ++kept;
        }
      }
  EXPECT_GT(kept, 30u);
  EXPECT_FALSE(isSlot("ema"));
}

TEST(NN, SchedulesAreThoseOfPyTorch) {
  std::set<std::string> seen;
  Recipe sgd = llvm::cantFail(parseOptimizer("sgd(lr=1)"));
  for (const Line &line : lines()) {
    if (line.kind != "schedule") continue;
    auto recipe = parseSchedule(line.recipe);
    ASSERT_TRUE(bool(recipe)) << llvm::toString(recipe.takeError());
    seen.insert(recipe->signature->name);
    Graph g;
    std::vector<UOpRef> rates;
    for (size_t step = 1; step <= line.expected.values.size(); ++step)
      rates.push_back(rateAt(g.b, sgd, *recipe, g.b.lit(DType::F64, double(step))));
    expectNear(line, g.values(rates));
  }
  for (const Signature &s : schedules()) EXPECT_TRUE(seen.count(s.name)) << s.name << " has no line";
}

TEST(NN, ClippingIsPyTorchs) {
  for (const Line &line : lines()) {
    if (line.kind != "clip") continue;
    Graph g;
    std::vector<UOpRef> gradients;
    for (int64_t i = 0; i < line.a.shape[0]; ++i) gradients.push_back(g.input(part(line.a, i), line.type));
    auto clipped = clipNorm(g.b, gradients, std::stod(line.recipe.str()));
    expectNear(line, g.values(clipped));
  }
}

TEST(NN, LossScales) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  auto step = [&](const char *recipe, double factor, double steps, std::vector<double> gradient) {
    Graph g;
    Recipe r = llvm::cantFail(parseLossScale(recipe));
    LossScale::Kept kept;
    if (LossScale::isDynamic(r)) kept = {g.input({{}, {factor}}, DType::F32), g.b.litInt(DType::I64, int64_t(steps))};
    LossScale scale(g.b, r, kept);
    auto out = scale.unscaled({g.input({{2}, std::move(gradient)}, DType::F32), g.input({{}, {8}}, DType::F64)});
    UOpRef before = g.input({{2}, {1, 2}}, DType::F32), now = g.input({{2}, {3, 4}}, DType::F32);
    out.push_back(scale.chosen(before, now));
    if (!scale.isFinite()) return g.values(out);
    LossScale::Kept next = scale.next();
    out.push_back(next.factor);
    out.push_back(g.b.cast(next.steps, DType::F64));
    return g.values(out);
  };
  using V = std::vector<double>;
  EXPECT_EQ(step("none", 0, 0, {4, -2}), (V{4, -2, 8, 3, 4}));
  EXPECT_EQ(step("static(scale=4)", 0, 0, {4, inf}), (V{1, inf, 2, 3, 4}));
  const char *dynamic = "dynamic(scale=16, interval=3, growth=4, most=100)";
  EXPECT_EQ(step(dynamic, 16, 0, {32, -8}), (V{2, -0.5, 0.5, 3, 4, 16, 1}));
  EXPECT_EQ(step(dynamic, 16, 2, {32, -8}), (V{2, -0.5, 0.5, 3, 4, 64, 0}));
  EXPECT_EQ(step(dynamic, 64, 2, {64, 0}), (V{1, 0, 0.125, 3, 4, 100, 0})); // the greatest scale
  EXPECT_EQ(step(dynamic, 16, 2, {-inf, 0}), (V{-inf, 0, 0.5, 1, 2, 8, 0}));
  auto after = step(dynamic, 16, 1, {nan, 0});
  EXPECT_EQ(V(after.begin() + 3, after.end()), (V{1, 2, 8, 0}));
  EXPECT_EQ(step(dynamic, 0x1p-100, 1, {inf, 0})[5], 0x1p-100); // the least
  EXPECT_EQ(LossScale::first(llvm::cantFail(parseLossScale("none"))), std::nullopt);
  EXPECT_EQ(LossScale::first(llvm::cantFail(parseLossScale("dynamic"))), 65536.0f);
}

TEST(NN, MetricsAreThoseOfPyTorch) {
  std::set<std::pair<std::string, DType>> seen;
  for (const Line &line : lines()) {
    if (line.kind != "metric") continue;
    auto [recipe, ofLoss] = line.recipe.split(" of ");
    Recipe m = llvm::cantFail(parseMetric(recipe)), l = llvm::cantFail(parseLoss(ofLoss));
    seen.insert({m.signature->name, line.type});
    Graph g;
    bool same = line.a.shape == line.b.shape;
    UOpRef x = g.input(line.a, line.type), target = g.input(line.b, same ? line.type : DType::I64);
    auto value = metric(g.b, m, l, x, target);
    ASSERT_TRUE(bool(value)) << line.text.str() << ": " << llvm::toString(value.takeError());
    expectNear(line, g.values({*value}));
  }
  for (const Signature &s : metrics())
    for (DType t : {DType::F32, DType::F64}) EXPECT_TRUE(seen.count({s.name, t})) << s.name << " has no line";
}

/// What the lines do not show: equal classes, numbers that are none, refusals.
TEST(NN, Metrics) {
  Graph g;
  auto value = [&](const char *recipe, const char *loss, UOpRef x, UOpRef target) {
    auto v = metric(g.b, llvm::cantFail(parseMetric(recipe)), llvm::cantFail(parseLoss(loss)), x, target);
    return v ? std::to_string(g.values({*v})[0]) : llvm::toString(v.takeError());
  };
  // The first of the greatest is the greatest.
  UOpRef x = g.input({{3, 2}, {1, 2, 3, 3, 0, -1}}, DType::F32), target = g.input({{3}, {1, 0, 1}}, DType::I64);
  EXPECT_EQ(value("accuracy", "cross_entropy", x, target), "0.666667");
  EXPECT_EQ(value("top(k=1)", "cross_entropy", x, target), "0.666667");
  EXPECT_EQ(value("top(k=2)", "cross_entropy", x, target), "1.000000");
  // What the loss ignores does not count; a number of no class is no hit.
  EXPECT_EQ(value("accuracy", "cross_entropy(ignore_index=0)", x, target), "0.500000");
  EXPECT_EQ(value("top(k=1)", "cross_entropy(ignore_index=0)", x, target), "0.500000");
  EXPECT_EQ(value("accuracy", "multi_margin", x, target), "0.666667");
  // Four classes at each of two places: [N, C, place]. At the second the target's class is equal to one before it.
  double nan = std::nan("");
  UOpRef wide = g.input({{2, 4, 2}, {5, 1, 4, 7, 3, 7, 2, 0, 1, 1, nan, nan, 3, 3, 4, 4}}, DType::F64),
         places = g.input({{2, 2}, {2, 2, 3, 1}}, DType::I64);
  EXPECT_EQ(value("top(k=1)", "cross_entropy", wide, places), "0.000000");
  EXPECT_EQ(value("top(k=2)", "cross_entropy", wide, places), "0.500000"); // NaN is ahead of 4
  EXPECT_EQ(value("top(k=3)", "cross_entropy", wide, places), "0.750000"); // NaN is never among the greatest
  UOpRef y = g.input({{3, 2}, {1, 4, 0, 3, 0, -2}}, DType::F32);
  EXPECT_EQ(value("squared_error", "huber", x, y), "2.333333");
  EXPECT_EQ(value("absolute_error", "huber", x, y), "1.000000");
  EXPECT_EQ(value("squared_error", "cross_entropy", x, target),
            "metric squared_error: is of numbers, the loss cross_entropy is not");
  EXPECT_EQ(value("accuracy", "mse", x, y), "metric accuracy: is of classes, the loss mse is not");
  auto sentence = [](const char *text) { return llvm::toString(parseMetric(text).takeError()); };
  EXPECT_EQ(sentence("top(k=0)"),
            "metric 'top(k=0)': 'k' is '0', expected a whole number, at least 1 and at most 1000000");
  EXPECT_EQ(nameOf(llvm::cantFail(parseMetric("top"))), "top5");
  EXPECT_EQ(nameOf(llvm::cantFail(parseMetric("accuracy"))), "accuracy");
}

/// What is drawn over what a distribution of width 1 draws of the same numbers is the width, wherever it is not 0 / 0.
TEST(NN, InitializersAreAsWideAsPyTorchs) {
  std::set<std::string> seen = {"constant",   "uniform", "normal", "trunc_normal",
                                "orthogonal", "eye",     "dirac",  "sparse", // below
                                "default"};                                  // RolesTest.cpp
  for (const Line &line : lines()) {
    if (line.kind != "init") continue;
    Recipe recipe = llvm::cantFail(parseInitializer(line.recipe));
    seen.insert(recipe.signature->name);
    Graph g;
    UOpRef like = g.input(line.a, line.type), seed = g.b.bits(DType::U32, 7);
    bool even = StringRef(recipe.signature->name).ends_with("uniform");
    Recipe unit = llvm::cantFail(parseInitializer(even ? "uniform(low=-1, high=1)" : "normal"));
    std::vector<double> drawn = g.values({*initial(g.b, recipe, like, seed, 3)}),
                        ones = g.values({*initial(g.b, unit, like, seed, 3)});
    ASSERT_EQ(drawn.size(), line.a.values.size());
    for (auto [d, one] : llvm::zip(drawn, ones))
      ASSERT_NEAR(d, one * line.expected.values[0], 1e-14 * line.expected.values[0]) << line.text.str();
  }
  for (const Signature &s : initializers()) EXPECT_TRUE(seen.count(s.name)) << s.name << " has no line";
}

TEST(NN, InitializersDrawTheContractsNumbers) {
  Graph g;
  UOpRef like = g.input({{3, 1000}, std::vector<double>(3000)}, DType::F32), seed = g.b.bits(DType::U32, 7);
  auto drawn = [&](const char *recipe, uint32_t stream) {
    return g.values({*initial(g.b, llvm::cantFail(parseInitializer(recipe)), like, seed, stream)});
  };
  EXPECT_EQ(drawn("uniform", 5),
            g.values({randomUniform(g.b, seed, g.b.bits(DType::U32, 5), DType::F32, like->shape)}));
  EXPECT_EQ(drawn("normal", 5), g.values({randomNormal(g.b, seed, g.b.bits(DType::U32, 5), DType::F32, like->shape)}));
  EXPECT_NE(drawn("uniform", 5), drawn("uniform", 6));
  EXPECT_EQ(drawn("constant(value=0.5)", 5), std::vector<double>(3000, 0.5));
  for (double v : drawn("uniform(low=-0.25, high=0.5)", 1)) EXPECT_TRUE(v >= -0.25 && v < 0.5) << v;
  double sum = 0, squares = 0;
  for (double v : drawn("normal(mean=2, std=0.5)", 1)) sum += v, squares += (v - 2) * (v - 2);
  EXPECT_NEAR(sum / 3000, 2, 0.03); // three deviations of the mean
  EXPECT_NEAR(std::sqrt(squares / 3000), 0.5, 0.02);
  UOpRef bias = g.b.state("bias", DType::F32, {g.c.index(4)});
  EXPECT_EQ(llvm::toString(initial(g.b, llvm::cantFail(parseInitializer("kaiming_normal")), bias, seed, 0).takeError()),
            "initializer kaiming_normal: goes by the inputs of a weight [out, in, ...], found 'bias' f32[4]");
  EXPECT_EQ(llvm::toString(initial(g.b, llvm::cantFail(parseInitializer("default")), bias, seed, 0).takeError()),
            "initializer default: goes by the role of a parameter in a model, found 'bias' f32[4]");
}

TEST(NN, InitializersThatDrawNothingAreThoseOfPyTorch) {
  std::set<std::string> seen;
  for (const Line &line : lines()) {
    if (line.kind != "matrix") continue;
    Recipe recipe = llvm::cantFail(parseInitializer(line.recipe));
    seen.insert(recipe.signature->name);
    Graph g;
    auto made = initial(g.b, recipe, g.input(line.a, line.type), g.b.bits(DType::U32, 7), 3);
    ASSERT_TRUE(bool(made)) << line.text.str() << ": " << llvm::toString(made.takeError());
    EXPECT_EQ((*made)->dtype, line.type);
    EXPECT_EQ(g.values({*made}), line.expected.values) << line.text.str();
  }
  EXPECT_EQ(seen, (std::set<std::string>{"constant", "dirac", "eye"}));
}

TEST(NN, InitializersThatMakeMatrices) {
  Graph g;
  UOpRef seed = g.b.bits(DType::U32, 7);
  auto like = [&](std::vector<int64_t> shape, DType t = DType::F32) {
    llvm::SmallVector<UOpRef, 4> s;
    for (int64_t d : shape) s.push_back(g.c.index(d));
    return g.b.state("w", t, s);
  };
  auto drawn = [&](const char *recipe, UOpRef w) {
    return g.values({*initial(g.b, llvm::cantFail(parseInitializer(recipe)), w, seed, 5)});
  };
  // Rows or columns, whichever are fewer, are orthonormal, each along what was drawn for it less its part along those
  // before it: the only such matrix, and so what PyTorch makes of these numbers by a QR with a diagonal above 0.
  for (auto [rows, columns] : {std::pair(24, 24), std::pair(7, 40), std::pair(40, 7), std::pair(1, 5)}) {
    for (auto [type, most] : {std::pair(DType::F32, 1e-5), std::pair(DType::F64, 1e-13)}) {
      std::vector<double> w = drawn("orthogonal(gain=2)", like({rows, columns}, type));
      std::vector<double> a = drawn("normal", like({rows, columns}, type));
      bool tall = rows > columns;
      int p = tall ? columns : rows, q = tall ? rows : columns;
      auto at = [&](int i, int k) { return w[tall ? k * columns + i : i * columns + k]; };
      for (int i = 0; i < p; ++i)
        for (int j = 0; j < p; ++j) {
          double sum = 0;
          for (int k = 0; k < q; ++k) sum += at(i, k) * at(j, k);
          EXPECT_NEAR(sum, i == j ? 4 : 0, 4 * most) << rows << " x " << columns << ": " << i << ", " << j;
        }
      for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) { // what was drawn for i, along j
          double sum = 0, length = 0;
          for (int k = 0; k < q; ++k) {
            double d = a[tall ? k * columns + i : i * columns + k];
            sum += at(j, k) * d;
            length += d * d;
          }
          if (i == j)
            EXPECT_GT(sum, 0) << rows << " x " << columns << ": " << i;
          else
            EXPECT_NEAR(sum, 0, 2 * std::sqrt(length) * most) << rows << " x " << columns << ": " << i << ", " << j;
        }
    }
  }
  // A convolution's [out, in, ...] is [out, the rest].
  EXPECT_EQ(drawn("orthogonal", like({6, 2, 3, 3})), drawn("orthogonal", like({6, 18})));
  EXPECT_EQ(drawn("orthogonal", like({12, 2, 3})), drawn("orthogonal", like({12, 6})));

  // The part of a normal distribution: its mean and deviation.
  std::vector<double> part = drawn("trunc_normal(mean=3, std=0.5, low=2.5, high=4)", like({200, 200}));
  double sum = 0, squares = 0;
  for (double v : part) {
    EXPECT_TRUE(v >= 2.5 && v <= 4) << v;
    sum += v;
  }
  double mean = sum / 40000;
  for (double v : part) squares += (v - mean) * (v - mean);
  auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); };
  double mass = (std::erf(2 / std::sqrt(2)) + std::erf(1 / std::sqrt(2))) / 2, m = (density(1) - density(2)) / mass;
  double variance = 1 + (-density(1) - 2 * density(2)) / mass - m * m;
  EXPECT_NEAR(mean, 3 + 0.5 * m, 0.008);
  EXPECT_NEAR(std::sqrt(squares / 40000), 0.5 * std::sqrt(variance), 0.008);
  // Hardly cut: the whole distribution, finite at its ends.
  squares = 0;
  for (double v : drawn("trunc_normal(std=0.02)", like({200, 200}))) {
    EXPECT_LE(std::fabs(v), 0.02 * 6);
    squares += v * v;
  }
  EXPECT_NEAR(std::sqrt(squares / 40000), 0.02, 0.0003);

  EXPECT_EQ(drawn("eye", like({2, 3})), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  std::vector<double> kernel = drawn("dirac(groups=2)", like({4, 3, 3}));
  for (int i = 0; i < 36; ++i) EXPECT_EQ(kernel[i], i % 3 == 1 && i / 3 % 3 == i / 9 % 2 ? 1 : 0) << i;
  // Of each column as many are 0 as the part asks for, rounded up; the others are normal.
  std::vector<double> few = drawn("sparse(sparsity=0.25, std=2)", like({10, 4}));
  std::set<int> firsts;
  for (int column = 0; column < 4; ++column) {
    int zeros = 0;
    for (int row = 0; row < 10; ++row)
      if (few[row * 4 + column] == 0) {
        ++zeros;
        firsts.insert(row * 4 + column);
      }
    EXPECT_EQ(zeros, 3) << column;
  }
  std::set<int> rows;
  for (int place : firsts) rows.insert(place / 4);
  EXPECT_GT(rows.size(), 3u) << "every column has the same zeros";
  sum = squares = 0;
  for (double v : drawn("sparse(sparsity=0.25, std=2)", like({200, 200}))) sum += v, squares += v * v;
  EXPECT_NEAR(sum / 30000, 0, 0.035); // three deviations of the mean
  EXPECT_NEAR(std::sqrt(squares / 30000), 2, 0.025);

  auto refusal = [&](const char *recipe, UOpRef w) {
    return llvm::toString(initial(g.b, llvm::cantFail(parseInitializer(recipe)), w, seed, 0).takeError());
  };
  EXPECT_EQ(refusal("orthogonal", like({4})), "initializer orthogonal: is of weights [out, in, ...], found 'w' f32[4]");
  EXPECT_EQ(refusal("eye", like({4, 4, 1})), "initializer eye: is of matrices, found 'w' f32[4, 4, 1]");
  EXPECT_EQ(refusal("sparse", like({4, 4, 1})), "initializer sparse: is of matrices, found 'w' f32[4, 4, 1]");
  EXPECT_EQ(refusal("dirac", like({4, 4})),
            "initializer dirac: is of convolutions, [out, in, ...] with 3 to 5 axes, found 'w' f32[4, 4]");
  EXPECT_EQ(refusal("dirac(groups=3)", like({4, 4, 3})),
            "initializer dirac: needs groups that divide the outputs, found 'w' f32[4, 4, 3]");
}

TEST(NN, TargetsThatAreNoClass) {
  Graph g;
  auto wrong = [&](const char *loss) {
    llvm::Expected<Recipe> recipe = parseLoss(loss);
    UOpRef x = g.input({{5, 3}, std::vector<double>(15)}, DType::F32);
    UOpRef target = g.input({{5}, {0, 2, 3, -1, -100}}, DType::I64), classes = classesOf(*recipe, x);
    return classes ? g.values({g.b.cast(wrongTargets(g.b, *recipe, classes, target), DType::F32)})
                   : std::vector<double>();
  };
  EXPECT_EQ(wrong("cross_entropy"), (std::vector<double>{0, 0, 1, 1, 0}));
  EXPECT_EQ(wrong("nll(ignore_index=3)"), (std::vector<double>{0, 0, 0, 1, 1}));
  EXPECT_EQ(wrong("multi_margin"), (std::vector<double>{0, 0, 1, 1, 1}));
  EXPECT_EQ(wrong("mse"), std::vector<double>());
}

TEST(NN, RecipesAreRefusedWithWhatThereIs) {
  auto sentence = [](llvm::Expected<Recipe> r) { return r ? "" : llvm::toString(r.takeError()); };
  EXPECT_EQ(sentence(parseOptimizer("adamx(lr=1)")), "optimizer 'adamx(lr=1)': there is no optimizer 'adamx'; there "
                                                     "are: sgd, adam, adamw, rmsprop, adagrad, lion, lamb, muon");
  EXPECT_EQ(sentence(parseOptimizer("adagrad(rate=1)")),
            "optimizer 'adagrad(rate=1)': 'rate' is no parameter of adagrad; there are: lr, lr_decay, weight_decay, "
            "initial_accumulator_value, eps");
  EXPECT_EQ(sentence(parseSchedule("constant(a=1)")),
            "schedule 'constant(a=1)': 'a' is no parameter of constant; there are: none");
  EXPECT_EQ(sentence(parseOptimizer("sgd(lr=fast)")),
            "optimizer 'sgd(lr=fast)': 'lr' is 'fast', expected a number, at least 0");
  EXPECT_EQ(sentence(parseOptimizer("sgd(lr=1, lr=2)")), "optimizer 'sgd(lr=1, lr=2)': 'lr' is given twice");
  EXPECT_EQ(sentence(parseOptimizer("sgd(lr=1")), "optimizer 'sgd(lr=1': expected ')' at the end");
  EXPECT_EQ(sentence(parseLoss("mse(sum=nan)")), "loss 'mse(sum=nan)': 'sum' is 'nan', expected 0 or 1");
  EXPECT_EQ(sentence(parseLoss(" huber ( delta = 2 ) ")), "");
}

/// At a bound a value is taken unless the bound itself is beyond; a step further it is refused.
TEST(NN, ParametersHaveBounds) {
  struct Table {
    llvm::ArrayRef<Signature> rows;
    llvm::Expected<Recipe> (*parse)(llvm::StringRef);
  };
  for (const Table &t : {Table{losses(), parseLoss},
                         {optimizers(), parseOptimizer},
                         {schedules(), parseSchedule},
                         {lossScales(), parseLossScale},
                         {initializers(), parseInitializer},
                         {metrics(), parseMetric}})
    for (const Signature &s : t.rows) {
      EXPECT_EQ(llvm::toString(t.parse(s.name).takeError()), "") << "defaults";
      for (const Parameter &p : s.parameters) {
        const Bounds &b = p.bounds;
        EXPECT_TRUE(b.hold(p.value)) << s.name << " " << p.name;
        std::string within = std::string("expected ") + b.text();
        auto isWithin = [&](double v) {
          char number[64];
          std::snprintf(number, sizeof number, "%.17g", v);
          std::string recipe = std::string(s.name) + "(" + p.name + "=" + number + ")";
          return !llvm::StringRef(llvm::toString(t.parse(recipe).takeError())).ends_with(within);
        };
        auto edge = [&](double bound, bool isBeyond, double further) {
          if (!std::isfinite(bound)) {
            EXPECT_TRUE(isWithin(std::copysign(12345, bound)));
            return;
          }
          EXPECT_EQ(isWithin(bound), !isBeyond) << s.name << " " << p.name << " " << bound;
          if (b.whole) further = bound + std::copysign(std::abs(bound) < 0x1p52 ? 1 : 2, further - bound);
          EXPECT_FALSE(isWithin(further)) << s.name << " " << p.name << " " << further;
        };
        edge(b.least, b.aboveLeast, std::nextafter(b.least, -INFINITY));
        edge(b.most, b.belowMost, std::nextafter(b.most, INFINITY));
        EXPECT_EQ(isWithin(1.5), b.hold(1.5)) << s.name << " " << p.name;
        EXPECT_FALSE(b.whole && isWithin(1.5)) << s.name << " " << p.name;
      }
    }
}

/// What PyTorch refuses too, and what would be another thing than what was asked for.
TEST(NN, ParametersBeyondTheirBounds) {
  struct Case {
    llvm::Expected<Recipe> (*parse)(llvm::StringRef);
    const char *text, *why;
  };
  static const Case cases[] = {
      {parseOptimizer, "sgd(lr=-1)", "'lr' is '-1', expected a number, at least 0"},
      {parseOptimizer, "sgd(lr=true)", "'lr' is 'true', expected a number, at least 0"},
      {parseOptimizer, "sgd(momentum=2)", "'momentum' is '2', expected a number, at least 0 and at most 1"},
      {parseOptimizer, "sgd(momentum=-1)", "'momentum' is '-1', expected a number, at least 0 and at most 1"},
      {parseOptimizer, "sgd(nesterov=1)", "expected that nesterov goes with a momentum above 0 and a dampening of 0"},
      {parseOptimizer, "sgd(momentum=0.9, nesterov=1, dampening=0.1)",
       "expected that nesterov goes with a momentum above 0 and a dampening of 0"},
      {parseOptimizer, "adam(beta1=1)", "'beta1' is '1', expected a number, at least 0 and below 1"},
      {parseOptimizer, "adam(beta2=1.5)", "'beta2' is '1.5', expected a number, at least 0 and below 1"},
      {parseOptimizer, "adam(eps=-1)", "'eps' is '-1', expected a number, at least 0"},
      {parseOptimizer, "muon(steps=1.5)", "'steps' is '1.5', expected a whole number, at least 0 and at most 99"},
      {parseOptimizer, "muon(steps=-3)", "'steps' is '-3', expected a whole number, at least 0 and at most 99"},
      {parseSchedule, "step(size=0)", "'size' is '0', expected a whole number, at least 1"},
      {parseSchedule, "cosine(steps=0)", "'steps' is '0', expected a whole number, at least 1"},
      {parseSchedule, "cosine(steps=10, warmup=11)", "expected that warmup is at most steps"},
      {parseSchedule, "one_cycle(div_factor=0)", "'div_factor' is '0', expected a number, above 0"},
      {parseSchedule, "one_cycle(pct_start=2)", "'pct_start' is '2', expected a number, at least 0 and at most 1"},
      {parseLoss, "cross_entropy(label_smoothing=2)",
       "'label_smoothing' is '2', expected a number, at least 0 and at most 1"},
      {parseLoss, "cross_entropy(ignore_index=1.5)", "'ignore_index' is '1.5', expected a whole number"},
      {parseLoss, "huber(delta=-1)", "'delta' is '-1', expected a number, above 0"},
      {parseLoss, "smooth_l1(beta=-1)", "'beta' is '-1', expected a number, at least 0"},
      {parseLoss, "mse(sum=7)", "'sum' is '7', expected 0 or 1"},
      {parseLoss, "kl_div(sum=1, batchmean=1)", "expected that not both batchmean and sum are 1"},
      {parseLoss, "ctc(blank=-1)", "'blank' is '-1', expected a whole number, at least 0"},
      {parseLoss, "ctc(blank=4.5)", "'blank' is '4.5', expected a whole number, at least 0"},
      {parseInitializer, "normal(std=-1)", "'std' is '-1', expected a number, at least 0"},
      {parseInitializer, "uniform(low=2, high=1)", "expected that low is below high"},
      {parseInitializer, "uniform(low=1)", "expected that low is below high"},
      {parseInitializer, "trunc_normal(low=1, high=0)", "expected that low is below high"},
      {parseInitializer, "sparse(sparsity=2)", "'sparsity' is '2', expected a number, at least 0 and at most 1"},
      {parseMetric, "top(k=1.5)", "'k' is '1.5', expected a whole number, at least 1 and at most 1000000"},
  };
  for (const Case &c : cases) {
    std::string sentence = llvm::toString(c.parse(c.text).takeError());
    EXPECT_TRUE(llvm::StringRef(sentence).ends_with(std::string("'") + c.text + "': " + c.why)) << sentence;
  }
}

TEST(NN, LossesRefuseWhatDoesNotFit) {
  Graph g;
  UOpRef x = g.input({{2, 3}, std::vector<double>(6)}, DType::F32),
         y = g.input({{3, 2}, std::vector<double>(6)}, DType::F32);
  auto sentence = [&](const char *recipe, UOpRef a, UOpRef b) {
    auto r = loss(g.b, llvm::cantFail(parseLoss(recipe)), a, b);
    return r ? "" : llvm::toString(r.takeError());
  };
  EXPECT_EQ(sentence("mse", x, y), "loss mse: a prediction f32[2, 3] needs a target f32[2, 3], found f32[3, 2]");
  EXPECT_EQ(sentence("cross_entropy", x, y),
            "loss cross_entropy: a prediction f32[2, 3] needs a target i64[2], found f32[3, 2]");
  EXPECT_EQ(sentence("ctc", x, y), "loss ctc: expected a prediction [T, N, C], found f32[2, 3]");
  UOpRef logs = g.input({{4, 2, 5}, std::vector<double>(40)}, DType::F32),
         labels = g.input({{2, 3}, std::vector<double>(6)}, DType::I64);
  EXPECT_EQ(sentence("ctc(blank=4)", logs, labels), "");
  EXPECT_EQ(sentence("ctc(blank=5)", logs, labels),
            "loss ctc: 'blank' is 5, expected the number of a class, below 5, found f32[4, 2, 5]");
}
} // namespace
