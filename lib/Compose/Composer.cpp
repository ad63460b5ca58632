//===- Composer.cpp: checked building -------------------------------------===//
// Takes:    values that may be wrong in every way.
// Gives:    what Composer.h says.
// Keeps:    the first failure.
#include "astra/Compose/Composer.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>

namespace astra::compose {

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

Hints::~Hints() = default;
std::string Hints::bound(UOpRef, int64_t) const { return ""; }
std::string Hints::sign(UOpRef) const { return ""; }
std::string Hints::fix(llvm::ArrayRef<UOpRef>) const { return ""; }
std::string Hints::equal(UOpRef, UOpRef) const { return ""; }
std::string Hints::multiple(llvm::ArrayRef<UOpRef>, llvm::function_ref<bool(WithMultiples)>) const { return ""; }
std::string Hints::means() const { return ""; }
std::string Hints::option(llvm::StringRef name) const { return ("option '" + name + "'").str(); }
std::string Hints::operand(UOpRef x) const { return "the operand " + typeText(x->dtype, x->shape); }

std::string Hints::orElse(const std::string &hint, const std::string &other) {
  return hint.empty() ? other : other.empty() ? hint : hint + ", or " + other.substr(2);
}

static const Hints none;

Composer::Composer(Context &context, const Hints *hints) : b(context), c(context), hints(hints ? *hints : none) {}
Composer::~Composer() = default;

llvm::Expected<UOpRef> composed(Composer &b, UOpRef value) {
  if (!b.failed() && value) return value;
  Composer::Failure why = b.takeFailure();
  return llvm::createStringError(why.beyond ? std::errc::not_supported : std::errc::invalid_argument, "%s",
                                 why.error.value_or("a value is missing").c_str());
}

Ints axesBetween(int64_t begin, int64_t end) {
  Ints axes;
  for (int64_t axis = begin; axis < end; ++axis) axes.push_back(axis);
  return axes;
}

// ---- what a front door may provide

UOpRef Composer::constant(Payload payload) {
  if (payload.dims.empty() && byteSize(payload.dtype) <= 8) {
    uint64_t bits = 0;
    std::memcpy(&bits, payload.bytes.data(), payload.bytes.size());
    return c.literal(payload.dtype, bits);
  }
  Dims dims;
  for (int64_t d : payload.dims) dims.push_back(c.index(d));
  std::string name = "constant." + std::to_string(params.size());
  llvm::Expected<UOpRef> value = c.tryMake(Op::Param, dims, {}, name, payload.dtype);
  if (!value) return fail(llvm::toString(value.takeError()));
  byName[name] = params.size();
  params.emplace_back();
  params.back().value = *value;
  params.back().data = std::make_shared<const std::vector<uint8_t>>(std::move(payload.bytes));
  params.back().kind = ParamKind::Constant;
  return *value;
}

const std::vector<uint8_t> *Composer::bytes(UOpRef param) const {
  auto found = param->is(Op::Param) ? byName.find(param->str) : byName.end();
  return found == byName.end() ? nullptr : params[found->second].data.get();
}

const std::vector<UOpRef> *Composer::elements(UOpRef x) {
  if (!known) known = std::make_unique<Known>(c, [this](UOpRef param) { return bytes(param); });
  return x ? known->elements(x) : nullptr;
}

/// From the last number down: entries have the lower half for their inputs.
std::optional<int64_t> Composer::placeholder() {
  constexpr int64_t last = 65535, least = 32768;
  return last - placeholders < least ? std::nullopt : std::optional(last - placeholders++);
}

// ---- failure

UOpRef Composer::fail(const llvm::Twine &sentence) {
  if (!state.error) state.error = sentence.str();
  return nullptr;
}

UOpRef Composer::unsupported(const llvm::Twine &sentence) {
  if (!state.error) state.beyond = true;
  return fail(sentence);
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

UOpRef Composer::make(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, DType dtype) {
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
    multiple = hints.multiple(extents, [&](auto with) {
      auto count = [&](llvm::ArrayRef<UOpRef> xs) { return with(idxProduct(c, xs)); };
      return count(src[0]->shape) == count(llvm::ArrayRef(src).drop_front());
    });
  return unsupported(sentence + Hints::orElse(multiple, hints.fix(extents)));
}

/// An elementwise op on literals is a literal: models compute sizes with float scalars too. Functions wait for the
/// numerics stage.
UOpRef Composer::folded(UOpRef x) {
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

UOpRef Composer::bin(Op op, UOpRef x, UOpRef y) {
  if (!x || !y) return nullptr;
  Dims dims = broadcastShape({x->shape, y->shape});
  return make(op, {broadcastTo(x, dims), broadcastTo(y, dims)});
}

UOpRef Composer::literal(UOpRef like, double value) {
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

UOpRef Composer::scalar(UOpRef index, DType t) {
  return index->constIndex() ? b.litInt(t, *index->constIndex()) : fromIndex(index, t);
}

UOpRef Composer::select(UOpRef condition, UOpRef x, UOpRef y) {
  if (!condition || !x || !y) return nullptr;
  Dims dims = broadcastShape({condition->shape, x->shape, y->shape});
  return make(Op::Select, {broadcastTo(condition, dims), broadcastTo(x, dims), broadcastTo(y, dims)});
}

UOpRef Composer::cast(UOpRef x, DType to, bool saturate) {
  return !x || x->dtype == to ? x : make(Op::Cast, {x}, {saturate}, to);
}

static Dims join(UOpRef x, std::initializer_list<llvm::ArrayRef<UOpRef>> lists) {
  Dims all = {x};
  for (llvm::ArrayRef<UOpRef> list : lists) all.append(list.begin(), list.end());
  return all;
}

UOpRef Composer::reshape(UOpRef x, llvm::ArrayRef<UOpRef> dims) {
  while (x && x->is(Op::Reshape)) x = x->src[0]; // only the last of several shapes matters
  return !x || x->shape == dims ? x : make(Op::Reshape, join(x, {dims}));
}

UOpRef Composer::permute(UOpRef x, llvm::ArrayRef<int64_t> perm) {
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i) identity &= perm[i] == int64_t(i);
  return x && identity && perm.size() == x->rank() ? x : make(Op::Permute, {x}, perm);
}

UOpRef Composer::broadcastTo(UOpRef x, llvm::ArrayRef<UOpRef> dims) {
  if (!x || x->shape == dims) return x;
  if (x->rank() > dims.size()) return fail("cannot broadcast " + dimsText(x->shape) + " to " + dimsText(dims));
  Dims padded(dims.size() - x->rank(), c.index(1));
  padded.append(x->shape.begin(), x->shape.end());
  UOpRef shaped = reshape(x, padded);
  return !shaped || shaped->shape == dims ? shaped : make(Op::Expand, join(shaped, {dims}));
}

UOpRef Composer::pad(UOpRef x, llvm::ArrayRef<UOpRef> lo, llvm::ArrayRef<UOpRef> hi, uint64_t bits) {
  auto isZero = [](UOpRef v) { return v && v->constIndex() == 0; };
  if (llvm::all_of(lo, isZero) && llvm::all_of(hi, isZero)) return x;
  return make(Op::Pad, join(x, {lo, hi}), {int64_t(bits)});
}

UOpRef Composer::part(UOpRef x, int64_t axis, UOpRef begin, UOpRef size) {
  if (!x) return nullptr;
  Dims at(x->rank(), c.index(0)), extents(x->shape.begin(), x->shape.end());
  at[axis] = begin;
  extents[axis] = size;
  return shrink(x, at, extents);
}

UOpRef Composer::part(UOpRef x, int64_t axis, int64_t begin, int64_t size) {
  return part(x, axis, c.index(begin), c.index(size));
}

UOpRef Composer::element(UOpRef x, int64_t axis, int64_t at) { return squeeze(part(x, axis, at, 1), {axis}); }

UOpRef Composer::withRoom(UOpRef x, int64_t axis, UOpRef length) {
  if (!x) return nullptr;
  UOpRef slack = idxSub(c, x->shape[axis], length);
  if (slack->lo >= 0) return x;
  Dims none(x->rank(), c.index(0)), room = none;
  room[axis] = c.index(-slack->lo);
  return pad(x, none, room, 0);
}

UOpRef Composer::shrink(UOpRef x, llvm::ArrayRef<UOpRef> begin, llvm::ArrayRef<UOpRef> size) {
  if (!x || x->shape == size) return x;
  return make(Op::Shrink, join(x, {begin, size}));
}

UOpRef Composer::concat(llvm::ArrayRef<UOpRef> xs, int64_t axis) {
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

UOpRef Composer::reduce(ReduceKind kind, UOpRef x, llvm::ArrayRef<int64_t> axes, bool chain) {
  if (!x || axes.empty()) return x;
  bool inexact = isFloat(x->dtype) || isComplex(x->dtype), product = kind == ReduceKind::Prod;
  bool ordered = inexact && (kind == ReduceKind::Sum || product);
  ReduceOrder order = !ordered                         ? ReduceOrder::Exact
                      : product && isComplex(x->dtype) ? ReduceOrder::Pairs
                      : chain                          ? ReduceOrder::Chain
                                                       : ReduceOrder::Lane64;
  UOpRef folded = make(Op::Reduce, {x}, encode(ReduceSpec{kind, order, {axes.begin(), axes.end()}, {}}));
  if (!folded) return nullptr;
  Dims kept(x->shape.begin(), x->shape.end());
  for (int64_t axis : axes) kept[axis] = c.index(1);
  return reshape(folded, kept);
}

UOpRef Composer::contract(const ContractSpec &spec, UOpRef x, UOpRef y, llvm::ArrayRef<UOpRef> extents) {
  return make(Op::Contract, join(x, {{y}, extents}), encode(spec));
}

UOpRef Composer::squeeze(UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!x || failed()) return nullptr;
  Dims dims;
  for (unsigned i = 0; i < x->rank(); ++i) {
    if (!llvm::is_contained(axes, int64_t(i)))
      dims.push_back(x->shape[i]);
    else if (UOpRef extent = x->shape[i]; extent->constIndex() != 1) {
      std::string sentence = ("axis " + llvm::Twine(i) + " of " + dimsText(x->shape) + " is not of extent 1").str();
      return extent->lo > 1 || extent->hi < 1 ? fail(sentence) : unsupported(sentence);
    }
  }
  return reshape(x, dims);
}

UOpRef Composer::unsqueeze(UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!x || failed()) return nullptr;
  Dims dims(x->shape.begin(), x->shape.end());
  for (int64_t axis : axes) dims.insert(dims.begin() + axis, c.index(1));
  return reshape(x, dims);
}

UOpRef Composer::perChannel(UOpRef x, unsigned rank) {
  if (!requireRank(x, 1, 1)) return nullptr;
  Dims dims(rank - 1, c.index(1));
  dims[0] = x->shape[0];
  return reshape(x, dims);
}

std::pair<UOpRef, UOpRef> Composer::promoted(UOpRef x, UOpRef y) {
  if (!x || !y) return {nullptr, nullptr};
  std::optional<DType> common = promote(x->dtype, y->dtype);
  if (common) return {cast(x, *common), cast(y, *common)};
  fail(llvm::Twine("there is no common type of ") + info(x->dtype).text + " and " + info(y->dtype).text);
  return {nullptr, nullptr};
}

// ---- shapes

Dims Composer::broadcastShape(llvm::ArrayRef<llvm::ArrayRef<UOpRef>> shapes) {
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

UOpRef Composer::failExtents(const llvm::Twine &sentence, llvm::ArrayRef<UOpRef> found,
                             llvm::ArrayRef<UOpRef> expected) {
  auto pair = mayBeEqual(found, expected);
  return pair ? unsupported(sentence + hints.equal(pair->first, pair->second)) : fail(sentence);
}

bool Composer::requireEqual(UOpRef x, UOpRef y, const llvm::Twine &what, const char *otherwise) {
  if (x == y) return true;
  std::string sentence = ("extents " + indexText(x) + " and " + indexText(y) + " of " + what).str();
  if (x->hi < y->lo || y->hi < x->lo)
    fail(sentence + otherwise);
  else
    unsupported(sentence + " are not known to be equal" + hints.equal(x, y));
  return false;
}

bool Composer::requireLeast(UOpRef extent, int64_t least, const llvm::Twine &what, const llvm::Twine &words) {
  if (extent->lo >= least) return true;
  std::string begin = (what + " " + indexText(extent)).str();
  if (extent->hi < least)
    fail(begin + " is " + words);
  else
    unsupported(begin + " may be " + words + hints.bound(extent, least));
  return false;
}

int64_t Composer::axis(int64_t value, int64_t rank) {
  int64_t axis = value < 0 ? value + rank : value;
  if (axis >= 0 && axis < rank) return axis;
  fail("axis " + llvm::Twine(value) + " is outside rank " + llvm::Twine(rank));
  return 0;
}

Ints Composer::axes(llvm::ArrayRef<int64_t> values, int64_t rank) {
  Ints result;
  for (int64_t value : values) result.push_back(axis(value, rank));
  llvm::sort(result);
  if (std::unique(result.begin(), result.end()) != result.end()) fail("an axis is named twice");
  return result;
}

int64_t Composer::constExtent(UOpRef x, unsigned axis, const char *what) {
  if (x && axis < x->rank() && x->shape[axis]->constIndex()) return *x->shape[axis]->constIndex();
  if (x && axis < x->rank())
    unsupported(llvm::Twine(what) + " must be a constant, found " + indexText(x->shape[axis]) +
                hints.fix(x->shape[axis]));
  else
    fail(llvm::Twine(what) + " must be a constant");
  return 1;
}

bool Composer::requireRank(UOpRef x, unsigned least, unsigned most) {
  if (!x) return false;
  if (x->rank() >= least && x->rank() <= most) return true;
  fail(hints.operand(x) + " has rank " + llvm::Twine(x->rank()) + ", expected " + llvm::Twine(least) +
       (most == least ? ""
        : most == 64  ? " or more"
                      : " to " + std::to_string(most)));
  return false;
}

bool Composer::requireFloat(UOpRef x) {
  if (!x) return false;
  if (isFloat(x->dtype)) return true;
  fail(llvm::Twine("the operand is of type ") + info(x->dtype).text + ", expected a float type");
  return false;
}

} // namespace astra::compose
