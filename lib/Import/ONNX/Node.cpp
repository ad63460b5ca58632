//===- Node.cpp: one ONNX node while it is lowered -------------------------===//
// Takes:    a node that may be wrong in every way.
// Gives:    what Node.h says.
// Keeps:    the first failure of the node.
// Does not: print or collect failures (Importer.cpp).
#include "Lowering.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"
#include <cstring>

namespace astra::onnx {

Shared::Shared(Context &c, const ModelFile &file)
    : b(c), file(file), known(c, [this](UOpRef param) { return bytes(param); }) {}

const std::vector<uint8_t> *Shared::bytes(UOpRef param) const {
  auto found = param->is(Op::Param) ? byName.find(param->str.str()) : byName.end();
  return found == byName.end() ? nullptr : params[found->second].data.get();
}

llvm::Expected<UOpRef> Shared::constant(llvm::StringRef name, Payload payload, ParamKind kind, bool keepScalar) {
  bool isKept = keepScalar && (payload.dtype == DType::F32 || payload.dtype == DType::F64);
  if (payload.dims.empty() && !isComplex(payload.dtype) && !isKept) {
    uint64_t bits = 0;
    std::memcpy(&bits, payload.bytes.data(), payload.bytes.size());
    return b.bits(payload.dtype, bits);
  }
  Dims dims;
  for (int64_t d : payload.dims) dims.push_back(b.idx(d));
  auto isSame = [&](const Param &p) {
    return training.on && kind != ParamKind::Weight && p.kind == kind && p.value->dtype == payload.dtype &&
           p.value->shape == llvm::ArrayRef<UOpRef>(dims) && *p.data == payload.bytes;
  };
  std::string base = name.empty() ? "constant" : name.str(), unique = base;
  auto &made = byContent[llvm::hash_combine(base, llvm::xxh3_64bits(payload.bytes))];
  for (size_t other : made)
    if (isSame(params[other])) return params[other].value;
  for (unsigned &suffix = suffixes[base]; byName.count(unique);) unique = base + "." + std::to_string(++suffix);
  llvm::Expected<UOpRef> value = b.c.tryMake(Op::Param, dims, {}, unique, payload.dtype);
  if (!value) return value;
  byName[unique] = params.size();
  made.push_back(params.size());
  if (dims.empty()) scalars.insert(unique);
  params.emplace_back();
  params.back().value = *value;
  params.back().data = std::make_shared<const std::vector<uint8_t>>(std::move(payload.bytes));
  params.back().kind = kind;
  return value;
}

Node::Node(Lowering &lowering, const proto::Node &node, const Scope &scope, std::vector<UOpRef> inputs,
           std::vector<ListRef> lists)
    : Composer(lowering.shared.b.c, &lowering.hints), opset(scope.opsets->lookup("")), lowering(lowering), scope(scope),
      shared(lowering.shared), node(node), inputs(std::move(inputs)), results(node.output_size()),
      lists(std::move(lists)), listResults(node.output_size()), attributesRead(node.attribute_size()),
      given(node.output_size()) {}

std::string Node::name() const { return node.name().empty() && node.output_size() ? node.output(0) : node.name(); }
std::string Node::title() const { return node.op_type() + " '" + name() + "'"; }

// ---- inputs

UOpRef Node::in(unsigned i) {
  if (isList(i)) return fail("input " + llvm::Twine(i) + " is a sequence, expected a tensor");
  return has(i) ? inputs[i] : fail("input " + llvm::Twine(i) + " is missing");
}

ListRef Node::list(unsigned i) {
  if (isList(i)) return lists[i];
  fail("input " + llvm::Twine(i) + (has(i) ? " is a tensor, expected a sequence" : " is missing"));
  return nullptr;
}

Dims Node::knownDims(unsigned i, const char *what) {
  UOpRef x = in(i);
  const std::vector<UOpRef> *elements = x && !isFloat(x->dtype) ? shared.known.required(x) : nullptr;
  if (!elements) {
    unsupported(llvm::Twine(what) + " (input " + llvm::Twine(i) +
                ") depends on data: it must follow from constants and shapes" + cause(x));
    return {};
  }
  return {elements->begin(), elements->end()};
}

std::string Node::cause(UOpRef x) const {
  if (!x || !lowering.failures.matters()) return "";
  std::string text;
  for (UOpRef node : topoSort(x))
    if (node->is(Op::Arg) && node->ints[0] < int64_t(lowering.module.entries[0].inputs.size())) {
      const Value &input = lowering.module.entries[0].inputs[node->ints[0]];
      if (input.value == node)
        text += (text.empty() ? "" : " ") + ("--constant " + shellWord(input.name + "=FILE.npy"));
    }
  if (!text.empty()) return "; if it is the same in every call, give " + text;
  llvm::SmallVector<UOpRef, 4> dims;
  for (UOpRef node : topoSort(x))
    if (node->is(Op::Dim)) dims.push_back(node);
  return fixHint(dims);
}

Ints Node::knownInts(unsigned i, const char *what) {
  Ints values;
  for (UOpRef v : knownDims(i, what)) {
    if (!v->constIndex())
      unsupported(llvm::Twine(what) + " (input " + llvm::Twine(i) + ") is " + indexText(v) + ", a constant is needed" +
                  fixHint(v));
    values.push_back(v->constIndex().value_or(0));
  }
  return values;
}

std::optional<uint64_t> Node::knownBits(unsigned i) const {
  UOpRef x = inputs[i];
  llvm::SmallVector<UOpRef, 2> casts; // on the way, the last one first
  for (; x->op == Op::Reshape || x->op == Op::Expand || x->op == Op::Cast; x = x->src[0])
    if (x->op == Op::Cast) casts.push_back(x);
  std::optional<uint64_t> bits;
  if (x->op == Op::Const) bits = uint64_t(x->ints[0]);
  if (const std::vector<uint8_t> *bytes = shared.bytes(x);
      bytes && !bytes->empty() && bytes->size() == byteSize(x->dtype) && bytes->size() <= 8)
    std::memcpy(&bits.emplace(0), bytes->data(), bytes->size());
  for (; bits && !casts.empty(); casts.pop_back()) {
    UOpRef cast = casts.back();
    llvm::Expected<uint64_t> folded =
        foldElementwise(Op::Cast, cast->ints, cast->dtype, {{cast->src[0]->dtype, *bits}});
    bits = folded ? std::optional(*folded) : std::nullopt;
    if (!folded) llvm::consumeError(folded.takeError());
  }
  return bits;
}

uint64_t Node::literalBits(unsigned i, const char *what, uint64_t otherwise) {
  if (!has(i)) return otherwise;
  std::optional<uint64_t> bits = knownBits(i);
  if (!bits)
    unsupported(llvm::Twine(what) + " (input " + llvm::Twine(i) + ") must be a constant scalar" + cause(inputs[i]));
  return bits.value_or(otherwise);
}

double Node::literalNumber(unsigned i, const char *what) {
  UOpRef x = in(i);
  uint64_t bits = literalBits(i, what, 0);
  if (!x || failed()) return 0;
  llvm::Expected<uint64_t> wide = foldElementwise(Op::Cast, {0}, DType::F64, {{x->dtype, bits}});
  if (wide) return llvm::bit_cast<double>(*wide);
  fail(llvm::toString(wide.takeError()));
  return 0;
}

void Node::readSettings(uint32_t settings) {
  for (unsigned i = 0; i < inputs.size() && settings >> i; ++i) {
    UOpRef x = inputs[i];
    if (!(settings >> i & 1) || !x || x->rank()) continue;
    while ((x->is(Op::Cast) || x->is(Op::Reshape)) && !x->src[0]->rank()) x = x->src[0];
    if (!x->is(Op::Param) || x->rank() || llvm::is_contained(lowering.options.scalars, x->str)) continue;
    if (std::optional<uint64_t> bits = knownBits(i)) inputs[i] = c.literal(inputs[i]->dtype, *bits);
  }
}

// ---- attributes

const proto::Attribute *Node::find(llvm::StringRef name, bool read) {
  const proto::Attribute *found = nullptr;
  for (int i = 0; i < node.attribute_size(); ++i) {
    const proto::Attribute &a = node.attribute(i);
    if (a.name() != name) continue;
    if (found) fail("attribute '" + name + "' is given twice");
    attributesRead[i] = attributesRead[i] || read;
    found = &a;
  }
  if (!found || found->ref_attr_name().empty()) return found;
  if (scope.call) return scope.call->lookup(found->ref_attr_name()); // null: the caller left it out
  fail("attribute '" + name + "' refers to a function's attribute outside of a function");
  return nullptr;
}

#define ASTRA_TYPED_ATTRIBUTE(name, expected, otherwise)                                                               \
  const proto::Attribute *a = attribute(name);                                                                         \
  if (!a) return otherwise;                                                                                            \
  if (a->type() != proto::Attribute::expected) {                                                                       \
    fail("attribute '" + name + "' is not of type " #expected);                                                        \
    return otherwise;                                                                                                  \
  }

int64_t Node::intAttr(llvm::StringRef name, int64_t otherwise) {
  ASTRA_TYPED_ATTRIBUTE(name, INT, otherwise)
  return a->i();
}
double Node::floatAttr(llvm::StringRef name, double otherwise) {
  ASTRA_TYPED_ATTRIBUTE(name, FLOAT, otherwise)
  return a->f();
}
std::string Node::stringAttr(llvm::StringRef name, llvm::StringRef otherwise) {
  ASTRA_TYPED_ATTRIBUTE(name, STRING, otherwise.str())
  return a->s();
}
Ints Node::intsAttr(llvm::StringRef name, llvm::ArrayRef<int64_t> otherwise) {
  ASTRA_TYPED_ATTRIBUTE(name, INTS, Ints(otherwise.begin(), otherwise.end()))
  return Ints(a->ints().begin(), a->ints().end());
}
llvm::SmallVector<float, 4> Node::floatsAttr(llvm::StringRef name) {
  ASTRA_TYPED_ATTRIBUTE(name, FLOATS, {})
  return {a->floats().begin(), a->floats().end()};
}
std::vector<std::string> Node::stringsAttr(llvm::StringRef name) {
  ASTRA_TYPED_ATTRIBUTE(name, STRINGS, {})
  return {a->strings().begin(), a->strings().end()};
}
std::optional<Payload> Node::tensorAttr(llvm::StringRef name) {
  const proto::Attribute *a = attribute(name);
  if (!a) return std::nullopt;
  bool sparse = a->type() == proto::Attribute::SPARSE_TENSOR;
  if (!sparse && a->type() != proto::Attribute::TENSOR) {
    fail("attribute '" + name + "' is not of type TENSOR or SPARSE_TENSOR");
    return std::nullopt;
  }
  llvm::Expected<Payload> payload = sparse ? shared.file.payload(a->sparse_tensor()) : shared.file.payload(a->t());
  if (payload) return std::move(*payload);
  bool lacks = false;
  std::string text;
  llvm::handleAllErrors(payload.takeError(), [&](const llvm::StringError &e) {
    lacks = e.convertToErrorCode() == std::errc::not_supported;
    text = e.getMessage();
  });
  std::string words = ("attribute '" + name + "': ").str() + text;
  lacks ? unsupported(words) : fail(words);
  return std::nullopt;
}
const proto::Graph *Node::graphAttr(llvm::StringRef name) {
  ASTRA_TYPED_ATTRIBUTE(name, GRAPH, (fail("attribute '" + name + "' is missing"), nullptr))
  return &a->g();
}
#undef ASTRA_TYPED_ATTRIBUTE

void Node::checkAttributes() {
  for (int i = 0; i < node.attribute_size(); ++i)
    if (!attributesRead[i]) fail("attribute '" + node.attribute(i).name() + "' is not known");
}

const std::string &Node::opType() const { return node.op_type(); }

// ---- outputs

unsigned Node::numOutputs() const { return results.size(); }
bool Node::wants(unsigned i) const { return i < results.size() && !node.output(i).empty(); }
void Node::give(unsigned i, UOpRef value) {
  if (!value) unsupported("output " + llvm::Twine(i) + " is not supported");
  if (i < results.size()) results[i] = value, given[i] = value;
}

void Node::give(unsigned i, ListRef list) {
  if (i < listResults.size()) listResults[i] = std::move(list), given[i] = true;
}

void Node::give(unsigned i, const Held &value) {
  if (value.list) return give(i, value.list);
  if (value.tensor) return give(i, value.tensor);
  if (i < given.size()) given[i] = true;
}

UOpRef Node::parameter(Payload payload, ParamKind kind) {
  llvm::Expected<UOpRef> value = shared.constant(node.output_size() ? node.output(0) : "", std::move(payload), kind);
  return value ? *value : fail(llvm::toString(value.takeError()));
}

std::optional<int64_t> Node::placeholder() { return lowering.placeholder(); }

} // namespace astra::onnx
