//===- BindModule.cpp: modules: evaluated, compiled, written as text --------===//
// Takes:    entries over nodes of a graph; data by address, which the caller keeps until the call returns.
// Gives:    a Module, which owns a context of its own.
// Keeps:    while a module compiles, Python runs on.
#include "Bind.h"
#include "Graph.h"
#include "PyModule.h"
#include "astra/Bundle/Writer.h"
#include "astra/Compose/TextWords.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Import/ONNX.h"
#include "astra/NN/Training.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Pipeline/Pipeline.h"
#include "astra/Search/Search.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <cstring>
#include <mutex>

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

namespace {

/// Bytes of Python's, which stay where they are.
struct Data {
  uint64_t address;
  uint64_t size;
  std::vector<uint8_t> copy() const {
    std::vector<uint8_t> out(size);
    if (size) std::memcpy(out.data(), reinterpret_cast<const void *>(address), size);
    return out;
  }
};
using Address = std::pair<uint64_t, uint64_t>;

/// A value that comes from Python or goes there.
using PythonTensor = std::tuple<std::string, std::vector<int64_t>, nb::bytes>;

nb::bytes bytesOf(llvm::ArrayRef<uint8_t> data) {
  return nb::bytes(reinterpret_cast<const char *>(data.data()), data.size());
}

/// Makes a module of parts of a graph, one entry after another.
class Making {
public:
  Making(Graph &g, std::string name) : g(g) { made.m.name = std::move(name); }

  void param(const std::string &name, UOpRef leaf, const std::string &kind, std::optional<Address> data) {
    UOpRef value = made_(Op::Param, leaf, name);
    shared[leaf] = value;
    Param p{value, nullptr, "", "",
            kind == "weight"  ? ParamKind::Weight
            : kind == "fixed" ? ParamKind::Fixed
                              : ParamKind::Constant};
    if (data) p.data = std::make_shared<const std::vector<uint8_t>>(Data{data->first, data->second}.copy());
    made.m.params.push_back(std::move(p));
  }
  void state(const std::string &name, UOpRef leaf, std::optional<Address> data) {
    UOpRef value = made_(Op::State, leaf, name);
    shared[leaf] = value;
    StateVar s{value, nullptr};
    if (data) s.initial = std::make_shared<const std::vector<uint8_t>>(Data{data->first, data->second}.copy());
    made.m.states.push_back(std::move(s));
  }
  void entry(const std::string &name, const std::vector<std::pair<std::string, UOpRef>> &inputs,
             const std::vector<std::pair<std::string, UOpRef>> &outputs,
             const std::vector<std::pair<std::string, UOpRef>> &updates) {
    addEquations();
    Context &c = made.m.ctx();
    Replacement with = shared;
    Entry e;
    e.name = name;
    for (const auto &[inputName, leaf] : inputs) {
      UOpRef arg = taken(
          c.tryMake(Op::Arg, taken(rebuild(c, leaf->shape, indices)), {int64_t(e.inputs.size())}, {}, leaf->dtype));
      with[leaf] = arg;
      e.inputs.push_back({inputName, arg});
    }
    Nodes roots;
    for (const auto &[_, x] : outputs) roots.push_back(x);
    for (const auto &[_, x] : updates) roots.push_back(x);
    for (UOpRef leaf : g.leavesOf(roots))
      if (!with.count(leaf)) constant(leaf, with);
    Nodes values = taken(rebuild(c, roots, with, {&g.origins(), &made.m.origins}));
    size_t i = 0;
    for (const auto &[outputName, _] : outputs) e.outputs.push_back({outputName, values[i++]});
    for (const auto &[stateName, _] : updates) e.updates.push_back({stateName, values[i++]});
    made.m.entries.push_back(std::move(e));
  }
  PyModule finish() {
    Context &c = made.m.ctx();
    for (uint32_t id = 0; id < c.size(); ++id)
      if (UOpRef x = c.node(id); x->is(Op::Dim) && isModules(x)) made.m.dims.push_back(x);
    return std::move(made);
  }

private:
  Graph &g;
  PyModule made;
  Replacement shared;  // of leaves that all entries have
  Replacement indices; // of symbolic integers in shapes
  unsigned constants = 0;
  size_t equations = 0; // of the graph that the module has

