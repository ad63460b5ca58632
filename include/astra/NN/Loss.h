//===- Loss.h: losses as graphs --------------------------------------------===//
// Takes:    a prediction of a float type and a target.
// Gives:    a scalar of the prediction's type, made of primitives: autograd and fusion see nothing special.
// Keeps:    PyTorch's definitions (torch.nn.functional, 2.15); a shape or a type that does not fit is refused.
#pragma once
#include "astra/IR/Builder.h"
#include "astra/NN/Recipe.h"

namespace astra::nn {

/// Every loss there is, for --help and the documentation.
llvm::ArrayRef<Signature> losses();
llvm::Expected<Recipe> parseLoss(llvm::StringRef text);

/// The loss of x given the target: class numbers [N, ...] of an integer type for a prediction [N, C, ...] where the
/// loss is one of classes, otherwise numbers of x's type and shape. ctc takes x as [T, N, C] of logarithms and class
/// numbers [N, S], where what follows the first `blank` of a row is not part of it.
llvm::Expected<UOpRef> loss(Builder &b, const Recipe &recipe, UOpRef x, UOpRef target);

/// Whether a target is one of this loss for x, or what it must be. what: whose target it is.
llvm::Error checkTarget(Builder &b, const Recipe &recipe, const llvm::Twine &what, UOpRef x, UOpRef target);

/// What a target of this loss looks like beside x: its type and shape, or why there is none. For ctc the length is a
/// dim `target_length`, at most the prediction's.
llvm::Expected<Type> targetOf(Builder &b, const Recipe &recipe, UOpRef x);

/// Of a loss of classes: how many there are, as an extent of x; null for the others.
UOpRef classesOf(const Recipe &recipe, UOpRef x);
/// Whether a target is a class number beside a prediction [N, C, ...].
bool isOfClasses(const Recipe &recipe);
/// Which targets the loss counts: bools of their shape; null where it counts all.
UOpRef countedTargets(Builder &b, const Recipe &recipe, UOpRef target);
/// Where a target is not the number of one of `classes` classes, nor one that the loss ignores: bools of its shape.
UOpRef wrongTargets(Builder &b, const Recipe &recipe, UOpRef classes, UOpRef target);

/// log(softmax(x)) along an axis, without overflow.
UOpRef logSoftmax(Builder &b, UOpRef x, int64_t axis);

} // namespace astra::nn
