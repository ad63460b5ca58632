//===- ContractLayout.cpp: how a contract's operands and result are stored -===//
// Takes:    a contract, and where its operands lie or of which parameters they are made.
// Gives:    the label along which its lanes run; steps that store, pack or copy operands so that they are neighbours
//           along it; the layout of the result.
// Keeps:    layouts are a matter of speed alone: every kernel can read every layout. A parameter that is stored stays
//           as it is.
// Does not: do what it chose: Scheduler::carryOut does.
#include "PlaceFacts.h"
#include "Thresholds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

static constexpr int64_t panel = threshold::panelWidth;

/// Panels of an operand along an axis: lane blocks, then the reduced axes in the order of the loops, then what is left,
/// then the lane.
static Layout panels(const ContractSpec &s, llvm::ArrayRef<AffineForm> forms, unsigned axis) {
  Layout l;
  l.dims.push_back({int64_t(axis), panel, 0});
  SmallVector<bool> taken(forms.size());
  taken[axis] = true;
  auto take = [&](unsigned d) {
    if (!taken[d]) l.dims.push_back({int64_t(d)}), taken[d] = true;
  };
  for (unsigned d = 0; d < forms.size(); ++d) // kept labels outside
    if (llvm::any_of(forms[d].terms, [&](auto t) { return t.first < s.kept; })) take(d);
  for (int64_t label = s.kept; label < s.kept + s.reduced; ++label)
    for (unsigned d = 0; d < forms.size(); ++d)
      if (llvm::any_of(forms[d].terms, [&](auto t) { return t.first == label; })) take(d);
  for (unsigned d = 0; d < forms.size(); ++d) take(d);
  l.dims.push_back({int64_t(axis), 1, panel});
  return l;
}

/// Panels along an axis, the other axes in their order.
static Layout panelsAlong(unsigned rank, unsigned axis) {
  Layout l;
  l.dims.push_back({int64_t(axis), panel, 0});
  for (unsigned d = 0; d < rank; ++d)
    if (d != axis) l.dims.push_back({int64_t(d)});
  l.dims.push_back({int64_t(axis), 1, panel});
  return l;
}

/// Whether the instructions of a unit read both operands along the sum: those of NVIDIA's do (docs/gpu.md).
static bool readsAlongSum(const ContractSpec &s) {
  llvm::StringRef unit = s.unit ? s.unit->text : "";
  return unit.starts_with("hopper") || unit.starts_with("ampere");
}

/// Lines along the sum: kept axes in their order, then those that are summed, in the order of their loops.
static Layout alongSum(const ContractSpec &s, llvm::ArrayRef<AffineForm> forms) {
  Layout l;
  for (unsigned d = 0; d < forms.size(); ++d)
    if (forms[d].terms[0].first < s.kept) l.dims.push_back({int64_t(d)});
  for (int64_t label = s.kept; label < s.kept + s.reduced; ++label)
    for (unsigned d = 0; d < forms.size(); ++d)
      if (forms[d].terms[0].first == label) l.dims.push_back({int64_t(d)});
  return l;
}

/// How many labels are summed; the words of a matrix unit's step are none.
static int64_t summed(const ContractSpec &s) { return s.reduced - (s.unit ? 1 : 0); }

static bool reads(const AffineForm &f, int64_t label) {
  return llvm::any_of(f.terms, [&](auto &t) { return t.first == label; });
}

static int64_t countReads(ArrayRef<AffineForm> forms, int64_t label) {
  return llvm::count_if(forms, [&](const AffineForm &f) { return reads(f, label); });
}

/// Whether a label is kept, and one axis of an operand and no other reads it.
static bool isOwn(int64_t label, const ContractSpec &s, ArrayRef<AffineForm> forms, ArrayRef<AffineForm> other) {
  return label < s.kept && !countReads(other, label) && countReads(forms, label) == 1;
}

