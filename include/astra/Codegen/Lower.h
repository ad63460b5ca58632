//===- Lower.h: from a kernel's graph to kernel UOps -----------------------===//
#pragma once
#include "astra/Codegen/Kernel.h"
#include "astra/Codegen/Plan.h"
#include "astra/IR/Contract.h"

namespace astra {

/// The value at whose points a kernel stores: the output, or what an in-place one writes into it.
UOpRef storedPoints(const KernelSpec &spec);
/// The axis of it along which one point comes after the other: of a running sum, of a scatter. -1: none.
int64_t serialAxis(const KernelSpec &spec);
/// Some rows of a kernel that is computed together with others (KernelSpec::followers). What passes between them lies
/// in buffers that hold these rows alone.
struct RowTile {
  llvm::SmallVector<UOpRef, 4> at;      // the first row: an index for each axis of the rows' value but the last
  UOpRef rows;                          // how many, along the last of these axes
  int64_t most;                         // which it never exceeds
  UOpRef columns;                       // so many elements of each row are needed
  bool writes;                          // the kernel is the one whose result these rows are
  llvm::SmallVector<int64_t, 4> labels; // of a contract: the kept label that runs along each of these axes
  llvm::SmallVector<unsigned, 2> local; // the buffers that hold these rows alone, row-major
};

/// The kernel of `spec` under `plan`, with vector and unroll ranges still in place. Launch buffers are the inputs, then
/// the outputs (one buffer for both when in place). With a tile its items are those of these rows.
Kernel lowerKernel(Context &c, const KernelSpec &spec, const Plan &plan, const RowTile *tile = nullptr);

/// Replaces vector ranges by vectors and unroll ranges by copies (Kernel.h).
Kernel expandKernel(Context &c, const Kernel &k);

/// The kept labels that only the lanes' operand of a contract mentions, but for the lanes' own, as the taps of a
/// convolution's weight gradient: what the other operand has at a step serves them all, so that tiles whose sums rest
/// go through them within an item.
llvm::SmallVector<int64_t, 2> innerLabels(const ContractSpec &s, int64_t nLabel);

/// How many steps the sums of a kernel's contract have at least; 2^20 where they have more.
int64_t leastSteps(const KernelSpec &spec);
/// Whether a CPU's last tile of rows begins earlier instead of being lower: where sums are so long that tests before
/// stores are nothing beside them, and nothing is read where another tile has written.
bool movesLastTile(const KernelSpec &spec);
/// Whether the last vector of a contract's tile that has all columns may begin earlier: it can begin anywhere, and
/// nothing that is read has been written by then.
bool movesLastVector(const KernelSpec &spec);

} // namespace astra
