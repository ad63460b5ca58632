//===- VerifyAccesses.cpp: every kernel stays in its buffers -----------------===//
// Takes:    a linear kernel, facts of its dims.
// Gives:    nothing, or the first access that is not proved, with a witness where one is found.
// Keeps:    time linear in the number of different accesses: those that differ by a constant are one proof.
// Does not: trust bounds of nodes, except to know where the emitters leave out the test of a speculative read, which is
//           then proved like any other.
#include "VerifyAccesses.h"
#include "Gates.h"
#include "astra/IR/IndexProgram.h"
#include "astra/IR/Text.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;
using Poly = Inequalities::Poly;
using Facts = Inequalities::Facts;

namespace {
class Verifier {
public:
  Verifier(const Kernel &k, const Linear &l, const NotNegative &known, const TileRegion *region, AccessCount &count,
           Unproved unproved)
      : k(k), l(l), known(known), unproved(unproved), gates(in, facts), count(count) {
    if (region) in.isBelow(region->tile, region->tiles);
    for (UOpRef f : known) in.assume(facts, in.of(f));
    for (const KernelBuffer &b : k.buffers) elements.push_back(in.of(b.elements));
  }

  llvm::Error run() {
    std::vector<size_t> before; // facts outside of each open loop
    for (const Inst &i : l.insts) {
      UOpRef x = i.uop;
      switch (i.kind) {
      case InstKind::LoopBegin: {
        before.push_back(facts.size());
        open.push_back(x);
        in.assume(facts, in.sum(in.of(x->src[0]), Inequalities::constant(-1))); // it runs
        sameFacts.clear();
        break;
      }
      case InstKind::LoopEnd:
        facts.resize(before.back());
        before.pop_back();
        open.pop_back();
        sameFacts.clear();
        break;
      case InstKind::Define:
        if (x->op == Op::Load) {
          if (auto e = element(i, x, x->ntensors > 1 ? x->src[1] : nullptr, lanesOf(x))) return e;
        } else if (x->op == Op::At) {
          if (auto e = read(i)) return e;
        }
        break;
      case InstKind::Write:
        if (auto e = element(i, x, x->ntensors > 2 ? x->src[2] : nullptr, lanesOf(x->src[1]))) return e;
        break;
      case InstKind::StagePut:
      case InstKind::StageFill:
      case InstKind::AccResume:
        if (auto e = stage(x)) return e;
        break;
      case InstKind::AccInit:
      case InstKind::AccUpdate:
      case InstKind::Call:
      case InstKind::Prefetch: break;
      }
    }
    return llvm::Error::success();
  }

private:
  /// Loads and stores: 0 <= index and index + lanes <= elements, for each lane that the gate lets pass.
  llvm::Error element(const Inst &i, UOpRef x, UOpRef gate, int64_t lanes) {
    ++count.accesses;
    UOpRef index = x->indices()[0];
    uint32_t buffer = x->src[0]->ints[0];
    if (auto e = inLoops(x, index)) return e;
    if (unproved.tested && unproved.tested->contains(x)) return llvm::Error::success();
    Poly at = in.of(index);
    shift = 0;
    if (i.speculative) { // the lanes that the emitters, who may take a vector in parts, do not test
      auto [first, end] = untested(index, lanes, k.buffers[buffer].elements->lo);
      if (first >= end) return llvm::Error::success();
      at = in.sum(at, Inequalities::constant(first)), lanes = end - first, shift = first;
      if (lanes < lanesOf(x)) gate = nullptr;
    }
    if (!gate) return gateless(x, buffer, at, lanes);
    return insideWhere(gate, at, lanes, elements[buffer]) ? llvm::Error::success()
                                                          : refuse(x, index, gate, lanes, buffer);
  }

  /// at ... at + lanes - 1 are inside, each lane that the gate lets pass.
  bool insideWhere(UOpRef gate, const Poly &at, int64_t lanes, const Poly &size) {
    if (gate->op == Op::Splat || !gate->rank())
      return llvm::all_of(gates.of(gate, std::nullopt, nullptr),
                          [&](const Facts &g) { return inside(at, lanes, size, joined(g)); });
    if (inside(at, lanes, size, facts)) return true; // whatever the gate is
    Poly lane = in.unknownBelow(lanes);              // all lanes at once, else one by one
    if (llvm::all_of(gates.of(gate, std::nullopt, &lane),
                     [&](const Facts &g) { return inside(in.sum(at, lane), 1, size, joined(g)); }))
      return true;
    for (int64_t n = 0; n < lanes; ++n)
      for (const Facts &g : gates.of(gate, n, nullptr))
        if (!inside(in.sum(at, Inequalities::constant(n)), 1, size, joined(g))) return false;
    return true;
  }

