//===- Linearize.cpp: from a graph of kernel UOps to loops -----------------===//
// Takes:    an expanded kernel.
// Gives:    its instructions in order (Linear.h), or a sentence.
//
// A *region* is one loop in one place; the root region is the function. A value that is asked for in a region is
// *placed* in the nearest region around it whose range it depends on, so hoisting needs no pass of its own. One node
// may be placed in several regions that do not enclose each other; each such *instance* is defined once. First all
// instances are found (walk), then each region orders what it holds (order) by the uses between them.
#include "astra/Codegen/Linear.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <queue>
#include <tuple>

using namespace astra;

namespace {

constexpr uint32_t none = ~0u;

/// Sets of ranges, interned: nodes of a kernel share few of them.
class RangeSets {
public:
  RangeSets() { intern({}); }
  uint32_t single(unsigned bit) {
    std::vector<uint64_t> w(bit / 64 + 1);
    w[bit / 64] = 1ull << bit % 64;
    return intern(std::move(w));
  }
  uint32_t unite(uint32_t a, uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    auto [it, fresh] = unions.try_emplace({a, b}, 0);
    if (!fresh) return it->second;
    std::vector<uint64_t> w = sets[a];
    w.resize(std::max(w.size(), sets[b].size()));
    for (size_t i = 0; i < sets[b].size(); ++i) w[i] |= sets[b][i];
    return unions[{a, b}] = intern(std::move(w));
  }
  uint32_t without(uint32_t a, unsigned bit) {
    if (!has(a, bit)) return a;
    std::vector<uint64_t> w = sets[a];
    w[bit / 64] &= ~(1ull << bit % 64);
    return intern(std::move(w));
  }
  bool has(uint32_t a, unsigned bit) const { return bit / 64 < sets[a].size() && (sets[a][bit / 64] >> bit % 64 & 1); }
  std::vector<unsigned> members(uint32_t a) const {
    std::vector<unsigned> m;
    for (unsigned bit = 0; bit < sets[a].size() * 64; ++bit)
      if (has(a, bit)) m.push_back(bit);
    return m;
  }

private:
  uint32_t intern(std::vector<uint64_t> w) {
    while (!w.empty() && !w.back()) w.pop_back();
    auto [it, fresh] = ids.try_emplace(w, sets.size());
    if (fresh) sets.push_back(std::move(w));
    return it->second;
  }
  std::vector<std::vector<uint64_t>> sets;
  std::map<std::vector<uint64_t>, uint32_t> ids;
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> unions;
};

struct Region {
  UOpRef range = nullptr; // null: the root
  unsigned bit = 0;
  uint32_t parent = none, depth = 0;
  uint32_t loop = none; // the item in the parent that is this loop
  bool mayBeEmpty = false;
  std::vector<uint32_t> items;
};

/// What a region orders: an instruction or a whole loop.
struct Item {
  InstKind kind;
  UOpRef uop = nullptr;
  uint32_t region = none; // that holds it
  uint32_t inner = none;  // LoopBegin: the region of the loop
  uint32_t value = none;  // Define: its instance
  uint32_t waiting = 0;   // for that many items of the same region
  int64_t ahead = 0;      // Prefetch
  bool feedsLoop = false; // is a loop, or a loop of the same region needs it
  bool late = false;      // writes a buffer that the kernel also reads, itself or inside
  std::vector<uint32_t> users;
};

struct Use {
  uint32_t instance; // none: a leaf
  UOpRef node;
  uint32_t region; // where the value is needed
  uint32_t item;   // by whom; none for the instance's own item
};

/// A node placed in a region.
struct Instance {
  Instance(UOpRef node, uint32_t region) : node(node), region(region) {}
  UOpRef node;
  uint32_t region;
  uint32_t own = none;  // the item that a user may not precede
  bool certain = false; // asked for wherever its region runs
  std::vector<Use> uses;
};

bool isLeaf(UOpRef x) { return x->op == Op::Const || x->op == Op::Buffer || x->op == Op::Dim || x->op == Op::Range; }
bool closes(UOpRef x) { return x->op == Op::Fold || x->op == Op::Stage; }
RangeKind kindOf(UOpRef range) { return RangeKind(range->ints[1]); }
int64_t lanesOf(UOpRef x) { return x->rank() ? x->shape[0]->constIndex().value_or(1) : 1; }

} // namespace

