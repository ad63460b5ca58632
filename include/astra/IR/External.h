//===- External.h: the attribute of external -------------------------------===//
// A call of a function outside of the graph, by name. The node's integers are the three flags, then dtype and rank of
// each result; its index sources are the extents of all results, one behind another. Where it has effects its last
// source may be the call with effects that comes before it.
#pragma once
#include "astra/IR/UOp.h"

namespace astra {

/// Operands and results of a call together; their ranks.
inline constexpr unsigned mostOfExternal = 64, mostRankOfExternal = 16;

struct ExternalSpec {
  bool deterministic = false, effects = false, batched = false;
  llvm::SmallVector<Type, 2> results;
};
llvm::SmallVector<int64_t, 8> encode(const ExternalSpec &s);
llvm::SmallVector<UOpRef, 8> extentsOf(const ExternalSpec &s);
/// Refuses what encode and extentsOf do not give.
llvm::Expected<ExternalSpec> decodeExternal(llvm::ArrayRef<int64_t> ints, llvm::ArrayRef<UOpRef> extents);
/// Of a node, whose type rule has seen it.
ExternalSpec externalOf(UOpRef call);

/// The tensors that the function is given, without the call before.
llvm::ArrayRef<UOpRef> operandsOf(UOpRef call);
/// The call that comes before; null: none.
UOpRef callBefore(UOpRef call);

} // namespace astra
