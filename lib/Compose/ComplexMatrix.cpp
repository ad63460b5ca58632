//===- ComplexMatrix.cpp: complex matrices as real ones -------------------===//
// Takes, gives: ComplexMatrix.h.
#include "astra/Compose/ComplexMatrix.h"
#include "astra/IR/Index.h"

namespace astra::compose {

UOpRef realOfComplexMatrix(Composer &b, UOpRef z) {
  if (!b.requireRank(z, 2)) return nullptr;
  if (!isComplex(z->dtype))
    return b.fail(llvm::Twine("a matrix of type ") + info(z->dtype).text + ", expected a complex one");
  int64_t rank = z->rank();
  UOpRef re = b.un(Op::Real, z), im = b.un(Op::Imag, z);
  auto blocks = [&](UOpRef v) { return b.unsqueeze(v, {rank - 1, rank + 1}); }; // [.., m, 1, n, 1]
  UOpRef above = b.concat({blocks(re), blocks(b.un(Op::Neg, im))}, rank + 1),
         below = b.concat({blocks(im), blocks(re)}, rank + 1);
  UOpRef all = b.concat({above, below}, rank - 1);
  Dims dims(z->shape.begin(), z->shape.end());
  for (int64_t i : {rank - 2, rank - 1}) dims[i] = idxMul(b.c, dims[i], b.idx(2));
  return b.reshape(all, dims);
}

UOpRef complexOfRealMatrix(Composer &b, UOpRef x) {
  if (!b.requireRank(x, 2)) return nullptr;
  int64_t rank = x->rank();
  Dims dims(x->shape.begin(), x->shape.end() - 2);
  for (int64_t i : {rank - 2, rank - 1}) dims.append({idxDiv(b.c, x->shape[i], b.idx(2)), b.idx(2)});
  UOpRef blocks = b.reshape(x, dims), column = b.element(blocks, rank + 1, 0); // [.., m, 2, n]
  return b.make(Op::Complex, {b.element(column, rank - 1, 0), b.element(column, rank - 1, 1)});
}

} // namespace astra::compose
