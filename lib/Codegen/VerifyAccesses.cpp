//===- VerifyAccesses.cpp: every kernel stays in its buffers -----------------===//
// Takes:    a linear kernel, facts of its dims.
// Gives:    nothing, or the first access that is not proved, with a witness where one is found.
// Keeps:    time linear in the number of different accesses: those that differ by a constant are one proof.
// Does not: trust bounds of nodes, except to know where the emitters leave out the test of a speculative read, which is
//           then proved like any other.
#include "Inequalities.h"
#include "astra/Codegen/Accesses.h"
#include "astra/IR/Text.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using Poly = Inequalities::Poly;
using Facts = Inequalities::Facts;

static int64_t lanesOf(UOpRef x) { return x->rank() ? x->shape[0]->constIndex().value_or(1) : 1; }

namespace {
/// Some alternatives, one of which holds, each a list of what is not negative then.
using Alternatives = SmallVector<Facts, 1>;

/// What is true where a gate is: comparisons of symbolic integers; of the rest nothing is known.
class Gates {
public:
  Gates(Inequalities &i, const Facts &facts) : in(i), facts(facts) {}

  /// Lane `lane` of a bool value, or all lanes at once by the number of the lane `any` (a polynomial).
  Alternatives of(UOpRef g, std::optional<int64_t> lane, const Poly *any) {
    Alternatives yes{{}}; // one alternative without facts
    switch (g->op) {
    case Op::Const: return g->ints[0] ? yes : Alternatives{};
    case Op::Splat: return of(g->src[0], std::nullopt, nullptr);
    case Op::Stack: {
      if (!lane) return yes;
      int64_t l = *lane;
      for (UOpRef part : g->src) {
        int64_t n = lanesOf(part);
        if (l < n) return of(part, part->rank() ? std::optional<int64_t>(l) : std::nullopt, nullptr);
        l -= n;
      }
      return yes;
    }
    case Op::Lanes:
      if (!g->rank()) return of(g->src[0], g->ints[0], nullptr);
      return lane ? of(g->src[0], *lane + g->ints[0], nullptr) : yes;
    case Op::And:
    case Op::Min: return both(of(g->src[0], lane, any), of(g->src[1], lane, any));
    case Op::Or:
    case Op::Max: {
      Alternatives a = of(g->src[0], lane, any), b = of(g->src[1], lane, any);
      a.append(b.begin(), b.end());
      return a.size() > 4 ? yes : a;
    }
    case Op::Not: return not_(g->src[0], lane, any);
    case Op::Lt:
    case Op::Le:
    case Op::Eq: return compare(g->op, g->src[0], g->src[1], lane, any);
    default: return yes;
    }
  }

private:
  Alternatives both(const Alternatives &a, const Alternatives &b) {
    Alternatives out;
    for (const Facts &x : a)
      for (const Facts &y : b) {
        out.push_back(x);
        out.back().insert(out.back().end(), y.begin(), y.end());
      }
    return out.size() > 4 ? Alternatives{{}} : out;
  }
  Alternatives not_(UOpRef g, std::optional<int64_t> lane, const Poly *any) {
    if (g->op == Op::Lt) return compare(Op::Le, g->src[1], g->src[0], lane, any);
    if (g->op == Op::Le) return compare(Op::Lt, g->src[1], g->src[0], lane, any);
    return {{}};
  }
  Alternatives compare(Op op, UOpRef a, UOpRef b, std::optional<int64_t> lane, const Poly *any) {
    auto x = integer(a, lane, any), y = integer(b, lane, any);
    if (!x || !y) return {{}};
    Poly d = in.sum(*y, *x, -1);
    if (in.takeOverflow()) return {{}};
    if (op == Op::Lt) return {{in.sum(d, Inequalities::constant(-1))}};
    if (op == Op::Le) return {{d}};
    return {{d, in.sum({}, d, -1)}};
  }
  /// The integer that a lane of an i32 or i64 value is, where it is made of symbolic integers and no conversion or sum
  /// of them leaves the type.
  std::optional<Poly> integer(UOpRef x, std::optional<int64_t> lane, const Poly *any) {
    if (x->isIndex()) return in.of(x);
    bool narrow = x->dtype == DType::I32;
    if (!narrow && x->dtype != DType::I64) return std::nullopt;
    auto fits = [&](Poly p) -> std::optional<Poly> {
      auto [lo, hi] = in.interval(p);
      int64_t most = narrow ? int64_t(INT32_MAX) : int64_t(1) << 61;
      Poly end = Inequalities::constant(most);
      if ((hi <= most || in.proves(in.sum(end, p, -1), facts)) && (lo >= -most || in.proves(in.sum(end, p), facts)))
        return p;
      return std::nullopt;
    };
    switch (x->op) {
    case Op::Const: return Inequalities::constant(narrow ? int64_t(int32_t(x->ints[0])) : x->ints[0]);
    case Op::FromIndex: return narrow ? fits(in.of(x->src[0])) : in.of(x->src[0]);
    case Op::Splat: return integer(x->src[0], std::nullopt, nullptr);
    case Op::Lanes:
      if (!x->rank()) return integer(x->src[0], x->ints[0], nullptr);
      return lane ? integer(x->src[0], *lane + x->ints[0], nullptr) : std::nullopt;
    case Op::Stack: {
      if (lane) {
        int64_t l = *lane;
        for (UOpRef part : x->src) {
          int64_t n = lanesOf(part);
          if (l < n) return integer(part, part->rank() ? std::optional<int64_t>(l) : std::nullopt, nullptr);
          l -= n;
        }
        return std::nullopt;
      }
      if (!any || !llvm::all_of(x->src, [](UOpRef s) { return s->isConst(); })) return std::nullopt;
      auto at = [&](size_t i) { return narrow ? int64_t(int32_t(x->src[i]->ints[0])) : x->src[i]->ints[0]; };
      int64_t step = x->src.size() > 1 ? at(1) - at(0) : 0; // lanes that are apart by one step: first + step * lane
      for (size_t i = 0; i < x->src.size(); ++i)
        if (at(i) != at(0) + step * int64_t(i)) return std::nullopt;
      return in.sum(Inequalities::constant(at(0)), *any, step);
    }
    case Op::Add:
    case Op::Sub: {
      auto a = integer(x->src[0], lane, any), b = integer(x->src[1], lane, any);
      return a && b ? fits(in.sum(*a, *b, x->op == Op::Add ? 1 : -1)) : std::nullopt;
    }
    default:
      if (narrow || (x->rank() && !lane)) return std::nullopt;
      return in.inMemory(x->op == Op::Cast ? x->src[0] : x, lane.value_or(0), x->dtype);
    }
  }
  Inequalities &in;
  const Facts &facts;
};

class Verifier {
public:
  Verifier(const Kernel &k, const Linear &l, const NotNegative &known, const TileRegion *region, AccessCount &count,
           SmallVectorImpl<UOpRef> *unproved = nullptr, const llvm::DenseSet<UOpRef> *tested = nullptr)
      : k(k), l(l), known(known), unproved(unproved), tested(tested), gates(in, facts), count(count) {
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
    count.steps += in.steps;
    return llvm::Error::success();
  }

private:
  bool holds(const Poly &x, const Facts &with) {
    ++count.proofs;
    return in.proves(x, with);
  }