  /// Accesses that differ by a constant: the least and the greatest so far were proved.
  llvm::Error gateless(UOpRef x, uint32_t buffer, Poly at, int64_t lanes) {
    int64_t constant = 0;
    Poly all = at;
    if (!at.empty() && at[0].atoms.empty()) constant = at[0].k, at.erase(at.begin());
    std::string key((const char *)&buffer, sizeof buffer);
    for (const Inequalities::Term &t : at) {
      key.append((const char *)&t.k, sizeof t.k);
      for (uint32_t a : t.atoms) key.append((const char *)&a, sizeof a);
      key.push_back(char(t.atoms.size()));
    }
    auto [it, fresh] = sameFacts.try_emplace(std::move(key), std::pair(constant, constant + lanes));
    auto &[lo, hi] = it->second;
    if (!fresh && constant >= lo && constant + lanes <= hi) return llvm::Error::success();
    Poly behind = in.sum(in.sum(elements[buffer], all, -1), Inequalities::constant(-lanes));
    if (((fresh || constant < lo) && !in.proves(all, facts)) ||
        ((fresh || constant + lanes > hi) && !in.proves(behind, facts))) {
      if (fresh) sameFacts.erase(it);
      return refuse(x, x->indices()[0], nullptr, lanes, buffer);
    }
    lo = std::min(lo, constant), hi = std::max(hi, constant + lanes);
    return llvm::Error::success();
  }

  static std::pair<int64_t, int64_t> untested(UOpRef index, int64_t lanes, int64_t count) {
    return {std::clamp<int64_t>(-index->lo, 0, lanes), std::clamp<int64_t>(count - index->hi, 0, lanes)};
  }
  bool inside(const Poly &at, int64_t lanes, const Poly &size, const Facts &with) {
    return in.proves(at, with) && in.proves(in.sum(in.sum(size, at, -1), Inequalities::constant(-lanes)), with);
  }
  Facts joined(const Facts &more) {
    Facts all = facts;
    for (const Poly &f : more) in.assume(all, f);
    std::rotate(all.begin(), all.begin() + facts.size(), all.end()); // a gate's facts first: they speak of the access
    return all;
  }

  const StageArray &arrayOf(UOpRef stage) const {
    return *llvm::find_if(l.stages, [&](const StageArray &s) { return s.stage == stage; });
  }
  /// A read of a stage: each index within its extent, of what its gate lets pass.
  llvm::Error read(const Inst &i) {
    ++count.accesses;
    shift = 0;
    UOpRef x = i.uop, gate = x->ntensors > 1 ? x->src[1] : nullptr;
    const StageArray &a = arrayOf(x->src[0]);
    for (auto [d, index] : llvm::enumerate(x->indices())) {
      bool last = d + 1 == x->indices().size();
      int64_t lanes = last ? lanesOf(x) : 1;
      if (auto e = inLoops(x, index)) return e;
      if (i.speculative && needsTest(index, lanes, a.extents[d])) continue;
      if (last && unproved.tested && unproved.tested->contains(x)) continue;
      Poly size = Inequalities::constant(a.extents[d]);
      UOpRef of = last ? gate : nullptr;
      if (of ? insideWhere(of, in.of(index), lanes, size) : inside(in.of(index), lanes, size, facts)) continue;
      if (auto e = refuse(x, index, of, lanes, -1, a.extents[d])) return e;
    }
    return llvm::Error::success();
  }
  /// The points of a stage lie in its array.
  llvm::Error stage(UOpRef x) {
    ++count.accesses;
    shift = 0;
    const StageArray &a = arrayOf(x);
    for (auto [d, r] : llvm::enumerate(x->indices())) {
      int64_t lanes = d + 1 == x->indices().size() ? lanesOf(x->src[0]) * int64_t(x->ntensors) : 1;
      Poly room = in.sum(Inequalities::constant(a.extents[d]), in.of(r->src[0]), -lanes);
      if (!in.proves(room, facts)) return refuse(x, r, nullptr, lanes, -1, a.extents[d]);
    }
    return llvm::Error::success();
  }

