//===- Importer.cpp: from an ONNX model to a module ------------------------===//
// Takes:    a parsed model and the options of the import.
// Gives:    a module with one entry, main; or one error with every sentence that the model earned.
// Keeps:    the model's order of inputs and outputs.
// Does not: know an op (Ops*.cpp).
#include "../DimText.h"
#include "Elements.h"
#include "Lowering.h"
#include "astra/Compose/IntegerProducts.h"
#include "astra/IR/Text.h"
#include "astra/Import/ONNX.h"
#include "onnx.pb.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include <cstring>

namespace astra {
namespace onnx {

namespace {

class Importer {
public:
  const Failures &failed() const { return failures; }

  Importer(ModelFile &file, const ImportOptions &options)
      : graph(*file.model().mutable_graph()), options(options), lowering(module, file, options) {}

  llvm::Expected<Module> run() {
    auto consumed = [&](int i) { graph.mutable_initializer(i)->clear_raw_data(); };
    if (llvm::Error e = lowering.constants(graph, lowering.top, consumed)) return e;
    declareInputs();
    Scope leaves = lowering.top;
    lowering.nodes(graph, lowering.top);
    collectOutputs(module.entries[0]);
    refuseUnusedBounds();
    if (!failures.empty()) return failures.error();
    if (llvm::Error e = addTaps(module.entries[0])) return e;
    if (options.training) {
      lowering.top = std::move(leaves);
      countReaders();
      addForward();
      if (failures.empty()) noteMergedParams();
      if (!failures.empty()) return failures.error();
    }
    if (options.integers && !options.training) compose::integerProducts(module, lowering.shared.params);
    keepUsedParams();
    if (options.training) noteKept();
    return std::move(module);
  }

private:
  void declareInputs();
  UOpRef declareInput(const proto::Value &input);
  UOpRef inputDim(const proto::Type::Dim &dim, llvm::StringRef input, int axis);
  UOpRef namedDim(const std::string &name, llvm::StringRef input, int axis);
  UOpRef writtenDim(llvm::StringRef text, llvm::StringRef input, int axis);
  UOpRef saidDim(llvm::StringRef text, llvm::StringRef input, int axis);
  bool isConstant(llvm::StringRef input) const;
  UOpRef replaceByConstant(const ConstantInput &constant, DType dtype, llvm::ArrayRef<UOpRef> shape);
  void findNames();
  void refuseLostDims();
  void refuseUnusedBounds();
  void collectOutputs(Entry &entry);
  void addElements(Entry &entry, const std::string &name, const List &list);
  void addPrediction(Entry &entry);
  void addForward();
  void countReaders();
  void noteMergedParams();
  llvm::Error addTaps(Entry &entry);
  void keepUsedParams();
  void noteKept();