  /// Loads and stores: 0 <= index and index + lanes <= elements, for each lane that the gate lets pass.
  llvm::Error element(const Inst &i, UOpRef x, UOpRef gate, int64_t lanes) {
    ++count.accesses;
    UOpRef index = x->indices()[0];
    uint32_t buffer = x->src[0]->ints[0];
    if (auto e = inLoops(x, index)) return e;
    if (tested && tested->contains(x)) return llvm::Error::success();
    Poly at = in.of(index);
    shift = 0;
    if (i.speculative) { // the lanes that the emitters, who may take a vector in parts, do not test
      auto [first, end] = untested(index, lanes, k.buffers[buffer].elements->lo);
      if (first >= end) return llvm::Error::success();
      at = in.sum(at, Inequalities::constant(first)), lanes = end - first, shift = first;
      if (lanes < lanesOf(x)) gate = nullptr;
    }
    if (!gate) return gateless(x, buffer, at, lanes);
    if (gate->op == Op::Splat || !gate->rank()) {
      for (const Facts &g : gates.of(gate, std::nullopt, nullptr))
        if (!inside(at, lanes, elements[buffer], joined(g))) return refuse(x, index, gate, lanes, buffer);
      return llvm::Error::success();
    }
    if (inside(at, lanes, elements[buffer], facts)) return llvm::Error::success(); // whatever the gate is
    Poly lane = in.unknownBelow(lanes);                                            // all lanes at once, else one by one
    bool all = true;
    for (const Facts &g : gates.of(gate, std::nullopt, &lane))
      all = all && inside(in.sum(at, lane), 1, elements[buffer], joined(g));
    if (all) return llvm::Error::success();
    for (int64_t n = 0; n < lanes; ++n)
      for (const Facts &g : gates.of(gate, n, nullptr))
        if (!inside(in.sum(at, Inequalities::constant(n)), 1, elements[buffer], joined(g)))
          return refuse(x, index, gate, lanes, buffer);
    return llvm::Error::success();
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
    if (((fresh || constant < lo) && !holds(all, facts)) ||
        ((fresh || constant + lanes > hi) && !holds(behind, facts))) {
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
    return holds(at, with) && holds(in.sum(in.sum(size, at, -1), Inequalities::constant(-lanes)), with);
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
  /// A read of a stage: each index within its extent.
  llvm::Error read(const Inst &i) {
    ++count.accesses;
    shift = 0;
    UOpRef x = i.uop;
    const StageArray &a = arrayOf(x->src[0]);
    for (auto [d, index] : llvm::enumerate(x->indices())) {
      int64_t lanes = d + 1 == x->indices().size() ? lanesOf(x) : 1;
      if (auto e = inLoops(x, index)) return e;
      if (i.speculative && needsTest(index, lanes, a.extents[d])) continue;
      if (!inside(in.of(index), lanes, Inequalities::constant(a.extents[d]), facts))
        return refuse(x, index, nullptr, lanes, -1, a.extents[d]);
    }
    return llvm::Error::success();
  }
  /// The points of a stage lie in its array.
  llvm::Error stage(UOpRef x) {
    ++count.accesses;
    shift = 0;
    const StageArray &a = arrayOf(x);
    for (auto [d, r] : llvm::enumerate(x->indices())) {
      int64_t lanes = d + 1 == x->indices().size() ? lanesOf(x->src[0]) : 1;
      Poly room = in.sum(Inequalities::constant(a.extents[d]), in.of(r->src[0]), -lanes);
      if (!holds(room, facts)) return refuse(x, r, nullptr, lanes, -1, a.extents[d]);
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
    return llvm::createStringError("internal error: kernel '" + llvm::Twine(k.name) + "', plan '" + k.plan + "': a " +
                                   info(x->op).mnemonic + " " + what);
  }
  llvm::Error refuse(UOpRef x, UOpRef index, UOpRef gate, int64_t lanes, int64_t buffer, int64_t extent = 0);
  bool insideEverywhere(ArrayRef<UOpRef> below,
                        llvm::function_ref<bool(const llvm::DenseMap<UOpRef, int64_t> &)> inside);

  const Kernel &k;
  const Linear &l;
  const NotNegative &known;
  SmallVectorImpl<UOpRef> *unproved;              // loads and stores that no point was found outside for; null: refused
  const llvm::DenseSet<UOpRef> *tested = nullptr; // that have a gate of their own that their elements exist
  Inequalities in;
  Facts facts; // of dims and open loops
  Gates gates;
  AccessCount &count;
  int64_t shift = 0; // of the access at hand: its first lane that is not tested
  std::vector<Poly> elements;
  SmallVector<UOpRef, 8> open;
  std::map<std::string, std::pair<int64_t, int64_t>> sameFacts; // accesses of the loops that are open
};

/// The value of a gate's lane at a point; true where it is read from memory.
bool gateAt(UOpRef g, int64_t lane, llvm::function_ref<std::optional<int64_t>(UOpRef)> value) {
  auto number = [&](auto &self, UOpRef x, int64_t n) -> std::optional<int64_t> {
    if (x->isIndex()) return idxEvaluate(x, value);
    switch (x->op) {
    case Op::Const: return x->dtype == DType::I32 ? int64_t(int32_t(x->ints[0])) : x->ints[0];
    case Op::FromIndex: return idxEvaluate(x->src[0], value);
    case Op::Splat: return self(self, x->src[0], 0);
    case Op::Lanes: return self(self, x->src[0], n + x->ints[0]);
    case Op::Stack:
      for (UOpRef part : x->src) {
        if (n < lanesOf(part)) return self(self, part, n);
        n -= lanesOf(part);
      }
      return std::nullopt;
    case Op::Add:
    case Op::Sub: {
      auto a = self(self, x->src[0], n), b = self(self, x->src[1], n);
      if (!a || !b) return std::nullopt;
      return x->op == Op::Add ? *a + *b : *a - *b;
    }
    default: return std::nullopt;
    }
  };
  switch (g->op) {
  case Op::Const: return g->ints[0];
  case Op::Splat: return gateAt(g->src[0], 0, value);
  case Op::Lanes: return gateAt(g->src[0], lane + g->ints[0], value);
  case Op::Stack:
    for (UOpRef part : g->src) {
      if (lane < lanesOf(part)) return gateAt(part, lane, value);
      lane -= lanesOf(part);
    }
    return true;
  case Op::And: return gateAt(g->src[0], lane, value) && gateAt(g->src[1], lane, value);
  case Op::Or: return gateAt(g->src[0], lane, value) || gateAt(g->src[1], lane, value);
  case Op::Lt:
  case Op::Le:
  case Op::Eq: {
    auto a = number(number, g->src[0], lane), b = number(number, g->src[1], lane);
    if (!a || !b) return true;
    return g->op == Op::Lt ? *a < *b : g->op == Op::Le ? *a <= *b : *a == *b;
  }
  default: return true;
  }
}

/// A gate for reading, its comparisons of symbolic integers.
std::string gateText(UOpRef g) {
  std::string s;
  for (UOpRef n : topoSort(g)) {
    if (n->isIndex() || n->is(Op::Const)) continue;
    if (n->op == Op::FromIndex)
      s += (s.empty() ? "" : " ") + ("[" + indexText(n->src[0]) + "]");
    else if (has(n->op, Elementwise)) {
      s += (s.empty() ? "" : " ") + std::string(info(n->op).mnemonic);
      for (UOpRef i : n->src)
        if (i->isIndex()) s += " [" + indexText(i) + "]";
    }
  }
  return s;
}

/// Whether all points of few dims and items are inside, each tried: a proof too.
bool Verifier::insideEverywhere(ArrayRef<UOpRef> below,
                                llvm::function_ref<bool(const llvm::DenseMap<UOpRef, int64_t> &)> inside) {
  constexpr int64_t mostPoints = 1 << 17;
  llvm::DenseMap<UOpRef, int64_t> at;
  auto value = [&](UOpRef n) -> std::optional<int64_t> {
    auto it = at.find(n);
    return it == at.end() ? std::nullopt : std::optional<int64_t>(it->second);
  };
  SmallVector<int64_t, 8> ends;
  int64_t points = 0;
  for (size_t d = 0;;) { // an odometer: the last one runs fastest; the end of a range may depend on those before it
    if (d == below.size()) {
      if (++points > mostPoints || !inside(at)) return false;
    } else {
      UOpRef n = below[d];
      if (n->op == Op::Extent) return false;
      auto end = n->op == Op::Dim ? std::optional<int64_t>(n->ints[1] + 1) : idxEvaluate(n->src[0], value);
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
  auto insideAt = [&](const llvm::DenseMap<UOpRef, int64_t> &at) {
    auto value = [&](UOpRef n) -> std::optional<int64_t> {
      auto it = at.find(n);
      return it == at.end() ? std::nullopt : std::optional<int64_t>(it->second);
    };
    for (UOpRef f : known)
      if (auto v = idxEvaluate(f, value); v && *v < 0) return true; // it does not run there
    auto first = idxEvaluate(index, value),
         size = buffer >= 0 ? idxEvaluate(k.buffers[buffer].elements, value) : std::optional<int64_t>(extent);
    if (!first || !size) return false;
    for (int64_t n = 0; n < lanes; ++n)
      if ((*first + shift + n < 0 || *first + shift + n >= *size) && (!gate || gateAt(gate, n, value))) return false;
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
    for (UOpRef n : below) {
      if (n->op == Op::Range) {
        auto e = idxEvaluate(n->src[0], value);
        if (!e || *e < 1) {
          runs = false;
          break;
        }
        at[n] = random(0, *e - 1);
      } else
        at[n] = random(n->ints[0], std::min<int64_t>(n->ints[1], int64_t(1) << 40));
    }
    if (!runs) continue;
    for (UOpRef f : known)
      if (auto v = idxEvaluate(f, value); !v || *v < 0) runs = false;
    auto first = idxEvaluate(index, value),
         size = buffer >= 0 ? idxEvaluate(k.buffers[buffer].elements, value) : std::optional<int64_t>(extent);
    if (!runs || !first || !size) continue;
    for (int64_t n = 0; n < lanes; ++n) {
      if ((*first + shift + n >= 0 && *first + shift + n < *size) || (gate && !gateAt(gate, n, value))) continue;
      std::string where;
      for (UOpRef b : below) where += (where.empty() ? "" : ", ") + indexText(b) + " = " + std::to_string(at[b]);
      return fail(x, access + " is outside where " + where + ": element " + std::to_string(*first + shift + n) +
                         " of " + std::to_string(*size));
    }
  }
  std::string around;
  for (UOpRef r : ranges) around += (around.empty() ? ", in " : ", ") + indexText(r) + " < " + indexText(r->src[0]);
  std::string size = buffer >= 0 ? indexText(k.buffers[buffer].elements) : std::to_string(extent);
  if (unproved && (x->op == Op::Load || x->op == Op::Store)) {
    unproved->push_back(x);
    return llvm::Error::success();
  }
  return fail(x, access + " is not proved to be inside of " + size + " elements" + around +
                     (gate ? ", where " + gateText(gate) : "") + "; no point outside was found");
}
} // namespace

llvm::Error astra::verifyAccesses(const Kernel &k, const Linear &l, const NotNegative &facts, AccessCount &count) {
  AccessTimer timer{count};
  ++count.kernels;
  return Verifier(k, l, facts, nullptr, count).run();
}

/// The kernel with a gate on each of these loads and stores: that the elements it touches exist.
static Kernel withTests(Context &c, const Kernel &k, ArrayRef<UOpRef> accesses, llvm::DenseSet<UOpRef> &tested) {
  llvm::DenseMap<UOpRef, UOpRef> to;
  std::vector<UOpRef> roots(k.hints);
  roots.push_back(k.sink);
  for (UOpRef n : topoSort(roots)) {
    SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(to.lookup(s));
    UOpRef same = c.withSources(n, src);
    if (llvm::is_contained(accesses, n)) {
      bool load = same->op == Op::Load;
      unsigned gateAt = load ? 1 : 2;
      UOpRef at = same->indices()[0], count = k.buffers[same->src[0]->ints[0]].elements, inside;
      int64_t lanes = lanesOf(load ? same : same->src[1]);
      if (lanes == 1)
        inside = c.make(Op::And, {c.make(Op::Lt, {c.index(-1), at}), c.make(Op::Lt, {at, count})});
      else {
        auto splat = [&](UOpRef x) { return c.make(Op::Splat, {x}, {lanes}); };
        auto number = [&](UOpRef i) { return splat(c.make(Op::FromIndex, {i}, {}, {}, DType::I64)); };
        SmallVector<UOpRef, 64> each;
        for (int64_t l = 0; l < lanes; ++l) each.push_back(c.literal(DType::I64, uint64_t(l)));
        UOpRef places = c.make(Op::Add, {number(at), c.make(Op::Stack, each)});
        inside = c.make(Op::And, {c.make(Op::Lt, {splat(c.literal(DType::I64, ~uint64_t(0))), places}),
                                  c.make(Op::Lt, {places, number(count)})});
      }
      SmallVector<UOpRef, 8> parts(same->src.begin(), same->src.end());
      if (same->ntensors > gateAt)
        parts[gateAt] = c.make(Op::And, {parts[gateAt], inside});
      else
        parts.insert(parts.begin() + gateAt, inside);
      same = c.make(same->op, parts, same->ints);
      tested.insert(same);
    } else if (tested.contains(n))
      tested.insert(same);
    to[n] = same;
  }
  Kernel out = k;
  out.sink = to.lookup(k.sink);
  for (UOpRef &h : out.hints) h = to.lookup(h);
  return out;
}

/// Proved as it is, or with tests where no proof and no point outside were found.
static llvm::Error proveOrTest(Context &c, Kernel &k, Linear &l, const NotNegative &facts, const TileRegion *region,
                               AccessCount &count) {
  AccessTimer timer{count};
  ++count.kernels;
  constexpr unsigned rounds = 8; // accesses that share a proof are found one after another
  llvm::DenseSet<UOpRef> tested;
  for (unsigned round = 0; round < rounds; ++round) {
    SmallVector<UOpRef, 8> unproved;
    AccessCount twice;
    if (auto e = Verifier(k, l, facts, region, round ? twice : count, &unproved, &tested).run()) return e;
    if (unproved.empty()) return llvm::Error::success();
    count.tested += llvm::DenseSet<UOpRef>(unproved.begin(), unproved.end()).size();
    k = withTests(c, k, unproved, tested);
    auto again = linearize(c, k);
    if (!again) return again.takeError();
    l = std::move(*again);
  }
  AccessCount last;
  return Verifier(k, l, facts, region, last, nullptr, &tested).run();
}

llvm::Expected<Linear> astra::linearizeInside(Context &c, Kernel &k, const NotNegative &facts, AccessCount &count) {
  auto l = linearize(c, k);
  if (!l) return l;
  if (auto e = proveOrTest(c, k, *l, facts, nullptr, count)) return std::move(e);
  return l;
}

llvm::Error astra::verifyRegions(Context &c, LinearKernel &k, const NotNegative &facts,
                                 llvm::function_ref<const Kernel *(Kernel)> keep, AccessCount &count) {
  for (TileRegion &r : k.regions) {
    NotNegative here(facts);
    here.push_back(idxSub(c, idxSub(c, r.tiles, c.index(1)), r.tile));
    std::map<uint64_t, uint64_t> room; // where what passes between the steps lies, and up to where
    for (const TileRegion::Step &s : r.steps)
      for (const TileRegion::Argument &a : s.arguments)
        if (a.local) room[a.number] = r.scratch;
    for (auto it = room.begin(); it != room.end(); ++it)
      if (std::next(it) != room.end()) it->second = std::next(it)->first;
    for (TileRegion::Step &s : r.steps) {
      Kernel own = *s.kernel;
      if (auto e = proveOrTest(c, own, s.linear, here, &r, count)) return e;
      if (own.sink != s.kernel->sink) s.kernel = keep(std::move(own));
      AccessTimer timer{count};
      Inequalities in;
      Facts known;
      for (UOpRef f : here) in.assume(known, in.of(f));
      for (auto [b, a] : llvm::zip(s.kernel->buffers, s.arguments)) {
        if (!a.local) continue;
        int64_t most = int64_t(room[a.number] - a.number) / std::max(1u, byteSize(b.dtype));
        ++count.proofs;
        if (!in.proves(in.sum(Inequalities::constant(most), in.of(b.elements), -1), known))
          return llvm::createStringError("internal error: kernel '" + s.name + "': " + indexText(b.elements) +
                                         " elements that pass between its steps are not proved to be at most " +
                                         std::to_string(most));
      }
    }
  }
  return llvm::Error::success();
}
