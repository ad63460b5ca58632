//===- Prefetch.cpp: reads that are asked for before they are needed --------===//
// Takes:    regions with their loads, before they are ordered; a kernel's `prefetch` and `hints`.
// Gives:    prefetches of the loads of a region, items that others are ordered with; the region of a hint.
// Keeps:    what is computed: a prefetch may be dropped.
#include "Linearizer.h"
#include "astra/Codegen/Target.h"

using namespace astra;
using namespace astra::linear;

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
  if (k.prefetchByItems) {
    auto makes = [&](uint32_t i) { return items[i].kind == InstKind::StagePut || items[i].kind == InstKind::Write; };
    if (llvm::none_of(regions[r].items, makes)) return std::nullopt;
    while (along != none && (!regions[along].range || kindOf(regions[along].range) != RangeKind::Parallel))
      along = regions[along].parent;
    if (along == none) return std::nullopt;
  } else if (range->src[0]->lo <= int64_t(k.prefetch)) {
    return std::nullopt; // what comes so much later is another loop's
  }
  auto stride = strideAlong(index, regions[along]);
  if (!stride || std::abs(*stride) > INT32_MAX) return std::nullopt;
  return *stride;
}

/// Prefetches of the loads of a region: in a loop those that each step reads from lines of their own (aheadOf); around
/// a fold's loop, before it, those of which it needs nothing.
void Linearizer::prefetch(uint32_t r) {
  constexpr int64_t most = 64; // prefetches of a region
  auto folds = [&](UOpRef range) { return range && kindOf(range) == RangeKind::Fold; };
  UOpRef range = regions[r].range;
  bool isLoop = k.prefetchByItems ? range && kindOf(range) != RangeKind::Parallel : folds(range);
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
      if (!stride || std::abs(*stride) * bytes < lineBytes) continue;
      ahead = *stride * int64_t(k.prefetch);
    } else if (k.prefetchByItems || loops.empty() || items[i].feedsLoop) {
      continue;
    }
    llvm::SmallVector<IndexTerm, 4> ts = terms(index);
    int64_t constant = !ts.empty() && ts.back().atoms.empty() ? ts.pop_back_val().coefficient : 0;
    auto &near = asked[{load->src[0], fromTerms(c, ts)}];
    if (llvm::any_of(near, [&](int64_t other) { return std::abs(other - constant) * bytes < lineBytes; })) continue;
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
