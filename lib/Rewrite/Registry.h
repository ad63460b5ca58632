//===- Registry.h: all rules, indexed by root op ---------------------------===//
#pragma once
#include "astra/Rewrite/Rewrite.h"

namespace astra {

struct IndexedRule {
  const Rule *rule = nullptr;
  unsigned set = 0;
};
/// The rules whose root is `op`, in the order in which they are written.
llvm::ArrayRef<IndexedRule> rulesFor(Op op);

} // namespace astra
