//===- Lowering.cpp: the nodes of a graph, and graphs inside of nodes ------===//
#include "Lowering.h"
#include "Refusals.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::onnx {

namespace {

constexpr unsigned deepest = 32, mostAdded = 100'000;
constexpr int64_t lastArgument = 65535;

llvm::StringRef domainOf(const std::string &domain) { return domain == "ai.onnx" ? llvm::StringRef() : domain; }

std::string opName(const proto::Node &node) {
  llvm::StringRef domain = domainOf(node.domain());
  return (domain.empty() ? "" : domain.str() + "::") + node.op_type();
}

std::string functionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload) {
  return (domain + "\n" + name + "\n" + overload).str();
}

/// Where a name leads, through the graphs around; `found` tells a failed value from an unknown name.
UOpRef lookup(const Scope &scope, llvm::StringRef name, bool &found) {
  for (const Scope *s = &scope; s; s = s->outer)
    if (auto it = s->values.find(name); it != s->values.end()) {
      found = true;
      return it->second;
    }
  found = false;
  return nullptr;
}

/// A sequence of this name; null where it is none, or hidden.
ListRef lookupList(const Scope &scope, llvm::StringRef name) {
  for (const Scope *s = &scope; s; s = s->outer) {
    if (ListRef list = s->lists.lookup(name)) return list;
    if (s->values.count(name)) return nullptr;
  }
  return nullptr;
}

bool isAbsent(const Scope &scope, llvm::StringRef name) {
  for (const Scope *s = &scope; s; s = s->outer)
    if (s->absent.count(name) || s->values.count(name) || s->lists.count(name)) return s->absent.count(name);
  return false;
}

/// What a name stands for; nothing at all where it is unknown (`found` is false) or its node failed.
std::optional<Held> lookupHeld(const Scope &scope, llvm::StringRef name, bool &found) {
  found = true;
  if (ListRef list = lookupList(scope, name)) return Held{nullptr, list};
  if (isAbsent(scope, name)) return Held{};
  UOpRef value = lookup(scope, name, found);
  return value ? std::optional(Held{value}) : std::nullopt;
}

/// Why an op has no row, the end of a sentence.
std::string whyUnknown(llvm::StringRef op, llvm::StringRef domain) {
  int64_t first = oldestOpset, last = newestOpset;
  while (first <= newestOpset && !findRow(op, first)) ++first;
  while (last > first && !findRow(op, last)) --last;
  if (first <= newestOpset)
    return " at this opset, it is at some of " + std::to_string(first) + " to " + std::to_string(last);
  if (domain.empty()) return " at any opset";
  if (llvm::StringRef why = whyRefused((domain + "::" + op.rsplit("::").second).str()); !why.empty())
    return ": " + why.str();
  std::string words = ": it is of the domain '" + domain.str() + "', and the model has no function of this name; " +
                      "Astra knows the default domain, ai.onnx.ml on numbers and ops of com.microsoft";
  if (domain == "com.microsoft") words += ". ONNX Runtime's optimizer makes such nodes: take the model from before it";
  return words;
}

/// Words before the description of a node in a graph inside of another; of many levels the first and the last are kept.
std::string wordsFor(std::string outer, const llvm::Twine &inner) {
  constexpr size_t longest = 240;
  std::string words = std::move(outer) + inner.str() + ": ";
  if (words.size() <= longest) return words;
  return words.substr(0, longest / 2) + " ... " + words.substr(words.size() - longest / 2);
}

} // namespace

Lowering::Lowering(Module &module, ModelFile &file, const ImportOptions &options)
    : module(module), file(file), options(options), shared(module.ctx(), file) {
  auto collect = [](const auto &sets) {
    Opsets result;
    for (const proto::OperatorSet &set : sets) result[domainOf(set.domain())] = set.version();
    return result;
  };
  for (const proto::Described &value : file.model().graph().value_info())
    for (const proto::Entry &note : value.metadata_props())
      if (note.key() == "pkg.torch.export.graph_signature.InputSpec.kind") stated[value.name()] = note.value();
  opsets = collect(file.model().opset_import());
  top.opsets = &opsets;
  shared.known.mayBeCounted = [this](UOpRef mask) { return !isOfBody(mask); };
  for (const proto::Function &f : file.model().functions()) {
    std::string key = functionKey(domainOf(f.domain()), f.name(), f.overload());
    if (!functions.try_emplace(key, &f).second) failures.add("the model defines the function '" + f.name() + "' twice");
    Opsets &own = functionOpsets[key] = collect(f.opset_import());
    for (const auto &entry : opsets) own.try_emplace(entry.first(), entry.second);
  }
}

