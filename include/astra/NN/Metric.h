//===- Metric.h: what eval says beside the loss ----------------------------===//
// Takes:    a prediction and a target that fit the loss.
// Gives:    a scalar: the mean over the elements of the target that the loss counts.
// Does not: have a gradient that anyone asks for.
#pragma once
#include "astra/IR/Builder.h"
#include "astra/NN/Recipe.h"

namespace astra::nn {

/// Every metric there is, for --help and the documentation.
llvm::ArrayRef<Signature> metrics();
llvm::Expected<Recipe> parseMetric(llvm::StringRef text);

/// What the output is called: the metric, and its first parameter if it has one: "top5".
std::string nameOf(const Recipe &metric);

/// The metric of x given the target; refused where the loss is of another kind: of classes, or of numbers.
llvm::Expected<UOpRef> metric(Builder &b, const Recipe &metric, const Recipe &loss, UOpRef x, UOpRef target);

} // namespace astra::nn