  proto::Graph &graph;
  const ImportOptions &options;
  Module module;
  Lowering lowering;
  Failures &failures = lowering.failures;
  llvm::StringMap<UOpRef> dims;
  llvm::StringSet<> namesOfInputs;                   // dims that some axis of an input gives
  llvm::StringMap<std::vector<std::string>> readers; // of values of the top graph: nodes
};

/// "?" and "-1" are what exporters write where they know no name: two of them need not be equal.
static bool isNameless(llvm::StringRef text) {
  return llvm::none_of(text, [](char ch) { return llvm::isAlpha(ch); });
}

/// Null after a failure.
UOpRef Importer::inputDim(const proto::Type::Dim &dim, llvm::StringRef input, int axis) {
  Context &c = module.ctx();
  if (dim.has_value() && dim.value() >= 0) {
    if (dim.value() <= int64_t(1) << 40) return c.index(dim.value());
    failures.add(("input '" + input + "' has an extent above 2^40").str());
    return nullptr;
  }
  if (isNameless(dim.name())) return namedDim((input + "_" + llvm::Twine(axis)).str(), input, axis);
  return isDimName(dim.name()) ? namedDim(dim.name(), input, axis) : writtenDim(dim.name(), input, axis);
}

/// "past + 1" or "4*h", where an axis of some input gives `past` and `h`: the value follows. Where none does, or the
/// user bounds the whole text, it is a name like any other.
UOpRef Importer::writtenDim(llvm::StringRef text, llvm::StringRef input, int axis) {
  auto ofInput = [&](llvm::StringRef name) -> UOpRef {
    return namesOfInputs.contains(name) ? namedDim(name.str(), input, axis) : nullptr;
  };
  UOpRef value = lowering.bound(text) ? nullptr : dimFromText(module.ctx(), text, ofInput);
  return value ? value : namedDim(text.str(), input, axis);
}

/// An axis that is a name alone gives it; so does one that is a multiple of one name, plus a constant.
void Importer::findNames() {
  std::vector<llvm::StringRef> written;
  for (const proto::Value &value : graph.input()) {
    if (lowering.top.values.count(value.name()) || isConstant(value.name())) continue;
    for (const proto::Type::Dim &dim : value.type().tensor().shape().dim())
      if (isDimName(dim.name()))
        namesOfInputs.insert(dim.name());
      else if (!isNameless(dim.name()))
        written.push_back(dim.name());
  }
  for (llvm::StringRef text : written) {
    Context scratch;
    UOpRef extent = dimFromText(scratch, text, [&](llvm::StringRef name) {
      auto find = [&](llvm::StringRef wanted) {
        return llvm::find_if(options.dims, [&](const DimBound &b) { return b.name == wanted && b.value.empty(); });
      };
      auto said = find(name);
      if (said == options.dims.end()) said = find("*");
      bool bounded = said != options.dims.end() && said->lo < said->hi;
      // Nobody has bounds yet: such that no constant of a sensible text makes it negative.
      return scratch.make(Op::Dim, {}, {bounded ? said->lo : 1 << 16, bounded ? said->hi : 1 << 20}, name);
    });
    if (auto given = extent ? dimMultiple(extent) : std::nullopt) namesOfInputs.insert(given->dim->str);
  }
}

/// The value of what --dim says: an expression of dims that axes of inputs give, or that the user bounds.
UOpRef Importer::saidDim(llvm::StringRef text, llvm::StringRef input, int axis) {
  return dimFromText(module.ctx(), text, [&](llvm::StringRef name) -> UOpRef {
    return namesOfInputs.contains(name) || lowering.bound(name) ? namedDim(name.str(), input, axis) : nullptr;
  });
}

bool Importer::isConstant(llvm::StringRef input) const {
  return llvm::any_of(options.constants, [&](const ConstantInput &k) { return k.name == input; });
}

/// A dim that the user invents must have a value in every call.
void Importer::refuseLostDims() {
  llvm::DenseSet<UOpRef> given;
  for (const Value &input : module.entries[0].inputs)
    for (UOpRef extent : input.value->shape)
      if (auto x = dimMultiple(extent)) given.insert(x->dim);
  for (UOpRef dim : module.dims)
    if (!given.contains(dim))
      failures.addOfFlag("--dim " + dim->str.str() +
                         ": no axis of an input gives this dim: one must be the dim times a number, plus a number");
}

UOpRef Importer::namedDim(const std::string &name, llvm::StringRef input, int axis) {
  Context &c = module.ctx();
  if (auto known = dims.find(name); known != dims.end()) return known->second;
  const DimBound *bound = lowering.bound(name, /*byAny=*/true);
  if (!bound) {
    failures.addOfFlag(("input '" + input + "': dim '" + name + "' of axis " + llvm::Twine(axis) +
                        " is dynamic and needs bounds: give --dim " + shellWord(name + "=1..64") + " or the like")
                           .str(),
                       /*asks=*/true);
    return dims[name] = c.make(Op::Dim, {}, {1, 64}, name); // what else is wrong with it is found now
  }
  if (!bound->value.empty()) {
    dims[name] = nullptr; // no dim follows from itself
    size_t before = failures.size();
    UOpRef value = saidDim(bound->value, input, axis);
    if (!value && failures.size() == before) // else what it follows from was refused
      failures.addOfFlag(
          "--dim " + name + ": '" + bound->value +
          "' is not an expression of other dims of the model's inputs, with + - * // % ( ) and values in "
          "0..2^40; a name "
          "that the model does not have needs bounds of its own, as --dim " +
          name + "=4*q --dim q=1..16 has");
    return dims[name] = value;
  }
  if (bound->lo == bound->hi) return dims[name] = c.index(bound->lo);
  llvm::Expected<UOpRef> value = c.tryMake(Op::Dim, {}, {bound->lo, bound->hi}, name);
  if (!value) {
    failures.addOfFlag("--dim " + name + ": " + llvm::toString(value.takeError()));
    return dims[name] = nullptr;
  }
  module.dims.push_back(*value);
  return dims[name] = *value;
}

/// The input is not one of the module: its value is a parameter, which must have the type that the model declares. A
/// dynamic dim of it (null in `shape`) needs no bounds. What NumPy has no type for comes as unsigned integers.
UOpRef Importer::replaceByConstant(const ConstantInput &constant, DType dtype, llvm::ArrayRef<UOpRef> shape) {
  bool carried = isUnsigned(constant.dtype) && bitWidth(constant.dtype) == bitWidth(dtype) &&
                 (dtype == DType::BF16 || info(dtype).cls == DTypeClass::Storage);
  bool fits = (constant.dtype == dtype || carried) && constant.shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = !shape[i] || shape[i]->constIndex() == constant.shape[i];
  std::string words = "--constant " + constant.name + ": ";
  if (!fits) {
    auto text = llvm::map_range(constant.shape, [](int64_t d) { return std::to_string(d); });
    failures.add(words + "the file holds " + info(constant.dtype).text + "[" + llvm::join(text, ", ") +
                 "], which is not what the model declares: " + info(dtype).text + " of rank " +
                 std::to_string(shape.size()));
    return nullptr;
  }
  llvm::Expected<UOpRef> value =
      lowering.shared.constant(constant.name, {dtype, constant.shape, constant.bytes}, ParamKind::Fixed);
  if (value) return *value;
  failures.add(words + llvm::toString(value.takeError()));
  return nullptr;
}

/// Null after a failure.
UOpRef Importer::declareInput(const proto::Value &input) {
  std::string words = "input '" + input.name() + "' is ";
  auto unsupported = [&](const char *found) {
    failures.add(words + found + ", which is not supported: inputs are dense tensors of known rank", true);
    return nullptr;
  };
  const proto::Type &declared = input.type();
  if (std::string words = askForElements(input); !words.empty()) {
    failures.add(std::move(words), true);
    return nullptr;
  }
  if (declared.has_map()) return unsupported("a map");
  if (declared.has_sparse()) return unsupported("a sparse tensor");
  if (!declared.has_tensor() || !declared.tensor().has_shape()) return unsupported("a tensor of unknown rank");
  llvm::Expected<DType> dtype = elementType(declared.tensor().element());
  if (!dtype) {
    bool lacks = false;
    std::string text;
    llvm::handleAllErrors(dtype.takeError(), [&](const llvm::StringError &e) {
      lacks = e.convertToErrorCode() == std::errc::not_supported;
      text = e.getMessage();
    });
    failures.add("input '" + input.name() + "': " + text, lacks);
    return nullptr;
  }
  auto constant = llvm::find_if(options.constants, [&](const ConstantInput &k) { return k.name == input.name(); });
  bool isConstant = constant != options.constants.end(), known = true;
  Dims shape;
  for (int axis = 0; axis < declared.tensor().shape().dim_size(); ++axis) {
    const proto::Type::Dim &dim = declared.tensor().shape().dim(axis);
    bool open = isConstant && !(dim.has_value() && dim.value() >= 0);
    shape.push_back(open ? nullptr : inputDim(dim, input.name(), axis));
    known &= open || shape.back();
  }
  if (!known) return nullptr;
  if (isConstant) return replaceByConstant(*constant, *dtype, shape);
  Entry &entry = module.entries.back();
  if (int64_t(entry.inputs.size()) == mostInputs) {
    failures.add("input '" + input.name() + "' is one more than the " + std::to_string(mostInputs) +
                     " that are supported",
                 true);
    return nullptr;
  }
  llvm::Expected<UOpRef> value = module.ctx().tryMake(Op::Arg, shape, {int64_t(entry.inputs.size())}, {}, *dtype);
  if (!value) {
    failures.add("input '" + input.name() + "': " + llvm::toString(value.takeError()));
    return nullptr;
  }
  entry.inputs.push_back({input.name(), *value});
  return *value;
}

/// What is wrong with an input poisons it: the nodes are looked at all the same.
void Importer::declareInputs() {
  module.entries.push_back({"main", {}, {}, {}});
  std::vector<ByElements> byElements = inputsByElements(graph, options, failures);
  findNames();
  llvm::StringSet<> declared;
  for (const proto::Value &input : graph.input())
    if (!declared.insert(input.name()).second)
      failures.add("the model declares input '" + input.name() + "' twice");
    else if (!lowering.top.values.count(input.name())) // else an initializer, whose value it is
      lowering.define(lowering.top, input.name(), declareInput(input), "input");
  for (const ByElements &by : byElements) {
    std::vector<UOpRef> elements;
    for (const std::string &part : by.parts) elements.push_back(lowering.top.values.lookup(part));
    if (llvm::is_contained(elements, nullptr)) // its element was refused
      lowering.define(lowering.top, by.name, nullptr, "input");
    else
      lowering.define(lowering.top, by.name, by.isList ? Held{nullptr, listOf(elements)} : Held{}, "input");
  }
  for (const ConstantInput &constant : options.constants)
    if (llvm::none_of(graph.input(), [&](const proto::Value &input) { return input.name() == constant.name; }))
      failures.add("--constant " + constant.name + ": the model has no input of this name");
  refuseLostDims();
}

void Importer::refuseUnusedBounds() {
  for (const DimBound &bound : options.dims)
    if (bound.name != "*" && !lowering.boundsUsed.count(bound.name)) {
      std::vector<llvm::StringRef> names(dims.keys().begin(), dims.keys().end());
      llvm::sort(names);
      failures.addUnused(bound.name, "--dim " + bound.name + ": the model has no dynamic dim of this name" +
                                         (names.empty() ? "" : "; it has " + llvm::join(names, ", ")));
    }
}

/// The elements of a sequence that the graph gives, as outputs; their number is known, or it is refused.
void Importer::addElements(Entry &entry, const std::string &name, const List &list) {
  compose::Composer b(module.ctx(), &lowering.hints);
  std::optional<std::vector<UOpRef>> elements = elementsOf(b, list);
  if (!elements) return failures.add("output '" + name + "': " + b.failure(), b.isUnsupported());
  for (auto [k, element] : llvm::enumerate(*elements))
    entry.outputs.push_back({name + "." + std::to_string(k), element});
  if (options.notes)
    options.notes->push_back("output '" + name + "' is a sequence: its " + std::to_string(elements->size()) +
                             " elements are outputs, " + name + ".0 and so on");
}

/// The outputs as the graph gives them. Their types must be the declared ones; declared shapes are hints, which
/// exporters get wrong.
void Importer::collectOutputs(Entry &entry) {
  llvm::StringSet<> names;
  for (const proto::Value &output : graph.output()) {
    if (!names.insert(output.name()).second) {
      failures.add("the model gives output '" + output.name() + "' twice: give one of them another name with Identity");
      continue;
    }
    if (ListRef list = lowering.top.lists.lookup(output.name())) {
      addElements(entry, output.name(), *list);
      continue;
    }
    if (lowering.top.absent.count(output.name())) {
      if (options.notes)
        options.notes->push_back("output '" + output.name() + "' is an optional value without an element: the bundle " +
                                 "does not have it");
      continue;
    }
    auto value = lowering.top.values.find(output.name());
    if (value == lowering.top.values.end()) failures.add("output '" + output.name() + "' is not defined by any node");
    if (value == lowering.top.values.end() || !value->second) continue;
    UOpRef found = value->second;
    const proto::Type &type =
        output.type().has_optional_value() ? output.type().optional_value().element() : output.type();
    llvm::Expected<DType> dtype = type.has_tensor() ? elementType(type.tensor().element()) : found->dtype;
    bool agrees = dtype && *dtype == found->dtype;
    if (!dtype) llvm::consumeError(dtype.takeError());
    if (!agrees)
      failures.add("output '" + output.name() + "' is of type " + info(found->dtype).text +
                   ", which is not what the model declares");
    entry.outputs.push_back({output.name(), found});
  }
  llvm::StringSet<> given;
  for (const Value &output : entry.outputs)
    if (!given.insert(output.name).second)
      failures.add("the element of a sequence and an output are both called '" + output.name + "'");
  addPrediction(entry);
  if (graph.output_size() == 0)
    failures.add("the model has no output");
  else if (failures.empty() && entry.outputs.empty())
    failures.add("no output of the model has an element: there is nothing to compute", true);
}

void Importer::addPrediction(Entry &entry) {
  const std::string &name = options.prediction;
  if (name.empty() || llvm::any_of(entry.outputs, [&](const Value &v) { return v.name == name; })) return;
  auto value = lowering.top.values.find(name);
  if (value == lowering.top.values.end()) return failures.add("the model has no value '" + name + "' to predict");
  if (value->second) entry.outputs.push_back({name, value->second});
}

static constexpr const char *mergedHint =
    "exporters store equal tensors once: PyTorch's has each by itself with torch.onnx.export(..., optimize=False)";

void Importer::countReaders() {
  for (const proto::Node &node : graph.node())
    for (const std::string &input : node.input())
      readers[input].push_back(node.name().empty() ? node.op_type() : node.name());
}

/// Biases that begin as zeros may be one tensor in the file. Trained they would stay one, which nobody may have meant;
/// where the elements differ, sharing is.
void Importer::noteMergedParams() {
  if (!options.notes) return;
  for (const Param &p : lowering.shared.params) {
    auto r = readers.find(p.value->str);
    unsigned size = byteSize(p.value->dtype);
    if (p.kind != ParamKind::Weight || r == readers.end() || !isFloat(p.value->dtype) || !p.data ||
        p.data->size() < 2 * size || std::memcmp(p.data->data(), p.data->data() + size, p.data->size() - size))
      continue;
    std::vector<std::string> &nodes = r->second;
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end()); // a node may read it twice
    if (nodes.size() < 2) continue;
    options.notes->push_back("parameter '" + p.value->str.str() + "' is one tensor for " +
                             std::to_string(nodes.size()) + " nodes ('" + nodes[0] + "', '" + nodes[1] +
                             "' ...); if each should be trained by itself, " + mergedHint);
  }
}

/// The least of the numbers of values that batch norms take statistics from, where it may be one; else null. A number
/// that depends on data is left out: it is not known before the model has run.
static UOpRef leastCount(Context &c, llvm::ArrayRef<UOpRef> counts) {
  UOpRef least = nullptr;
  for (UOpRef count : counts) {
    if (count->lo > 1 || llvm::any_of(topoSort({count}), [](UOpRef n) { return n->is(Op::Extent); })) continue;
    least = least ? idxMin(c, least, count) : count;
  }
  return least;
}

/// The graph once more, as training sees it.
void Importer::addForward() {
  Shared::Training &t = lowering.shared.training;
  t.on = true;
  lowering.beginAgain();
  module.entries.push_back({"forward", module.entries[0].inputs, {}, {}});
  lowering.nodes(graph, lowering.top);
  collectOutputs(module.entries[1]);
  if (!failures.empty()) return;
  llvm::cantFail(addTaps(module.entries[1])); // main has the same names
  Builder b(module.ctx());
  std::vector<std::pair<UOpRef, UOpRef>> states;
  std::vector<Param> &params = lowering.shared.params;
  for (auto [param, next] : t.running) {
    module.entries[1].updates.push_back({param->str.str(), next});
    auto p = llvm::find_if(params, [param = param](const Param &q) { return q.value == param; });
    if (p == params.end()) {
      failures.add("the running statistics '" + param->str.str() + "' belong to two nodes, which cannot be trained");
      return;
    }
    if (auto r = readers.find(param->str); r != readers.end() && r->second.size() > 1) {
      const std::string &one = r->second[0], &other = r->second[1];
      failures.add("the running statistics '" + param->str.str() + "' are something else too, for " +
                   (one == other ? "node '" + one : "nodes '" + one + "' and '" + other) +
                   "', which cannot be trained; " + mergedHint);
      return;
    }
    states.push_back({param, b.state(param->str, param->dtype, param->shape)});
    module.states.push_back({states.back().second, p->data});
    params.erase(p);
  }
  if (t.key) { // the next key is a number that no node draws
    module.states.push_back({t.key, nullptr});
    UOpRef next = b.random(t.key, b.bits(DType::U32, ~0u), {b.idx(1)});
    module.entries[1].updates.push_back({t.key->str.str(), b.reshape(next, {})});
  }
  if (UOpRef least = leastCount(module.ctx(), t.counts))
    module.entries.push_back(
        {"batch_norm", module.entries[0].inputs, {{"values", b.fromIndex(least, DType::I64)}}, {}});
  replaceLeaves(module, states);
}

/// Values of the nodes in the file's order; an output of the model is one already.
llvm::Error Importer::addTaps(Entry &entry) {
  if (options.taps.empty()) return llvm::Error::success();
  llvm::Regex pattern("^(" + options.taps + ")$");
  std::string fault;
  if (!pattern.isValid(fault)) return sentence("--taps: '" + options.taps + "' is not a regular expression: " + fault);
  llvm::StringSet<> taken;
  for (const Value &output : entry.outputs) taken.insert(output.name);
  size_t before = entry.outputs.size();
  for (const proto::Node &node : graph.node())
    for (const std::string &name : node.output()) {
      UOpRef value = name.empty() ? nullptr : lowering.top.values.lookup(name);
      if (value && pattern.match(name) && taken.insert(name).second)
        entry.outputs.push_back({name, module.ctx().make(Op::Tap, {value}, {}, name)});
    }
  if (entry.outputs.size() == before) return sentence("--taps: no value of the model matches '" + options.taps + "'");
  return llvm::Error::success();
}

void Importer::keepUsedParams() {
  llvm::StringSet<> used;
  for (UOpRef node : topoSort(module.roots()))
    if (node->is(Op::Param)) used.insert(node->str);
  for (Param &param : lowering.shared.params)
    if (used.count(param.value->str)) module.params.push_back(std::move(param));
}

/// What a user may have meant to train and is not.
void Importer::noteKept() {
  if (!options.notes) return;
  std::vector<std::string> fixed, settings, unnamed;
  llvm::StringSet<> trained;
  for (const Param &p : module.params) {
    bool isFloat = p.value->dtype == DType::F32 || p.value->dtype == DType::F64;
    if (p.kind == ParamKind::Fixed && isFloat && !isConstant(p.value->str)) fixed.push_back(p.value->str.str());
    trained.insert(p.value->str);
  }
  for (const proto::Tensor &t : graph.initializer()) {
    llvm::Expected<DType> dtype = elementType(t.data_type());
    if (!dtype) llvm::consumeError(dtype.takeError());
    if (!dtype || (*dtype != DType::F32 && *dtype != DType::F64) || t.dims_size() || !readers.contains(t.name()))
      continue;
    if (!lowering.keepsScalar(t.name()))
      unnamed.push_back(t.name());
    else if (!trained.contains(t.name()))
      settings.push_back(t.name());
  }
  auto say = [&](const std::vector<std::string> &names, const char *why) {
    if (names.empty()) return;
    constexpr size_t most = 8;
    std::string all;
    for (const std::string &name : llvm::ArrayRef(names).take_front(most))
      all += (all.empty() ? "'" : ", '") + name + "'";
    if (names.size() > most) all += " and " + std::to_string(names.size() - most) + " more";
    options.notes->push_back("not trained: " + all + ", " + why);
  };
  say(fixed, "which the model has as buffers or in nodes Constant; initializers are trained");
  say(settings, "scalars that operators take as bounds, exponents, scales or the like");
  say(unnamed, "scalars that the file does not call parameters; --train-scalars=NAME trains one");
}

} // namespace
} // namespace onnx

