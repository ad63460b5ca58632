//===- Expand.cpp: vector and unroll ranges become vectors and copies ------===//
// Takes:    a lowered kernel.
// Gives:    the same kernel with loops only: a node that depends on unroll ranges is copied for each of their points,
//           one that depends on a vector range becomes a vector.
// Keeps:    bits: splats, stacks and lanes move values, they compute nothing. Every lane does what the scalar did.
#include "Value.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Builder.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
RangeKind kindOf(UOpRef r) { return RangeKind(r->ints[1]); }

class Expansion {
public:
  explicit Expansion(Context &c) : c(c) {}

  UOpRef run(UOpRef sink) {
    for (UOpRef n : topoSort(sink)) expand(n);
    SmallVector<UOpRef, 8> all;
    for (UOpRef s : sink->src) llvm::append_range(all, done[s].copies);
    return c.make(Op::Sink, all);
  }

private:
  /// Copies of a node: one per point of the unroll ranges it depends on (row-major, ascending axis number), each a
  /// scalar or, when `lane` is set, a vector.
  struct Copies {
    SmallVector<UOpRef, 2> unroll; // ranges
    UOpRef lane = nullptr;         // the vector range it depends on
    SmallVector<UOpRef, 1> copies;
  };
  Context &c;
  llvm::DenseMap<UOpRef, Copies> done;
  llvm::DenseMap<UOpRef, UOpRef> vectorOf; // of an extent in which the lane is a symbol: its lanes' values

  int64_t extent(UOpRef r) { return *r->src[0]->constIndex(); }
  UOpRef boolean(bool b) { return c.literal(DType::Bool, b); }

  /// The copy of x for the point `at` of the ranges `of`.
  UOpRef pick(UOpRef x, ArrayRef<UOpRef> of, ArrayRef<int64_t> at) {
    const Copies &k = done.find(x)->second;
    size_t i = 0;
    for (UOpRef r : k.unroll) i = i * extent(r) + at[llvm::find(of, r) - of.begin()];
    return k.copies[i];
  }
  /// Point number i of the ranges, row-major.
  SmallVector<int64_t, 4> pointOf(ArrayRef<UOpRef> ranges, size_t i) {
    SmallVector<int64_t, 4> at(ranges.size());
    for (size_t j = ranges.size(); j-- > 0; i /= extent(ranges[j])) at[j] = i % extent(ranges[j]);
    return at;
  }
  UOpRef widen(UOpRef x, int64_t lanes) { return x->rank() || lanes == 1 ? x : c.make(Op::Splat, {x}, {lanes}); }