/// How often an element of an operand is read in which lanes run along a label: by rows that have other labels alone,
/// and by the taps of a window along that one.
static int64_t readsOf(UOpRef r, const ContractSpec &s, ArrayRef<AffineForm> forms, int64_t lanes) {
  constexpr int64_t large = int64_t(1) << 20;
  auto isTap = [&](int64_t l) {
    return llvm::any_of(forms, [&](const AffineForm &f) { return reads(f, l) && reads(f, lanes); });
  };
  int64_t times = 1;
  for (int64_t l = 0; l < s.kept + s.reduced; ++l)
    if (l != lanes && (l < s.kept ? !countReads(forms, l) : isTap(l)))
      times = std::min(times * std::max<int64_t>(r->indices()[l]->hi, 1), large);
  return times;
}

std::vector<LayoutStep> Scheduler::layoutsOfTables(llvm::ArrayRef<UOpRef> roots) const {
  std::vector<LayoutStep> steps;
  llvm::DenseSet<UOpRef> tables;
  auto order = topoSort(roots);
  for (UOpRef n : order)
    if (n->op == Op::Gather && n->src[0]->op == Op::Param && !storedParams.count(n->src[0])) tables.insert(n->src[0]);
  for (UOpRef n : order) {
    if (n->op != Op::Contract || n->src[0] == n->src[1]) continue;
    ContractSpec s = llvm::cantFail(decodeContract(n->ints));
    for (unsigned o : {0u, 1u}) {
      // Of packed rows that are gathered the contract's operand is arithmetic on them.
      UOpRef weight =
          n->src[o]->op == Op::Param || !has(n->src[o]->op, Elementwise) ? n->src[o] : weightBehind(n->src[o]);
      if (!weight || !tables.contains(weight)) continue;
      auto &forms = o ? s.b : s.a, &other = o ? s.a : s.b;
      int64_t best = -1, most = panel - 1;
      for (unsigned axis = 0; axis < forms.size(); ++axis) {
        if (!forms[axis].isLabel()) continue;
        int64_t label = forms[axis].terms[0].first, extent = n->src[o]->shape[axis]->hi;
        if (isOwn(label, s, forms, other) && extent > most) best = axis, most = extent;
      }
      if (best < 0) continue;
      steps.push_back({LayoutStep::Store, weight, panels(s, forms, unsigned(best))});
      tables.erase(weight);
    }
  }
  return steps;
}

/// The choice of a contract's lanes, then of the layouts that go with it.
class Scheduler::ContractLayout {
public:
  ContractLayout(const Scheduler &scheduler, UOpRef r)
      : facts(scheduler), r(r), s(llvm::cantFail(decodeContract(r->ints))), operands{r->src[0], r->src[1]},
        own(ownAxes()) {
    changes = llvm::none_of(operands, [&](UOpRef x) { return isPacked(x) || facts.paramOf(x); });
    isBatched = llvm::any_of(llvm::seq(s.kept),
                             [&](int64_t l) { return r->shape[l]->hi > 1 && useOf(0, l).count && useOf(1, l).count; });
  }
  /// The kept label along which lanes cost least; -1: none.
  int64_t cheapestLanes();
  /// Unpacks words and weights along which no lanes run.
  void storeBesideLanes(int64_t lanes);
  /// Has the operands along which lanes run as neighbours there.
  void storeAlongLanes(int64_t lanes);
  /// Has the words of a unit whose instructions read both operands along the sum lie so; false where they cannot.
  bool storeAlongSum();
  /// Parameters of which the operands of `sum`, a sum over this contract, are computed, in panels of the columns that
  /// its lanes are.
  void storeBlockScales(UOpRef sum, int64_t lanes);
  /// Copies that are worth it for the sum: into panels along own axes, or into lines along the sum.
  void repackForSum(int64_t lanes);
  static Layout ofResult(UOpRef r, const ContractSpec &s, int64_t lanes);
  std::vector<LayoutStep> takeSteps() { return std::move(facts.steps); }

private:
  /// How an operand reads a label: along which axis, in how many terms, as a plain one.
  struct Use {
    unsigned axis = 0, count = 0;
    bool plain = false;
  };
  PlaceFacts facts; // as the steps make them
  UOpRef r;
  ContractSpec s;
  UOpRef operands[2];
  std::optional<std::array<unsigned, 2>> own;
  bool changes;   // neither operand is of a parameter
  bool isBatched; // many products, each of operands of its own

