//===- LegalizeComplex.cpp: complex values at the border -------------------===//
// Takes:    `real` and `imag` of arguments, parameters and states, `complex` under outputs and new states.
// Gives:    views of a real tensor with the two parts of an element as its last axis: that is how a complex value lies
//           in memory.
#include "Legalize.h"

using namespace astra;
using llvm::SmallVector;

static SmallVector<UOpRef, 6> withAxis(Shape shape, UOpRef extent) {
  SmallVector<UOpRef, 6> all(shape);
  all.push_back(extent);
  return all;
}

UOpRef astra::inMemory(Context &c, UOpRef leaf) {
  if (isSubByte(leaf->dtype)) return bytesOf(c, leaf);
  if (!isComplex(leaf->dtype)) return leaf;
  return c.make(leaf->op, withAxis(leaf->shape, c.index(2)), leaf->ints, leaf->str, partOf(leaf->dtype));
}

UOpRef astra::legalizePart(Builder &b, UOpRef r) {
  Shape shape = r->shape;
  SmallVector<UOpRef, 6> begin(shape.size(), b.idx(0));
  begin.push_back(b.idx(r->is(Op::Imag)));
  return b.reshape(b.shrink(inMemory(b.c, r->src[0]), begin, withAxis(shape, b.idx(1))), shape);
}

UOpRef astra::legalizeComplex(Builder &b, UOpRef r) {
  auto all = withAxis(r->shape, b.idx(2)), one = withAxis(r->shape, b.idx(1));
  auto both = [&](UOpRef part) { return b.expand(b.reshape(part, one), all); };
  UOpRef isReal = b.lt(b.iota(DType::I64, all, int64_t(r->rank())), b.litInt(DType::I64, 1));
  return b.select(isReal, both(r->src[0]), both(r->src[1]));
}
