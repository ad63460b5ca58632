//===- PartitionOps.cpp: ops on parts: elements, movement, sums -------------===//
// Takes:    an op whose sources have images.
// Gives:    how its result is cut, and the op on parts.
// Keeps:    bits where no sum is split. What goes along a cut axis is refused, but for sums and extremes, whose parts
//           are combined between shards.
#include "Partition.h"
#include "astra/IR/Text.h"

using namespace astra;
using namespace astra::distribute;

/// How values of one shape are cut together: an axis that one has cut is cut for all. `skip`: axes that are not
/// compared.
std::optional<Axes> Partition::merged(UOpRef n, ArrayRef<UOpRef> xs, llvm::function_ref<bool(unsigned)> skip) {
  Axes out(xs[0]->rank(), 0);
  llvm::SmallVector<UOpRef, 4> by(out.size(), nullptr);
  for (unsigned i = 0; i < out.size(); ++i)
    for (UOpRef x : xs) {
      MeshAxes a = axesOf(x)[i];
      if (!a || a == out[i] || (skip && skip(i))) continue;
      if (out[i]) return disagree(n, by[i], x), std::nullopt;
      out[i] = a, by[i] = x;
    }
  for (unsigned i = 0; i < out.size(); ++i)
    for (unsigned k = 0; k < i; ++k)
      if (out[i] & out[k]) return disagree(n, by[k], by[i]), std::nullopt;
  return out;
}

bool Partition::elementwise(UOpRef n) {
  if (!n->rank() && !n->ntensors) return set(n, {}, remade(n, {}, now(n->indices())));
  auto axes = merged(n, n->tensors());
  return axes && setLater(n, *axes);
}

/// The same for an op that is not computed again from other parts.
bool Partition::together(UOpRef n) {
  auto axes = merged(n, n->tensors());
  List src;
  for (UOpRef s : n->tensors())
    if (!axes || !src.emplace_back(as(s, *axes))) return false;
  return set(n, *axes, remade(n, src, {}));
}

/// Computed by every shard alike, from whole sources.
bool Partition::replicated(UOpRef n) {
  if (n->is(Op::Iota)) return setLater(n, Axes(n->rank(), 0));
  List src;
  for (UOpRef s : n->tensors()) {
    for (auto [i, a] : llvm::enumerate(axesOf(s)))
      if (a) return isCutThere(n, s, i, Twine(info(n->op).mnemonic));
    if (!src.emplace_back(whole(s))) return false;
  }
  return set(n, Axes(n->rank(), 0), remade(n, src, now(n->indices())));
}

bool Partition::passes(UOpRef n) {
  List src;
  for (UOpRef s : n->tensors())
    if (!src.emplace_back(natural(s))) return false;
  return set(n, axesOf(n->src[0]), remade(n, src, {}));
}

bool Partition::reshard(UOpRef n) {
  auto s = parseSharding(mesh, n->str);
  if (!s) return fail(n, llvm::toString(s.takeError()));
  if (s->axes.size() != n->rank())
    return fail(n, "to=\"" + n->str + "\" is of rank " + Twine(s->axes.size()) + ", the value is " +
                       typeText(n->dtype, n->shape));
  return set(n, s->axes, as(n->src[0], s->axes, true));
}

// ---- movement
/// The same elements in other places: a part of a sum, of which nobody has asked for the whole, stays one.
bool Partition::moved(UOpRef n, Axes axes, ArrayRef<UOpRef> indices) {
  const Image &x = frame->images.at(n->src[0]);
  if (x.part && x.values.empty()) {
    UOpRef part = remade(n, {x.part}, indices);
    if (!part) return false;
    m.origins.inherit(part, n);
    frame->images[n] = {axes, {}, part, x.over, x.kind};
    return true;
  }
  UOpRef v = natural(n->src[0]);
  return v && set(n, axes, remade(n, {v}, indices));
}

