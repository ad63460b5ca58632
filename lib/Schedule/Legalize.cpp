//===- Legalize.cpp: what kernels can say ----------------------------------===//
// Takes:    a graph past the numerics stage.
// Gives:    an equal graph, bit for bit, in which every lane64 sum has one axis, other reduced axes are chains, and no
//           contract reads outside its operands or a permuted one.
// Keeps:    the order of every sum (N4): the rewrites are its definition, written out.
#include "Legalize.h"
#include "Fusion.h"
#include "Thresholds.h"
#include "astra/IR/Domain.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>

using namespace astra;
using llvm::SmallVector;

/// Whether a value is an input, moved, padded and computed with: its channels come first then, and each tap's edge is
/// for lanes by themselves. What a convolution gives has its channels last.
static bool isOfInput(UOpRef x) {
  while ((has(x->op, Movement) && x->op != Op::Permute) || has(x->op, Elementwise)) x = x->src[0];
  return has(x->op, Leaf);
}

/// The minima or maxima of windows along several axes, one axis after another: a few elements for each instead of their
/// product. Null where that is not what `r` is, or does not pay.
static UOpRef minMaxByAxis(Builder &b, UOpRef r, const ReduceSpec &s) {
  SmallVector<UOpRef, 3> windows; // the outermost first
  UOpRef x = r->src[0];
  int64_t taps = 1;
  for (; x->op == Op::Window && windows.size() < s.axes.size(); x = x->src[0]) {
    if (!llvm::is_contained(s.axes, int64_t(x->rank()) - 1)) return nullptr;
    if (x->ints[2] >= x->ints[1] || x->shape[x->ints[0]]->hi < 2) return nullptr; // no element is in two of them
    windows.push_back(x);
    taps *= std::min(x->ints[1], threshold::windowOfValue);
  }
  bool isExtreme = s.kind == ReduceKind::Max || s.kind == ReduceKind::Min;
  if (!isExtreme || !s.domain.empty() || windows.size() < std::max<size_t>(s.axes.size(), 2)) return nullptr;
  bool innermost = llvm::any_of(windows, [&](UOpRef w) { return w->ints[0] + 1 == int64_t(x->rank()); });
  if (taps < (innermost && isOfInput(x) ? threshold::windowOfInput : threshold::windowOfValue)) return nullptr;
  for (UOpRef w : llvm::reverse(windows)) {
    UOpRef along = b.window(x, w->ints[0], w->ints[1], w->ints[2], w->ints[3]);
    x = b.reduce(ReduceSpec{s.kind, s.order, {int64_t(along->rank()) - 1}, {}}, along, {});
  }
  return x;
}

/// Whether x is read from a tensor in memory as large as it is: moved alone, or computed from it.
static bool isRead(Context &c, UOpRef x, bool mayCompute) {
  auto elements = [&](UOpRef n) { return idxProduct(c, n->shape)->hi; };
  bool isLarge = false;
  llvm::DenseSet<UOpRef> seen{x};
  for (std::vector<UOpRef> stack{x}; !stack.empty();) {
    UOpRef n = stack.back();
    stack.pop_back();
    bool computes = has(n->op, Elementwise);
    if (computes && !mayCompute) return false;
    if (!computes && !has(n->op, Movement)) {
      isLarge |= (isStored(n) || (n->op == Op::Contract && mayCompute)) && elements(n) >= elements(x);
      continue;
    }
    for (UOpRef s : n->tensors())
      if (seen.insert(s).second) stack.push_back(s);
  }
  return isLarge;
}

