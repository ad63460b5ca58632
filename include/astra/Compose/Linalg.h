//===- Linalg.h: linear algebra on batches of matrices ---------------------===//
// Takes:    matrices [.., m, n] of a float or complex type with constant m and n; the axes before them, which may be
//           symbolic, are a batch. f16 and bf16 compute in f32 and round once.
// Gives:    factorizations, solutions and functions of them, as graphs of ops that the contract fixes: equal bits on
//           every target, and for a matrix of a batch those that it has alone.
// Keeps:    a failure is data: `info`, i64 [..], is 0 where a factorization succeeded. Nothing stops a run.
// Does not: choose a method by the data, the target or the size of the batch (docs/linalg.md).
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

// ---- triangular matrices

struct TriangularOptions {
  bool right = false;      // solve x a = y, else a x = y
  bool upper = false;      // the triangle that is read; the other one is not
  bool transposed = false; // a's transpose in place of a
  bool unit = false;       // the diagonal is ones, and not read
};
/// x of a x = y by substitution: a [.., n, n], y [.., n, k] (right: [.., k, n]); batch axes broadcast. A zero on the
/// diagonal gives infinities and NaNs.
UOpRef triangularSolve(Composer &b, UOpRef a, UOpRef y, const TriangularOptions &options = {});

// ---- factorizations

struct Cholesky {
  UOpRef factor = nullptr; // L, or U = L'; NaN where the matrix is not positive definite
  UOpRef info = nullptr;   // else i + 1: the leading matrix of so many rows is the first that is not
};
/// x = L L' of the lower triangle of symmetric (complex: Hermitian) matrices x [.., n, n]; upper: x = U' U of the upper
/// triangle. Of complex matrices L' is the adjoint, here and below.
Cholesky cholesky(Composer &b, UOpRef x, bool upper = false);

struct LU {
  UOpRef packed = nullptr; // [.., m, n]: U, and below the diagonal L without its ones
  UOpRef pivots = nullptr; // i64 [.., min(m, n)]: step i exchanged rows i and pivots[i], counted from 0
  UOpRef order = nullptr;  // i64 [.., m]: row i of L U is row order[i] of x
  UOpRef info = nullptr;   // i + 1: pivot i is the first that is 0
};
/// x [.., m, n] with partial pivoting: the pivot is the row of the greatest magnitude, the first of several; a column
/// of zeros is left as it is.
LU luFactor(Composer &b, UOpRef x);

struct PermutedLU {
  UOpRef p = nullptr, l = nullptr, u = nullptr; // x = p l u: [.., m, m], [.., m, k], [.., k, n], k = min(m, n)
  UOpRef info = nullptr;
};
PermutedLU lu(Composer &b, UOpRef x);

struct QR {
  UOpRef q = nullptr, r = nullptr;
};
/// x [.., m, n] = q r by Householder reflections, signs as LAPACK's: q [.., m, k], r [.., k, n] with k = min(m, n), or
/// complete: k = m. Of a column that is not finite all of q is NaN, and r from it on.
QR qr(Composer &b, UOpRef x, bool complete = false);

/// The same as LAPACK keeps it: R, and below the diagonal the vectors of the reflections, without their ones; their
/// factors [.., min(m, n)].
struct Reflections {
  UOpRef packed = nullptr, factors = nullptr;
};
Reflections reflections(Composer &b, UOpRef x);
/// The first n columns of the product of reflections as `reflections` gives them: packed [.., m, n], m >= n, factors
/// [.., k], k <= n.
UOpRef productOfReflections(Composer &b, UOpRef packed, UOpRef factors);

// ---- systems

/// x of a x = y, by LU: a [.., n, n], y [.., n, k]. Where a is singular the result is not finite and info says where.
struct Solution {
  UOpRef value = nullptr, info = nullptr;
};
Solution solve(Composer &b, UOpRef a, UOpRef y);
Solution inverse(Composer &b, UOpRef a);
/// x of a x = y with what luFactor gave of a: packed [.., n, n] and order [.., n].
UOpRef luSolve(Composer &b, UOpRef packed, UOpRef order, UOpRef y);
/// The order [.., m] of rows that exchanges [.., k] in sequence make, as luFactor has both; m constant.
UOpRef orderOfPivots(Composer &b, UOpRef pivots, int64_t m);
/// x of a x = y with a Cholesky factor of a: L, or, upper, U.
UOpRef choleskySolve(Composer &b, UOpRef factor, UOpRef y, bool upper = false);

/// The x of least length that make the length of a x - y least: a [.., m, n], y [.., m, k], by singular values; those
/// not above `tolerance` times the greatest count as 0. Unset: max(m, n) * eps.
struct LeastSquares {
  UOpRef value = nullptr;    // [.., n, k]
  UOpRef residual = nullptr; // [.., k]: the squares of the lengths that are left
  UOpRef rank = nullptr;     // i64 [..]; -1 where a is not finite
  UOpRef singular = nullptr; // [.., min(m, n)], descending
  UOpRef info = nullptr;     // that of svd
};
LeastSquares leastSquares(Composer &b, UOpRef a, UOpRef y, std::optional<double> tolerance = std::nullopt);

