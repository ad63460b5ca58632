//===- UsualOrder.h: the order of a reduction that nobody has named --------===//
// Takes:    a kind and the source's type.
// Gives:    the order that the type rule allows, of those of a sum of floats lane64.
#pragma once
#include "astra/IR/UOp.h"

namespace astra {

inline ReduceOrder usualOrder(ReduceKind kind, DType t) {
  if (kind != ReduceKind::Sum && kind != ReduceKind::Prod) return ReduceOrder::Exact;
  if (!isFloat(partOf(t))) return ReduceOrder::Exact;
  return isComplex(t) && kind == ReduceKind::Prod ? ReduceOrder::Pairs : ReduceOrder::Lane64;
}

} // namespace astra
