//===- TestAccesses.cpp: accesses without a proof are tested at run time -------===//
// Takes:    a kernel with loads and stores, and reads of stages under a gate, that are neither proved to be inside of
//           their buffers or arrays nor shown to be outside.
// Gives:    the same kernel with a gate on each of these: that its elements exist.
// Keeps:    bits: where an access is inside its gate is true.
#include "Gates.h"
#include "Inequalities.h"
#include "VerifyAccesses.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;
using Facts = Inequalities::Facts;

/// The number of elements along the last index of what is accessed.
static UOpRef countOf(Context &c, const Kernel &k, UOpRef access) {
  UOpRef from = access->src[0];
  if (access->op != Op::At) return k.buffers[from->ints[0]].elements;
  int64_t points = from->indices().empty() ? 1 : std::max<int64_t>(from->indices().back()->src[0]->hi, 0);
  return c.index(points * lanesOf(from) * int64_t(from->ntensors));
}

/// The kernel with a gate on each of these accesses: that the elements it touches exist.
static Kernel withTests(Context &c, const Kernel &k, ArrayRef<UOpRef> accesses, llvm::DenseSet<UOpRef> &tested) {
  llvm::DenseMap<UOpRef, UOpRef> to;
  std::vector<UOpRef> roots(k.hints);
  roots.push_back(k.sink);
  for (UOpRef n : topoSort(roots)) {
    SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(to.lookup(s));
    UOpRef same = c.withSources(n, src);
    if (llvm::is_contained(accesses, n)) {
      bool store = same->op == Op::Store;
      unsigned gateAt = store ? 2 : 1;
      UOpRef at = same->op == Op::At ? same->indices().back() : same->indices()[0], count = countOf(c, k, same), inside;
      int64_t lanes = lanesOf(store ? same->src[1] : same);
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
    if (auto e = verifyAccesses(k, l, facts, region, round ? twice : count, {&unproved, &tested})) return e;
    if (unproved.empty()) return llvm::Error::success();
    count.tested += llvm::DenseSet<UOpRef>(unproved.begin(), unproved.end()).size();
    k = withTests(c, k, unproved, tested);
    auto again = linearize(c, k);
    if (!again) return again.takeError();
    l = std::move(*again);
  }
  AccessCount last;
  return verifyAccesses(k, l, facts, region, last, {nullptr, &tested});
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
        if (!in.proves(in.sum(Inequalities::constant(most), in.of(b.elements), -1), known))
          return llvm::createStringError("internal error: kernel '" + s.name + "': " + indexText(b.elements) +
                                         " elements that pass between its steps are not proved to be at most " +
                                         std::to_string(most));
      }
    }
  }
  return llvm::Error::success();
}
