//===- EvalContract.cpp: sums of products in chain512 or a unit's order ----===//
// Takes:    two operands and the spec of Contract.h.
// Gives:    for each kept point the sum in the order of N4, with fma; integers wrap.
// Keeps:    an index outside an operand reads +0.0 and takes part; an inexact quotient and a point outside the domain
//           take no part. Where a matrix unit adds, it adds its blocks in order (N4.8), and what takes no part is +0.
#include "EvalImpl.h"
#include "astra/IR/Contract.h"

using namespace astra;
using namespace astra::eval;

namespace {
/// Where the innermost label leads one operand, from a point on: a stride in elements, or element by element.
struct Access {
  llvm::ArrayRef<AffineForm> forms;
  llvm::ArrayRef<int64_t> shape;
  Dims strides;
  bool divided = false;

  Access(llvm::ArrayRef<AffineForm> forms, const Tensor &t) : forms(forms), shape(t.shape), strides(rowMajor(t.shape)) {
    for (const AffineForm &f : forms) divided |= f.divisor != 1;
  }
  enum Where { Hole = -2, Outside = -1 };
  /// The offset of the element at a point, or Hole, or Outside.
  int64_t at(llvm::ArrayRef<int64_t> point) const {
    int64_t offset = 0;
    bool outside = false;
    for (auto [f, extent, stride] : llvm::zip(forms, shape, strides)) {
      int64_t v = f.constant;
      for (auto [label, k] : f.terms) v += k * point[label];
      if (v % f.divisor) return Hole;
      v /= f.divisor;
      outside |= v < 0 || v >= extent;
      offset += v * stride;
    }
    return outside ? int64_t(Outside) : offset;
  }
  /// The stride along `label` if all of `count` points from this one on are inside; nothing otherwise.
  std::optional<int64_t> run(llvm::MutableArrayRef<int64_t> point, int64_t label, int64_t count) const {
    if (divided || at(point) < 0) return std::nullopt;
    int64_t first = at(point);
    point[label] += count - 1;
    int64_t last = at(point); // affine: if both ends are inside, so is everything between
    point[label] -= count - 1;
    if (last < 0) return std::nullopt;
    return count > 1 ? (last - first) / (count - 1) : 0;
  }
};

/// Four bytes; of two that are multiplied the first one's are unsigned.
struct Word {
  int32_t bits;
  explicit Word(double v) : bits(int32_t(v)) {}
  explicit Word(int32_t v) : bits(v) {}
  friend Word operator+(Word a, Word b) { return Word(int32_t(uint32_t(a.bits) + uint32_t(b.bits))); }
};
Word multiplyAdd(Word x, Word y, Word acc) { return Word(dot4(x.bits, y.bits, acc.bits)); }

template <class T> T multiplyAdd(T x, T y, T acc) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fma(x, y, acc);
  else
    return T(uint64_t(x) * uint64_t(y) + uint64_t(acc));
}

