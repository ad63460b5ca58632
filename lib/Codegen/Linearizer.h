//===- Linearizer.h: loops, and what is computed in each --------------------===//
// A *region* is one loop in one place; the root region is the function. A value that is asked for in a region is
// *placed* in the nearest region around it whose range it depends on, so hoisting needs no pass of its own. One node
// may be placed in several regions that do not enclose each other; each such *instance* is defined once. First all
// instances are found (walk), then each region orders what it holds (order) by the uses between them.
// Linearize.cpp places and orders, Prefetch.cpp adds the reads that are asked for ahead.
#pragma once
#include "astra/Codegen/Linear.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace astra::linear {

inline constexpr uint32_t none = ~0u;

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

inline bool isLeaf(UOpRef x) {
  return x->op == Op::Const || x->op == Op::Buffer || x->op == Op::Dim || x->op == Op::Range;
}
inline bool closes(UOpRef x) { return x->op == Op::Fold || x->op == Op::Stage; }
inline RangeKind kindOf(UOpRef range) { return RangeKind(range->ints[1]); }
inline int64_t lanesOf(UOpRef x) { return x->rank() ? x->shape[0]->constIndex().value_or(1) : 1; }

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
  void prefetch(uint32_t r);
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

} // namespace astra::linear
