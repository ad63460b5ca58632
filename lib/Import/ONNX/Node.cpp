//===- Node.cpp: one ONNX node while it is lowered -------------------------===//
// Takes:    a node that may be wrong in every way.
// Gives:    what Node.h says.
// Keeps:    the first failure of the node.
// Does not: print or collect failures (Importer.cpp).
#include "Lowering.h"
#include "Multiples.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"
#include <cmath>
#include <cstring>

namespace astra::onnx {

std::vector<UOpRef> indexParts(UOpRef extent) {
  std::vector<UOpRef> order;
  llvm::DenseSet<UOpRef> seen = {extent};
  std::vector<std::pair<UOpRef, size_t>> stack = {{extent, 0}};
  while (!stack.empty()) {
    auto &[x, next] = stack.back();
    if (x->is(Op::Extent) || next == x->src.size()) {
      order.push_back(x);
      stack.pop_back();
    } else if (UOpRef s = x->src[next++]; seen.insert(s).second) {
      stack.push_back({s, 0});
    }
  }
  return order;
}

bool isDataDim(UOpRef extent) {
  return llvm::any_of(indexParts(extent), [](UOpRef x) { return x->is(Op::Extent); });
}

std::string dimsText(llvm::ArrayRef<UOpRef> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + indexText(dims[i]);
  return out + "]";
}

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
    : b(lowering.shared.b), c(b.c), opset(scope.opsets->lookup("")), lowering(lowering), scope(scope),
      shared(lowering.shared), node(node), inputs(std::move(inputs)), results(node.output_size()),
      lists(std::move(lists)), listResults(node.output_size()), attributesRead(node.attribute_size()) {}

std::string Node::name() const { return node.name().empty() && node.output_size() ? node.output(0) : node.name(); }
std::string Node::title() const { return node.op_type() + " '" + name() + "'"; }

UOpRef Node::fail(const llvm::Twine &sentence) {
  if (!state.error) state.error = sentence.str();
  return nullptr;
}

UOpRef Node::unsupported(const llvm::Twine &sentence) {
  if (!state.error) state.beyond = true;
  return fail(sentence);
}

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

void Node::fixedAttr(llvm::StringRef name, int64_t value) {
  if (int64_t found = intAttr(name, value); found != value)
    unsupported("attribute '" + name + "' is " + llvm::Twine(found) + ", only " + llvm::Twine(value) + " is supported");
}

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
  if (i < results.size()) results[i] = value;
}

void Node::give(unsigned i, ListRef list) {
  if (i < listResults.size()) listResults[i] = std::move(list);
}

// ---- building

/// The pair that differs, where all of them may be equal.
static std::optional<std::pair<UOpRef, UOpRef>> mayBeEqual(llvm::ArrayRef<UOpRef> found,
                                                           llvm::ArrayRef<UOpRef> expected) {
  if (found.size() != expected.size()) return std::nullopt;
  std::optional<std::pair<UOpRef, UOpRef>> first;
  for (auto [x, y] : llvm::zip(found, expected)) {
    if (x->hi < y->lo || y->hi < x->lo || (x != y && x->constIndex() && y->constIndex())) return std::nullopt;
    if (x != y && !first) first = {x, y};
  }
  return first;
}

/// Whether what a type rule refused holds for some values of the dims, as far as bounds tell.
static bool mayHold(Op op, llvm::ArrayRef<UOpRef> src) {
  llvm::ArrayRef<UOpRef> shape = src[0]->shape, given = src.drop_front();
  auto possible = [](int64_t lo, int64_t hi, UOpRef v) { return v->hi >= lo && v->lo <= hi; };
  if (op == Op::Reshape) { // in f64: a little too wide
    auto count = [](llvm::ArrayRef<UOpRef> dims, bool most) {
      double product = 1;
      for (UOpRef d : dims) product *= double(most ? d->hi : d->lo);
      return product;
    };
    return llvm::all_of(given, [](UOpRef d) { return d->lo >= 0; }) && count(given, false) <= count(shape, true) &&
           count(given, true) >= count(shape, false) &&
           count(given, false) + count(shape, false) != count(given, true) + count(shape, true);
  }
  if (op != Op::Shrink || given.size() != 2 * shape.size()) return false;
  for (auto [extent, begin, size] : llvm::zip(shape, given, given.drop_front(shape.size())))
    if (!possible(0, extent->hi, begin) || !possible(0, extent->hi, size) || begin->lo + size->lo > extent->hi)
      return false;
  return true;
}

