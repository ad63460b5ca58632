//===- Domain.cpp: where inequalities hold ------------------------------------===//
// Takes:    affine forms of the axes of a shape, and their constants.
// Gives:    a graph of the points where all are 0 or more.
#include "astra/IR/Domain.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

UOpRef astra::inDomain(Builder &b, llvm::ArrayRef<AffineForm> domain, llvm::ArrayRef<UOpRef> bounds, Shape shape) {
  UOpRef all = nullptr;
  for (auto [f, bound] : llvm::zip(domain, bounds)) {
    UOpRef e = b.splat(b.fromIndex(bound, DType::I64), shape);
    for (auto [axis, k] : f.terms) e = b.add(e, b.mul(b.iota(DType::I64, shape, axis), b.litInt(DType::I64, k)));
    UOpRef valid = b.lt(b.litInt(DType::I64, -1), e);
    all = all ? b.bin(Op::And, all, valid) : valid;
  }
  return all;
}
