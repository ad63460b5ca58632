//===- Corners.cpp: values of dims where kernels are likely to go wrong ----===//
// Tile edges are the numbers in the plans of the target's kernels, products of two of them that stand side by side
// (vector 8; unroll 2), and the constants of the manifest's expressions: item counts, guards of variants.
#include "Corners.h"

#include "src/DType.h"
#include <algorithm>
#include <cctype>
#include <set>

using namespace astra::guard;
using namespace astra::rt;

namespace {

constexpr int64_t kMostEdge = 512;

void addEdge(std::set<int64_t> &edges, int64_t edge) {
  if (edge > 1 && edge <= kMostEdge) edges.insert(edge);
}

std::set<int64_t> edgesOf(const fmt::Manifest &m, uint32_t target) {
  std::set<int64_t> edges;
  for (const fmt::Kernel *k : *m.kernels()) {
    const fmt::KernelCode *code = k->code()->Get(target);
    if (!code->plan()) continue;
    int64_t before = 0;
    for (const char *p = code->plan()->c_str(); *p;) {
      if (!isdigit(*p)) {
        p++;
        continue;
      }
      int64_t number = 0;
      for (; isdigit(*p); p++) number = std::min<int64_t>(number * 10 + (*p - '0'), 1 << 20);
      addEdge(edges, number), addEdge(edges, number * before);
      before = number;
    }
  }
  for (const fmt::Expr *e : *m.exprs()) {
    bool hasDim = false;
    for (const fmt::ExprOp *op : *e->code()) hasDim |= op->code() == fmt::ExprCode::Dim;
    for (const fmt::ExprOp *op : *e->code())
      if (hasDim && op->code() == fmt::ExprCode::Const) addEdge(edges, op->value());
  }
  return edges;
}

struct Maker {
  const fmt::Manifest &m;
  const fmt::Entry &e;
  uint32_t target;
  const CornerOptions &options;
  Corners result;
  uint64_t total = 0;
  std::vector<uint32_t> mine; ///< dims that the caller gives
  Dims highest;

  bool value(uint32_t expr, const Dims &dims, int64_t &out) { return !evaluate(m, expr, dims.data(), out, nullptr); }

  /// What a call costs; false where it is too much or where its sizes leave 64 bits.
  bool fits(const Dims &dims, uint64_t &cost) {
    uint64_t bytes = 0;
    for (const auto *list : {e.inputs(), e.outputs()})
      for (const fmt::Tensor *t : *list) {
        const auto *shape = t->bound() && t->bound()->size() ? t->bound() : t->shape();
        int64_t extents[ASTRA_MAX_RANK];
        uint32_t rank = shape ? shape->size() : 0;
        uint64_t size;
        for (uint32_t i = 0; i < rank; i++)
          if (!value(shape->Get(i), dims, extents[i])) return false;
        if (!denseBytes(*dtypeOf(int32_t(t->dtype())), extents, rank, size)) return false;
        bytes += size;
      }
    for (uint32_t slot : *e.routine()->slots()) {
      int64_t size;
      if (!value(slot, dims, size)) return false;
      bytes += uint64_t(size);
    }
    cost = bytes;
    for (const fmt::Program *p : *e.routine()->programs())
      for (uint32_t i = 0; i < p->code()->size(); i++) {
        if (p->code_type()->GetEnum<fmt::Instr>(i) != fmt::Instr::Launch) continue;
        const fmt::Kernel *k = m.kernels()->Get(p->code()->GetAs<fmt::Launch>(i)->variants()->Get(0)->kernel());
        int64_t most = 0, x;
        for (uint32_t number : {k->steps(), k->bytes()})
          if (number != kNone && value(number, dims, x)) most = std::max(most, x);
        cost += uint64_t(most);
      }
    return bytes <= options.mostBytes && cost <= options.mostCost;
  }

  bool keepsEquations(const Dims &dims) {
    for (uint32_t q : *e.equations()) {
      int64_t a, b;
      const fmt::Equation *equation = m.equations()->Get(q);
      if (!value(equation->lhs(), dims, a) || !value(equation->rhs(), dims, b) || a != b) return false;
    }
    for (uint32_t d : mine)
      if (checkDim(m, d, dims[d], dims.data(), ASTRA_OUT_OF_BOUNDS, nullptr)) return false;
    return true;
  }