  /// Every range that an index reads is that of a loop around it, or of a thread's number.
  llvm::Error inLoops(UOpRef x, UOpRef index) {
    SmallVector<UOpRef, 16> todo{index};
    llvm::SmallDenseSet<UOpRef, 32> seen;
    while (!todo.empty()) {
      UOpRef n = todo.pop_back_val();
      if (n->op == Op::Extent || !seen.insert(n).second) continue;
      if (n->op == Op::Range && RangeKind(n->ints[1]) != RangeKind::Thread && !llvm::is_contained(open, n))
        return fail(x, "reads range " + std::to_string(n->ints[0]) + " outside of its loop");
      if (n->op != Op::Range)
        for (UOpRef s : n->src)
          if (s->isIndex()) todo.push_back(s);
    }
    return llvm::Error::success();
  }

  llvm::Error fail(UOpRef x, const llvm::Twine &what) {
    return llvm::createStringError("internal error: kernel '" + llvm::Twine(k.name) + "', plan '" + text(k.plan) +
                                   "': a " + info(x->op).mnemonic + " " + what);
  }
  llvm::Error refuse(UOpRef x, UOpRef index, UOpRef gate, int64_t lanes, int64_t buffer, int64_t extent = 0);
  bool insideEverywhere(ArrayRef<UOpRef> below,
                        llvm::function_ref<bool(const llvm::DenseMap<UOpRef, int64_t> &)> inside);

