//===- Importer.cpp: from an ONNX model to a module ------------------------===//
// Takes:    a parsed model and the bounds of its dynamic dims.
// Gives:    a module with one entry, main; or one error with every sentence that the model earned.
// Keeps:    the model's order of inputs and outputs; nodes are lowered in the file's order, which ONNX requires to be
//           topological.
// Does not: know an op (Ops*.cpp).
#include "OpTable.h"
#include "astra/IR/Text.h"
#include "astra/Import/ONNX.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Regex.h"

namespace astra {
namespace onnx {

namespace {

llvm::Error sentence(const llvm::Twine &text, std::errc code = std::errc::invalid_argument) {
  return llvm::createStringError(std::make_error_code(code), text);
}

/// The same error with words put before its sentence; what kind of error it is stays.
llvm::Error prefixed(const llvm::Twine &words, llvm::Error e) {
  std::string text = words.str();
  return llvm::handleErrors(std::move(e), [&](const llvm::StringError &inner) {
    return llvm::createStringError(inner.convertToErrorCode(), llvm::Twine(text) + inner.getMessage());
  });
}

class Importer {
public:
  Importer(ModelFile &file, const ImportOptions &options)
      : file(file), graph(*file.model().mutable_graph()), options(options), shared(module.ctx(), file) {}

  llvm::Expected<Module> run() {
    if (llvm::Error e = refuseUnknownOps()) return e;
    if (llvm::Error e = declareConstants()) return e;
    if (llvm::Error e = declareInputs()) return e;
    for (int i = 0; i < graph.node_size(); ++i) lower(i);
    collectOutputs();
    if (llvm::Error e = addTaps()) return e;
    if (!failures.empty()) return allFailures();
    keepUsedParams();
    return std::move(module);
  }

private:
  llvm::Error refuseUnknownOps() const;
  llvm::Error declareConstants();
  llvm::Error declareInputs();
  llvm::Expected<UOpRef> inputDim(const proto::Type::Dim &dim, llvm::StringRef input, int axis);
  void lower(int index);
  void collectOutputs();
  llvm::Error addTaps();
  void keepUsedParams();
  llvm::Error allFailures() const;
  bool define(const std::string &name, UOpRef value, llvm::StringRef what);
  std::string describe(int index) const;

