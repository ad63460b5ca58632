//===- Rows.h: kernels that go by rows --------------------------------------===//
#pragma once
#include "astra/Schedule/Program.h"
#include "llvm/ADT/DenseSet.h"

namespace astra {

/// The shape of the rows that the reductions of a kernel run along, all of them along its last axis; empty without any.
Shape rowsOf(const KernelSpec &spec);
/// Whether the output has that shape: an item writes a row. Else it writes a value of a row.
bool writesRows(const KernelSpec &spec);
/// Elements of rows that several passes over a row need and that are dear: they are kept for the row at hand.
llvm::DenseSet<UOpRef> cachedInRow(const KernelSpec &spec);
/// Of a GPU that reads a row once, each thread some neighbours at a time: what it keeps of the row at hand.
struct KeptRow {
  llvm::DenseSet<UOpRef> own, shared; // a thread's own elements; what other threads read too
  llvm::DenseSet<UOpRef> all() const;
};
/// byBlock: a warp adds up what all threads of a block have.
KeptRow keptInRow(const KernelSpec &spec, bool byBlock);
/// Bytes of these for one row, whose length is rounded up to a multiple of `together`; 0 without any.
uint64_t cachedBytes(const KernelSpec &spec, int64_t together);
/// Bytes of one row of a tensor in row-major order, at the bounds of dims.
uint64_t rowBytes(const Placed &p);
/// Of a GPU: what a row may take of the memory that a block's threads share, and a thread of its own registers.
constexpr uint64_t mostCachedShared = 32768; // bytes
constexpr int64_t mostCachedOwn = 32;        // elements

} // namespace astra
