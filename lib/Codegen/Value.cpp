//===- Value.cpp: graph values at an index, as kernel UOps -----------------===//
#include "Value.h"
#include "astra/IR/Builder.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

bool astra::dependsOn(UOpRef x, UOpRef on) { return llvm::is_contained(topoSort(x), on); }

UOpRef astra::withIndices(Context &c, UOpRef root, ArrayRef<UOpRef> from, ArrayRef<UOpRef> to) {
  return withIndices(c, ArrayRef(root), from, to).lookup(root);
}

llvm::DenseMap<UOpRef, UOpRef> astra::withIndices(Context &c, ArrayRef<UOpRef> roots, ArrayRef<UOpRef> from,
                                                  ArrayRef<UOpRef> to) {
  SmallVector<UOpRef, 6> old(from), fresh(to); // ranges whose extents change join them
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort(roots)) {
    SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(now[s]);
    UOpRef &to = now[n];
    if (n->isIndex() && n->op != Op::Range && n->op != Op::Extent) {
      to = idxSubstitute(c, n, old, fresh);
      continue;
    }
    auto given = llvm::find(old, n);
    to = given == old.end() ? c.withSources(n, src) : fresh[given - old.begin()];
    if (n->isIndex() && given == old.end() && to != n) old.push_back(n), fresh.push_back(to);
  }
  return now;
}

ValueAt::ValueAt(Context &c, const KernelSpec &spec, const RowTile *tile) : c(c), spec(spec) {
  auto add = [&](const Placed &p, bool write) {
    UOpRef n = elementCount(c, p.layout, p.allocated);
    if (tile && llvm::is_contained(tile->local, buffers.size())) {
      SmallVector<UOpRef, 6> first(tile->at.begin(), tile->at.end());
      first.push_back(c.index(0));
      begins[buffers.size()] = address(c, p.layout, p.allocated, first);
      n = idxMul(c, c.index(tile->most), p.allocated.back());
    }
    slotOf.try_emplace(p.value, buffers.size());
    bufferNodes.push_back(c.make(Op::Buffer, {n}, {int64_t(buffers.size())}, {}, p.value->dtype));
    buffers.push_back({p.value->dtype, !write, write, n});
  };
  for (const Placed &p : spec.inputs) add(p, false);
  if (spec.inPlace)
    buffers[0].write = true;
  else
    for (const Placed &p : spec.outputs) add(p, true);
  for (const Placed &p : spec.outputs) slotOf.erase(p.value); // computed here, not loaded
  if (spec.inPlace) slotOf[spec.inputs[0].value] = 0;
}

UOpRef ValueAt::range(UOpRef extent, RangeKind kind) {
  UOpRef r = c.make(Op::Range, {extent}, {nextAxis++, int64_t(kind)});
  if (kind == RangeKind::Parallel) around = {r};
  if (kind == RangeKind::Loop) around.push_back(r);
  return r;
}

UOpRef ValueAt::digit(int64_t extent, int64_t stride) {
  if (extent == 1) return c.index(0);
  return c.make(Op::Range, {c.index(extent)}, {nextAxis++, int64_t(RangeKind::Thread), stride});
}

/// Whether d > 0 in all lanes that the mask takes: e < n there, and d is a multiple of e and what no lane changes.
bool ValueAt::positiveWhereTaken(UOpRef d) {
  if (!mask || mask->op != Op::Lt || !mask->src[0]->isIndex()) return false;
  UOpRef e = mask->src[0], n = mask->src[1];
  int64_t k = 0;
  for (const IndexTerm &t : terms(d))
    if (t.atoms.size() == 1 && t.atoms[0] == masked) k = t.coefficient;
  if (!k) return false;
  UOpRef rest = simplifyIndex(c, idxSub(c, d, idxMul(c, e, c.index(k))));
  UOpRef least = k < 0 ? idxSub(c, n, c.index(1)) : c.index(e->lo);
  return !dependsOn(rest, masked) && simplifyIndex(c, idxAdd(c, rest, idxMul(c, least, c.index(k))))->lo > 0;
}

UOpRef ValueAt::lt(UOpRef a, UOpRef b) {
  UOpRef d = simplifyIndex(c, idxSub(c, b, a)); // a < b when d > 0
  if (d->lo > 0 || positiveWhereTaken(d)) return nullptr;
  if (d->hi <= 0) return c.literal(DType::Bool, 0);
  return c.make(Op::Lt, {simplifyIndex(c, a), simplifyIndex(c, b)});
}
UOpRef ValueAt::both(UOpRef a, UOpRef b) { return !a ? b : !b || a == b ? a : c.make(Op::And, {a, b}); }

