//===- AccessSummary.cpp: one traversal of a lowered kernel -------------------===//
// Takes:    a kernel that was lowered under a plan.
// Gives:    the loads, their addresses term by term, the ops of a step.
// Keeps:    determinism: everything is in the order of the sink's nodes.
#include "AccessSummary.h"
#include "Thresholds.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

namespace {
/// The traversal: what each node depends on, from the leaves up.
class Summary {
public:
  Summary(const Kernel &k, const Plan &plan) : kernel(k), plan(plan) {}

  AccessSummary run() {
    if (kernel.sink->src.empty()) return std::move(out);
    out.stores = true;
    for (UOpRef n : topoSort(kernel.sink->src[0])) first.insert(n);
    std::vector<UOpRef> order = topoSort(kernel.sink);
    for (UOpRef n : order) depend(n);
    for (UOpRef n : order) {
      out.readsByIndices |= n->op == Op::Extent;
      if (n->op == Op::Load) load(n);
      if (first.contains(n)) price(n);
      if (has(n->op, Elementwise) && !n->isIndex()) count(n);
    }
    out.perLane = nodesOfLanes();
    return std::move(out);
  }

private:
  void depend(UOpRef n) {
    Dependence d;
    for (UOpRef s : n->src) d |= on[s];
    if (n->op == Op::Range) {
      auto kind = RangeKind(n->ints[1]);
      d.lane |= kind == RangeKind::Vector, d.unrolled |= kind == RangeKind::Unroll, d.loop |= kind == RangeKind::Loop;
    }
    d.loaded |= n->op == Op::Load;
    d.divided |= n->isIndex() && (n->op == Op::FloorDiv || n->op == Op::Mod);
    on[n] = d;
  }

  AccessTerm term(const IndexTerm &t) {
    AccessTerm a;
    a.coefficient = t.coefficient;
    for (UOpRef x : t.atoms) a.on |= on[x], a.computesLanes |= x->op != Op::Range && on[x].lane;
    if (t.atoms.size() != 1) return a;
    UOpRef x = t.atoms[0];
    auto isItem = [](UOpRef r) { return r->op == Op::Range && RangeKind(r->ints[1]) == RangeKind::Parallel; };
    if (x->op == Op::Mod && isItem(x->src[0]))
      a.along = Along::ItemRemainder, a.modulus = x->src[1]->constIndex().value_or(0);
    if (x->op != Op::Range) return a;
    switch (RangeKind(x->ints[1])) {
    case RangeKind::Parallel: a.along = Along::Item; break;
    case RangeKind::Vector: a.along = Along::Lane; break;
    case RangeKind::Unroll: a.along = Along::Unroll; break;
    default: a.along = Along::Loop;
    }
    return a;
  }

  void load(UOpRef n) {
    LoadAccess l{std::max(1u, byteSize(n->dtype)),
                 first.contains(n),
                 n->src.size() == 3 && on[n->src[1]].lane,
                 on[n->src.back()],
                 {}};
    for (const IndexTerm &t : terms(n->src.back()))
      if (!t.atoms.empty()) l.terms.push_back(term(t));
    out.loads.push_back(std::move(l));
    if (!l.first) return;
    for (const IndexTerm &t : terms(n->src.back()))
      for (UOpRef a : t.atoms)
        if (a->op != Op::Range && on[a].lane) computed.push_back(a);
  }

  /// The price of an address of which each lane computes a part by itself: a gather. In a map little where that leads
  /// to neighbours and every vector takes the same part of its lines, and less the fewer lanes there are.
  unsigned gatherCost(const IndexTerm &t, UOpRef part) {
    if (plan.kind != PlanKind::Map || t.atoms.size() > 1 || t.coefficient != 1) return threshold::dearAccess;
    for (UOpRef n : topoSort(part)) {
      if (n->op != Op::FloorDiv && n->op != Op::Mod) continue;
      auto by = n->src[1]->constIndex();
      if (!by || *by < 1 || plan.lanes % *by) return plan.lanes + plan.lanes / threshold::gatherPart;
    }
    return plan.lanes / threshold::gatherPart;
  }

  void price(UOpRef n) {
    if (n->op == Op::FloorDiv || n->op == Op::Mod) ++out.cost;
    if (n->op != Op::Load && n->op != Op::Store) return;
    for (const IndexTerm &t : terms(n->indices()[0]))
      for (UOpRef a : t.atoms) {
        bool lane = a->op == Op::Range && RangeKind(a->ints[1]) == RangeKind::Vector;
        bool backwards = t.atoms.size() == 1 && t.coefficient == -1; // a vector, turned
        if (lane && (t.atoms.size() > 1 || t.coefficient != 1))
          out.cost += backwards ? threshold::backwards : threshold::dearAccess;
        if (a->op != Op::Range && a->op != Op::Dim && on[a].lane) out.cost += gatherCost(t, a);
      }
  }

