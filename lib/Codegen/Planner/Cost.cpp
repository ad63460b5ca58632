//===- Cost.cpp: what a kernel takes of a core ------------------------------===//
// Takes:    see Cost.h.
// Gives:    the cost, from one walk over the kernel's instructions.
//
// Note [Terms of the cost]
// Instructions: all that is computed, read and written, over what begins in a cycle. Arithmetic: vectors that are
// computed, over those a cycle. Chains: what one accumulator waits for itself, an update after another. Divisions: of
// integers, one by one. Loads and stores: vectors, elements that are read by themselves counting as one each. L2, L3,
// memory: the bytes that come from there, over the bytes a cycle; see below. Masks: stores of some elements of a
// vector, for which the next ones wait; where no instruction has masks for such elements, one by one.
//
// Note [Bytes from a cache]
// A loop, one iteration of which touches no more than the cache in front holds, brings each byte that it touches once
// (Stengel et al., Quantifying performance bottlenecks of stencil computations using the Execution-Cache-Memory model,
// 2015, call it the layer condition); one that touches more brings in each iteration what its parts bring. What an
// access touches in a loop is a vector for each combination of the ranges that its index has, up to the whole buffer.
// What is stored moves twice, as its line is read first, unless it goes past the caches. A launch that touches no more
// than the cache holds brings nothing.
#include "astra/Codegen/Cost.h"
#include "../Inequalities.h"
#include "../SmallFloat.h"
#include "Thresholds.h"
#include "astra/IR/Index.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <memory>

using namespace astra;
using llvm::SmallVector;

static const Speeds speeds[] = {
#define SPEEDS(name, ranks, fma, loads, stores, latency, issue, masked, l2, l3, memory, source)                        \
  {name, ranks, fma, loads, stores, latency, issue, masked, l2, l3, memory, source},
#include "format/MachineTable.def"
};

llvm::ArrayRef<Speeds> astra::allSpeeds() { return speeds; }

const Speeds &astra::speedsOf(const Target &t) {
  auto named = [](llvm::StringRef name) {
    return llvm::find_if(speeds, [&](const Speeds &s) { return name == s.name; });
  };
  auto [level, name] = llvm::StringRef(t.name).split('@');
  const Core *core = coreNamed(name);
  // A core's row is of its widest vectors.
  bool widest = core && targetNamed(core->level)->vectorBytes == t.vectorBytes;
  auto of = widest ? named(name) : std::end(speeds);
  if (of == std::end(speeds)) of = named(level.split('+').first);
  return of == std::end(speeds) ? speeds[0] : *of;
}

const char *astra::costTermName(CostTerm t) {
  static constexpr const char *names[numCostTerms] = {"instructions", "arithmetic", "chains", "divisions", "loads",
                                                      "stores",       "L2",         "L3",     "memory",    "masks"};
  return names[size_t(t)];
}

CostTerm KernelCost::bound() const { return CostTerm(std::max_element(cycles.begin(), cycles.end()) - cycles.begin()); }

double KernelCost::total() const {
  return *std::max_element(cycles.begin(), cycles.end() - 1) + (*this)[CostTerm::Masks];
}

double KernelCost::imbalance(unsigned cores) const {
  return items > 0 ? double(llvm::divideCeil(items, cores)) * cores / double(items) : 1;
}

std::optional<int64_t> astra::mostOf(UOpRef dim) { return dim->op == Op::Dim ? std::optional(dim->hi) : std::nullopt; }

double astra::fmasOf(UOpRef x) {
  if (!has(x->op, Elementwise)) return 0;
  bool small = x->op == Op::Cast && (isNarrow(x->dtype) || isNarrow(x->src[0]->dtype));
  return has(x->op, Function)                                        ? threshold::functionFmas
         : small                                                     ? threshold::convertFmas
         : x->op == Op::Div || x->op == Op::Mod || x->op == Op::Sqrt ? threshold::divisionFmas
                                                                     : 1;
}

namespace {

struct Touched {
  int64_t buffer;
  double bytes; // of one execution
  double moves; // times that they move
  SmallVector<UOpRef, 4> ranges;
};

/// A loop, or the whole kernel.
struct Loop {
  UOpRef range = nullptr;
  double trips = 1;
  Loop *outer = nullptr;
  std::vector<Touched> accesses;
  std::vector<std::unique_ptr<Loop>> inner;
  llvm::DenseMap<UOpRef, unsigned> updates; // of each fold, in an iteration
};

class Walk {
public:
  using Value = llvm::function_ref<std::optional<int64_t>(UOpRef)>;
  Walk(const Kernel &k, const Target &t, Value dims) : k(k), t(t), s(speedsOf(t)), dims(dims) {}

