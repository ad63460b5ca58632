//===- Initializer.h: what weights begin as --------------------------------===//
// Takes:    a weight, a seed.
// Gives:    values of its type and shape, made of primitives: the same bits everywhere (clause N13).
// Keeps:    PyTorch's definitions (torch.nn.init, 2.15) of what is drawn from; the numbers drawn are the contract's.
#pragma once
#include "astra/IR/Builder.h"
#include "astra/NN/Recipe.h"

namespace astra::nn {

/// Every initializer there is, for --help and the documentation.
llvm::ArrayRef<Signature> initializers();
llvm::Expected<Recipe> parseInitializer(llvm::StringRef text);

/// Whether it goes by the role that a parameter has in a model (Roles.h): Role::initializer says by which one.
bool isDefault(const Recipe &initializer);

/// What a weight like `like` (f32 or f64, of constant shape) begins as. Weights of one seed differ by `stream`. Refused
/// where the initializer asks how many inputs feed an output and `like` has fewer than two axes, and for `default`.
llvm::Expected<UOpRef> initial(Builder &b, const Recipe &recipe, UOpRef like, UOpRef seed, uint32_t stream);

} // namespace astra::nn