/// Whether a value is read under a gate that has all that a condition says: it is 0 where the condition does not hold.
static bool isZeroWithout(UOpRef x, UOpRef valid) {
  if ((x->op != Op::Load && x->op != Op::At) || x->ntensors < 2) return false;
  llvm::DenseSet<UOpRef> has;
  SmallVector<UOpRef, 4> open{x->src[1]};
  auto parts = [&](UOpRef g) { return g->op == Op::And ? ArrayRef<UOpRef>(g->src) : ArrayRef<UOpRef>(); };
  while (!open.empty()) {
    UOpRef g = open.pop_back_val();
    has.insert(g);
    open.append(parts(g).begin(), parts(g).end());
  }
  for (open.push_back(valid); !open.empty();) {
    UOpRef g = open.pop_back_val();
    if (has.contains(g)) continue;
    if (g->op != Op::And) return false;
    open.append(parts(g).begin(), parts(g).end());
  }
  return true;
}

UOpRef ValueAt::select(UOpRef valid, UOpRef x, UOpRef otherwise) {
  if (!valid) return x;
  if (valid->isConst()) return valid->ints[0] ? x : otherwise;
  if (otherwise->isConst() && !otherwise->ints[0] && isZeroWithout(x, valid)) return x;
  return x == otherwise ? x : c.make(Op::Select, {valid, x, otherwise});
}

/// Whether the lanes beyond the last column still lie inside: the column itself runs along the axis that is in panels.
bool ValueAt::padded(const Layout &l, ArrayRef<UOpRef> index) const {
  if (l.isPermuted() || l.isStrided()) return false;
  for (size_t axis = 0; axis < index.size(); ++axis)
    if (dependsOn(index[axis], masked) && (int64_t(axis) != l.dims.back().axis || index[axis] != column)) return false;
  return true;
}

UOpRef ValueAt::addressIn(unsigned slot, ArrayRef<UOpRef> index) const {
  const Placed &p = slot < spec.inputs.size() ? spec.inputs[slot] : spec.outputs[slot - spec.inputs.size()];
  SmallVector<UOpRef, 6> at(index.begin(), index.end());
  for (auto [i, first] : llvm::zip(at, p.begin)) i = idxAdd(c, i, first);
  UOpRef a = address(c, p.layout, p.allocated, at), begin = begins.lookup(slot);
  return begin ? simplifyIndex(c, idxSub(c, a, begin)) : a;
}

UOpRef ValueAt::load(unsigned slot, ArrayRef<UOpRef> index, UOpRef gate) {
  const Placed &p = slot < spec.inputs.size() ? spec.inputs[slot] : spec.outputs[slot - spec.inputs.size()];
  UOpRef a = addressIn(slot, index);
  if (mask && dependsOn(a, masked) && !padded(p.layout, index)) gate = both(gate, mask);
  if (transpose.wide)
    if (UOpRef x = transposedLoad(bufferNodes[slot], gate, a)) return x;
  if (!gate) return c.make(Op::Load, {bufferNodes[slot], a}, {1});
  if (gate->isConst() && !gate->ints[0]) return c.literal(p.value->dtype, 0);
  return c.make(Op::Load, {bufferNodes[slot], gate, a}, {1});
}

UOpRef ValueAt::store(ArrayRef<UOpRef> index, UOpRef value, UOpRef gate) {
  unsigned slot = spec.inPlace ? 0 : spec.inputs.size();
  UOpRef a = addressIn(slot, index), buffer = bufferNodes[slot];
  gate = both(gate, mask);
  SmallVector<UOpRef, 6> parts{buffer, value};
  if (gate) parts.push_back(gate);
  parts.push_back(a);
  // A range of one point at most is 0 in every address, here or where a lane has its number: one that may have none
  // would not be around the store.
  SmallVector<UOpRef, 2> lost;
  llvm::copy_if(around, std::back_inserter(lost), [](UOpRef r) { return r->src[0]->lo < 1; });
  if (!lost.empty()) {
    llvm::DenseSet<UOpRef> below;
    for (UOpRef x : topoSort(parts)) below.insert(x);
    llvm::erase_if(lost, [&](UOpRef r) { return r->src[0]->hi > 1 && below.contains(r); });
  }
  parts.append(lost);
  return c.make(Op::Store, parts, {1});
}