bool Partition::reshape(UOpRef n) {
  UOpRef x = n->src[0];
  Axes have = axesOf(x), axes(n->rank(), 0);
  Shape from = x->shape, to = n->shape;
  // Groups of axes whose products are equal; the first that is not 1 says which blocks of rows a shard has.
  UOpRef one = c.index(1);
  for (unsigned i = 0, k = 0; i < from.size() || k < to.size();) {
    if (i < from.size() && from[i] == one && !have[i]) {
      ++i;
      continue;
    }
    if (k < to.size() && to[k] == one) {
      ++k;
      continue;
    }
    unsigned iEnd = from.size(), kEnd = to.size();
    for (unsigned sum = 2; i < from.size() && k < to.size() && sum <= from.size() - i + to.size() - k; ++sum) {
      bool found = false;
      for (unsigned a = 1; a < sum && !found; ++a)
        if (unsigned d = sum - a; i + a <= from.size() && k + d <= to.size() &&
                                  idxProduct(c, from.slice(i, a)) == idxProduct(c, to.slice(k, d)))
          iEnd = i + a, kEnd = k + d, found = true;
      if (found) break;
    }
    for (unsigned a = i; a < iEnd; ++a) {
      if (!have[a]) continue;
      if (a != i || k == kEnd || !divided(c, now(to[k]), mesh.count(have[a])))
        return fail(n,
                    "from " + typeText(x->dtype, from) + " to " + typeText(n->dtype, to) + ", axis " + Twine(a) +
                        " of " + said(x) +
                        " is cut, and its parts are no blocks along one axis of the result: write a reshard before it "
                        "that leaves this axis whole");
      axes[k] = have[a];
    }
    i = iEnd, k = kEnd;
  }
  auto shape = localShape(n, to, axes);
  return shape && moved(n, axes, *shape);
}

bool Partition::permute(UOpRef n) {
  Axes axes;
  for (int64_t a : n->ints) axes.push_back(axesOf(n->src[0])[a]);
  return moved(n, axes, {});
}

bool Partition::expand(UOpRef n) { return setLater(n, axesOf(n->src[0])); }

bool Partition::pad(UOpRef n) {
  UOpRef x = n->src[0];
  ArrayRef<UOpRef> both = n->indices();
  for (unsigned i = 0; i < n->rank(); ++i)
    if (axesOf(x)[i] && (both[i]->constIndex() != 0 || both[n->rank() + i]->constIndex() != 0))
      return isCutThere(n, x, i, "padding");
  UOpRef v = natural(x);
  return v && set(n, axesOf(x), remade(n, {v}, now(both)));
}

bool Partition::shrink(UOpRef n) {
  UOpRef x = n->src[0];
  List both = now(n->indices());
  unsigned rank = n->rank();
  for (unsigned i = 0; i < rank; ++i) {
    if (!axesOf(x)[i]) continue;
    if (both[i]->constIndex() != 0 || n->shape[i] != x->shape[i]) return isCutThere(n, x, i, "cutting off");
    both[rank + i] = divided(c, both[rank + i], mesh.count(axesOf(x)[i]));
  }
  UOpRef v = natural(x);
  return v && set(n, axesOf(x), remade(n, {v}, both));
}

bool Partition::flip(UOpRef n) {
  for (int64_t a : n->ints)
    if (axesOf(n->src[0])[a]) return isCutThere(n, n->src[0], a, "reversing");
  return passes(n);
}

bool Partition::window(UOpRef n) {
  UOpRef x = n->src[0];
  if (axesOf(x)[n->ints[0]]) return isCutThere(n, x, n->ints[0], "a window");
  Axes axes = axesOf(x);
  axes.push_back(0);
  UOpRef v = natural(x);
  return v && set(n, axes, remade(n, {v}, {}));
}

template <unsigned Place> bool Partition::along(UOpRef n) {
  UOpRef x = n->src[0];
  unsigned axis = n->ints[Place];
  if (axesOf(x)[axis]) return isCutThere(n, x, axis, Twine(info(n->op).mnemonic));
  Axes axes = axesOf(x);
  if (n->is(Op::ArgReduce)) axes.erase(axes.begin() + axis);
  UOpRef v = natural(x);
  return v && set(n, axes, remade(n, {v}, {}));
}

// ---- sums
static bool hasCutLabel(ArrayRef<AffineForm> forms, ArrayRef<MeshAxes> cut) {
  return llvm::any_of(
      forms, [&](const AffineForm &f) { return llvm::any_of(f.terms, [&](auto t) { return cut[t.first] != 0; }); });
}

bool Partition::reduce(UOpRef n) {
  UOpRef x = n->src[0];
  ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
  if (hasCutLabel(s.domain, axesOf(x)))
    return fail(n, "which elements take part depends on an index along an axis of " + said(x) +
                       " that is cut: write a reshard before it that leaves this axis whole");
  Axes axes;
  MeshAxes over = 0;
  for (unsigned i = 0; i < x->rank(); ++i) {
    if (!llvm::is_contained(s.axes, i))
      axes.push_back(axesOf(x)[i]);
    else
      over |= axesOf(x)[i];
  }
  UOpRef v = natural(x);
  return v && setPart(n, axes, remade(n, {v}, now(n->indices())), over, s.kind);
}

