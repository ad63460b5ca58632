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

namespace {
/// One node over the elements of its sources, all over one divisor where they meet in a tensor.
class Evaluation {
public:
  Evaluation(Context &c, UOpRef x, int64_t divisor) : divisor(divisor), c(c), x(x), result(*smallCount(x)) {}
  /// Whether every element is known, and in the range of its dtype.
  bool run();

  std::vector<const Known::Elements *> sources;
  std::vector<int64_t> divisors; // each source's own
  int64_t divisor;               // of the result
  bool rounded = false;
  UOpRef outside = nullptr; // what a pad has around its source; null: not known
  Known::Elements take() { return std::move(result); }

private:
  Context &c;
  UOpRef x;
  Known::Elements result;
  bool known = true; // all that is put

  void put(int64_t i, UOpRef v) {
    known &= v && fits(v, x->dtype);
    result[i] = v;
  }
  template <class Of> void elementwise(Of of) {
    for (size_t i = 0; i < result.size(); ++i) put(i, of(i));
  }
  UOpRef source(unsigned n, size_t i) const { return (*sources[n])[i]; }
  std::optional<llvm::SmallVector<int64_t, 4>> constants(llvm::ArrayRef<UOpRef> indices) const;
  template <class Where> void moved(Where where, UOpRef otherwise = nullptr);
  bool movement();
  bool gather();
  bool rounding();
  bool product();
  bool quotient();
  bool reduction();
  bool arithmetic();
};

std::optional<llvm::SmallVector<int64_t, 4>> Evaluation::constants(llvm::ArrayRef<UOpRef> indices) const {
  llvm::SmallVector<int64_t, 4> values;
  for (UOpRef index : indices) {
    std::optional<int64_t> v = index->constIndex();
    if (!v) return std::nullopt;
    values.push_back(*v);
  }
  return values;
}

/// Each element is the source's at the coordinates that `where` makes of its own, or `otherwise` when there are none.
template <class Where> void Evaluation::moved(Where where, UOpRef otherwise) {
  UOpRef from = x->src[0];
  forEachElement(x, [&](int64_t i, llvm::SmallVectorImpl<int64_t> &at) {
    llvm::SmallVector<int64_t, 4> place(from->rank(), 0);
    where(llvm::ArrayRef<int64_t>(at), place);
    bool inside = true;
    for (unsigned axis = 0; inside && axis < from->rank(); ++axis)
      inside = place[axis] >= 0 && place[axis] < extent(from, axis);
    put(i, inside ? source(0, linear(from, place)) : otherwise);
  });
}

bool Evaluation::movement() {
  switch (x->op) {
  case Op::Expand:
    moved([&](llvm::ArrayRef<int64_t> at, auto &from) {
      for (unsigned axis = 0; axis < at.size(); ++axis) from[axis] = extent(x->src[0], axis) == 1 ? 0 : at[axis];
    });
    return true;
  case Op::Permute:
    moved([&](llvm::ArrayRef<int64_t> at, auto &from) {
      for (unsigned axis = 0; axis < at.size(); ++axis) from[x->ints[axis]] = at[axis];
    });
    return true;
  case Op::Flip:
    moved([&](llvm::ArrayRef<int64_t> at, auto &from) {
      from.assign(at.begin(), at.end());
      for (int64_t axis : x->ints) from[axis] = extent(x, axis) - 1 - at[axis];
    });
    return true;
  default: { // Pad, Shrink
    auto offset = constants(x->indices().take_front(x->rank()));
    if (!offset) return false;
    int64_t sign = x->op == Op::Pad ? -1 : 1;
    moved(
        [&](llvm::ArrayRef<int64_t> at, auto &from) {
          for (unsigned axis = 0; axis < at.size(); ++axis) from[axis] = at[axis] + sign * (*offset)[axis];
        },
        outside);
    return true;
  }
  }
}

bool Evaluation::gather() {
  unsigned axis = x->ints[0], indexRank = x->src[1]->rank();
  moved(
      [&](llvm::ArrayRef<int64_t> at, auto &from) {
        std::optional<int64_t> index = source(1, linear(x->src[1], at.slice(axis, indexRank)))->constIndex();
        known &= index.has_value();
        for (unsigned i = 0; i < axis; ++i) from[i] = at[i];
        from[axis] = index.value_or(0);
        for (unsigned i = axis + 1; i < from.size(); ++i) from[i] = at[i + indexRank - 1];
      },
      c.index(0));
  return true;
}

/// Casts, and floats to integers: a rounded quotient has the floor of the exact one.
bool Evaluation::rounding() {
  bool fromFloat = precision(x->src[0]->dtype);
  if (fromFloat && (x->op != Op::Cast || !precision(x->dtype))) {
    divisor = 1;
    UOpRef by = c.index(divisors[0]);
    elementwise([&](size_t i) -> UOpRef {
      UOpRef v = source(0, i);
      if (x->dtype == DType::Bool) return nullptr;
      if (divisors[0] == 1) return v;
      if (x->is(Op::RoundEven) || (!x->is(Op::Floor) && !x->is(Op::Ceil) && v->lo < 0)) return nullptr;
      return x->is(Op::Ceil) ? idxCeilDiv(c, v, by) : idxDiv(c, v, by);
    });
    return true;
  }
  bool truth = x->dtype == DType::Bool && x->src[0]->dtype != DType::Bool;
  elementwise([&](size_t i) { return truth ? binary(c, Op::Ne, source(0, i), c.index(0)) : source(0, i); });
  return true;
}

bool Evaluation::product() {
  constexpr int64_t mostDivisor = int64_t(1) << 40;
  if (precision(x->dtype) && (llvm::MulOverflow(divisors[0], divisors[1], divisor) || divisor > mostDivisor))
    return false;
  elementwise([&](size_t i) { return binary(c, Op::Mul, source(0, i), source(1, i)); });
  return true;
}

/// By one number.
bool Evaluation::quotient() {
  constexpr int64_t mostDivisor = int64_t(1) << 40, mostFactor = int64_t(1) << 30;
  auto by = sources[1]->empty() ? std::nullopt : sources[1]->front()->constIndex();
  if (!by || *by < 1 || llvm::any_of(*sources[1], [&](UOpRef v) { return v->constIndex() != by; })) return false;
  int64_t up = divisors[1], down, common;
  if (llvm::MulOverflow(divisors[0], *by, down)) return false;
  common = std::gcd(up, down), up /= common, down /= common;
  if (down > mostDivisor || up > mostFactor) return false;
  divisor = down;
  // A fraction of a numerator under 2^24 is at least 1/down from the next integer, and rounding moves it by less.
  rounded = !llvm::isPowerOf2_64(down);
  if (rounded && precision(x->dtype) < 24) return false;
  elementwise([&](size_t i) { return binary(c, Op::Mul, source(0, i), c.index(up)); });
  return true;
}

bool Evaluation::reduction() {
  auto kind = ReduceKind(x->ints[0]);
  if (precision(x->dtype) || x->indices().size() ||
      (kind != ReduceKind::Sum && kind != ReduceKind::Prod && kind != ReduceKind::Max && kind != ReduceKind::Min))
    return false;
  const Op fold[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
  llvm::ArrayRef<int64_t> axes = x->ints.slice(3, x->ints[2]);
  forEachElement(x->src[0], [&](int64_t i, llvm::SmallVectorImpl<int64_t> &at) {
    llvm::SmallVector<int64_t, 4> to;
    for (unsigned axis = 0; axis < at.size(); ++axis)
      if (!llvm::is_contained(axes, int64_t(axis))) to.push_back(at[axis]);
    UOpRef &sum = result[linear(x, to)], v = source(0, i);
    sum = sum ? binary(c, fold[x->ints[0]], sum, v) : v;
    known &= sum != nullptr;
    if (!sum) sum = c.index(0);
  });
  for (UOpRef v : result) known &= v && fits(v, x->dtype);
  return true;
}

/// Element by element, of one source or two.
bool Evaluation::arithmetic() {
  switch (x->op) {
  case Op::Neg:
    elementwise([&](size_t i) { return medium(source(0, i)) ? idxSub(c, c.index(0), source(0, i)) : nullptr; });
    return true;
  case Op::Abs: elementwise([&](size_t i) { return source(0, i)->lo >= 0 ? source(0, i) : nullptr; }); return true;
  case Op::Not:
    if (x->dtype != DType::Bool) return false;
    elementwise([&](size_t i) { return idxSub(c, c.index(1), source(0, i)); });
    return true;
  case Op::Select:
    elementwise([&](size_t i) {
      std::optional<int64_t> condition = source(0, i)->constIndex();
      return condition ? source(*condition ? 1 : 2, i) : nullptr;
    });
    return true;
  default:
    if (x->src.size() != 2 || !has(x->op, Elementwise)) return false;
    if ((x->op == Op::And || x->op == Op::Or) && x->dtype != DType::Bool) return false;
    if (precision(x->src[0]->dtype) &&
        (x->op == Op::FloorDiv || x->op == Op::Mod || x->op == Op::TruncDiv || x->op == Op::Rem))
      return false;
    elementwise([&](size_t i) { return binary(c, x->op, source(0, i), source(1, i)); });
    return true;
  }
}

bool Evaluation::run() {
  auto give = [&] {
    switch (x->op) {
    case Op::FromIndex: put(0, x->src[0]); return true;
    case Op::Iota:
      forEachElement(x, [&](int64_t i, llvm::SmallVectorImpl<int64_t> &at) { put(i, c.index(at[x->ints.back()])); });
      return true;
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::RoundEven:
    case Op::Cast: return rounding();
    case Op::Expand:
    case Op::Permute:
    case Op::Flip:
    case Op::Pad:
    case Op::Shrink: return movement();
    case Op::Gather: return gather();
    case Op::Mul: return product();
    case Op::Div: return quotient();
    case Op::Reduce: return reduction();
    default: return arithmetic();
    }
  };
  constexpr int64_t leastOfF16 = int64_t(1) << 24; // 2^-24 is its least number
  return give() && known && (x->dtype != DType::F16 || divisor <= leastOfF16);
}
} // namespace

std::optional<Known::Value> Known::evaluate(UOpRef x, Memo &memo, bool must) {
  auto bytesOf = [](const uint64_t &bits) { return reinterpret_cast<const uint8_t *>(&bits); };
  if (x->is(Op::Const)) return decode(x->dtype, bytesOf(uint64_t(x->ints.back())), 1);
  if (x->is(Op::Param)) {
    bool reads = must || !precision(x->dtype) || !x->rank(); // a scalar may be a factor of an extent
    const std::vector<uint8_t> *bytes = reads ? data(x) : nullptr;
    return bytes ? decode(x->dtype, bytes->data(), *smallCount(x)) : std::nullopt;
  }
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
  if (x->is(Op::Reshape) || x->is(Op::Detach) || x->is(Op::Tap)) return *values[0];
  constexpr int64_t mostFactor = int64_t(1) << 30;
  Evaluation e(c, x, precision(x->dtype) ? divisor : 1);
  // Floats that meet in one tensor get a common divisor.
  std::vector<Elements> scaled(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    e.divisors.push_back(values[i]->divisor);
    e.sources.push_back(&values[i]->elements);
    if (ownDivisors || values[i]->divisor == divisor || !precision(x->src[i]->dtype)) continue;
    for (UOpRef v : values[i]->elements) {
      if (!small(v) || divisor / values[i]->divisor > mostFactor) return std::nullopt;
      scaled[i].push_back(idxMul(c, v, c.index(divisor / values[i]->divisor)));
    }
    e.sources.back() = &scaled[i];
  }
  if (x->is(Op::Pad))
    if (auto fill = decode(x->dtype, bytesOf(uint64_t(x->ints[0])), 1); fill && fill->divisor == 1) {
      UOpRef v = fill->elements[0];
      if (e.divisor == 1)
        e.outside = v;
      else if (small(v) && e.divisor <= mostFactor)
        e.outside = idxMul(c, v, c.index(e.divisor));
    }
  if (!e.run()) return std::nullopt;
  return Value{e.take(), e.divisor, e.rounded};
}

} // namespace astra::compose