UOpRef ValueAt::storeUpdate(UOpRef update, ArrayRef<UOpRef> index) {
  UOpRef fresh = update->src[1];
  auto begin = window(update->src[0], update->tensors().drop_front(2), fresh->shape, index, nullptr).first;
  UOpRef value = at(fresh, index);
  for (size_t k = 0; k < begin.size(); ++k) begin[k] = simplifyIndex(c, idxAdd(c, begin[k], index[k]));
  return store(begin, value);
}

UOpRef ValueAt::storeScatter(UOpRef scatter, ArrayRef<UOpRef> index) {
  UOpRef x = scatter->src[0], update = scatter->src[2];
  int64_t axis = scatter->ints[0];
  ScatterKind kind = ScatterKind(scatter->ints[1]);
  static constexpr Combine combines[] = {Combine::Add, Combine::Add, Combine::Mul, Combine::Max, Combine::Min};
  static constexpr Op ops[] = {Op::Add, Op::Add, Op::Mul, Op::Max, Op::Min};
  UOpRef to = indexFrom(at(scatter->src[1], index)), inside = both(lt(c.index(-1), to), lt(to, x->shape[axis]));
  SmallVector<UOpRef, 4> place(index.begin(), index.end());
  place[axis] = to;
  if (dependsOn(to, index[axis])) { // what is there when the loop comes to this source
    UOpRef value = at(update, index);
    if (kind != ScatterKind::Set) value = c.make(ops[int(kind)], {at(x, place, inside), value});
    return store(place, value, inside);
  }
  // All sources have one destination: it is read and written once, not in the loop over them.
  llvm::erase(around, index[axis]);
  UOpRef n = update->shape[axis], k = range(n, RangeKind::Fold);
  inside = both(inside, lt(c.index(0), n));
  SmallVector<UOpRef, 4> source(index.begin(), index.end());
  source[axis] = kind == ScatterKind::Set ? simplifyIndex(c, idxSub(c, n, c.index(1))) : k;
  UOpRef value = at(update, source, kind == ScatterKind::Set ? inside : nullptr);
  if (kind != ScatterKind::Set)
    value = c.make(Op::Fold, {at(x, place, inside), value, k}, {int64_t(combines[int(kind)]), 1});
  return store(place, value, inside);
}

UOpRef ValueAt::at(UOpRef value, ArrayRef<UOpRef> index, UOpRef gate) {
  if (gate && gate->isConst()) {
    if (!gate->ints[0]) return c.literal(value->dtype, 0);
    gate = nullptr;
  }
  if (value->op == Op::Reduce && !slotOf.contains(value)) gate = about(index, gate); // one for all gates that are alike
  Key key{{value, gate}, c.internShape(index).data()};
  auto it = memo.find(key);
  if (it != memo.end()) return it->second;
  UOpRef r;
  if (cached.contains(value)) {
    UOpRef stage = cachedRow(value, index.drop_back()), e = index.back(), count = stage->indices()[0]->src[0];
    UOpRef q = simplifyIndex(c, idxDiv(c, e, c.index(rowStepLength())));
    if (gate) q = simplifyIndex(c, idxMin(c, q, idxSub(c, count, c.index(1)))); // beyond the end: any, not taken
    SmallVector<UOpRef, 5> at{stage, q};
    int64_t each = rowStepLength();
    for (UOpRef l : stage->indices().drop_front()) {
      UOpRef rest = idxMod(c, e, c.index(each));
      each /= *l->src[0]->constIndex();
      at.push_back(simplifyIndex(c, idxDiv(c, rest, c.index(each))));
    }
    r = c.make(Op::At, at, {1});
  } else if (tiles.contains(value))
    r = fromTile(value, index, gate);
  else
    r = compute(value, index, gate);
  memo[key] = r;
  return r;
}

/// Whether a step of a loop keeps tiles of its own.
bool ValueAt::keepsWithin(UOpRef loop) {
  auto [it, fresh] = keepsOwn.try_emplace(loop, false);
  if (fresh) it->second = keepsInStep(loop, tiles);
  return it->second;
}

/// Whether an index is one for all that a program computes at once: an element and its reader go together.
bool ValueAt::goesTogether(ArrayRef<UOpRef> index) const {
  return llvm::all_of(topoSort(index), [&](UOpRef n) { return n->op != Op::Range || together.contains(n); });
}