  /// Adds it if it is new and small enough.
  void add(const Dims &dims) {
    uint64_t cost;
    if (result.dims.size() >= options.most || !keepsEquations(dims) ||
        std::find(result.dims.begin(), result.dims.end(), dims) != result.dims.end())
      return;
    if (!fits(dims, cost) || (result.dims.size() >= 3 && total + cost > options.totalCost)) {
      result.tooLarge++;
      return;
    }
    total += cost;
    result.dims.push_back(dims);
  }

  /// The largest extents that are small enough: the largest value is halved until the call is.
  Dims largest(Dims dims) {
    uint64_t cost;
    while (!fits(dims, cost)) {
      uint32_t most = mine[0];
      for (uint32_t d : mine)
        if (dims[d] - m.dims()->Get(d)->lo() > dims[most] - m.dims()->Get(most)->lo()) most = d;
      int64_t lo = m.dims()->Get(most)->lo();
      if (dims[most] == lo) return dims;
      dims[most] = std::max(lo, dims[most] / 2);
    }
    return dims;
  }

  std::vector<int64_t> valuesOf(uint32_t d, const std::set<int64_t> &edges) {
    int64_t lo = m.dims()->Get(d)->lo(), hi = highest[d];
    std::set<int64_t> values{lo, hi};
    if (hi > lo) values.insert(lo + 1);
    for (int64_t edge : edges)
      for (int64_t v : {edge - 1, edge, edge + 1})
        if (v >= lo && v <= hi) values.insert(v);
    for (int64_t v = lo; hi - lo < 8 && v <= hi; v++) values.insert(v);
    return {values.begin(), values.end()};
  }

  void run() {
    std::set<uint32_t> given;
    for (const fmt::DimBind *b : *e.binds()) given.insert(b->dim());
    if (e.multiples())
      for (const fmt::DimMultiple *b : *e.multiples()) given.insert(b->dim());
    for (uint32_t d : *e.host_dims()) given.insert(d);
    Dims lowest(m.dims()->size());
    for (uint32_t d = 0; d < lowest.size(); d++) {
      lowest[d] = m.dims()->Get(d)->lo();
      if (m.dims()->Get(d)->source() == fmt::DimSource::Session) given.insert(d);
    }
    mine.assign(given.begin(), given.end());
    if (mine.empty()) return add(lowest);
    Dims next = lowest, top = lowest;
    for (uint32_t d : mine) {
      top[d] = m.dims()->Get(d)->hi();
      next[d] = std::min(lowest[d] + 1, top[d]);
    }
    // Of each dim the highest value that is small enough beside low values of the others.
    highest = lowest;
    for (uint32_t d : mine) {
      Dims alone = next;
      alone[d] = top[d];
      uint64_t cost;
      while (alone[d] > lowest[d] && !fits(alone, cost)) alone[d] = std::max(lowest[d], alone[d] / 2);
      highest[d] = alone[d];
    }
    add(lowest), add(next), add(largest(top));
    std::set<int64_t> edges = edgesOf(m, target);
    std::vector<std::vector<int64_t>> values;
    size_t most = 0;
    for (uint32_t d : mine) {
      values.push_back(valuesOf(d, edges));
      most = std::max(most, values.back().size());
    }
    // Each value of each dim once, beside another value of each of the others; fewer, evenly, if there are too many.
    size_t rounds = std::min<size_t>(most, options.most);
    for (size_t r = 0; r < rounds; r++) {
      size_t at = r * most / rounds;
      Dims dims = lowest;
      for (size_t i = 0; i < mine.size(); i++) dims[mine[i]] = values[i][(at + i * 5) % values[i].size()];
      uint64_t cost;
      if (mine.size() > 1 && !fits(dims, cost)) // alone
        for (size_t i = 0; i < mine.size(); i++) {
          Dims alone = next;
          alone[mine[i]] = dims[mine[i]];
          add(alone);
        }
      else
        add(dims);
    }
    // Equations may refuse all of these: some that they do not refuse, of all combinations of values, up to a bound.
    std::vector<size_t> at(mine.size());
    for (int tried = 0; e.equations()->size() && result.dims.size() < 6 && tried < 20000; tried++) {
      Dims dims = lowest;
      for (size_t i = 0; i < mine.size(); i++) dims[mine[i]] = values[i][at[i]];
      add(dims);
      size_t i = 0;
      while (i < at.size() && ++at[i] == values[i].size()) at[i++] = 0;
      if (i == at.size()) break;
    }
  }
};

} // namespace

Corners astra::guard::cornersOf(const fmt::Manifest &m, const fmt::Entry &e, uint32_t target,
                                const CornerOptions &options) {
  Maker maker{m, e, target, options, {}, 0, {}, {}};
  maker.run();
  return std::move(maker.result);
}
