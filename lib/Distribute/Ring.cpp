//===- Ring.cpp: products of parts that go round a ring ----------------------===//
// Takes:    a contract in which an axis of the mesh cuts one label through one operand and another one through the
//           other: scores of queries and keys, values by their weights, where tokens are cut.
// Gives:    a turn for each shard of the axis: the part of one operand goes round, and each shard computes with it what
//           is its own. Where a condition ties a label that is cut to one that is whole, as the gradient of causal
//           scores by their keys does, the parts of that one are taken in turns too.
// Keeps:    bits: where the label that moves is kept those of whole tensors; where it is summed, those of an all_reduce
//           of the parts' sums: they are added by its tree in the order of the mesh, in whatever turn each was made.
// Does not: gather anything, or choose: the label that the result has first stays, the other operand moves.
#include "Partition.h"
#include "astra/IR/Text.h"

using namespace astra;
using namespace astra::distribute;

static constexpr int64_t longest = 64; // turns are written one behind another

/// Whether the labels are axes of both operands as they are.
static bool arePlain(const ContractSpec &s, unsigned one, unsigned other) {
  const llvm::SmallVector<AffineForm, 4> *lists[] = {&s.a, &s.b};
  for (const auto *forms : lists)
    for (const AffineForm &f : *forms)
      for (auto [label, k] : f.terms)
        if ((label == one || label == other) && !f.isLabel()) return false;
  return true;
}

