//===- PartitionOps.cpp: ops on parts: elements, movement, sums -------------===//
// Takes:    an op whose sources have images.
// Gives:    how its result is cut, and the op on parts.
// Keeps:    bits where no sum is split. What goes along a cut axis is refused, but for sums and extremes, whose parts
//           are combined between shards.
#include "Partition.h"
#include "astra/IR/Domain.h"
#include "astra/IR/ShardingRule.h"
#include "astra/IR/Text.h"

using namespace astra;
using namespace astra::distribute;
using llvm::SmallVector;

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
  auto s = shardingFor(mesh, n->str, n->shape);
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

/// An axis that is cut, all of whose elements move one shard on or back: the first or last one gets zeros.
bool Partition::translated(UOpRef n, unsigned axis) {
  UOpRef x = n->src[0]->src[0], shrunk = n->src[0];
  unsigned rank = n->rank();
  Axes axes = axesOf(x);
  int64_t parts = mesh.count(axes[axis]);
  for (unsigned i = 0; i < rank; ++i)
    if (i != axis && (n->shape[i] != shrunk->shape[i] || shrunk->shape[i] != x->shape[i])) return false;
  UOpRef step = divided(c, x->shape[axis], parts), before = n->indices()[axis], behind = n->indices()[rank + axis];
  bool isOn = before == step && behind->constIndex() == 0 && shrunk->indices()[axis]->constIndex() == 0,
       isBack = behind == step && before->constIndex() == 0 && shrunk->indices()[axis] == step;
  if (!(isOn || isBack) || n->shape[axis] != x->shape[axis] || n->ints[0] != 0) return false;
  UOpRef v = natural(x);
  return v && set(n, axes, c.make(Op::Shift, {v}, {isOn ? 1 : -1, 0}, groupText(mesh, axes[axis])));
}

bool Partition::pad(UOpRef n) {
  UOpRef x = n->src[0];
  unsigned rank = n->rank();
  List both = now(n->indices());
  auto isPadded = [&](unsigned i) { return both[i]->constIndex() != 0 || both[rank + i]->constIndex() != 0; };
  bool isOne = true;
  auto along = x->is(Op::Shrink) ? slicedAxis(x, isOne) : std::nullopt; // a cut axis
  bool ofSlice = along && isOne && isPadded(*along);                    // which gets back what it has lost
  if (ofSlice && translated(n, *along)) return true;
  if (!error.empty()) return false;
  if (!ofSlice) along.reset();
  Axes cut = axesOf(ofSlice ? x->src[0] : x);
  for (unsigned i = 0; i < rank; ++i) {
    if (!cut[i] || along == i || !isPadded(i)) continue;
    if (along) return isCutThere(n, x, i, "padding");
    along = i;
  }
  UOpRef v = ofSlice ? shrunk(x, along) : natural(x);
  if (v && along) {
    UOpRef begin = ofSlice ? now(x->indices()[*along]) : c.index(0);
    Slide s{begin, now(x->shape[*along]), both[*along], now(n->shape[*along]), uint64_t(n->ints[0])};
    v = slid(n, v, *along, s, cut[*along]);
    both[*along] = both[rank + *along] = c.index(0);
  }
  return v && set(n, cut, remade(n, {v}, both));
}

/// The cut axis along which a shrink leaves out something.
std::optional<unsigned> Partition::slicedAxis(UOpRef n, bool &isOne) {
  UOpRef x = n->src[0];
  std::optional<unsigned> out;
  for (unsigned i = 0; i < n->rank(); ++i) {
    if (!axesOf(x)[i] || (n->indices()[i]->constIndex() == 0 && n->shape[i] == x->shape[i])) continue;
    if (out) isOne = false;
    out = i;
  }
  return out;
}

/// A shrink on the part of its source, but for one axis, which stays as it is.
UOpRef Partition::shrunk(UOpRef n, std::optional<unsigned> along) {
  UOpRef x = n->src[0], v = natural(x);
  List both = now(n->indices());
  if (!v) return nullptr;
  for (unsigned i = 0; i < n->rank(); ++i) {
    if (along == i)
      both[i] = c.index(0), both[n->rank() + i] = v->shape[i];
    else if (MeshAxes a = axesOf(x)[i])
      both[n->rank() + i] = divided(c, both[n->rank() + i], mesh.count(a));
  }
  return remade(n, {v}, both);
}

bool Partition::shrink(UOpRef n) {
  UOpRef x = n->src[0];
  bool isOne = true;
  auto along = slicedAxis(n, isOne);
  if (!isOne) return isCutThere(n, x, *along, "cutting off");
  Axes cut = axesOf(x);
  UOpRef v = shrunk(n, along);
  if (v && along) {
    UOpRef size = now(n->shape[*along]);
    v = slid(n, v, *along, {now(n->indices()[*along]), size, c.index(0), size, 0}, cut[*along]);
    if (!v) { // a pad may give the result an extent that shards divide
      frame->images[n].axes = Axes(n->rank(), 0);
      frame->images[n].refused = std::exchange(error, "");
      return true;
    }
  }
  return v && set(n, cut, v);
}

