//===- Shardings.h: meshes and shardings of Shardy --------------------------===//
// Takes:    ops `sdy.mesh` and attributes `sdy.sharding` of a program that JAX exported for several devices.
// Gives:    the mesh, and how tensors are cut among its shards (astra/IR/Mesh.h).
// Keeps:    an axis that is open (`?`) is as its names say. What has no meaning here is refused by its name: parts of
//           an axis, sums that are not reduced, devices in another order, shardings without names (mhlo.sharding).
#pragma once
#include "Text.h"
#include "astra/IR/Mesh.h"

namespace astra::stablehlo {

/// The mesh of a program; none where it is for one device. An error is the end of a sentence.
llvm::Expected<Mesh> meshOf(const File &file);
/// Of an attribute `sdy.sharding`; not declared where it says nothing.
llvm::Expected<Sharding> shardingOf(const Attribute &attribute, const Mesh &mesh);

} // namespace astra::stablehlo