template <class T> struct Summation {
  const ContractSpec &spec;
  llvm::ArrayRef<int64_t> extents, bounds; // of all labels; of the domain
  Access a, b;
  const T *x, *y;
  Dims point;
  const T *z = nullptr; // the third operand, or null
  llvm::ArrayRef<int64_t> zShape = {}, zStrides = {};

  bool inDomain() const {
    for (auto [f, bound] : llvm::zip(spec.domain, bounds)) {
      int64_t v = bound;
      for (auto [label, k] : f.terms) v += k * point[label];
      if (v < 0) return false;
    }
    return true;
  }
  T read(const T *p, int64_t at) const { return at == Access::Outside ? T(0) : p[at]; }
  void take(T &c) const {
    if (!inDomain()) return;
    int64_t i = a.at(point), j = b.at(point);
    if (i != Access::Hole && j != Access::Hole) c = multiplyAdd(read(x, i), read(y, j), c);
  }
  /// c continued over `count` values of the innermost label, from the point on.
  void row(T &c, int64_t count) {
    int64_t label = spec.kept + spec.reduced - 1, begin = point[label];
    if (spec.domain.empty())
      if (auto s = a.run(point, label, count))
        if (auto t = b.run(point, label, count)) {
          const T *p = x + a.at(point), *q = y + b.at(point);
          for (int64_t i = 0; i < count; ++i) c = multiplyAdd(p[i * *s], q[i * *t], c);
          return;
        }
    for (int64_t i = 0; i < count; ++i, ++point[label]) take(c);
    point[label] = begin;
  }

  /// The same with a third operand, of what no label reaches.
  T sumWithOutside() {
    size_t taps = spec.reduced - 1;
    int64_t last = spec.kept + spec.reduced - 1, own = 0; // of the third operand: the place of the kept labels
    for (size_t axis = taps + 1; axis < zShape.size(); ++axis) {
      int64_t v = spec.outside[axis].constant;
      for (auto [label, k] : spec.outside[axis].terms) v += k * point[label];
      own += v * zStrides[axis];
    }
    T acc = T(-0.0);
    for (int64_t block = 0; block < zShape[taps]; ++block) {
      T c = T(-0.0);
      point[last] = block * chainBlock;
      for (Odometer o(zShape.take_front(taps)); !o.done(); o.next()) {
        bool reaches = true;
        int64_t at = own + block * zStrides[taps];
        for (size_t j = 0; j < taps; ++j) {
          int64_t tap = o.index[j] - spec.outside[j].constant;
          reaches &= tap >= 0 && tap < extents[spec.kept + j];
          point[spec.kept + j] = tap;
          at += o.index[j] * zStrides[j];
        }
        if (reaches)
          row(c, std::min(chainBlock, extents[last] - block * chainBlock));
        else
          c = T(c + z[at]);
      }
      acc = T(acc + c);
    }
    return acc;
  }

  /// The sum at the kept labels that stand in `point`.
  T sum() {
    if (z) return sumWithOutside();
    T start = std::is_floating_point_v<T> ? T(-0.0) : T(0);
    if (!spec.reduced) {
      T c = start;
      take(c);
      return c;
    }
    llvm::ArrayRef<int64_t> lengths = extents.drop_front(spec.kept);
    if (llvm::is_contained(lengths, 0)) return T(0);
    auto block = chain512Blocks(lengths);
    // Blocks: the innermost label outermost, then labels 1 ... r-1.
    size_t r = lengths.size();
    Dims blocks{(lengths[r - 1] + block[r - 1] - 1) / block[r - 1]};
    for (size_t i = 0; i + 1 < r; ++i) blocks.push_back((lengths[i] + block[i] - 1) / block[i]);
    T acc = start; // -0.0 + c = c: the first block needs no case of its own
    for (Odometer o(blocks); !o.done(); o.next()) {
      Dims begin(r), size(r);
      for (size_t i = 0; i < r; ++i) {
        begin[i] = o.index[i + 1 == r ? 0 : i + 1] * block[i];
        size[i] = std::min(block[i], lengths[i] - begin[i]);
      }
      T c = start;
      llvm::ArrayRef<int64_t> outer = llvm::ArrayRef<int64_t>(size).drop_back();
      for (Odometer in(outer); !in.done(); in.next()) {
        for (size_t i = 0; i + 1 < r; ++i) point[spec.kept + i] = begin[i] + in.index[i];
        point[spec.kept + r - 1] = begin[r - 1];
        row(c, size[r - 1]);
      }
      acc = T(acc + c);
    }
    return acc;
  }
};

/// The sum that a matrix unit gives: along the last reduced label in blocks, +0 beyond its end.
struct UnitSummation {
  const ContractSpec &spec;
  llvm::ArrayRef<int64_t> extents, bounds;
  Access a, b;
  const uint32_t *x, *y; // the operands as the unit's inputs, bits of f32
  Dims point;

  bool isLeftOut(int which) const {
    for (auto [f, bound] : llvm::zip(spec.domain, bounds)) {
      if (operandOf(spec, f) != which) continue;
      int64_t v = bound;
      for (auto [label, k] : f.terms) v += k * point[label];
      if (v < 0) return true;
    }
    return false;
  }
  uint32_t read(int which) const {
    int64_t at = (which ? b : a).at(point);
    return at < 0 || isLeftOut(which) ? 0 : (which ? y : x)[at];
  }
  float sum() {
    llvm::ArrayRef<int64_t> lengths = extents.drop_front(spec.kept);
    int64_t last = lengths.empty() ? 1 : lengths.back();
    uint32_t c = 0;
    llvm::SmallVector<uint32_t, 32> p, q;
    for (Odometer o(lengths.empty() ? lengths : lengths.drop_back()); !o.done(); o.next()) {
      std::copy(o.index.begin(), o.index.end(), point.begin() + spec.kept);
      for (int64_t begin = 0; begin < last; begin += spec.unit->block) {
        p.clear(), q.clear();
        for (int64_t k = begin; k < std::min(last, begin + spec.unit->block); ++k) {
          if (!lengths.empty()) point.back() = k;
          p.push_back(read(0)), q.push_back(read(1));
        }
        c = matrixStep(*spec.unit, spec.inputs, c, p, q);
      }
    }
    return llvm::bit_cast<float>(c);
  }
};

/// The same of words, which are whole steps.
struct WordSummation {
  const ContractSpec &spec;
  llvm::ArrayRef<int64_t> extents;
  Access a, b;
  const uint32_t *x, *y;
  Dims point;

