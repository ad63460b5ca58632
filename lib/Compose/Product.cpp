//===- Product.cpp: products of matrices -----------------------------------===//
// Takes:    operands that may not fit.
// Gives:    one `contract` per product.
#include "astra/Compose/Product.h"
#include "astra/Compose/Reduction.h"
#include <algorithm>

namespace astra::compose {

/// Transposing only changes the index lists; a vector is its own transpose.
static UOpRef multiplied(Composer &b, UOpRef x, bool turnX, UOpRef y, bool turnY, UOpRef diagonal = nullptr) {
  if (!b.requireRank(x, diagonal ? 2 : 1) || !b.requireRank(y, 1)) return nullptr;
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
  int64_t sumX = row ? 0 : x->rank() - (turnX ? 2 : 1), sumY = column ? 0 : y->rank() - (turnY ? 1 : 2);
  spec.a.push_back(label(spec.kept));
  spec.b.push_back(label(spec.kept));
  if (!row) {
    spec.a.insert(spec.a.end() - !turnX, label(batch));
    extents.push_back(x->shape[x->rank() - (turnX ? 1 : 2)]);
  }
  if (!column) {
    spec.b.insert(spec.b.end() - turnY, label(spec.kept - 1));
    extents.push_back(y->shape[y->rank() - (turnY ? 2 : 1)]);
  }
  extents.push_back(x->shape[sumX]);
  if (!b.requireEqual(x->shape[sumX], y->shape[sumY], "the axes that are multiplied")) return nullptr;
  if (diagonal) spec.domain = {{{{batch, 1}, {spec.kept, -1}}, 0, 1}}, extents.push_back(diagonal);
  return b.contract(spec, x, y, extents);
}

UOpRef product(Composer &b, UOpRef x, UOpRef y, UOpRef diagonal) { return multiplied(b, x, false, y, false, diagonal); }

UOpRef affineProduct(Composer &b, UOpRef x, UOpRef y, UOpRef z, const AffineProductOptions &options) {
  UOpRef sum = multiplied(b, x, options.transposeX, y, options.transposeY);
  if (options.alpha && sum) sum = b.bin(Op::Mul, sum, options.alpha);
  if (!z || !sum) return sum;
  UOpRef bias = options.beta ? b.bin(Op::Mul, z, options.beta) : z;
  return bias ? b.bin(Op::Add, sum, b.broadcastTo(bias, sum->shape)) : nullptr;
}

/// Kept labels in the order of the result, then those that are summed.
UOpRef generalProduct(Composer &b, UOpRef x, UOpRef y, const GeneralProductAxes &axes) {
  if (!x || !y) return nullptr;
  if (axes.batchX.size() != axes.batchY.size() || axes.sumX.size() != axes.sumY.size())
    return b.fail("the operands of a product have different numbers of batch axes or of axes that are summed");
  auto check = [&](UOpRef operand, llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> sum) {
    Ints all(batch.begin(), batch.end());
    all.append(sum.begin(), sum.end());
    b.axes(all, operand->rank());
    for (int64_t axis : all)
      if (axis < 0) b.fail("axis " + llvm::Twine(axis) + " of a product is negative");
  };
  check(x, axes.batchX, axes.sumX);
  check(y, axes.batchY, axes.sumY);
  if (b.failed()) return nullptr;
  ContractSpec spec;
  spec.a.resize(x->rank());
  spec.b.resize(y->rank());
  llvm::SmallVector<bool, 8> usedX(x->rank()), usedY(y->rank());
  Dims extents;
  auto pair = [&](int64_t i, int64_t k, const char *what) {
    b.requireEqual(x->shape[i], y->shape[k], what);
    spec.a[i] = label(extents.size());
    spec.b[k] = label(extents.size());
    extents.push_back(x->shape[i]);
    usedX[i] = usedY[k] = true;
  };
  for (size_t i = 0; i < axes.sumX.size(); ++i) usedX[axes.sumX[i]] = usedY[axes.sumY[i]] = true;
  for (size_t i = 0; i < axes.batchX.size(); ++i) pair(axes.batchX[i], axes.batchY[i], "the batch axes");
  auto rest = [&](UOpRef operand, llvm::ArrayRef<bool> used, llvm::SmallVectorImpl<AffineForm> &forms) {
    for (unsigned i = 0; i < operand->rank(); ++i) {
      if (used[i]) continue;
      forms[i] = label(extents.size());
      extents.push_back(operand->shape[i]);
    }
  };
  rest(x, usedX, spec.a);
  rest(y, usedY, spec.b);
  spec.kept = extents.size();
  spec.reduced = axes.sumX.size();
  for (size_t i = 0; i < axes.sumX.size(); ++i) pair(axes.sumX[i], axes.sumY[i], "the axes that are summed");
  if (b.failed()) return nullptr;
  if (spec.reduced) return b.contract(spec, x, y, extents);
  // Nothing is summed: an elementwise product.
  llvm::SmallVector<int64_t, 8> orderX, orderY;
  Dims shapeX(extents.size(), b.idx(1)), shapeY = shapeX;
  for (size_t l = 0; l < extents.size(); ++l) {
    for (unsigned i = 0; i < x->rank(); ++i)
      if (spec.a[i].terms[0].first == int64_t(l)) orderX.push_back(i), shapeX[l] = extents[l];
    for (unsigned i = 0; i < y->rank(); ++i)
      if (spec.b[i].terms[0].first == int64_t(l)) orderY.push_back(i), shapeY[l] = extents[l];
  }
  return b.bin(x->dtype == DType::Bool ? Op::And : Op::Mul, b.reshape(b.permute(x, orderX), shapeX),
               b.reshape(b.permute(y, orderY), shapeY));
}

/// As [batch..., rows, columns].
static UOpRef laidOut(Composer &b, UOpRef x, const OperandLayout &layout) {
  if (!x || (!layout.transposed && !layout.batchBehind)) return x;
  int64_t rank = x->rank();
  if (rank == 1 && !layout.batchBehind) return x; // a vector is its own transpose
  if (!b.requireRank(x, 2)) return nullptr;
  Ints order = axesBetween(0, rank);
  if (layout.batchBehind) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (layout.transposed) std::swap(order[rank - 2], order[rank - 1]);
  return b.permute(x, order);
}

UOpRef fusedProduct(Composer &b, UOpRef givenX, const OperandLayout &layoutX, UOpRef givenY,
                    const OperandLayout &layoutY, double alpha) {
  UOpRef x = laidOut(b, b.widen(givenX), layoutX), y = laidOut(b, b.widen(givenY), layoutY);
  UOpRef z = x && y ? product(b, x, y) : nullptr;
  if (alpha != 1) z = b.bin(Op::Mul, z, alpha);
  return z ? b.cast(z, givenX->dtype) : nullptr;
}

UOpRef distances(Composer &b, UOpRef givenX, UOpRef givenY, bool squares) {
  UOpRef x = b.widen(givenX), y = b.widen(givenY);
  if (!b.requireFloat(x) || !b.requireRank(x, 2, 2) || !b.requireRank(y, 2, 2) ||
      !b.requireEqual(x->shape[1], y->shape[1], "the rows"))
    return nullptr;
  UOpRef difference = b.bin(Op::Sub, b.unsqueeze(x, {1}), b.unsqueeze(y, {0}));
  UOpRef sum = b.squeeze(b.reduce(ReduceKind::Sum, b.bin(Op::Mul, difference, difference), {2}), {2});
  return b.cast(squares ? sum : rootOfSquares(b, sum), givenX->dtype);
}

} // namespace astra::compose