/// Whether an index grows by one from lane to lane of a vector.
static bool goesByLanes(UOpRef index) {
  auto isLane = [](UOpRef n) { return n->op == Op::Range && RangeKind(n->ints[1]) == RangeKind::Vector; };
  bool grows = false;
  for (const IndexTerm &t : terms(index)) {
    bool one = t.atoms.size() == 1 && t.coefficient == 1 && isLane(t.atoms[0]);
    if (!one && llvm::any_of(t.atoms, [&](UOpRef a) { return llvm::any_of(topoSort(a), isLane); })) return false;
    grows |= one;
  }
  return grows;
}

/// A value that is kept for all steps of loops, at one of them, with what it keeps itself.
UOpRef ValueAt::atStep(const TileLanes &how, UOpRef step) {
  auto now = withIndices(c, ArrayRef(how.ofAnyStep), {how.anyStep}, {step});
  for (UOpRef n : topoSort(how.ofAnyStep))
    if (auto it = tiles.find(n); it != tiles.end()) {
      TileLanes own = it->second; // before the map grows
      tiles.try_emplace(now.lookup(n), own);
    }
  return now.lookup(how.ofAnyStep);
}

/// An element of a tile that is kept: of all its points along the axes where `index` does not go together with the
/// reader's.
UOpRef ValueAt::fromTile(UOpRef value, ArrayRef<UOpRef> index, UOpRef gate) {
  TileLanes how = tiles.lookup(value);
  UOpRef kept = how.step ? how.ofAnyStep : value, holds = nullptr; // of the gate: what is about the points of the tile
  SmallVector<UOpRef, 4> conditions;
  if (gate) conditions.push_back(gate);
  while (!conditions.empty()) {
    UOpRef g = conditions.pop_back_val();
    if (g->op == Op::And)
      conditions.push_back(g->src[1]), conditions.push_back(g->src[0]);
    else if (goesTogether(g) && !(how.step && dependsOn(g, how.step)))
      holds = both(holds, g);
  }
  SmallVector<unsigned, 4> closed;                                   // axes
  unsigned along = value->op == Op::Cumulate ? value->ints[1] : ~0u; // made of what is before it: kept as a whole
  SmallVector<UOpRef, 6> point(index), whole(index);
  for (unsigned a = 0; a < index.size(); ++a) {
    bool together = goesTogether(index[a]) && (a != along || index[a]->isConst());
    if (!together) closed.push_back(a), point[a] = c.index(-1);
    if (!together || (index[a]->isConst() && value->shape[a]->constIndex() != 1)) whole[a] = c.index(-1);
  }
  // One place of what is there as a whole.
  if (point != whole && rows.count({{kept, holds}, c.internShape(whole).data()})) {
    for (unsigned a = 0; a < index.size(); ++a)
      if (point[a] != whole[a]) closed.push_back(a);
    llvm::sort(closed);
    point = whole;
  }
  if (closed.empty() && !how.step) return compute(value, index, gate);
  uint64_t bytes = std::max(1u, byteSize(value->dtype));
  for (unsigned a : closed)
    bytes = llvm::SaturatingMultiply(bytes,
                                     uint64_t(std::max<int64_t>(value->shape[a]->hi, 1)) + how.lanes * how.vectors - 1);
  if (how.step) bytes = llvm::SaturatingMultiply(bytes, uint64_t(std::max<int64_t>(how.step->src[0]->hi, 1)));
  unsigned axis = how.axis < 0 ? index.size() - 1 : how.axis; // of the lanes: what is neighbours in fast memory
  bool byLanes = how.lanes > 1 && llvm::is_contained(closed, axis);
  if (byLanes) llvm::erase(closed, axis), closed.push_back(axis);
  unsigned copied = how.copyAxis < 0 ? ~0u : how.copyAxis; // its elements, then the lanes, are the innermost
  bool byCopies = byLanes && how.copies > 1 && copied != axis && llvm::is_contained(closed, copied);
  if (byCopies) llvm::erase(closed, copied), closed.push_back(copied);
  bool running = llvm::is_contained(closed, along) && !byCopies && !(byLanes && along == axis);
  if (running) llvm::erase(closed, along), closed.push_back(along); // innermost
  UOpRef w = c.index(byLanes ? how.lanes : 1), one = c.index(1),
         &stage = rows[{{kept, holds}, c.internShape(point).data()}];
  UOpRef copies = c.index(byCopies ? how.copies : 1);
  UOpRef vectors = c.index(byLanes ? how.vectors : 1), wide = idxMul(c, vectors, w);
  auto together = [&](unsigned a) { return byLanes && a == axis ? wide : byCopies && a == copied ? copies : one; };
  auto count = [&](unsigned a) {
    return simplifyIndex(c, idxCeilDiv(c, idxMax(c, one, value->shape[a]), together(a)));
  };
  if (!stage) {
    if (bytes > tileBytes) return compute(value, index, gate);
    tileBytes -= bytes;
    SmallVector<UOpRef, 6> src{nullptr}, at(point);
    UOpRef lane = nullptr, own = value;
    if (how.step) src.push_back(range(how.step->src[0], RangeKind::Fold)), own = atStep(how, src.back());
    auto element = [&](unsigned a, UOpRef i) { at[a] = simplifyIndex(c, idxAdd(c, idxMul(c, at[a], together(a)), i)); };
    for (unsigned a : closed) src.push_back(at[a] = range(count(a), RangeKind::Fold));
    UOpRef innermost = src.back();
    if (byCopies) src.push_back(range(copies, RangeKind::Unroll)), element(copied, src.back());
    UOpRef vector = nullptr;
    if (vectors != one) src.push_back(vector = range(vectors, RangeKind::Unroll));
    if (byLanes)
      src.push_back(lane = range(w, laneKind)), element(axis, vector ? idxAdd(c, idxMul(c, vector, w), lane) : lane);
    std::tuple outer{masked, mask, reduceLanes, rests, runs};
    UOpRef inside = holds;
    for (unsigned a : closed)
      if (value->shape[a]->lo < 1) inside = both(inside, lt(c.index(0), value->shape[a])); // its only point is none
    mask = byLanes ? lt(at[axis], value->shape[axis]) : nullptr;
    masked = mask ? lane : nullptr;
    reduceLanes = how.reduceLanes;
    rests = own->op == Op::Fold && keepsWithin(own) ? own : nullptr;
    runs = running ? innermost : nullptr;
    src[0] = compute(own, at, inside);
    std::tie(masked, mask, reduceLanes, rests, runs) = outer;
    stage = c.make(Op::Stage, src);
  }
  SmallVector<UOpRef, 6> src{stage}, inner; // inner: the copy, the lane
  UOpRef when = nullptr;
  if (how.step) src.push_back(how.step);
  for (unsigned a : closed) {
    UOpRef i = index[a], by = together(a), room = idxMul(c, stage->indices()[src.size() - 1]->src[0], by);
    bool masks = mask && dependsOn(i, masked) && simplifyIndex(c, idxSub(c, room, i))->lo < 1;
    if (gate && a == closed.back() && a == axis && goesByLanes(i)) { // neighbours: those that are inside
      when = both(gate, masks ? mask : nullptr);
    } else if (gate || masks) { // beyond the ends: any, not taken
      if (lt(c.index(-1), i)) i = idxMax(c, i, c.index(0));
      if (masks || lt(i, value->shape[a])) i = idxMin(c, i, idxSub(c, idxMax(c, one, value->shape[a]), one));
      i = simplifyIndex(c, i);
    }
    src.push_back(by == one ? i : simplifyIndex(c, idxDiv(c, i, by)));
    if (by == one) continue;
    UOpRef own = simplifyIndex(c, idxMod(c, i, by));
    if (byCopies && a == copied) {
      inner.insert(inner.begin(), own);
      continue;
    }
    if (vectors != one) inner.push_back(simplifyIndex(c, idxDiv(c, own, w)));
    inner.push_back(vectors != one ? simplifyIndex(c, idxMod(c, own, w)) : own);
  }
  llvm::append_range(src, inner);
  if (when) src.insert(src.begin() + 1, when);
  return c.make(Op::At, src, {1});
}

