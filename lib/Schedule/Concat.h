//===- Concat.h: values that lie one behind another -------------------------===//
#pragma once
#include "astra/IR/UOp.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace astra {

/// Parts along an axis, in order; part i begins at begins[i] and is padded to the whole by pads[i]. `inner`: the
/// selects that the outermost one reads, which know where each part but the first begins.
struct Concat {
  int64_t axis = 0;
  llvm::SmallVector<UOpRef, 4> parts, begins, pads, inner;
};

/// What a select joins of which each part is padded to the whole shape, and which leaves no element to the padding
/// (`Builder::concat`); nothing if it is none. Linear in the number of parts.
std::optional<Concat> concatOf(Context &c, UOpRef x);

/// Whether x is elementwise arithmetic on a contract, or on a reduction and the rows that it is of: what a kernel of
/// its own computes along with that.
bool isEpilogue(UOpRef x);

/// Outputs of an entry whose NaNs are made canonical behind a concatenation of epilogues that nobody else reads: the
/// same in each part. Other roots stay as they are.
std::vector<UOpRef> canonicalParts(Context &c, llvm::ArrayRef<UOpRef> roots);

} // namespace astra
