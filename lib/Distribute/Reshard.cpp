//===- Reshard.cpp: ways from one sharding to another ----------------------===//
// Takes:    a value, and how it is wanted.
// Gives:    the part of one shard, cut that way.
// Keeps:    a part that costs nothing to make is made: what is whole is cut, or computed from parts of its sources. A
//           value that is cut is gathered, or cut another way, only where that is asked for.
#include "Partition.h"

using namespace astra;
using namespace astra::distribute;

static bool refines(ArrayRef<MeshAxes> want, ArrayRef<MeshAxes> have) {
  return llvm::all_of(llvm::zip(want, have),
                      [](auto p) { return !std::get<1>(p) || std::get<0>(p) == std::get<1>(p); });
}

static UOpRef madeAs(ArrayRef<std::pair<Axes, UOpRef>> values, ArrayRef<MeshAxes> axes) {
  for (const auto &[have, v] : values)
    if (ArrayRef<MeshAxes>(have) == axes) return v;
  return nullptr;
}

UOpRef distribute::axisMoved(Builder &b, UOpRef x, unsigned from, unsigned to) {
  Ints perm;
  for (unsigned i = 0; i < x->rank(); ++i)
    if (i != from) perm.push_back(i);
  perm.insert(perm.begin() + to, from);
  return b.permute(x, perm);
}
List distribute::stacked(UOpRef n, Shape shape) {
  List out{n};
  out.append(shape.begin(), shape.end());
  return out;
}
UOpRef distribute::dealt(Builder &b, UOpRef batch, UOpRef rows, UOpRef count) {
  List split = stacked(rows, batch->shape);
  split[1] = count;
  return axisMoved(b, b.reshape(batch, split), 1, 0);
}
UOpRef distribute::axisSplit(Builder &b, UOpRef x, unsigned axis, int64_t n) {
  List shape(x->shape.begin(), x->shape.end());
  shape[axis] = divided(b.c, shape[axis], n);
  shape.insert(shape.begin() + axis, b.c.index(n));
  return b.reshape(x, shape);
}
UOpRef distribute::axesJoined(Builder &b, UOpRef x, unsigned axis) {
  List shape(x->shape.begin(), x->shape.end());
  shape[axis] = idxMul(b.c, shape[axis], shape[axis + 1]);
  shape.erase(shape.begin() + axis + 1);
  return b.reshape(x, shape);
}

UOpRef Partition::sliced(UOpRef v, unsigned axis, MeshAxes by) {
  return b.gather(axisSplit(b, v, axis, mesh.count(by)), rankIndex(by), axis);
}
UOpRef Partition::gathered(UOpRef v, unsigned axis, MeshAxes by, bool same) {
  UOpRef all = c.make(Op::AllGather, {v}, {same}, groupText(mesh, by));
  return axesJoined(b, axisMoved(b, all, 0, axis), axis);
}
/// Cut along `to` instead of `from`.
UOpRef Partition::exchanged(UOpRef v, unsigned from, unsigned to, MeshAxes by) {
  UOpRef out = axisMoved(b, axisSplit(b, v, to, mesh.count(by)), to, 0);
  return axesJoined(b, axisMoved(b, c.make(Op::AllToAll, {out}, {}, groupText(mesh, by)), 0, from), from);
}
UOpRef Partition::scattered(const Image &im, unsigned axis) {
  UOpRef parts = axisMoved(b, axisSplit(b, im.part, axis, mesh.count(im.over)), axis, 0);
  return c.make(Op::ReduceScatter, {parts}, {im.kind}, groupText(mesh, im.over));
}

/// The value as its op gives it.
UOpRef Partition::natural(UOpRef n) {
  Image &im = frame->images.at(n);
  if (UOpRef v = madeAs(im.values, im.axes)) return v;
  if (!im.refused.empty()) {
    error = im.refused;
    return nullptr;
  }
  UOpRef v;
  if (im.part) {
    v = c.make(Op::AllReduce, {im.part}, {im.kind, used(im.axes) == 0}, groupText(mesh, im.over));
  } else if (isPulled(n)) {
    v = pulled(n, im.axes, 0);
    if (!v) return nullptr;
  } else { // a stored weight, whole
    const auto &[stored, part] = im.values[0];
    v = part;
    MeshAxes left = used(stored);
    for (unsigned i = 0; i < stored.size(); ++i)
      if (stored[i]) v = gathered(v, i, stored[i], (left &= ~stored[i]) == 0);
  }
  m.origins.inherit(v, n);
  im.values.push_back({im.axes, v});
  return v;
}