  void count(UOpRef n) {
    auto isSmall = [](DType t) { return isFloat(t) && byteSize(t) < threshold::wideElement; };
    bool converts = n->op == Op::Cast && (isSmall(n->dtype) || isSmall(n->src[0]->dtype));
    bool divides = (n->op == Op::FloorDiv || n->op == Op::Mod) && !isFloat(n->dtype);
    StepOps one{std::max(1u, byteSize(n->dtype)),
                divides    ? StepOps::Division
                : converts ? StepOps::SmallFloat
                           : StepOps::Vector,
                1};
    for (StepOps &o : out.ops)
      if (o.bytes == one.bytes && o.kind == one.kind) {
        ++o.count;
        return;
      }
    out.ops.push_back(one);
  }

  unsigned nodesOfLanes() {
    if (computed.empty()) return 0;
    return llvm::count_if(topoSort(computed), [&](UOpRef n) {
      bool lane = n->op == Op::Range && RangeKind(n->ints[1]) == RangeKind::Vector;
      return !lane && !n->isConst() && on[n].lane;
    });
  }

  const Kernel &kernel;
  const Plan &plan;
  AccessSummary out;
  llvm::DenseMap<UOpRef, Dependence> on;
  llvm::DenseSet<UOpRef> first; // what the first store needs
  std::vector<UOpRef> computed; // parts of its addresses that depend on lanes
};
} // namespace

AccessSummary astra::summarize(const Kernel &k, const Plan &plan) { return Summary(k, plan).run(); }

llvm::SmallVector<LaneStep, 4> AccessSummary::laneSteps() const {
  llvm::SmallVector<LaneStep, 4> steps;
  for (const LoadAccess &l : loads)
    for (const AccessTerm &t : l.terms)
      if (t.along == Along::Lane) steps.push_back({t.coefficient, l.bytes});
  return steps;
}

uint64_t AccessSummary::bytesAcross() const {
  uint64_t most = 0;
  for (const LaneStep &s : laneSteps())
    if (s.elements != 1) most = std::max(most, llvm::SaturatingMultiply<uint64_t>(std::abs(s.elements), s.bytes));
  return most;
}

bool AccessSummary::readsRuns() const {
  return llvm::all_of(loads, [](const LoadAccess &l) {
    return llvm::all_of(l.terms, [](const AccessTerm &t) {
      return t.along == Along::Lane ? t.coefficient == 1 || t.coefficient == 2 || t.coefficient == -1 : !t.on.lane;
    });
  });
}

bool AccessSummary::readsBackwards() const {
  return llvm::any_of(laneSteps(), [](const LaneStep &s) { return s.elements == -1; });
}

bool AccessSummary::gatesLanes() const {
  return llvm::any_of(loads, [](const LoadAccess &l) { return l.gatedByLane; });
}

bool AccessSummary::divides() const {
  return llvm::any_of(loads, [](const LoadAccess &l) { return l.address.divided; });
}

bool AccessSummary::transposesInRegisters(bool sums) const {
  bool any = false;
  for (const LoadAccess &l : loads) {
    if (!l.first) continue;
    bool apart = false, neighbours = false, elsewhere = false;
    for (const AccessTerm &t : l.terms) {
      apart |= t.along == Along::Lane ? t.coefficient != 1 : t.on.lane;
      neighbours |= t.along == Along::Unroll && t.coefficient == 1;
      elsewhere |= t.along != Along::Unroll && t.on.unrolled;
    }
    if (!apart) continue;
    if (neighbours && !elsewhere)
      any = true;
    else if (!sums)
      return false;
  }
  return any;
}

bool AccessSummary::readsNear(int64_t elements) const {
  return llvm::all_of(loads, [&](const LoadAccess &l) {
    return !l.first || llvm::all_of(l.terms, [&](const AccessTerm &t) {
      return t.along == Along::Lane ? std::abs(t.coefficient) <= elements : !t.on.lane;
    });
  });
}

bool AccessSummary::sharesPlaces() const {
  bool any = false;
  for (const LoadAccess &l : loads)
    for (const AccessTerm &t : l.terms) {
      if (!t.computesLanes) continue;
      any |= t.on.loaded;
      if (t.on.loop) return false;
    }
  return any;
}

unsigned AccessSummary::statements(unsigned lanes, unsigned vectorBytes) const {
  unsigned all = 0;
  for (const StepOps &o : ops) {
    unsigned vectors = llvm::divideCeil(lanes * o.bytes, vectorBytes);
    all += o.count * (o.kind == StepOps::Division     ? lanes
                      : o.kind == StepOps::SmallFloat ? threshold::ofSmallFloat * vectors
                                                      : vectors);
  }
  return all;
}
