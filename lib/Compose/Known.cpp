//===- Known.cpp: evaluate integer tensors over symbolic integers ----------===//
// Takes:    one node and the elements of its sources.
// Gives:    its elements, or nothing.
// Keeps:    the meaning of the ops (Ops.def) as long as no value leaves its dtype's range: a value that could, by its
//           bounds, is not known.
// Does not: recurse: sources are visited with an explicit stack.
#include "astra/Compose/Known.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>
#include <numeric>

namespace astra::compose {

namespace {

constexpr int64_t maxElements = 4096;
constexpr int64_t mostSettled = 1 << 16;           // elements of all nodes that one answer is computed from
constexpr int64_t maxMagnitude = int64_t(1) << 61; // of a non-constant value: index bounds saturate at 2^62

/// Integers up to 2^precision are values of a float type; 0 for other types.
unsigned precision(DType t) {
  return t == DType::F64 ? 53 : t == DType::F32 ? 24 : t == DType::F16 ? 11 : t == DType::BF16 ? 8 : 0;
}

double floatOf(DType t, uint64_t bits) {
  const llvm::fltSemantics &from = t == DType::F64   ? llvm::APFloat::IEEEdouble()
                                   : t == DType::F32 ? llvm::APFloat::IEEEsingle()
                                   : t == DType::F16 ? llvm::APFloat::IEEEhalf()
                                                     : llvm::APFloat::BFloat();
  return llvm::APFloat(from, llvm::APInt(bitWidth(t), bits)).convertToDouble();
}

/// The number of elements of a tensor of constant shape that is small enough.
std::optional<int64_t> smallCount(UOpRef x) {
  int64_t count = 1;
  for (UOpRef dim : x->shape) {
    std::optional<int64_t> extent = dim->constIndex();
    if (!extent || llvm::MulOverflow(count, *extent, count) || count > maxElements) return std::nullopt;
  }
  return count;
}

bool mayBeKnown(UOpRef x) {
  return (isInt(x->dtype) || x->dtype == DType::Bool || precision(x->dtype)) && smallCount(x);
}

int64_t extent(UOpRef x, unsigned axis) { return *x->shape[axis]->constIndex(); }

/// Calls visit(linear index, coordinates) for every element of x, in row-major order.
template <class Visit> void forEachElement(UOpRef x, Visit visit) {
  llvm::SmallVector<int64_t, 4> at(x->rank(), 0);
  int64_t count = *smallCount(x);
  for (int64_t i = 0; i < count; ++i) {
    visit(i, at);
    for (unsigned axis = x->rank(); axis-- > 0;) {
      if (++at[axis] < extent(x, axis)) break;
      at[axis] = 0;
    }
  }
}

int64_t linear(UOpRef x, llvm::ArrayRef<int64_t> at) {
  int64_t i = 0;
  for (unsigned axis = 0; axis < x->rank(); ++axis) i = i * extent(x, axis) + at[axis];
  return i;
}

/// Symbolic integers end at 2^62; a literal beyond (INT64_MAX as "to the end") stands for the limit, and no arithmetic
/// is done on it (`medium`).
constexpr int64_t indexLimit = int64_t(1) << 62;

int64_t decodeElement(const uint8_t *bytes, DType t) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, byteSize(t));
  if (!isSigned(t)) return int64_t(std::min<uint64_t>(bits, indexLimit));
  return std::clamp<int64_t>(llvm::SignExtend64(bits, bitWidth(t)), -indexLimit, indexLimit);
}

/// Whether every value that v can take is one of t's and far enough from overflow to compute with.
bool fits(UOpRef v, DType t) {
  if (unsigned p = precision(t)) return v->lo >= -(int64_t(1) << p) && v->hi <= int64_t(1) << p;
  if (!v->constIndex() && (v->lo < -maxMagnitude || v->hi > maxMagnitude)) return false;
  unsigned width = t == DType::Bool ? 1 : bitWidth(t);
  if (width == 64) return isSigned(t) || v->lo >= 0;
  return isSigned(t) ? llvm::isIntN(width, v->lo) && llvm::isIntN(width, v->hi)
                     : v->lo >= 0 && llvm::isUIntN(width, uint64_t(v->hi));
}

bool small(UOpRef v) { return v->lo >= -(int64_t(1) << 30) && v->hi <= (int64_t(1) << 30); }
bool medium(UOpRef v) { return v->lo >= -maxMagnitude && v->hi <= maxMagnitude; }