  /// x as begin + step * lane, when it is that.
  std::optional<std::pair<UOpRef, int64_t>> linear(UOpRef x, UOpRef lane) {
    if (!lane) return std::pair{x, int64_t(0)};
    int64_t step = 0;
    SmallVector<IndexTerm, 4> rest;
    for (const IndexTerm &t : terms(x)) {
      if (t.atoms.size() == 1 && t.atoms[0] == lane)
        step += t.coefficient;
      else if (llvm::any_of(t.atoms, [&](UOpRef a) { return dependsOnLane(a, lane); }))
        return std::nullopt;
      else
        rest.push_back(t);
    }
    return std::pair{fromTerms(c, rest), step};
  }
  /// The addresses of the lanes as places in a run of neighbours, each of which some lane reads: repeated (two elements
  /// that share a byte) or in another order (a flip).
  struct Neighbours {
    UOpRef first;
    int64_t count;
    SmallVector<int64_t, 16> offsets;
  };
  std::optional<Neighbours> neighbours(UOpRef at, UOpRef lane, int64_t lanes) {
    if (!lane) return std::nullopt;
    Neighbours n{atLane(at, lane, 0), 0, {0}};
    int64_t least = 0, most = 0;
    for (int64_t i = 1; i < lanes; ++i) {
      auto offset = simplifyIndex(c, idxSub(c, atLane(at, lane, i), n.first))->constIndex();
      if (!offset || *offset <= -lanes || *offset >= lanes) return std::nullopt;
      n.offsets.push_back(*offset);
      least = std::min(least, *offset), most = std::max(most, *offset);
    }
    n.count = most - least + 1;
    if (n.count > lanes || !llvm::isPowerOf2_64(n.count)) return std::nullopt;
    uint64_t seen = 0;
    for (int64_t &o : n.offsets) o -= least, seen |= uint64_t(1) << o;
    if (seen != llvm::maskTrailingOnes<uint64_t>(n.count)) return std::nullopt;
    n.first = simplifyIndex(c, idxAdd(c, n.first, c.index(least)));
    return n;
  }
  bool dependsOnLane(UOpRef x, UOpRef lane) { return llvm::is_contained(topoSort(x), lane); }
  UOpRef atLane(UOpRef x, UOpRef lane, int64_t l) {
    SmallVector<UOpRef, 4> from{lane}, to{c.index(l)};
    for (UOpRef n : vectorOf.empty() ? std::vector<UOpRef>() : topoSort(x))
      if (UOpRef vector = vectorOf.lookup(n)) {
        UOpRef own = vector->rank() ? c.make(Op::Lanes, {vector}, {l, 1}) : vector;
        from.push_back(n), to.push_back(c.make(Op::Extent, {own}, n->ints));
      }
    return simplifyIndex(c, idxSubstitute(c, x, from, to));
  }
  /// Whether lanes or copies are closed below a scalar.
  static bool closesCopies(UOpRef x) {
    return llvm::any_of(topoSort(x), [](UOpRef n) { return n->op == Op::Stage || n->op == Op::LaneFold; });
  }

  /// Whether d > 0 holds for all lanes or for none: it changes from lane to lane by one, and where it changes its sign
  /// a vector begins (the parts of a concatenation of whole vectors).
  bool sameForAll(UOpRef d, UOpRef lane, int64_t lanes) {
    auto l = linear(d, lane);
    if (!l || std::abs(l->second) != 1) return false;
    UOpRef edge = l->second < 0 ? l->first : simplifyIndex(c, idxSub(c, l->first, c.index(1)));
    return alignmentOf(edge) % lanes == 0;
  }

  void expand(UOpRef n);
  UOpRef one(UOpRef n, ArrayRef<UOpRef> src, UOpRef lane, int64_t lanes);
  UOpRef elementwise(UOpRef n, ArrayRef<UOpRef> src, int64_t lanes);
  UOpRef load(UOpRef n, ArrayRef<UOpRef> src, UOpRef lane, int64_t lanes);
  UOpRef stageRead(UOpRef n, ArrayRef<UOpRef> from, UOpRef lane, int64_t lanes);
  void store(UOpRef n, ArrayRef<UOpRef> src, UOpRef lane, int64_t lanes, Copies &out);
  UOpRef stack(ArrayRef<UOpRef> xs) { return xs.size() == 1 ? xs[0] : c.make(Op::Stack, xs); }
  void laneFold(UOpRef n, Copies &out);
  void foldOfSteps(UOpRef n, Copies &out);
  void stageOfCopies(UOpRef n, Copies &out);
  std::optional<size_t> across(UOpRef load, const Copies &out);
  SmallVector<UOpRef, 16> transpose(ArrayRef<UOpRef> rows);
  void square(UOpRef load, size_t along, Copies &out);
};

/// The unrolled range along which a load reads neighbours that its lanes do not.
std::optional<size_t> Expansion::across(UOpRef load, const Copies &out) {
  if (!out.lane) return std::nullopt;
  UOpRef at = load->src.back();
  if (auto l = linear(at, out.lane); l && l->second >= 0 && l->second <= 2) return std::nullopt;
  for (auto [i, r] : llvm::enumerate(out.unroll)) {
    auto l = linear(at, r);
    int64_t n = extent(r);
    bool gated = load->src.size() == 3 && llvm::is_contained(done[load->src[1]].unroll, r);
    if (l && l->second == 1 && !gated && llvm::isPowerOf2_64(n) && n >= std::min<int64_t>(4, extent(out.lane)))
      return i;
  }
  return std::nullopt;
}

