//===- Roles.h: what a parameter is in a model -----------------------------===//
// Takes:    the graph of a model.
// Gives:    the role that a parameter plays there, and what one of that role begins as: the initializer `default`.
// Keeps:    torch.nn's reset_parameters (PyTorch 2.15) of the module that such a graph is of. Roles are seen on the
//           graph alone: neither names nor the file that a model came from count.
// Does not: guess. A parameter that no row of the table describes has no role, and keeps its numbers.
#pragma once
#include "astra/IR/UOp.h"
#include "astra/NN/Recipe.h"
#include "llvm/ADT/DenseMap.h"

namespace astra::nn {

/// A row of the table of roles.
struct RoleInfo {
  const char *name;
  const char *meaning; // which parameters, and what n counts
  const char *begins;  // as an initializer, in which 1/sqrt(n) stands for a number
};
/// Every role there is; one that comes first is taken where a parameter has several.
llvm::ArrayRef<RoleInfo> roles();

struct Role {
  const RoleInfo *info = nullptr; // null: none
  double inputs = 0;              // n: how many inputs feed an element of the output; 0 where the row does not say
  bool isGuard = false;           // a scalar that keeps a root away from 0: an epsilon, which no training replaces

  /// What parameters of this role begin as.
  Recipe initializer() const;
};

/// The roles of `param` nodes in the graph that gives `outputs`; those without one are not there. Of several products
/// the one with the most inputs counts. Linear in the graph, whose functions are looked into at each call.
llvm::DenseMap<UOpRef, Role> rolesOf(llvm::ArrayRef<UOpRef> outputs);

} // namespace astra::nn