const DimBound *Lowering::bound(llvm::StringRef name, bool byAny) {
  auto find = [&](llvm::StringRef wanted) {
    return llvm::find_if(options.dims, [&](const DimBound &b) { return b.name == wanted; });
  };
  auto it = find(name);
  if (it == options.dims.end() && byAny) it = find("*");
  if (it == options.dims.end()) return nullptr;
  boundsUsed.insert(name);
  return &*it;
}

std::optional<int64_t> Lowering::placeholder() {
  int64_t number = lastArgument - placeholders;
  if (number < mostInputs) return std::nullopt;
  ++placeholders;
  return number;
}

bool Lowering::isOfBody(UOpRef x) {
  std::vector<std::pair<UOpRef, size_t>> stack; // a node and its next source
  auto visit = [&](UOpRef y) {
    if (ofBody.try_emplace(y, y->is(Op::Arg) && y->ints[0] >= mostInputs).second) stack.push_back({y, 0});
  };
  for (visit(x); !stack.empty();) {
    auto &[y, next] = stack.back();
    if (next < y->src.size()) {
      visit(y->src[next++]);
      continue;
    }
    bool any = ofBody[y] || llvm::any_of(y->src, [&](UOpRef s) { return ofBody[s]; });
    ofBody[y] = any;
    stack.pop_back();
  }
  return ofBody[x];
}

std::string Lowering::describe(const proto::Node &node, int index, const Scope &scope) const {
  std::string name = node.name().empty() ? "number " + std::to_string(index) : "'" + node.name() + "'";
  auto opset = scope.opsets->find(domainOf(node.domain()));
  std::string version = opset == scope.opsets->end() ? "not imported" : std::to_string(opset->second);
  return scope.where + "node " + name + " (" + opName(node) + ", opset " + version + ")";
}

ParamKind Lowering::kindOf(llvm::StringRef initializer) const {
  auto says = stated.find(initializer);
  return says == stated.end() || says->second == "PARAMETER" ? ParamKind::Weight : ParamKind::Fixed;
}

bool Lowering::keepsScalar(llvm::StringRef initializer) const {
  if (llvm::is_contained(options.scalars, initializer)) return true;
  return options.training && stated.lookup(initializer) == "PARAMETER";
}

bool Lowering::define(Scope &scope, const std::string &name, UOpRef value, llvm::StringRef what, ListRef list) {
  bool isNew =
      !scope.absent.count(name) && (list ? !scope.values.count(name) && scope.lists.try_emplace(name, list).second
                                         : !scope.lists.count(name) && scope.values.try_emplace(name, value).second);
  if (isNew) return true;
  failures.add((what + " '" + name + "': the model defines this name twice").str());
  return false;
}

bool Lowering::define(Scope &scope, const std::string &name, const Held &value, llvm::StringRef what) {
  bool isNew = !value.isNothing() || (!scope.values.count(name) && !scope.lists.count(name));
  if (value.isNothing() && isNew) return scope.absent.insert(name), true;
  return define(scope, name, value.tensor, what, value.list);
}

llvm::Error Lowering::constants(const proto::Graph &graph, Scope &scope, llvm::function_ref<void(int)> consumed) {
  auto constant = [&](const void *key, const std::string &name, auto payloadOf) -> llvm::Error {
    UOpRef &value = initializers[key]; // a body that is lowered again has its own already
    if (!value) {
      llvm::Expected<Payload> payload = payloadOf();
      if (!payload) return payload.takeError();
      llvm::Expected<UOpRef> made =
          shared.constant(name, std::move(*payload), kindOf(name), &scope == &top && keepsScalar(name));
      if (!made) return prefixed("initializer '" + name + "': ", made.takeError());
      value = *made;
      module.origins.add(value, name);
    }
    define(scope, name, value, "initializer");
    return llvm::Error::success();
  };
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const proto::Tensor &tensor = graph.initializer(i);
    if (llvm::Error e = constant(&tensor, tensor.name(), [&] { return file.payload(tensor); })) return e;
    if (consumed) consumed(i);
  }
  for (const proto::SparseTensor &sparse : graph.sparse_initializer())
    if (llvm::Error e = constant(&sparse, sparse.values().name(), [&] { return file.payload(sparse); })) return e;
  return llvm::Error::success();
}

