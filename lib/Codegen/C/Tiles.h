//===- Tiles.h: the order of a register tile -------------------------------===//
#pragma once
#include "astra/Codegen/Linear.h"
#include "astra/Codegen/Target.h"
#include "llvm/ADT/DenseSet.h"

namespace astra::cemit {

struct Arranged {
  std::vector<Inst> insts;
  llvm::DenseSet<UOpRef> again; // loads to be read at each use, for want of a register
};

/// The instructions of `l` in an order that keeps few values alive: see Tiles.cpp.
Arranged arrangeTiles(const Linear &l, const Target &t);

} // namespace astra::cemit