UOpRef Node::make(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, DType dtype) {
  if (state.error || llvm::is_contained(src, nullptr)) return fail("a value is missing");
  llvm::Expected<UOpRef> made = c.tryMake(op, src, ints, {}, dtype);
  if (made) return folded(*made);
  std::string sentence = llvm::toString(made.takeError());
  if (op == Op::Pick || op == Op::Scatter) { // along all axes but one
    Dims x(src[0]->shape.begin(), src[0]->shape.end()), index(src[1]->shape.begin(), src[1]->shape.end());
    if (x.size() == index.size() && ints[0] >= 0 && ints[0] < int64_t(x.size())) x[ints[0]] = index[ints[0]];
    if (x == index && op == Op::Scatter) x.assign(src[2]->shape.begin(), src[2]->shape.end());
    return failExtents(sentence, index, x);
  }
  if (src.empty() || !mayHold(op, src)) return fail(sentence);
  Dims extents(src[0]->shape.begin(), src[0]->shape.end());
  extents.append(src.begin() + 1, src.end());
  std::string multiple;
  if (op == Op::Reshape)
    multiple = multipleHint(lowering, extents, [&](auto with) {
      auto count = [&](llvm::ArrayRef<UOpRef> xs) { return with(idxProduct(c, xs)); };
      return count(src[0]->shape) == count(llvm::ArrayRef(src).drop_front());
    });
  return unsupported(sentence + orElse(multiple, fixHint(extents)));
}

/// An elementwise op on literals is a literal: models compute sizes with float scalars too. Functions wait for the
/// numerics stage.
UOpRef Node::folded(UOpRef x) {
  auto isLiteral = [](UOpRef s) { return s->isConst() && !s->isIndex(); };
  if (x->op == Op::Detach && isLiteral(x->src[0])) return x->src[0];
  if (!astra::has(x->op, Elementwise) || astra::has(x->op, Function) || !llvm::all_of(x->src, isLiteral)) return x;
  llvm::SmallVector<std::pair<DType, uint64_t>, 3> sources;
  for (UOpRef s : x->src) sources.push_back({s->dtype, uint64_t(s->ints[0])});
  llvm::Expected<uint64_t> bits = foldElementwise(x->op, x->ints, x->dtype, sources);
  if (bits) return c.literal(x->dtype, *bits);
  llvm::consumeError(bits.takeError());
  return x;
}

UOpRef Node::bin(Op op, UOpRef x, UOpRef y) {
  if (!x || !y) return nullptr;
  Dims dims = broadcastShape({x->shape, y->shape});
  return make(op, {broadcastTo(x, dims), broadcastTo(y, dims)});
}

UOpRef Node::parameter(Payload payload, ParamKind kind) {
  llvm::Expected<UOpRef> value = shared.constant(node.output_size() ? node.output(0) : "", std::move(payload), kind);
  return value ? *value : fail(llvm::toString(value.takeError()));
}

UOpRef Node::literal(UOpRef like, double value) {
  if (!like) return nullptr;
  DType t = like->dtype;
  if (!isArithmetic(t) || isComplex(t)) return unsupported(llvm::Twine("not defined on type ") + info(t).text);
  if (isInt(t)) {
    double below = isSigned(t) ? -std::ldexp(1, int(bitWidth(t)) - 1) : 0,
           beyond = std::ldexp(1, int(bitWidth(t)) - isSigned(t));
    if (!(value >= below && value < beyond)) {
      fail("the number " + llvm::Twine(std::to_string(value)) + " is none of type " + info(t).text);
      value = 0;
    }
    return b.litInt(t, value < 0x1p63 ? int64_t(value) : int64_t(uint64_t(value)));
  }
  return b.lit(t, value);
}

UOpRef Node::select(UOpRef condition, UOpRef x, UOpRef y) {
  if (!condition || !x || !y) return nullptr;
  Dims dims = broadcastShape({condition->shape, x->shape, y->shape});
  return make(Op::Select, {broadcastTo(condition, dims), broadcastTo(x, dims), broadcastTo(y, dims)});
}

UOpRef Node::cast(UOpRef x, DType to, bool saturate) {
  return !x || x->dtype == to ? x : make(Op::Cast, {x}, {saturate}, to);
}

static Dims join(UOpRef x, std::initializer_list<llvm::ArrayRef<UOpRef>> lists) {
  Dims all = {x};
  for (llvm::ArrayRef<UOpRef> list : lists) all.append(list.begin(), list.end());
  return all;
}

