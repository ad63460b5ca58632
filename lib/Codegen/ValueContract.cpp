//===- ValueContract.cpp: contractions as folds ----------------------------===//
// Takes:    a contraction at an index of its result.
// Gives:    folds in the order of chain512 (N4): nested folds of its blocks. Of a tile that the threads of a GPU share,
//           the operands come from fast memory, and threads may have a chain each: their sums meet there too.
// Keeps:    the order under every plan: a plan only says who has which part of a sum, and where it is spilled.
#include "Value.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/Holes.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// Whether a form is a place of an axis of this extent wherever its labels, of these extents, are.
static bool staysInside(const AffineForm &f, UOpRef extent, ArrayRef<UOpRef> extents) {
  constexpr int64_t large = int64_t(1) << 40;
  auto size = extent->constIndex();
  int64_t least = f.constant, most = f.constant;
  if (!size || f.divisor < 1 || std::abs(f.constant) > large || f.terms.size() > 64) return false;
  for (auto [label, k] : f.terms) {
    auto e = extents[label]->constIndex();
    int64_t reach;
    if (!e || *e < 1 || llvm::MulOverflow(k, *e - 1, reach) || std::abs(reach) > large) return false;
    (k < 0 ? least : most) += reach;
  }
  return least >= 0 && most / f.divisor < *size;
}

UOpRef ValueAt::operand(UOpRef x, ArrayRef<AffineForm> forms, ArrayRef<UOpRef> labels, UOpRef &takesPart, UOpRef gate,
                        ArrayRef<UOpRef> extents, ArrayRef<unsigned> windows) {
  SmallVector<UOpRef, 4> index;
  UOpRef valid = nullptr;
  for (auto [axis, f, extent] : llvm::enumerate(forms, x->shape)) {
    UOpRef e = c.index(f.constant);
    for (auto [label, k] : f.terms) e = idxAdd(c, e, idxMul(c, labels[label], c.index(k)));
    if (f.divisor != 1) {
      UOpRef d = c.index(f.divisor);
      takesPart = both(takesPart, lt(simplifyIndex(c, idxMod(c, e, d)), c.index(1)));
      e = idxDiv(c, e, d);
    }
    e = simplifyIndex(c, e);
    bool inside = f.isLabel() || (!extents.empty() && staysInside(f, extent, extents));
    if (llvm::is_contained(windows, axis)) { // which bounds may not tell
      if (lt(c.index(-1), e)) e = idxMax(c, e, c.index(0));
      if (lt(e, extent)) e = idxMin(c, e, idxSub(c, extent, c.index(1)));
      e = simplifyIndex(c, e);
      inside = true;
    }
    if (!inside) valid = both(valid, both(lt(c.index(-1), e), lt(e, extent)));
    index.push_back(e);
  }
  return select(valid, at(x, index, both(gate, both(valid, takesPart))), c.literal(x->dtype, 0));
}

/// The operand's element from a stage of all its rows and the panel's columns.
UOpRef ValueAt::staged(UOpRef x, ArrayRef<AffineForm> forms, ArrayRef<UOpRef> labels, int64_t reduced, UOpRef length,
                       UOpRef columns) {
  UOpRef k = range(length, RangeKind::Fold), v = range(c.index(panel.vectors), RangeKind::Fold),
         l = range(c.index(panel.lanes), RangeKind::Vector), takesPart = nullptr;
  SmallVector<UOpRef, 8> own(labels);
  own[reduced] = k;
  own[panel.label] = idxAdd(c, panel.first, idxAdd(c, idxMul(c, v, c.index(panel.lanes)), l));
  std::pair tileMask{masked, mask};
  if (masked) masked = l, mask = lt(own[panel.label], columns);
  UOpRef element = operand(x, forms, own, takesPart, nullptr);
  std::tie(masked, mask) = tileMask;
  return c.make(Op::At, {c.make(Op::Stage, {element, k, v, l}), labels[reduced], panel.vector, panel.lane}, {1});
}