  ArrayRef<AffineForm> formsOf(unsigned o) const { return o ? s.b : s.a; }
  Use useOf(unsigned o, int64_t label) const {
    Use u;
    for (auto [d, f] : llvm::enumerate(formsOf(o)))
      for (auto [l, k] : f.terms)
        if (l == label) u = {unsigned(d), u.count + 1, f.divisor == 1 && k == 1};
    return u;
  }
  bool inPanels(unsigned o, unsigned axis) const { return facts.canStore(operands[o], panels(s, formsOf(o), axis)); }
  /// Panels of whole registers, several of them, for a sum over more than one label: a tile would read columns of every
  /// place of the other axes, each in another page.
  bool lendable(unsigned o, unsigned axis) const {
    auto extent = operands[o]->shape[axis]->constIndex();
    return summed(s) > 1 && extent && *extent >= threshold::repackWidth && *extent % panel == 0;
  }
  /// Weights, which have one kept label, are worth more than lanes along an image that need no copy.
  bool isWeight(unsigned o) const {
    auto isOther = [&](const AffineForm &f) { return !f.isLabel() || f.terms[0].first < s.kept; };
    return llvm::count_if(formsOf(o), isOther) == 1;
  }
  int64_t keptLabels(unsigned o) const {
    return llvm::count_if(llvm::seq(s.kept), [&](int64_t l) { return useOf(o, l).count; });
  }
  /// A weight that its kernel does not unpack is unpacked before it, where it is wanted.
  bool unpacksBefore(unsigned o) const {
    return facts.computedHere(operands[o]) && weightBehind(operands[o]) && !unpacksWhereRead(r, o);
  }
  /// Products of the sum; `most` where they are more.
  int64_t lengthOfSum(int64_t most) const {
    int64_t n = 1;
    for (int64_t l = s.kept; l < s.kept + s.reduced; ++l)
      n = std::min(n * std::max<int64_t>(r->indices()[l]->lo, 1), most);
    return n;
  }
  /// Of a long sum over several labels (the gradient of a convolution's weight) the axis of each operand along which it
  /// is worth to lie in panels: one of many that are neighbours, and that the other operand does not have.
  std::optional<std::array<unsigned, 2>> ownAxes();
  /// The axis of operand `o`, along which no lanes run, over which a long sum goes from line to line of memory while
  /// many lanes read each element: a tile's sum and a panel do not fit the L1, so a copy whose lines lie along
  /// the sum is worth it (a 1x1 convolution of an image that comes channel by channel).
  std::optional<unsigned> summedAcross(unsigned o, int64_t lanes);
  bool turnsOther(unsigned o, int64_t reads) const;
  std::optional<int64_t> costOfLanes(int64_t label);

  void add(LayoutStep::Kind kind, UOpRef value, Layout layout = {}) { facts.add({kind, value, std::move(layout)}); }
  void storeOperand(UOpRef operand, const Layout &layout);
};

