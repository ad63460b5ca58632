//===- BindTraining.cpp: losses, optimizers, initializers by their recipes --===//
// Takes:    "adamw(lr=0.001)": a row of a table of lib/NN with its parameters.
// Gives:    the tables, and graphs of their rows.
#include "../../../tools/astra-train/Shuffle.h"
#include "Bind.h"
#include "PyModule.h"
#include "astra/NN/Initializer.h"
#include "astra/NN/Loss.h"
#include "astra/NN/LossScale.h"
#include "astra/NN/Metric.h"
#include "astra/NN/Optimizer.h"
#include "astra/NN/Training.h"

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

/// name, meaning, [(parameter, default, bounds, meaning)]
using Row =
    std::tuple<std::string, std::string, std::vector<std::tuple<std::string, double, std::string, std::string>>>;

static std::vector<Row> rowsOf(llvm::ArrayRef<nn::Signature> table) {
  std::vector<Row> out;
  for (const nn::Signature &s : table) {
    std::vector<std::tuple<std::string, double, std::string, std::string>> parameters;
    for (const nn::Parameter &p : s.parameters)
      parameters.emplace_back(p.name, p.value,
                              p.bounds.isYesOrNo() ? "bool"
                              : p.bounds.whole     ? "int"
                                                   : "float",
                              p.meaning);
    out.emplace_back(s.name, s.meaning, std::move(parameters));
  }
  return out;
}

/// The module with entries that train its parameters.
static PyModule withTraining(const PyModule &p, const std::string &loss, const std::string &optimizer,
                             const std::string &schedule, double clipNorm, std::vector<std::string> frozen,
                             const std::optional<std::string> &pipeline) {
  nn::TrainingOptions o;
  o.loss = taken(nn::parseLoss(loss)), o.optimizer = taken(nn::parseOptimizer(optimizer));
  o.schedule = taken(nn::parseSchedule(schedule)), o.clipNorm = clipNorm, o.frozen = std::move(frozen);
  if (pipeline)
    if (PipelineRule rule = taken(parsePipeline(*pipeline)); rule.interleaved) o.interleaved = rule;
  std::lock_guard lock(*p.busy);
  PyModule made = p; // over the same context
  if (llvm::Error e = nn::addTraining(made.m, o)) throw std::invalid_argument(llvm::toString(std::move(e)));
  return made;
}