/// Prefetches the tile's part of the panel behind its own, where that is one piece of memory and its size is known.
void ValueAt::prefetchPanel(UOpRef x, ArrayRef<AffineForm> forms, ArrayRef<UOpRef> labels, const ContractSpec &s,
                            ArrayRef<UOpRef> lengths) {
  constexpr int64_t most = 1 << 24; // steps
  auto slot = slotOf.find(x);
  if (slot == slotOf.end() || !llvm::all_of(forms, [](const AffineForm &f) { return f.isLabel(); })) return;
  int64_t steps = 1, each = llvm::divideCeil(nextPanel.width, nextPanel.turns),
          elements = std::max<int64_t>(lineBytes / std::max(1u, byteSize(x->dtype)), 1), asked = s.reduced;
  for (int64_t i = 0; i < s.reduced; ++i) {
    auto n = lengths[i]->constIndex();
    if (!n || *n < 1 || *n > most || (steps *= *n) > most) return;
  }
  // A short loop within a line's steps asks once, before it: three taps of a convolution (72 channels, 14 x 14, for
  // x86-64-v3, where clang unrolls them and has no registers left: 472 and 207 us).
  for (int64_t within = 1; asked > 1; --asked)
    if ((within *= lengths[asked - 1]->ints[0]) * each > elements) break;
  UOpRef step = c.index(0);
  for (int64_t i = 0; i < s.reduced; ++i)
    step = idxAdd(c, idxMul(c, step, lengths[i]), i < asked ? labels[s.kept + i] : c.index(0));
  auto begin = [&](int64_t panel) {
    SmallVector<UOpRef, 4> index;
    for (const AffineForm &f : forms) {
      int64_t label = f.terms[0].first;
      index.push_back(label >= s.kept            ? c.index(0)
                      : label == nextPanel.label ? idxAdd(c, nextPanel.first, c.index(panel * nextPanel.width))
                                                 : labels[label]);
    }
    return addressIn(slot->second, index);
  };
  int64_t panel = steps * nextPanel.width, ofTurn = llvm::divideCeil(panel, nextPanel.turns);
  if (simplifyIndex(c, idxSub(c, begin(1), begin(0)))->constIndex() != panel) return;
  // Behind the last panel there is none, maybe not even memory: what asks for that takes time.
  UOpRef behind = idxMin(c, c.index(panel), idxMul(c, idxSub(c, nextPanel.last, nextPanel.first), c.index(steps)));
  UOpRef at = idxAdd(c, idxMul(c, nextPanel.turn, c.index(ofTurn)), idxMul(c, step, c.index(each)));
  at = idxAdd(c, idxAdd(c, begin(0), behind), at);
  for (int64_t offset = 0; offset < each; offset += elements)
    hints.push_back(
        c.make(Op::Load, {bufferNodes[slot->second], simplifyIndex(c, idxAdd(c, at, c.index(offset)))}, {1}));
}

/// How a tile goes along what is summed in a block of chain512: by `kc` steps that are in fast memory at once. The
/// outer labels are loops of their own, or, where the innermost one is short, all are walked as one.
ValueAt::Steps ValueAt::stepsOf(ArrayRef<Along> chain, int64_t most, llvm::MutableArrayRef<UOpRef> labels,
                                llvm::SmallVectorImpl<UOpRef> &loops) {
  bool fixed = llvm::all_of(chain, [](const Along &a) { return a.length->isConst(); });
  bool flat = chain.size() > 1 && fixed && chain.back().length->ints[0] % most;
  Steps steps;
  for (; !flat && chain.size() > 1; chain = chain.drop_front()) {
    loops.push_back(range(chain[0].length, RangeKind::Fold));
    labels[chain[0].label] = idxAdd(c, chain[0].begin, idxMul(c, loops.back(), c.index(chain[0].step)));
  }
  SmallVector<UOpRef, 4> lengths;
  for (const Along &a : chain) lengths.push_back(a.length);
  steps.extent = idxProduct(c, lengths);
  steps.kc = std::min<int64_t>(most, llvm::PowerOf2Ceil(std::max<int64_t>(steps.extent->hi, 1)));
  UOpRef size = c.index(steps.kc), tiles = simplifyIndex(c, idxCeilDiv(c, steps.extent, size)), begin = c.index(0);
  if (tiles->constIndex() != 1) {
    loops.push_back(range(tiles, RangeKind::Fold));
    begin = idxMul(c, loops.back(), size);
  }
  UOpRef count = steps.extent->isConst() ? simplifyIndex(c, idxMin(c, steps.extent, size)) : size;
  steps.own = c.index(0);
  if (count->constIndex() != 1) loops.push_back(steps.own = range(count, RangeKind::Fold));
  // A block of 512 that is cut off a length of whole tiles has whole tiles.
  bool whole = !flat && chain.size() == 1 && chain[0].step == 1 && chain[0].all->isConst() &&
               chain[0].all->ints[0] % steps.kc == 0 && chain[0].length != chain[0].all;
  steps.inside = [this, begin, whole, extent = steps.extent](UOpRef k) {
    return whole ? nullptr : lt(idxAdd(c, begin, k), extent);
  };
  SmallVector<Along, 4> along(chain);
  steps.place = [this, begin, lengths, along](UOpRef k, llvm::MutableArrayRef<UOpRef> at) {
    auto index = unflatten(c, simplifyIndex(c, idxAdd(c, begin, k)), lengths);
    for (auto [a, i] : llvm::zip(along, index))
      at[a.label] = simplifyIndex(c, idxAdd(c, a.begin, idxMul(c, i, c.index(a.step))));
  };
  return steps;
}

ValueAt::Steps ValueAt::wordsOf(Steps steps, int64_t words, int64_t label, UOpRef own) {
  Steps out = steps;
  UOpRef each = c.index(words);
  out.kc *= words;
  out.extent = idxMul(c, steps.extent, each);
  out.own = idxAdd(c, idxMul(c, steps.own, each), own);
  out.place = [this, steps, each, label](UOpRef k, llvm::MutableArrayRef<UOpRef> at) {
    steps.place(simplifyIndex(c, idxDiv(c, k, each)), at);
    at[label] = simplifyIndex(c, idxMod(c, k, each));
  };
  out.inside = [this, steps, each](UOpRef k) { return steps.inside(simplifyIndex(c, idxDiv(c, k, each))); };
  return out;
}