UOpRef Node::reshape(UOpRef x, llvm::ArrayRef<UOpRef> dims) {
  while (x && x->is(Op::Reshape)) x = x->src[0]; // only the last of several shapes matters
  return !x || x->shape == dims ? x : make(Op::Reshape, join(x, {dims}));
}

UOpRef Node::permute(UOpRef x, llvm::ArrayRef<int64_t> perm) {
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i) identity &= perm[i] == int64_t(i);
  return x && identity && perm.size() == x->rank() ? x : make(Op::Permute, {x}, perm);
}

UOpRef Node::broadcastTo(UOpRef x, llvm::ArrayRef<UOpRef> dims) {
  if (!x || x->shape == dims) return x;
  if (x->rank() > dims.size()) return fail("cannot broadcast " + dimsText(x->shape) + " to " + dimsText(dims));
  Dims padded(dims.size() - x->rank(), c.index(1));
  padded.append(x->shape.begin(), x->shape.end());
  UOpRef shaped = reshape(x, padded);
  return !shaped || shaped->shape == dims ? shaped : make(Op::Expand, join(shaped, {dims}));
}

UOpRef Node::pad(UOpRef x, llvm::ArrayRef<UOpRef> lo, llvm::ArrayRef<UOpRef> hi, uint64_t bits) {
  auto isZero = [](UOpRef v) { return v && v->constIndex() == 0; };
  if (llvm::all_of(lo, isZero) && llvm::all_of(hi, isZero)) return x;
  return make(Op::Pad, join(x, {lo, hi}), {int64_t(bits)});
}

UOpRef Node::withRoom(UOpRef x, int64_t axis, UOpRef length) {
  if (!x) return nullptr;
  UOpRef slack = idxSub(c, x->shape[axis], length);
  if (slack->lo >= 0) return x;
  Dims none(x->rank(), c.index(0)), room = none;
  room[axis] = c.index(-slack->lo);
  return pad(x, none, room, 0);
}

UOpRef Node::shrink(UOpRef x, llvm::ArrayRef<UOpRef> begin, llvm::ArrayRef<UOpRef> size) {
  if (!x || x->shape == size) return x;
  return make(Op::Shrink, join(x, {begin, size}));
}

UOpRef Node::concat(llvm::ArrayRef<UOpRef> xs, int64_t axis) {
  for (UOpRef x : xs) {
    if (!x) return nullptr;
    bool fits = x->dtype == xs[0]->dtype && x->rank() == xs[0]->rank();
    for (unsigned i = 0; fits && i < x->rank(); ++i) {
      UOpRef a = x->shape[i], b = xs[0]->shape[i];
      if (int64_t(i) == axis || a == b) continue;
      fits = a->lo <= b->hi && b->lo <= a->hi;
      if (fits) {
        requireEqual(b, a, "axis " + llvm::Twine(i) + " of what is joined");
        return nullptr;
      }
    }
    if (!fits)
      return fail("cannot join " + typeText(xs[0]->dtype, xs[0]->shape) + " and " + typeText(x->dtype, x->shape) +
                  " along axis " + llvm::Twine(axis));
  }
  if (xs.size() == 1) return xs[0];
  Dims total(xs[0]->shape.begin(), xs[0]->shape.end());
  for (UOpRef x : xs.drop_front()) total[axis] = idxAdd(c, total[axis], x->shape[axis]);
  return iota(DType::I64, total, axis) ? b.concat(xs, axis)
                                       : nullptr; // the iota is concat's largest part: what it refuses is refused here
}

UOpRef Node::reduce(ReduceKind kind, UOpRef x, llvm::ArrayRef<int64_t> axes, bool chain) {
  if (!x || axes.empty()) return x;
  bool ordered = isFloat(x->dtype) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod);
  ReduceOrder order = !ordered ? ReduceOrder::Exact : chain ? ReduceOrder::Chain : ReduceOrder::Lane64;
  UOpRef folded = make(Op::Reduce, {x}, encode(ReduceSpec{kind, order, {axes.begin(), axes.end()}, {}}));
  if (!folded) return nullptr;
  Dims kept(x->shape.begin(), x->shape.end());
  for (int64_t axis : axes) kept[axis] = c.index(1);
  return reshape(folded, kept);
}

UOpRef Node::contract(const ContractSpec &spec, UOpRef x, UOpRef y, llvm::ArrayRef<UOpRef> extents) {
  return make(Op::Contract, join(x, {{y}, extents}), encode(spec));
}

