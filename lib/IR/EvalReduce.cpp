//===- EvalReduce.cpp: reduce, cumulate, argreduce, argsort ----------------===//
// Takes:    a tensor.
// Gives:    folds in the orders of N4, extremes and permutations of N9.
#include "EvalImpl.h"
#include "astra/IR/Contract.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace astra;
using namespace astra::eval;

namespace {
template <class T> T combine(ReduceKind k, T a, T b) {
  if constexpr (std::is_integral_v<T>) switch (k) {
    case ReduceKind::Sum: return T(uint64_t(a) + uint64_t(b));
    case ReduceKind::Prod: return T(uint64_t(a) * uint64_t(b));
    case ReduceKind::And: return a & b;
    case ReduceKind::Or: return a | b;
    default: break;
    }
  else
    switch (k) {
    case ReduceKind::Sum: return a + b;
    case ReduceKind::Prod: return a * b;
    default: break;
    }
  return k == ReduceKind::Max ? maxOf(a, b) : minOf(a, b);
}
template <class T> T identity(ReduceKind k, bool isBool) {
  using L = std::numeric_limits<T>;
  switch (k) {
  case ReduceKind::Sum: return std::is_floating_point_v<T> ? T(-0.0) : T(0);
  case ReduceKind::Prod: return T(1);
  case ReduceKind::Max: return std::is_floating_point_v<T> ? -L::infinity() : L::lowest();
  case ReduceKind::Min: return isBool ? T(1) : std::is_floating_point_v<T> ? L::infinity() : L::max();
  case ReduceKind::And: return isBool ? T(1) : T(~uint64_t(0));
  case ReduceKind::Or: return T(0);
  }
  return T(0);
}

/// lane64 over values in which what lies outside the domain is the identity (an exact one, so it takes no part).
template <class T> T lane64(ReduceKind k, std::vector<T> v) {
  T unit = identity<T>(k, false);
  if (v.empty()) return unit;
  do {
    std::vector<T> results;
    for (size_t begin = 0; begin < v.size(); begin += laneChunk) {
      T lane[64];
      std::fill(lane, lane + 64, unit);
      for (size_t i = begin; i < std::min<size_t>(v.size(), begin + laneChunk); ++i)
        lane[(i - begin) % 64] = combine(k, lane[(i - begin) % 64], v[i]);
      for (unsigned s = 32; s; s /= 2)
        for (unsigned j = 0; j < s; ++j) lane[j] = combine(k, lane[j], lane[j + s]);
      results.push_back(lane[0]);
    }
    v = std::move(results);
  } while (v.size() > 1);
  return v[0];
}

/// Whether a point of x's axes satisfies every inequality.
bool inside(llvm::ArrayRef<AffineForm> domain, llvm::ArrayRef<int64_t> bounds, llvm::ArrayRef<int64_t> point) {
  for (auto [f, bound] : llvm::zip(domain, bounds)) {
    int64_t v = bound;
    for (auto [label, k] : f.terms) v += k * point[label];
    if (v < 0) return false;
  }
  return true;
}

template <class E> Tensor reduce(const Call &c, const ReduceSpec &spec, E) {
  using T = typename E::Compute;
  const Tensor &x = c.x();
  Tensor out = c.result();
  unsigned rank = x.shape.size();
  Dims strides = rowMajor(x.shape);
  // Axes in three runs: kept ones, reduced ones that go by a chain, the last group of neighbours, which goes by lanes.
  llvm::SmallVector<unsigned> kept, chain, lanes;
  size_t group = spec.axes.size();
  if (spec.order == ReduceOrder::Lane64)
    for (--group; group > 0 && spec.axes[group - 1] + 1 == spec.axes[group];) --group;
  for (unsigned i = 0; i < rank; ++i) {
    auto it = llvm::find(spec.axes, int64_t(i));
    size_t at = it - spec.axes.begin();
    (it == spec.axes.end() ? kept : at < group ? chain : lanes).push_back(i);
  }
  auto pick = [](const auto &from, llvm::ArrayRef<unsigned> axes) {
    Dims r;
    for (unsigned a : axes) r.push_back(from[a]);
    return r;
  };
  Dims extents[] = {pick(x.shape, kept), pick(x.shape, chain), pick(x.shape, lanes)};
  Dims step[] = {pick(strides, kept), pick(strides, chain), pick(strides, lanes)};
  T unit = identity<T>(spec.kind, x.dtype == DType::Bool);
  bool none = product(extents[1]) * product(extents[2]) == 0;
  Dims point(rank);
  auto place = [&](const Odometer &o, llvm::ArrayRef<unsigned> axes) {
    for (size_t i = 0; i < axes.size(); ++i) point[axes[i]] = o.index[i];
  };
  std::vector<T> row;
  int64_t at = 0;
  for (Odometer k(extents[0]); !k.done(); k.next()) {
    place(k, kept);
    T acc = unit;
    for (Odometer r(extents[1]); !r.done(); r.next()) {
      place(r, chain);
      int64_t base = k.offset(step[0]) + r.offset(step[1]);
      row.clear();
      for (Odometer l(extents[2]); !l.done(); l.next()) {
        place(l, lanes);
        bool takesPart = spec.domain.empty() || inside(spec.domain, c.indices, point);
        row.push_back(takesPart ? E::load(x.bytes.data(), base + l.offset(step[2])) : unit);
      }
      acc = combine(spec.kind, acc, spec.order == ReduceOrder::Lane64 ? lane64(spec.kind, row) : row[0]);
    }
    if (none && spec.kind == ReduceKind::Sum) acc = T(0);
    E::store(out.bytes.data(), at++, acc);
  }
  return out;
}

template <class E> Tensor cumulate(const Call &c, E) {
  using T = typename E::Compute;
  const Tensor &x = c.x();
  Tensor out = c.result();
  ReduceKind kind = ReduceKind(c.attr(0)); // the first four kinds are the same
  int64_t axis = c.attr(1), n = x.shape[axis], stride = rowMajor(x.shape)[axis];
  bool blocks = std::is_floating_point_v<T> && axis + 1 == int64_t(x.shape.size()) &&
                (kind == ReduceKind::Sum || kind == ReduceKind::Prod);
  std::vector<T> v(n);
  for (int64_t line = 0, lines = n ? x.count() / n : 0; line < lines; ++line) {
    int64_t base = line / stride * stride * n + line % stride;
    for (int64_t i = 0; i < n; ++i) v[i] = E::load(x.bytes.data(), base + i * stride);
    if (!blocks)
      for (int64_t i = 1; i < n; ++i) v[i] = combine(kind, v[i - 1], v[i]);
    for (int64_t begin = 0; blocks && begin < n; begin += 16) {
      int64_t end = std::min(n, begin + 16);
      for (int64_t s = 1; s < 16; s *= 2)
        for (int64_t i = end - 1; i >= begin + s; --i) v[i] = combine(kind, v[i - s], v[i]); // downward: all i at once
      for (int64_t i = begin; begin && i < end; ++i) v[i] = combine(kind, v[begin - 1], v[i]);
    }
    for (int64_t i = 0; i < n; ++i) E::store(out.bytes.data(), base + i * stride, v[i]);
  }
  return out;
}

/// Calls f(base, stride, line) for every line of x along an axis.
template <class F> void eachLine(const Tensor &x, int64_t axis, F f) {
  int64_t n = x.shape[axis], stride = rowMajor(x.shape)[axis];
  Dims others(x.shape.begin(), x.shape.end());
  others[axis] = 1;
  for (int64_t line = 0, lines = product(others); line < lines; ++line)
    f(line / stride * stride * n + line % stride, stride, line);
}
} // namespace