llvm::SmallVector<UOpRef, 6> ValueAt::spillLoops(ArrayRef<Along> chain, llvm::MutableArrayRef<UOpRef> labels) {
  // From the innermost label outwards: whole labels while they are few steps together, then a part of one.
  int64_t steps = 1;
  size_t whole = chain.size();
  for (; whole > 0 && chain[whole - 1].length->hi <= spill.kc / steps; --whole)
    steps *= std::max<int64_t>(chain[whole - 1].length->hi, 1);
  UOpRef part = c.index(spill.kc / steps);
  SmallVector<UOpRef, 6> loops;
  for (auto [i, a] : llvm::enumerate(chain)) {
    UOpRef at;
    if (i + 1 == whole && part->ints[0] > 1) {
      loops.push_back(range(simplifyIndex(c, idxCeilDiv(c, a.length, part)), RangeKind::Around));
      UOpRef begin = idxMul(c, loops.back(), part);
      loops.push_back(range(simplifyIndex(c, idxMin(c, part, idxSub(c, a.length, begin))), RangeKind::Fold));
      at = idxAdd(c, begin, loops.back());
    } else {
      loops.push_back(at = range(a.length, i < whole ? RangeKind::Around : RangeKind::Fold));
    }
    labels[a.label] = idxAdd(c, a.begin, idxMul(c, at, c.index(a.step)));
  }
  return loops;
}

ChainBlocks astra::chainBlocks(Context &c, ArrayRef<UOpRef> lengths) {
  ChainBlocks b;
  b.length.resize(lengths.size()), b.count.resize(lengths.size());
  UOpRef one = c.index(1), size = one;
  for (size_t i = lengths.size(); i-- > 0;) {
    UOpRef most = i + 1 == lengths.size() ? c.index(chainBlock)
                                          : idxMax(c, one, simplifyIndex(c, idxDiv(c, c.index(mostChainBlock), size)));
    b.length[i] = simplifyIndex(c, idxMin(c, lengths[i], most));
    size = idxMul(c, size, idxMax(c, b.length[i], one));
    b.count[i] = simplifyIndex(c, idxCeilDiv(c, lengths[i], idxMax(c, b.length[i], one)));
  }
  auto add = [&](size_t i) {
    if (b.count[i]->hi > 1) b.order.push_back(i);
  };
  if (lengths.size()) add(lengths.size() - 1);
  for (size_t i = 0; i + 1 < lengths.size(); ++i) add(i);
  return b;
}

int64_t ChainBlocks::most() const {
  constexpr int64_t many = 1 << 30;
  int64_t n = 1;
  for (int64_t i : order) n = std::min(n * std::min(count[i]->hi, many), many);
  return n;
}

UOpRef ValueAt::tileOperand(UOpRef r, const ContractSpec &s, int side, const Steps &steps, ArrayRef<UOpRef> labels,
                            ArrayRef<UOpRef> lengths, UOpRef otherwise) {
  const Shared::Side &points = shared.side[side];
  int64_t bytes = std::max(1u, byteSize(r->dtype)), lanes = std::max<int64_t>(16 / bytes, 1);
  bool dealt = shared.chains > 1;
  // A chain's points lie beside those of the next one, `together` at a time, as the threads that read them do.
  UOpRef chains = c.index(shared.chains), together = c.index(points.together);
  auto div = [&](UOpRef x, UOpRef by) { return simplifyIndex(c, idxDiv(c, x, by)); };
  auto mod = [&](UOpRef x, UOpRef by) { return simplifyIndex(c, idxMod(c, x, by)); };
  auto within = [&](UOpRef number, UOpRef chain, UOpRef point) { // number * together + point mod together, of a chain
    UOpRef group = chain ? idxAdd(c, idxMul(c, number, chains), chain) : number;
    return simplifyIndex(c, idxAdd(c, idxMul(c, group, together), mod(point, together)));
  };
  UOpRef own = dealt ? within(div(points.own, together), shared.chain, points.own) : points.own;
  ChainBlocks blocks = chainBlocks(c, lengths);
  auto whole = [&](UOpRef extent) { return extent->isConst() && extent->ints[0] % lanes == 0; };
  return fromBlock(steps.kc, points.points * shared.chains, steps.own, own, bytes,
                   [&](UOpRef k, UOpRef point, UOpRef firstK, UOpRef firstPoint) {
                     UOpRef group = dealt ? div(point, together) : nullptr,
                            chain = dealt ? mod(group, chains) : nullptr, unused = nullptr;
                     auto ofTile = [&](UOpRef p) {
                       return dealt ? within(div(div(p, together), chains), nullptr, p) : p;
                     };
                     // The labels of a step, in the chain to which the element belongs.
                     auto labelsAt = [&](UOpRef step) {
                       SmallVector<UOpRef, 8> at(labels);
                       points.place(ofTile(point), at);
                       steps.place(step, at);
                       if (dealt)
                         for (UOpRef &l : llvm::MutableArrayRef(at).drop_front(s.kept))
                           l = simplifyIndex(c, idxSubstitute(c, l, {shared.chain}, {chain}));
                       return at;
                     };
                     SmallVector<UOpRef, 8> at = labelsAt(k), first = labelsAt(firstK);
                     UOpRef valid = steps.inside(whole(steps.extent) ? firstK : k);
                     if (dealt && blocks.order.empty()) valid = both(valid, lt(chain, c.index(1)));
                     for (int64_t i : blocks.order)
                       if (dealt) {
                         bool vectors = whole(lengths[i]) && whole(blocks.length[i]);
                         valid = both(valid, lt((vectors ? first : at)[s.kept + i], lengths[i]));
                       }
                     UOpRef inside = points.inside(ofTile(whole(points.extent) ? firstPoint : point));
                     UOpRef element = operand(r->src[side], side ? s.b : s.a, at, unused, both(inside, valid));
                     return select(valid, asProduct(element, r), otherwise);
                   });
}

