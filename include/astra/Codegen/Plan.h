//===- Plan.h: how a kernel is laid out in loops ---------------------------===//
// A plan is data: a list of steps with a text form, stored in the bundle. It never changes bits: whatever it says, the
// lowered kernel computes the same values.
//
//   contract: n 1; m 2 3; mr 8; pack-b 64; vector 16; nr 3
//       a register tile: MR of 8 points of labels 2 and 3 by NR of 3 vectors along label 1; 64 tiles one below
//       another read one packed panel
//   contract: n 1; m 0; mr 8; vector 16; nr 3; mc 16; kc 256
//       blocks of 16 tiles one below another by 256 steps of the sum: partial sums are spilled between these
//   contract: n 1; m 0; mr 6; vector 16; nr 4; prefetch 8
//       what a step reads is prefetched 8 steps before, and what the tile reads after its sums before them
//   contract: n 1; m 0; mr 9; vector 16; nr 3; prefetch-panel 1
//       each step of a tile prefetches its part of the packed panel behind the one at hand
//   contract: n 3; m 2; mr 6; vector 16; nr 4; row-block 64
//       64 rows go through a fused chain of kernels at a time; of a kernel alone: all columns of 64 items that are
//       one below another come before the next 64
//   contract: n 1; m 0; mr 8; vector 4; nr 2; threads 256; mc 16; kc 16; pipeline 2
//       on a GPU: 16 threads one below another and 16 side by side have a tile of 128 by 128, whose operands are in
//       shared memory, 16 steps of the sum at once, the next 16 on their way
//   contract: n 1; m 0; mr 8; vector 4; nr 2; row-block 8; threads 256; mc 16; kc 16; unroll-k 8; pipeline 2
//       on a GPU: the same; a loop turn has 8 steps, and all tiles of 8 rows of tiles come before the next 8
//   contract: n 1; m 0; mr 8; vector 4; nr 2; row-block 8; threads 256; mc 16; kc 8; unroll-k 8; stages 4
//       on a GPU: as two before; four places in shared memory, three of which asynchronous copies are filling
//   contract: n 1; m 0; mr 8; vector 4; nr 4; row-block 8; threads 256; mc 16; kc 16; unroll-k 4; spill-sums 1; stages
//   3
//       on a GPU: a tile of 128 by 256, 128 sums of a thread; those of whole chains are in shared memory
//   contract: n 1; m 0; mr 1; vector 1; nr 1; threads 64; split-k 2; mc 1; kc 16; pipeline 2
//       on a GPU: 32 columns of one row, two threads have a chain each of the sum of each
//   contract: n 1; m 0; mr 2; vector 2; nr 32; row-block 8; threads 256; mc 64; kc 32; stages 4; warp-groups 2
//       on a GPU: a tile of 128 by 256 of a matrix unit, of which two warp groups have 64 rows each
//   contract: n 1; m 0; mr 2; vector 2; nr 32; row-block 8; threads 256; mc 64; kc 32; stages 4; warp-groups 2; tiles 4
//       on a GPU: the same; a block takes four tiles one after another
//   contract: n 3; m 2; mr 4; vector 4; nr 1; threads 256; mc 8; kc 16; pipeline 2; join 32
//       on a GPU: 32 rows go through a fused chain of kernels at a time
//   map: merge 4; vector 16; unroll 4
//       the 4 innermost memory dims as one loop (but the axis of a running sum or scatter: a loop around a store)
//   map: merge 1; vector 16; unroll 1; tile 16
//       16 points of what is outside of that loop in an item: a transposed operand is read in whole cache lines
//   map: merge 2; vector 16; unroll 8; tile 64
//       the same, 8 points at once: a transposed operand is read by vectors, and transposed in registers
//   map: points 1 0; merge 3; vector 8; unroll 4; tile 16
//       the same; memory dims 1 and 0 are the innermost of the points, in this order: an operand's elements are
//       neighbours along them
//   map: merge 1; vector 16; unroll 4; tail masked
//       an item is the whole of that loop, its last vector masked; of an overlapped tail it begins earlier
//   map: merge 2; vector 16; unroll 1; non-temporal 1
//       results are written by non-temporal stores
//   map: merge 2; vector 4; unroll 1; threads 256
//       on a GPU: items are threads, 256 of them a block
//   map: merge 0; vector 1; unroll 1; threads 1024; transpose 32
//       on a GPU: an item is a tile of 32 elements of memory dim 0 by 32 of those behind it, as one, which is
//       transposed through shared memory
//   rows: merge 2; vector 16; unroll 1
//       reductions whose lanes run along the reduced axis
//   rows: merge 2; vector 16; unroll 2; prefetch 1
//       the same; the next row is prefetched during this one
//   rows: merge 2; vector 32; unroll 1; threads 256; warp 32
//       on a GPU: a row's lanes are the threads of a warp
//   rows: merge 2; vector 32; unroll 1; threads 256; warp 32; cooperative 8
//       on a GPU: the 8 warps of a block share a row, chunk by chunk of its sums
//   rows: merge 2; vector 16; unroll 1; threads 128; warp 32; width 4
//       on a GPU: 16 threads have a row, each 4 elements side by side of every 64; the row is read once
//   rows: merge 2; vector 32; unroll 1; threads 256; warp 32; width 4; cooperative 8
//       on a GPU: the same, of all threads of a block
//   columns: merge 1; vector 16; unroll 1
//       a reduction whose lanes run along an output axis
//   columns: merge 1; vector 16; unroll 7; tail masked; unroll-k 64
//       a sum of lane64, whose 64 lanes take a step and are spilled before any goes on: rows in their order
//   columns: merge 1; vector 16; unroll 4; block 16; unroll-k 64
//       the same, an item is 16 steps of columns: eight rows of each, one step beside another
//   columns: merge 2; vector 16; unroll 1; block 16
//       an item is 16 steps of columns, one after another
//   columns: merge 1; vector 8; unroll 2; unroll-k 8
//       a contract's, 8 steps of the sum together: what is strided is read by vectors, and transposed in registers
//   columns: merge 0; vector 1; unroll 1; block 8; unroll-k 16
//       of a dot product, 8 blocks of its chain side by side
//   columns: merge 1; vector 1; unroll 1; threads 256; cooperative 8
//       on a GPU: an item is 32 neighbouring elements, 8 threads share each
//
//   programs: mr 4; vector 16; unroll 2
//       a kernel that a user wrote: an item is a program; elements of the tile that it stores are computed by 4 rows
//       of 2 vectors
//   programs: mr 1; vector 32; unroll 1; threads 128; warp 32
//       on a GPU: a program is a warp
//
// Words of earlier releases, as `rows`, `stage`, `tall`, `deep`, are read too: the table in Plan.cpp has them.
#pragma once
#include "astra/Codegen/Target.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>