ValueAt::RowStep ValueAt::rowStep() {
  RowStep step{{}, c.index(0)};
  auto add = [&](UOpRef r) {
    step.ranges.push_back(r);
    step.at = idxAdd(c, idxMul(c, step.at, r->src[0]), r);
  };
  if (!width) {
    add(range(c.index(rowLanes), laneKind));
    return step;
  }
  if (rowLanes > reduceLanes) add(digit(rowLanes / reduceLanes, reduceLanes)); // warps
  add(range(c.index(reduceLanes), laneKind));
  if (width > 1) add(range(c.index(width), RangeKind::Vector));
  return step;
}

/// All elements of a row, up to a multiple of 64, or of the threads' number: those beyond its end are not taken. Where
/// its length is known nobody reads a vector that is beyond its end as a whole.
UOpRef ValueAt::cachedRow(UOpRef value, ArrayRef<UOpRef> row) {
  UOpRef &stage = rows[{{value, nullptr}, c.internShape(row).data()}];
  if (stage) return stage;
  int64_t group = laneKind == RangeKind::Thread ? rowLanes : 64;
  UOpRef n = columnsOfRows ? columnsOfRows : value->shape.back(),
         groups = idxMax(c, c.index(1), idxCeilDiv(c, n, c.index(group)));
  UOpRef count = n->isConst() ? idxMax(c, c.index(1), idxCeilDiv(c, n, c.index(rowStepLength())))
                              : idxMul(c, groups, c.index(group / rowLanes));
  UOpRef q = range(simplifyIndex(c, count), RangeKind::Fold);
  RowStep step = rowStep();
  UOpRef l = step.ranges.back();
  SmallVector<UOpRef, 6> at(row);
  at.push_back(simplifyIndex(c, idxAdd(c, idxMul(c, q, c.index(rowStepLength())), step.at)));
  std::pair outer{masked, mask};
  mask = lt(at.back(), n);
  masked = mask ? l : nullptr;
  UOpRef element = compute(value, at, nullptr);
  std::tie(masked, mask) = outer;
  SmallVector<UOpRef, 5> src{element, q};
  llvm::append_range(src, step.ranges);
  return stage = c.make(Op::Stage, src);
}