/// Note [In-register transpose]
/// Of n vectors (the rows of a matrix) with fewer or as many elements, vector j is what elements j of all rows are.
/// Rows with s elements: first s vectors as wide as the result, number j of rows j, j + s, j + 2 s ... one behind
/// the other; then the squares of s by s in them are transposed, all at once: step d swaps, in each pair of vectors d
/// apart, what is above the diagonal of blocks of d by d with what is below it.
SmallVector<UOpRef, 16> Expansion::transpose(ArrayRef<UOpRef> rows) {
  size_t lanes = rows.size(), size = *rows[0]->shape[0]->constIndex();
  SmallVector<UOpRef, 16> x;
  for (size_t j = 0; j < size; ++j) {
    SmallVector<UOpRef, 16> parts;
    for (size_t i = j; i < lanes; i += size) parts.push_back(rows[i]);
    for (; parts.size() > 1; parts.truncate(parts.size() / 2))
      for (size_t i = 0; i < parts.size() / 2; ++i) parts[i] = stack({parts[2 * i], parts[2 * i + 1]});
    x.push_back(parts[0]);
  }
  for (size_t d = 1; d < size; d *= 2)
    for (size_t i = 0; i < size; ++i) {
      if (i & d) continue;
      SmallVector<UOpRef, 16> low, high;
      for (size_t l = 0; l < lanes; l += 2 * d)
        for (size_t v : {i, i + d}) {
          low.push_back(c.make(Op::Lanes, {x[v]}, {int64_t(l), int64_t(d)}));
          high.push_back(c.make(Op::Lanes, {x[v]}, {int64_t(l + d), int64_t(d)}));
        }
      x[i] = stack(low), x[i + d] = stack(high);
    }
  return x;
}

/// A load whose neighbours lie along unrolled range number `along`: vectors along that range, one for each lane, each
/// where the lane's gate is true, transposed.
void Expansion::square(UOpRef load, size_t along, Copies &out) {
  int64_t lanes = extent(out.lane), n = extent(out.unroll[along]), size = std::min(n, lanes);
  size_t apart = 1, total = n; // copies that are neighbours along the range; all
  for (size_t j = 0; j < out.unroll.size(); ++j) {
    if (j != along) total *= extent(out.unroll[j]);
    if (j > along) apart *= extent(out.unroll[j]);
  }
  out.copies.resize(total);
  for (size_t i = 0; i < total; ++i) {
    auto at = pointOf(out.unroll, i);
    if (at[along] % size) continue;
    SmallVector<UOpRef, 3> src;
    for (UOpRef s : load->src) src.push_back(pick(s, out.unroll, at));
    UOpRef gate = src.size() == 3 ? src[1] : nullptr;
    if (gate && gate->isConst() && gate->ints[0]) gate = nullptr;
    SmallVector<UOpRef, 16> rows;
    for (int64_t l = 0; l < lanes; ++l) {
      UOpRef begin = atLane(src.back(), out.lane, l);
      UOpRef open = gate && gate->rank() ? c.make(Op::Lanes, {gate}, {l, 1}) : gate;
      rows.push_back(open ? c.make(Op::Load, {src[0], widen(open, size), begin}, {size})
                          : c.make(Op::Load, {src[0], begin}, {size}));
    }
    for (auto [j, x] : llvm::enumerate(transpose(rows))) out.copies[i + j * apart] = x;
  }
}