/// What a sentence asks for is answered as it says, and the model read again: so one run tells all questions, and the
/// line to paste answers them.
llvm::Expected<Module> importONNX(llvm::StringRef path, const ImportOptions &options) {
  constexpr unsigned mostRounds = 16;
  ImportOptions answered = options;
  onnx::Failures all;
  bool isRead = false, anyAnswer = false;
  for (unsigned round = 0; round < mostRounds; ++round) {
    llvm::Expected<onnx::ModelFile> file = onnx::ModelFile::open(path);
    if (!file) return file.takeError();
    onnx::Importer importer(*file, answered);
    llvm::Expected<Module> module = importer.run();
    if (module && round == 0) return module;
    isRead = bool(module);
    if (module) break;
    if (round == 0 && importer.failed().empty()) return onnx::prefixed(path + ": ", module.takeError());
    llvm::consumeError(module.takeError());
    round == 0 ? void(all = importer.failed()) : all.addQuestions(importer.failed());
    answered.notes = nullptr;
    if (importer.failed().answer(answered.dims))
      anyAnswer = true;
    else if (!importer.failed().dropUnused(answered.dims))
      break;
  }
  if (!isRead) all.leaveOutUnused(answered.dims);
  std::string last = isRead ? "with these flags the model is read" : "flags for what is about dims";
  if (!options.dims.empty()) last += ", in place of every --dim given";
  return onnx::prefixed(path + ": ", all.error(anyAnswer ? last + ": " + onnx::flagsText(answered.dims) : ""));
}

} // namespace astra