void python::bindTraining(nb::module_ &m) {
  m.def("with_training", withTraining, "module"_a, "loss"_a, "optimizer"_a, "schedule"_a, "clip_norm"_a, "frozen"_a,
        "pipeline"_a = nb::none());
  m.def(
      "table",
      [](const std::string &name) {
        if (name == "losses") return rowsOf(nn::losses());
        if (name == "optimizers") return rowsOf(nn::optimizers());
        if (name == "schedules") return rowsOf(nn::schedules());
        if (name == "initializers") return rowsOf(nn::initializers());
        if (name == "metrics") return rowsOf(nn::metrics());
        if (name == "loss_scales") return rowsOf(nn::lossScales());
        throw std::invalid_argument("there is no table '" + name + "'");
      },
      "Rows of a table of lib/NN: name, meaning, parameters.");

  m.def(
      "loss",
      [](Graph &g, const std::string &recipe, UOpRef x, UOpRef target) {
        return taken(nn::loss(g.b, taken(nn::parseLoss(recipe)), x, target));
      },
      inside);
  m.def(
      "metric",
      [](Graph &g, const std::string &recipe, const std::string &loss, UOpRef x, UOpRef target) {
        return taken(nn::metric(g.b, taken(nn::parseMetric(recipe)), taken(nn::parseLoss(loss)), x, target));
      },
      inside);
  m.def(
      "initial",
      [](Graph &g, const std::string &recipe, UOpRef like, UOpRef seed, uint32_t stream) {
        return taken(nn::initial(g.b, taken(nn::parseInitializer(recipe)), like, seed, stream));
      },
      inside);

  m.def(
      "slots",
      [](const std::string &recipe, unsigned rank) {
        std::vector<std::pair<std::string, double>> out;
        for (const nn::Slot &s : nn::slots(taken(nn::parseOptimizer(recipe)), rank))
          out.emplace_back(s.name, s.initial);
        return out;
      },
      "What an optimizer keeps of a parameter of a rank: (name, first value).");
  m.def(
      "update",
      [](Graph &g, const std::string &recipe, UOpRef value, UOpRef gradient, const Nodes &slots, UOpRef rate,
         UOpRef count) {
        nn::Update u = nn::update(g.b, taken(nn::parseOptimizer(recipe)), value, gradient, slots, rate, count);
        return std::pair(u.value, Nodes(u.slots.begin(), u.slots.end()));
      },
      inside);
  m.def(
      "rate_at",
      [](Graph &g, const std::string &optimizer, const std::string &schedule, UOpRef count) {
        return nn::rateAt(g.b, taken(nn::parseOptimizer(optimizer)), taken(nn::parseSchedule(schedule)), count);
      },
      inside, "The learning rate of a step, an f64 scalar.");
  m.def(
      "clip_norm",
      [](Graph &g, const Nodes &gradients, double most) {
        auto out = nn::clipNorm(g.b, gradients, most);
        return Nodes(out.begin(), out.end());
      },
      inside);

  m.def(
      "loss_scale",
      [](const std::string &text) {
        nn::Recipe recipe = taken(nn::parseLossScale(text));
        return std::pair(nn::LossScale::first(recipe), nn::LossScale::isDynamic(recipe));
      },
      "The first factor of a recipe, or None, and whether it changes.");
  m.def(
      "unscaled",
      [](Graph &g, const std::string &recipe, const Nodes &gradients, std::optional<UOpRef> factor,
         std::optional<UOpRef> steps) {
        nn::Recipe of = taken(nn::parseLossScale(recipe));
        nn::LossScale scale(g.b, of, {factor.value_or(nullptr), steps.value_or(nullptr)});
        auto out = scale.unscaled(gradients);
        std::optional<std::tuple<UOpRef, UOpRef, UOpRef>> after;
        if (scale.isFinite()) after = std::tuple(scale.isFinite(), scale.next().factor, scale.next().steps);
        return std::pair(Nodes(out.begin(), out.end()), after);
      },
      inside,
      "Gradients of the loss itself; of a recipe that keeps a factor whether all are finite, and what is kept.");

  m.def(
      "shuffle",
      [](uint32_t seed, uint32_t epoch, uint64_t rows) {
        if (rows > UINT32_MAX) throw std::invalid_argument("too many rows");
        std::vector<uint32_t> order(rows);
        tool::shuffle(seed, epoch, order);
        return nb::bytes(reinterpret_cast<const char *>(order.data()), order.size() * sizeof(uint32_t));
      },
      "The order of the rows in an epoch: numbers of 32 bits.");
  m.def(
      "random_words",
      [](uint32_t seed, uint32_t stream, uint64_t count) {
        std::vector<uint32_t> out(count);
        for (uint64_t i = 0; i < count; i += 2) {
          numerics::Threefry<tool::Scalar> words(seed, stream, uint32_t(i >> 1), uint32_t(i >> 33));
          out[i] = words.x0;
          if (i + 1 < count) out[i + 1] = words.x1;
        }
        return nb::bytes(reinterpret_cast<const char *>(out.data()), out.size() * sizeof(uint32_t));
      },
      "Elements 0 ... of the contract's random bits (N13).");
  m.def(
      "nodes_of",
      [](Graph &, const Nodes &roots) {
        Nodes out;
        for (UOpRef x : topoSort(roots))
          if (!x->isIndex() && x->dtype != DType::Void) out.push_back(x);
        return out;
      },
      inside, "Values that the roots are made of, sources first; bodies of control ops are not looked into.");
}