UOpRef Partition::as(UOpRef n, ArrayRef<MeshAxes> want, bool asked, unsigned depth) {
  Image &im = frame->images.at(n);
  if (UOpRef v = madeAs(im.values, want)) return v;
  if (!im.refused.empty()) return natural(n);
  Axes cur = im.axes;
  UOpRef v = nullptr;
  bool isFine = refines(want, cur);
  if (im.part && isFine && !madeAs(im.values, cur)) // nobody reads the whole sum so far
    for (unsigned k = 0; k < want.size() && !v; ++k)
      if (!cur[k] && want[k] == im.over && divided(c, im.part->shape[k], mesh.count(im.over))) {
        v = scattered(im, k);
        cur[k] = want[k];
        im.values.push_back({cur, v});
      }
  if (!v)
    for (const auto &[have, made] : im.values)
      if (refines(want, have) && (!v || refines(have, cur))) v = made, cur = have;
  if (!isFine && !v && !asked) {
    fail(n, "its value, " + said(n) + ", is wanted as " + shardingText(mesh, {{want.begin(), want.end()}, false}) +
                ": write a reshard, which gathers it, in between");
    return nullptr;
  }
  for (unsigned i = 0; i < want.size(); ++i)
    if (want[i] && want[i] != im.axes[i] && !divided(c, now(n->shape[i]), mesh.count(want[i]))) {
      fail(n, "axis " + Twine(i) + " of " + said(n) + " is not divided by the " + Twine(mesh.count(want[i])) +
                  " shards of " + shardingText(mesh, {{want.begin(), want.end()}, false}));
      return nullptr;
    }
  constexpr unsigned deepest = 32;
  if (isFine && !im.part && isPulled(n) && n->rank() && depth < deepest && (!v || cur == im.axes)) {
    UOpRef p = pulled(n, want, depth + 1);
    if (!p) return nullptr;
    m.origins.inherit(p, n);
    im.values.push_back({Axes(want), p});
    return p;
  }
  if (!v) v = natural(n), cur = im.axes;
  if (!v) return nullptr;
  for (unsigned a = 0; a < cur.size(); ++a) {
    if (!cur[a] || cur[a] == want[a]) continue;
    unsigned to = 0;
    while (to < cur.size() && (cur[to] || want[to] != cur[a])) ++to;
    if (!want[a] && to < cur.size()) {
      v = exchanged(v, a, to, cur[a]);
      cur[to] = cur[a];
    } else
      v = gathered(v, a, cur[a], used(cur) == cur[a]);
    cur[a] = 0;
  }
  for (unsigned a = 0; a < cur.size(); ++a)
    if (!cur[a] && want[a]) v = sliced(v, a, want[a]), cur[a] = want[a];
  m.origins.inherit(v, n);
  im.values.push_back({Axes(want), v});
  return v;
}

/// What can be computed from parts of the sources, so that nothing is computed of which a part is wanted.
UOpRef Partition::pulled(UOpRef n, ArrayRef<MeshAxes> want, unsigned depth) {
  auto shape = localShape(n, n->shape, want);
  if (!shape) return nullptr;
  if (n->is(Op::Iota)) {
    unsigned axis = n->ints[0];
    if (!want[axis]) return b.iota(n->dtype, *shape, axis);
    UOpRef first = b.mul(rankIndex(want[axis]), b.fromIndex((*shape)[axis], DType::I64));
    return b.cast(b.add(b.iota(DType::I64, *shape, axis), b.splat(first, *shape)), n->dtype);
  }
  if (n->is(Op::Expand)) {
    Axes of(want);
    for (unsigned i = 0; i < of.size(); ++i)
      if (n->src[0]->shape[i] != n->shape[i]) of[i] = 0;
    UOpRef x = as(n->src[0], of, false, depth);
    return x ? b.expand(x, *shape) : nullptr;
  }
  List src;
  for (UOpRef s : n->tensors()) {
    src.push_back(as(s, want, false, depth));
    if (!src.back()) return nullptr;
  }
  return remade(n, src, {});
}