UOpRef astra::restingFold(UOpRef stage) {
  if (stage->op != Op::Stage || stage->src[0]->op != Op::Fold) return nullptr;
  UOpRef fold = stage->src[0];
  bool rests = llvm::any_of(fold->indices(), [](UOpRef r) { return kindOf(r) == RangeKind::Around; });
  return rests ? fold : nullptr;
}

namespace {
class Linearizer {
public:
  Linearizer(Context &c, const Kernel &k, bool split) : c(c), k(k), split(split) {}
  /// cyclic: folds that share a loop need each other's results; split gives them loops of their own.
  llvm::Expected<Linear> run(bool &cyclic);

private:
  llvm::Error fail(const llvm::Twine &what) const {
    return llvm::createStringError(llvm::Twine("kernel '") + k.name + "': " + what);
  }
  llvm::Error analyse();
  llvm::Error walk();
  llvm::Error beginInstance(uint32_t i);
  llvm::Expected<uint32_t> placeStore(UOpRef store);
  uint32_t regionOfHint(UOpRef hint) const;
  uint32_t place(UOpRef node, uint32_t from) const;
  uint32_t loopIn(uint32_t parent, UOpRef range, unsigned group);
  uint32_t addItem(InstKind kind, UOpRef uop, uint32_t region);
  void depend(uint32_t before, uint32_t after);
  void link(uint32_t i);
  void markCertain();
  std::optional<int64_t> strideAlong(UOpRef index, const Region &region) const;
  std::optional<int64_t> aheadOf(UOpRef index, uint32_t r) const;
  void askAhead(uint32_t r);
  bool order(Linear &out);
  llvm::Error placeArrays(Linear &out);

