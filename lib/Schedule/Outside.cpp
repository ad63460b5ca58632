//===- Outside.cpp: contracts without the taps that lie outside -------------===//
// Takes:    contracts with windows, x[.., i*s + t*d + c, ..] w[.., t, ..], of which much lies outside of x: there
//           +0.0 is read, and takes part (N4).
// Gives:    the same of the taps that are inside of x for some result, and a third operand for the others (Contract.h):
//           fma(w, +0.0, acc) is acc + w*0.0, and the sum of these zeros (or NaNs), in any order, is a zero (or NaN)
//           that adds the same: it is computed once, of the weights alone.
// Keeps:    bits, for weights that are infinite or no numbers too, and the sign of a zero.
// Does not: touch what is worth no code of its own: windows little of which is outside, or whose parts are small.
#include "astra/Schedule/Outside.h"
#include "Legalize.h"
#include "Thresholds.h"
#include "astra/IR/Index.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/Holes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// The taps t, of so many, with 0 <= at + t*d < size.
static std::pair<int64_t, int64_t> tapsInside(int64_t at, int64_t d, int64_t taps, int64_t size) {
  int64_t first = d > 0 ? llvm::divideCeilSigned(-at, d) : llvm::divideFloorSigned(at - size, -d) + 1,
          end = d > 0 ? llvm::divideCeilSigned(size - at, d) : llvm::divideFloorSigned(at, -d) + 1;
  first = std::clamp<int64_t>(first, 0, taps), end = std::clamp<int64_t>(end, first, taps);
  return {end > first ? first : 0, end - first};
}

namespace {
/// i*step + t*d + constant, of so many taps t.
struct Form {
  int64_t step, d, constant, taps;
};
} // namespace

/// The first i at which tap t is at `edge` or behind it.
static int64_t placeOf(const Form &f, int64_t t, int64_t edge) {
  return llvm::divideCeilSigned(edge - f.constant - t * f.d, f.step);
}

static SmallVector<Reach, 4> partsOf(const Form &f, int64_t size, int64_t length) {
  SmallVector<int64_t, 8> edges{0, length}; // where a tap comes in or goes out
  for (int64_t t = 0; t < f.taps; ++t)
    for (int64_t edge : {int64_t(0), size}) edges.push_back(std::clamp<int64_t>(placeOf(f, t, edge), 0, length));
  llvm::sort(edges);
  SmallVector<Reach, 4> parts;
  for (size_t e = 0; e + 1 < edges.size(); ++e) {
    if (edges[e] == edges[e + 1]) continue;
    auto [first, count] = tapsInside(edges[e] * f.step + f.constant, f.d, f.taps, size);
    if (!parts.empty() && parts.back().first == first && parts.back().taps == count)
      parts.back().count += edges[e + 1] - edges[e];
    else
      parts.push_back({edges[e], edges[e + 1] - edges[e], first, count});
  }
  return parts;
}

SmallVector<Window, 2> astra::windowsOf(const ContractSpec &s, ArrayRef<UOpRef> extents, UOpRef a, UOpRef b) {
  constexpr int64_t large = int64_t(1) << 30, mostTaps = 1 << 10;
  auto uses = [&](int64_t label) {
    int64_t n = hasLabel(s.domain, label);
    for (const auto *forms : {&s.a, &s.b})
      n += llvm::count_if(*forms, [&](const AffineForm &f) { return hasLabel(f, label); });
    return n;
  };
  auto isSize = [&](UOpRef e) { return e->isConst() && e->ints[0] >= 1 && e->ints[0] <= large; };
  SmallVector<Window, 2> out;
  for (unsigned o : {0u, 1u})
    for (auto [axis, f] : llvm::enumerate(o ? s.b : s.a)) {
      if (f.terms.size() != 2 || f.divisor != 1 || std::abs(f.constant) > large) continue;
      auto [i, step] = f.terms[0];
      auto [t, d] = f.terms[1];
      if (i >= s.kept || t < s.kept || step < 1 || uses(i) != 1 || uses(t) != 2) continue;
      UOpRef size = (o ? b : a)->shape[axis], length = extents[i];
      auto taps = extents[t]->constIndex();
      if (!taps || *taps < 1 || *taps > mostTaps || step > large || std::abs(d) > large || !isSize(size) ||
          !isSize(length))
        continue;
      Form form{step, d, f.constant, *taps};
      out.push_back({i, t, o, unsigned(axis), partsOf(form, size->ints[0], length->ints[0])});
    }
  return out;
}

