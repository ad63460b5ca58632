//===- EvalIndexing.cpp: gather, pick, scatter, compact, random ------------===//
// Takes:    a tensor and indices as data.
// Gives:    elements at indices; an index outside reads 0 and writes nothing.
#include "EvalImpl.h"

using namespace astra;
using namespace astra::eval;

namespace {
Tensor gather(const Call &c) {
  const Tensor &x = c.x(), &index = *c.in[1];
  Tensor out = c.result();
  int64_t axis = c.attr(0), extent = x.shape[axis], count = index.count();
  int64_t outer = product(llvm::ArrayRef(x.shape).take_front(axis)),
          inner = product(llvm::ArrayRef(x.shape).drop_front(axis + 1));
  size_t block = inner * elementBytes(x.dtype);
  for (int64_t o = 0; block && o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      if (int64_t at = indexAt(index, i); at >= 0 && at < extent)
        memcpy(&out.bytes[(o * count + i) * block], &x.bytes[(o * extent + at) * block], block);
  return out;
}

Tensor pick(const Call &c) {
  Tensor out = c.result();
  unsigned w = elementBytes(out.dtype);
  along(c.x(), *c.in[1], c.attr(0),
        [&](int64_t from, int64_t to) { memcpy(&out.bytes[to * w], &c.x().bytes[from * w], w); });
  return out;
}

template <class E> Tensor scatterWith(const Call &c, ScatterKind kind, E) {
  using T = typename E::Compute;
  std::vector<T> v(c.x().count()); // narrow floats stay in f32 until the end (N4)
  for (size_t i = 0; i < v.size(); ++i) v[i] = E::load(c.x().bytes.data(), i);
  along(c.x(), *c.in[1], c.attr(0), [&](int64_t to, int64_t from) {
    T update = E::load(c.in[2]->bytes.data(), from);
    switch (kind) {
    case ScatterKind::Set: break; // without arithmetic
    case ScatterKind::Add:
      if constexpr (std::is_integral_v<T>)
        v[to] = T(uint64_t(v[to]) + uint64_t(update));
      else
        v[to] += update;
      break;
    case ScatterKind::Mul:
      if constexpr (std::is_integral_v<T>)
        v[to] = T(uint64_t(v[to]) * uint64_t(update));
      else
        v[to] *= update;
      break;
    case ScatterKind::Max: v[to] = maxOf(v[to], update); break;
    case ScatterKind::Min: v[to] = minOf(v[to], update); break;
    }
  });
  Tensor out = c.result();
  for (size_t i = 0; i < v.size(); ++i) E::store(out.bytes.data(), i, v[i]);
  return out;
}

Tensor scatter(const Call &c) {
  auto kind = ScatterKind(c.attr(1));
  DType t = c.type();
  if (kind != ScatterKind::Set) return withArithmetic(t, [&](auto e) { return scatterWith(c, kind, e); });
  Tensor out = c.x();
  unsigned w = elementBytes(t);
  along(c.x(), *c.in[1], c.attr(0),
        [&](int64_t to, int64_t from) { memcpy(&out.bytes[to * w], &c.in[2]->bytes[from * w], w); });
  return out;
}

Result compact(const Call &c) {
  Tensor out = c.result();
  const std::vector<uint8_t> &mask = c.in[1]->bytes;
  size_t row = product(llvm::ArrayRef(out.shape).drop_front()) * elementBytes(out.dtype), to = 0,
         count = llvm::count(mask, 1);
  if (int64_t(count) != out.shape[0])
    return c.fail("the mask keeps " + llvm::Twine(count) + " rows, the result's extent is " +
                  llvm::Twine(out.shape[0]));
  for (size_t i = 0; row && i < mask.size(); ++i)
    if (mask[i]) memcpy(&out.bytes[to++ * row], &c.x().bytes[i * row], row);
  return out;
}

/// Threefry2x32-20 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::pair<uint32_t, uint32_t> threefry(uint32_t key0, uint32_t key1, uint32_t c0, uint32_t c1) {
  static constexpr unsigned rotation[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t key[3] = {key0, key1, 0x1BD11BDAu ^ key0 ^ key1}, x = c0 + key0, y = c1 + key1;
  for (unsigned round = 0; round < 20; ++round) {
    x += y;
    y = (y << rotation[round % 8]) | (y >> (32 - rotation[round % 8]));
    y ^= x;
    if (round % 4 == 3) {
      unsigned step = round / 4 + 1;
      x += key[step % 3];
      y += key[(step + 1) % 3] + step;
    }
  }
  return {x, y};
}

Tensor random(const Call &c) {
  Tensor out = c.result();
  uint32_t seed = Native<uint32_t>::load(c.in[0]->bytes.data(), 0),
           stream = Native<uint32_t>::load(c.in[1]->bytes.data(), 0);
  for (int64_t i = 0, n = out.count(); i < n; ++i) {
    auto words = threefry(seed, stream, uint32_t(i >> 1), uint32_t(i >> 33));
    Native<uint32_t>::store(out.bytes.data(), i, i & 1 ? words.second : words.first);
  }
  return out;
}
} // namespace

Result eval::evalIndexing(const Call &c) {
  switch (c.node->op) {
  case Op::Gather: return gather(c);
  case Op::Pick: return pick(c);
  case Op::Scatter: return scatter(c);
  case Op::Compact: return compact(c);
  default: return random(c);
  }
}
