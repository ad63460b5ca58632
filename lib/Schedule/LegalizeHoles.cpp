//===- LegalizeHoles.cpp: transposed convolutions by the remainders of their strides -===//
// Takes:    a contract that reads an operand at a quotient, x[(i + c - p)/d], with w[p] beside it: a transposed
//           convolution, or the gradient of a strided one. All but a part in d of its taps are holes.
// Gives:    the same over i + c = d*u + r and p = d*q + r, x[u - q] w[q, r]: each remainder r of the result has its own
//           taps, and no holes. u and r are neighbours in the result, which is so the merged one but for what lies
//           around it. Taps that there are not, where the stride does not divide their number, are outside a domain.
// Keeps:    the order of the sum: holes take no part (N4), p goes up with q, and blocks hold what they held. Where taps
//           are cut into blocks of less than a stride, each q is a block, and a chain over q adds them.
// Does not: touch what kernels do well by themselves (lib/Codegen/Phases.h): few remainders, with a label for lanes.
#include "Legalize.h"
#include "astra/Rewrite/Rewrite.h"
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
          !tap->isLabel())
        continue;
      out.push_back({i, p, ofB, at, size_t(tap - other.begin()), f.divisor, f.constant, *taps});
    }
  }
  return out;
}

/// Whether kernels do well as it is: few remainders, each with its taps, and lanes of channels.
bool isForKernels(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents, llvm::ArrayRef<Stride> strides) {
  constexpr int64_t fewRemainders = 16, lanes = 8;
  int64_t remainders = 1, channels = 1;
  for (const Stride &stride : strides) remainders = llvm::SaturatingMultiply<uint64_t>(remainders, stride.step);
  const auto &read = strides[0].ofB ? s.b : s.a, &other = strides[0].ofB ? s.a : s.b;
  for (int64_t l = 0; l < s.kept; ++l)
    if (hasLabel(other, l) && !hasLabel(read, l)) channels = std::max(channels, extents[l]->hi);
  return remainders <= fewRemainders && channels >= lanes;
}

/// The tap that is cut into blocks of at most a stride; none: nothing is cut that is cut otherwise when taps are q.
/// Nothing: blocks would hold something else.
std::optional<std::optional<Stride>> cutTap(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents,
                                            llvm::ArrayRef<Stride> strides, DType dtype) {
  SmallVector<int64_t, 6> lengths, narrow;
  for (UOpRef e : extents.drop_front(s.kept)) {
    auto n = e->constIndex();
    if (!n) return std::nullopt;
    lengths.push_back(*n);
  }
  std::optional<Stride> cut;
  auto before = chain512Blocks(lengths);
  narrow = lengths;
  for (const Stride &stride : strides) {
    int64_t at = stride.tap - s.kept;
    narrow[at] = stride.tapsOfOne();
    if (before[at] == stride.taps) continue;
    // A chain of results that are rounded would round more than once.
    if (cut || before[at] > stride.step || (isFloat(dtype) && byteSize(dtype) < 4)) return std::nullopt;
    cut = stride;
    narrow[at] = 1;
  }
  auto after = chain512Blocks(narrow);
  for (size_t i = 0; i < lengths.size(); ++i) {
    bool isTap = llvm::any_of(strides, [&](const Stride &t) { return t.tap - s.kept == int64_t(i); });
    if (isTap ? after[i] != narrow[i] : after[i] != before[i] || (cut && before[i] != lengths[i])) return std::nullopt;
  }
  return cut;
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

} // namespace

UOpRef astra::withoutHoles(Builder &b, UOpRef r) {
  Context &c = b.c;
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  auto extents = r->indices().take_front(s.kept + s.reduced);
  auto strides = stridesOf(s, extents);
  if (strides.empty() || isForKernels(s, extents, strides)) return nullptr;
  auto cut = cutTap(s, extents, strides, r->dtype);
  if (!cut) return nullptr;

  // Labels: i is u and r, p is q, which is kept where it is a chain's.
  auto ofKept = [&](int64_t label) { return llvm::find_if(strides, [&](const Stride &t) { return t.kept == label; }); };
  auto ofTap = [&](int64_t label) { return llvm::find_if(strides, [&](const Stride &t) { return t.tap == label; }); };
  ContractSpec to;
  SmallVector<UOpRef, 8> lengths;
  SmallVector<int64_t, 8> number(s.kept + s.reduced);
  for (int64_t l = 0; l < s.kept; ++l) {
    number[l] = lengths.size();
    const Stride *t = ofKept(l);
    if (t == strides.end()) {
      lengths.push_back(extents[l]);
      continue;
    }
    lengths.push_back(idxCeilDiv(c, idxAdd(c, extents[l], b.idx(t->before())), b.idx(t->step)));
    lengths.push_back(b.idx(t->step));
  }
  auto add = [&](int64_t l) {
    number[l] = lengths.size();
    const Stride *t = ofTap(l);
    lengths.push_back(t == strides.end() ? extents[l] : b.idx(t->tapsOfOne()));
  };
  if (*cut) add((*cut)->tap);
  to.kept = lengths.size();
  for (int64_t l = s.kept; l < s.kept + s.reduced; ++l)
    if (!*cut || (*cut)->tap != l) add(l);
  to.reduced = lengths.size() - to.kept;

  auto renumbered = [&](AffineForm f) {
    for (auto &term : f.terms) term.first = number[term.first];
    llvm::sort(f.terms);
    return f;
  };
  UOpRef operands[2] = {r->src[0], r->src[1]};
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
        operands[ofB] = byRemainder(b, operands[ofB], at + more++, *t);
      }
    }
  }
  SmallVector<UOpRef, 4> bounds(r->indices().drop_front(s.kept + s.reduced));
  for (const AffineForm &f : s.domain) to.domain.push_back(renumbered(f));
  for (const Stride &t : strides)
    if (t.taps % t.step) {
      to.domain.push_back({{{number[t.kept] + 1, -1}, {number[t.tap], -t.step}}});
      bounds.push_back(b.idx(t.taps - 1));
    }
  UOpRef y = legalizeContract(b, b.contract(to, operands[0], operands[1], lengths, bounds));
  if (*cut) y = b.reduce(ReduceSpec{ReduceKind::Sum, ReduceOrder::Chain, {to.kept - 1}, {}}, y, {});

  SmallVector<UOpRef, 6> merged, first, size(r->shape.begin(), r->shape.end());
  for (int64_t l = 0; l < s.kept; ++l) {
    const Stride *t = ofKept(l);
    bool strided = t != strides.end();
    merged.push_back(strided ? idxMul(c, lengths[number[l]], b.idx(t->step)) : extents[l]);
    first.push_back(b.idx(strided ? t->before() : 0));
  }
  y = b.reshape(y, merged);
  return merged == size ? y : b.shrink(y, first, size);
}
