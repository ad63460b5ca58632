//===- LegalizeHoles.cpp: transposed convolutions by the remainders of their strides -===//
// Takes:    a contract that reads an operand at a quotient, x[(i + c - p)/d], with w[p] beside it: a transposed
//           convolution, or the gradient of a strided one. All but a part in d of its taps are holes.
// Gives:    the same over i + c = d*u + r and p = d*q + r, x[u - q] w[q, r]: each remainder r of the result has its own
//           taps, and no holes. u and r are neighbours in the result, which is so the merged one but for what lies
//           around it. Taps that there are not, where the stride does not divide their number, are outside a domain.
// Keeps:    the order of the sum: holes take no part (N4), p goes up with q, and blocks hold what they held. Where
//           chain512 cuts the taps, its blocks are written out, and a chain adds them: of less than a stride each q is
//           a block, the others are contractions of their own. A block of holes alone is -0.0, which changes nothing.
// Does not: touch what kernels do well by themselves (remaindersOf): few remainders, with a label for lanes.
#include "Legalize.h"
#include "Thresholds.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/Holes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::SmallVector;

namespace {

/// One such quotient.
struct Stride {
  int64_t kept, tap; // labels: i, p
  bool ofB;          // the operand that is read there
  size_t at, tapAt;  // the axes: of that operand, of the other one
  int64_t step, offset, taps;
  int64_t least() const { return llvm::divideFloorSigned(offset, step); } // of u
  int64_t before() const { return offset - least() * step; }              // of d*u + r what comes before the result
  int64_t tapsOfOne() const { return llvm::divideCeil(taps, step); }      // remainder, at most: of q
};

int64_t uses(const ContractSpec &s, int64_t label) {
  int64_t n = 0;
  for (const auto *forms : {&s.a, &s.b})
    n += llvm::count_if(*forms, [&](const AffineForm &f) { return hasLabel(f, label); });
  return n + llvm::count_if(s.domain, [&](const AffineForm &f) { return hasLabel(f, label); });
}

SmallVector<Stride, 2> stridesOf(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents) {
  constexpr int64_t largest = int64_t(1) << 20;
  SmallVector<Stride, 2> out;
  for (bool ofB : {false, true}) {
    const auto &read = ofB ? s.b : s.a, &other = ofB ? s.a : s.b;
    for (auto [at, f] : llvm::enumerate(read)) {
      if (f.divisor == 1 || f.divisor > largest || std::abs(f.constant) > largest || f.terms.size() != 2) continue;
      auto [i, one] = f.terms[0];
      auto [p, minusOne] = f.terms[1];
      if (one != 1 || minusOne != -1 || i >= s.kept || p < s.kept) continue;
      auto taps = extents[p]->constIndex();
      const auto *tap = llvm::find_if(other, [p = p](const AffineForm &g) { return hasLabel(g, p); });
      if (!taps || *taps < 1 || *taps > largest || uses(s, i) != 1 || uses(s, p) != 2 || tap == other.end() ||
          !tap->isLabel() || extents[i]->hi < f.divisor) // what is computed around the result would be most of it
        continue;
      out.push_back({i, p, ofB, at, size_t(tap - other.begin()), f.divisor, f.constant, *taps});
    }
  }
  return out;
}

/// Whether kernels do better as it is, by lanes of channels: remainders few enough that they step all strides, each
/// with its taps, or taps so few beside the strides that most of those by remainders are not there (512-512, one tap,
/// stride 8 in two axes: 10 times the time).
bool isForKernels(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents, llvm::ArrayRef<Stride> strides) {
  int64_t channels = 1;
  double waste = 1;
  for (const Stride &t : strides) waste *= double(t.tapsOfOne() * t.step) / double(t.taps);
  Remainders inKernel = remaindersOf(s, -1);
  bool allStepped = llvm::all_of(strides, [&](const Stride &t) { return inKernel.steps[t.kept] == t.step; });
  const auto &read = strides[0].ofB ? s.b : s.a, &other = strides[0].ofB ? s.a : s.b;
  for (int64_t l = 0; l < s.kept; ++l)
    if (hasLabel(other, l) && !hasLabel(read, l)) channels = std::max(channels, extents[l]->hi);
  return channels >= threshold::holesLanes && (allStepped || waste > threshold::holesWaste);
}

/// A label that chain512 cuts, into blocks of this length: each a contraction, or, of taps, each q a block.
struct Cut {
  int64_t label, block;
  bool byTaps;
};

/// In the order in which blocks are added; none where blocks hold the same when taps are q. Nothing: they would hold
/// something else, or are too many.
std::optional<SmallVector<Cut, 2>> cutsOf(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents,
                                          llvm::ArrayRef<Stride> strides, DType dtype) {
  constexpr int64_t mostParts = 64;
  SmallVector<int64_t, 6> lengths, narrow;
  for (UOpRef e : extents.drop_front(s.kept)) {
    auto n = e->constIndex();
    if (!n) return std::nullopt;
    lengths.push_back(*n);
  }
  SmallVector<Cut, 2> cuts;
  if (isInt(dtype)) return cuts; // in any order the same
  auto blocks = chain512Blocks(lengths);
  narrow = lengths;
  bool cutsTaps = false;
  for (const Stride &t : strides) {
    int64_t at = t.tap - s.kept;
    narrow[at] = t.tapsOfOne();
    cutsTaps |= blocks[at] < t.taps;
  }
  if (!cutsTaps) {
    auto after = chain512Blocks(narrow);
    for (size_t i = 0; i < lengths.size(); ++i)
      if (after[i] != (blocks[i] == lengths[i] ? narrow[i] : blocks[i])) return std::nullopt;
    return cuts;
  }
  if (isFloat(dtype) && byteSize(dtype) < 4) return std::nullopt; // a chain would round more than once
  int64_t parts = 1;
  for (int64_t n = int64_t(lengths.size()), k = 0; k < n; ++k) {
    int64_t at = (k + n - 1) % n, label = s.kept + at; // the innermost label first
    if (blocks[at] == lengths[at]) continue;
    const Stride *t = llvm::find_if(strides, [&](const Stride &u) { return u.tap == label; });
    Cut cut{label, blocks[at], t != strides.end() && blocks[at] <= t->step};
    auto isCut = [&](const AffineForm &f) { return f.isLabel() || !hasLabel(f, label); };
    if (t == strides.end() && !(llvm::all_of(s.a, isCut) && llvm::all_of(s.b, isCut) && !hasLabel(s.domain, label)))
      return std::nullopt;
    if (!cut.byTaps) parts = llvm::SaturatingMultiply<uint64_t>(parts, llvm::divideCeil(lengths[at], blocks[at]));
    cuts.push_back(cut);
  }
  return parts <= mostParts ? std::optional(cuts) : std::nullopt;
}

/// The other operand with the axis of taps as q and r.
UOpRef byRemainder(Builder &b, UOpRef w, size_t axis, const Stride &t) {
  UOpRef zero = b.idx(0);
  SmallVector<UOpRef, 6> none(w->rank(), zero), more = none;
  if (t.taps % t.step) {
    more[axis] = b.idx(t.step - t.taps % t.step);
    w = b.pad(w, none, more);
  }
  auto shape = shapeOf(w);
  shape[axis] = b.idx(t.tapsOfOne());
  shape.insert(shape.begin() + axis + 1, b.idx(t.step));
  return b.reshape(w, shape);
}

/// A contraction with holes, of which blocks are cut.
struct Holed {
  ContractSpec s;
  SmallVector<UOpRef, 8> extents;
  SmallVector<UOpRef, 4> bounds; // of the domain
  UOpRef operands[2];
  SmallVector<Stride, 2> strides;

