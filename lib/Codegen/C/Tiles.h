//===- Tiles.h: the order of a register tile -------------------------------===//
#pragma once
#include "astra/Codegen/Linear.h"
#include "astra/Codegen/Target.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseSet.h"
#include <map>
#include <set>

namespace astra::cemit {

/// A load of a tile's step: at `place` before the loop, and a constant, and `stride` elements further each step.
struct RowRead {
  UOpRef load;
  llvm::SmallVector<IndexTerm, 4> place;
  int64_t constant = 0, stride = 0;
};

struct Arranged {
  std::vector<Inst> insts;
  std::map<size_t, llvm::SmallVector<RowRead>> rows; // by the number of the loop's begin in insts
  std::set<size_t> spilling;    // the begins, as above, of loops whose own sums leave the registers to a tile's inside
  llvm::DenseSet<UOpRef> again; // loads to be read at each use, for want of a register
};

/// The instructions of `l` in an order that keeps few values alive: see Tiles.cpp.
Arranged arrangeTiles(const Linear &l, const Target &t);

} // namespace astra::cemit