UOpRef Expansion::elementwise(UOpRef n, ArrayRef<UOpRef> src, int64_t lanes) {
  // What gates and tails leave behind; each of these is exact.
  auto truth = [](UOpRef x) -> std::optional<bool> {
    if (x->op == Op::Splat) x = x->src[0];
    return x->isConst() && x->dtype == DType::Bool ? std::optional<bool>(x->ints[0]) : std::nullopt;
  };
  if (n->op == Op::Select)
    if (auto t = truth(src[0])) return widen(src[*t ? 1 : 2], lanes);
  if (n->op == Op::And && n->dtype == DType::Bool)
    for (unsigned i : {0u, 1u})
      if (auto t = truth(src[i])) return *t ? src[1 - i] : boolean(false);
  if (n->op == Op::Add && isFloat(n->dtype)) // x + -0.0 is x
    for (unsigned i : {0u, 1u}) {
      UOpRef x = src[i]->op == Op::Splat ? src[i]->src[0] : src[i];
      if (x->isConst() && uint64_t(x->ints[0]) == 1ull << (bitWidth(n->dtype) - 1)) return src[1 - i];
    }
  bool vector = llvm::any_of(src, [](UOpRef s) { return s->rank() != 0; });
  SmallVector<UOpRef, 3> wide;
  for (UOpRef s : src) wide.push_back(vector ? widen(s, lanes) : s);
  return c.make(n->op, wide, n->ints, n->str, n->dtype);
}

UOpRef Expansion::load(UOpRef n, ArrayRef<UOpRef> src, UOpRef lane, int64_t lanes) {
  UOpRef gate = src.size() == 3 ? src[1] : nullptr, at = src.back();
  if (gate && gate->isConst()) {
    if (!gate->ints[0]) return c.literal(n->dtype, 0);
    gate = nullptr;
  }
  auto make = [&](UOpRef g, UOpRef index, int64_t count) {
    return g ? c.make(Op::Load, {src[0], widen(g, count), index}, {count}) : c.make(Op::Load, {src[0], index}, {count});
  };
  auto l = linear(at, lane);
  if (l && l->second == 0 && !(gate && gate->rank())) return make(gate, at, 1);
  if (l && l->second == 1) return make(gate, l->first, lanes);
  SmallVector<UOpRef, 16> each;
  if (l && l->second == 2) {          // every other element of two vectors, the last one at the end
    auto taken = [&](int64_t first) { // the gate of the vector from element `first` on, of those that are a lane's
      if (!gate || !gate->rank()) return gate;
      SmallVector<UOpRef, 16> bits;
      for (int64_t e = first; e < first + lanes; ++e)
        bits.push_back(e % 2 ? boolean(false) : c.make(Op::Lanes, {gate}, {e / 2, 1}));
      return stack(bits);
    };
    UOpRef low = make(taken(0), l->first, lanes),
           high = make(taken(lanes - 1), idxAdd(c, l->first, c.index(lanes - 1)), lanes);
    for (int64_t e = 0; e < 2 * lanes; e += 2)
      each.push_back(c.make(Op::Lanes, {e < lanes ? low : high}, {e < lanes ? e : e + 1 - lanes, 1}));
    return stack(each);
  }
  if (!gate || !gate->rank())
    if (auto near = neighbours(at, lane, lanes)) {
      UOpRef all = make(gate, near->first, near->count);
      for (int64_t o : near->offsets) each.push_back(near->count == 1 ? all : c.make(Op::Lanes, {all}, {o, 1}));
      return stack(each);
    }
  for (int64_t i = 0; i < lanes; ++i) // gathered lane by lane
    each.push_back(
        make(gate && gate->rank() ? c.make(Op::Lanes, {gate}, {i, 1}) : gate, lane ? atLane(at, lane, i) : at, 1));
  return stack(each);
}

