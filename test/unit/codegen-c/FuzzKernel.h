//===- FuzzKernel.h: random kernels ----------------------------------------===//
// Random stores of random values: folds in folds that share loops, stages, gates, vectors, values used at several
// depths, extents of 0 and extents that depend on a dim or an outer range. Every index is within its buffer wherever a
// loop runs; where none runs, hoisted loads may point outside.
#pragma once
#include "Run.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

namespace astra::test {

class FuzzKernel {
public:
  FuzzKernel(Context &c, UOpRef n, uint32_t seed) : c(c), b(c), n(n), random(seed) {}

  Job make(int64_t dim) {
    Kernel k;
    k.name = "fuzz";
    std::vector<UOpRef> stores;
    UOpRef elements[] = {b.idx(1000), b.idx(1000), idxAdd(c, idxMul(c, n, b.idx(32)), b.idx(0)), b.idx(32768),
                         b.idx(32768)};
    DType types[] = {DType::F32, DType::I32, DType::F32, DType::F32, DType::I32};
    for (unsigned i = 0; i < 5; ++i) {
      buffers.push_back(c.make(Op::Buffer, {elements[i]}, {int64_t(i)}, {}, types[i]));
      k.buffers.push_back({types[i], i < 3, i >= 3, elements[i]});
    }
    // Stores write disjoint parts of 8192 elements.
    for (int64_t s = 0; s < 4; ++s) {
      std::vector<UOpRef> open{range(extent({}, true), RangeKind::Parallel)};
      if (pick(2)) open.push_back(range(extent(open, true), RangeKind::Loop));
      bool real = pick(2);
      UOpRef at = open[0];
      if (open.size() > 1) at = idxAdd(c, idxMul(c, at, b.idx(8)), open[1]);
      UOpRef v = value(open, real ? DType::F32 : DType::I32, 5);
      int64_t lanes = v->rank() ? *v->shape[0]->constIndex() : 1;
      at = idxAdd(c, idxMul(c, at, b.idx(lanes)), b.idx(s * 8192));
      UOpRef out = buffers[real ? 3 : 4];
      if (pick(4) == 0)
        stores.push_back(c.make(Op::Store, {out, v, gate(open, lanes), at}, {lanes}));
      else
        stores.push_back(c.make(Op::Store, {out, v, at}, {lanes}));
    }
    k.sink = c.make(Op::Sink, stores);
    Job j{k, {}, {dim}, 1 + int(pick(4))};
    for (unsigned i = 0; i < 5; ++i) {
      int64_t count = i == 2 ? 32 * dim : *elements[i]->constIndex();
      std::vector<uint8_t> bytes(count * 4);
      for (int64_t e = 0; e < count && i < 3; ++e) {
        float f = float(int(pick(2001)) - 1000) / 16;
        int32_t w = int32_t(pick(2001)) - 1000;
        memcpy(&bytes[e * 4], types[i] == DType::F32 ? static_cast<void *>(&f) : &w, 4);
      }
      j.buffers.push_back(std::move(bytes));
    }
    return j;
  }

private:
  uint32_t pick(uint32_t below) { return random() % below; }
  UOpRef range(UOpRef extent, RangeKind kind) { return c.make(Op::Range, {extent}, {axis++, int64_t(kind)}); }
  /// At most 8.
  UOpRef extent(llvm::ArrayRef<UOpRef> open, bool often) {
    switch (pick(often ? 3 : 6)) {
    case 0: return idxMin(c, n, b.idx(1 + pick(7)));
    case 1: return open.empty() ? b.idx(5) : idxMin(c, open[pick(open.size())], b.idx(6));
    case 2: return b.idx(1 + pick(8));
    case 3: return b.idx(0);
    default: return b.idx(2 + pick(5));
    }
  }
  UOpRef index(llvm::ArrayRef<UOpRef> open, int64_t below) {
    UOpRef x = b.idx(pick(50));
    for (UOpRef r : open)
      if (pick(3)) x = idxAdd(c, x, idxMul(c, r, b.idx(1 + pick(9))));
    return idxMod(c, x, b.idx(below));
  }
  UOpRef gate(llvm::ArrayRef<UOpRef> open, int64_t lanes) {
    if (lanes == 1) return c.make(Op::Lt, {index(open, 7), b.idx(4)});
    std::vector<UOpRef> each;
    for (int64_t l = 0; l < lanes; ++l) each.push_back(c.make(Op::Lt, {index(open, 7), b.idx(4)}));
    return c.make(Op::Stack, each);
  }
  UOpRef wide(UOpRef x, int64_t lanes) { return x->rank() || lanes == 1 ? x : c.make(Op::Splat, {x}, {lanes}); }
  static int64_t lanesOf(UOpRef x) { return x->rank() ? *x->shape[0]->constIndex() : 1; }

  UOpRef load(llvm::ArrayRef<UOpRef> open, DType t) {
    int64_t lanes = 1 << (pick(2) ? 0 : pick(5));
    unsigned slot = t == DType::I32 ? 1 : pick(2) ? 0 : 2;
    UOpRef at;
    if (slot == 2) { // n * 32 elements: inside only where a range below n runs
      UOpRef r = nullptr;
      for (UOpRef o : open)
        if (o->src[0] == idxMin(c, n, o->src[0]) || (o->src[0]->op == Op::Min && llvm::is_contained(o->src[0]->src, n)))
          r = o;
      if (!r)
        slot = 0;
      else
        at = idxAdd(c, idxMul(c, r, b.idx(32)), b.idx(pick(33 - lanes)));
    }
    if (slot != 2) at = index(open, 1000 - lanes + 1);
    if (pick(4) == 0) return c.make(Op::Load, {buffers[slot], gate(open, lanes), at}, {lanes});
    return c.make(Op::Load, {buffers[slot], at}, {lanes});
  }

