//===- LinalgProducts.cpp: products of vectors and tensors, diagonals ----===//
// Takes:    operands that may not fit.
// Gives:    one contract for what sums, products of elements for what does not.
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Linalg.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

/// Both in one type, and of one shape.
bool bothOf(Composer &b, UOpRef &x, UOpRef &y, bool broadcasts) {
  std::tie(x, y) = b.promoted(x, y);
  if (!x || !y || b.failed()) return false;
  if (!isArithmetic(x->dtype) && !isComplex(x->dtype)) b.fail(llvm::Twine("a product of type ") + info(x->dtype).text);
  if (!broadcasts || b.failed()) return !b.failed();
  Dims dims = b.broadcastShape({x->shape, y->shape});
  x = b.broadcastTo(x, dims);
  y = b.broadcastTo(y, dims);
  return !b.failed();
}

} // namespace

UOpRef outer(Composer &b, UOpRef x, UOpRef y) {
  if (!b.requireRank(x, 1) || !b.requireRank(y, 1)) return nullptr;
  std::tie(x, y) = b.promoted(x, y);
  if (!x || !y || b.failed()) return nullptr;
  Op op = x->dtype == DType::Bool ? Op::And : Op::Mul;
  return b.bin(op, b.unsqueeze(x, {int64_t(x->rank())}), b.unsqueeze(y, {int64_t(y->rank()) - 1}));
}

UOpRef vecdot(Composer &b, UOpRef x, UOpRef y, int64_t axis) {
  if (!b.requireRank(x, 1) || !b.requireRank(y, 1) || !bothOf(b, x, y, false)) return nullptr;
  int64_t ofX = b.axis(axis, x->rank()), ofY = b.axis(axis, y->rank());
  if (b.failed() || !b.requireEqual(x->shape[ofX], y->shape[ofY], "the axes that are summed")) return nullptr;
  auto batchOf = [](UOpRef operand, int64_t at) {
    Dims dims(operand->shape.begin(), operand->shape.end());
    dims.erase(dims.begin() + at);
    return dims;
  };
  Dims batchX = batchOf(x, ofX), batchY = batchOf(y, ofY), extents = b.broadcastShape({batchX, batchY});
  if (b.failed()) return nullptr;
  ContractSpec spec;
  spec.kept = extents.size();
  spec.reduced = 1;
  auto forms = [&](llvm::ArrayRef<UOpRef> batch, int64_t at, llvm::SmallVectorImpl<AffineForm> &to) {
    for (size_t l = extents.size() - batch.size(); UOpRef extent : batch) {
      to.push_back(extent == extents[l] ? label(l) : first());
      ++l;
    }
    to.insert(to.begin() + at, label(spec.kept));
  };
  forms(batchX, ofX, spec.a);
  forms(batchY, ofY, spec.b);
  extents.push_back(x->shape[ofX]);
  return b.contract(spec, conjugate(b, x), y, extents);
}

UOpRef cross(Composer &b, UOpRef x, UOpRef y, int64_t axis) {
  if (!b.requireRank(x, 1) || !b.requireRank(y, 1) || !bothOf(b, x, y, true)) return nullptr;
  axis = b.axis(axis, x->rank());
  if (b.failed()) return nullptr;
  if (x->shape[axis]->constIndex() != 3)
    return b.fail("a cross product along an axis of extent " + dimsText(x->shape[axis]) + ", expected 3");
  UOpRef u[3], v[3];
  for (int64_t i = 0; i < 3; ++i) {
    u[i] = b.part(x, axis, i, 1);
    v[i] = b.part(y, axis, i, 1);
  }
  auto of = [&](int i, int j) { return b.bin(Op::Sub, b.bin(Op::Mul, u[i], v[j]), b.bin(Op::Mul, u[j], v[i])); };
  return b.concat({of(1, 2), of(2, 0), of(0, 1)}, axis);
}