  Context &c;
  const Kernel &k;
  bool split;
  UOpRef lone = nullptr;
  std::vector<UOpRef> topo, ranges; // ranges by bit
  std::vector<uint32_t> set;        // by node id: the ranges it depends on
  std::vector<uint32_t> depth;      // by node id: folds and stages below, longest chain
  std::vector<bool> anchored;       // by node id: reads memory or has a loop below; stays inside its parallel range
  llvm::DenseMap<int64_t, unsigned> bitOfAxis;
  RangeSets sets;
  std::vector<Region> regions;
  std::vector<Item> items;
  std::vector<Instance> instances;
  std::vector<uint32_t> finished; // instances, sources first
  llvm::DenseMap<std::pair<UOpRef, uint32_t>, uint32_t> instanceOf;
  llvm::DenseMap<std::pair<std::pair<uint32_t, unsigned>, unsigned>, uint32_t> regionOf;
};

llvm::Error Linearizer::analyse() {
  std::vector<UOpRef> roots(k.hints);
  roots.insert(roots.begin(), k.sink);
  topo = topoSort(roots);
  lone = loneRange(c, k.sink);
  uint32_t most = 0;
  for (UOpRef x : topo) most = std::max(most, x->id + 1);
  if (lone) topo.insert(topo.begin(), lone), most = std::max(most, lone->id + 1);
  set.assign(most, 0);
  depth.assign(most, 0);
  anchored.assign(most, false);
  for (UOpRef x : topo) {
    anchored[x->id] =
        x->op == Op::Load || x->op == Op::At || x->op == Op::Running || x->op == Op::LaneFold || closes(x);
    for (UOpRef y : x->src) anchored[x->id] = anchored[x->id] || anchored[y->id];
    uint32_t s = 0, d = 0;
    for (UOpRef y : x->src) s = sets.unite(s, set[y->id]), d = std::max(d, depth[y->id]);
    if (x->op == Op::Range && kindOf(x) == RangeKind::Thread) continue; // a number that each thread has
    if (x->op == Op::Range) {
      if (kindOf(x) == RangeKind::Vector || kindOf(x) == RangeKind::Unroll)
        return fail("range " + std::to_string(x->ints[0]) + " is not expanded");
      auto [it, fresh] = bitOfAxis.try_emplace(x->ints[0], ranges.size());
      if (!fresh) return fail("two ranges with axis number " + std::to_string(x->ints[0]) + " and different parts");
      s = sets.unite(s, sets.single(ranges.size()));
      ranges.push_back(x);
    }
    if (closes(x)) {
      for (UOpRef r : x->indices()) {
        if (x->op == Op::Stage && kindOf(r) == RangeKind::Thread) continue; // the machine's, not a loop
        if (kindOf(r) != RangeKind::Fold && (x->op != Op::Fold || kindOf(r) != RangeKind::Around))
          return fail(llvm::Twine(info(x->op).mnemonic) + " closes range " + std::to_string(r->ints[0]) +
                      ", which is not a fold range");
        s = sets.without(s, bitOfAxis[r->ints[0]]);
      }
      ++d;
    }
    if (x->op == Op::LaneFold && (x->indices().size() > 1 || kindOf(x->indices()[0]) != RangeKind::Thread))
      return fail("a lanefold is not expanded");
    set[x->id] = s;
    depth[x->id] = d;
  }
  return llvm::Error::success();
}

uint32_t Linearizer::place(UOpRef node, uint32_t from) const {
  // Work stays with the items of its region: another part of the launch must not do it too, and a register that holds
  // it across all loops of a tile is lost to the tile.
  auto holds = [&](uint32_t r) { return anchored[node->id] && kindOf(regions[r].range) == RangeKind::Parallel; };
  while (regions[from].parent != none && !sets.has(set[node->id], regions[from].bit) && !holds(from))
    from = regions[from].parent;
  return from;
}

uint32_t Linearizer::addItem(InstKind kind, UOpRef uop, uint32_t region) {
  Item item;
  item.kind = kind, item.uop = uop, item.region = region;
  items.push_back(std::move(item));
  regions[region].items.push_back(items.size() - 1);
  return items.size() - 1;
}

uint32_t Linearizer::loopIn(uint32_t parent, UOpRef range, unsigned group) {
  unsigned bit = bitOfAxis[range->ints[0]];
  auto [it, fresh] = regionOf.try_emplace({{parent, bit}, group}, regions.size());
  if (!fresh) return it->second;
  uint32_t r = regions.size();
  Region region{range, bit, parent, regions[parent].depth + 1, none, range->src[0]->lo < 1, {}};
  // Items exist when a kernel is called at all, so its only parallel range is not empty.
  if (kindOf(range) == RangeKind::Parallel) {
    unsigned parallel = llvm::count_if(ranges, [](UOpRef x) { return kindOf(x) == RangeKind::Parallel; });
    region.mayBeEmpty = parallel > 1;
  }
  regions.push_back(region);
  regions[r].loop = addItem(InstKind::LoopBegin, range, parent);
  items[regions[r].loop].inner = r;
  return r;
}

/// The innermost region of a store: its parallel range, then its loops in the order of their axis numbers.
llvm::Expected<uint32_t> Linearizer::placeStore(UOpRef store) {
  std::vector<UOpRef> parallel, loops;
  for (unsigned bit : sets.members(set[store->id])) {
    UOpRef r = ranges[bit];
    if (kindOf(r) == RangeKind::Fold) return fail("range " + std::to_string(r->ints[0]) + " is not closed by a fold");
    (kindOf(r) == RangeKind::Parallel ? parallel : loops).push_back(r);
  }
  if (parallel.size() > 1) return fail("a store depends on two parallel ranges");
  if (parallel.empty()) parallel.push_back(lone);
  llvm::sort(loops, [](UOpRef a, UOpRef b) { return a->ints[0] < b->ints[0]; });
  uint32_t at = loopIn(0, parallel[0], 0);
  for (UOpRef r : loops) at = loopIn(at, r, 0);
  return at;
}

/// The region of the innermost loop that a hint depends on; none where it depends on no loop of the kernel.
uint32_t Linearizer::regionOfHint(UOpRef hint) const {
  for (uint32_t r = 1; r < regions.size(); ++r) {
    uint32_t rest = set[hint->id];
    if (!sets.has(rest, regions[r].bit)) continue;
    auto bits = sets.members(rest);
    for (uint32_t at = r; at != none && regions[at].range; at = regions[at].parent) llvm::erase(bits, regions[at].bit);
    if (bits.empty()) return r;
  }
  return none;
}

/// Notes what instance i needs and where.
llvm::Error Linearizer::beginInstance(uint32_t i) {
  UOpRef x = instances[i].node;
  uint32_t at = instances[i].region;
  auto bound = [&](UOpRef y, uint32_t region) -> llvm::Error {
    for (unsigned bit : sets.members(set[y->id])) {
      uint32_t r = region;
      while (r != none && (regions[r].parent == none || regions[r].bit != bit)) r = regions[r].parent;
      if (r == none) return fail("range " + std::to_string(ranges[bit]->ints[0]) + " is used outside its loop");
    }
    return llvm::Error::success();
  };
  std::vector<Use> uses;
  auto need = [&](UOpRef y, uint32_t region, uint32_t item) { uses.push_back({none, y, region, item}); };
  auto enter = [&](llvm::ArrayRef<UOpRef> loops, unsigned group) -> llvm::Error {
    for (UOpRef r : loops) {
      if (kindOf(r) == RangeKind::Thread) continue;
      if (auto e = bound(r->src[0], at)) return e;
      uint32_t inner = loopIn(at, r, group);
      need(r->src[0], at, regions[inner].loop);
      at = inner;
    }
    return llvm::Error::success();
  };
  if (UOpRef fold = restingFold(x)) {
    // Filled; then around: for each element, it goes on from where it rested.
    uint32_t outside = at, fill = addItem(InstKind::StageFill, x, at);
    need(fold->src[0], at, fill);
    auto is = [](RangeKind kind) { return [kind](UOpRef r) { return kindOf(r) == kind; }; };
    llvm::SmallVector<UOpRef, 4> around, inner;
    llvm::copy_if(fold->indices(), std::back_inserter(around), is(RangeKind::Around));
    llvm::copy_if(fold->indices(), std::back_inserter(inner), is(RangeKind::Fold));
    unsigned group = split ? depth[x->id] : 0;
    if (auto e = enter(around, group)) return e;
    if (auto e = enter(x->indices(), group)) return e;
    uint32_t element = at, resume = addItem(InstKind::AccResume, x, at);
    if (auto e = enter(inner, group)) return e;
    uint32_t body = addItem(InstKind::AccUpdate, fold, at), put = addItem(InstKind::StagePut, x, element);
    for (UOpRef y : fold->tensors().drop_front()) need(y, at, body);
    for (uint32_t r = at; r != element; r = regions[r].parent) body = regions[r].loop;
    depend(resume, body);
    depend(body, put);
    uint32_t own = put;
    for (uint32_t r = element; r != outside; r = regions[r].parent) own = regions[r].loop;
    depend(fill, own);
    instances[i].own = own;
  } else if (x->op == Op::Store) {
    std::vector<UOpRef> loops;
    for (uint32_t r = at; regions[r].parent != none; r = regions[r].parent) loops.push_back(regions[r].range);
    std::reverse(loops.begin(), loops.end());
    at = 0;
    if (auto e = enter(loops, 0)) return e;
    uint32_t item = addItem(InstKind::Write, x, at);
    for (UOpRef y : x->src.drop_front()) need(y, at, item);
    const KernelBuffer &b = k.buffers[x->src[0]->ints[0]];
    if (b.read)
      for (uint32_t r = at, j = item; j != none; j = regions[r].loop, r = regions[r].parent) items[j].late = true;
  } else if (closes(x)) {
    uint32_t outside = at, init = none;
    bool fold = x->op == Op::Fold;
    if (fold) init = addItem(InstKind::AccInit, x, at), need(x->src[0], at, init);
    if (auto e = enter(x->indices(), split ? depth[x->id] : 0)) return e;
    uint32_t body = addItem(fold ? InstKind::AccUpdate : InstKind::StagePut, x, at), own = body;
    for (UOpRef y : x->tensors().drop_front(fold)) need(y, at, body);
    for (uint32_t r = at; r != outside; r = regions[r].parent) own = regions[r].loop;
    if (fold) depend(init, own);
    instances[i].own = own;
  } else if (x->op == Op::Running) { // begins before its loop, which goes on around those who use it
    if (regions[at].range != x->indices()[0])
      return fail("a running value is not directly in the loop of range " + std::to_string(x->indices()[0]->ints[0]));
    uint32_t outside = regions[at].parent, init = addItem(InstKind::AccInit, x, outside),
             body = addItem(InstKind::AccUpdate, x, at);
    need(x->src[0], outside, init);
    need(x->src[1], at, body);
    depend(init, regions[at].loop);
    instances[i].own = body;
  } else {
    for (UOpRef y : x->src) need(y, at, none);
    if (x->op == Op::Load) need(k.buffers[x->src[0]->ints[0]].elements, at, none); // in case it is speculative
  }
  for (Use &u : uses)
    if (auto e = bound(u.node, u.region)) return e;
  instances[i].uses = std::move(uses);
  return llvm::Error::success();
}

llvm::Error Linearizer::walk() {
  regions.push_back({});
  auto instance = [&](UOpRef node, uint32_t region) {
    auto [it, fresh] = instanceOf.try_emplace({node, region}, instances.size());
    if (fresh) instances.emplace_back(node, region);
    return std::pair(it->second, fresh);
  };
  std::vector<std::pair<uint32_t, uint32_t>> stack; // instance, next use
  auto finish = [&](uint32_t root) -> llvm::Error {
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[i, next] = stack.back();
      if (next == instances[i].uses.size()) {
        Instance &v = instances[i];
        if (v.own == none && v.node->op != Op::Store) {
          v.own = addItem(InstKind::Define, v.node, v.region);
          items[v.own].value = i;
        }
        finished.push_back(i);
        stack.pop_back();
        continue;
      }
      uint32_t user = i, which = next++;
      UOpRef y = instances[user].uses[which].node;
      if (isLeaf(y)) continue;
      if (y->op == Op::Load && y->src[0]->ints[0] >= int64_t(k.buffers.size()))
        return fail("a load from buffer " + std::to_string(y->src[0]->ints[0]) + " of " +
                    std::to_string(k.buffers.size()));
      auto [j, fresh] = instance(y, place(y, instances[user].uses[which].region));
      instances[user].uses[which].instance = j;
      if (!fresh) continue;
      if (auto e = beginInstance(j)) return e;
      stack.push_back({j, 0});
    }
    return llvm::Error::success();
  };
  for (UOpRef store : k.sink->src) {
    if (store->src[0]->ints[0] >= int64_t(k.buffers.size()))
      return fail("a store to buffer " + std::to_string(store->src[0]->ints[0]) + " of " +
                  std::to_string(k.buffers.size()));
    auto at = placeStore(store);
    if (!at) return at.takeError();
    auto [root, freshRoot] = instance(store, *at);
    if (!freshRoot) continue;
    instances[root].certain = true;
    if (auto e = beginInstance(root)) return e;
    if (auto e = finish(root)) return e;
  }
  for (UOpRef hint : k.hints) {
    uint32_t r = regionOfHint(hint);
    if (r == none) continue;
    uint32_t root = instances.size(), item = addItem(InstKind::Prefetch, hint, r);
    instances.emplace_back(hint, r);
    instances[root].own = item;
    instances[root].uses.push_back({none, hint->indices()[0], r, item});
    if (auto e = finish(root)) return e;
  }
  return llvm::Error::success();
}