UOpRef ValueAt::chainSum(UOpRef sum, UOpRef chain) {
  SmallVector<UOpRef, 4> closed{sum, shared.chain}, at{nullptr, chain};
  for (UOpRef d : shared.place)
    if (!d->isConst()) closed.push_back(d), at.push_back(d);
  at[0] = c.make(Op::Stage, closed);
  return c.make(Op::At, at, {1});
}

/// The least and the greatest value of an index among elements that are computed side by side, vectors and copies; null
/// where it is no sum of their numbers.
static std::pair<UOpRef, UOpRef> boundsOverLanes(Context &c, UOpRef x) {
  UOpRef least = x, most = x;
  for (const IndexTerm &t : terms(x)) {
    auto isLane = [](UOpRef n) {
      return n->op == Op::Range &&
             (RangeKind(n->ints[1]) == RangeKind::Vector || RangeKind(n->ints[1]) == RangeKind::Unroll);
    };
    if (t.atoms.size() == 1 && isLane(t.atoms[0])) {
      UOpRef range = t.atoms[0], end = idxSub(c, range->src[0], c.index(1)), none = c.index(0);
      least = idxSubstitute(c, least, {range}, {t.coefficient > 0 ? none : end});
      most = idxSubstitute(c, most, {range}, {t.coefficient > 0 ? end : none});
    } else if (llvm::any_of(topoSort(t.atoms), isLane))
      return {nullptr, nullptr};
  }
  return {least, most};
}

/// A long sum whose blocks of chain512 are lanes of vectors: their sums are spilled and are added in their order,
/// then come the blocks that are left. Of one label, all of which takes part.
UOpRef ValueAt::sumOfBlocks(UOpRef r, const ContractSpec &s, ArrayRef<UOpRef> index, UOpRef gate) {
  UOpRef length = r->indices()[s.kept], start = c.literal(r->dtype, reduceIdentity(ReduceKind::Sum, r->dtype));
  UOpRef block = c.index(chainBlock), lanes = c.index(blocksTogether);
  auto folded = [&](UOpRef first, ArrayRef<UOpRef> values, ArrayRef<UOpRef> ranges) {
    SmallVector<UOpRef, 6> src{first};
    src.append(values.begin(), values.end());
    src.append(ranges.begin(), ranges.end());
    return c.make(Op::Fold, src, {int64_t(values.size() == 2 ? Combine::Fma : Combine::Add), int64_t(values.size())});
  };
  auto chain = [&](UOpRef begin, UOpRef n) {
    auto steps = [&](UOpRef first, UOpRef at, ArrayRef<UOpRef> ranges) {
      SmallVector<UOpRef, 8> labels(index.begin(), index.end());
      labels.push_back(simplifyIndex(c, idxAdd(c, begin, at)));
      UOpRef takesPart = nullptr, a = operand(r->src[0], s.a, labels, takesPart, gate),
             b = operand(r->src[1], s.b, labels, takesPart, gate);
      return folded(first, {asProduct(a, r), asProduct(b, r)}, ranges);
    };
    UOpRef each = c.index(stepsTogether), whole = simplifyIndex(c, idxDiv(c, n, each)),
           rest = simplifyIndex(c, idxMod(c, n, each)), k = range(whole, RangeKind::Fold),
           within = range(each, RangeKind::Unroll);
    UOpRef v = steps(start, idxAdd(c, idxMul(c, k, each), within), {k, within});
    if (rest->hi <= 0) return v;
    UOpRef left = range(rest, RangeKind::Fold);
    return steps(v, idxAdd(c, idxMul(c, whole, each), left), {left});
  };
  UOpRef groups = simplifyIndex(c, idxDiv(c, length, idxMul(c, block, lanes))), all = idxMul(c, groups, lanes),
         q = range(groups, RangeKind::Fold), lane = range(lanes, RangeKind::Vector);
  UOpRef sums = c.make(Op::Stage, {chain(idxMul(c, idxAdd(c, idxMul(c, q, lanes), lane), block), block), q, lane});
  UOpRef e = range(simplifyIndex(c, all), RangeKind::Fold);
  UOpRef v = folded(start, {c.make(Op::At, {sums, idxDiv(c, e, lanes), idxMod(c, e, lanes)}, {1})}, {e});
  UOpRef left = simplifyIndex(c, idxSub(c, idxCeilDiv(c, length, block), all));
  if (left->hi > 0) {
    UOpRef i = range(left, RangeKind::Fold), begin = idxMul(c, idxAdd(c, all, i), block);
    v = folded(v, {chain(begin, simplifyIndex(c, idxMin(c, block, idxSub(c, length, begin))))}, {i});
  }
  return zeroIfEmpty(c, v, {length});
}