UOpRef Node::squeeze(UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!x || failed()) return nullptr;
  Dims dims;
  for (unsigned i = 0; i < x->rank(); ++i) {
    if (!llvm::is_contained(axes, int64_t(i)))
      dims.push_back(x->shape[i]);
    else if (x->shape[i]->constIndex() != 1)
      return fail("axis " + llvm::Twine(i) + " of " + dimsText(x->shape) + " is not of extent 1");
  }
  return reshape(x, dims);
}

UOpRef Node::unsqueeze(UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!x || failed()) return nullptr;
  Dims dims(x->shape.begin(), x->shape.end());
  for (int64_t axis : axes) dims.insert(dims.begin() + axis, c.index(1));
  return reshape(x, dims);
}

UOpRef Node::perChannel(UOpRef x, unsigned rank) {
  if (!requireRank(x, 1, 1)) return nullptr;
  Dims dims(rank - 1, c.index(1));
  dims[0] = x->shape[0];
  return reshape(x, dims);
}

// ---- shapes

Dims Node::broadcastShape(llvm::ArrayRef<llvm::ArrayRef<UOpRef>> shapes) {
  size_t rank = 0;
  for (llvm::ArrayRef<UOpRef> shape : shapes) rank = std::max(rank, shape.size());
  Dims common(rank, c.index(1));
  for (llvm::ArrayRef<UOpRef> shape : shapes)
    for (size_t i = 0; i < shape.size(); ++i) {
      UOpRef &to = common[rank - shape.size() + i], from = shape[i];
      if (from == to || from->constIndex() == 1) continue;
      if (to->constIndex() == 1) {
        to = from;
        continue;
      }
      requireEqual(to, from, "axis " + llvm::Twine(rank - shape.size() + i), " do not broadcast");
    }
  return common;
}

UOpRef Node::failExtents(const llvm::Twine &sentence, llvm::ArrayRef<UOpRef> found, llvm::ArrayRef<UOpRef> expected) {
  auto pair = mayBeEqual(found, expected);
  return pair ? unsupported(sentence + equalHint(lowering, pair->first, pair->second)) : fail(sentence);
}

bool Node::requireEqual(UOpRef x, UOpRef y, const llvm::Twine &what, const char *otherwise) {
  if (x == y) return true;
  std::string sentence = ("extents " + indexText(x) + " and " + indexText(y) + " of " + what).str();
  if (x->hi < y->lo || y->hi < x->lo)
    fail(sentence + otherwise);
  else
    unsupported(sentence + " are not known to be equal" + equalHint(lowering, x, y));
  return false;
}

bool Node::requireLeast(UOpRef extent, int64_t least, const llvm::Twine &what, const llvm::Twine &words) {
  if (extent->lo >= least) return true;
  std::string begin = (what + " " + indexText(extent)).str();
  if (extent->hi < least)
    fail(begin + " is " + words);
  else
    unsupported(begin + " may be " + words + boundHint(c, extent, least));
  return false;
}

int64_t Node::axis(int64_t value, int64_t rank) {
  int64_t axis = value < 0 ? value + rank : value;
  if (axis >= 0 && axis < rank) return axis;
  fail("axis " + llvm::Twine(value) + " is outside rank " + llvm::Twine(rank));
  return 0;
}

Ints Node::axes(llvm::ArrayRef<int64_t> values, int64_t rank) {
  Ints result;
  for (int64_t value : values) result.push_back(axis(value, rank));
  llvm::sort(result);
  if (std::unique(result.begin(), result.end()) != result.end()) fail("an axis is named twice");
  return result;
}

int64_t Node::constExtent(UOpRef x, unsigned axis, const char *what) {
  if (x && axis < x->rank() && x->shape[axis]->constIndex()) return *x->shape[axis]->constIndex();
  if (x && axis < x->rank())
    unsupported(llvm::Twine(what) + " must be a constant, found " + indexText(x->shape[axis]) +
                fixHint(x->shape[axis]));
  else
    fail(llvm::Twine(what) + " must be a constant");
  return 1;
}

bool Node::requireRank(UOpRef x, unsigned least, unsigned most) {
  if (!x) return false;
  if (x->rank() >= least && x->rank() <= most) return true;
  fail("the operand " + typeText(x->dtype, x->shape) + " has rank " + llvm::Twine(x->rank()) + ", expected " +
       llvm::Twine(least) +
       (most == least ? ""
        : most == 64  ? " or more"
                      : " to " + std::to_string(most)));
  return false;
}

bool Node::requireFloat(UOpRef x) {
  if (!x) return false;
  if (isFloat(x->dtype)) return true;
  fail(llvm::Twine("the operand is of type ") + info(x->dtype).text + ", expected a float type");
  return false;
}

} // namespace astra::onnx
