//===- Kernel.h: one kernel as UOps ----------------------------------------===//
// A kernel is a `sink` of stores. Everything below it is functional: `fold` and `lanefold` close ranges to a value,
// `stage` closes ranges to an array that `at` reads; `load` reads buffers that the kernel does not write at other
// points, or, at an address that changes with a loop range, wrote at earlier points of that loop. `running` is a fold
// along a loop range that stays open. Ranges have identity by axis number; equal ranges share one loop.
//
//   parallel  the work items. Each store depends on at most one parallel range; the items of the kernel are those of
//             its regions one after another, in the order of their axis numbers, then one item for the stores that
//             depend on none. Kernel ABI 1 runs any part first <= i < last of them, first < last. Tiles of several dims
//             are decoded by floordiv and mod.
//   loop      a sequential loop around a store; several nest in the order of their axis numbers, the least outermost
//   fold      a loop of fold, lanefold or stage
//   around    a loop of a fold that is the value of a stage: it goes around the stage's own loops, and the fold's
//             accumulators rest in the array between its points. The outermost ranges of the fold, and only these
//   vector    lanes of a register (before expansion)
//   unroll    replicated in straight-line code (before expansion)
//   thread    a digit of the number that a thread of a GPU has among those of its item: (number / stride) mod extent.
//             All threads of an item go through its loops together; warps may leave one in which none waits for another
//             at different times. A lanefold closes a digit that is a warp's lanes, or some neighbours of them. A stage
//             closes digits: its array is shared by the threads of the item, unless each reads only what it put
//             itself. What depends on no digit, or not on all of the number, is computed by all of these threads and
//             stored by the first
//
// Expansion (Expand.h) removes vector and unroll ranges: what is left are scalars and rank-1 vectors with explicit
// splat, stack and lanes, loads and stores of neighbouring lanes at a scalar index, and loops. Linearization (Linear.h)
// puts that in order; the emitters print it.
#pragma once
#include "astra/Codegen/Plan.h"
#include "astra/IR/Index.h"
#include "astra/IR/UOp.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace astra {

struct KernelBuffer {
  DType dtype;
  bool read = false, write = false;
  UOpRef elements; // allocated number of elements, over dims
};

/// A product's tile whose sums the warp groups of a GPU make by an instruction of their own. Both operands are lines of
/// words along the sum.
struct WarpGroupTile {
  struct Side {
    unsigned buffer;
    UOpRef first; // of its lines the number of the first one that the tile reads,
    int64_t most; // and how many it reads
  } rows, columns;
  int64_t words; // of a line
};

struct Kernel {
  std::string name;
  UOpRef sink = nullptr;
  std::vector<KernelBuffer> buffers;            // buffer slot i of the UOps is argument i
  Plan plan;                                    // by which it was lowered
  unsigned prefetch = 0;                        // the plan's prefetch distance in steps (Plan.h)
  bool prefetchByItems = false;                 // steps are items, which are rows
  bool nonTemporal = false;                     // whole cache lines are written by non-temporal stores
  std::optional<WarpGroupTile> warpGroups = {}; // the array of its sums is what they fill
  std::vector<UOpRef> hints; // loads whose elements are prefetched in the innermost loop that they depend on
};

/// What lowered kernels of one value have in common whose code is the same, whatever their plans are called.
inline std::pair<UOpRef, uint64_t> identity(const Kernel &k) {
  return {k.sink, 4 * uint64_t(k.prefetch) + 2 * k.nonTemporal + !k.hints.empty()};
}

/// Of a thread range: how far apart in a thread's number neighbours along it are.
inline int64_t strideOf(UOpRef range) { return range->ints.size() > 2 ? range->ints[2] : 1; }

/// The parallel ranges of a kernel in the order of their axis numbers.
std::vector<UOpRef> parallelRanges(UOpRef sink);
/// A parallel range of extent 1 behind all others, for the stores that depend on no parallel range; null when there are
/// none.
UOpRef loneRange(Context &c, UOpRef sink);
/// The number of work items: the sum of the extents of all of these.
UOpRef itemCount(Context &c, UOpRef sink);

} // namespace astra