/// A contraction of two operands at an index of its result: first the loops around its sum, from the outermost one
/// inwards, then the operands, the sum inside the loops, and the sums of its blocks.
class ValueAt::Contraction {
public:
  Contraction(ValueAt &at, UOpRef r, ContractSpec spec, ArrayRef<UOpRef> index, UOpRef gate)
      : at(at), c(at.c), r(r), s(std::move(spec)), gate(gate), extents(r->indices().take_front(s.kept + s.reduced)),
        limits(r->indices().drop_front(s.kept + s.reduced)), words(s.unit ? *extents.back()->constIndex() : 0),
        lengths(extents.slice(s.kept, s.reduced - !!words)), one(c.index(1)),
        start(c.literal(r->dtype, words ? 0 : reduceIdentity(ReduceKind::Sum, r->dtype))),
        isRoot(r == at.spec.rootOp && index == at.phase.index), spills(isRoot && at.spill.tile),
        tiled(isRoot && at.shared.threads), dealt(tiled && at.shared.chains > 1),
        steps(isRoot ? at.phase.labels : nullptr), labels(index.begin(), index.end()) {
    labels.resize(s.kept + s.reduced);
  }
  UOpRef sum();

private:
  ValueAt &at;
  Context &c;
  UOpRef r;
  ContractSpec s;
  UOpRef gate;
  ArrayRef<UOpRef> extents, limits;
  int64_t words;            // of a step, where a matrix unit adds: the last summed label; else 0
  ArrayRef<UOpRef> lengths; // of summed labels but that one
  UOpRef one, start;
  bool isRoot; // the kernel's own, at the index of its tile
  bool spills; // a tile's sum is an element of an array over the tiles of its item
  bool tiled;  // the threads of a GPU share the tile
  bool dealt;  // ... and have a chain of its sum each
  const Phase *steps;
  SmallVector<UOpRef, 8> labels;

  ChainBlocks blocks;
  UOpRef tile = nullptr;                       // the loop over tiles whose sums are spilled
  UOpRef everyone = nullptr, anyone = nullptr; // up to where the domain lets all elements of the tile go, and any
  SmallVector<UOpRef, 4> outer, inner;         // loops over blocks, and inside of one
  UOpRef checked = nullptr;                    // the summed label where not all elements of the tile take part
  UOpRef last = nullptr, left = nullptr;       // the loop behind steps that are taken together, its summed label
  UOpRef a = nullptr, b = nullptr, takesPart = nullptr; // of a step; null: certainly
  UOpRef word = nullptr;                                // which of the step's a and b are

  UOpRef upTo(UOpRef end, UOpRef most) { return simplifyIndex(c, idxMax(c, c.index(0), idxMin(c, most, end))); }
  void cutAtDomain();
  void loopOverBlocks();
  void dealBlocks();
  void loopInBlock();
  void loopToDomain(UOpRef begin, UOpRef length);
  void loopBySteps(UOpRef begin, UOpRef length, int64_t together, int64_t step);
  SmallVector<int64_t, 4> periods(int64_t label) const;
  void loopByPeriods(UOpRef begin, UOpRef length, llvm::ArrayRef<int64_t> periods);
  void prefetchNextPanel();
  void readTiles(ArrayRef<Along> chain);
  void checkDomain() { takesPart = at.both(takesPart, at.inDomain(s.domain, limits, labels)); }
  UOpRef read(int side);
  void readBoth();
  SmallVector<UOpRef, 2> valuesOfStep() const;
  int64_t lastLabel() const { return s.kept + int64_t(lengths.size()) - 1; }
  std::optional<Combine> product() const;
  UOpRef fold(UOpRef first, ArrayRef<UOpRef> values, ArrayRef<UOpRef> ranges);
  UOpRef sumFrom(UOpRef first, ArrayRef<UOpRef> ranges);
  UOpRef sumOfBlock();
  UOpRef spilled(UOpRef sum, UOpRef of) { return c.make(Op::At, {c.make(Op::Stage, {sum, tile}), of}, {1}); }
  UOpRef sumOverBlocks(UOpRef v);
  UOpRef ofWarpGroups(UOpRef v);
};

void ValueAt::Contraction::cutAtDomain() {
  if (at.cutsSums && s.reduced == 1 && !spills && lengths[0]->constIndex() != 1 && !hasHoles(s))
    if (UOpRef end = domainEnd(c, s.domain, limits, s.kept, labels))
      std::tie(everyone, anyone) = boundsOverLanes(c, end);
}

/// Each thread has another block, round by round.
void ValueAt::Contraction::dealBlocks() {
  SmallVector<UOpRef, 4> counts;
  for (int64_t i : blocks.order) counts.push_back(blocks.count[i]);
  UOpRef rounds = simplifyIndex(c, idxCeilDiv(c, idxProduct(c, counts), c.index(at.shared.chains))),
         number = at.shared.chain;
  if (rounds->constIndex() != 1) {
    outer.push_back(at.range(rounds, RangeKind::Fold));
    number = idxAdd(c, idxMul(c, outer[0], c.index(at.shared.chains)), number);
  }
  for (auto [i, q] : llvm::zip(blocks.order, unflatten(c, number, counts)))
    labels[s.kept + i] = idxMul(c, q, idxMax(c, blocks.length[i], one));
}