  /// What the graph's type rules have taken as equal: those of the module need it too.
  void addEquations() {
    Context &c = made.m.ctx();
    for (; equations < g.c.equations.size(); ++equations) {
      const Equation &q = g.c.equations[equations];
      Nodes sides = taken(rebuild(c, {q.left, q.right}, indices));
      made.m.equations.push_back({sides[0], sides[1]});
      c.equations.push_back({sides[0], sides[1]});
    }
  }
  UOpRef made_(Op op, UOpRef leaf, const std::string &name) {
    Context &c = made.m.ctx();
    return taken(c.tryMake(op, taken(rebuild(c, leaf->shape, indices)), {}, name, leaf->dtype));
  }
  /// What a composite computed while it was built.
  void constant(UOpRef leaf, Replacement &with) {
    for (const Param &p : g.params)
      if (p.value == leaf) {
        UOpRef value = made_(Op::Param, leaf, "constant." + std::to_string(constants++));
        made.m.params.push_back({value, p.data, "", "", ParamKind::Constant});
        with[leaf] = shared[leaf] = value;
        return;
      }
    throw std::invalid_argument("a value of a function that was being traced is used outside of it: " +
                                typeText(leaf->dtype, leaf->shape));
  }
  /// A dim that a loop carries belongs to the loop.
  bool isModules(UOpRef dim) {
    for (uint32_t id = 0; id < made.m.ctx().size(); ++id)
      if (UOpRef x = made.m.ctx().node(id); x->is(Op::While) || x->is(Op::Custom)) {
        llvm::SmallVector<llvm::StringRef> names;
        x->str.split(names, ',', -1, false);
        if (llvm::is_contained(names, dim->str)) return false;
      }
    return true;
  }
};

std::vector<std::tuple<std::string, std::string, std::vector<std::string>>> signature(llvm::ArrayRef<Value> values) {
  std::vector<std::tuple<std::string, std::string, std::vector<std::string>>> out;
  for (const Value &v : values) {
    std::vector<std::string> dims;
    for (UOpRef d : v.value->shape) dims.push_back(indexText(d));
    out.emplace_back(v.name, info(v.value->dtype).text, std::move(dims));
  }
  return out;
}

const Entry &entryOf(const PyModule &p, const std::string &name) {
  const Entry *e = p.m.entry(name);
  if (!e) throw std::invalid_argument("there is no entry '" + name + "'");
  return *e;
}

/// A value of Python's: type, shape, where its bytes are.
using Given = std::tuple<std::string, std::vector<int64_t>, Address>;
Tensor tensorOf(const Given &given) {
  const auto &[t, shape, data] = given;
  return {dtypeOf(t), shape, Data{data.first, data.second}.copy()};
}

/// Values of nodes by the reference evaluator; every leaf that they reach is in `values`.
std::vector<PythonTensor> evaluateNodes(Graph &g, const Nodes &roots,
                                        const std::vector<std::pair<UOpRef, Given>> &values) {
  EvalInputs in;
  for (const auto &[leaf, value] : values) in.params.emplace(leaf->str.str(), tensorOf(value));
  for (const Param &p : g.params)
    if (p.data) {
      Tensor t{p.value->dtype, {}, *p.data};
      for (UOpRef d : p.value->shape) t.shape.push_back(d->constIndex().value_or(0));
      in.params.emplace(p.value->str.str(), std::move(t)); // computed while the graph was built
    }
  EvalOptions options;
  options.function = evalFunction;
  addExternals(options, roots);
  std::vector<PythonTensor> out;
  for (Tensor &t : taken(evalNodes(roots, in, options))) {
    canonicalizeNaN(t);
    out.emplace_back(info(t.dtype).text, t.shape, bytesOf(t.bytes));
  }
  return out;
}

/// Outputs and states of an entry, by the reference evaluator. Other threads of Python run meanwhile.
auto evaluate(const PyModule &p, const std::string &entry, const std::vector<Given> &inputs,
              const std::map<std::string, int64_t> &dims, const std::map<std::string, Given> &states) {
  EvalInputs in;
  for (const Given &x : inputs) in.inputs.push_back(tensorOf(x));
  for (const auto &[name, x] : states) in.states.emplace(name, tensorOf(x));
  in.dims = dims;
  EvalOptions options;
  options.function = evalFunction;
  addExternals(options, p.m.roots());
  const Entry &e = entryOf(p, entry);
  auto run = [&] { return evalEntry(p.m, e, in, options); };
  llvm::Expected<EvalResult> result = [&] {
    nb::gil_scoped_release unlocked;
    std::lock_guard lock(*p.busy);
    return run();
  }();
  EvalResult r = taken(std::move(result));
  std::vector<PythonTensor> outputs;
  for (const Tensor &t : r.outputs) outputs.emplace_back(info(t.dtype).text, t.shape, bytesOf(t.bytes));
  std::vector<std::pair<std::string, PythonTensor>> after;
  for (const auto &[name, t] : r.states)
    after.emplace_back(name, PythonTensor(info(t.dtype).text, t.shape, bytesOf(t.bytes)));
  return std::pair(outputs, after);
}

/// The outputs of an entry in another graph: its inputs and parameters replaced, its dims by the extents of the inputs.
Nodes inlined(const PyModule &p, Graph &g, const std::string &entry, const Nodes &inputs,
              const std::map<std::string, UOpRef> &params) {
  const Entry &e = entryOf(p, entry);
  if (!p.m.states.empty()) throw std::invalid_argument("a model with states cannot be a part of another function");
  if (inputs.size() != e.inputs.size())
    throw std::invalid_argument("the model takes " + std::to_string(e.inputs.size()) + " inputs, " +
                                std::to_string(inputs.size()) + " are given");
  Replacement with;
  for (const auto &[input, x] : llvm::zip(e.inputs, inputs)) {
    if (x->dtype != input.value->dtype || x->rank() != input.value->rank())
      throw std::invalid_argument("input '" + input.name + "' is " + typeText(x->dtype, x->shape) + "; it must be " +
                                  typeText(input.value->dtype, input.value->shape));
    for (auto [wanted, given] : llvm::zip(input.value->shape, x->shape))
      if (wanted->is(Op::Dim) && !with.count(wanted)) {
        if (given->lo < wanted->lo || given->hi > wanted->hi)
          throw std::invalid_argument("input '" + input.name + "': an extent is " + indexText(given) + "; dim '" +
                                      wanted->str.str() + "' is within " + std::to_string(wanted->lo) + ".." +
                                      std::to_string(wanted->hi));
        with[wanted] = given;
      }
    with[input.value] = x;
  }
  for (const auto &[name, x] : params)
    if (const Param *param = p.m.param(name)) with[param->value] = x;
  for (const auto &[input, x] : llvm::zip(e.inputs, inputs))
    for (auto [wanted, given] : llvm::zip(input.value->shape, x->shape))
      if (UOpRef now = taken(rebuild(g.c, {wanted}, with)).front(); now != given)
        throw std::invalid_argument("input '" + input.name + "' is " + typeText(x->dtype, x->shape) +
                                    "; an extent must be " + indexText(now));
  Nodes roots;
  for (const Value &v : e.outputs) roots.push_back(v.value);
  return taken(rebuild(g.c, roots, with, {&p.m.origins, &g.origins()}));
}

PyModule importedONNX(const std::string &path,
                      const std::vector<std::tuple<std::string, int64_t, int64_t, std::string>> &dims, bool training,
                      std::vector<std::string> &notes) {
  ImportOptions o;
  for (const auto &[name, lo, hi, value] : dims) o.dims.push_back({name, lo, hi, value});
  o.training = training;
  o.notes = &notes;
  return PyModule{taken([&] {
    nb::gil_scoped_release unlocked;
    return importONNX(path, o);
  }())};
}

/// The module whose sums of products a matrix unit adds.
PyModule withNumerics(const PyModule &p, const std::string &contract) {
  UnitChoice choice = taken(numericsNamed(contract));
  if (!choice.unit) return p;
  std::lock_guard lock(*p.busy);
  PyModule made = p; // over the same context
  useMatrixUnit(made.m, choice);
  return made;
}

/// The module for the shards of a mesh, with shardings by patterns of names, and how the shards exchange.
PyModule withMesh(const PyModule &p, const std::string &mesh,
                  const std::vector<std::pair<std::string, std::string>> &shardings,
                  const std::optional<std::string> &pipeline, std::optional<uint64_t> bucket, bool overlap,
                  bool ofTraining) {
  Mesh axes = taken(parseMesh(mesh));
  std::vector<ShardRule> rules;
  for (const auto &[pattern, sharding] : shardings) rules.push_back({pattern, sharding});
  std::lock_guard lock(*p.busy);
  PyModule made = p; // over the same context
  auto done = [](llvm::Error e) {
    if (e) throw std::invalid_argument(llvm::toString(std::move(e)));
  };
  if (pipeline) {
    PipelineRule rule = taken(parsePipeline(*pipeline));
    done(annotate(made.m, axes, {}));
    done(pipelineLayers(made.m, rule, ofTraining));
  }
  done(annotate(made.m, axes, rules));
  made.bucket = bucket.value_or(made.bucket), made.overlap = overlap;
  return made;
}

/// The program of one shard, whose evaluation is that of all of them.
PyModule programOfShard(const PyModule &p) {
  std::lock_guard lock(*p.busy);
  PyModule made = p; // over the same context
  if (llvm::Error e = partition(made.m)) throw std::invalid_argument(llvm::toString(std::move(e)));
  return made;
}

PipelineOptions optionsOf(const std::vector<std::string> &targets, const std::string &cache, unsigned jobs) {
  PipelineOptions o;
  o.cache = cache;
  o.jobs = std::max(1u, jobs);
  for (const std::string &name : targets) {
    if (const Target *t = targetNamed(name)) {
      o.targets.push_back(t);
      continue;
    }
    bool host = llvm::StringRef(name).starts_with("emu:");
    const GpuTarget *gpu = gpuTargetNamed(host ? llvm::StringRef(name).drop_front(4) : llvm::StringRef(name));
    if (!gpu) throw std::invalid_argument("there is no target '" + name + "'");
    auto it = llvm::find_if(o.gpus, [&](const auto &x) { return x.first == gpu; });
    if (!host && it == o.gpus.end()) o.gpus.push_back({gpu, false});
    if (host && it == o.gpus.end())
      throw std::invalid_argument("target " + name + " needs " + gpu->name + " before it");
    if (host) it->second = true;
  }
  return o;
}

/// What a compilation gives and tells.
struct Compiled {
  nb::bytes bundle;
  std::string text, header;
  std::vector<std::pair<std::string, double>> stages;
  std::vector<std::string> notes;
};

Compiled compile(const PyModule &p, const std::vector<std::string> &targets, const std::string &emit,
                 const std::string &cache, unsigned jobs, const std::string &ptxas, nb::object begins,
                 const std::vector<std::pair<std::string, nb::bytes>> &assets, bool check) {
  PipelineOptions o = optionsOf(targets, cache, jobs);
  o.checks = check;
  o.bucket = p.bucket, o.overlap = p.overlap;
  for (const auto &[name, bytes] : assets) {
    const auto *data = static_cast<const uint8_t *>(bytes.data());
    o.assets.push_back({name, std::make_shared<const std::vector<uint8_t>>(data, data + bytes.size())});
  }
  o.emit = emit;
  o.ptxas = ptxas;
  if (!emit.empty() && o.targets.empty() && o.gpus.size() == 1) o.gpu = o.gpus[0].first, o.gpus.clear();
  PipelineReport report;
  PipelineObserver observer;
  if (!begins.is_none())
    observer.begins = [&](const std::string &what) {
      nb::gil_scoped_acquire locked;
      begins(what);
    };
  std::string bundle;
  llvm::Expected<Compilation> done = [&]() -> llvm::Expected<Compilation> {
    nb::gil_scoped_release unlocked;
    std::lock_guard lock(*p.busy);
    llvm::Expected<Compilation> made = compileModule(p.m, o, report, observer);
    if (!made || !made->bundle) return made;
    llvm::raw_string_ostream out(bundle);
    if (llvm::Error e = writeBundle(*made->bundle, out)) return std::move(e);
    return made;
  }();
  Compilation c = taken(std::move(done));
  Compiled out{nb::bytes(bundle.data(), bundle.size()), c.text, c.header, {}, report.notes};
  for (const auto &stage : report.stages) out.stages.emplace_back(stage.name, stage.milliseconds);
  return out;
}

} // namespace