namespace {
/// A contract with windows, and which of them are taken apart.
class Outside {
public:
  Outside(Builder &b, UOpRef r);
  /// Null: it stays.
  UOpRef run();

private:
  bool isPlain() const;
  void addInner();
  void takePadding();
  struct Cost {
    double steps, leastRows;
    int64_t parts;
  };
  Cost costOf(unsigned cut) const;
  std::pair<int64_t, int64_t> paddingOf(const Window &v) const;
  bool isWorth(unsigned cut) const;
  UOpRef sumOutside(ContractSpec &to, ArrayRef<int64_t> firsts);

  Builder &b;
  UOpRef r;
  ContractSpec s;
  SmallVector<UOpRef, 8> extents;
  UOpRef x = nullptr, w = nullptr;
  unsigned side = 0;              // of x
  SmallVector<Window, 2> windows; // of x, parts of which are outside
  struct Sizes {
    int64_t before, padded, result; // of x, as it is and with what is around it
  };
  SmallVector<Sizes, 2> sizes; // of the windows
  SmallVector<AffineForm, 4> &formsX() { return side ? s.b : s.a; }
  SmallVector<AffineForm, 4> &formsW() { return side ? s.a : s.b; }
  const SmallVector<AffineForm, 4> &formsX() const { return side ? s.b : s.a; }
  const SmallVector<AffineForm, 4> &formsW() const { return side ? s.a : s.b; }
};

Outside::Outside(Builder &b, UOpRef r) : b(b), r(r), s(llvm::cantFail(decodeContract(r->ints))) {
  auto all = r->indices().take_front(s.kept + s.reduced);
  extents.assign(all.begin(), all.end());
}

/// Whether it is a sum of floats over labels of known lengths, all of each but the last one in a block.
bool Outside::isPlain() const {
  DType t = r->dtype;
  if (r->ntensors != 2 || s.reduced < 1 || !s.domain.empty() || !isFloat(t) || byteSize(t) < 4 || isComplex(t) ||
      r->src[0]->dtype != t || r->src[1]->dtype != t || hasHoles(s))
    return false;
  SmallVector<int64_t, 6> lengths;
  for (UOpRef e : llvm::drop_begin(extents, s.kept)) {
    auto n = e->constIndex();
    if (!n || *n < 1) return false;
    lengths.push_back(*n);
  }
  auto blocks = chain512Blocks(lengths);
  for (size_t j = 0; j + 1 < lengths.size(); ++j)
    if (blocks[j] != lengths[j]) return false;
  return true;
}

/// A label of one element behind the taps, of a depthwise convolution: blocks of taps that are whole stay so.
void Outside::addInner() {
  int64_t label = s.kept + s.reduced++;
  SmallVector<UOpRef, 6> shape = shapeOf(w);
  shape.push_back(b.idx(1));
  extents.push_back(b.idx(1));
  w = b.reshape(w, shape);
  formsW().push_back({{{label, 1}}});
}

/// x as it is before zeros are put around it, where windows alone read these.
void Outside::takePadding() {
  while (x->op == Op::Pad && x->ints[0] == 0) {
    SmallVector<AffineForm, 4> forms(formsX());
    for (unsigned d = 0; d < x->rank(); ++d) {
      auto lo = x->indices()[d]->constIndex();
      if (x->shape[d] == x->src[0]->shape[d] && lo == 0) continue;
      if (!lo || forms[d].terms.size() != 2) return;
      forms[d].constant -= *lo;
    }
    x = x->src[0];
    formsX() = forms;
  }
}

/// Steps of all parts where the windows of these bits are taken apart, and elements that are padded for the others. A
/// tap that is outside is one step, of a few rows a tile takes as long as of `outsideLeast`.
Outside::Cost Outside::costOf(unsigned cut) const {
  double others = 1, columns = 1, inner = double(extents.back()->hi), taps = 1, padded = inner;
  for (int64_t l = 0; l < s.kept; ++l) {
    double n = double(std::max<int64_t>(extents[l]->lo, 1));
    bool inX = hasLabel(formsX(), l), inW = hasLabel(formsW(), l);
    if (inW && !inX) columns *= n;
    if (inX && !inW && llvm::none_of(windows, [&](const Window &v) { return v.kept == l; })) others *= n;
  }
  struct Part {
    double rows, taps;
  };
  SmallVector<Part, 16> parts{{others, 1}};
  bool pads = false;
  int64_t count = 1;
  for (auto [i, v] : llvm::enumerate(windows)) {
    bool isCut = cut >> i & 1;
    const AffineForm &f = formsX()[v.axis];
    double all = double(extents[v.tap]->hi);
    pads |= !isCut;
    padded *= double(isCut ? sizes[i].before : sizes[i].padded);
    taps *= all;
    SmallVector<Part, 16> next;
    for (Part p : parts)
      if (isCut)
        for (const Reach &part : partsOf({f.terms[0].second, f.terms[1].second, f.constant, int64_t(all)},
                                         sizes[i].before, sizes[i].result))
          next.push_back({p.rows * double(part.count), p.taps * double(part.taps)});
      else
        next.push_back({p.rows * double(sizes[i].result), p.taps * all});
    parts = next;
    if (isCut) count = llvm::SaturatingMultiply<uint64_t>(count, v.parts.size());
  }
  Cost cost{pads ? padded * others : 0, parts[0].rows, count};
  for (Part p : parts) {
    cost.steps += (p.taps * inner + (taps - p.taps)) * std::max(p.rows, double(threshold::outsideLeast)) * columns;
    cost.leastRows = std::min(cost.leastRows, p.rows);
  }
  return cost;
}

/// Elements before and behind x that a window reads.
std::pair<int64_t, int64_t> Outside::paddingOf(const Window &v) const {
  const AffineForm &f = formsX()[v.axis];
  int64_t across = (extents[v.tap]->ints[0] - 1) * f.terms[1].second,
          along = (extents[v.kept]->ints[0] - 1) * f.terms[0].second, least = f.constant + std::min<int64_t>(across, 0),
          most = along + f.constant + std::max<int64_t>(across, 0);
  return {std::max<int64_t>(-least, 0), std::max<int64_t>(most - (x->shape[v.axis]->ints[0] - 1), 0)};
}

bool Outside::isWorth(unsigned cut) const {
  Cost whole = costOf(0), parts = costOf(cut);
  int64_t most = parts.leastRows < threshold::outsideManyRows ? threshold::outsideFew : threshold::outsideMany; // %
  return parts.parts <= mostParts && parts.steps <= double(most) / 100 * whole.steps;
}

/// What each tap adds where it is outside: the third operand, whose forms go to `to`.
UOpRef Outside::sumOutside(ContractSpec &to, ArrayRef<int64_t> firsts) {
  int64_t last = s.kept + s.reduced - 1, length = *extents[last]->constIndex(),
          block = std::min<int64_t>(length, chainBlock), blocks = llvm::divideCeil(length, block);
  SmallVector<int64_t, 6> order;
  for (int64_t l = s.kept; l <= last; ++l)
    order.push_back(llvm::find_if(formsW(), [&](const AffineForm &f) { return hasLabel(f, l); }) - formsW().begin());
  for (auto [j, first] : llvm::enumerate(firsts)) to.outside.push_back({{{s.kept + int64_t(j), 1}}, first});
  to.outside.push_back({{{last, 1}}, 0, chainBlock});
  for (unsigned axis = 0; axis < w->rank(); ++axis)
    if (!llvm::is_contained(order, int64_t(axis))) order.push_back(axis), to.outside.push_back(formsW()[axis]);
  UOpRef zeros = b.permute(w, order);
  zeros = b.mul(zeros, b.splat(b.lit(w->dtype, 0.0), zeros->shape));
  size_t at = firsts.size();
  SmallVector<UOpRef, 6> none(zeros->rank(), b.idx(0)), more = none;
  more[at] = b.idx(blocks * block - length);
  if (blocks * block > length) zeros = b.pad(zeros, none, more, reduceIdentity(ReduceKind::Sum, w->dtype));
  SmallVector<UOpRef, 6> shape = shapeOf(zeros);
  shape[at] = b.idx(blocks);
  shape.insert(shape.begin() + at + 1, b.idx(block));
  return b.reduce(ReduceKind::Sum, b.reshape(zeros, shape), {int64_t(at) + 1});
}

UOpRef Outside::run() {
  constexpr size_t mostWindows = 4;
  if (!isPlain()) return nullptr;
  auto isPart = [](const Window &v) { return v.parts.size() == 1 && v.parts[0].first == 0; };
  // Of the operand that has windows, without what is padded around it.
  auto all = windowsOf(s, extents, r->src[0], r->src[1]);
  if (all.empty()) return nullptr;
  side = all[0].operand, x = r->src[side], w = r->src[!side];
  if (llvm::any_of(all, [&](const Window &v) { return v.operand != side; })) return nullptr;
  takePadding();
  all = windowsOf(s, extents, side ? w : x, side ? x : w);
  // Whether a label is behind the taps: phases give a part to each summed label but the last.
  const bool hasInner = llvm::none_of(all, [&](const Window &v) { return v.tap == s.kept + s.reduced - 1; });
  for (Window &v : all)
    if (!isPart(v) || v.parts[0].taps != extents[v.tap]->hi) windows.push_back(std::move(v));
  if (windows.empty() || windows.size() > mostWindows) return nullptr;
  if (!hasInner) {
    int64_t all = 1;
    for (UOpRef e : llvm::drop_begin(extents, s.kept)) all = llvm::SaturatingMultiply<uint64_t>(all, *e->constIndex());
    if (all > chainBlock) return nullptr;
    addInner();
  }
  int64_t last = s.kept + s.reduced - 1;
  for (const AffineForm &f : formsW()) {
    bool sums = llvm::any_of(f.terms, [&](auto &t) { return t.first >= s.kept; });
    if (sums && !f.isLabel()) return nullptr;
  }
  for (int64_t l = s.kept; l <= last; ++l)
    if (llvm::count_if(formsW(), [&](const AffineForm &f) { return hasLabel(f, l); }) != 1) return nullptr;
  for (const Window &v : windows) {
    auto [before, after] = paddingOf(v);
    int64_t size = x->shape[v.axis]->ints[0];
    sizes.push_back({size, before + size + after, extents[v.kept]->ints[0]});
  }
  unsigned best = 0;
  for (unsigned cut = 1; cut < 1u << windows.size(); ++cut)
    if (isWorth(cut) && (!best || costOf(cut).steps < costOf(best).steps)) best = cut;
  if (!best) return nullptr;

  // The taps that are inside somewhere, of those that are taken apart; the others read what is padded.
  ContractSpec to = s;
  auto &forms = side ? to.b : to.a;
  SmallVector<int64_t, 4> firsts(s.reduced - 1, 0);
  SmallVector<UOpRef, 8> lengths(extents);
  SmallVector<UOpRef, 6> begin(w->rank(), b.idx(0)), size = shapeOf(w);
  SmallVector<UOpRef, 6> lo(x->rank(), b.idx(0)), hi = lo;
  bool pads = false;
  for (auto [i, v] : llvm::enumerate(windows)) {
    AffineForm &f = forms[v.axis];
    int64_t step = f.terms[0].second, d = f.terms[1].second, taps = *extents[v.tap]->constIndex();
    if (!(best >> i & 1)) {
      auto [before, after] = paddingOf(v);
      lo[v.axis] = b.idx(before), hi[v.axis] = b.idx(after);
      f.constant += before;
      pads |= before > 0 || after > 0;
      continue;
    }
    int64_t first = taps, end = 0;
    for (const Reach &p : v.parts)
      if (p.taps) first = std::min(first, p.first), end = std::max(end, p.first + p.taps);
    if (first >= end) first = 0, end = 1; // all is outside
    firsts[v.tap - s.kept] = first;
    lengths[v.tap] = b.idx(end - first);
    f.constant += first * d;
    unsigned axis = llvm::find_if(formsW(), [&](const AffineForm &g) { return hasLabel(g, v.tap); }) - formsW().begin();
    begin[axis] = b.idx(first), size[axis] = lengths[v.tap];
    // Of one tap the index is a label.
    if (end - first == 1 && step == 1 && f.constant == 0 && extents[v.kept] == x->shape[v.axis]) f.terms.pop_back();
  }
  UOpRef z = sumOutside(to, firsts);
  if (ArrayRef<UOpRef>(size) != ArrayRef<UOpRef>(w->shape)) w = b.shrink(w, begin, size);
  if (pads) x = b.pad(x, lo, hi);
  return b.contract(to, side ? w : x, side ? x : w, z, lengths);
}
} // namespace

void astra::leaveOutside(Module &m) {
  Builder b(m.ctx());
  mapValues(m, [&](UOpRef n) {
    UOpRef y = n->op == Op::Contract ? Outside(b, n).run() : nullptr;
    return y ? y : n;
  });
}