void Linearizer::depend(uint32_t before, uint32_t after) {
  if (before == after) return;
  items[before].users.push_back(after);
  ++items[after].waiting;
}

/// The order that instance i's uses ask for, each in the region of the value used.
void Linearizer::link(uint32_t i) {
  const Instance &v = instances[i];
  for (const Use &u : v.uses) {
    if (u.instance == none) continue;
    const Instance &used = instances[u.instance];
    uint32_t user = u.item != none ? u.item : v.own, region = u.region;
    while (region != used.region) user = regions[region].loop, region = regions[region].parent;
    depend(used.own, user);
  }
}

/// certain: some user asks for it in the region where it is, or through loops that run at least once.
void Linearizer::markCertain() {
  for (uint32_t i : llvm::reverse(finished)) {
    if (!instances[i].certain) continue;
    for (const Use &u : instances[i].uses) {
      if (u.instance == none) continue;
      Instance &used = instances[u.instance];
      bool through = true;
      for (uint32_t r = u.region; r != used.region; r = regions[r].parent) through &= !regions[r].mayBeEmpty;
      used.certain |= through;
    }
  }
}

/// How far apart in memory neighbours along a region's range are, in elements; nothing if that is not a number.
std::optional<int64_t> Linearizer::strideAlong(UOpRef index, const Region &region) const {
  int64_t stride = 0;
  for (const IndexTerm &t : terms(index))
    if (t.atoms.size() == 1 && t.atoms[0] == region.range)
      stride = t.coefficient;
    else if (llvm::any_of(t.atoms, [&](UOpRef a) { return sets.has(set[a->id], region.bit); }))
      return std::nullopt;
  return stride;
}

