//===- Known.cpp: evaluate integer tensors over symbolic integers ----------===//
// Takes:    one node and the elements of its sources.
// Gives:    its elements, or nothing.
// Keeps:    the meaning of the ops (Ops.def) as long as no value leaves its dtype's range: a value that could, by its
//           bounds, is not known.
// Does not: recurse: sources are visited with an explicit stack.
#include "Known.h"
#include "astra/IR/Index.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace astra::onnx {

namespace {

constexpr int64_t maxElements = 4096;
constexpr int64_t maxMagnitude = int64_t(1) << 61; // of a non-constant value: index bounds saturate at 2^62

/// The number of elements of a tensor of constant shape that is small enough.
std::optional<int64_t> smallCount(UOpRef x) {
  int64_t count = 1;
  for (UOpRef dim : x->shape) {
    std::optional<int64_t> extent = dim->constIndex();
    if (!extent || llvm::MulOverflow(count, *extent, count) || count > maxElements) return std::nullopt;
  }
  return count;
}

bool mayBeKnown(UOpRef x) { return (isInt(x->dtype) || x->dtype == DType::Bool) && smallCount(x); }

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

const Known::Elements *Known::found(UOpRef x) const {
  auto it = memo.find(x->id);
  return it != memo.end() && it->second ? &*it->second : nullptr;
}

const Known::Elements *Known::elements(UOpRef x) {
  std::vector<std::pair<UOpRef, unsigned>> stack = {{x, 0}}; // a node and its next source
  while (!stack.empty()) {
    auto &[node, next] = stack.back();
    if (memo.count(node->id) || !mayBeKnown(node)) {
      memo.try_emplace(node->id);
      stack.pop_back();
    } else if (next < node->tensors().size()) {
      stack.push_back({node->tensors()[next++], 0});
    } else {
      memo[node->id] = evaluate(node);
      stack.pop_back();
    }
  }
  return found(x);
}

std::optional<int64_t> Known::constant(UOpRef x) {
  const Elements *e = elements(x);
  return e && e->size() == 1 ? e->front()->constIndex() : std::nullopt;
}

std::optional<Known::Elements> Known::evaluate(UOpRef x) {
  llvm::SmallVector<const Elements *, 3> sources;
  for (UOpRef source : x->tensors()) {
    sources.push_back(found(source));
    if (!sources.back()) return std::nullopt;
  }
  Elements result(*smallCount(x));
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
  auto literal = [&](uint64_t bits) {
    return c.index(decodeElement(reinterpret_cast<const uint8_t *>(&bits), x->dtype));
  };

  switch (x->op) {
  case Op::Const: put(0, literal(uint64_t(x->ints.back()))); break;
  case Op::Param: {
    const std::vector<uint8_t> *bytes = data(x);
    if (!bytes) return std::nullopt;
    elementwise([&](size_t i) { return c.index(decodeElement(bytes->data() + i * byteSize(x->dtype), x->dtype)); });
    break;
  }
  case Op::FromIndex: put(0, x->src[0]); break;
  case Op::Iota:
    forEachElement(x, [&](int64_t i, llvm::SmallVectorImpl<int64_t> &at) { put(i, c.index(at[x->ints.back()])); });
    break;
  case Op::Reshape:
  case Op::Detach:
  case Op::Tap: return *sources[0];
  case Op::Neg:
    elementwise([&](size_t i) { return medium((*sources[0])[i]) ? idxSub(c, c.index(0), (*sources[0])[i]) : nullptr; });
    break;
  case Op::Abs: elementwise([&](size_t i) { return (*sources[0])[i]->lo >= 0 ? (*sources[0])[i] : nullptr; }); break;
  case Op::Not:
    if (x->dtype != DType::Bool) return std::nullopt;
    elementwise([&](size_t i) { return idxSub(c, c.index(1), (*sources[0])[i]); });
    break;
  case Op::Cast:
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
  case Op::Reduce: {
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
    elementwise([&](size_t i) { return binary(c, x->op, (*sources[0])[i], (*sources[1])[i]); });
  }
  if (!known) return std::nullopt;
  return result;
}

} // namespace astra::onnx