/// The label that is cut of the first condition that has one, and the one that is whole.
std::optional<Partition::Ring> Partition::inParts(const ContractSpec &s, ArrayRef<MeshAxes> cut) {
  for (const AffineForm &f : s.domain) {
    if (f.terms.size() != 2 || !cut[f.terms[0].first] == !cut[f.terms[1].first]) continue;
    bool isFirst = cut[f.terms[0].first] != 0;
    unsigned stays = f.terms[!isFirst].first, moves = f.terms[isFirst].first;
    return arePlain(s, stays, moves) ? std::optional(Ring{stays, moves, 2, cut[stays]}) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Partition::Ring> Partition::ringOf(const ContractSpec &s, ArrayRef<MeshAxes> cut,
                                                 ArrayRef<unsigned> through, unsigned stays, unsigned moves) const {
  if (cut[stays] != cut[moves] || stays >= s.kept || (through[stays] ^ through[moves]) != 3 ||
      mesh.count(cut[moves]) > longest)
    return std::nullopt;
  unsigned operand = through[moves] == 2;
  const llvm::SmallVector<AffineForm, 4> *lists[] = {&s.a, &s.b};
  if (hasLabel(*lists[operand], stays) || !arePlain(s, stays, moves)) return std::nullopt;
  return Ring{stays, moves, operand, cut[moves]};
}

bool Partition::ring(UOpRef n, const ContractSpec &s, const Ring &r, ArrayRef<MeshAxes> cut) {
  const llvm::SmallVector<AffineForm, 4> *lists[] = {&s.a, &s.b};
  UOpRef src[2];
  std::optional<unsigned> met[2]; // the axis of an operand that stays, of which the turn's part is taken
  for (unsigned o = 0; o < 2; ++o) {
    Axes want;
    for (auto [i, f] : llvm::enumerate(*lists[o])) {
      if (!f.isLabel() && llvm::any_of(f.terms, [&](auto t) { return cut[t.first] != 0; }))
        return fail(n, "an index of axis " + Twine(i) + " of " + said(n->src[o]) + " is made of a label that is cut");
      bool meets = o != r.operand && f.isLabel() && f.terms[0].first == r.moves;
      if (meets) met[o] = i;
      want.push_back(f.isLabel() && !meets ? cut[f.terms[0].first] : 0);
    }
    if (!(src[o] = as(n->src[o], want))) return false;
  }
  List extents = now(n->indices());
  MeshAxes over = 0;
  for (unsigned l = 0; l < cut.size(); ++l) {
    MeshAxes by = l == r.moves ? r.by : cut[l];
    if (!by) continue;
    UOpRef part = divided(c, extents[l], mesh.count(by));
    if (!part)
      return fail(n, "an extent of " + indexText(extents[l]) + " is not divided by the " + Twine(mesh.count(by)) +
                         " shards");
    extents[l] = part;
    if (l >= s.kept && l != r.moves) over |= cut[l];
  }
  ArrayRef<UOpRef> labels = ArrayRef<UOpRef>(extents).take_front(cut.size());
  ArrayRef<UOpRef> limits = ArrayRef<UOpRef>(extents).drop_front(cut.size());
  auto coefficient = [](const AffineForm &f, int64_t label) {
    for (auto [l, k] : f.terms)
      if (l == label) return k;
    return int64_t(0);
  };
  for (const AffineForm &f : s.domain) {
    bool isCut = llvm::any_of(f.terms, [&](auto t) { return cut[t.first] != 0; });
    UOpRef apart = idxAdd(c, idxMul(c, c.index(coefficient(f, r.stays)), labels[r.stays]),
                          idxMul(c, c.index(coefficient(f, r.moves)), labels[r.moves]));
    bool others =
        llvm::any_of(f.terms, [&](auto t) { return cut[t.first] != 0 && t.first != r.stays && t.first != r.moves; });
    if (isCut && (others || apart->constIndex() != 0 || s.unit || isComplex(n->dtype)))
      return fail(n, "which products take part depends on an index along an axis that is cut, and not on how far two "
                     "parts are apart alone: write a reshard of an operand before it that leaves this axis whole");
  }

  int64_t count = mesh.count(r.by);
  if (count > longest)
    return fail(n, "its parts would take " + Twine(count) + " turns; " + Twine(longest) + " are written out at most");
  UOpRef mine = rankIndex(r.by);
  auto wrapped = [&](UOpRef number) { // of a shard that is before the first one
    UOpRef all = b.splat(b.litInt(DType::I64, count), number->shape);
    return b.select(b.lt(number, b.splat(b.litInt(DType::I64, 0), number->shape)), b.add(number, all), number);
  };
  // Products of parts that are so many shards apart; what takes no part at all is what a sum begins with.
  auto product = [&](ArrayRef<UOpRef> operands, int64_t apart) -> UOpRef {
    ContractSpec part = s;
    part.domain.clear();
    List all(labels.begin(), labels.end());
    for (auto [f, limit] : llvm::zip(s.domain, limits)) {
      UOpRef moved = idxMul(c, c.index(-coefficient(f, r.moves) * apart), labels[r.moves]);
      UOpRef here = idxAdd(c, limit, moved), least = here, most = here;
      for (auto [l, k] : f.terms) {
        UOpRef farthest = idxMul(c, c.index(k), idxSub(c, labels[l], c.index(1)));
        (k < 0 ? least : most) = idxAdd(c, k < 0 ? least : most, farthest);
      }
      if (least->lo >= 0) continue;
      if (most->hi < 0) {
        UOpRef none = isFloat(n->dtype) ? b.lit(n->dtype, -0.0) : b.litInt(n->dtype, 0);
        return b.splat(none, labels.take_front(s.kept));
      }
      part.domain.push_back(f), all.push_back(here);
    }
    return b.contract(part, operands[0], operands[1], ArrayRef<UOpRef>(all).take_front(labels.size()),
                      ArrayRef<UOpRef>(all).drop_front(labels.size()));
  };
  List parts;
  for (int64_t turn = 0; turn < count; ++turn) {
    if (turn && r.operand < 2) src[r.operand] = c.make(Op::Shift, {src[r.operand]}, {1, 1}, groupText(mesh, r.by));
    UOpRef operands[] = {src[0], src[1]};
    UOpRef before = b.sub(mine, b.litInt(DType::I64, turn)); // whose part it is
    for (unsigned o = 0; o < 2; ++o)
      if (met[o]) operands[o] = b.gather(axisSplit(b, src[o], *met[o], count), wrapped(before), *met[o]);
    UOpRef made = product(operands, turn);
    if (UOpRef other = turn ? product(operands, turn - count) : made; other != made) {
      UOpRef isRound = b.lt(before, b.litInt(DType::I64, 0));
      made = b.select(b.splat(isRound, made->shape), other, made);
    }
    List one(made->shape.begin(), made->shape.end());
    one.insert(one.begin(), c.index(1));
    parts.push_back(b.reshape(made, one));
  }
  List shape{c.index(count)};
  UOpRef turns = wrapped(b.sub(b.splat(mine, shape), b.iota(DType::I64, shape, 0)));
  UOpRef all = b.gather(b.concat(parts, 0), turns, 0); // in the order of the mesh

  Axes axes(cut.begin(), cut.begin() + s.kept);
  if (r.moves < s.kept) {
    axes[r.moves] = 0;
    return setPart(n, axes, axesJoined(b, axisMoved(b, all, 0, r.moves), r.moves), over, ReduceKind::Sum);
  }
  List sums, rest(all->shape.begin() + 1, all->shape.end()), begin(all->rank(), c.index(0)), size(all->shape);
  size[0] = c.index(1);
  for (int64_t i = 0; i < count; ++i) {
    begin[0] = c.index(i);
    sums.push_back(b.reshape(b.shrink(all, begin, size), rest));
  }
  for (; sums.size() > 1; sums.resize((sums.size() + 1) / 2))
    for (size_t i = 0; i < sums.size(); i += 2)
      sums[i / 2] = i + 1 < sums.size() ? b.add(sums[i], sums[i + 1]) : sums[i];
  return setPart(n, axes, sums[0], over, ReduceKind::Sum);
}
