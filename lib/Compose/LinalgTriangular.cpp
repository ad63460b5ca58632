//===- LinalgTriangular.cpp: triangular systems --------------------------===//
// Takes:    triangles that may not fit their right sides.
// Gives:    substitution: a row a step on what is left of the right sides; above a panel in halves, between which one
//           product stands (recursive TRSM). The other forms are the lower one, turned round.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"

namespace astra::compose {

using namespace linalg;

UOpRef linalg::forwardSolve(Composer &b, UOpRef l, UOpRef y, bool unit, int64_t panel) {
  if (!l || !y || b.failed()) return nullptr;
  int64_t n = *l->shape[1]->constIndex(), k = *y->shape[2]->constIndex();
  if (n == 1) return unit ? y : b.bin(Op::Div, y, l);
  if (n > panel) {
    int64_t half = halfOf(n, panel), rest = n - half;
    UOpRef top = forwardSolve(b, block(b, l, 0, half, 0, half), block(b, y, 0, half, 0, k), unit, panel);
    UOpRef below = b.bin(Op::Sub, block(b, y, half, rest, 0, k), times(b, block(b, l, half, rest, 0, half), top));
    UOpRef bottom = forwardSolve(b, block(b, l, half, rest, half, rest), below, unit, panel);
    return top && bottom ? b.concat({top, bottom}, 1) : nullptr;
  }
  ScanMaker scan(b, b.idx(n));
  UOpRef now = scan.carry(y), j = scan.slice(columnNumbers(b, n)), a = scan.close(l);
  UOpRef row = b.unsqueeze(rowAt(b, now, j), {1}), column = columnAt(b, a, j);
  if (!unit) row = b.bin(Op::Div, row, b.unsqueeze(b.make(Op::Gather, {column, j}, {1}), {1, 2}));
  UOpRef i = rowNumbers(b, n);
  if (!row || !column || !now || b.failed()) return nullptr;
  UOpRef less = minusProduct(b, now, b.unsqueeze(column, {2}), row);
  return scan.finish({b.select(b.bin(Op::Lt, j, i), less, b.select(b.bin(Op::Eq, i, j), row, now))}, {})[0];
}

/// As l x = y with l lower: an upper triangle is one whose rows and columns go backwards.
static UOpRef solveTurned(Composer &b, UOpRef a, UOpRef y, const TriangularOptions &o) {
  bool turn = o.transposed != o.right, lower = o.upper == turn;
  UOpRef l = turn ? transposed(b, a) : a, x = o.right ? transposed(b, y) : y;
  auto flipped = [&](UOpRef v, llvm::ArrayRef<int64_t> axes) { return b.make(Op::Flip, {v}, axes); };
  if (!lower) {
    l = flipped(l, {1, 2});
    x = flipped(x, {1});
  }
  if (l)
    x = inParts(b, {l, x}, [&](llvm::ArrayRef<UOpRef> part) -> std::vector<UOpRef> {
      return {forwardSolve(b, part[0], part[1], o.unit, panelOf(*l->shape[1]->constIndex()))};
    })[0];
  if (!lower) x = flipped(x, {1});
  return o.right ? transposed(b, x) : x;
}

/// Of a x = y with cotangent g of x: y has z with a' z = g, and a has the triangle of -z x'.
UOpRef linalg::solveTriangular(Composer &b, UOpRef a, UOpRef y, const TriangularOptions &o, int order) {
  UOpRef x = solveTurned(b, a, y, o);
  if (order == 0) return x;
  return withRule(b, x, {a, y}, [&](UOpRef x, llvm::ArrayRef<UOpRef> given, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
    TriangularOptions back = o;
    back.transposed = !o.transposed;
    UOpRef z = solveTriangular(b, conjugate(b, given[0]), g, back, order - 1);
    bool xFirst = o.right != o.transposed;
    UOpRef ofA = times(b, xFirst ? x : z, xFirst ? z : x, o.right, !o.right);
    ofA = b.un(Op::Neg, o.transposed ? conjugate(b, ofA) : ofA);
    return {o.upper ? upperPart(b, ofA, o.unit) : lowerPart(b, ofA, -int64_t(o.unit)), z};
  });
}

UOpRef triangularSolve(Composer &b, UOpRef a, UOpRef y, const TriangularOptions &options) {
  if (!a || !y || b.failed()) return nullptr;
  if (a->dtype != y->dtype)
    return b.fail(llvm::Twine("the matrices are of type ") + info(a->dtype).text + ", the right sides of type " +
                  info(y->dtype).text);
  if (!b.requireRank(a, 2) || !b.requireRank(y, 2)) return nullptr;
  Dims batch = b.broadcastShape({a->shape.drop_back(2), y->shape.drop_back(2)}), full = batch, sides = batch;
  full.append(a->shape.end() - 2, a->shape.end());
  sides.append(y->shape.end() - 2, y->shape.end());
  if (b.failed()) return nullptr;
  Matrices m = matricesOf(b, b.broadcastTo(a, full), true), r = matricesOf(b, b.broadcastTo(y, sides), false);
  if (b.failed() ||
      !b.requireEqual(b.idx(m.rows), b.idx(options.right ? r.columns : r.rows), "the triangle and the right sides"))
    return nullptr;
  return r.back(b, solveTriangular(b, m.x, r.x, options));
}

} // namespace astra::compose