/// a op b over symbolic integers; null when the result is not known.
UOpRef binary(Context &c, Op op, UOpRef a, UOpRef b) {
  auto truth = [&](bool yes, bool no) -> UOpRef { return yes ? c.index(1) : no ? c.index(0) : nullptr; };
  bool positive = b->lo > 0 && medium(a) && medium(b);
  if (auto x = a->constIndex(), y = b->constIndex(); x && y && *y != 0 && medium(a) && medium(b)) {
    if (op == Op::TruncDiv) return c.index(*x / *y);
    if (op == Op::Rem) return c.index(*x % *y);
  }
  switch (op) {
  case Op::Add: return medium(a) && medium(b) ? idxAdd(c, a, b) : nullptr;
  case Op::Sub: return medium(a) && medium(b) ? idxSub(c, a, b) : nullptr;
  case Op::Mul:
    return (small(a) && small(b)) || a->constIndex() == 1 || b->constIndex() == 1 ? idxMul(c, a, b) : nullptr;
  case Op::FloorDiv: return positive ? idxDiv(c, a, b) : nullptr;
  case Op::Mod: return positive ? idxMod(c, a, b) : nullptr;
  case Op::TruncDiv: return positive && a->lo >= 0 ? idxDiv(c, a, b) : nullptr;
  case Op::Rem: return positive && a->lo >= 0 ? idxMod(c, a, b) : nullptr;
  case Op::Max: return idxMax(c, a, b);
  case Op::Min: return idxMin(c, a, b);
  case Op::Lt: return truth(a->hi < b->lo, a->lo >= b->hi || a == b);
  case Op::Le: return truth(a->hi <= b->lo || a == b, a->lo > b->hi);
  case Op::Eq: return truth(a == b, a->hi < b->lo || b->hi < a->lo);
  case Op::Ne: return truth(a->hi < b->lo || b->hi < a->lo, a == b);
  case Op::And: return truth(a->lo == 1 && b->lo == 1, a->hi == 0 || b->hi == 0); // of bool: checked by the caller
  case Op::Or: return truth(a->lo == 1 || b->lo == 1, a->hi == 0 && b->hi == 0);
  default: return nullptr;
  }
}

} // namespace

const Known::Elements *Known::ask(UOpRef x, bool must) {
  Memo &memo = memos[must];
  std::vector<std::pair<UOpRef, unsigned>> stack = {{x, 0}}; // a node and its next source
  while (!stack.empty()) {
    auto &[node, next] = stack.back();
    if (memo.count(node->id) || !mayBeKnown(node)) {
      memo.try_emplace(node->id);
      stack.pop_back();
    } else if (next < node->tensors().size()) {
      stack.push_back({node->tensors()[next++], 0});
    } else {
      std::optional<Value> value = evaluate(node, memo, must);
      if (!value && must && !precision(node->dtype))
        if (std::optional<Tensor> t = settledValue(data, node, mostSettled))
          value = decode(t->dtype, t->bytes.data(), t->count());
      if (!value && must) value = countOfTrue(node);
      memo[node->id] = std::move(value);
      stack.pop_back();
    }
  }
  const std::optional<Value> &v = memo[x->id];
  return v && v->divisor == 1 && !v->rounded ? &v->elements : nullptr;
}

const Known::Elements *Known::required(UOpRef x) { return ask(x, true); }

const Known::Elements *Known::elements(UOpRef x) {
  return isInt(x->dtype) || x->dtype == DType::Bool ? ask(x, false) : nullptr;
}

/// The sum over all of a mask cast to integers.
std::optional<Known::Value> Known::countOfTrue(UOpRef x) {
  while (x->is(Op::Reshape)) x = x->src[0];
  if (!x->is(Op::Reduce) || !isInt(x->dtype) || ReduceKind(x->ints[0]) != ReduceKind::Sum || x->indices().size() ||
      smallCount(x) != 1 || !x->src[0]->is(Op::Cast))
    return std::nullopt;
  UOpRef mask = x->src[0]->src[0];
  while (mask->is(Op::Reshape)) mask = mask->src[0];
  if (mask->dtype != DType::Bool || !mayBeCounted || !mayBeCounted(mask)) return std::nullopt;
  UOpRef total = idxProduct(c, mask->shape);
  if (!fits(total, x->dtype)) return std::nullopt;
  auto make = [&](Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, DType t = DType::Void) -> UOpRef {
    llvm::Expected<UOpRef> made = c.tryMake(op, src, ints, {}, t);
    if (made) return *made;
    llvm::consumeError(made.takeError());
    return nullptr;
  };
  if (mask->shape != llvm::ArrayRef<UOpRef>(total)) mask = make(Op::Reshape, {mask, total}, {});
  UOpRef ones = mask ? make(Op::Cast, {mask}, {0}, DType::I64) : nullptr;
  ReduceSpec sum{ReduceKind::Sum, ReduceOrder::Exact, {0}, {}};
  UOpRef count = ones ? make(Op::Reduce, {ones}, encode(sum)) : nullptr;
  UOpRef extent = count ? make(Op::Extent, {count}, {0, total->hi}) : nullptr;
  return extent ? std::optional(Value{{extent}}) : std::nullopt;
}