/// How far apart, in elements, what a loop reads at an index and what it asks for are for each step ahead; nothing if
/// it asks for nothing there. Steps are those of a fold's loop, or by items those from row to row: then the loops that
/// make a row's elements ask.
std::optional<int64_t> Linearizer::aheadOf(UOpRef index, uint32_t r) const {
  UOpRef range = regions[r].range;
  uint32_t along = r;
  if (k.aheadByItems) {
    auto makes = [&](uint32_t i) { return items[i].kind == InstKind::StagePut || items[i].kind == InstKind::Write; };
    if (llvm::none_of(regions[r].items, makes)) return std::nullopt;
    while (along != none && (!regions[along].range || kindOf(regions[along].range) != RangeKind::Parallel))
      along = regions[along].parent;
    if (along == none) return std::nullopt;
  } else if (range->src[0]->lo <= int64_t(k.ahead)) {
    return std::nullopt; // what comes so much later is another loop's
  }
  auto stride = strideAlong(index, regions[along]);
  if (!stride || std::abs(*stride) > INT32_MAX) return std::nullopt;
  return *stride;
}

/// Prefetches of the loads of a region: in a loop those that each step reads from lines of their own (aheadOf); around
/// a fold's loop, before it, those of which it needs nothing.
void Linearizer::askAhead(uint32_t r) {
  constexpr int64_t line = 64, most = 64; // bytes; prefetches of a region
  auto folds = [&](UOpRef range) { return range && kindOf(range) == RangeKind::Fold; };
  UOpRef range = regions[r].range;
  bool isLoop = k.aheadByItems ? range && kindOf(range) != RangeKind::Parallel : folds(range);
  llvm::SmallVector<uint32_t> loads, loops;
  for (uint32_t i : regions[r].items) {
    if (items[i].kind == InstKind::LoopBegin && folds(items[i].uop)) loops.push_back(i);
    if (items[i].kind == InstKind::Define && items[i].uop->op == Op::Load) loads.push_back(i);
  }
  // The lines that are asked for: of loads that differ by a constant those a line apart.
  llvm::DenseMap<std::pair<UOpRef, UOpRef>, llvm::SmallVector<int64_t>> asked;
  unsigned count = 0;
  for (uint32_t i : loads) {
    UOpRef load = items[i].uop, index = load->indices()[0];
    int64_t bytes = std::max(1u, byteSize(load->dtype)), ahead = 0;
    if (isLoop) {
      auto stride = aheadOf(index, r);
      if (!stride || std::abs(*stride) * bytes < line) continue;
      ahead = *stride * int64_t(k.ahead);
    } else if (k.aheadByItems || loops.empty() || items[i].feedsLoop) {
      continue;
    }
    llvm::SmallVector<IndexTerm, 4> ts = terms(index);
    int64_t constant = !ts.empty() && ts.back().atoms.empty() ? ts.pop_back_val().coefficient : 0;
    auto &near = asked[{load->src[0], fromTerms(c, ts)}];
    if (llvm::any_of(near, [&](int64_t other) { return std::abs(other - constant) * bytes < line; })) continue;
    if (++count > most) return;
    near.push_back(constant);
    uint32_t item = addItem(InstKind::Prefetch, load, r);
    items[item].ahead = ahead;
    items[item].feedsLoop = ahead == 0;
    if (auto it = instanceOf.find({index, place(index, r)}); it != instanceOf.end())
      if (const Instance &at = instances[it->second]; at.region == r) depend(at.own, item);
    if (!ahead)
      for (uint32_t loop : loops) depend(item, loop);
  }
}