/// A loop of a kernel that a user wrote. Loops over one range at one index are one; those whose steps keep tiles are
/// one at all indices: its elements, where there are several, rest from step to step.
UOpRef ValueAt::fold(UOpRef loop, ArrayRef<UOpRef> index, UOpRef gate) {
  bool one = std::exchange(rests, nullptr) == loop;
  one |= goesTogether(index) && keepsWithin(loop);
  UOpRef r = loop->indices()[0], &own = loops[{{r, one ? nullptr : gate}, one ? nullptr : c.internShape(index).data()}];
  if (!own) own = range(r->src[0], one ? RangeKind::Around : RangeKind::Fold);
  if (one) together.insert(own);
  SmallVector<UOpRef, 4> src{at(loop->src[0], index, gate)};
  for (UOpRef v : loop->tensors().drop_front()) {
    UOpRef now = withIndices(c, v, {r}, {own});
    for (UOpRef n : topoSort(v))
      if (auto kept = tiles.find(n); kept != tiles.end() && (one || kept->second.step == r)) {
        TileLanes how = kept->second; // before the map grows
        if (how.step == r) how.step = own;
        tiles.try_emplace(withIndices(c, n, {r}, {own}), how);
      }
    src.push_back(at(now, index, gate));
  }
  src.push_back(own);
  return c.make(Op::Fold, src, loop->ints);
}

UOpRef ValueAt::indexFrom(UOpRef scalar) {
  constexpr int64_t most = int64_t(1) << 62;
  if (scalar->op == Op::FromIndex && scalar->dtype == DType::I64) return scalar->src[0];
  if (scalar->dtype != DType::I64) scalar = c.make(Op::Cast, {scalar}, {0}, {}, DType::I64);
  return c.make(Op::Extent, {scalar}, {-most, most});
}

std::pair<SmallVector<UOpRef, 4>, UOpRef> ValueAt::window(UOpRef x, ArrayRef<UOpRef> starts, ArrayRef<UOpRef> size,
                                                          ArrayRef<UOpRef> index, UOpRef gate) {
  SmallVector<UOpRef, 4> begin;
  for (unsigned k = 0; k < x->rank(); ++k) {
    UOpRef s = indexFrom(at(starts[k], {}, gate));
    begin.push_back(idxMin(c, idxMax(c, s, c.index(0)), idxSub(c, x->shape[k], size[k])));
  }
  UOpRef inside = nullptr;
  for (unsigned k = 0; k < x->rank(); ++k) {
    if (x->shape[k] == size[k]) begin[k] = c.index(0);
    inside =
        both(inside, both(lt(idxSub(c, begin[k], c.index(1)), index[k]), lt(index[k], idxAdd(c, begin[k], size[k]))));
  }
  return {begin, inside};
}

