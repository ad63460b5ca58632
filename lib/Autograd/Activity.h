//===- Activity.h: where derivatives flow ----------------------------------===//
// Takes:    outputs, and the values they are differentiated by.
// Gives:    the nodes between them that carry derivatives, sources first; of control ops the arguments and results that
//           do.
// Keeps:    an op on the path that has no derivative is refused by name. The order is that of a depth-first walk from
//           the outputs: independent of node ids (a node older than every value of `wrt` does not depend on one, and is
//           left out).
#pragma once
#include "Rows.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"

namespace astra::autograd {

struct Activity {
  std::vector<UOpRef> order; // active nodes only, those of `wrt` among them
  llvm::DenseSet<UOpRef> active;
  struct Call {
    llvm::SmallBitVector sources, results; // of a control op
  };
  llvm::DenseMap<UOpRef, Call> calls;
  bool is(UOpRef n) const { return active.contains(n); }
};
llvm::Expected<Activity> activity(llvm::ArrayRef<UOpRef> outputs, llvm::ArrayRef<UOpRef> wrt, Origins *origins);

llvm::Error refuse(UOpRef n, const llvm::Twine &why, Origins *origins);
/// "at OP : TYPE (where it came from)".
std::string placeOf(UOpRef n, const Origins *origins);

/// The arguments of a function, by number; null where one is not used.
std::vector<UOpRef> argumentsOf(UOpRef func);

} // namespace astra::autograd