  std::optional<KernelCost> run(const Linear &l) {
    for (const KernelBuffer &b : k.buffers) {
      auto n = evaluate(b.elements);
      if (!n) return std::nullopt;
      bufferBytes.push_back(double(*n) * byteSize(b.dtype));
    }
    for (const Inst &i : l.insts)
      if (!take(i)) return std::nullopt;
    double held[] = {double(t.l1Bytes), double(t.l2Bytes), double(t.l3Bytes)}, aCycle[] = {s.l2, s.l3, s.memory};
    for (size_t n = 0; n < 3; ++n) cost.cycles[size_t(CostTerm::L2) + n] = brought(root, held[n]) / aCycle[n];
    return cost;
  }

private:
  const Kernel &k;
  const Target &t;
  const Speeds &s;
  Value dims;
  KernelCost cost;
  Loop root, *at = &root;
  double times = 1; // that the code at hand runs
  std::vector<double> bufferBytes;
  llvm::DenseMap<UOpRef, double> tripsOf;

  std::optional<int64_t> evaluate(UOpRef x) { return idxEvaluate(x, dims); }
  /// The mean of an extent over the outer ranges that it depends on, of each of which some values are tried.
  std::optional<double> meanOf(UOpRef x) {
    SmallVector<UOpRef, 4> outer;
    for (UOpRef n : topoSort(x))
      if (n->op == Op::Range) outer.push_back(n);
    llvm::DenseMap<UOpRef, int64_t> at;
    double sum = 0;
    int64_t points = 0, all = 1;
    for (UOpRef r : outer) all *= std::clamp<int64_t>(int64_t(tripsOf.lookup(r)), 1, threshold::triedValues);
    for (; points < all; ++points) {
      int64_t rest = points;
      for (UOpRef r : outer) {
        double trips = std::max(tripsOf.lookup(r), 1.0);
        int64_t some = std::clamp<int64_t>(int64_t(trips), 1, threshold::triedValues), n = rest % some;
        at[r] = some > 1 ? int64_t(double(n) * (trips - 1) / double(some - 1)) : 0, rest /= some;
      }
      auto v = idxEvaluate(x, [&](UOpRef n) -> std::optional<int64_t> {
        auto it = at.find(n);
        return it != at.end() ? std::optional(it->second) : dims(n);
      });
      if (!v) return std::nullopt;
      sum += double(std::max<int64_t>(*v, 0));
    }
    return sum / double(points);
  }
  /// Registers of a value.
  double vectors(UOpRef x) const {
    double bytes = double(lanesOf(x)) * std::max(1u, byteSize(x->dtype));
    return x->rank() ? std::ceil(bytes / t.vectorBytes) : 1;
  }
  void add(CostTerm term, double cycles) { cost[term] += times * cycles; }
  void issue(double n) { add(CostTerm::Instructions, n / s.issue); }