/// n: the read before, `from`: its sources now.
UOpRef Expansion::stageRead(UOpRef n, ArrayRef<UOpRef> from, UOpRef lane, int64_t lanes) {
  SmallVector<UOpRef, 4> src(from);
  UOpRef gate = nullptr; // kept apart from what counts indices
  if (n->ntensors == 2) {
    gate = src[1];
    src.erase(src.begin() + 1);
    if (gate->isConst() && !gate->ints[0]) return c.literal(n->dtype, 0);
    if (gate->isConst()) gate = nullptr;
  }
  auto make = [&](ArrayRef<UOpRef> at, UOpRef when, int64_t count) {
    SmallVector<UOpRef, 5> all(at);
    if (when) all.insert(all.begin() + 1, widen(when, count));
    return c.make(Op::At, all, {count});
  };
  size_t left = src[0]->indices().size();
  bool closed = src.size() - 1 > left; // copies and lanes: the last index counts elements
  if (closed) {
    UOpRef last = src[left];
    for (auto [r, i] : llvm::zip_equal(n->src[0]->indices().drop_front(left), ArrayRef(src).drop_front(left + 1)))
      last = idxAdd(c, idxMul(c, last, r->src[0]), i);
    src.truncate(left + 1);
    src.back() = simplifyIndex(c, last);
  }
  auto l = linear(src.back(), lane);
  bool outer =
      lane && llvm::any_of(ArrayRef(src).drop_front().drop_back(), [&](UOpRef i) { return dependsOnLane(i, lane); });
  if (src[0]->rank() && !closed &&
      src[0]->ntensors == 1) { // each point of the stage is a vector: its elements follow each other
    SmallVector<UOpRef, 4> at(src.begin(), src.end());
    at.back() = idxMul(c, at.back(), c.index(lanes));
    return make(at, gate, lanes);
  }
  bool oneGate = !gate || !gate->rank();
  if (!outer && l && l->second == 0 && oneGate) return make(src, gate, 1);
  if (!outer && l && l->second == 1) {
    SmallVector<UOpRef, 4> at(src.begin(), src.end());
    at.back() = l->first;
    return make(at, gate, lanes);
  }
  SmallVector<UOpRef, 16> each;
  for (int64_t i = 0; i < lanes; ++i) {
    SmallVector<UOpRef, 4> at{src[0]};
    for (UOpRef x : ArrayRef(src).drop_front()) at.push_back(atLane(x, lane, i));
    each.push_back(make(at, oneGate ? gate : c.make(Op::Lanes, {gate}, {i, 1}), 1));
  }
  return stack(each);
}

void Expansion::store(UOpRef n, ArrayRef<UOpRef> src, UOpRef lane, int64_t lanes, Copies &out) {
  UOpRef gate = n->ntensors == 3 ? src[2] : nullptr, at = src[n->ntensors];
  ArrayRef<UOpRef> around = src.drop_front(n->ntensors + 1);
  if (gate && gate->isConst() && gate->ints[0]) gate = nullptr;
  auto make = [&](UOpRef value, UOpRef g, UOpRef index, int64_t count) {
    SmallVector<UOpRef, 6> parts{src[0], value};
    if (g) parts.push_back(widen(g, count));
    parts.push_back(index);
    parts.append(around.begin(), around.end());
    out.copies.push_back(c.make(Op::Store, parts, {count}));
  };
  if (!lane) return make(src[1], gate, at, 1);
  auto l = linear(at, lane);
  if (l && l->second == 1) return make(widen(src[1], lanes), gate, l->first, lanes);
  // Scattered lane by lane.
  auto laneOf = [&](UOpRef x, int64_t i) { return x && x->rank() ? c.make(Op::Lanes, {x}, {i, 1}) : x; };
  for (int64_t i = 0; i < lanes; ++i) make(laneOf(src[1], i), laneOf(gate, i), atLane(at, lane, i), 1);
}