void Lowering::nodes(const proto::Graph &graph, Scope &scope) {
  for (int i : ordered(&graph, graph.node(), scope)) node(graph.node(i), i, scope);
}

const std::vector<int> &Lowering::ordered(const void *graph, const ProtoNodes &nodes, Scope &scope) {
  auto [it, isNew] = orders.try_emplace(graph);
  Order &order = it->second;
  if (isNew) {
    order = orderOf(nodes, [&](llvm::StringRef name) {
      bool found = false;
      lookup(scope, name, found);
      return found || isAbsent(scope, name) || lookupList(scope, name);
    });
    if (!order.cycle.empty())
      failures.add(scope.where + (order.cycle.size() == 1 ? "node " : "nodes ") + nodesText(nodes, order.cycle) +
                   (order.cycle.size() == 1 ? " reads its own output"
                                            : " form a cycle, in which each reads an output of the next") +
                   ": a graph has no cycles in ONNX, what repeats is a Loop");
    else if (order.moved && !std::exchange(sorted, true) && options.notes)
      options.notes->push_back(scope.where + "node " + nodesText(nodes, {order.moved->first}) + " stands before node " +
                               nodesText(nodes, {order.moved->second}) +
                               ", whose output it reads: the nodes were sorted, as ONNX requires of a file");
  }
  if (!order.cycle.empty()) {
    std::vector<bool> can(nodes.size(), false);
    for (int i : order.nodes) can[i] = true;
    for (int i = 0; i < nodes.size(); ++i)
      if (!can[i]) poison(nodes[i], scope);
  }
  return order.nodes;
}

void Lowering::poison(const proto::Node &node, Scope &scope) {
  for (const std::string &name : node.output())
    if (!name.empty()) scope.values.try_emplace(name, nullptr);
}

void Lowering::node(const proto::Node &node, int index, Scope &scope) {
  unsigned most = mostAdded + unsigned(file.model().graph().node_size());
  if (lowered++ == most)
    failures.add(describe(node, index, scope) + ": functions and loops of this model expand to more than " +
                 std::to_string(most) + " nodes");
  if (lowered > most) return poison(node, scope);
  llvm::StringRef domain = domainOf(node.domain());
  auto function = functions.find(functionKey(domain, node.op_type(), node.overload()));
  if (function != functions.end()) return call(*function->second, node, index, scope);
  auto opset = scope.opsets->find(domain);
  const Row *row = opset == scope.opsets->end() ? nullptr : findRow(opName(node), opset->second);
  if (row) return rowNode(node, index, scope, *row);
  failures.addUnknownOp(
      opName(node), [&] { return describe(node, index, scope); }, [&] { return whyUnknown(opName(node), domain); });
  poison(node, scope);
}

std::optional<Lowering::Inputs> Lowering::inputs(const proto::Node &node, int index, const Scope &scope) {
  Inputs given;
  auto &[values, lists] = given;
  bool poisoned = false;
  for (const std::string &name : node.input()) {
    lists.push_back(name.empty() ? nullptr : lookupList(scope, name));
    bool left = name.empty() || lists.back() || isAbsent(scope, name), found = left;
    values.push_back(left ? nullptr : lookup(scope, name, found));
    if (!found)
      failures.add(describe(node, index, scope) + ": input '" + name +
                   "' is not defined by any node, input or initializer");
    poisoned |= !left && !values.back();
  }
  if (poisoned) return std::nullopt;
  return given;
}

