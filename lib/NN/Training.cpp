//===- Training.cpp: entries that train a model ----------------------------===//
// Takes:    the graph of inference.
// Gives:    its parameters as states, the loss, its gradients, the optimizer's step.
// Keeps:    the order of states: parameters in the module's order, each followed by its slots; then the step.
#include "astra/NN/Training.h"
#include "astra/Autograd/Autograd.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Verify.h"
#include "astra/NN/Initializer.h"
#include "astra/NN/Loss.h"
#include "astra/NN/LossScale.h"
#include "astra/NN/Metric.h"
#include "astra/NN/Optimizer.h"
#include "astra/NN/Roles.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

using namespace astra;
using namespace astra::nn;
using llvm::ArrayRef;

static llvm::Error fail(const llvm::Twine &why) { return llvm::createStringError("training: " + why); }

/// Which parameters are wanted: weights of a float type, not frozen, with data.
static llvm::Expected<std::vector<bool>> wantedOf(const Module &m, ArrayRef<std::string> frozen) {
  std::vector<llvm::GlobPattern> patterns;
  std::vector<bool> used(frozen.size());
  for (const std::string &text : frozen) {
    auto p = llvm::GlobPattern::create(text);
    if (!p) return fail("'" + text + "' is no pattern: " + llvm::toString(p.takeError()));
    patterns.push_back(*p);
  }
  std::vector<bool> result;
  for (const Param &p : m.params) {
    bool isFrozen = false;
    for (size_t i = 0; i < patterns.size(); ++i)
      if (patterns[i].match(p.value->str)) isFrozen = used[i] = true;
    result.push_back(p.kind == ParamKind::Weight && isFloat(p.value->dtype) && !isFrozen && p.data);
  }
  for (size_t i = 0; i < frozen.size(); ++i)
    if (!used[i]) return fail("no parameter matches '" + frozen[i] + "', which is to be frozen");
  return result;
}

/// Bytes of a tensor whose elements are all one number; empty for zeros, which need none.
static Bytes filled(Builder &b, UOpRef like, double v) {
  if (v == 0) return nullptr;
  uint64_t bits = uint64_t(b.lit(like->dtype, v)->ints[0]);
  int64_t count = *idxProduct(b.c, like->shape)->constIndex();
  auto bytes = std::make_shared<std::vector<uint8_t>>();
  for (int64_t i = 0; i < count; ++i)
    for (unsigned k = 0; k < byteSize(like->dtype); ++k) bytes->push_back(uint8_t(bits >> 8 * k));
  return bytes;
}

/// If there are taps among the outputs: all outputs as taps, each behind those that it is computed from.
static std::vector<Value> tapped(Context &c, const Entry &e) {
  if (llvm::none_of(e.outputs, [](const Value &v) { return v.value->is(Op::Tap); })) return {};
  std::vector<Value> result = e.outputs;
  std::vector<UOpRef> roots;
  for (Value &v : result) {
    if (!v.value->is(Op::Tap)) v.value = c.make(Op::Tap, {v.value}, {}, v.name);
    roots.push_back(v.value);
  }
  llvm::DenseMap<UOpRef, size_t> place;
  for (UOpRef n : topoSort(roots)) place[n] = place.size();
  auto at = [&](const Value &v) { return std::pair(place[v.value->src[0]], place[v.value]); };
  llvm::sort(result, [&](const Value &a, const Value &b) { return at(a) < at(b); });
  return result;
}

/// A parameter that is trained: where it stands among all of the model, so that its numbers do not depend on which are
/// frozen, and what it is there.
struct TrainedParam {
  uint32_t number;
  Role role;
};

/// "'a', 'b', 'c' and 4 more"
static std::string named(ArrayRef<UOpRef> leaves) {
  constexpr size_t most = 3;
  auto quoted = [](UOpRef n) { return ("'" + n->str + "'").str(); };
  std::string all = llvm::join(llvm::map_range(leaves.take_front(most), quoted), ", ");
  return leaves.size() > most ? all + " and " + std::to_string(leaves.size() - most) + " more" : all;
}