/// Nothing where a float is no fraction of small enough numbers.
std::optional<Known::Value> Known::decode(DType t, const uint8_t *bytes, int64_t count) {
  Value v;
  if (!precision(t)) {
    for (int64_t i = 0; i < count; ++i) v.elements.push_back(c.index(decodeElement(bytes + i * byteSize(t), t)));
    return v;
  }
  constexpr int mostBits = 40;
  std::vector<double> numbers(count);
  int places = 0; // behind the binary point
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * byteSize(t), byteSize(t));
    double d = numbers[i] = floatOf(t, bits);
    while (places <= mostBits && std::ldexp(d, places) != std::trunc(std::ldexp(d, places))) ++places;
    if (places > mostBits) return std::nullopt;
  }
  v.divisor = int64_t(1) << places;
  for (double d : numbers) {
    double whole = std::ldexp(d, places);
    if (!(std::fabs(whole) <= 0x1p53)) return std::nullopt;
    v.elements.push_back(c.index(int64_t(whole)));
  }
  return v;
}

std::optional<Known::Value> Known::evaluate(UOpRef x, Memo &memo, bool must) {
  llvm::SmallVector<const Value *, 3> values;
  int64_t divisor = 1;
  bool toInteger = x->is(Op::Floor) || x->is(Op::Ceil) || x->is(Op::Trunc) || x->is(Op::RoundEven) ||
                   (x->is(Op::Cast) && !precision(x->dtype)),
       ownDivisors = toInteger || x->is(Op::Mul) || x->is(Op::Div);
  for (UOpRef source : x->tensors()) {
    auto at = memo.find(source->id);
    const Value *v = at != memo.end() && at->second ? &*at->second : nullptr;
    if (!v || (v->rounded && !toInteger)) return std::nullopt;
    values.push_back(v);
    divisor = std::max(divisor, v->divisor);
  }
  // Floats that meet in one tensor get a common divisor.
  std::vector<Elements> scaled(values.size());
  llvm::SmallVector<const Elements *, 3> sources;
  for (size_t i = 0; i < values.size(); ++i) {
    sources.push_back(&values[i]->elements);
    if (ownDivisors || values[i]->divisor == divisor || !precision(x->src[i]->dtype)) continue;
    for (UOpRef v : values[i]->elements) {
      if (!small(v) || divisor / values[i]->divisor > int64_t(1) << 30) return std::nullopt;
      scaled[i].push_back(idxMul(c, v, c.index(divisor / values[i]->divisor)));
    }
    sources[i] = &scaled[i];
  }
  Value out;
  Elements &result = out.elements;
  result.resize(*smallCount(x));
  if (precision(x->dtype)) out.divisor = divisor;
  bool known = true;
  auto put = [&](int64_t i, UOpRef v) {
    known &= v && fits(v, x->dtype);
    result[i] = v;
  };
  auto elementwise = [&](auto f) {
    for (size_t i = 0; i < result.size(); ++i) put(i, f(i));
  };
  // A movement: each element is the source's at the coordinates that `where` makes of its own, or `outside` when there
  // are none.
  auto moved = [&](auto where, UOpRef outside = nullptr) {
    UOpRef source = x->src[0];
    forEachElement(x, [&](int64_t i, llvm::SmallVectorImpl<int64_t> &at) {
      llvm::SmallVector<int64_t, 4> from(source->rank(), 0);
      bool inside = where(llvm::ArrayRef<int64_t>(at), from);
      for (unsigned axis = 0; inside && axis < source->rank(); ++axis)
        inside = from[axis] >= 0 && from[axis] < extent(source, axis);
      put(i, inside ? (*sources[0])[linear(source, from)] : outside);
    });
  };
  auto listedConstants = [&](size_t first) { // one constant index source per axis, from number `first`
    llvm::SmallVector<int64_t, 4> values;
    for (unsigned axis = 0; axis < x->rank(); ++axis) {
      std::optional<int64_t> v = x->indices()[first + axis]->constIndex();
      known &= v.has_value();
      values.push_back(v.value_or(0));
    }
    return values;
  };
  auto literal = [&](uint64_t bits) -> UOpRef {
    auto v = decode(x->dtype, reinterpret_cast<const uint8_t *>(&bits), 1);
    if (!v || v->divisor != 1) return nullptr;
    if (out.divisor == 1) return v->elements[0];
    return small(v->elements[0]) && out.divisor <= int64_t(1) << 30 ? idxMul(c, v->elements[0], c.index(out.divisor))
                                                                    : nullptr;
  };
  auto bytesOf = [](const uint64_t &bits) { return reinterpret_cast<const uint8_t *>(&bits); };

  switch (x->op) {
  case Op::Const: return decode(x->dtype, bytesOf(uint64_t(x->ints.back())), 1);
  case Op::Param: {
    bool reads = must || !precision(x->dtype) || !x->rank(); // a scalar may be a factor of an extent
    const std::vector<uint8_t> *bytes = reads ? data(x) : nullptr;
    return bytes ? decode(x->dtype, bytes->data(), *smallCount(x)) : std::nullopt;
  }
  case Op::FromIndex: put(0, x->src[0]); break;
  case Op::Iota:
    forEachElement(x, [&](int64_t i, llvm::SmallVectorImpl<int64_t> &at) { put(i, c.index(at[x->ints.back()])); });
    break;
  case Op::Reshape:
  case Op::Detach:
  case Op::Tap: return *values[0];
  case Op::Neg:
    elementwise([&](size_t i) { return medium((*sources[0])[i]) ? idxSub(c, c.index(0), (*sources[0])[i]) : nullptr; });
    break;
  case Op::Abs: elementwise([&](size_t i) { return (*sources[0])[i]->lo >= 0 ? (*sources[0])[i] : nullptr; }); break;
  case Op::Not:
    if (x->dtype != DType::Bool) return std::nullopt;
    elementwise([&](size_t i) { return idxSub(c, c.index(1), (*sources[0])[i]); });
    break;
  case Op::Floor:
  case Op::Ceil:
  case Op::Trunc:
  case Op::RoundEven:
  case Op::Cast:
    if (precision(x->src[0]->dtype) && toInteger) { // a rounded quotient has the floor of the exact one
      out.divisor = 1;
      UOpRef by = c.index(values[0]->divisor);
      elementwise([&](size_t i) -> UOpRef {
        UOpRef v = (*sources[0])[i];
        if (x->dtype == DType::Bool) return nullptr;
        if (values[0]->divisor == 1) return v;
        if (x->is(Op::RoundEven) || (!x->is(Op::Floor) && !x->is(Op::Ceil) && v->lo < 0)) return nullptr;
        return x->is(Op::Ceil) ? idxCeilDiv(c, v, by) : idxDiv(c, v, by);
      });
      break;
    }
    elementwise([&](size_t i) {
      UOpRef v = (*sources[0])[i];
      return x->dtype == DType::Bool && x->src[0]->dtype != DType::Bool ? binary(c, Op::Ne, v, c.index(0)) : v;
    });
    break;
  case Op::Select:
    elementwise([&](size_t i) {
      std::optional<int64_t> condition = (*sources[0])[i]->constIndex();
      return condition ? (*sources[*condition ? 1 : 2])[i] : nullptr;
    });
    break;
  case Op::Expand:
    moved([&](llvm::ArrayRef<int64_t> at, auto &from) {
      for (unsigned axis = 0; axis < at.size(); ++axis) from[axis] = extent(x->src[0], axis) == 1 ? 0 : at[axis];
      return true;
    });
    break;
  case Op::Permute:
    moved([&](llvm::ArrayRef<int64_t> at, auto &from) {
      for (unsigned axis = 0; axis < at.size(); ++axis) from[x->ints[axis]] = at[axis];
      return true;
    });
    break;
  case Op::Flip:
    moved([&](llvm::ArrayRef<int64_t> at, auto &from) {
      from.assign(at.begin(), at.end());
      for (int64_t axis : x->ints) from[axis] = extent(x, axis) - 1 - at[axis];
      return true;
    });
    break;
  case Op::Pad:
  case Op::Shrink: {
    auto offset = listedConstants(0);
    if (!known) return std::nullopt;
    int64_t sign = x->op == Op::Pad ? -1 : 1;
    moved(
        [&](llvm::ArrayRef<int64_t> at, auto &from) {
          for (unsigned axis = 0; axis < at.size(); ++axis) from[axis] = at[axis] + sign * offset[axis];
          return true;
        },
        x->op == Op::Pad ? literal(uint64_t(x->ints[0])) : nullptr);
    break;
  }
  case Op::Gather: {
    unsigned axis = x->ints[0], indexRank = x->src[1]->rank();
    moved(
        [&](llvm::ArrayRef<int64_t> at, auto &from) {
          std::optional<int64_t> index = (*sources[1])[linear(x->src[1], at.slice(axis, indexRank))]->constIndex();
          known &= index.has_value();
          for (unsigned i = 0; i < axis; ++i) from[i] = at[i];
          from[axis] = index.value_or(0);
          for (unsigned i = axis + 1; i < from.size(); ++i) from[i] = at[i + indexRank - 1];
          return true;
        },
        c.index(0));
    break;
  }
  case Op::Mul:
    if (precision(x->dtype)) {
      if (llvm::MulOverflow(values[0]->divisor, values[1]->divisor, out.divisor) || out.divisor > int64_t(1) << 40)
        return std::nullopt;
    }
    elementwise([&](size_t i) { return binary(c, Op::Mul, (*sources[0])[i], (*sources[1])[i]); });
    break;
  case Op::Div: { // by one number
    auto by = sources[1]->empty() ? std::nullopt : sources[1]->front()->constIndex();
    if (!by || *by < 1 || llvm::any_of(*sources[1], [&](UOpRef v) { return v->constIndex() != by; }))
      return std::nullopt;
    int64_t up = values[1]->divisor, down, common;
    if (llvm::MulOverflow(values[0]->divisor, *by, down)) return std::nullopt;
    common = std::gcd(up, down), up /= common, down /= common;
    if (down > int64_t(1) << 40 || up > int64_t(1) << 30) return std::nullopt;
    out.divisor = down;
    // A fraction of a numerator under 2^24 is at least 1/down from the next integer, and rounding moves it by less.
    out.rounded = !llvm::isPowerOf2_64(down);
    if (out.rounded && precision(x->dtype) < 24) return std::nullopt;
    elementwise([&](size_t i) { return binary(c, Op::Mul, (*sources[0])[i], c.index(up)); });
    break;
  }
  case Op::Reduce: {
    if (precision(x->dtype)) return std::nullopt;
    auto kind = ReduceKind(x->ints[0]);
    if (x->indices().size() ||
        (kind != ReduceKind::Sum && kind != ReduceKind::Prod && kind != ReduceKind::Max && kind != ReduceKind::Min))
      return std::nullopt;
    const Op fold[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
    llvm::ArrayRef<int64_t> axes = x->ints.slice(3, x->ints[2]);
    UOpRef source = x->src[0];
    forEachElement(source, [&](int64_t i, llvm::SmallVectorImpl<int64_t> &at) {
      llvm::SmallVector<int64_t, 4> to;
      for (unsigned axis = 0; axis < at.size(); ++axis)
        if (!llvm::is_contained(axes, int64_t(axis))) to.push_back(at[axis]);
      UOpRef &sum = result[linear(x, to)], v = (*sources[0])[i];
      sum = sum ? binary(c, fold[x->ints[0]], sum, v) : v;
      known &= sum != nullptr;
      if (!sum) sum = c.index(0);
    });
    for (UOpRef v : result) known &= v && fits(v, x->dtype);
    break;
  }
  default:
    if (x->src.size() != 2 || !has(x->op, Elementwise)) return std::nullopt;
    if ((x->op == Op::And || x->op == Op::Or) && x->dtype != DType::Bool) return std::nullopt;
    if (precision(x->src[0]->dtype) &&
        (x->op == Op::FloorDiv || x->op == Op::Mod || x->op == Op::TruncDiv || x->op == Op::Rem))
      return std::nullopt;
    elementwise([&](size_t i) { return binary(c, x->op, (*sources[0])[i], (*sources[1])[i]); });
  }
  if (!known || (x->dtype == DType::F16 && out.divisor > int64_t(1) << 24)) return std::nullopt; // 2^-24: its least
  return out;
}

} // namespace astra::compose