/// Kahn's algorithm in each region, ties by creation; false on a cycle. Writes to buffers that are also read come last.
bool Linearizer::order(Linear &out) {
  struct Frame {
    uint32_t region;
    std::vector<uint32_t> order;
    size_t next = 0;
  };
  bool acyclic = true;
  auto kahn = [&](uint32_t r) {
    std::vector<uint32_t> order;
    using Key = std::tuple<bool, bool, uint32_t>;
    auto key = [&](uint32_t i) { return Key(items[i].late, !items[i].feedsLoop, i); };
    std::priority_queue<Key, std::vector<Key>, std::greater<Key>> ready;
    llvm::DenseMap<uint32_t, uint32_t> waiting;
    for (uint32_t i : regions[r].items)
      if (!(waiting[i] = items[i].waiting)) ready.push(key(i));
    while (!ready.empty()) {
      uint32_t i = std::get<2>(ready.top());
      ready.pop();
      order.push_back(i);
      for (uint32_t u : items[i].users)
        if (!--waiting[u]) ready.push(key(u));
    }
    return order;
  };
  auto enter = [&](uint32_t r) {
    // What no loop of the region needs comes after its loops: the loops' accumulators want the registers.
    std::vector<uint32_t> first = kahn(r);
    auto findFeeds = [&] {
      for (uint32_t i : llvm::reverse(first)) {
        bool feeds = items[i].kind == InstKind::LoopBegin;
        for (uint32_t u : items[i].users) feeds |= items[u].feedsLoop;
        items[i].feedsLoop = feeds;
      }
    };
    findFeeds();
    if (k.ahead) askAhead(r), findFeeds();
    Frame f{r, kahn(r), 0};
    acyclic &= f.order.size() == regions[r].items.size();
    return f;
  };
  std::vector<Frame> stack;
  stack.push_back(enter(0));
  while (acyclic && !stack.empty()) {
    Frame &f = stack.back();
    if (f.next == f.order.size()) {
      if (UOpRef range = regions[f.region].range) out.insts.push_back({InstKind::LoopEnd, range});
      stack.pop_back();
      continue;
    }
    const Item &item = items[f.order[f.next++]];
    bool reads = item.uop->op == Op::Load || item.uop->op == Op::At;
    bool speculative = item.kind == InstKind::Define && reads && !instances[item.value].certain;
    out.insts.push_back({item.kind, item.uop, speculative, item.ahead});
    if (item.kind == InstKind::LoopBegin) stack.push_back(enter(item.inner));
  }
  return acyclic;
}