/// The symbolic integer that x is: sums of indices and constants, each of which 32 bits hold; else null. In narrower
/// types and unsigned ones an index may wrap.
static UOpRef smallIndex(Context &c, UOpRef x, unsigned depth = 4) {
  if (x->dtype != DType::I32 && x->dtype != DType::I64) return nullptr;
  UOpRef i = nullptr;
  if (x->op == Op::FromIndex)
    i = x->src[0];
  else if (x->isConst() && x->ints[0] == int32_t(x->ints[0]))
    i = c.index(x->ints[0]);
  else if ((x->op == Op::Add || x->op == Op::Sub) && depth) {
    UOpRef a = smallIndex(c, x->src[0], depth - 1), b = smallIndex(c, x->src[1], depth - 1);
    if (a && b) i = x->op == Op::Add ? idxAdd(c, a, b) : idxSub(c, a, b);
  }
  return i && i->lo >= INT32_MIN && i->hi <= INT32_MAX ? i : nullptr;
}

/// Where an element lies is compared in 32 bits where they suffice: twice the lanes, and masks as wide as floats.
static void compareSmall(Context &c, Op op, SmallVector<UOpRef, 3> &src) {
  bool compares = op == Op::Lt || op == Op::Le || op == Op::Eq || op == Op::Ne;
  if (!compares || src[0]->dtype != DType::I64 || src[0]->isIndex()) return;
  UOpRef a = smallIndex(c, src[0]), b = a ? smallIndex(c, src[1]) : nullptr;
  if (!b) return;
  src = {c.make(Op::FromIndex, {simplifyIndex(c, a)}, {}, {}, DType::I32),
         c.make(Op::FromIndex, {simplifyIndex(c, b)}, {}, {}, DType::I32)};
}

/// A comparison of integers that the bounds of symbolic integers decide, as which of the parts of a concatenation an
/// element is of; else nothing.
static std::optional<bool> decided(Context &c, Op op, ArrayRef<UOpRef> src) {
  bool compares = op == Op::Lt || op == Op::Le || op == Op::Eq || op == Op::Ne;
  if (!compares) return std::nullopt;
  UOpRef a = smallIndex(c, src[0]), b = a ? smallIndex(c, src[1]) : nullptr;
  if (!b) return std::nullopt;
  UOpRef d = simplifyIndex(c, idxSub(c, b, a));
  bool below = d->lo > 0, above = d->hi < 0, equal = d->constIndex() == 0;
  if (op == Op::Lt && (below || d->hi <= 0)) return below;
  if (op == Op::Le && (above || d->lo >= 0)) return !above;
  if ((op == Op::Eq || op == Op::Ne) && (below || above || equal)) return equal == (op == Op::Eq);
  return std::nullopt;
}