std::optional<std::array<unsigned, 2>> Scheduler::ContractLayout::ownAxes() {
  constexpr int64_t large = int64_t(1) << 20;
  if (summed(s) < 2 || !s.domain.empty() || operands[0] == operands[1]) return std::nullopt;
  int64_t steps = 1;
  for (UOpRef e : r->indices().slice(s.kept, s.reduced))
    steps = std::min(steps * std::clamp<int64_t>(e->lo, 0, large), large);
  if (steps < threshold::repackSum) return std::nullopt;
  // Of a step of one product (of many, each copies its own), elements that have to be worth their copy.
  uint64_t products = 1, copied = 0;
  for (int64_t l = 0; l < s.kept; ++l)
    if (!countReads(s.a, l) || !countReads(s.b, l))
      products = llvm::SaturatingMultiply<uint64_t>(products, std::max<int64_t>(r->shape[l]->lo, 1));
  std::array<unsigned, 2> axes;
  for (unsigned o : {0u, 1u}) {
    UOpRef x = operands[o];
    ArrayRef<AffineForm> forms = formsOf(o), other = formsOf(!o);
    bool found = false;
    if (facts.computedHere(x) || facts.canStore(x, Layout::rowMajor(x->rank()))) return std::nullopt;
    for (unsigned d = 0; d < forms.size(); ++d) {
      auto extent = x->shape[d]->constIndex();
      if (!forms[d].isLabel() || !extent || *extent < threshold::repackWidth || *extent % panel) continue;
      int64_t label = forms[d].terms[0].first;
      if (!isOwn(label, s, forms, other) || facts.strideOf(x, d) != 1) continue;
      axes[o] = d;
      found = true;
    }
    if (!found) return std::nullopt;
    copied += x->shape[axes[o]]->ints[0];
  }
  if (products / threshold::repackReads < copied) return std::nullopt;
  return axes;
}

std::optional<unsigned> Scheduler::ContractLayout::summedAcross(unsigned o, int64_t lanes) {
  UOpRef x = operands[o];
  int64_t line = threshold::acrossLine / std::max(1u, byteSize(x->dtype)); // elements
  ArrayRef<AffineForm> forms = formsOf(o);
  if (facts.computedHere(x) || facts.paramOf(x) || x->op == Op::Words || countReads(forms, lanes) ||
      std::min(r->shape[lanes]->hi, threshold::acrossReads) * readsOf(r, s, forms, lanes) < threshold::acrossReads)
    return std::nullopt;
  std::optional<unsigned> longest;
  for (unsigned d = 0; d < forms.size(); ++d) {
    if (!forms[d].isLabel() || forms[d].terms[0].first < s.kept || x->shape[d]->lo < threshold::acrossSum) continue;
    auto stride = facts.strideOf(x, d);
    bool isScattered = !stride && llvm::all_of(x->shape, [](UOpRef e) { return e->isConst(); }); // several strides
    if (!isScattered && (!stride || *stride < line)) return std::nullopt;
    if (!longest || x->shape[d]->lo > x->shape[*longest]->lo) longest = d;
  }
  return longest;
}

/// Stores an operand that `canStore`, if it is not stored yet.
void Scheduler::ContractLayout::storeOperand(UOpRef operand, const Layout &layout) {
  auto store = [&](UOpRef param, const Layout &l) {
    if (!facts.storedAs(param)) add(LayoutStep::Store, param, l);
  };
  if (operand->op == Op::Words) {
    SmallVector<int64_t, 6> axes;
    UOpRef param = paramOfWords(operand, axes);
    store(param, ofBytes(layout, axes));
    return add(LayoutStep::StoreWords, operand, layout);
  }
  store(facts.paramOf(operand), layout);
  if (facts.computedHere(operand)) // the scales of its blocks lie as the weight does
    for (UOpRef plane : planesBehind(operand)) store(plane, layout);
}

/// A copy that few reads pay for is worse than one of an operand that is much smaller; not so of short sums, as
/// attention's, whose rows a softmax passes.
bool Scheduler::ContractLayout::turnsOther(unsigned o, int64_t reads) const {
  constexpr int64_t longSum = threshold::turnSum;
  auto elements = [&](unsigned o) { return idxProduct(facts.c, operands[o]->shape)->hi; };
  return changes && lengthOfSum(longSum) == longSum && reads <= threshold::turnReads &&
         elements(o) / threshold::turnLarger >= elements(!o);
}