  Holed block(Builder &b, const Cut &cut, int64_t begin, int64_t size) const;
  UOpRef byRemainders(Builder &b, llvm::ArrayRef<Cut> cuts) const;
  UOpRef blocks(Builder &b, llvm::ArrayRef<Cut> cuts, size_t next) const;
};

/// What a part of a label alone is summed over.
Holed Holed::block(Builder &b, const Cut &cut, int64_t begin, int64_t size) const {
  Holed part = *this;
  part.extents[cut.label] = b.idx(size);
  for (bool ofB : {false, true}) {
    UOpRef &x = part.operands[ofB];
    SmallVector<UOpRef, 6> first(x->rank(), b.idx(0)), shape = shapeOf(x);
    for (auto [at, f] : llvm::enumerate(ofB ? s.b : s.a))
      if (f.isLabel() && hasLabel(f, cut.label)) first[at] = b.idx(begin), shape[at] = b.idx(size);
    x = b.shrink(x, first, shape);
  }
  for (Stride &t : part.strides)
    if (t.tap == cut.label) t.offset -= begin, t.taps = size;
  return part;
}

/// The contraction by remainders, the axes of `cuts` behind those of its result: q of those by taps, else one block.
UOpRef Holed::byRemainders(Builder &b, llvm::ArrayRef<Cut> cuts) const {
  // Labels: i is u and r, p is q, which is kept where it is a block.
  auto ofKept = [&](int64_t label) { return llvm::find_if(strides, [&](const Stride &t) { return t.kept == label; }); };
  auto ofTap = [&](int64_t label) { return llvm::find_if(strides, [&](const Stride &t) { return t.tap == label; }); };
  auto isBlock = [&](int64_t label) {
    return llvm::any_of(cuts, [&](const Cut &cut) { return cut.byTaps && cut.label == label; });
  };
  ContractSpec to;
  SmallVector<UOpRef, 8> lengths;
  SmallVector<int64_t, 8> number(s.kept + s.reduced);
  SmallVector<UOpRef, 6> merged, first, size;
  for (int64_t l = 0; l < s.kept; ++l) {
    number[l] = lengths.size();
    size.push_back(extents[l]);
    if (const Stride *t = ofKept(l); t == strides.end()) {
      lengths.push_back(extents[l]);
      merged.push_back(extents[l]), first.push_back(b.idx(0));
    } else {
      lengths.push_back(idxCeilDiv(b.c, idxAdd(b.c, extents[l], b.idx(t->before())), b.idx(t->step)));
      lengths.push_back(b.idx(t->step));
      merged.push_back(idxMul(b.c, lengths[number[l]], b.idx(t->step))), first.push_back(b.idx(t->before()));
    }
  }
  auto add = [&](int64_t l) {
    number[l] = lengths.size();
    const Stride *t = ofTap(l);
    lengths.push_back(t == strides.end() ? extents[l] : b.idx(t->tapsOfOne()));
  };
  for (const Cut &cut : cuts) {
    if (cut.byTaps) add(cut.label);
    size.push_back(cut.byTaps ? lengths.back() : b.idx(1));
    merged.push_back(size.back()), first.push_back(b.idx(0));
  }
  to.kept = lengths.size();
  for (int64_t l = s.kept; l < s.kept + s.reduced; ++l)
    if (!isBlock(l)) add(l);
  to.reduced = lengths.size() - to.kept;

  auto renumbered = [&](AffineForm f) {
    for (auto &term : f.terms) term.first = number[term.first];
    llvm::sort(f.terms);
    return f;
  };
  UOpRef now[2] = {operands[0], operands[1]};
  for (bool ofB : {false, true}) {
    auto &forms = ofB ? to.b : to.a;
    size_t more = 0; // axes before that are two
    for (auto [at, f] : llvm::enumerate(ofB ? s.b : s.a)) {
      const Stride *t =
          llvm::find_if(strides, [&](const Stride &u) { return u.ofB == ofB ? u.at == at : u.tapAt == at; });
      if (t == strides.end()) {
        forms.push_back(renumbered(f));
      } else if (t->ofB == ofB) {
        forms.push_back({{{number[t->kept], 1}, {number[t->tap], -1}}, t->least()});
      } else {
        forms.push_back({{{number[t->tap], 1}}});
        forms.push_back({{{number[t->kept] + 1, 1}}});
        now[ofB] = byRemainder(b, now[ofB], at + more++, *t);
      }
    }
  }
  SmallVector<UOpRef, 4> limits = bounds;
  for (const AffineForm &f : s.domain) to.domain.push_back(renumbered(f));
  for (const Stride &t : strides)
    if (t.taps % t.step) {
      to.domain.push_back({{{number[t.kept] + 1, -1}, {number[t.tap], -t.step}}});
      limits.push_back(b.idx(t.taps - 1));
    }
  UOpRef y = b.reshape(legalizeContract(b, b.contract(to, now[0], now[1], lengths, limits)), merged);
  return merged == size ? y : b.shrink(y, first, size);
}

/// All blocks of the cuts from `next` on, an axis each.
UOpRef Holed::blocks(Builder &b, llvm::ArrayRef<Cut> cuts, size_t next) const {
  while (next < cuts.size() && cuts[next].byTaps) ++next;
  if (next == cuts.size()) return byRemainders(b, cuts);
  const Cut &cut = cuts[next];
  SmallVector<UOpRef, 4> parts;
  int64_t length = *extents[cut.label]->constIndex();
  for (int64_t at = 0; at < length; at += cut.block)
    parts.push_back(block(b, cut, at, std::min(cut.block, length - at)).blocks(b, cuts, next + 1));
  return b.concat(parts, s.kept + int64_t(next));
}

} // namespace

UOpRef astra::withoutHoles(Builder &b, UOpRef r) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  auto extents = r->indices().take_front(s.kept + s.reduced);
  auto strides = stridesOf(s, extents);
  if (strides.empty() || isForKernels(s, extents, strides)) return nullptr;
  auto cuts = cutsOf(s, extents, strides, r->dtype);
  if (!cuts) return nullptr;
  Holed whole{s, {extents.begin(), extents.end()}, {}, {r->src[0], r->src[1]}, strides};
  auto bounds = r->indices().drop_front(s.kept + s.reduced);
  whole.bounds.assign(bounds.begin(), bounds.end());
  UOpRef y = whole.blocks(b, *cuts, 0);
  ReduceSpec chain{ReduceKind::Sum, ReduceOrder::Chain, {}, {}};
  for (size_t i = 0; i < cuts->size(); ++i) chain.axes.push_back(s.kept + int64_t(i));
  return cuts->empty() ? y : b.reduce(chain, y, {});
}

void astra::splitHoles(Module &m) {
  Builder b(m.ctx());
  mapValues(m, [&](UOpRef n) {
    UOpRef y = n->op == Op::Contract ? withoutHoles(b, n) : nullptr;
    return y ? y : n;
  });
}