  const Kernel &k;
  const Linear &l;
  const NotNegative &known;
  const Unproved unproved;
  Inequalities in;
  Facts facts; // of dims and open loops
  Gates gates;
  AccessCount &count;
  int64_t shift = 0; // of the access at hand: its first lane that is not tested
  std::vector<Poly> elements;
  SmallVector<UOpRef, 8> open;
  std::map<std::string, std::pair<int64_t, int64_t>> sameFacts; // accesses of the loops that are open
};

/// Whether all points of few dims and items are inside, each tried: a proof too.
bool Verifier::insideEverywhere(ArrayRef<UOpRef> below,
                                llvm::function_ref<bool(const llvm::DenseMap<UOpRef, int64_t> &)> inside) {
  constexpr int64_t mostPoints = 1 << 17;
  llvm::DenseMap<UOpRef, int64_t> at;
  auto value = [&](UOpRef n) -> std::optional<int64_t> {
    auto it = at.find(n);
    return it == at.end() ? std::nullopt : std::optional<int64_t>(it->second);
  };
  std::vector<IndexProgram> counts;
  int64_t least = 1; // points: where they are too many the first ones need not be tried
  for (UOpRef n : below) {
    bool isDim = n->op == Op::Dim || n->op == Op::Extent;
    counts.emplace_back(isDim ? n : n->src[0]);
    int64_t some = isDim ? n->ints[1] - n->ints[0] + 1 : std::max<int64_t>(n->src[0]->lo, 0);
    least = some > mostPoints ? mostPoints + 1 : std::min(least * some, mostPoints + 1);
  }
  if (least > mostPoints) return false;
  SmallVector<int64_t, 8> ends;
  int64_t points = 0;
  for (size_t d = 0;;) { // an odometer: the last one runs fastest; the end of a range may depend on those before it
    if (d == below.size()) {
      if (++points > mostPoints || !inside(at)) return false;
    } else {
      UOpRef n = below[d];
      if (n->op == Op::Extent) return false;
      auto end = n->op == Op::Dim ? std::optional<int64_t>(n->ints[1] + 1) : counts[d].at(value);
      int64_t first = n->op == Op::Dim ? n->ints[0] : 0;
      if (!end || *end - first > mostPoints) return false;
      if (first < *end) {
        ends.push_back(*end), at[n] = first, ++d;
        continue;
      }
    }
    for (; d > 0 && at[below[d - 1]] + 1 == ends[d - 1]; --d) at.erase(below[d - 1]), ends.pop_back();
    if (d == 0) return true;
    ++at[below[d - 1]];
  }
}

/// The sentence, with dims and items at which the access lies outside: looked for at corners and at random.
llvm::Error Verifier::refuse(UOpRef x, UOpRef index, UOpRef gate, int64_t lanes, int64_t buffer, int64_t extent) {
  constexpr unsigned points = 20000;
  uint64_t state = 1;
  auto random = [&](int64_t lo, int64_t hi) { // corners more often than anything else
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t r = state >> 33;
    if (hi <= lo || r % 4 == 0) return lo;
    if (r % 4 == 1) return hi;
    if (r % 4 == 2) return std::min(hi, lo + int64_t(r / 4 % 20));
    return lo + int64_t(r / 4 % (uint64_t(hi - lo) + 1));
  };
  SmallVector<UOpRef, 8> below, ranges(open.begin(), open.end());
  if (x->op == Op::Stage) ranges.append(x->indices().begin(), x->indices().end());
  SmallVector<UOpRef, 8> roots(ranges.begin(), ranges.end());
  roots.push_back(index);
  if (gate) roots.push_back(gate);
  if (buffer >= 0) roots.push_back(k.buffers[buffer].elements);
  for (UOpRef n : topoSort(roots))
    if (n->op == Op::Dim || n->op == Op::Extent || n->op == Op::Range) below.push_back(n);
  const IndexProgram place(index);
  const std::optional<IndexProgram> elementsAt =
      buffer >= 0 ? std::optional<IndexProgram>(k.buffers[buffer].elements) : std::nullopt;
  const std::optional<GateProgram> opens = gate ? std::optional<GateProgram>(gate) : std::nullopt;
  std::vector<IndexProgram> conditions(known.begin(), known.end()), counts; // counts: of `below`
  for (UOpRef n : below) counts.emplace_back(n->op == Op::Range ? n->src[0] : n);
  auto insideAt = [&](const llvm::DenseMap<UOpRef, int64_t> &at) {
    auto value = [&](UOpRef n) -> std::optional<int64_t> {
      auto it = at.find(n);
      return it == at.end() ? std::nullopt : std::optional<int64_t>(it->second);
    };
    auto outside = [&] { // unless it does not run there
      return llvm::none_of(conditions, [&](const IndexProgram &f) {
        auto v = f.at(value);
        return v && *v < 0;
      });
    };
    auto first = place.at(value), size = elementsAt ? elementsAt->at(value) : std::optional<int64_t>(extent);
    if (!first || !size) return !outside();
    for (int64_t n = 0; n < lanes; ++n)
      if ((*first + shift + n < 0 || *first + shift + n >= *size) && (!opens || opens->at(n, value))) return !outside();
    return true;
  };
  if (x->op != Op::Stage && insideEverywhere(below, insideAt)) return llvm::Error::success();
  std::string access = "of [" + indexText(index) + "]" + (lanes > 1 ? ", " + std::to_string(lanes) + " lanes" : "") +
                       (buffer >= 0 ? ", of buffer " + std::to_string(buffer) : ", of an array");
  for (unsigned p = 0; p < points; ++p) {
    llvm::DenseMap<UOpRef, int64_t> at;
    auto value = [&](UOpRef n) -> std::optional<int64_t> {
      auto it = at.find(n);
      return it == at.end() ? std::nullopt : std::optional<int64_t>(it->second);
    };
    bool runs = true;
    for (auto [n, ends] : llvm::zip(below, counts)) {
      if (n->op == Op::Range) {
        auto e = ends.at(value);
        if (!e || *e < 1) {
          runs = false;
          break;
        }
        at[n] = random(0, *e - 1);
      } else
        at[n] = random(n->ints[0], std::min<int64_t>(n->ints[1], int64_t(1) << 40));
    }
    if (!runs) continue;
    for (const IndexProgram &f : conditions)
      if (auto v = f.at(value); !v || *v < 0) runs = false;
    auto first = place.at(value), size = elementsAt ? elementsAt->at(value) : std::optional<int64_t>(extent);
    if (!runs || !first || !size) continue;
    for (int64_t n = 0; n < lanes; ++n) {
      if ((*first + shift + n >= 0 && *first + shift + n < *size) || (opens && !opens->at(n, value))) continue;
      std::string where;
      for (UOpRef b : below) where += (where.empty() ? "" : ", ") + indexText(b) + " = " + std::to_string(at[b]);
      return fail(x, access + " is outside where " + where + ": element " + std::to_string(*first + shift + n) +
                         " of " + std::to_string(*size));
    }
  }
  std::string around;
  for (UOpRef r : ranges) around += (around.empty() ? ", in " : ", ") + indexText(r) + " < " + indexText(r->src[0]);
  std::string size = buffer >= 0 ? indexText(k.buffers[buffer].elements) : std::to_string(extent);
  if (unproved.found && (x->op == Op::Load || x->op == Op::Store || gate)) {
    unproved.found->push_back(x);
    return llvm::Error::success();
  }
  return fail(x, access + " is not proved to be inside of " + size + " elements" + around +
                     (gate ? ", where " + gateText(gate) : "") + "; no point outside was found");
}
} // namespace

llvm::Error astra::verifyAccesses(const Kernel &k, const Linear &l, const NotNegative &facts, const TileRegion *region,
                                  AccessCount &count, Unproved unproved) {
  return Verifier(k, l, facts, region, count, unproved).run();
}

llvm::Error astra::verifyAccesses(const Kernel &k, const Linear &l, const NotNegative &facts, AccessCount &count) {
  AccessTimer timer{count};
  ++count.kernels;
  return verifyAccesses(k, l, facts, nullptr, count, {});
}