UOpRef Expansion::one(UOpRef n, ArrayRef<UOpRef> src, UOpRef lane, int64_t lanes) {
  switch (n->op) {
  case Op::Load: return load(n, src, lane, lanes);
  case Op::At: return stageRead(n, src, lane, lanes);
  case Op::FromIndex: {
    auto l = linear(src[0], lane);
    auto scalar = [&](UOpRef i) { return c.make(Op::FromIndex, {i}, {}, {}, n->dtype); };
    if (l && l->second == 0) return scalar(src[0]);
    if (!isInt(n->dtype)) { // through i64: an index is exact there, and the conversion rounds once
      UOpRef wide = c.make(Op::FromIndex, {src[0]}, {}, {}, DType::I64);
      return c.make(Op::Cast, {one(wide, src, lane, lanes)}, {0}, {}, n->dtype);
    }
    SmallVector<UOpRef, 16> each;
    if (!l) {
      for (int64_t i = 0; i < lanes; ++i) each.push_back(scalar(atLane(src[0], lane, i)));
      return stack(each);
    }
    Builder b(c);
    for (int64_t i = 0; i < lanes; ++i) each.push_back(b.litInt(n->dtype, i * l->second));
    return c.make(Op::Add, {widen(scalar(l->first), lanes), stack(each)});
  }
  case Op::Fold:
  case Op::Running: {
    bool vector = llvm::any_of(ArrayRef(src).take_front(n->ntensors), [](UOpRef s) { return s->rank() != 0; });
    SmallVector<UOpRef, 8> wide;
    for (UOpRef s : src) wide.push_back(vector && !s->isIndex() ? widen(s, lanes) : s);
    return c.make(n->op, wide, n->ints);
  }
  case Op::Stage: {
    if (!lane || !llvm::is_contained(n->indices(), lane)) break;
    assert(n->indices().back() == lane && "lanes are a stage's last range");
    SmallVector<UOpRef, 4> vectors(src.drop_back());
    vectors[0] = widen(vectors[0], lanes);
    SmallVector<int64_t, 6> strides(n->ints); // the last index will count elements
    if (strides.size() > 1) strides.erase(strides.end() - 2);
    return c.make(Op::Stage, vectors, strides);
  }
  default: break;
  }
  if (n->isIndex()) return simplifyIndex(c, c.withSources(n, src));
  if (has(n->op, Elementwise)) {
    if (n->ntensors == 0) { // a comparison of symbolic integers
      UOpRef d = simplifyIndex(c, idxSub(c, src[1], src[0]));
      if (n->op == Op::Lt && d->lo > 0) return boolean(true);
      if (n->op == Op::Lt && d->hi <= 0) return boolean(false);
      if (!lane || (linear(src[0], lane) && linear(src[0], lane)->second == 0 && linear(src[1], lane) &&
                    linear(src[1], lane)->second == 0))
        return c.make(n->op, src);
      if (n->op == Op::Lt && sameForAll(d, lane, lanes))
        return c.make(n->op, {atLane(src[0], lane, 0), atLane(src[1], lane, 0)});
      // In 32 bits where they suffice: half of the vectors, and masks as wide as floats.
      bool small = llvm::all_of(src, [](UOpRef s) { return s->lo >= INT32_MIN && s->hi <= INT32_MAX; });
      SmallVector<UOpRef, 2> wide;
      for (UOpRef s : src) {
        UOpRef f = c.make(Op::FromIndex, {s}, {}, {}, small ? DType::I32 : DType::I64);
        wide.push_back(widen(one(f, {s}, lane, lanes), lanes));
      }
      return c.make(n->op, wide);
    }
    return elementwise(n, src, lanes);
  }
  return c.withSources(n, src);
}

/// A stage that closes unrolled ranges: a point has the values of all of their points, one behind the other.
void Expansion::stageOfCopies(UOpRef n, Copies &out) {
  SmallVector<UOpRef, 2> closed, ranges;
  UOpRef lane = out.lane && llvm::is_contained(n->indices(), out.lane) ? out.lane : nullptr;
  for (UOpRef r : n->indices())
    if (r != lane) (kindOf(r) == RangeKind::Unroll ? closed : ranges).push_back(r);
  llvm::erase_if(out.unroll, [&](UOpRef r) { return llvm::is_contained(closed, r); });
  SmallVector<UOpRef, 4> of(out.unroll.begin(), out.unroll.end());
  of.append(closed.begin(), closed.end());
  size_t total = 1, each = 1;
  for (UOpRef r : out.unroll) total *= extent(r);
  for (UOpRef r : closed) each *= extent(r);
  for (size_t i = 0; i < total; ++i) {
    SmallVector<UOpRef, 20> src;
    for (size_t k = 0; k < each; ++k) {
      UOpRef x = pick(n->src[0], of, pointOf(of, i * each + k));
      src.push_back(lane ? widen(x, extent(lane)) : x);
    }
    for (UOpRef r : ranges) src.push_back(pick(r, of, pointOf(of, i * each)));
    out.copies.push_back(c.make(Op::Stage, src));
  }
  if (lane) out.lane = nullptr;
}