  bool take(const Inst &i);
  void define(UOpRef x);
  void access(UOpRef x);
  double ofMask(UOpRef value, UOpRef gate) const;
  double touched(const Loop &l, bool whole, bool moved = false) const;
  double brought(const Loop &l, double held) const;
};

bool Walk::take(const Inst &i) {
  UOpRef x = i.uop;
  switch (i.kind) {
  case InstKind::Define: define(x); break;
  case InstKind::LoopBegin: {
    auto n = meanOf(x->src[0]);
    if (!n) return false;
    at->inner.push_back(std::make_unique<Loop>());
    Loop *loop = at->inner.back().get();
    loop->range = x, loop->trips = *n, loop->outer = at;
    if (RangeKind(x->ints[1]) == RangeKind::Parallel) cost.items += int64_t(*n);
    tripsOf[x] = loop->trips;
    at = loop, times *= loop->trips;
    break;
  }
  case InstKind::LoopEnd: {
    double outside = 1;
    for (Loop *l = at->outer; l; l = l->outer) outside *= l->trips;
    unsigned most = 0; // updates of one accumulator that follow each other in an iteration
    for (auto [fold, n] : at->updates) most = std::max(most, n);
    times = outside, add(CostTerm::Chains, most * at->trips * s.latency);
    at = at->outer;
    break;
  }
  case InstKind::AccUpdate: {
    size_t each = valuesOf(Combine(x->ints[0])), updates = (x->ntensors - 1) / std::max<size_t>(each, 1);
    at->updates[x] += unsigned(updates);
    add(CostTerm::Arithmetic, double(updates) * vectors(x) / s.fma);
    issue(double(updates) * vectors(x));
    break;
  }
  case InstKind::StagePut: add(CostTerm::Stores, vectors(x->src[0]) / s.stores); break;
  case InstKind::StageFill:
  case InstKind::AccResume: add(CostTerm::Loads, vectors(x) / s.loads); break;
  case InstKind::Write:
    access(x);
    add(CostTerm::Stores, vectors(x->src[1]) / s.stores);
    issue(vectors(x->src[1]));
    if (x->ntensors > 2) add(CostTerm::Masks, ofMask(x->src[1], x->src[2]));
    break;
  case InstKind::Prefetch: add(CostTerm::Loads, 1 / s.loads); break;
  case InstKind::AccInit:
  case InstKind::Call: break;
  }
  return true;
}

void Walk::define(UOpRef x) {
  if (x->isIndex()) {
    bool isDisplacement = x->op == Op::Add && (x->src[0]->isConst() || x->src[1]->isConst()); // a part of an address
    if (!isDisplacement) issue(double(lanesOf(x)));
    if (x->op == Op::FloorDiv || x->op == Op::Mod)
      add(CostTerm::Divisions, x->src[1]->constIndex() ? threshold::indexProduct : threshold::indexDivision);
    return;
  }
  switch (x->op) {
  case Op::Load: access(x); [[fallthrough]];
  case Op::At:
    add(CostTerm::Loads, vectors(x) / s.loads);
    issue(vectors(x));
    return;
  case Op::Stack: { // elements that come one by one, or registers that are joined
    bool elements = !x->src[0]->rank();
    double n = elements ? double(x->src.size()) : vectors(x);
    add(CostTerm::Arithmetic, n / s.fma);
    issue(n);
    return;
  }
  case Op::Lanes:
  case Op::Splat:
  case Op::FromIndex: return;
  default: break;
  }
  if (!has(x->op, Elementwise)) return;
  double n = x->dtype == DType::Bool ? vectors(x->src[0]) : vectors(x);
  add(CostTerm::Arithmetic, fmasOf(x) * n / s.fma);
  issue(n);
}

/// Cycles of a store of the elements that a gate takes.
double Walk::ofMask(UOpRef value, UOpRef gate) const {
  if (!gate->rank() || gate->op == Op::Splat) return 0; // a branch
  bool hasMasks = byteSize(value->dtype) >= t.maskedBytes;
  return hasMasks ? vectors(value) * s.masked : double(lanesOf(value));
}

void Walk::access(UOpRef x) {
  UOpRef buffer = x->src[0], place = x->indices()[0], value = x->op == Op::Store ? x->src[1] : x;
  Touched a{buffer->ints[0],
            double(lanesOf(value)) * byteSize(value->dtype),
            x->op == Op::Store && !k.nonTemporal ? 2.0 : 1.0,
            {}};
  double nearest = 1e18; // the least step between two executions, in bytes
  for (const IndexTerm &term : terms(place))
    for (UOpRef atom : term.atoms)
      for (UOpRef n : topoSort(atom))
        if (n->op == Op::Range) {
          if (!llvm::is_contained(a.ranges, n)) a.ranges.push_back(n);
          nearest = std::min(nearest, double(std::abs(term.coefficient)) * byteSize(value->dtype));
        }
  if (!a.ranges.empty() && nearest >= lineBytes) a.bytes = std::max<double>(a.bytes, lineBytes);
  at->accesses.push_back(std::move(a));
}

/// Bytes that a loop touches, or moves, all of it or an iteration.
double Walk::touched(const Loop &l, bool whole, bool moved) const {
  std::vector<double> of(bufferBytes.size()), most(bufferBytes);
  SmallVector<const Loop *, 8> path;
  auto visit = [&](auto &self, const Loop &loop) -> void {
    if (&loop != &l || whole) path.push_back(&loop);
    for (const Touched &a : loop.accesses) {
      double bytes = a.bytes;
      for (const Loop *p : path)
        if (p->range && llvm::is_contained(a.ranges, p->range)) bytes *= p->trips;
      double times = moved ? a.moves : 1;
      of[a.buffer] += loop.trips > 0 ? bytes * times : 0;
      most[a.buffer] = std::max(most[a.buffer], bufferBytes[a.buffer] * times);
    }
    for (const auto &inner : loop.inner) self(self, *inner);
    if (&loop != &l || whole) path.pop_back();
  };
  visit(visit, l);
  double sum = 0;
  for (size_t b = 0; b < of.size(); ++b) sum += std::min(of[b], most[b]);
  return sum;
}

/// Bytes that come from behind a cache of so many bytes. See Note [Bytes from a cache].
double Walk::brought(const Loop &l, double held) const {
  if (!l.outer && touched(l, true) <= held) return 0;
  if (l.outer && touched(l, false) <= held) return touched(l, true, true);
  double sum = 0;
  for (const Touched &a : l.accesses) sum += std::min(a.bytes, bufferBytes[a.buffer]) * a.moves;
  for (const auto &inner : l.inner) sum += brought(*inner, held);
  return sum * l.trips;
}

} // namespace

std::optional<KernelCost> astra::costOf(const Kernel &k, const Linear &l, const Target &t,
                                        llvm::function_ref<std::optional<int64_t>(UOpRef)> dims) {
  return Walk(k, t, dims).run(l);
}
