//===- Elements.h: what losses and optimizers write all the time -----------===//
#pragma once
#include "astra/Compose/Composer.h"
#include "astra/IR/Builder.h"
#include "astra/NN/Recipe.h"

namespace astra::nn {

/// A number of x's type.
inline UOpRef num(Builder &b, UOpRef x, double v) { return b.lit(x->dtype, v); }

inline UOpRef sumOf(Builder &b, UOpRef x) {
  llvm::SmallVector<int64_t, 6> axes;
  for (unsigned i = 0; i < x->rank(); ++i) axes.push_back(i);
  return b.reduce(ReduceKind::Sum, x, axes);
}
inline UOpRef mean(Builder &b, UOpRef x) {
  return b.div(sumOf(b, x), b.fromIndex(idxProduct(b.c, x->shape), x->dtype));
}

/// What is composed over a Composer, of operands that fit: nothing is refused.
template <class Make> UOpRef composed(Builder &b, Make make) {
  compose::Composer composer(b.c);
  return llvm::cantFail(compose::composed(composer, make(composer)));
}

/// The signatures of a table's rows.
template <class Rows> std::vector<Signature> signaturesOf(const Rows &rows) {
  std::vector<Signature> all;
  for (const auto &row : rows) all.push_back(row.signature);
  return all;
}

} // namespace astra::nn
