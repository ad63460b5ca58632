//===- Optimizer.h: optimizers, schedules and clipping as graphs -----------===//
// Takes:    a parameter of type f32 or f64, its gradient and what the optimizer keeps of it.
// Gives:    their next values. States are replaced, never changed: an entry's updates.
// Keeps:    PyTorch's definitions (torch.optim, 2.15) where it has the optimizer, the papers' elsewhere. Scalars (the
//           rate, powers of beta) are f64 and rounded once to the parameter's type.
#pragma once
#include "astra/IR/Builder.h"
#include "astra/NN/Recipe.h"

namespace astra::nn {

/// Every optimizer and every schedule there is, for --help and the documentation.
llvm::ArrayRef<Signature> optimizers();
llvm::ArrayRef<Signature> schedules();
llvm::Expected<Recipe> parseOptimizer(llvm::StringRef text);
llvm::Expected<Recipe> parseSchedule(llvm::StringRef text);

/// A tensor that is kept beside a parameter, of its type and shape.
struct Slot {
  const char *name;
  double initial;
};
/// What an optimizer keeps of a parameter of this rank.
llvm::SmallVector<Slot, 3> slots(const Recipe &optimizer, unsigned rank);

/// Whether some optimizer keeps a tensor of this name.
bool isSlot(llvm::StringRef name);

struct Update {
  UOpRef value;
  llvm::SmallVector<UOpRef, 3> slots;
};
/// One step. `rate` and `count` are f64 scalars: the learning rate now, and the number of this step, the first being 1.
Update update(Builder &b, const Recipe &optimizer, UOpRef value, UOpRef gradient, llvm::ArrayRef<UOpRef> slots,
              UOpRef rate, UOpRef count);

/// The learning rate of step `count`, an f64 scalar: the optimizer's `lr` times the schedule's factor.
UOpRef rateAt(Builder &b, const Recipe &optimizer, const Recipe &schedule, UOpRef count);

/// Gradients scaled so that the norm of all of them together is at most `most` (torch.nn.utils.clip_grad_norm_).
llvm::SmallVector<UOpRef> clipNorm(Builder &b, llvm::ArrayRef<UOpRef> gradients, double most);

} // namespace astra::nn
