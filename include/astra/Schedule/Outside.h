//===- Outside.h: contracts whose taps lie outside of their operand --------===//
#pragma once
#include "astra/IR/Contract.h"
#include "astra/IR/Module.h"

namespace astra {

/// A part of a kept label, and the taps of a summed one that are inside of the operand there.
struct Reach {
  int64_t begin, count; // of the kept label
  int64_t first, taps;  // of the summed one
};

/// Of a window, i*step + t*dilation + c: the labels i and t, and all of i in parts, in each of which the same taps are
/// inside. Of an operand of which nothing is outside one part with all taps.
struct Window {
  int64_t kept, tap;
  unsigned operand, axis;
  llvm::SmallVector<Reach, 4> parts;
};

/// The windows of a contract whose taps and sizes are known.
llvm::SmallVector<Window, 2> windowsOf(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents, UOpRef a, UOpRef b);

/// The most parts, of all windows together, that a kernel has code for.
inline constexpr int64_t mostParts = 16;

/// Rewrites, bit for bit, contracts whose taps are mostly outside of an operand (a convolution whose padding is as
/// large as its map): taps that are outside for every result are left out, the others are computed where they are
/// inside, and nothing is padded. What the steps outside add, zeros of the weights' signs or NaN, is a third operand of
/// the contract (decision 0091). Before what depends on parameters alone is folded, so that weights lie as they are
/// read. Leaves contracts in the bodies of control ops.
void leaveOutside(Module &m);

} // namespace astra