/// A long reduction along an outer axis, of few elements each, in two: chunks, then the same over their results, as N4
/// has it: each chunk is items of its own, where one core would read all of it. What lies together is at most a page.
/// What is left of the last chunk is a reduction of its own, but of what is computed, which would be written for both.
/// `r` where it is not such.
static UOpRef byChunks(Builder &b, UOpRef r) {
  constexpr int64_t chunk = laneChunk, least = 2 * chunk;
  ReduceSpec s = llvm::cantFail(decodeReduce(r->ints));
  UOpRef x = r->src[0];
  bool anyOrder = s.order == ReduceOrder::Lane64 || s.order == ReduceOrder::Exact;
  if (s.axes.size() != 1 || !anyOrder || !s.domain.empty() || isComplex(r->dtype)) return r;
  size_t axis = s.axes[0];
  UOpRef n = x->shape[axis], inner = idxProduct(b.c, x->shape.drop_front(axis + 1)), kept = idxProduct(b.c, r->shape);
  if (!n->isConst() || n->ints[0] < least || inner->lo < threshold::chunksLanes || kept->hi > threshold::chunksOfFew)
    return r;
  int64_t whole = n->ints[0] / chunk * chunk, left = n->ints[0] - whole;
  uint64_t bytes = byteSize(x->dtype);
  if (llvm::SaturatingMultiply(uint64_t(n->ints[0]), kept->hi * bytes) < threshold::chunksBytes ||
      inner->hi * bytes > uint64_t(pageBytes) || !isRead(b.c, x, !left))
    return r;
  auto part = [&](int64_t begin, int64_t count, int64_t size) {
    SmallVector<UOpRef, 6> first(x->rank(), b.idx(0)), shape = shapeOf(x);
    first[axis] = b.idx(begin), shape[axis] = b.idx(count * size);
    UOpRef own = count * size == n->ints[0] ? x : b.shrink(x, first, shape);
    shape[axis] = b.idx(size);
    shape.insert(shape.begin() + axis, b.idx(count));
    return b.reduce(ReduceSpec{s.kind, s.order, {int64_t(axis) + 1}, {}}, b.reshape(own, shape), {});
  };
  UOpRef parts = part(0, whole / chunk, chunk);
  if (left) parts = b.concat({parts, part(whole, 1, left)}, axis);
  return b.reduce(ReduceSpec{s.kind, s.order, {int64_t(axis)}, {}}, parts, {});
}

UOpRef astra::legalizeReduce(Builder &b, UOpRef r) {
  ReduceSpec s = llvm::cantFail(decodeReduce(r->ints));
  if (UOpRef y = minMaxByAxis(b, r, s)) return y;
  UOpRef x = r->src[0];
  size_t n = s.axes.size();
  if (n == 1 || s.order == ReduceOrder::Chain) return byChunks(b, r);
  if (!s.domain.empty()) {
    if (s.order == ReduceOrder::Exact) return r;
    x = b.select(inDomain(b, s.domain, r->indices(), x->shape), x,
                 b.lit(r->dtype, s.kind == ReduceKind::Sum ? -0.0 : 1.0));
  }
  // The last group of neighbouring axes.
  size_t first = n - 1;
  while (first > 0 && s.axes[first - 1] + 1 == s.axes[first]) --first;
  // Merge the group into one axis.
  SmallVector<UOpRef, 6> shape;
  UOpRef merged = b.idx(1);
  for (unsigned i = 0; i < x->rank(); ++i) {
    bool in = i >= unsigned(s.axes[first]) && i <= unsigned(s.axes.back());
    if (in) merged = idxMul(b.c, merged, x->shape[i]);
    if (!in || i == unsigned(s.axes.back())) shape.push_back(in ? merged : x->shape[i]);
  }
  int64_t axis = s.axes[first];
  UOpRef y = b.reduce(ReduceSpec{s.kind, s.order, {axis}, {}}, b.reshape(x, shape), {});
  if (first == 0) return byChunks(b, y);
  // Other axes: a plain chain over those results, outermost loop outermost.
  ReduceSpec rest{s.kind, s.order == ReduceOrder::Exact ? ReduceOrder::Exact : ReduceOrder::Chain, {}, {}};
  rest.axes.append(s.axes.begin(), s.axes.begin() + first);
  return b.reduce(rest, y, {});
}

/// An operand with an axis for each kept label of a contract that sums nothing, as long as it or 1; null: it is read
/// otherwise than along them.
static UOpRef alongLabels(Builder &b, UOpRef x, llvm::ArrayRef<AffineForm> forms, int64_t kept,
                          llvm::ArrayRef<UOpRef> extents) {
  SmallVector<int64_t, 6> order, axisOf(kept, -1);
  SmallVector<UOpRef, 6> shape;
  for (auto [axis, f] : llvm::enumerate(forms)) {
    auto terms = llvm::make_filter_range(f.terms, [&](auto &t) { return t.first < kept; }); // others are 0
    bool isOne = terms.empty() && f.constant == 0 && x->shape[axis] == b.idx(1);
    if (isOne) continue;
    if (!llvm::hasSingleElement(terms) || f.constant || f.divisor != 1) return nullptr;
    auto [label, step] = *terms.begin();
    if (step != 1 || axisOf[label] >= 0 || x->shape[axis] != extents[label]) return nullptr;
    axisOf[label] = int64_t(axis);
  }
  for (int64_t l = 0; l < kept; ++l) {
    if (axisOf[l] >= 0) order.push_back(axisOf[l]);
    shape.push_back(axisOf[l] >= 0 ? extents[l] : b.idx(1));
  }
  for (unsigned axis = 0; axis < x->rank(); ++axis) // of one element
    if (!llvm::is_contained(order, axis)) order.push_back(axis);
  return b.reshape(b.permute(x, order), shape);
}