/// Summed labels then are where their block begins.
void ValueAt::Contraction::loopOverBlocks() {
  if (dealt) return dealBlocks();
  for (int64_t i : blocks.order) {
    UOpRef each = idxMax(c, blocks.length[i], one),
           count = anyone ? upTo(idxCeilDiv(c, anyone, each), blocks.count[i]) : blocks.count[i];
    outer.push_back(at.range(count, spills ? RangeKind::Around : RangeKind::Fold));
    labels[s.kept + i] = idxMul(c, outer.back(), each);
  }
}

/// First what all take part in, then what some do.
void ValueAt::Contraction::loopToDomain(UOpRef begin, UOpRef length) {
  UOpRef shared = upTo(idxSub(c, everyone, begin), length), all = upTo(idxSub(c, anyone, begin), length);
  inner = {at.range(shared, RangeKind::Fold), at.range(simplifyIndex(c, idxSub(c, all, shared)), RangeKind::Fold)};
  labels[s.kept] = idxAdd(c, begin, inner[0]);
  checked = idxAdd(c, begin, idxAdd(c, shared, inner[1]));
}

/// Along the last label `together` steps at once, then those that are left.
void ValueAt::Contraction::loopBySteps(UOpRef begin, UOpRef length, int64_t together, int64_t step) {
  UOpRef each = c.index(together), whole = simplifyIndex(c, idxDiv(c, length, each)),
         rest = simplifyIndex(c, idxMod(c, length, each));
  inner = {at.range(whole, RangeKind::Fold), at.range(each, RangeKind::Unroll)};
  auto place = [&](UOpRef n) { return idxAdd(c, begin, idxMul(c, n, c.index(step))); };
  labels[lastLabel()] = place(idxAdd(c, idxMul(c, inner[0], each), inner[1]));
  if (rest->hi <= 0) return;
  last = at.range(rest, RangeKind::Fold);
  left = place(idxAdd(c, idxMul(c, whole, each), last));
}

/// Of operands that are computed here, how many steps along the last label read the same elements of their inputs, the
/// most first, each a multiple of the next: packed codes, the scales of blocks. None where blocks of the sum cut them.
SmallVector<int64_t, 4> ValueAt::Contraction::periods(int64_t label) const {
  std::set<int64_t, std::greater<>> all;
  for (int side : {0, 1}) {
    UOpRef x = r->src[side];
    ArrayRef<AffineForm> forms = side ? s.b : s.a;
    if (at.slotOf.count(x) || at.panel.operand == side || !x->rank() || !forms.back().isLabel() ||
        forms.back().terms[0].first != label)
      continue;
    auto length = x->shape.back()->constIndex();
    SmallVector<UOpRef, 16> stack{x};
    llvm::DenseSet<UOpRef> seen;
    while (length && !stack.empty()) {
      UOpRef n = stack.pop_back_val();
      if (n->isIndex() || !seen.insert(n).second) continue;
      if (at.slotOf.count(n)) {
        auto own = n->rank() == x->rank() ? n->shape.back()->constIndex() : std::nullopt;
        if (own && *own > 1 && *own < *length && *length % *own == 0) all.insert(*length / *own);
      } else if (has(n->op, Elementwise) || n->op == Op::Reshape || n->op == Op::Expand)
        stack.append(n->tensors().begin(), n->tensors().end());
    }
    if (length && !all.empty() && extents[label]->constIndex() != length) return {};
  }
  SmallVector<int64_t, 4> nested;
  for (int64_t p : all)
    if (chainBlock % p == 0 && (nested.empty() || nested.back() % p == 0)) nested.push_back(p);
  return nested;
}

/// Along the last label by whole periods, inside of which what is the same stays in registers; a short one is written
/// out, so that its shifts are by constants.
void ValueAt::Contraction::loopByPeriods(UOpRef begin, UOpRef length, ArrayRef<int64_t> periods) {
  constexpr int64_t mostCopies = 8;
  UOpRef n = c.index(0);
  auto loop = [&](UOpRef count, RangeKind kind) {
    if (count->constIndex() == 1) return;
    inner.push_back(at.range(count, kind));
    n = idxAdd(c, n, inner.back());
  };
  loop(simplifyIndex(c, idxDiv(c, length, c.index(periods[0]))), RangeKind::Fold);
  for (auto [i, p] : llvm::enumerate(periods)) {
    bool copies = p <= mostCopies;
    int64_t next = i + 1 < periods.size() && !copies ? periods[i + 1] : 1;
    n = idxMul(c, n, c.index(p / next));
    loop(c.index(p / next), copies ? RangeKind::Unroll : RangeKind::Fold);
    if (copies) break;
  }
  labels[lastLabel()] = idxAdd(c, begin, n);
}