llvm::Error Linearizer::placeArrays(Linear &out) {
  constexpr __int128 limit = __int128(1) << 40;
  for (UOpRef x : topo) {
    if (x->op != Op::Stage) continue;
    StageArray a{x, out.scratchBytes, {}, {}, 0};
    __int128 bytes = (bitWidth(x->dtype) + 7) / 8;
    for (UOpRef r : x->indices()) a.extents.push_back(std::max<int64_t>(r->src[0]->hi, 0));
    if (a.extents.empty())
      a.extents.push_back(lanesOf(x));
    else if (__builtin_mul_overflow(a.extents.back(), lanesOf(x), &a.extents.back()))
      return fail("a stage's extent leaves 64 bits");
    a.strides.assign(x->ints.begin(), x->ints.end());
    __int128 count = 1;
    if (!a.strides.empty()) {
      for (auto [n, stride] : llvm::zip(a.extents, a.strides)) count += __int128(n - 1) * stride;
    } else {
      a.strides.resize(a.extents.size());
      for (size_t d = a.extents.size(); d-- > 0; count *= a.extents[d])
        if (count > limit)
          return fail("a stage of more than 2^40 bytes");
        else
          a.strides[d] = int64_t(count);
    }
    if ((bytes *= count) > limit) return fail("a stage of more than 2^40 bytes");
    a.elements = int64_t(count);
    out.scratchBytes += uint64_t(bytes + 63) / 64 * 64;
    if (restingFold(x)) out.scratchBytes += 64; // many that are used together; not all in the same lines of a cache
    out.stages.push_back(std::move(a));
  }
  return llvm::Error::success();
}