/// What lanes along a kept label cost beside the products; nothing where none can run along it.
std::optional<int64_t> Scheduler::ContractLayout::costOfLanes(int64_t label) {
  int64_t extent = r->shape[label]->hi, cost = 0;
  Use u[] = {useOf(0, label), useOf(1, label)};
  if (extent < 2 || (u[0].count && u[1].count && operands[0] == operands[1])) return std::nullopt;
  for (unsigned o : {0u, 1u}) {
    if (!u[o].count) continue;
    if (u[o].count != 1 || !u[o].plain) return std::nullopt;
    if (inPanels(o, u[o].axis) || facts.runsAlong(operands[o], u[o].axis)) continue;
    int64_t reads = readsOf(r, s, formsOf(o), label);
    if (reads < threshold::copyReads) return std::nullopt; // else a copy with this axis innermost is worth it
    cost += isWeight(o) && lendable(o, u[o].axis) ? threshold::lanesByPanels : threshold::lanesByCopy;
    cost += turnsOther(o, reads);
  }
  if (u[0].count && u[1].count) cost += threshold::lanesOfBoth;
  if (extent < threshold::fewLanes) cost += threshold::lanesOfFew;
  // A copy is worth more than lanes of a register or less, where no weight has its layout chosen for it.
  if (extent <= panel && summed(s) > 1 && changes) cost += threshold::lanesOfPanel;
  // Along the operand that has the taps, which then are places of one tile after another and not rows of it.
  for (unsigned o : {0u, 1u})
    if (own && u[o].count && u[o].axis == (*own)[o] && keptLabels(o) > keptLabels(!o)) --cost;
  return cost;
}

int64_t Scheduler::ContractLayout::cheapestLanes() {
  constexpr int64_t tooDear = 100;
  // Of products whose operands both change, as attention's, two panels are as good as more. Of one product where its
  // sum is short, for then the result is what is large, and is better stored in the order of its axes; of a long sum
  // the smaller operand is the one to copy.
  constexpr int64_t longSum = threshold::enoughSum;
  const int64_t enough = changes && (isBatched || lengthOfSum(longSum) < longSum) ? threshold::enoughLanes
                                                                                  : std::numeric_limits<int64_t>::max();
  int64_t best = -1;
  std::pair<int64_t, int64_t> bestScore{tooDear, 0};
  for (int64_t l = 0; l < s.kept; ++l) {
    std::optional<int64_t> cost = costOfLanes(l);
    if (!cost) continue;
    // Of equals the innermost: reductions go along it, and the result lies in the order of its axes.
    std::pair<int64_t, int64_t> score{*cost, -std::min(r->shape[l]->hi, enough)};
    if (score <= bestScore) bestScore = score, best = l;
  }
  return best;
}

void Scheduler::ContractLayout::storeBesideLanes(int64_t lanes) {
  for (unsigned o : {0u, 1u}) {
    Use u = lanes < 0 ? Use() : useOf(o, lanes);
    UOpRef x = operands[o];
    Layout plain = Layout::rowMajor(x->rank());
    if (!u.count && unpacksBefore(o)) add(LayoutStep::Repack, x, plain);
    if (x->op != Op::Words || facts.given(x) || (u.count && inPanels(o, u.axis))) continue;
    if (facts.canStore(x, plain))
      storeOperand(x, plain);
    else if (facts.placeInBytes(x))
      add(LayoutStep::ShareBytes, x);
    else
      add(LayoutStep::Compute, x, facts.inputOrder(x, false).value_or(plain));
  }
}

void Scheduler::ContractLayout::storeAlongLanes(int64_t lanes) {
  for (unsigned o : {0u, 1u}) {
    Use u = useOf(o, lanes);
    if (!u.count) continue;
    UOpRef x = operands[o];
    bool before = unpacksBefore(o), stored = inPanels(o, u.axis);
    if (stored) storeOperand(x, panels(s, formsOf(o), u.axis));
    if (!before && (stored || facts.runsAlong(x, u.axis))) continue;
    if (!before && facts.unpacks(x, u.axis))
      add(LayoutStep::Unpack, x);
    else if (before || lendable(o, u.axis))
      add(LayoutStep::Repack, x, panels(s, formsOf(o), u.axis));
    else
      add(LayoutStep::Pack, x, lastAxis(x->rank(), u.axis));
  }
}