void ValueAt::Contraction::loopInBlock() {
  int64_t together = s.domain.empty() && !hasHoles(s) ? at.stepsTogether : 1;
  SmallVector<Along, 4> chain; // what the loops of tiles go along
  const int64_t count = lengths.size();
  for (int64_t i = 0; i < count; ++i) {
    UOpRef begin = labels[s.kept + i];
    UOpRef length = begin->constIndex() == 0 ? lengths[i]
                    : dealt ? blocks.length[i] // as long for all threads: what is beyond the end is left out
                            : simplifyIndex(c, idxMin(c, blocks.length[i], idxSub(c, lengths[i], begin)));
    Stepped by = steps && begin->constIndex() == 0 ? steps->labels[s.kept + i] : Stepped();
    length = simplifyIndex(c, idxCeilDiv(c, idxSub(c, length, c.index(by.first)), c.index(by.step)));
    begin = idxAdd(c, begin, c.index(by.first));
    labels[s.kept + i] = begin;
    if (length->constIndex() == 1) continue;
    if (tiled || spills)
      chain.push_back({s.kept + i, begin, length, by.step, lengths[i]});
    else if (anyone)
      loopToDomain(begin, length);
    else if (together > 1 && i + 1 == count && inner.empty() && length->hi >= together)
      loopBySteps(begin, length, together, by.step);
    else if (auto same =
                 i + 1 == count && by.step == 1 && by.first == 0 ? periods(s.kept + i) : SmallVector<int64_t, 4>();
             !same.empty())
      loopByPeriods(begin, length, same);
    else {
      inner.push_back(at.range(length, RangeKind::Fold));
      labels[s.kept + i] = idxAdd(c, begin, idxMul(c, inner.back(), c.index(by.step)));
    }
  }
  if (spills) {
    auto loops = at.spillLoops(chain, labels);
    inner.assign(loops.begin(), loops.end());
  }
  prefetchNextPanel();
  if (tiled) readTiles(chain);
}

void ValueAt::Contraction::prefetchNextPanel() {
  bool wholeSteps =
      !steps || llvm::all_of(steps->labels, [](const Stepped &by) { return by.first == 0 && by.step == 1; });
  if (at.nextPanel.turns && isRoot && !spills && !checked && wholeSteps)
    at.prefetchPanel(r->src[at.nextPanel.operand], at.nextPanel.operand ? s.b : s.a, labels, s,
                     extents.drop_front(s.kept));
}

void ValueAt::Contraction::readTiles(ArrayRef<Along> chain) {
  int64_t each = std::max<int64_t>(words, 1);
  Steps tiles = at.stepsOf(chain, std::max<int64_t>(at.shared.kc / each, 1), labels, inner),
        elements = words ? at.wordsOf(tiles, words, s.kept + s.reduced - 1, word) : tiles;
  // -0.0 * +0.0 + c is c, whatever c is; and so is +0.0 * +0.0 + c of a matrix unit
  UOpRef none = c.literal(words ? DType::U32 : r->dtype, 0), first = words ? none : start;
  a = at.tileOperand(r, s, 0, elements, labels, lengths, first);
  b = at.tileOperand(r, s, 1, elements, labels, lengths, none);
  tiles.place(tiles.own, labels);
}

UOpRef ValueAt::Contraction::read(int side) {
  ArrayRef<AffineForm> forms = side ? s.b : s.a;
  if (at.panel.operand == side && !gate && !takesPart)
    return at.asProduct(at.staged(r->src[side], forms, labels, s.kept, lengths[0], extents[at.panel.label]), r);
  // Labels are inside of their extents but where a gate or a mask leaves out what is not.
  return at.asProduct(at.operand(r->src[side], forms, labels, takesPart, gate,
                                 gate || at.masked || at.shared.threads ? ArrayRef<UOpRef>() : extents),
                      r);
}

/// A value of a kernel where an index is another one.
static UOpRef substituted(Context &c, UOpRef value, UOpRef from, UOpRef to) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort({value})) {
    if (n->isIndex() && n->op != Op::Extent) {
      now[n] = simplifyIndex(c, idxSubstitute(c, n, {from}, {to}));
      continue;
    }
    SmallVector<UOpRef, 6> src(llvm::map_range(n->src, [&](UOpRef x) { return now.lookup(x); }));
    now[n] = c.withSources(n, src);
  }
  return now.lookup(value);
}

/// Of a matrix unit the words of both operands.
SmallVector<UOpRef, 2> ValueAt::Contraction::valuesOfStep() const {
  if (words < 2) return {a, b};
  SmallVector<UOpRef, 2> all;
  for (UOpRef x : {a, b})
    for (int64_t i = 0; i < words; ++i) all.push_back(substituted(c, x, word, c.index(i)));
  return all;
}

void ValueAt::Contraction::readBoth() {
  if (words) labels.back() = word;
  if (!tiled) a = read(0), b = read(1);
  if (product() == Combine::Dot4 && r->src[0]->dtype != DType::U32) std::swap(a, b);
  if (takesPart) // -0.0 * +0.0 + c is c, whatever c is
    a = at.select(takesPart, a, c.literal(a->dtype, uint64_t(start->ints[0]))),
    b = at.select(takesPart, b, c.literal(b->dtype, 0));
}

/// What a step does with both operands at once; nothing: integers have a product and a sum. Of words the unsigned one
/// is first.
std::optional<Combine> ValueAt::Contraction::product() const {
  if (words) return unitCombine(*s.unit, s.inputs);
  if (r->src[0]->dtype != r->src[1]->dtype) return Combine::Dot4;
  return isFloat(r->dtype) ? std::optional(Combine::Fma) : std::nullopt;
}

