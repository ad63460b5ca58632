//===- KeptTiles.h: what a program of a user's kernel keeps ------------------===//
#pragma once
#include "astra/Schedule/Program.h"
#include "llvm/ADT/DenseMap.h"

namespace astra {

/// How the elements of a tile are computed that is kept as a whole, or stored.
struct TileLanes {
  int axis = -1;            // along which lanes run; -1: the last one
  unsigned lanes = 1;       // elements along it side by side
  unsigned reduceLanes = 0; // lanes of its reductions: along what is reduced; 0: those are the tile's
  int copyAxis = -1;        // along which `copies` elements are computed together; -1: none
  unsigned copies = 1;
  unsigned vectors = 1; // of lanes, side by side, that are computed together with the copies
  // Of a value that steps of several loops have: it as a step of any of them has it, that step, and the step at hand.
  UOpRef ofAnyStep = nullptr, anyStep = nullptr, step = nullptr;
};

/// What a program computes at once.
struct TileSizes {
  unsigned lanes = 1;
  bool all = false;     // no fewer: they are the threads of a warp
  unsigned rows = 1;    // of products
  unsigned vectors = 1; // of products: side by side
  unsigned alone = 1;   // rows of products whose columns are no multiple of these vectors
};

/// Tiles below `root`, which a program of the kernel stores, that are dear and read at several points, each with how it
/// is computed.
llvm::DenseMap<UOpRef, TileLanes> keptTiles(Context &c, const KernelSpec &spec, UOpRef root, const TileSizes &sizes);
/// Whether a step of a loop keeps tiles of its own.
bool keepsInStep(UOpRef loop, const llvm::DenseMap<UOpRef, TileLanes> &kept);
/// How the root itself is computed.
TileLanes lanesOfTile(UOpRef root, const llvm::DenseMap<UOpRef, TileLanes> &kept, const TileSizes &sizes);

} // namespace astra
