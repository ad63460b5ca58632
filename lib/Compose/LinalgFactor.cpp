//===- LinalgFactor.cpp: Cholesky and LU ---------------------------------===//
// Takes:    matrices that may not be square, positive definite or regular.
// Gives:    factors by halves (F. Gustavson's and S. Toledo's recursions): a panel is a scan of one column a step, all
//           else substitution and products.
// Keeps:    a matrix that fails goes on with harmless numbers until its end: others of its batch do not see it.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace astra::compose {

using namespace linalg;

namespace {

UOpRef zeroInfo(Composer &b, UOpRef count) { return b.broadcastTo(b.b.litInt(DType::I64, 0), {count}); }

/// `info`, or the number of step j, counted from 1 behind `before`, where it is the first that failed.
UOpRef firstFailure(Composer &b, UOpRef info, UOpRef failed, UOpRef j, int64_t before) {
  UOpRef number = b.bin(Op::Add, j, double(before + 1));
  return b.select(b.bin(Op::And, failed, b.bin(Op::Eq, info, 0.0)), number, info);
}
/// The first of two that is not 0; the second counts behind `before` steps.
UOpRef earlier(Composer &b, UOpRef first, UOpRef second, int64_t before) {
  UOpRef later = b.select(b.bin(Op::Eq, second, 0.0), second, b.bin(Op::Add, second, double(before)));
  return b.select(b.bin(Op::Eq, first, 0.0), later, first);
}

} // namespace

/// L of x [count, n, n].
static Cholesky choleskyOf(Composer &b, UOpRef x, int64_t panel) {
  if (!x || b.failed()) return {};
  int64_t n = *x->shape[1]->constIndex();
  UOpRef count = x->shape[0];
  if (n > panel) {
    int64_t half = halfOf(n, panel), rest = n - half;
    Cholesky first = choleskyOf(b, block(b, x, 0, half, 0, half), panel);
    UOpRef below = adjoint(b, block(b, x, half, rest, 0, half)); // of A21' = L11 L21'
    UOpRef side = forwardSolve(b, first.factor, below, false, panel);
    Cholesky second =
        choleskyOf(b, b.bin(Op::Sub, block(b, x, half, rest, half, rest), times(b, side, side, true)), panel);
    if (b.failed()) return {};
    UOpRef above = b.broadcastTo(number(b, x, 0), {count, b.idx(half), b.idx(rest)});
    UOpRef factor = b.concat({b.concat({first.factor, above}, 2), b.concat({adjoint(b, side), second.factor}, 2)}, 1);
    return {factor, earlier(b, first.info, second.info, half)};
  }
  ScanMaker scan(b, b.idx(n));
  UOpRef now = scan.carry(x), info = scan.carry(zeroInfo(b, count)), j = scan.slice(columnNumbers(b, n));
  UOpRef column = columnAt(b, now, j), corner = realPart(b, b.make(Op::Gather, {column, j}, {1}));
  UOpRef bad = b.un(Op::Not, b.bin(Op::Lt, number(b, corner, 0), corner)); // a NaN too
  UOpRef pivot = b.unsqueeze(b.un(Op::Sqrt, b.select(bad, number(b, corner, 1), corner)), {1});
  UOpRef k = columnNumbers(b, n), i = rowNumbers(b, n);
  UOpRef factor = b.select(b.bin(Op::Lt, j, k), overReal(b, column, pivot), number(b, column, 0));
  if (!factor || !now || b.failed()) return {};
  UOpRef stands = b.select(b.bin(Op::Eq, k, j), likewise(b, pivot, column), factor); // column j of L
  UOpRef less = minusProduct(b, now, b.unsqueeze(factor, {2}), b.unsqueeze(conjugate(b, factor), {1}));
  UOpRef next = b.select(b.bin(Op::Lt, j, k), less, b.select(b.bin(Op::Eq, k, j), b.unsqueeze(stands, {2}), now));
  std::vector<UOpRef> done =
      scan.finish({b.select(b.bin(Op::Le, j, i), next, now), firstFailure(b, info, bad, j, 0)}, {});
  return {lowerPart(b, done[0]), done[1]};
}

Cholesky linalg::factorCholesky(Composer &b, UOpRef x, int64_t panel) {
  std::vector<UOpRef> made = inParts(b, {x}, [&](llvm::ArrayRef<UOpRef> part) -> std::vector<UOpRef> {
    Cholesky f = choleskyOf(b, part[0], panel);
    return {f.factor, f.info};
  });
  return {made[0], made[1]};
}