/// An axis that is a label is cut as the label is, for all operands; a label that is summed leaves a part of the sum.
bool Partition::contract(UOpRef n) {
  ContractSpec s = llvm::cantFail(decodeContract(n->ints));
  if (!s.outside.empty()) return fail(n, "a contract that leaves out taps comes after this pass");
  Axes cut(s.kept + s.reduced, 0);
  llvm::SmallVector<UOpRef, 8> by(cut.size(), nullptr);
  const llvm::SmallVector<AffineForm, 4> *lists[] = {&s.a, &s.b};
  for (unsigned o = 0; o < 2; ++o)
    for (auto [i, f] : llvm::enumerate(*lists[o])) {
      MeshAxes a = axesOf(n->src[o])[i];
      if (!a) continue;
      if (!f.isLabel()) return isCutThere(n, n->src[o], i, "a sum over neighbours");
      unsigned l = f.terms[0].first;
      if (cut[l] && cut[l] != a) return disagree(n, by[l], n->src[o]);
      cut[l] = a, by[l] = n->src[o];
    }
  for (unsigned l = 0; l < cut.size(); ++l)
    for (unsigned k = 0; k < l; ++k)
      if (cut[l] & cut[k]) return disagree(n, by[k], by[l]);
  if (hasCutLabel(s.domain, cut))
    return fail(n,
                "which products take part depends on an index along an axis that is cut: write a reshard of an operand "
                "before it that leaves this axis whole");
  List src;
  for (unsigned o = 0; o < 2; ++o) {
    Axes want;
    for (const AffineForm &f : *lists[o]) {
      if (!f.isLabel() && hasCutLabel(f, cut)) return fail(n, "an index of an operand is made of a label that is cut");
      want.push_back(f.isLabel() ? cut[f.terms[0].first] : 0);
    }
    if (!src.emplace_back(as(n->src[o], want))) return false;
  }
  List indices = now(n->indices());
  MeshAxes over = 0;
  for (unsigned l = 0; l < cut.size(); ++l) {
    if (!cut[l]) continue;
    UOpRef part = divided(c, indices[l], mesh.count(cut[l]));
    if (!part) return fail(n, "an extent of " + indexText(indices[l]) + " is not divided by the shards that cut it");
    indices[l] = part;
    if (l >= s.kept) over |= cut[l];
  }
  Axes axes(cut.begin(), cut.begin() + s.kept);
  return setPart(n, axes, remade(n, src, indices), over, ReduceKind::Sum);
}

Partition::Rule Partition::ruleOf(Op op) {
  static constexpr struct {
    Op op;
    Rule rule;
  } rules[] = {
      {Op::Const, &Partition::replicated},
      {Op::FromIndex, &Partition::replicated},
      {Op::Iota, &Partition::replicated},
      {Op::Random, &Partition::replicated},
      {Op::Compact, &Partition::replicated},
      {Op::Detach, &Partition::passes},
      {Op::Tap, &Partition::passes},
      {Op::After, &Partition::passes},
      {Op::Reshard, &Partition::reshard},
      {Op::Reshape, &Partition::reshape},
      {Op::Permute, &Partition::permute},
      {Op::Expand, &Partition::expand},
      {Op::Pad, &Partition::pad},
      {Op::Shrink, &Partition::shrink},
      {Op::Flip, &Partition::flip},
      {Op::Window, &Partition::window},
      {Op::Reduce, &Partition::reduce},
      {Op::ArgReduce, &Partition::along<1>},
      {Op::Cumulate, &Partition::along<1>},
      {Op::ArgSort, &Partition::along<0>},
      {Op::Contract, &Partition::contract},
      {Op::Gather, &Partition::gather},
      {Op::Pick, &Partition::pick},
      {Op::Scatter, &Partition::scatter},
      {Op::SliceAt, &Partition::sliceAt},
      {Op::UpdateAt, &Partition::updateAt},
      {Op::Complex, &Partition::together},
      {Op::Real, &Partition::passes},
      {Op::Imag, &Partition::passes},
  };
  for (const auto &r : rules)
    if (r.op == op) return r.rule;
  return nullptr;
}