UOpRef ValueAt::Contraction::fold(UOpRef first, ArrayRef<UOpRef> values, ArrayRef<UOpRef> ranges) {
  SmallVector<UOpRef, 6> src{first};
  src.append(values.begin(), values.end());
  src.append(ranges.begin(), ranges.end());
  Combine by = values.size() > 1 ? *product() : Combine::Add;
  return c.make(Op::Fold, src, {int64_t(by), int64_t(values.size())});
}

UOpRef ValueAt::Contraction::sumFrom(UOpRef first, ArrayRef<UOpRef> ranges) {
  if (words) return fold(first, valuesOfStep(), ranges);
  return product() ? fold(first, {a, b}, ranges) : fold(first, {c.make(Op::Mul, {a, b})}, ranges);
}

UOpRef ValueAt::Contraction::sumOfBlock() {
  for (UOpRef e : lengths) // as in reduce: a load that moves out of an empty loop
    if (e->lo <= 0 && e->hi <= 1) takesPart = at.both(takesPart, at.lt(c.index(0), e));
  if (!checked) checkDomain();
  readBoth();
  UOpRef v;
  if (checked) {
    v = sumFrom(start, inner[0]);
    labels[s.kept] = checked;
    checkDomain();
    readBoth();
    v = sumFrom(v, inner[1]);
  } else if (inner.empty() && words)
    v = sumFrom(start, at.range(one, RangeKind::Fold));
  else if (inner.empty())
    v = !product()                   ? c.make(Op::Mul, {a, b})
        : product() == Combine::Dot4 ? c.make(Op::Dot4, {a, b, start})
                                     : c.make(Op::Fma, {a, b, start});
  else
    v = sumFrom(start, inner);
  if (left) {
    labels[lastLabel()] = left;
    readBoth();
    v = sumFrom(v, last);
  }
  return v;
}

UOpRef ValueAt::Contraction::sumOverBlocks(UOpRef v) {
  bool spillsInside = spills && !inner.empty() && RangeKind(inner[0]->ints[1]) == RangeKind::Around;
  if (spillsInside && !outer.empty()) { // the blocks' sums are spilled too, in an array of their own
    UOpRef ofBlocks = at.range(at.spill.tile->src[0], RangeKind::Fold);
    v = spilled(v, ofBlocks);
    tile = ofBlocks;
  }
  if (dealt) {
    outer.push_back(at.range(c.index(std::min(at.shared.chains, blocks.most())), RangeKind::Fold));
    v = at.chainSum(v, outer.back());
  }
  if (!outer.empty()) v = fold(start, {v}, outer);
  return spills ? spilled(v, at.spill.tile) : v;
}

/// A sum as an element of the thread's own array of all its sums.
UOpRef ValueAt::Contraction::ofWarpGroups(UOpRef v) {
  const auto &of = at.warpGroups;
  UOpRef row = at.range(c.index(of.rows), RangeKind::Fold),
         column = at.range(c.index(of.vectors * of.lanes), RangeKind::Fold), lanes = c.index(of.lanes);
  v = substituted(c, v, of.row, row);
  v = substituted(c, v, of.vector, simplifyIndex(c, idxDiv(c, column, lanes)));
  v = substituted(c, v, of.lane, simplifyIndex(c, idxMod(c, column, lanes)));
  UOpRef own = idxAdd(c, idxMul(c, of.vector, lanes), of.lane);
  return c.make(Op::At, {c.make(Op::Stage, {v, row, column}), of.row, own}, {1});
}

/// chain512: loops over blocks, then loops inside a block. Integers are exact in any order: a CPU adds them in one
/// loop, the threads of a GPU share blocks.
UOpRef ValueAt::Contraction::sum() {
  bool real = isFloat(r->dtype);
  if (steps && steps->isEmpty) return real ? zeroIfEmpty(c, start, lengths) : start;
  blocks = chainBlocks(c, lengths);
  if (words || (!real && !at.shared.threads)) blocks.order.clear(); // a matrix unit adds steps in one chain
  if (spills) {
    tile = at.range(at.spill.tile->src[0], RangeKind::Fold);
    for (UOpRef &l : llvm::MutableArrayRef(labels).take_front(s.kept)) l = idxSubstitute(c, l, {at.spill.tile}, {tile});
  }
  for (UOpRef &l : llvm::MutableArrayRef(labels).drop_front(s.kept)) l = c.index(0);
  if (words) word = words > 1 ? at.range(c.index(words), RangeKind::Unroll) : c.index(0);
  cutAtDomain();
  loopOverBlocks();
  loopInBlock();
  UOpRef v = sumOverBlocks(sumOfBlock());
  if (isRoot && at.warpGroups.row) return ofWarpGroups(v);
  return real ? zeroIfEmpty(c, v, lengths) : v;
}

UOpRef ValueAt::contract(UOpRef r, ArrayRef<UOpRef> index, UOpRef gate) {
  if (r->ntensors > 2) return contractOfTaps(r, index, gate);
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  if (blocksTogether > 1 && r == spec.rootOp) return sumOfBlocks(r, s, index, gate);
  return Contraction(*this, r, std::move(s), index, gate).sum();
}