/// The product that a contract is which sums nothing: -0.0 + x * y is x * y, and it is computed where it is read. Of
/// vectors alone: convolutions of one tap stay, which write their results into the padding of the next; and of many
/// rows, which a map takes line by line.
static UOpRef withoutSum(Builder &b, UOpRef r) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  auto extents = r->indices().take_front(s.kept + s.reduced);
  auto isOne = [](UOpRef e) { return e->constIndex() == 1; };
  SmallVector<UOpRef, 6> longer(llvm::make_filter_range(r->shape, std::not_fn(isOne)));
  if (longer.size() > 2 || (longer.size() == 2 && longer[0]->lo < threshold::mapRows)) return nullptr;
  if (r->ntensors > 2) return nullptr;
  bool exact = isInt(r->dtype) || byteSize(r->dtype) >= 4; // of less than 4 bytes sums are wider than products
  if (!exact || !s.domain.empty() || !llvm::all_of(extents.drop_front(s.kept), isOne)) return nullptr;
  UOpRef x = r->src[0], y = r->src[1];
  if (x->dtype != r->dtype || y->dtype != r->dtype) return nullptr;
  x = alongLabels(b, x, s.a, s.kept, extents), y = alongLabels(b, y, s.b, s.kept, extents);
  return x && y ? b.mul(b.expand(x, r->shape), b.expand(y, r->shape)) : nullptr;
}

UOpRef astra::legalizeContract(Builder &b, UOpRef r) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  auto extents = r->indices().take_front(s.kept + s.reduced);
  SmallVector<UOpRef, 2> operands{r->src[0], r->src[1]};
  bool changed = false;
  for (unsigned o : {0u, 1u}) {
    auto &forms = o ? s.b : s.a;
    for (; operands[o]->op == Op::Permute; operands[o] = operands[o]->src[0], changed = true) {
      // Another order of axes is another order of forms: so a transposed weight is a weight, whose layout is ours to
      // choose.
      auto seen = forms;
      for (auto [form, axis] : llvm::zip_equal(seen, operands[o]->ints)) forms[axis] = form;
    }
    UOpRef x = operands[o], zero = b.idx(0);
    SmallVector<UOpRef, 6> lo(x->rank(), zero), hi(x->rank(), zero);
    bool pads = false;
    for (unsigned d = 0; d < x->rank(); ++d) {
      AffineForm &f = forms[d];
      if (f.isLabel() || f.divisor != 1 || !s.outside.empty()) continue; // a quotient keeps its gates
      UOpRef least = b.idx(f.constant), most = least;
      for (auto [l, k] : f.terms) {
        UOpRef span = idxMul(b.c, idxSub(b.c, extents[l], b.idx(1)), b.idx(k));
        (k > 0 ? most : least) = idxAdd(b.c, k > 0 ? most : least, span);
      }
      UOpRef before = idxMax(b.c, zero, idxMul(b.c, least, b.idx(-1))),
             after = idxMax(b.c, zero, idxSub(b.c, most, idxSub(b.c, x->shape[d], b.idx(1))));
      auto known = before->constIndex();
      if (!known) continue; // a symbolic start: the gates stay
      if (*known == 0 && after->hi == 0) continue;
      constexpr int64_t much = int64_t(1) << 20; // elements beside the axis, which padding would have in memory
      if (*known > much || after->hi > much) continue;
      lo[d] = before;
      hi[d] = after;
      f.constant += *known;
      pads = true;
    }
    if (!pads) continue;
    operands[o] = b.pad(x, lo, hi);
    SmallVector<UOpRef, 4> read = shapeOf(operands[o]); // an axis that a label alone indexes is as long as it
    for (unsigned d = 0; d < x->rank(); ++d)
      if (forms[d].isLabel()) read[d] = extents[forms[d].terms[0].first];
    if (read != shapeOf(operands[o]))
      operands[o] = b.shrink(operands[o], SmallVector<UOpRef, 4>(x->rank(), zero), read);
    changed = true;
  }
  if (!changed) return r;
  if (!s.outside.empty()) return b.contract(s, operands[0], operands[1], r->src[2], extents);
  return b.contract(s, operands[0], operands[1], extents, r->indices().drop_front(s.kept + s.reduced));
}

static UOpRef legalizeAnyContract(Builder &b, UOpRef r);