bool Scheduler::ContractLayout::storeAlongSum() {
  if (!readsAlongSum(s) || operands[0] == operands[1]) return false;
  for (unsigned o : {0u, 1u})
    if (!llvm::all_of(formsOf(o), [](const AffineForm &f) { return f.isLabel(); })) return false;
  for (unsigned o : {0u, 1u}) {
    Layout l = alongSum(s, formsOf(o));
    const Place *own = facts.given(operands[o]);
    if (!own || own->layout != l) add(LayoutStep::Repack, operands[o], l);
  }
  return true;
}

void Scheduler::ContractLayout::repackForSum(int64_t lanes) {
  for (unsigned o : {0u, 1u}) {
    UOpRef x = operands[o];
    if (own)
      add(LayoutStep::Repack, x, panelsAlong(x->rank(), (*own)[o]));
    else if (auto axis = summedAcross(o, lanes))
      add(LayoutStep::Repack, x, lastAxis(x->rank(), *axis));
  }
}

Layout Scheduler::ContractLayout::ofResult(UOpRef r, const ContractSpec &s, int64_t lanes) {
  if (lanes < 0) return Layout::rowMajor(r->rank());
  // Channels of a grouped convolution are all together: group by group, where lanes run along those of one.
  Layout l = lastAxis(r->rank(), lanes);
  if (lanes > 0 && isGroup(s, lanes - 1))
    std::rotate(l.dims.begin() + lanes - 1, l.dims.begin() + lanes, l.dims.end() - 1);
  return l;
}

void Scheduler::ContractLayout::storeBlockScales(UOpRef sum, int64_t lanes) {
  SmallVector<UOpRef, 16> stack{sum->src[0], sum->src[1]};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    UOpRef n = stack.pop_back_val();
    if (!seen.insert(n).second || n->isIndex() || n->op == Op::Contract || (n->op != Op::Param && facts.given(n)))
      continue;
    if (n->op != Op::Param) {
      stack.append(n->tensors().begin(), n->tensors().end());
      continue;
    }
    auto axis = llvm::find(n->shape, sum->shape[lanes]);
    if (n->rank() > 1 && axis != n->shape.end() && !facts.storedAs(n))
      add(LayoutStep::Store, n, panelsAlong(n->rank(), unsigned(axis - n->shape.begin())));
  }
}

LayoutChoice Scheduler::contractLayout(UOpRef r) const {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  if (UOpRef block = sumOfBlock(r); block && !places.count(block)) {
    ContractLayout inside(*this, block);
    int64_t lanes = inside.cheapestLanes();
    int64_t vectorIndex = lanes < 0 || s.a[lanes].terms[0].first >= s.kept ? -1 : s.a[lanes].terms[0].first;
    if (vectorIndex < 0) lanes = -1;
    inside.storeBesideLanes(lanes);
    if (lanes >= 0) inside.storeAlongLanes(lanes), inside.storeBlockScales(r, vectorIndex);
    return {ContractLayout::ofResult(r, s, vectorIndex), vectorIndex, inside.takeSteps()};
  }
  ContractLayout layout(*this, r);
  int64_t lanes = layout.cheapestLanes();
  layout.storeBesideLanes(lanes);
  bool isAlongSum = o.alongSum && layout.storeAlongSum();
  if (!isAlongSum && lanes >= 0) {
    layout.storeAlongLanes(lanes);
    layout.repackForSum(lanes);
  }
  return {ContractLayout::ofResult(r, s, lanes), lanes, layout.takeSteps()};
}