Result eval::evalReduce(const Call &c) {
  auto spec = decodeReduce(c.node->ints);
  if (!spec) return spec.takeError();
  return withArithmetic(c.type(), [&](auto e) { return reduce(c, *spec, e); });
}

Result eval::evalCumulate(const Call &c) {
  return withArithmetic(c.type(), [&](auto e) { return cumulate(c, e); });
}

Result eval::evalArgReduce(const Call &c) {
  Tensor out = c.result();
  bool max = c.attr(0) == 0;
  int64_t n = c.x().shape[c.attr(1)];
  withArithmetic(c.type(), [&](auto e) {
    using E = decltype(e);
    const uint8_t *p = c.x().bytes.data();
    eachLine(c.x(), c.attr(1), [&](int64_t base, int64_t stride, int64_t line) {
      int64_t best = 0;
      for (int64_t i = 0; i < n; ++i) {
        auto v = E::load(p, base + i * stride), b = E::load(p, base + best * stride);
        if (v != v) { // the first NaN ends the search
          best = i;
          break;
        }
        if (max ? v > b : v < b) best = i;
      }
      Native<int64_t>::store(out.bytes.data(), line, best);
    });
    return 0;
  });
  return out;
}

Result eval::evalArgSort(const Call &c) {
  Tensor out = c.result();
  bool descending = c.attr(1);
  std::vector<int64_t> order(c.x().shape[c.attr(0)]);
  withArithmetic(c.type(), [&](auto e) {
    using E = decltype(e);
    using T = typename E::Compute;
    const uint8_t *p = c.x().bytes.data();
    auto less = [](T a, T b) { // NaN greatest, all NaNs equal, -0 < +0
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
        if (a == b) return std::signbit(a) && !std::signbit(b);
      }
      return a < b;
    };
    eachLine(c.x(), c.attr(0), [&](int64_t base, int64_t stride, int64_t) {
      std::iota(order.begin(), order.end(), 0);
      auto at = [&](int64_t i) { return E::load(p, base + i * stride); };
      std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { // ties by index: stable
        T a = at(descending ? j : i), b = at(descending ? i : j);
        return less(a, b) || (!less(b, a) && i < j);
      });
      for (size_t i = 0; i < order.size(); ++i) Native<int64_t>::store(out.bytes.data(), base + i * stride, order[i]);
    });
    return 0;
  });
  return out;
}