/// Conditions of kept labels alone say which results are sums: they are tested of results, instead of each product lane
/// by lane (the gradient of causal attention's weights was a third of a training step of chargpt, at 2 GFLOP/s). What
/// is no sum is what sums begin with. Null where there is no such condition.
static UOpRef testedBehind(Builder &b, UOpRef r) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints)), rest = s;
  auto extents = r->indices().take_front(s.kept + s.reduced), bounds = r->indices().drop_front(s.kept + s.reduced);
  if (r->ntensors > 2 || s.unit || !s.reduced || isComplex(r->dtype) ||
      llvm::any_of(extents.drop_front(s.kept), [](UOpRef e) { return e->lo < 1; }))
    return nullptr;
  rest.domain.clear();
  SmallVector<AffineForm, 2> ofResults;
  SmallVector<UOpRef, 2> limits, others;
  for (auto [f, bound] : llvm::zip(s.domain, bounds)) {
    bool summed = llvm::any_of(f.terms, [&](auto &t) { return t.first >= s.kept; });
    summed ? rest.domain.push_back(f) : ofResults.push_back(f);
    (summed ? others : limits).push_back(bound);
  }
  if (ofResults.empty()) return nullptr;
  UOpRef none = isFloat(r->dtype) ? b.lit(r->dtype, -0.0) : b.litInt(r->dtype, 0);
  UOpRef sum = legalizeAnyContract(b, b.contract(rest, r->src[0], r->src[1], extents, others));
  return b.select(inDomain(b, ofResults, limits, r->shape), sum, b.splat(none, r->shape));
}

static UOpRef legalizeAnyContract(Builder &b, UOpRef r) {
  if (UOpRef y = testedBehind(b, r)) return y;
  if (UOpRef y = withoutSum(b, r)) return y;
  if (UOpRef y = withoutHoles(b, r)) return y;
  return legalizeContract(b, r);
}

static UOpRef skipped(Builder &, UOpRef mark) { return mark->src[0]; }

/// The sorts of which nothing but first parts is read, and how many at most.
static llvm::DenseMap<UOpRef, int64_t> sortsOfFirst(llvm::ArrayRef<UOpRef> order, llvm::ArrayRef<UOpRef> roots) {
  llvm::DenseMap<UOpRef, int64_t> out;
  llvm::DenseSet<UOpRef> whole(roots.begin(), roots.end());
  for (UOpRef n : order)
    for (UOpRef s : n->src) {
      if (s->op != Op::ArgSort) continue;
      if (int64_t count = firstOfSortRead(n))
        out[s] = std::max(out[s], count);
      else
        whole.insert(s);
    }
  for (UOpRef s : whole) out.erase(s);
  return out;
}

std::vector<UOpRef> astra::legalize(Context &c, llvm::ArrayRef<UOpRef> roots,
                                    llvm::function_ref<void(UOpRef to, UOpRef from)> replaced) {
  Builder b(c);
  struct Row {
    Op op;
    UOpRef (*rewrite)(Builder &, UOpRef);
  };
  static constexpr Row rows[] = {{Op::Reduce, legalizeReduce},
                                 {Op::Contract, legalizeAnyContract},
                                 {Op::ArgReduce, legalizeArgReduce},
                                 {Op::ArgSort, legalizeArgSort},
                                 {Op::Scatter, legalizeScatter},
                                 {Op::Compact, legalizeCompact},
                                 {Op::Cumulate, legalizeCumulate},
                                 {Op::Real, legalizePart},
                                 {Op::Imag, legalizePart},
                                 {Op::Complex, legalizeComplex},
                                 {Op::Cast, legalizeCast},
                                 {Op::Gather, legalizeGather},
                                 {Op::Proj, legalizeProj},
                                 {Op::Tap, skipped},
                                 {Op::Detach, skipped}};
  std::vector<UOpRef> now(c.size());
  std::vector<UOpRef> order = topoSort(roots);
  llvm::DenseMap<UOpRef, int64_t> firsts = sortsOfFirst(order, roots);
  auto become = [&](UOpRef n, UOpRef to) {
    now[n->id] = to;
    if (replaced) replaced(to, n);
  };
  for (UOpRef n : order) {
    SmallVector<UOpRef, 4> src;
    for (UOpRef s : n->src) src.push_back(now[s->id]);
    if (int64_t count = firsts.lookup(n)) { // its readers take parts of that
      become(n, firstOfSort(b, n, src[0], count));
      continue;
    }
    UOpRef m = c.withSources(n, src);
    for (const Row &row : rows)
      if (m->op == row.op) m = row.rewrite(b, m);
    if (has(m->op, Elementwise)) m = legalizeElementwise(b, m);
    become(n, m);
  }
  std::vector<UOpRef> out;
  for (UOpRef r : roots) out.push_back(now[r->id]);
  return out;
}