/// A fold that closes unrolled ranges, its innermost: the values of their points are those of one step.
void Expansion::foldOfSteps(UOpRef n, Copies &out) {
  SmallVector<UOpRef, 2> closed, ranges;
  for (UOpRef r : n->indices()) (kindOf(r) == RangeKind::Unroll ? closed : ranges).push_back(r);
  llvm::erase_if(out.unroll, [&](UOpRef r) { return llvm::is_contained(closed, r); });
  SmallVector<UOpRef, 4> of(out.unroll.begin(), out.unroll.end());
  of.append(closed.begin(), closed.end());
  size_t total = 1, steps = 1;
  for (UOpRef r : out.unroll) total *= extent(r);
  for (UOpRef r : closed) steps *= extent(r);
  int64_t lanes = out.lane ? extent(out.lane) : 1;
  for (size_t i = 0; i < total; ++i) {
    SmallVector<UOpRef, 20> src{pick(n->src[0], of, pointOf(of, i * steps))};
    for (size_t s = 0; s < steps; ++s)
      for (UOpRef x : n->tensors().drop_front()) src.push_back(pick(x, of, pointOf(of, i * steps + s)));
    bool vector = llvm::any_of(src, [](UOpRef s) { return s->rank() != 0; });
    for (UOpRef &s : src) s = vector ? widen(s, lanes) : s;
    src.append(ranges.begin(), ranges.end());
    out.copies.push_back(c.make(Op::Fold, src, {n->ints[0], int64_t(n->ints[1] * steps)}));
  }
}

void Expansion::laneFold(UOpRef n, Copies &out) {
  UOpRef x = n->src[0];
  const Copies in = done[x];
  UOpRef lane = nullptr, thread = nullptr;
  SmallVector<UOpRef, 2> steps; // the others, outermost first
  for (UOpRef r : n->indices())
    if (kindOf(r) == RangeKind::Vector)
      lane = r;
    else if (kindOf(r) == RangeKind::Thread)
      thread = r; // before a vector's own lanes: an exchange between threads, which is the machine's
    else
      steps.push_back(r);
  for (UOpRef r : in.unroll)
    if (!llvm::is_contained(steps, r)) out.unroll.push_back(r);
  out.lane = in.lane == lane ? nullptr : in.lane;
  static const Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  Op op = ops[n->ints[0]];
  int64_t w = lane ? extent(lane) : 1, u = 1, lanesOut = out.lane ? extent(out.lane) : 1;
  for (UOpRef r : steps) u *= extent(r);
  UOpRef shapeOf = c.make(op, {x, x}); // a template of the combination
  auto combine = [&](UOpRef a, UOpRef b) { return elementwise(shapeOf, {a, b}, std::max(w, lanesOut)); };
  size_t total = 1, kept = out.unroll.size();
  for (UOpRef r : out.unroll) total *= extent(r);
  SmallVector<UOpRef, 4> of(out.unroll.begin(), out.unroll.end());
  of.append(steps.begin(), steps.end());
  SmallVector<int64_t, 4> at(of.size());
  for (size_t i = 0; i < total; ++i) {
    size_t k = i;
    for (size_t j = kept; j-- > 0; k /= extent(of[j])) at[j] = k % extent(of[j]);
    SmallVector<UOpRef, 64> l;
    for (int64_t s = 0; s < u; ++s) {
      int64_t rest = s;
      for (size_t j = of.size(); j-- > kept; rest /= extent(of[j])) at[j] = rest % extent(of[j]);
      UOpRef v = pick(x, of, at);
      l.push_back(lane ? widen(v, w) : v);
    }
    for (; l.size() > 1; l.resize(l.size() / 2))
      for (size_t s = 0; s < l.size() / 2; ++s) l[s] = combine(l[s], l[s + l.size() / 2]);
    UOpRef v = l[0];
    if (thread) v = c.make(Op::LaneFold, {v, thread}, n->ints);
    for (int64_t s = w / 2; s >= 1; s /= 2) {
      UOpRef lo = c.make(Op::Lanes, {v}, {0, s}), hi = c.make(Op::Lanes, {v}, {s, s});
      v = c.make(op, {lo, hi});
    }
    out.copies.push_back(v);
  }
}