  float sum() {
    UnitStep step{spec.unit, spec.inputs, unsigned(extents.back())};
    llvm::SmallVector<uint32_t, 32> words(2 * step.words);
    uint32_t c = 0;
    for (Odometer o(extents.slice(spec.kept, spec.reduced - 1)); !o.done(); o.next()) {
      std::copy(o.index.begin(), o.index.end(), point.begin() + spec.kept);
      for (unsigned w = 0; w < step.words; ++w) {
        point.back() = w;
        words[w] = x[a.at(point)], words[step.words + w] = y[b.at(point)];
      }
      c = matrixStep(step, c, words);
    }
    return llvm::bit_cast<float>(c);
  }
};

/// store(i, the sum at point i of the result), row-major.
template <class S, class Store> void sums(const Call &c, S s, Store store) {
  int64_t at = 0;
  for (Odometer k(c.shape); !k.done(); k.next()) {
    std::copy(k.index.begin(), k.index.end(), s.point.begin());
    store(at++, s.sum());
  }
}

template <class E> std::vector<typename E::Compute> widened(const Tensor &t, E) {
  std::vector<typename E::Compute> v(t.count());
  for (size_t i = 0; i < v.size(); ++i) v[i] = E::load(t.bytes.data(), i);
  return v;
}
} // namespace

Result eval::evalContract(const Call &c) {
  auto spec = decodeContract(c.node->ints);
  if (!spec) return spec.takeError();
  size_t labels = spec->kept + spec->reduced;
  Tensor out = c.result();
  if (c.in[0]->dtype != c.in[1]->dtype) { // words
    unsigned u = c.in[0]->dtype != DType::U32;
    if (u) std::swap(spec->a, spec->b);
    auto read = [](const Tensor &t) {
      std::vector<Word> v;
      for (int64_t i = 0; i < t.count(); ++i) v.push_back(Word(Native<int32_t>::load(t.bytes.data(), i)));
      return v;
    };
    auto x = read(*c.in[u]), y = read(*c.in[1 - u]);
    sums(c,
         Summation<Word>{*spec,
                         c.indices.take_front(labels),
                         c.indices.drop_front(labels),
                         {spec->a, *c.in[u]},
                         {spec->b, *c.in[1 - u]},
                         x.data(),
                         y.data(),
                         Dims(labels)},
         [&](int64_t at, Word v) { Native<int32_t>::store(out.bytes.data(), at, v.bits); });
    return out;
  }
  if (spec->unit && c.in[0]->dtype == DType::U32) {
    auto read = [](const Tensor &t) {
      std::vector<uint32_t> v;
      for (int64_t i = 0; i < t.count(); ++i) v.push_back(Native<uint32_t>::load(t.bytes.data(), i));
      return v;
    };
    auto x = read(*c.in[0]), y = read(*c.in[1]);
    sums(c,
         WordSummation{*spec,
                       c.indices.take_front(labels),
                       {spec->a, *c.in[0]},
                       {spec->b, *c.in[1]},
                       x.data(),
                       y.data(),
                       Dims(labels)},
         [&](int64_t at, float v) { Native<float>::store(out.bytes.data(), at, v); });
    return out;
  }
  if (spec->unit) {
    withFloat(c.type(), [&](auto e) {
      auto read = [&](const Tensor &t, MatrixInput in) {
        std::vector<uint32_t> v;
        for (float f : widened(t, e)) v.push_back(llvm::bit_cast<uint32_t>(matrixInput(in, f)));
        return v;
      };
      auto x = read(*c.in[0], spec->inputs.a), y = read(*c.in[1], spec->inputs.b);
      sums(c,
           UnitSummation{*spec,
                         c.indices.take_front(labels),
                         c.indices.drop_front(labels),
                         {spec->a, *c.in[0]},
                         {spec->b, *c.in[1]},
                         x.data(),
                         y.data(),
                         Dims(labels)},
           [&](int64_t at, float v) { decltype(e)::store(out.bytes.data(), at, v); });
      return 0;
    });
    return out;
  }
  withArithmetic(c.type(), [&](auto e) {
    using E = decltype(e);
    using T = typename E::Compute;
    auto x = widened(*c.in[0], e), y = widened(*c.in[1], e);
    Summation<T> s{*spec,
                   c.indices.take_front(labels),
                   c.indices.drop_front(labels),
                   {spec->a, *c.in[0]},
                   {spec->b, *c.in[1]},
                   x.data(),
                   y.data(),
                   Dims(labels)};
    auto z = c.in.size() > 2 ? widened(*c.in[2], e) : decltype(x)();
    Dims strides;
    if (c.in.size() > 2) s.z = z.data(), s.zShape = c.in[2]->shape, s.zStrides = strides = rowMajor(c.in[2]->shape);
    sums(c, s, [&](int64_t at, T v) { E::store(out.bytes.data(), at, v); });
    return 0;
  });
  return out;
}
