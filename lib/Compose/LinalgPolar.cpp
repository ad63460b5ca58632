//===- LinalgPolar.cpp: singular values of larger matrices -----------------===//
// Takes:    square matrices, finite, whose greatest magnitude is below 2.
// Gives:    the polar form x = u h (Y. Nakatsukasa's, Z. Bai's and F. Gygi's iteration, with weights that do not depend
//           on x), then h = v s v' by eigenByHalves, and the singular vectors u v and v.
// Keeps:    six rounds of products and factorizations: nothing waits for data. Directions of singular values near 0 are
//           completed to a basis.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"
#include <cmath>

namespace astra::compose::linalg {

namespace {

/// The weights of a round x (a + b x'x) (1 + c x'x)^-1, by which singular values in l .. 1 move up to `next` .. 1.
struct Weights {
  double a, b, c, next;
};
Weights weightsOf(double l) {
  double l2 = l * l, d = std::cbrt(4 * (1 - l2) / (l2 * l2)), s = std::sqrt(1 + d);
  double a = s + std::sqrt(8 - 4 * d + 8 * (2 - l2) / (l2 * s)) / 2, b = (a - 1) * (a - 1) / 4, c = a + b - 1;
  return {a, b, c, std::min(1.0, l * (a + b * l2) / (1 + c * l2))};
}

/// A round, with c large by Q of the matrix over the identity, else by a Cholesky factor.
UOpRef improved(Composer &b, UOpRef x, const Weights &w) {
  if (!x || b.failed()) return nullptr;
  int64_t n = *x->shape[1]->constIndex();
  UOpRef eye = identity(b, x->shape[0], n, x->dtype), move = nullptr;
  auto by = [&](UOpRef y, double k) { return b.bin(Op::Mul, y, number(b, y, k)); };
  if (w.c > 100) {
    QR f = factorQR(b, b.concat({by(x, std::sqrt(w.c)), eye}, 1), false);
    move = by(times(b, block(b, f.q, 0, n, 0, n), block(b, f.q, n, n, 0, n), false, true),
              (w.a - w.b / w.c) / std::sqrt(w.c));
  } else {
    UOpRef l = factorCholesky(b, b.bin(Op::Add, eye, by(times(b, x, x, true), w.c)), panelOf(n)).factor;
    TriangularOptions lower, upper;
    upper.transposed = true;
    UOpRef y = solveTriangular(b, l, adjoint(b, x), lower, 0);
    move = by(adjoint(b, solveTriangular(b, conjugate(b, l), y, upper, 0)), w.a - w.b / w.c);
  }
  return b.bin(Op::Add, by(x, w.b / w.c), move);
}

} // namespace

SingularParts singularByPolar(Composer &b, UOpRef x, bool vectors) {
  if (!x || b.failed()) return {};
  UOpRef length = b.un(Op::Sqrt, b.reduce(ReduceKind::Sum, squared(b, x), {1, 2})); // not below the greatest value
  UOpRef u = overReal(b, x, b.select(b.bin(Op::Eq, length, 0.0), number(b, length, 1), length));
  for (double l = epsilonOf(x->dtype) / 8; 1 - l > epsilonOf(x->dtype) * 64 && !b.failed();) {
    Weights w = weightsOf(l);
    u = improved(b, u, w);
    l = w.next;
  }
  UOpRef h = times(b, u, x, true);
  h = b.bin(Op::Add, h, adjoint(b, h));
  if (!h || b.failed()) return {};
  h = timesReal(b, h, b.b.lit(partOf(h->dtype), 0.5));
  EigenPairs e = eigenByHalves(b, h);
  if (!e.rows || b.failed()) return {};
  SingularParts r;
  r.s = b.bin(Op::Max, b.flip(e.values, 1), 0.0);
  r.info = e.info;
  if (!vectors) return r;
  r.v = b.flip(e.rows, 1); // v' in rows
  // Columns of length 1; where u has none, near singular values of 0, those of a basis.
  QR basis = factorQR(b, times(b, u, r.v, false, true), false);
  UOpRef flips = b.bin(Op::Lt, realPart(b, diagonalOf(b, basis.r)), 0.0);
  r.u = b.select(b.unsqueeze(flips, {1}), b.un(Op::Neg, basis.q), basis.q);
  return r;
}

} // namespace astra::compose::linalg