namespace {

/// The panel of LU: x [count, m, n], min(m, n) steps.
LU factorPanel(Composer &b, UOpRef x) {
  int64_t m = *x->shape[1]->constIndex(), n = *x->shape[2]->constIndex(), steps = std::min(m, n);
  UOpRef count = x->shape[0], i = columnNumbers(b, m);
  ScanMaker scan(b, b.idx(steps));
  UOpRef now = scan.carry(x), order = scan.carry(b.broadcastTo(i, {count, b.idx(m)})),
         info = scan.carry(zeroInfo(b, count)), j = scan.slice(columnNumbers(b, steps));
  UOpRef column = columnAt(b, now, j);
  UOpRef magnitude = b.un(Op::Abs, column);
  magnitude = b.select(b.bin(Op::Lt, i, j), number(b, magnitude, -1), magnitude);
  UOpRef pivot = b.make(Op::ArgReduce, {magnitude}, {0, 1}); // [count]
  if (!pivot || b.failed()) return {};
  UOpRef isPivot = b.bin(Op::Eq, i, b.unsqueeze(pivot, {1})), isStep = b.bin(Op::Eq, i, j); // [count, m], [m]
  UOpRef top = rowAt(b, now, j), chosen = b.squeeze(rowsInOrder(b, now, b.unsqueeze(pivot, {1})), {1}); // [count, n]
  auto exchanged = [&](UOpRef v, UOpRef atStep, UOpRef atPivot) { // element j and the pivot's of [count, m]
    return b.select(isStep, atPivot, b.select(isPivot, atStep, v));
  };
  UOpRef corner = b.unsqueeze(b.make(Op::Gather, {chosen, j}, {1}), {1});
  UOpRef zero = isNumber(b, corner, 0);
  UOpRef left = exchanged(column, b.unsqueeze(b.make(Op::Gather, {column, j}, {1}), {1}), corner);
  UOpRef factor = b.bin(Op::Div, left, b.select(zero, number(b, corner, 1), corner)); // under a pivot of 0 are zeros
  UOpRef below = b.bin(Op::Lt, j, i);                                                 // [m]
  UOpRef k = columnNumbers(b, n);
  auto tall = [&](UOpRef v) { return b.unsqueeze(v, {int64_t(v ? v->rank() : 0)}); };
  UOpRef swapped =
      b.select(tall(isStep), b.unsqueeze(chosen, {1}), b.select(tall(isPivot), b.unsqueeze(top, {1}), now));
  if (!swapped || !factor || b.failed()) return {};
  UOpRef less = minusProduct(b, swapped, tall(factor), b.unsqueeze(chosen, {1}));
  UOpRef inside = b.select(b.bin(Op::Lt, j, k), less, b.select(b.bin(Op::Eq, k, j), tall(factor), swapped));
  UOpRef next = b.select(tall(below), inside, swapped);
  UOpRef was = b.unsqueeze(b.make(Op::Gather, {order, j}, {1}), {1});
  UOpRef ofPivot = b.make(Op::Pick, {order, b.unsqueeze(pivot, {1})}, {1});
  UOpRef singular = b.squeeze(zero, {1});
  std::vector<UOpRef> done =
      scan.finish({next, exchanged(order, was, ofPivot), firstFailure(b, info, singular, j, 0)}, {pivot});
  return {done[0], b.permute(done[3], {1, 0}), done[1], done[2]};
}

} // namespace

static LU luOf(Composer &b, UOpRef x, int64_t panel) {
  if (!x || b.failed()) return {};
  int64_t m = *x->shape[1]->constIndex(), n = *x->shape[2]->constIndex(), steps = std::min(m, n);
  if (n <= panel) return factorPanel(b, x);
  int64_t half = steps <= panel ? steps : halfOf(steps, panel), rest = n - half, below = m - half;
  LU left = luOf(b, block(b, x, 0, m, 0, half), panel);
  UOpRef right = rowsInOrder(b, block(b, x, 0, m, half, rest), left.order);
  UOpRef top = forwardSolve(b, block(b, left.packed, 0, half, 0, half), block(b, right, 0, half, 0, rest), true, panel);
  if (b.failed()) return {};
  if (below == 0) return {b.concat({left.packed, top}, 2), left.pivots, left.order, left.info};
  UOpRef l21 = block(b, left.packed, half, below, 0, half);
  LU last = luOf(b, b.bin(Op::Sub, block(b, right, half, below, 0, rest), times(b, l21, top)), panel);
  if (b.failed()) return {};
  UOpRef upper = b.concat({block(b, left.packed, 0, half, 0, half), top}, 2),
         lower = b.concat({rowsInOrder(b, l21, last.order), last.packed}, 2);
  UOpRef later = b.make(Op::Pick, {b.part(left.order, 1, half, below), last.order}, {1});
  if (!later) return {};
  return {b.concat({upper, lower}, 1), b.concat({left.pivots, b.bin(Op::Add, last.pivots, double(half))}, 1),
          b.concat({b.part(left.order, 1, 0, half), later}, 1), earlier(b, left.info, last.info, half)};
}