  ModelFile &file;
  proto::Graph &graph;
  const ImportOptions &options;
  Module module;
  Shared shared;
  llvm::StringMap<UOpRef> values; // null: its node failed, and was reported
  llvm::StringMap<UOpRef> dims;
  std::vector<std::string> failures;
  size_t fromNodes = 0;       // of them
  bool allUnsupported = true; // those are ONNX that Astra does not have
};

bool isDefaultDomain(const proto::Node &node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

std::string opName(const proto::Node &node) {
  return (isDefaultDomain(node) ? "" : node.domain() + "::") + node.op_type();
}

std::string Importer::describe(int index) const {
  const proto::Node &node = graph.node(index);
  std::string name = node.name().empty() ? "number " + std::to_string(index) : "'" + node.name() + "'";
  return "node " + name + " (" + opName(node) + ", opset " + std::to_string(file.opset()) + ")";
}

/// Every op of the model that has no row, in one sentence.
llvm::Error Importer::refuseUnknownOps() const {
  std::vector<std::pair<std::string, unsigned>> unknown;
  llvm::StringMap<size_t> at;
  int firstNode = -1;
  for (int i = 0; i < graph.node_size(); ++i) {
    const proto::Node &node = graph.node(i);
    if (isDefaultDomain(node) && findRow(node.op_type(), file.opset())) continue;
    if (firstNode < 0) firstNode = i;
    auto [entry, isNew] = at.try_emplace(opName(node), unknown.size());
    if (isNew) unknown.push_back({opName(node), 0});
    ++unknown[entry->second].second;
  }
  if (unknown.empty()) return llvm::Error::success();
  std::string text = describe(firstNode) + ": this op is not supported at this opset";
  auto count = [](unsigned nodes) { return " (" + std::to_string(nodes) + (nodes == 1 ? " node)" : " nodes)"); };
  text += "; unsupported in this model: ";
  for (size_t i = 0; i < unknown.size(); ++i) text += (i ? ", " : "") + unknown[i].first + count(unknown[i].second);
  return sentence(text, std::errc::not_supported);
}

bool Importer::define(const std::string &name, UOpRef value, llvm::StringRef what) {
  if (values.try_emplace(name, value).second) return true;
  failures.push_back((what + " '" + name + "': the model defines this name twice").str());
  return false;
}

llvm::Error Importer::declareConstants() {
  for (proto::Tensor &tensor : *graph.mutable_initializer()) {
    llvm::Expected<Payload> payload = file.payload(tensor);
    if (!payload) return payload.takeError();
    tensor.clear_raw_data();
    llvm::Expected<UOpRef> value = shared.constant(tensor.name(), std::move(*payload));
    if (!value) return prefixed("initializer '" + tensor.name() + "': ", value.takeError());
    define(tensor.name(), *value, "initializer");
    module.origins.add(*value, tensor.name());
  }
  return llvm::Error::success();
}

llvm::Expected<UOpRef> Importer::inputDim(const proto::Type::Dim &dim, llvm::StringRef input, int axis) {
  Context &c = module.ctx();
  if (dim.has_value() && dim.value() >= 0) return dim.value() <= int64_t(1) << 40 ? c.index(dim.value()) : nullptr;
  std::string name = dim.has_name() && !dim.name().empty() ? dim.name() : (input + "_" + llvm::Twine(axis)).str();
  if (auto known = dims.find(name); known != dims.end()) return known->second;
  const auto bound = llvm::find_if(options.dims, [&](const DimBound &b) { return b.name == name; });
  if (bound == options.dims.end()) {
    failures.push_back(("input '" + input + "': dim '" + name + "' of axis " + llvm::Twine(axis) +
                        " is dynamic and needs bounds: give --dim " + name + "=1..64 or the like")
                           .str());
    return dims[name] = nullptr;
  }
  if (bound->lo == bound->hi) return dims[name] = c.index(bound->lo);
  llvm::Expected<UOpRef> value = c.tryMake(Op::Dim, {}, {bound->lo, bound->hi}, name);
  if (!value) return prefixed("--dim " + name + ": ", value.takeError());
  module.dims.push_back(*value);
  return dims[name] = *value;
}

llvm::Error Importer::declareInputs() {
  module.entries.push_back({"main", {}, {}, {}});
  Entry &entry = module.entries.back();
  for (const proto::Value &input : graph.input()) {
    if (values.count(input.name())) continue; // an initializer that a caller of old models could replace
    if (!input.type().has_tensor() || !input.type().tensor().has_shape()) {
      failures.push_back("input '" + input.name() + "' is not a dense tensor of known rank, which is not supported");
      continue;
    }
    const proto::Type::TensorType &type = input.type().tensor();
    llvm::Expected<DType> dtype = elementType(type.element());
    if (!dtype) return prefixed("input '" + input.name() + "': ", dtype.takeError());
    Dims shape;
    for (int axis = 0; axis < type.shape().dim_size(); ++axis) {
      llvm::Expected<UOpRef> dim = inputDim(type.shape().dim(axis), input.name(), axis);
      if (!dim) return dim.takeError();
      shape.push_back(*dim);
    }
    if (!failures.empty()) continue;
    if (llvm::is_contained(shape, nullptr)) return sentence("input '" + input.name() + "' has an extent above 2^40");
    llvm::Expected<UOpRef> value = module.ctx().tryMake(Op::Arg, shape, {int64_t(entry.inputs.size())}, {}, *dtype);
    if (!value) return prefixed("input '" + input.name() + "': ", value.takeError());
    define(input.name(), *value, "input");
    entry.inputs.push_back({input.name(), *value});
  }
  for (const DimBound &bound : options.dims)
    if (!dims.count(bound.name)) {
      std::vector<llvm::StringRef> names(dims.keys().begin(), dims.keys().end());
      llvm::sort(names);
      failures.push_back("--dim " + bound.name + ": the model has no dynamic dim of this name" +
                         (names.empty() ? "" : "; it has " + llvm::join(names, ", ")));
    }
  return failures.empty() ? llvm::Error::success() : allFailures();
}

/// One node. A failure is noted and its outputs are poisoned, so that one run reports the faults that do not follow
/// from one another.
void Importer::lower(int index) {
  const proto::Node &node = graph.node(index);
  std::vector<UOpRef> inputs;
  std::optional<std::string> failure;
  bool poisoned = false;
  for (const std::string &name : node.input()) {
    auto value = name.empty() ? values.end() : values.find(name);
    if (!name.empty() && value == values.end()) failure = "input '" + name + "' is not defined before this node";
    poisoned |= value != values.end() && !value->second;
    inputs.push_back(value != values.end() ? value->second : nullptr);
  }

  const Row &row = *findRow(node.op_type(), file.opset());
  Node lowered(shared, node, inputs);
  size_t before = module.ctx().size();
  if (!failure && !poisoned) {
    if (inputs.size() > row.mostInputs || inputs.size() < row.leastInputs)
      lowered.fail("found " + llvm::Twine(inputs.size()) + " inputs, expected " + llvm::Twine(row.leastInputs) +
                   (row.mostInputs == row.leastInputs ? ""
                    : row.mostInputs == anyNumber     ? " or more"
                                                      : " to " + std::to_string(row.mostInputs)));
    else
      row.lower(lowered);
    lowered.checkAttributes();
    for (int i = 0; i < node.output_size(); ++i)
      if (lowered.wants(i) && !lowered.outputs()[i])
        lowered.unsupported("output " + llvm::Twine(i) + " is not supported");
    if (lowered.failed()) failure = lowered.failure();
    allUnsupported &= !lowered.failed() || lowered.isUnsupported();
  } else if (failure) {
    allUnsupported = false;
  }
  if (failure) {
    failures.push_back(describe(index) + ": " + *failure);
    ++fromNodes;
  }

  const std::string &origin = node.name().empty() ? node.op_type() : node.name();
  for (size_t id = before; id < module.ctx().size(); ++id)
    if (UOpRef made = module.ctx().node(id); !made->isIndex()) module.origins.add(made, origin);
  for (int i = 0; i < node.output_size(); ++i)
    if (lowered.wants(i)) {
      UOpRef value = failure || poisoned ? nullptr : lowered.outputs()[i];
      define(node.output(i), value, "output of " + describe(index));
      if (value) module.origins.add(value, origin);
    }
}

/// The outputs as the graph gives them; what the model declares about them must agree.
void Importer::collectOutputs() {
  for (const proto::Value &output : graph.output()) {
    auto value = values.find(output.name());
    if (value == values.end()) failures.push_back("output '" + output.name() + "' is not defined by any node");
    if (value == values.end() || !value->second) continue;
    UOpRef found = value->second;
    const proto::Type::TensorType &declared = output.type().tensor();
    llvm::Expected<DType> dtype = output.type().has_tensor() ? elementType(declared.element()) : found->dtype;
    bool agrees = dtype && *dtype == found->dtype;
    if (!dtype) llvm::consumeError(dtype.takeError());
    if (declared.has_shape()) {
      agrees &= declared.shape().dim_size() == int(found->rank());
      for (int i = 0; agrees && i < declared.shape().dim_size(); ++i)
        if (const proto::Type::Dim &dim = declared.shape().dim(i); dim.has_value() && dim.value() >= 0)
          agrees = dim.value() >= found->shape[i]->lo && dim.value() <= found->shape[i]->hi;
    }
    if (!agrees)
      failures.push_back("output '" + output.name() + "' is " + typeText(found->dtype, found->shape) +
                         ", which is not what the model declares");
    module.entries[0].outputs.push_back({output.name(), found});
  }
  if (graph.output_size() == 0) failures.push_back("the model has no output");
}

/// Values of the nodes in the file's order; an output of the model is one already.
llvm::Error Importer::addTaps() {
  if (options.taps.empty()) return llvm::Error::success();
  llvm::Regex pattern("^(" + options.taps + ")$");
  std::string fault;
  if (!pattern.isValid(fault)) return sentence("--taps: '" + options.taps + "' is not a regular expression: " + fault);
  Entry &entry = module.entries[0];
  llvm::StringSet<> taken;
  for (const Value &output : entry.outputs) taken.insert(output.name);
  size_t before = entry.outputs.size();
  for (const proto::Node &node : graph.node())
    for (const std::string &name : node.output()) {
      UOpRef value = name.empty() ? nullptr : values.lookup(name);
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
  for (Param &param : shared.params)
    if (used.count(param.value->str)) module.params.push_back(std::move(param));
}

llvm::Error Importer::allFailures() const {
  constexpr size_t most = 20;
  std::string text = llvm::join(llvm::ArrayRef<std::string>(failures).take_front(most), "\n");
  if (failures.size() > most) text += "\nand " + std::to_string(failures.size() - most) + " more";
  return sentence(text, allUnsupported && fromNodes == failures.size() ? std::errc::not_supported
                                                                       : std::errc::invalid_argument);
}

} // namespace
} // namespace onnx

llvm::Expected<Module> importONNX(llvm::StringRef path, const ImportOptions &options) {
  llvm::Expected<onnx::ModelFile> file = onnx::ModelFile::open(path);
  if (!file) return file.takeError();
  llvm::Expected<Module> module = onnx::Importer(*file, options).run();
  if (module) return module;
  return onnx::prefixed(path + ": ", module.takeError());
}

} // namespace astra