void Expansion::expand(UOpRef n) {
  Copies out;
  if (n->op == Op::Sink) return;
  if (n->op == Op::LaneFold) {
    laneFold(n, out);
    done[n] = std::move(out);
    return;
  }
  if (n->op == Op::Range && kindOf(n) == RangeKind::Unroll) {
    out.unroll = {n};
    for (int64_t i = 0; i < extent(n); ++i) out.copies.push_back(c.index(i));
    done[n] = std::move(out);
    return;
  }
  if (n->op == Op::Range && kindOf(n) == RangeKind::Vector) {
    out.lane = n;
    out.copies = {n};
    done[n] = std::move(out);
    return;
  }
  for (UOpRef s : n->src) {
    const Copies &k = done[s];
    for (UOpRef r : k.unroll)
      if (!llvm::is_contained(out.unroll, r)) out.unroll.push_back(r);
    if (k.lane) {
      assert((!out.lane || out.lane == k.lane) && "one vector range a value");
      out.lane = k.lane;
    }
  }
  // Ranges and buffers stay the nodes that they are: the scalar trees below extents hold them too.
  if (n->op == Op::Buffer || (n->op == Op::Range && out.unroll.empty() && !out.lane)) {
    out.copies = {n};
    done[n] = std::move(out);
    return;
  }
  llvm::sort(out.unroll, [](UOpRef a, UOpRef b) { return a->ints[0] < b->ints[0]; });
  if (n->op == Op::Load)
    if (auto along = across(n, out)) {
      square(n, *along, out);
      done[n] = std::move(out);
      return;
    }
  bool closesUnrolled = (n->op == Op::Fold || n->op == Op::Stage) &&
                        llvm::any_of(n->indices(), [](UOpRef r) { return kindOf(r) == RangeKind::Unroll; });
  if (closesUnrolled) {
    n->op == Op::Fold ? foldOfSteps(n, out) : stageOfCopies(n, out);
    done[n] = std::move(out);
    return;
  }
  size_t total = 1;
  for (UOpRef r : out.unroll) total *= extent(r);
  int64_t lanes = out.lane ? extent(out.lane) : 1;
  for (size_t i = 0; i < total; ++i) {
    auto at = pointOf(out.unroll, i);
    if (n->op == Op::Extent && out.lane) { // stays a scalar tree in which the lane is a symbol
      SmallVector<UOpRef, 4> values;
      for (int64_t v : at) values.push_back(c.index(v));
      out.copies.push_back(idxSubstitute(c, n, out.unroll, values));
      if (closesCopies(n->src[0])) vectorOf[out.copies.back()] = pick(n->src[0], out.unroll, at);
      continue;
    }
    SmallVector<UOpRef, 4> src;
    for (UOpRef s : n->src) src.push_back(pick(s, out.unroll, at));
    if (n->op == Op::Store)
      store(n, src, out.lane, lanes, out);
    else
      out.copies.push_back(one(n, src, out.lane, lanes));
  }
  if (n->op == Op::Stage && llvm::is_contained(n->indices(), out.lane)) out.lane = nullptr; // closed
  done[n] = std::move(out);
}
} // namespace

Kernel astra::expandKernel(Context &c, const Kernel &k) {
  Kernel out = k;
  out.sink = Expansion(c).run(k.sink);
  return out;
}