UOpRef tensordot(Composer &b, UOpRef x, UOpRef y, llvm::ArrayRef<int64_t> axesX, llvm::ArrayRef<int64_t> axesY) {
  if (!x || !y || !bothOf(b, x, y, false)) return nullptr;
  if (axesX.size() != axesY.size())
    return b.fail("found " + llvm::Twine(axesX.size()) + " axes of the first operand and " + llvm::Twine(axesY.size()) +
                  " of the second");
  b.axes(axesX, x->rank()); // refuses one that is named twice
  b.axes(axesY, y->rank());
  ContractSpec spec;
  spec.reduced = axesX.size();
  spec.kept = int64_t(x->rank() + y->rank()) - 2 * spec.reduced;
  spec.a.resize(x->rank());
  spec.b.resize(y->rank());
  Dims extents;
  Ints ofX, ofY;
  for (auto [i, j] : llvm::zip(axesX, axesY)) {
    ofX.push_back(b.axis(i, x->rank()));
    ofY.push_back(b.axis(j, y->rank()));
  }
  if (b.failed()) return nullptr;
  for (auto [operand, folded, forms] : {std::tuple(x, &ofX, &spec.a), std::tuple(y, &ofY, &spec.b)})
    for (int64_t i = 0; i < int64_t(operand->rank()); ++i) {
      if (llvm::is_contained(*folded, i)) continue;
      (*forms)[i] = label(extents.size());
      extents.push_back(operand->shape[i]);
    }
  for (auto [n, pair] : llvm::enumerate(llvm::zip(ofX, ofY))) {
    auto [i, j] = pair;
    if (!b.requireEqual(x->shape[i], y->shape[j], "the axes that are summed")) return nullptr;
    spec.a[i] = spec.b[j] = label(spec.kept + int64_t(n));
    extents.push_back(x->shape[i]);
  }
  if (spec.reduced) return b.contract(spec, x, y, extents);
  Ints behind = axesBetween(x->rank(), x->rank() + y->rank());
  return b.bin(Op::Mul, b.unsqueeze(x, behind), y);
}

UOpRef kron(Composer &b, UOpRef x, UOpRef y) {
  if (!x || !y || !bothOf(b, x, y, false)) return nullptr;
  unsigned rank = std::max(x->rank(), y->rank());
  x = b.unsqueeze(x, axesBetween(0, rank - x->rank()));
  y = b.unsqueeze(y, axesBetween(0, rank - y->rank()));
  if (!x || !y) return nullptr;
  Dims left, right, joined;
  for (auto [m, n] : llvm::zip(x->shape, y->shape)) {
    left.append({m, b.idx(1)});
    right.append({b.idx(1), n});
    joined.push_back(idxMul(b.c, m, n));
  }
  return b.reshape(b.bin(Op::Mul, b.reshape(x, left), b.reshape(y, right)), joined);
}

UOpRef diagonal(Composer &b, UOpRef x, int64_t offset) {
  if (!b.requireRank(x, 2)) return nullptr;
  int64_t row = int64_t(x->rank()) - 2, column = row + 1;
  if (offset != 0 || x->shape[row] != x->shape[column]) {
    int64_t m = b.constExtent(x, row, "the number of rows"), n = b.constExtent(x, column, "the number of columns");
    if (b.failed()) return nullptr;
    int64_t down = std::clamp(-offset, int64_t(0), m), right = std::clamp(offset, int64_t(0), n);
    int64_t most = std::min(m - down, n - right);
    x = b.part(b.part(x, row, down, most), column, right, most);
  }
  if (!x) return nullptr;
  Dims dims(x->shape.begin(), x->shape.end());
  dims[column] = b.idx(1);
  return b.squeeze(b.make(Op::Pick, {x, b.iota(DType::I64, dims, row)}, {column}), {column});
}

UOpRef trace(Composer &b, UOpRef x, int64_t offset) {
  UOpRef d = diagonal(b, x, offset);
  if (!d) return nullptr;
  DType t = d->dtype;
  int64_t axis = int64_t(d->rank()) - 1;
  return b.cast(b.squeeze(b.reduce(ReduceKind::Sum, b.widen(d), {axis}), {axis}), t);
}

} // namespace astra::compose