LU linalg::factorLU(Composer &b, UOpRef x, int64_t panel) {
  std::vector<UOpRef> made = inParts(b, {x}, [&](llvm::ArrayRef<UOpRef> part) -> std::vector<UOpRef> {
    LU f = luOf(b, part[0], panel);
    return {f.packed, f.pivots, f.order, f.info};
  });
  return {made[0], made[1], made[2], made[3]};
}

Cholesky cholesky(Composer &b, UOpRef given, bool upper) {
  Matrices m = matricesOf(b, given, true);
  if (b.failed()) return {};
  UOpRef x = upper ? adjoint(b, m.x) : m.x;
  Cholesky made = factorCholesky(b, x, panelOf(m.rows));
  if (b.failed()) return {};
  UOpRef failed = b.unsqueeze(b.bin(Op::Ne, made.info, 0.0), {1, 2});
  UOpRef factor = b.select(failed, quietNaN(b, x->dtype), made.factor);
  // Of x = L L' with cotangent g of L: the Hermitian part of L'^-1 P L^-1, P the lower half of L' g.
  factor = withRule(b, factor, {x}, [&](UOpRef l, llvm::ArrayRef<UOpRef>, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
    UOpRef p = times(b, l, lowerPart(b, g), true);
    UOpRef whole = lowerPart(b, p), half = halved(b, b.bin(Op::Add, whole, lowerPart(b, p, -1)));
    TriangularOptions left, right;
    left.transposed = right.right = true;
    UOpRef s = solveTriangular(b, l, solveTriangular(b, conjugate(b, l), half, left, 1), right, 1);
    return {halved(b, b.bin(Op::Add, s, adjoint(b, s)))};
  });
  return {m.back(b, upper ? adjoint(b, factor) : factor), m.back(b, made.info)};
}

namespace {

/// The factors with a rule, where they are square: of P x = L U it is L'^-1 (the part below the diagonal of L' gL and
/// that from it on of gU U') U'^-1.
LU withDerivative(Composer &b, const Matrices &m, LU made) {
  if (!made.packed || m.rows != m.columns || !b.wantsGradients()) return made;
  UOpRef count = m.count;
  int64_t n = m.rows;
  made.packed = withRule(b, made.packed, {rowsInOrder(b, m.x, made.order)},
                         [&](UOpRef packed, llvm::ArrayRef<UOpRef>, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
                           UOpRef l = b.bin(Op::Add, lowerPart(b, packed, -1),
                                            identity(b, count, n, packed ? packed->dtype : DType::F64));
                           UOpRef u = upperPart(b, packed);
                           UOpRef inner = b.bin(Op::Add, lowerPart(b, times(b, l, lowerPart(b, g, -1), true), -1),
                                                upperPart(b, times(b, upperPart(b, g), u, false, true)));
                           TriangularOptions left, right;
                           left.transposed = left.unit = true;
                           right.right = right.upper = right.transposed = true;
                           UOpRef inside = solveTriangular(b, conjugate(b, l), inner, left, 1);
                           return {solveTriangular(b, conjugate(b, u), inside, right, 1)};
                         });
  return made;
}

} // namespace

LU luFactor(Composer &b, UOpRef given) {
  Matrices m = matricesOf(b, given, false);
  if (b.failed()) return {};
  LU made = withDerivative(b, m, factorLU(b, m.x, panelOf(std::min(m.rows, m.columns))));
  return {m.back(b, made.packed), m.back(b, made.pivots), m.back(b, made.order), m.back(b, made.info)};
}

PermutedLU lu(Composer &b, UOpRef given) {
  Matrices m = matricesOf(b, given, false);
  if (b.failed()) return {};
  LU made = withDerivative(b, m, factorLU(b, m.x, panelOf(std::min(m.rows, m.columns))));
  if (b.failed()) return {};
  int64_t k = std::min(m.rows, m.columns);
  DType t = m.x->dtype;
  UOpRef isOne = b.bin(Op::Eq, rowNumbers(b, m.rows), b.unsqueeze(made.order, {1}));
  UOpRef p = b.select(isOne, b.b.lit(t, 1), b.b.lit(t, 0));
  UOpRef eye = b.select(b.bin(Op::Eq, rowNumbers(b, m.rows), columnNumbers(b, k)), b.b.lit(t, 1), b.b.lit(t, 0));
  UOpRef below = b.bin(Op::Lt, columnNumbers(b, k), rowNumbers(b, m.rows));
  UOpRef l = b.select(below, block(b, made.packed, 0, m.rows, 0, k), eye);
  return {m.back(b, p), m.back(b, l), m.back(b, upperPart(b, block(b, made.packed, 0, k, 0, m.columns))),
          m.back(b, made.info)};
}

} // namespace astra::compose