void Lowering::rowNode(const proto::Node &node, int index, Scope &scope, const Row &row) {
  std::optional<Inputs> given = inputs(node, index, scope);
  if (!given) return poison(node, scope);
  size_t before = module.ctx().size(), count = given->values.size();
  auto list = row.takesLists ? given->lists.end() : llvm::find_if(given->lists, [](auto &l) { return !!l; });
  Node n(*this, node, scope, given->values, given->lists);
  if (count > row.mostInputs || count < row.leastInputs)
    n.fail("found " + llvm::Twine(count) + " inputs, expected " + llvm::Twine(row.leastInputs) +
           (row.mostInputs == row.leastInputs ? ""
            : row.mostInputs == anyNumber     ? " or more"
                                              : " to " + std::to_string(row.mostInputs)));
  else if (list != given->lists.end())
    n.unsupported("input '" + node.input(int(list - given->lists.begin())) +
                  "' is a sequence, which is not supported " +
                  "here: take its elements by SequenceAt or ConcatFromSequence");
  else if (n.has(0) && !(row.types & only(n.in(0)->dtype)))
    n.unsupported(llvm::Twine("the first input is of type ") + info(n.in(0)->dtype).text + ", supported are " +
                  typesText(row.types));
  else {
    if (options.training && stated.empty()) n.readSettings(row.settings);
    row.lower(n);
    if (n.failed() && !n.wasReported() && !n.isUnsupported()) failures.setImpossible();
  }
  if (module.ctx().takeOverflow()) n.fail("a symbolic integer leaves 62 bits or 2^14 terms");
  n.checkAttributes();
  for (int i = 0; i < node.output_size(); ++i)
    if (n.wants(i) && !n.isGiven(i)) n.unsupported("output " + llvm::Twine(i) + " is not supported");
  if (n.failed()) {
    if (!n.wasReported()) failures.add(describe(node, index, scope) + ": " + n.failure(), n.isUnsupported());
    return poison(node, scope);
  }
  const std::string &origin = node.name().empty() ? node.op_type() : node.name();
  for (size_t id = before; id < module.ctx().size(); ++id)
    if (UOpRef made = module.ctx().node(id); !made->isIndex()) module.origins.add(made, origin);
  for (int i = 0; i < node.output_size(); ++i)
    if (n.wants(i)) {
      define(scope, node.output(i), n.output(i), "output of " + describe(node, index, scope));
      if (UOpRef value = n.output(i).tensor) module.origins.add(value, origin);
    }
}

/// A function's body in the place of its call: a graph whose names are its own.
void Lowering::call(const proto::Function &function, const proto::Node &node, int index, Scope &scope) {
  std::optional<Inputs> given = inputs(node, index, scope);
  int count = given ? int(given->values.size()) : 0;
  auto fail = [&](const llvm::Twine &sentence) {
    failures.add((describe(node, index, scope) + ": " + sentence).str());
  };
  if (scope.depth == deepest) fail("functions and graphs nest deeper than " + llvm::Twine(deepest));
  if (count > function.input_size())
    fail("found " + llvm::Twine(count) + " inputs, the function has " + llvm::Twine(function.input_size()));
  if (node.output_size() > function.output_size())
    fail("found " + llvm::Twine(node.output_size()) + " outputs, the function has " +
         llvm::Twine(function.output_size()));
  if (!given || scope.depth == deepest || count > function.input_size() || node.output_size() > function.output_size())
    return poison(node, scope);

  // Attributes of the call, or the function's defaults; one that refers to the caller's own is followed.
  llvm::StringMap<const proto::Attribute *> attributes;
  for (const proto::Attribute &a : function.attribute_proto()) attributes[a.name()] = &a;
  for (const proto::Attribute &a : node.attribute()) {
    if (!attributes.count(a.name()) && !llvm::is_contained(function.attribute(), a.name())) {
      fail("attribute '" + a.name() + "' is not one of the function's");
      return poison(node, scope);
    }
    const proto::Attribute *value = &a;
    if (!a.ref_attr_name().empty()) value = scope.call ? scope.call->lookup(a.ref_attr_name()) : nullptr;
    if (value) attributes[a.name()] = value;
  }
  Scope inner;
  inner.call = &attributes;
  inner.opsets = &functionOpsets[functionKey(domainOf(function.domain()), function.name(), function.overload())];
  inner.where = wordsFor("", describe(node, index, scope));
  inner.depth = scope.depth + 1;
  for (int i = 0; i < function.input_size(); ++i)
    if (i < count && given->lists[i])
      inner.lists[function.input(i)] = given->lists[i];
    else if (i < count && given->values[i])
      inner.values[function.input(i)] = given->values[i];
    else
      inner.absent.insert(function.input(i));
  for (int i : ordered(&function, function.node(), inner)) this->node(function.node(i), i, inner);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    std::string what = "output of " + describe(node, index, scope);
    bool found = false;
    std::optional<Held> value = lookupHeld(inner, function.output(i), found);
    if (!found) fail("the function does not define its output '" + function.output(i) + "'");
    value ? define(scope, node.output(i), *value, what) : define(scope, node.output(i), nullptr, what);
  }
}