/// The entry that draws weights from a seed. Weights that `default` has nothing for stay, and are noted.
static llvm::Expected<Entry> initEntry(Builder &b, const TrainingOptions &options, ArrayRef<UOpRef> weights,
                                       ArrayRef<TrainedParam> places) {
  constexpr uint32_t firstStream = uint32_t(1) << 30; // beyond those of a model's nodes, before those of shuffling
  std::vector<Initialization> wanted = options.init;
  if (wanted.empty()) wanted.push_back({"*", llvm::cantFail(parseInitializer("default"))});
  std::vector<llvm::GlobPattern> patterns;
  std::vector<bool> used(wanted.size());
  for (const Initialization &i : wanted) {
    auto p = llvm::GlobPattern::create(i.pattern);
    if (!p) return fail("'" + i.pattern + "' is no pattern: " + llvm::toString(p.takeError()));
    patterns.push_back(*p);
  }
  UOpRef seed = b.arg(0, DType::U32, {});
  Entry init{"init", {{"seed", seed}}, {}, {}};
  std::vector<UOpRef> kept;
  for (auto [w, place] : llvm::zip(weights, places)) {
    auto mine = llvm::find_if(patterns, [&](const llvm::GlobPattern &p) { return p.match(w->str); });
    if (mine == patterns.end()) continue;
    used[mine - patterns.begin()] = true;
    Recipe recipe = wanted[mine - patterns.begin()].recipe;
    if (isDefault(recipe)) {
      if (!place.role.info) {
        kept.push_back(w);
        continue;
      }
      recipe = place.role.initializer();
    }
    auto v = initial(b, recipe, w, seed, firstStream + place.number);
    if (!v) return v.takeError();
    init.updates.push_back({w->str.str(), *v});
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      return fail("--init: '" + wanted[i].pattern +
                  "' is for no parameter that is trained and that no pattern before it matches");
  if (!kept.empty() && options.notes)
    options.notes->push_back("the entry init leaves the model's numbers in " + std::to_string(kept.size()) +
                             (kept.size() == 1 ? " parameter" : " parameters") +
                             " of no role that the initializer default knows: " + named(kept) +
                             "; --init=NAME=RECIPE draws such a parameter");
  return init;
}

namespace {
/// What a training replaces.
struct Trained {
  std::vector<UOpRef> weights;      // states, in the order of the parameters that they were
  std::vector<TrainedParam> places; // of each
  std::vector<StateVar> states;     // with the numbers of the model
};
} // namespace

/// Makes states of the parameters that a gradient of `output` reaches, notes which are not trained though one might
/// think so, and takes them out of the module's parameters.
static llvm::Expected<Trained> trainParams(Module &m, Builder &b, const Value &output, const TrainingOptions &options) {
  auto wanted = wantedOf(m, options.frozen);
  if (!wanted) return wanted.takeError();
  llvm::DenseSet<UOpRef> read, reached = reachedByGradients({output.value});
  for (UOpRef n : topoSort({output.value}))
    if (n->is(Op::Param)) read.insert(n);
  llvm::DenseMap<UOpRef, Role> roleOf = rolesOf({output.value});
  Trained out;
  std::vector<std::pair<UOpRef, UOpRef>> leaves;
  std::vector<UOpRef> scalars, guards, unreached, fixed; // trained; not
  std::vector<UOpRef> narrow;                            // not, since steps of their type would be lost in rounding
  std::vector<Param> kept;
  for (auto [i, p] : llvm::enumerate(m.params)) {
    bool isWanted = (*wanted)[i] && read.count(p.value), isWide = byteSize(p.value->dtype) >= 4;
    if (p.kind != ParamKind::Weight && isFloat(p.value->dtype) && read.count(p.value)) fixed.push_back(p.value);
    if (isWanted && isWide && !reached.count(p.value)) {
      unreached.push_back(p.value);
      isWanted = false;
    } else if (isWanted && isWide && roleOf.lookup(p.value).isGuard) {
      guards.push_back(p.value);
      isWanted = false;
    }
    if (isWanted && !isWide) narrow.push_back(p.value);
    if (!isWanted || !isWide) {
      kept.push_back(p);
      continue;
    }
    UOpRef s = b.state(p.value->str, p.value->dtype, p.value->shape);
    leaves.push_back({p.value, s});
    out.weights.push_back(s);
    if (!s->rank()) scalars.push_back(s);
    out.places.push_back({uint32_t(i), roleOf.lookup(p.value)});
    out.states.push_back({s, p.data, p.sharding});
  }
  if (out.weights.empty())
    return fail("there is no parameter to train" +
                (!narrow.empty() ? ": " + named(narrow) + " are of types that are not; f32 and f64 are"
                 : !fixed.empty()
                     ? ": " + named(fixed) + " are constants or buffers of the model; make them initializers"
                     : ""));
  auto note = [&](ArrayRef<UOpRef> leaves, const llvm::Twine &before, const llvm::Twine &behind = "") {
    if (!leaves.empty() && options.notes) options.notes->push_back((before + named(leaves) + behind).str());
  };
  note(narrow, "parameters of f32 and f64 are trained; as they are stay ");
  note(scalars, "trained too: the scalars ", "; --freeze=NAME keeps one as it is");
  note(guards, "not trained: ", ", scalars that keep a root away from 0");
  note(unreached, "not trained: ", ", which no gradient of '" + output.name + "' reaches");
  replaceLeaves(m, leaves);
  m.params = kept;
  return out;
}

/// What a training keeps may not be called as something of the model is.
static llvm::Error nameClash(const Module &m, const Trained &trained, const TrainingOptions &options) {
  llvm::StringSet<> taken;
  for (const Param &p : m.params) taken.insert(p.value->str);
  for (ArrayRef<StateVar> states : {ArrayRef<StateVar>(m.states), ArrayRef<StateVar>(trained.states)})
    for (const StateVar &s : states) taken.insert(s.value->str);
  auto clash = [&](const std::string &name, const llvm::Twine &what) {
    return fail("the model has a tensor '" + name + "', as " + what + " is called: rename it");
  };
  if (taken.contains("step")) return clash("step", "the number of steps");
  if (options.lossScale.row)
    for (const auto &name : taken.keys())
      if (isOfLossScale(name)) return clash(name.str(), "what the loss is scaled by");
  for (UOpRef w : trained.weights)
    for (const Slot &s : slots(options.optimizer, w->rank()))
      if (std::string name = (w->str + "." + s.name).str(); taken.contains(name))
        return clash(name, "what the optimizer keeps of '" + w->str + "'");
  return llvm::Error::success();
}

/// Adds to `step` the updates of the optimizer, and to the module its states; gives the learning rate.
static UOpRef updateWeights(Module &m, Builder &b, Entry &step, const Trained &trained, ArrayRef<UOpRef> gradients,
                            LossScale &scale, const TrainingOptions &options) {
  llvm::SmallVector<UOpRef> g = scale.unscaled(gradients);
  if (options.clipNorm > 0) g = clipNorm(b, g, options.clipNorm);
  UOpRef done = b.state("step", DType::I64, {}), number = b.add(done, b.litInt(DType::I64, 1));
  UOpRef count = b.cast(number, DType::F64), rate = rateAt(b, options.optimizer, options.schedule, count);
  std::vector<StateVar> states;
  for (auto [i, w] : llvm::enumerate(trained.weights)) {
    states.push_back(trained.states[i]);
    llvm::SmallVector<UOpRef, 3> now;
    auto list = slots(options.optimizer, w->rank());
    for (const Slot &s : list) {
      now.push_back(b.state((w->str + "." + s.name).str(), w->dtype, w->shape));
      states.push_back({now.back(), filled(b, w, s.initial)});
    }
    Update u = update(b, options.optimizer, w, g[i], now, rate, count);
    step.updates.push_back({w->str.str(), scale.chosen(w, u.value)});
    for (auto [s, v] : llvm::zip(now, u.slots)) step.updates.push_back({s->str.str(), scale.chosen(s, v)});
  }
  llvm::append_range(states, m.states); // the model's own
  states.push_back({done, nullptr});
  step.updates.push_back({"step", scale.chosen(done, number)});
  m.states = states;
  return rate;
}

/// Makes main the entry eval: the loss and the metrics of what inference predicts.
static llvm::Error evaluate(Builder &b, Entry &eval, UOpRef inferred, UOpRef target, const TrainingOptions &options) {
  eval.name = "eval";
  eval.inputs.push_back({"target", target});
  auto evaluated = loss(b, options.loss, inferred, target);
  if (!evaluated) return evaluated.takeError();
  eval.outputs.push_back({"loss", *evaluated});
  std::vector<Recipe> metrics = options.metrics;
  bool isTaken = llvm::any_of(eval.outputs, [](const Value &v) { return v.name == "accuracy"; });
  if (metrics.empty() && isOfClasses(options.loss) && !isTaken)
    metrics.push_back(llvm::cantFail(parseMetric("accuracy")));
  for (const Recipe &r : metrics) {
    auto said = metric(b, r, options.loss, inferred, target);
    if (!said) return said.takeError();
    if (llvm::any_of(eval.outputs, [&](const Value &v) { return v.name == nameOf(r); }))
      return fail("metric " + nameOf(r) + ": eval has an output of that name already");
    eval.outputs.push_back({nameOf(r), *said});
  }
  return llvm::Error::success();
}

llvm::Error nn::addTraining(Module &m, const TrainingOptions &options) {
  if (m.stage != Stage::Graph)
    return fail("the module is past the numerics stage, where functions are arithmetic that is not differentiated; "
                "expected the text from before that stage");
  Context &c = m.ctx();
  Builder b(c);
  const Entry *main = m.entry("main"), *behaviour = m.entry("forward");
  const Entry *batchNorm = m.entry("batch_norm"); // stays as it is
  if (!main || m.entries.size() > 1u + (behaviour != nullptr) + (batchNorm != nullptr))
    return fail("expected an entry main, and none but forward and batch_norm beside it");
  const Entry &source = behaviour ? *behaviour : *main;
  auto output =
      llvm::find_if(source.outputs, [&](const Value &v) { return options.output.empty() || v.name == options.output; });
  if (output == source.outputs.end())
    return fail(options.output.empty() ? "the module has no output" : "there is no output '" + options.output + "'");
  if (llvm::any_of(source.inputs, [](const Value &v) { return v.name == "target"; }))
    return fail("the model has an input 'target', as train_step calls what it is to predict: rename it");
  size_t predicted = output - source.outputs.begin(), from = &source - m.entries.data();
  auto trained = trainParams(m, b, *output, options);
  if (!trained) return trained.takeError();
  if (llvm::Error e = nameClash(m, *trained, options)) return e;

  // The loss, its gradients, one step.
  Entry step = m.entries[from], eval = *m.entry("main");
  std::string name = step.outputs[predicted].name;
  UOpRef prediction = step.outputs[predicted].value;
  auto shape = targetOf(b, options.loss, prediction);
  if (!shape) return shape.takeError();
  for (UOpRef d : shape->shape) // the length of a sequence
    if (d->is(Op::Dim) && !llvm::is_contained(m.dims, d)) m.dims.push_back(d);
  UOpRef target = b.arg(step.inputs.size(), shape->dtype, shape->shape);
  auto value = loss(b, options.loss, prediction, target);
  if (!value) return value.takeError();
  // The same value of inference: the behaviour of training is not part of it.
  auto same = llvm::find_if(eval.outputs, [&](const Value &v) { return v.name == name; });
  if (same == eval.outputs.end()) return fail("main has no output '" + name + "'");
  UOpRef inferred = same->value;
  // What forward updates, and what taps keep: of the same graph as the loss, so that nothing is computed twice.
  std::vector<UOpRef> running;
  for (const StateUpdate &u : step.updates) running.push_back(u.value);
  std::vector<Value> taps = tapped(c, step);
  for (const Value &v : taps) running.push_back(v.value);
  std::vector<StateVar> scaled;
  LossScale scale(b, options.lossScale, addLossScale(b, options.lossScale, scaled));
  UOpRef seed = scale.factor() ? b.cast(scale.factor(), (*value)->dtype) : b.lit((*value)->dtype, 1);
  step.name = "train_step";
  step.inputs.push_back({"target", target});
  auto gradients = options.interleaved
                       ? interleavedGradients(m, *options.interleaved, step, *value, seed, trained->weights, running)
                       : vjp(c, {*value}, {seed}, trained->weights, &m.origins, running, options.segments);
  if (!gradients) return gradients.takeError();
  llvm::ArrayRef<UOpRef> beside = llvm::ArrayRef<UOpRef>(gradients->values).drop_front();
  for (StateUpdate &u : step.updates) u.value = beside.consume_front();
  for (Value &v : taps) v.value = beside.consume_front();
  UOpRef rate = updateWeights(m, b, step, *trained, gradients->derivatives, scale, options);
  updateLossScale(scale, step.updates);
  llvm::append_range(m.states, scaled);

  step.outputs = {{"loss", gradients->values[0]}, {"rate", rate}};
  for (const Value &v : taps)
    if (v.name != "loss" && v.name != "rate") step.outputs.push_back(v);
  if (llvm::Error e = evaluate(b, eval, inferred, target, options)) return e;
  UOpRef classes = classesOf(options.loss, prediction);
  llvm::erase_if(m.entries, [](const Entry &e) { return e.name == "forward"; });
  m.entries.push_back(step);
  m.entries.push_back(eval);
  if (classes && classes->constIndex()) {
    UOpRef given = b.arg(0, target->dtype, target->shape);
    m.entries.push_back({"check",
                         {{"target", given}},
                         {{"wrong", wrongTargets(b, options.loss, classes, given)},
                          {"classes", b.litInt(DType::I64, *classes->constIndex())}},
                         {}});
  }
  auto init = initEntry(b, options, trained->weights, trained->places);
  if (!init) return init.takeError();
  m.entries.push_back(*init);
  return verify(m, Stage::Graph);
}