UOpRef ValueAt::compute(UOpRef v, ArrayRef<UOpRef> index, UOpRef gate) {
  if (auto it = slotOf.find(v); it != slotOf.end()) return load(it->second, index, gate);
  if (has(v->op, Elementwise)) {
    if (!v->src.empty() && v->ntensors == 0) return v; // a comparison of symbolic integers
    if (v->op == Op::Select)
      if (UOpRef which = at(v->src[0], index, gate); which->isConst())
        return at(v->src[which->ints[0] ? 1 : 2], index, gate);
    SmallVector<UOpRef, 3> src;
    for (UOpRef s : v->src) src.push_back(at(s, index, gate));
    if (auto is = decided(c, v->op, src)) return c.literal(DType::Bool, *is);
    if (v->op == Op::And && v->dtype == DType::Bool)
      for (unsigned i : {0u, 1u})
        if (src[i]->isConst()) return src[i]->ints[0] ? src[1 - i] : src[i];
    compareSmall(c, v->op, src);
    return c.make(v->op, src, v->ints, v->str, v->dtype);
  }
  SmallVector<UOpRef, 4> in(index.begin(), index.end());
  switch (v->op) {
  case Op::Const:
  case Op::FromIndex: return v;
  case Op::Iota: return c.make(Op::FromIndex, {index[v->ints[0]]}, {}, {}, v->dtype);
  case Op::Detach:
  case Op::Tap: return at(v->src[0], index, gate);
  case Op::Reshape:
  case Op::Permute:
  case Op::Expand:
  case Op::Flip:
  case Op::Shrink:
  case Op::Window: return at(v->src[0], throughMovement(c, v, index), gate);
  case Op::Pad: {
    UOpRef valid = nullptr;
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = simplifyIndex(c, idxSub(c, in[i], v->indices()[i]));
      valid = both(valid, both(lt(c.index(-1), in[i]), lt(in[i], v->src[0]->shape[i])));
    }
    return select(valid, at(v->src[0], in, both(gate, valid)), c.literal(v->dtype, v->ints[0]));
  }
  case Op::Gather: {
    UOpRef x = v->src[0], i = v->src[1];
    int64_t axis = v->ints[0];
    UOpRef e = indexFrom(at(i, index.slice(axis, i->rank()), gate));
    UOpRef valid = both(lt(c.index(-1), e), lt(e, x->shape[axis]));
    SmallVector<UOpRef, 4> xi(index.begin(), index.begin() + axis);
    xi.push_back(e);
    xi.append(index.begin() + axis + i->rank(), index.end());
    return select(valid, at(x, xi, both(gate, valid)), c.literal(v->dtype, 0));
  }
  case Op::Pick: {
    int64_t axis = v->ints[0];
    UOpRef e = indexFrom(at(v->src[1], index, gate));
    UOpRef valid = both(lt(c.index(-1), e), lt(e, v->src[0]->shape[axis]));
    in[axis] = e;
    return select(valid, at(v->src[0], in, both(gate, valid)), c.literal(v->dtype, 0));
  }
  case Op::SliceAt: {
    auto [begin, inside] = window(v->src[0], v->tensors().drop_front(), v->indices(), index, gate);
    for (size_t k = 0; k < in.size(); ++k) in[k] = idxAdd(c, in[k], begin[k]);
    return at(v->src[0], in, gate);
  }
  case Op::UpdateAt: {
    UOpRef x = v->src[0], fresh = v->src[1];
    auto [begin, inside] = window(x, v->tensors().drop_front(2), fresh->shape, index, gate);
    for (size_t k = 0; k < in.size(); ++k) in[k] = idxSub(c, in[k], begin[k]);
    return select(inside, at(fresh, in, both(gate, inside)), at(x, index, gate));
  }
  case Op::Cumulate: { // a plain chain, by the loop over what is stored or kept; blocks of 16 were written out before
    static const Combine combine[] = {Combine::Add, Combine::Mul, Combine::Max, Combine::Min};
    static const ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min};
    UOpRef init = c.literal(v->dtype, reduceIdentity(kinds[v->ints[0]], v->dtype)), along = index[v->ints[1]];
    bool byLoop = spec.grid.empty() && along->op == Op::Range && RangeKind(along->ints[1]) == RangeKind::Loop;
    if (!byLoop && along != runs) { // in a tile that is moved, or not kept as a whole: up to here
      in[v->ints[1]] = range(v->shape[v->ints[1]], RangeKind::Fold);
      UOpRef here = lt(in[v->ints[1]], idxAdd(c, along, c.index(1)));
      UOpRef x = select(here, at(v->src[0], in, both(gate, here)), init);
      return c.make(Op::Fold, {init, x, in[v->ints[1]]}, {int64_t(combine[v->ints[0]]), 1});
    }
    return c.make(Op::Running, {init, at(v->src[0], index, gate), index[v->ints[1]]}, {int64_t(combine[v->ints[0]])});
  }
  case Op::Words: { // whose bytes are not neighbours in memory: one by one
    UOpRef word = nullptr, first = simplifyIndex(c, idxMul(c, in.back(), c.index(4)));
    DType byte = v->src[0]->dtype;
    for (int64_t k = 0; k < 4; ++k) {
      in.back() = simplifyIndex(c, idxAdd(c, first, c.index(k)));
      UOpRef part = at(v->src[0], in, gate);
      if (byte == DType::I8) part = c.make(Op::Bitcast, {part}, {}, {}, DType::U8);
      part = c.make(Op::Cast, {part}, {0}, {}, DType::U32);
      if (k) part = c.make(Op::Shl, {part, c.literal(DType::U32, 8 * k)});
      word = word ? c.make(Op::Or, {word, part}) : part;
    }
    return v->dtype == DType::U32 ? word : c.make(Op::Bitcast, {word}, {}, {}, v->dtype);
  }
  case Op::Fold: return fold(v, index, gate);
  case Op::Reduce: return reduce(v, index, gate);
  case Op::Contract: return contract(v, index, gate);
  default: break;
  }
  llvm::report_fatal_error(llvm::Twine("internal error: no lowering for ") + info(v->op).mnemonic);
}