std::vector<UOpRef> Lowering::part(const proto::Graph &graph, llvm::ArrayRef<UOpRef> inputs, const Scope &outer,
                                   llvm::ArrayRef<int> nodes, llvm::ArrayRef<std::string> names) {
  Scope inner;
  inner.outer = &outer;
  inner.call = outer.call;
  inner.opsets = outer.opsets;
  inner.depth = outer.depth + 1;
  std::vector<UOpRef> results(names.size());
  if (inner.depth > deepest || int(inputs.size()) != graph.input_size()) return results;
  Failures before = failures;
  if (llvm::Error e = constants(graph, inner)) {
    llvm::consumeError(std::move(e));
    return results;
  }
  for (int i = 0; i < graph.input_size(); ++i) define(inner, graph.input(i).name(), inputs[i], "input");
  for (int i : nodes) node(graph.node(i), i, inner);
  for (auto [result, name] : llvm::zip(results, names)) {
    bool found = false;
    result = lookup(inner, name, found);
  }
  failures = std::move(before);
  return results;
}

std::optional<std::vector<UOpRef>> Lowering::body(const proto::Graph &graph, llvm::ArrayRef<UOpRef> inputs,
                                                  const Scope &outer, const llvm::Twine &what) {
  std::vector<Held> given;
  for (UOpRef x : inputs) given.push_back({x});
  auto results = heldBody(graph, given, outer, what);
  if (!results) return std::nullopt;
  std::vector<UOpRef> tensors;
  for (auto [i, result] : llvm::enumerate(*results)) {
    tensors.push_back(result.tensor);
    if (result.tensor) continue;
    failures.add(wordsFor(outer.where, what) + "output '" + graph.output(int(i)).name() + "' is " +
                     (result.list ? "a sequence" : "an optional value without an element") +
                     ", which is not supported: a graph inside of a node gives tensors here",
                 true);
    return std::nullopt;
  }
  return tensors;
}

std::optional<std::vector<Held>> Lowering::heldBody(const proto::Graph &graph, llvm::ArrayRef<Held> inputs,
                                                    const Scope &outer, const llvm::Twine &what) {
  Scope inner;
  inner.outer = &outer;
  inner.call = outer.call;
  inner.opsets = outer.opsets;
  inner.where = wordsFor(outer.where, what);
  inner.depth = outer.depth + 1;
  auto fail = [&](const llvm::Twine &sentence) {
    failures.add((inner.where + sentence).str());
    return std::nullopt;
  };
  if (inner.depth > deepest) return fail("functions and graphs nest deeper than " + llvm::Twine(deepest));
  if (int(inputs.size()) != graph.input_size())
    return fail("the graph has " + llvm::Twine(graph.input_size()) + " inputs, expected " + llvm::Twine(inputs.size()));
  if (llvm::Error e = constants(graph, inner)) return fail(llvm::toString(std::move(e)));
  for (int i = 0; i < graph.input_size(); ++i) define(inner, graph.input(i).name(), inputs[i], "input");
  nodes(graph, inner);
  std::vector<Held> results;
  for (const proto::Value &output : graph.output()) {
    bool found = false;
    std::optional<Held> value = lookupHeld(inner, output.name(), found);
    if (!found) return fail("output '" + output.name() + "' is not defined");
    if (!value) return std::nullopt;
    results.push_back(*value);
  }
  return results;
}

} // namespace astra::onnx