llvm::Expected<Linear> Linearizer::run(bool &cyclic) {
  if (auto e = analyse()) return e;
  if (auto e = walk()) return e;
  for (uint32_t i : finished) link(i);
  markCertain();
  Linear out;
  if (auto e = placeArrays(out)) return e;
  cyclic = !order(out);
  return out;
}

} // namespace

llvm::Expected<Linear> astra::linearize(Context &c, const Kernel &k) {
  if (!k.sink || k.sink->op != Op::Sink)
    return llvm::createStringError(llvm::Twine("kernel '") + k.name + "': has no sink");
  for (bool split : {false, true}) {
    bool cyclic = false;
    auto l = Linearizer(c, k, split).run(cyclic);
    if (!l || !cyclic) return l;
  }
  llvm_unreachable("loops split by the depth of their folds cannot need each other");
}

std::string astra::print(const Linear &l) {
  static const char *const names[] = {"", "loop", "", "acc", "update", "put", "fill", "resume", ""};
  // Numbers in the order of definition: node ids depend on what was built before.
  llvm::DenseMap<UOpRef, unsigned> numbers;
  auto text = [&](UOpRef x) {
    if (x->isIndex()) return "[" + indexText(x) + "]";
    if (x->op == Op::Buffer) return "buffer" + std::to_string(x->ints[0]);
    if (x->op == Op::Const) return "0x" + llvm::utohexstr(uint64_t(x->ints[0]));
    return "%" + std::to_string(numbers.try_emplace(x, numbers.size()).first->second);
  };
  std::string out;
  unsigned indent = 0;
  for (const Inst &i : l.insts) {
    if (i.kind == InstKind::LoopEnd) {
      --indent;
      continue;
    }
    if (i.kind == InstKind::Define && i.uop->isIndex() && i.uop->op != Op::Extent) continue;
    out.append(indent * 2, ' ');
    if (i.kind == InstKind::LoopBegin) {
      out += "loop " + indexText(i.uop) + " < " + indexText(i.uop->src[0]) + "\n";
      ++indent;
      continue;
    }
    if (i.kind == InstKind::Prefetch) {
      out +=
          "prefetch " + text(i.uop->src[0]) + ", " + text(i.uop->indices()[0]) + " + " + std::to_string(i.ahead) + "\n";
      continue;
    }
    if (i.kind != InstKind::Write) out += text(i.uop) + " = ";
    out += names[unsigned(i.kind)];
    if (*names[unsigned(i.kind)]) out += " ";
    out += info(i.uop->op).mnemonic;
    llvm::ArrayRef<UOpRef> src = i.uop->src;
    if (i.kind == InstKind::AccInit) src = src.take_front(1);
    if (i.kind == InstKind::AccUpdate) src = i.uop->tensors().drop_front();
    for (size_t s = 0; s < src.size(); ++s) out += (s ? ", " : " ") + text(src[s]);
    if (i.speculative) out += " speculative";
    out += "\n";
  }
  return out;
}
