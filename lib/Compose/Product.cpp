//===- Product.cpp: products of matrices -----------------------------------===//
// Takes:    operands that may not fit.
// Gives:    one `contract` per product.
#include "astra/Compose/Product.h"

namespace astra::compose {

UOpRef product(Composer &b, UOpRef x, UOpRef y) {
  if (!b.requireRank(x, 1) || !b.requireRank(y, 1)) return nullptr;
  bool row = x->rank() == 1, column = y->rank() == 1;
  llvm::ArrayRef<UOpRef> batchX = row ? x->shape.take_front(0) : x->shape.drop_back(2),
                         batchY = column ? y->shape.take_front(0) : y->shape.drop_back(2);
  Dims extents = b.broadcastShape({batchX, batchY});
  int64_t batch = extents.size();
  ContractSpec spec;
  spec.kept = batch + !row + !column;
  spec.reduced = 1;
  auto batchForms = [&](llvm::ArrayRef<UOpRef> dims, llvm::SmallVectorImpl<AffineForm> &forms) {
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t l = batch - dims.size() + i;
      forms.push_back(dims[i] == extents[l] ? label(l) : first());
    }
  };
  batchForms(batchX, spec.a);
  batchForms(batchY, spec.b);
  if (!row) {
    spec.a.push_back(label(batch));
    extents.push_back(x->shape[x->rank() - 2]);
  }
  spec.a.push_back(label(spec.kept));
  spec.b.push_back(label(spec.kept));
  if (!column) {
    spec.b.push_back(label(spec.kept - 1));
    extents.push_back(y->shape.back());
  }
  extents.push_back(x->shape.back());
  if (!b.requireEqual(x->shape.back(), y->shape[column ? 0 : y->rank() - 2], "the axes that are multiplied"))
    return nullptr;
  return b.contract(spec, x, y, extents);
}

UOpRef affineProduct(Composer &b, UOpRef x, UOpRef y, UOpRef z, const AffineProductOptions &options) {
  if (!b.requireRank(x, 2, 2) || !b.requireRank(y, 2, 2)) return nullptr;
  bool turnX = options.transposeX, turnY = options.transposeY;
  ContractSpec spec;
  spec.kept = 2;
  spec.reduced = 1;
  spec.a = {label(turnX ? 2 : 0), label(turnX ? 0 : 2)};
  spec.b = {label(turnY ? 1 : 2), label(turnY ? 2 : 1)};
  if (!b.requireEqual(x->shape[!turnX], y->shape[turnY], "the axes that are multiplied")) return nullptr;
  UOpRef sum = b.contract(spec, x, y, {x->shape[turnX], y->shape[!turnY], x->shape[!turnX]});
  if (options.alpha != 1) sum = b.bin(Op::Mul, sum, options.alpha);
  if (!z || !sum) return sum;
  UOpRef bias = options.beta == 1 ? z : b.bin(Op::Mul, z, options.beta);
  return b.bin(Op::Add, sum, b.broadcastTo(bias, sum->shape));
}

} // namespace astra::compose