namespace astra {

enum class PlanKind : uint8_t { Map, Rows, Columns, Contract, Programs };

/// Of a vector, whatever its elements.
inline constexpr unsigned mostLanes = 64;
/// Extremes of so many elements of a row or more are taken by lanes, of fewer one after another.
inline constexpr int64_t fewByLanes = 8;

/// What happens to the elements of a row that fill no vector.
inline constexpr unsigned tailMasked = 1, tailOverlapped = 2;

/// Lanes of a sum of order lane64.
inline constexpr unsigned sumLanes = 64;

/// Each field says one thing, whatever the kind and the machine; a field that a kind's text form has no word for is
/// nothing to it. Words differ by kind: `unroll` is NR of a contract (the table in Plan.cpp).
struct Plan {
  PlanKind kind = PlanKind::Map;
  // map, columns: this many innermost memory dims of the output are one loop
  unsigned merge = 1;
  unsigned lanes = 1, unroll = 1; // elements a vector, vectors a step (contract: NR, vectors of the tile along n)
  // contract: kept labels of the register tile
  int64_t nLabel = -1;                   // lanes run along it; -1 (of a GPU): none
  llvm::SmallVector<int64_t, 2> mLabels; // rows, outermost first, walked as one index
  unsigned mr = 1;                       // MR, rows of the tile
  // contract: an item is so many tiles of rows one below another, for which the columns of the lanes' operand are
  // packed in fast memory; 0: an item is a tile and the operand is read where it is
  unsigned packB = 0;
  // map: an item is so many points of the outer memory dims, `unroll` of them at once, by a vector; 0: one of them
  unsigned mapTile = 0;
  // contract: the row block, so many of what lies one below another that get all of their columns before the next ones
  // get any: rows that go through a fused chain, of a CPU, which are an item; items else. 0: all rows of one column of
  // tiles before the next column
  unsigned rowBlock = 0;
  // columns of a reduction, of a CPU: an item is so many steps, side by side where the lanes of a sum are spilled, else
  // one after another; 0: one
  unsigned columnSteps = 0;
  // columns of a contract, of a CPU: so many blocks of its chain are the lanes of a vector, whose sums are added in
  // order; 0: lanes are columns
  unsigned chainBlocks = 0;
  // map with mapTile: these memory dims of the output, outside of the merged ones, are the innermost of the points, the
  // last one innermost; none: points are in the order of memory
  llvm::SmallVector<int64_t, 2> points;
  // map, columns: an item is a row, all of the merged dims at a point of the others: `unroll` vectors a step, and at
  // its end a masked one, or one that overlaps that before it, to end there (masked where a row may be shorter than a
  // vector). 0: an item is a step of a row. contract, of a CPU: overlapped: where a tile has all columns, its last
  // vector begins earlier; elsewhere nothing changes
  unsigned tail = 0;
  // of a GPU: threads of a block; 0: a CPU's plan
  unsigned threads = 0;
  // of a GPU, rows: so many threads go in step, and the lanes of a row are all of them, or for a short row some, which
  // are one item; 0: an item is a thread
  unsigned warp = 0;
  // of a GPU, rows: so many neighbouring elements are a thread's, which it reads and writes at once; what several
  // passes over a row need is read once and kept, each thread's part in its registers or, where others read it too, in
  // memory that the block shares. 0: neighbouring threads have neighbouring elements, and each pass reads a row again,
  // but for what is dear
  unsigned width = 0;
  // of a GPU, rows: a cooperative reduction, so many warps are one item, each has its chunks of a reduction. columns:
  // an item is a block of threads, so many of which share an element of the result: each has its lanes of a chunk, and
  // where they are more than 64 its chunks. contract with mc: split-K, so many threads have the same elements of the
  // tile, each with another chain of their sums. 0: none of these
  unsigned split = 0;
  // contract: MC and KC: an item is `mc` register tiles one below another, all of which take `kc` steps of the sum
  // before any goes on. A CPU takes these tiles in turn, and what they have added up is spilled in between; on a GPU
  // each is a thread's, of those below each other, and the operands of the `kc` steps are in shared memory. 0: a tile
  // is an item and goes to the end
  unsigned mc = 0, kc = 0;
  // of a GPU, contract with mc: 2: shared memory has two places for these steps, in turn, while the next ones are
  // loaded
  unsigned pipeline = 1;
  // of a GPU that copies asynchronously, contract with mc: the steps at hand lie in a ring of so many places in shared
  // memory, all but one of which asynchronous copies are filling; 0: operands go there through registers
  unsigned stages = 0;
  // so many steps of the sum are a turn of its loop. columns, of a CPU: what they read is loaded together, by vectors
  // along the sum where it is strided; of a sum of lane64 they are `sumLanes`, whose sums are spilled. contract with
  // mc, of a GPU: a thread loads the operands of one while it multiplies those of another. 0: one (of a sum of lane64
  // eight lanes go to the end of a chunk), on a GPU as LLVM likes
  unsigned unrollK = 0;
  // of a GPU, contract with mc: 1: what a thread adds up of a sum's blocks (chain512) lies in shared memory, a place
  // for each thread and sum, so that registers have the sums of one block alone. 0: it is in registers too
  unsigned spillSums = 0;
  // of a GPU whose warp groups multiply by an instruction of their own, contract with mc of a matrix unit: so many of
  // them, of 128 threads each, have 64 rows by all columns of the tile, or several times that, one below another; one
  // more brings the operands to the ring of `stages` places. kc is 32 words. 0: warps multiply, or threads
  unsigned warpGroups = 0;
  // of a GPU, contract with warp groups: a block takes so many tiles one after another, those that are one below
  // another in the order of items; the operands of the next tile come while the results of one are stored. 0: one
  unsigned tiles = 0;
  // of a GPU, contract with mc and a fused chain: a block takes so many rows through the chain at a time, and what
  // passes between its kernels lies in shared memory. 0: they are launched one by one
  unsigned join = 0;
  // of a GPU, map: an item is a tile of so many elements along all memory dims behind number `across`, and of threads /
  // transpose along that one, a thread an element; operands whose axes are the other way round are transposed through
  // shared memory. 0: none
  unsigned transpose = 0, across = 0;
  // of a CPU: prefetch distance: a loop prefetches what it reads from cache lines far apart so many steps before it
  // does; what is read after a loop is prefetched before it. rows: what the row so many items later is computed from,
  // while this one is. 0: no prefetch
  unsigned prefetch = 0;
  // contract, of a CPU: 1: the tiles that read a panel of a packed operand, one after another, prefetch the next panel,
  // each step as much as makes all of it by the end of the last of them
  unsigned prefetchPanel = 0;
  // map, rows of a CPU: 1: whole cache lines of the result are written by non-temporal stores
  unsigned nonTemporal = 0;
};
std::string text(const Plan &p);
/// One step of it, as `mr 8` or `tail masked`.
std::string text(const Plan &p, unsigned Plan::*field);
/// Of what text() gives, now or in an earlier release; an error says what was found and what was expected.
llvm::Expected<Plan> parsePlan(llvm::StringRef text);
/// Whether the kernel can be lowered for a CPU under a plan that comes from outside: its kind, labels, sizes. An error
/// names the kernel, what was found and what was expected.
llvm::Error checkPlan(const KernelSpec &spec, const Plan &plan);
/// The part of it that is the same on every machine.
llvm::Error checkForm(const KernelSpec &spec, const Plan &plan);
/// The error that a check gives: kernel, plan, why.
llvm::Error refusePlan(const KernelSpec &spec, const Plan &plan, const llvm::Twine &why);

/// Plans that come from outside, by kernel name.
using Plans = std::map<std::string, Plan>;
/// Refuses a plan of a kernel that is not there, and what `check` refuses.
llvm::Error checkPlans(llvm::ArrayRef<KernelSpec> kernels, const Plans &plans,
                       llvm::function_ref<llvm::Error(const KernelSpec &, const Plan &)> check);

/// The heuristic choice for this kernel on this target.
Plan choosePlan(Context &c, const KernelSpec &spec, const Target &target);
/// The part of it that is rules, for what executes the kernel: of a thread, what a GPU's plan begins with.
Plan choosePlanByRules(Context &c, const KernelSpec &spec, const Executor &executor);

} // namespace astra