void python::bindModule(nb::module_ &m) {
  nb::class_<Compiled>(m, "Compiled")
      .def_ro("bundle", &Compiled::bundle)
      .def_ro("text", &Compiled::text)
      .def_ro("header", &Compiled::header)
      .def_ro("stages", &Compiled::stages)
      .def_ro("notes", &Compiled::notes);

  nb::class_<Making>(m, "Making", "Makes a Module: params and states first, then entries, then finish().")
      .def(nb::init<Graph &, std::string>(), nb::keep_alive<1, 2>())
      .def("param", &Making::param, "name"_a, "leaf"_a, "kind"_a, "data"_a = nb::none())
      .def("state", &Making::state, "name"_a, "leaf"_a, "data"_a = nb::none())
      .def("entry", &Making::entry, "name"_a, "inputs"_a, "outputs"_a,
           "updates"_a = std::vector<std::pair<std::string, UOpRef>>())
      .def("finish", &Making::finish);

  nb::class_<PyModule>(m, "Module")
      .def_prop_ro("name", [](const PyModule &p) { return p.m.name; })
      .def_prop_ro("entries",
                   [](const PyModule &p) {
                     std::vector<std::string> out;
                     for (const Entry &e : p.m.entries) out.push_back(e.name);
                     return out;
                   })
      .def("inputs", [](const PyModule &p, const std::string &entry) { return signature(entryOf(p, entry).inputs); })
      .def("outputs", [](const PyModule &p, const std::string &entry) { return signature(entryOf(p, entry).outputs); })
      .def_prop_ro("dims",
                   [](const PyModule &p) {
                     std::vector<std::tuple<std::string, int64_t, int64_t>> out;
                     for (UOpRef d : p.m.dims) out.emplace_back(d->str.str(), d->lo, d->hi);
                     return out;
                   })
      .def_prop_ro("params",
                   [](const PyModule &p) {
                     std::vector<std::tuple<std::string, std::string, std::string>> out;
                     for (const Param &x : p.m.params)
                       out.emplace_back(x.value->str.str(), typeText(x.value->dtype, x.value->shape),
                                        x.kind == ParamKind::Weight  ? "weight"
                                        : x.kind == ParamKind::Fixed ? "fixed"
                                                                     : "constant");
                     return out;
                   })
      .def(
          "text", [](const PyModule &p, bool data) { return print(p.m, {data, true}); }, "data"_a = false)
      .def("evaluate", evaluate, "entry"_a, "inputs"_a, "dims"_a = std::map<std::string, int64_t>(),
           "states"_a = std::map<std::string, Given>())
      .def("param_data",
           [](const PyModule &p, const std::string &name) {
             const Param *x = p.m.param(name);
             if (!x || !x->data) throw std::invalid_argument("there is no data of a parameter '" + name + "'");
             std::vector<int64_t> shape;
             for (UOpRef d : x->value->shape) shape.push_back(d->constIndex().value_or(-1));
             return PythonTensor(info(x->value->dtype).text, shape, bytesOf(*x->data));
           })
      .def_prop_ro("states",
                   [](const PyModule &p) {
                     std::vector<std::pair<std::string, std::string>> out;
                     for (const StateVar &x : p.m.states)
                       out.emplace_back(x.value->str.str(), typeText(x.value->dtype, x.value->shape));
                     return out;
                   })
      .def("inline", inlined, "graph"_a, "entry"_a, "inputs"_a, "params"_a, nb::rv_policy::reference,
           "The outputs of an entry as nodes of a graph.")
      .def("compile", compile, "targets"_a, "emit"_a = "", "cache"_a = "", "jobs"_a = 1, "ptxas"_a = "",
           "begins"_a = nb::none(), "assets"_a = std::vector<std::pair<std::string, nb::bytes>>(), "check"_a = false)
      .def(
          "digest",
          [](const PyModule &p, bool lines) {
            std::string text = print(p.m, {false, true});
            if (p.bucket != usualBucket || !p.overlap)
              text += "exchange " + std::to_string(p.bucket) + (p.overlap ? "" : " alone");
            auto add = [&](UOpRef x, const Bytes &data) {
              if (!data) return;
              auto digest = llvm::SHA256::hash(llvm::ArrayRef(*data));
              text += x->str.str() + llvm::toHex(llvm::ArrayRef(digest));
            };
            for (const Param &x : p.m.params) add(x.value, x.data);
            for (const StateVar &x : p.m.states) add(x.value, x.initial);
            for (UOpRef x : topoSort(lines ? p.m.roots() : Nodes()))
              if (const Origin *o = p.m.origins.find(x))
                text += "\n" + std::to_string(x->id) + llvm::join(o->names, " ");
            auto digest =
                llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
            return llvm::toHex(llvm::ArrayRef(digest), /*LowerCase=*/true);
          },
          "lines"_a = false,
          "SHA-256 of the text form: equal modules have equal digests. lines: and of where nodes came from.");

  m.def("parse_uop", [](const std::string &text, const std::string &name) {
    return PyModule{taken(compose::parseText(text, name))};
  });
  m.def(
      "verify_programs",
      [](const PyModule &p) {
        if (llvm::Error e = verify(p.m, p.m.stage)) raise(std::move(e));
        return taken(verifyPrograms(p.m));
      },
      "Refuses a module in which two programs of a kernel store one element; gives sentences for what is not shown.");
  m.def(
      "import_onnx",
      [](const std::string &path, const std::vector<std::tuple<std::string, int64_t, int64_t, std::string>> &dims,
         bool training) {
        std::vector<std::string> notes;
        PyModule made = importedONNX(path, dims, training, notes);
        return std::pair(std::move(made), notes);
      },
      "path"_a, "dims"_a, "training"_a = false);
  m.def("check_numerics", [](const std::string &contract) { (void)taken(numericsNamed(contract)); }, "contract"_a);
  m.def("with_numerics", withNumerics, "module"_a, "contract"_a);
  m.def("with_mesh", withMesh, "module"_a, "mesh"_a, "shardings"_a, "pipeline"_a = nb::none(), "bucket"_a = nb::none(),
        "overlap"_a = true, "of_training"_a = false);
  m.def("check_pipeline", [](const std::string &text) { (void)taken(parsePipeline(text)); }, "text"_a);
  m.def("program_of_shard", programOfShard, "module"_a);
  m.def("checked_mesh", [](const std::string &text) { return meshText(taken(parseMesh(text))); });
  m.def("evaluate_nodes", evaluateNodes);
  m.def(
      "native_target",
      []() -> std::optional<std::string> {
        const Target *t = nativeTarget();
        return t ? std::optional<std::string>(t->name) : std::nullopt;
      },
      "The best CPU target that this machine runs.");
  m.def("targets", [] {
    std::vector<std::string> out;
    for (const Target &t : allTargets())
      if (!t.onRequest) out.push_back(t.name);
    return out;
  });
}
