//===- ShardingRule.h: a sharding for tensors of several ranks --------------===//
// Gives:    what a sharding as a user writes it says of one tensor: `...` stands for as many axes that are whole as the
//           tensor has more than the rule names, "data?" for an axis that is cut where the tensor has it and the shards
//           divide it, and whole elsewhere.
// Keeps:    a text without these means what parseSharding reads.
#pragma once
#include "astra/IR/Mesh.h"
#include "astra/IR/UOp.h"

namespace astra {

/// Of a tensor of this shape, of a module of whole tensors where the text has `...` or `?`. An extent that is no
/// constant is divided by any number of shards. An error for a text that is no sharding; the caller compares ranks.
llvm::Expected<Sharding> shardingFor(const Mesh &mesh, llvm::StringRef text, llvm::ArrayRef<UOpRef> shape);

} // namespace astra
