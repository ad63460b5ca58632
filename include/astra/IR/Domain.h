//===- Domain.h: where inequalities hold -------------------------------------===//
#pragma once
#include "astra/IR/Builder.h"
#include "astra/IR/Contract.h"

namespace astra {

/// Whether each point of a shape satisfies every inequality (a form, with what it is compared with, is 0 or more): a
/// bool tensor, null where there are none. A point that does not takes no part in a sum: there the identity, an exact
/// one, may stand for it.
UOpRef inDomain(Builder &b, llvm::ArrayRef<AffineForm> domain, llvm::ArrayRef<UOpRef> bounds, Shape shape);

} // namespace astra