/// Sign and logarithm of the magnitude of the determinants [..]; 0 and -inf of a singular matrix. Of complex matrices
/// too, whose sign is a number on the unit circle.
struct LogDeterminant {
  UOpRef sign = nullptr, logarithm = nullptr;
};
LogDeterminant logDeterminant(Composer &b, UOpRef x);

/// x to an integer power by squaring; a negative one of the inverse.
UOpRef matrixPower(Composer &b, UOpRef x, int64_t exponent);

/// e^x: Pade's approximant of degree 13, scaling and squaring (N. Higham, 2005).
UOpRef matrixExp(Composer &b, UOpRef x);

// ---- eigenvalues and singular values, by Jacobi's rotations in a fixed order of sweeps

struct Eigen {
  UOpRef values = nullptr;  // [.., n], ascending; NaN where x is not finite
  UOpRef vectors = nullptr; // [.., n, n], in columns; the greatest component of each, the first of several, is positive
                            // (complex: real and positive)
  UOpRef info = nullptr;    // 1 where x is not finite, or rotations had not ended after 30 sweeps
};
/// Symmetric, complex: Hermitian, matrices x [.., n, n] by their lower triangle (upper: the upper one). Values are
/// real.
Eigen eigh(Composer &b, UOpRef x, bool upper = false);
/// The eigenvalues alone: the same bits, and less work.
UOpRef eigvalsh(Composer &b, UOpRef x, bool upper = false);

struct GeneralEigen {
  UOpRef values = nullptr;  // complex, [.., n], in no order but that of the algorithm; NaN where x is not finite
  UOpRef vectors = nullptr; // complex, [.., n, n], in columns of length 1, the greatest component real and positive
  UOpRef info = nullptr;    // 1 where x is not finite, or 30 n sweeps were not enough
};
/// Matrices x [.., n, n] that need not be symmetric. Without vectors those are null. No derivatives.
GeneralEigen eig(Composer &b, UOpRef x, bool vectors = true);

struct SVD {
  UOpRef u = nullptr;  // [.., m, k], k = min(m, n); full: [.., m, m]
  UOpRef s = nullptr;  // [.., k], descending; NaN where x is not finite
  UOpRef vh = nullptr; // [.., k, n]; full: [.., n, n]. The greatest component of each column of u is positive.
  UOpRef info = nullptr;
};
SVD svd(Composer &b, UOpRef x, bool full = false);
UOpRef svdvals(Composer &b, UOpRef x);

/// The Moore-Penrose inverse [.., n, m]: singular values not above `tolerance` times the greatest count as 0. Unset:
/// max(m, n) * eps.
UOpRef pinv(Composer &b, UOpRef x, std::optional<double> tolerance = std::nullopt);
/// How many singular values, i64 [..], are above `tolerance` times the greatest; -1 where x is not finite.
UOpRef matrixRank(Composer &b, UOpRef x, std::optional<double> tolerance = std::nullopt);
/// The same with a tolerance for each matrix, a tensor that broadcasts to the batch.
UOpRef pinvWithin(Composer &b, UOpRef x, UOpRef tolerance);
UOpRef matrixRankWithin(Composer &b, UOpRef x, UOpRef tolerance);

// ---- norms

enum class MatrixNorm { Frobenius, Nuclear, Spectral, LeastSingular, One, LeastOne, Infinity, LeastInfinity };
/// Of the last two axes.
UOpRef matrixNorm(Composer &b, UOpRef x, MatrixNorm kind, bool keep = false);
/// (sum |x|^order)^(1 / order) over the axes; order inf: max, -inf: min, 0: how many are not 0. Euclidean norms do not
/// overflow or underflow on the way.
UOpRef vectorNorm(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, double order = 2, bool keep = false);

// ---- products, of number types

/// x y' of vectors [.., m] and [.., n]: [.., m, n]. Of bools: whether both are true.
UOpRef outer(Composer &b, UOpRef x, UOpRef y);
/// The sum of the products of conj(x) and y along an axis that both count alike, in the order of a contract; the other
/// axes broadcast.
UOpRef vecdot(Composer &b, UOpRef x, UOpRef y, int64_t axis = -1);
/// Vectors of three elements along an axis.
UOpRef cross(Composer &b, UOpRef x, UOpRef y, int64_t axis = -1);
/// Sums over pairs of axes, in the order given: the other axes of x, then those of y.
UOpRef tensordot(Composer &b, UOpRef x, UOpRef y, llvm::ArrayRef<int64_t> axesX, llvm::ArrayRef<int64_t> axesY);
UOpRef kron(Composer &b, UOpRef x, UOpRef y);
/// The elements [.., i, i + offset] of the last two axes, which may be symbolic where the offset is 0 and they are one.
UOpRef diagonal(Composer &b, UOpRef x, int64_t offset = 0);
UOpRef trace(Composer &b, UOpRef x, int64_t offset = 0);

} // namespace astra::compose