  UOpRef value(std::vector<UOpRef> open, DType t, int depth) {
    bool real = t == DType::F32;
    if (depth == 0) return load(open, t);
    switch (pick(9)) {
    case 0: return load(open, t);
    case 1: { // a value made before for the same ranges
      std::vector<UOpRef> fit;
      for (auto &[ranges, v] : made)
        if (v->dtype == t && llvm::all_of(ranges, [&](UOpRef r) { return llvm::is_contained(open, r); }))
          fit.push_back(v);
      if (!fit.empty()) return fit[pick(fit.size())];
      return load(open, t);
    }
    case 2:
    case 3: { // a fold or two over one range, or one over two
      std::vector<UOpRef> inner = open, closed;
      for (unsigned i = 0, ranges = 1 + pick(2); i < ranges; ++i) {
        closed.push_back(range(extent(inner, false), RangeKind::Fold));
        inner.push_back(closed.back());
      }
      static const Combine combines[] = {Combine::Add, Combine::Max, Combine::Min, Combine::Mul, Combine::Fma};
      UOpRef last = nullptr;
      for (unsigned i = 0, folds = 1 + pick(2); i < folds; ++i) {
        Combine f = combines[pick(real ? 5 : 4)];
        UOpRef x = value(inner, t, depth - 2 > 0 ? depth - 2 : 0), y = f == Combine::Fma ? load(inner, t) : x;
        UOpRef init = i && pick(2) ? last : load(open, t);
        int64_t lanes = std::max({lanesOf(x), lanesOf(y), lanesOf(init)});
        x = match(x, lanes), y = match(y, lanes), init = match(init, lanes);
        std::vector<UOpRef> src{init, x};
        if (f == Combine::Fma) src.push_back(y);
        int64_t values = src.size() - 1;
        src.insert(src.end(), closed.begin(), closed.end());
        UOpRef fold = c.make(Op::Fold, src, {int64_t(f), values});
        last = last ? combine(Op::Sub, last, fold) : fold;
      }
      return keep(open, last);
    }
    case 4: { // a stage, read at another range
      std::vector<UOpRef> inner = open, closed;
      for (unsigned i = 0, ranges = 1 + pick(2); i < ranges; ++i) {
        closed.push_back(range(b.idx(2 + pick(4)), RangeKind::Fold));
        inner.push_back(closed.back());
      }
      UOpRef x = value(inner, t, depth - 2 > 0 ? depth - 2 : 0);
      int64_t wide = lanesOf(x), lanes = 1 << pick(3); // of a stage of vectors the last index counts elements
      std::vector<UOpRef> src{x};
      src.insert(src.end(), closed.begin(), closed.end());
      std::vector<UOpRef> at{c.make(Op::Stage, src)};
      for (UOpRef r : closed) {
        bool last = r == closed.back();
        int64_t elements = *r->src[0]->constIndex() * (last ? wide : 1);
        if (last && lanes > elements) lanes = 1;
        at.push_back(index(open, last ? elements - lanes + 1 : elements));
      }
      if (pick(4) == 0) at.insert(at.begin() + 1, gate(open, lanes));
      return keep(open, c.make(Op::At, at, {lanes}));
    }
    case 5: { // lanes
      UOpRef x = value(open, t, depth - 1);
      int64_t lanes = lanesOf(x);
      if (lanes == 1) return wide(x, 1 << (1 + pick(4)));
      if (pick(2)) return c.make(Op::Lanes, {x}, {lanes / 2, lanes / 2});
      return lanes > 8 ? x : c.make(Op::Stack, {x, x});
    }
    default: {
      static const Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min};
      UOpRef x = value(open, t, depth - 1), y = value(open, t, depth - 1);
      if (pick(5) == 0) {
        int64_t lanes = std::max(lanesOf(x), lanesOf(y));
        x = match(x, lanes), y = match(y, lanes);
        return keep(open, c.make(Op::Select, {c.make(Op::Lt, {x, y}), y, x}));
      }
      return keep(open, combine(ops[pick(5)], x, y));
    }
    }
  }
  UOpRef match(UOpRef x, int64_t lanes) {
    while (lanesOf(x) < lanes && x->rank()) x = c.make(Op::Stack, {x, x});
    return wide(x, lanes);
  }
  UOpRef combine(Op op, UOpRef x, UOpRef y) {
    int64_t lanes = std::max(lanesOf(x), lanesOf(y));
    return c.make(op, {match(x, lanes), match(y, lanes)});
  }
  UOpRef keep(llvm::ArrayRef<UOpRef> open, UOpRef v) {
    if (lanesOf(v) <= 8) made.push_back({{open.begin(), open.end()}, v});
    return v;
  }

  Context &c;
  Builder b;
  UOpRef n;
  std::mt19937 random;
  int64_t axis = 0;
  std::vector<UOpRef> buffers;
  std::vector<std::pair<std::vector<UOpRef>, UOpRef>> made;
};

} // namespace astra::test
