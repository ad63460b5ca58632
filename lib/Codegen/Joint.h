//===- Joint.h: a kernel and its followers, some rows at a time -------------===//
#pragma once
#include "astra/Codegen/EmitC.h"
#include "astra/Codegen/Lower.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace astra {

/// The functions of a tile for each region (whole tiles of Plan::rowBlock rows, then what is left), and the kernel that
/// calls them. `plans`: of the kernel, then of its followers. `dims`: the module's, none of which is a tile's number.
/// `lower` gives one function.
struct Joint {
  Linear linear;
  std::vector<TileRegion> regions;
  UOpRef items = nullptr; // tiles of all regions
};
using LowerTile =
    llvm::function_ref<llvm::Expected<TileRegion::Step>(const KernelSpec &, const Plan &, const RowTile &)>;
llvm::Expected<Joint> joinRows(Context &c, const KernelSpec &spec, llvm::ArrayRef<Plan> plans,
                               llvm::ArrayRef<UOpRef> dims, LowerTile lower);

} // namespace astra