bool Partition::flip(UOpRef n) {
  for (int64_t a : n->ints)
    if (axesOf(n->src[0])[a]) return isCutThere(n, n->src[0], a, "reversing");
  return passes(n);
}

bool Partition::window(UOpRef n) {
  UOpRef x = n->src[0];
  unsigned axis = n->ints[0];
  bool isOne = true,
       ofSlice = x->is(Op::Shrink) && !frame->images.at(x).refused.empty() && slicedAxis(x, isOne) == axis && isOne;
  Axes axes = axesOf(ofSlice ? x->src[0] : x);
  MeshAxes by = axes[axis];
  int64_t size = n->ints[1], stride = n->ints[2], dilation = n->ints[3];
  if (by && size - 1 > (stride - 1) / dilation) return isCutThere(n, x, axis, "a window");
  UOpRef v = ofSlice ? shrunk(x, axis) : natural(x);
  if (v && by) { // windows that do not overlap: each is among as many elements as it is away from the next one
    UOpRef whole = idxMul(c, now(n->shape[axis]), c.index(stride));
    v = slid(n, v, axis, {ofSlice ? now(x->indices()[axis]) : c.index(0), whole, c.index(0), whole, 0}, by);
  }
  axes.push_back(0);
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

/// n is `same`, of whole tensors, which has rules.
bool Partition::become(UOpRef n, UOpRef same) {
  m.origins.inherit(same, n);
  if (!sweep({same})) return false;
  Image image = frame->images.at(same);
  if (!image.part) { // n is not computed by its own op
    if (!natural(same)) return false;
    image = frame->images.at(same);
  }
  frame->images[n] = std::move(image);
  return true;
}

bool Partition::reduce(UOpRef n) {
  UOpRef x = n->src[0];
  ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
  if (hasCutLabel(s.domain, axesOf(x))) { // what takes no part is the identity, which changes no sum
    UOpRef mask = inDomain(b, s.domain, n->indices(), x->shape);
    UOpRef none = b.bits(x->dtype, reduceIdentity(s.kind, x->dtype));
    s.domain.clear();
    return become(n, b.reduce(s, b.select(mask, x, b.splat(none, x->shape)), {}));
  }
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

/// How far an index is at most from what one label says of it: the least and the greatest.
static std::pair<int64_t, int64_t> aroundLabel(UOpRef n, const AffineForm &f, int64_t label) {
  int64_t least = f.constant, most = f.constant;
  for (auto [l, k] : f.terms)
    if (l != label) (k < 0 ? least : most) += k * (n->indices()[l]->hi - 1);
  return {least, most};
}

/// The label along which an axis of so many elements is cut if the label is: it alone, or k times it with others around
/// (a convolution), if the axis is k times as long as the label.
std::optional<unsigned> Partition::carrierOf(UOpRef n, const AffineForm &f, UOpRef extent) {
  if (f.isLabel()) return f.terms[0].first;
  constexpr int64_t farthest = 1 << 20;
  if (f.divisor != 1 || std::abs(f.constant) > farthest) return std::nullopt;
  for (auto [label, k] : f.terms) {
    if (k < 1 || k > farthest || idxMul(c, n->indices()[label], c.index(k)) != extent) continue;
    bool near = llvm::all_of(f.terms, [&, label = label](auto t) {
      UOpRef e = n->indices()[t.first];
      return t.first == label || (e->constIndex() && e->hi >= 1 && e->hi <= farthest && std::abs(t.second) <= farthest);
    });
    if (near) return label;
  }
  return std::nullopt;
}

/// The part x with what the shards before and behind it have next to it; what is outside of all is +0, as what is read
/// there. f is the index of it.
UOpRef Partition::withNeighbours(UOpRef n, unsigned label, UOpRef x, unsigned axis, AffineForm &f, MeshAxes by) {
  int64_t step = 0;
  for (auto [l, k] : f.terms)
    if (l == int64_t(label)) step = k;
  auto [least, most] = aroundLabel(n, f, label);
  int64_t before = std::max<int64_t>(0, -least), behind = std::max<int64_t>(0, most - (step - 1));
  if (std::max(before, behind) > x->shape[axis]->lo) {
    fail(n, "axis " + Twine(axis) + " of an operand is cut, and a sum reads " + Twine(std::max(before, behind)) +
                " elements beside a part, which may have " + Twine(x->shape[axis]->lo) +
                ": write a reshard before it that leaves this axis whole");
    return nullptr;
  }
  auto neighbour = [&](int64_t count, bool isBefore) {
    List begin(x->rank(), c.index(0)), size(x->shape.begin(), x->shape.end());
    size[axis] = c.index(count);
    if (isBefore) begin[axis] = idxSub(c, x->shape[axis], size[axis]);
    return c.make(Op::Shift, {b.shrink(x, begin, size)}, {isBefore ? 1 : -1, 0}, groupText(mesh, by));
  };
  List parts;
  if (before) parts.push_back(neighbour(before, true));
  parts.push_back(x);
  if (behind) parts.push_back(neighbour(behind, false));
  f.constant += before;
  return parts.size() > 1 ? b.concat(parts, axis) : x;
}

/// An axis that is a label is cut as the label is, for all operands; a label that is summed leaves a part of the sum.
bool Partition::contract(UOpRef n) {
  ContractSpec s = llvm::cantFail(decodeContract(n->ints));
  if (!s.outside.empty()) return fail(n, "a contract that leaves out taps comes after this pass");
  Axes cut(s.kept + s.reduced, 0);
  SmallVector<unsigned, 8> through(cut.size(), 0); // bits: operands along whose axes a label is cut
  llvm::SmallVector<UOpRef, 8> by(cut.size(), nullptr);
  const llvm::SmallVector<AffineForm, 4> *lists[] = {&s.a, &s.b};
  for (unsigned o = 0; o < 2; ++o)
    for (auto [i, f] : llvm::enumerate(*lists[o])) {
      MeshAxes a = axesOf(n->src[o])[i];
      if (!a) continue;
      auto carrier = carrierOf(n, f, n->src[o]->shape[i]);
      if (!carrier) return isCutThere(n, n->src[o], i, "a sum over neighbours");
      unsigned l = *carrier;
      if (cut[l] && cut[l] != a) return disagree(n, by[l], n->src[o]);
      cut[l] = a, by[l] = n->src[o], through[l] |= 1u << o;
    }
  std::optional<Ring> round;
  for (unsigned l = 0; l < cut.size(); ++l)
    for (unsigned k = 0; k < l; ++k)
      if ((cut[l] & cut[k]) && (round || !(round = ringOf(s, cut, through, k, l)))) return disagree(n, by[k], by[l]);
  if (hasCutLabel(s.domain, cut)) {
    // Conditions of kept labels alone are tested of results. What is no sum is what sums begin with.
    ContractSpec rest = s;
    SmallVector<AffineForm, 2> ofResults;
    List limits, others;
    rest.domain.clear();
    for (auto [f, bound] : llvm::zip(s.domain, n->indices().drop_front(s.kept + s.reduced))) {
      bool summed = llvm::any_of(f.terms, [&](auto t) { return t.first >= s.kept; });
      summed ? rest.domain.push_back(f) : ofResults.push_back(f);
      (summed ? others : limits).push_back(bound);
    }
    auto isThere = [](UOpRef e) { return e->lo > 0; };
    if (ofResults.empty() && !round) round = inParts(s, cut);
    if (ofResults.empty() && round) return ring(n, s, *round, cut);
    if (ofResults.empty() || s.unit || isComplex(n->dtype) || !s.reduced ||
        !llvm::all_of(n->indices().slice(s.kept, s.reduced), isThere))
      return fail(n, "which products take part depends on an index along an axis that is cut: write a reshard of an "
                     "operand before it that leaves this axis whole");
    UOpRef sum = b.contract(rest, n->src[0], n->src[1], n->indices().take_front(s.kept + s.reduced), others);
    UOpRef none = isFloat(n->dtype) ? b.lit(n->dtype, -0.0) : b.litInt(n->dtype, 0);
    return become(n, b.select(inDomain(b, ofResults, limits, n->shape), sum, b.splat(none, n->shape)));
  }
  if (round) return ring(n, s, *round, cut);
  List src;
  for (unsigned o = 0; o < 2; ++o) {
    Axes want;
    SmallVector<unsigned, 6> along;
    for (auto [i, f] : llvm::enumerate(*lists[o])) {
      auto carrier = carrierOf(n, f, n->src[o]->shape[i]);
      if (hasCutLabel(f, cut) &&
          (!carrier || llvm::any_of(f.terms, [&](auto t) { return cut[t.first] && t.first != int64_t(*carrier); })))
        return fail(n, "an index of axis " + Twine(i) + " of " + said(n->src[o]) + " is made of a label that is cut");
      want.push_back(carrier ? cut[*carrier] : 0);
      along.push_back(carrier.value_or(0));
    }
    UOpRef x = as(n->src[o], want);
    for (unsigned i = 0; i < want.size() && x; ++i)
      if (AffineForm &f = (o ? s.b : s.a)[i]; want[i] && !f.isLabel())
        x = withNeighbours(n, along[i], x, i, f, want[i]);
    if (!src.emplace_back(x)) return false;
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
  ArrayRef<UOpRef> all = indices;
  UOpRef sum = b.contract(s, src[0], src[1], all.take_front(cut.size()), all.drop_front(cut.size()));
  return setPart(n, axes, sum, over, ReduceKind::Sum);
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
