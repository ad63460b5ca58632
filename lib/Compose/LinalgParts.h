//===- LinalgParts.h: what the files of linear algebra share ---------------===//
// Takes:    matrices that the public functions have checked, with one batch axis: [count, m, n], f32, f64, complex64 or
//           complex128.
// Gives:    blocks of them, products with either transposed, the factorizations without checks and rules.
#pragma once
#include "WithRule.h"
#include "astra/Compose/Linalg.h"
#include "astra/Compose/Scan.h"

namespace astra::compose::linalg {

/// A value of the user's as matrices with one batch axis, and the way back.
struct Matrices {
  UOpRef x = nullptr; // [count, rows, columns]
  Dims batch;
  UOpRef count = nullptr;
  int64_t rows = 0, columns = 0;
  DType type = DType::Void; // the user's

  /// y [count, ..] as [batch.., ..]; of x's type, of the user's.
  UOpRef back(Composer &b, UOpRef y) const;
};
/// Fails where the matrices are not of a float or complex type, not of constant extents in 1..most, or, if wanted, not
/// square.
Matrices matricesOf(Composer &b, UOpRef given, bool square, int64_t most = 4096);

/// Of matrices of n rows or columns steps of a loop are taken on so many columns, the rest is products. Small ones are
/// many: each step passes over all of the batch, and over little of each.
inline int64_t panelOf(int64_t n) { return n <= 32 ? 8 : 32; }
/// Where n > panel columns are cut in two: at a multiple of the panel, so that parts are alike.
inline int64_t halfOf(int64_t n, int64_t panel) { return ((n + panel - 1) / panel + 1) / 2 * panel; }

UOpRef transposed(Composer &b, UOpRef x);
/// The conjugate of that; of real matrices the same.
UOpRef adjoint(Composer &b, UOpRef x);
UOpRef block(Composer &b, UOpRef x, int64_t row, int64_t rows, int64_t column, int64_t columns);
/// The product, with the adjoint of an operand where it is said: nothing is moved.
UOpRef times(Composer &b, UOpRef x, UOpRef y, bool turnX = false, bool turnY = false);
/// Numbers of rows [n, 1] and columns [n].
UOpRef rowNumbers(Composer &b, int64_t n);
UOpRef columnNumbers(Composer &b, int64_t n);
/// The identity [count, n, n].
UOpRef identity(Composer &b, UOpRef count, int64_t n, DType t);
/// On and above (below) diagonal number `offset`; the rest 0.
UOpRef upperPart(Composer &b, UOpRef x, int64_t offset = 0);
UOpRef lowerPart(Composer &b, UOpRef x, int64_t offset = 0);
/// The diagonal [count, min(m, n)].
UOpRef diagonalOf(Composer &b, UOpRef x);
/// Column (row) j, data, of [count, m, n].
inline UOpRef columnAt(Composer &b, UOpRef x, UOpRef j) { return b.make(Op::Gather, {x, j}, {2}); }
inline UOpRef rowAt(Composer &b, UOpRef x, UOpRef j) { return b.make(Op::Gather, {x, j}, {1}); }
/// Rows of x [count, m, n] in the order [count, k] of each matrix.
UOpRef rowsInOrder(Composer &b, UOpRef x, UOpRef order);
/// Columns likewise.
UOpRef columnsInOrder(Composer &b, UOpRef x, UOpRef order);
/// The exponent of the greatest magnitude along the last axes, i32 [count]; x * 2^-exponent is below 2. 0 of zeros.
UOpRef exponentOf(Composer &b, UOpRef magnitude);
UOpRef scaled(Composer &b, UOpRef x, UOpRef exponent, bool up);
/// x * 2^-exponent, which broadcasts to x.
UOpRef scaledEach(Composer &b, UOpRef x, UOpRef exponent);
/// Both parts of a complex number.
UOpRef quietNaN(Composer &b, DType t);
/// That of the parts of a complex type.
double epsilonOf(DType t);

/// A scalar of the type of x, complex ones too.
inline UOpRef number(Composer &b, UOpRef x, double value) { return x ? b.b.lit(x->dtype, value) : nullptr; }
inline UOpRef isNumber(Composer &b, UOpRef x, double value) { return b.bin(Op::Eq, x, number(b, x, value)); }
// Of real and complex numbers alike; of real ones no op more than the meaning says.
/// z - x y, rounded once of real numbers. x and y are broadcast to z.
UOpRef minusProduct(Composer &b, UOpRef z, UOpRef x, UOpRef y);
/// |x|^2, which may overflow; the magnitudes of both parts, the greater one: neither needs a root.
UOpRef squared(Composer &b, UOpRef x);
UOpRef greaterPart(Composer &b, UOpRef x);
/// x times, and over, real numbers, part by part.
UOpRef timesReal(Composer &b, UOpRef x, UOpRef real);
UOpRef overReal(Composer &b, UOpRef x, UOpRef real);
/// A real number in the type of x.
UOpRef likewise(Composer &b, UOpRef real, UOpRef x);
/// Half of x.
inline UOpRef halved(Composer &b, UOpRef x) { return b.bin(Op::Mul, x, number(b, x, 0.5)); }
/// x / |x|, and 1 of 0; of real numbers 1 or -1.
UOpRef directionOf(Composer &b, UOpRef x);

/// x of l x = y, l lower triangular.
UOpRef forwardSolve(Composer &b, UOpRef l, UOpRef y, bool unit, int64_t panel);
/// The same with derivatives by a rule, `order` times; it is `triangularSolve` on matrices of one batch.
UOpRef solveTriangular(Composer &b, UOpRef a, UOpRef y, const TriangularOptions &options, int order = 2);

/// Factors of one batch; of Cholesky by the lower triangle, what stands above the diagonal is not read.
Cholesky factorCholesky(Composer &b, UOpRef x, int64_t panel);
LU factorLU(Composer &b, UOpRef x, int64_t panel);
QR factorQR(Composer &b, UOpRef x, bool complete);

/// The reflection I - tau v v' that turns column elements from number `head`, data, on into (beta, 0, ..): v is 1 at
/// `head` and 0 before it. Its adjoint is what turns; tau is 0 where there is nothing to turn. A column is scaled by a
/// power of two before it is squared: nothing overflows or underflows on the way.
struct Reflection {
  UOpRef vector = nullptr; // [count, m]
  UOpRef tau = nullptr;    // [count, 1]
  UOpRef beta = nullptr;   // [count, 1], real
};
Reflection reflectionOf(Composer &b, UOpRef column, UOpRef head);

/// The product of the reflections with these vectors below the diagonal [count, m, k] and factors [count, k], times y.
UOpRef reflected(Composer &b, UOpRef vectors, UOpRef factors, UOpRef y);

/// Eigenvalues of symmetric or Hermitian matrices whose greatest magnitude is below 2, and vectors in rows, conjugated:
/// by rotations, in no order; by tridiagonal form and halves, ascending.
struct EigenPairs {
  UOpRef values = nullptr, rows = nullptr, info = nullptr; // [count, n], [count, n, n], i64 [count]
};
EigenPairs eigenByRotations(Composer &b, UOpRef x);
EigenPairs eigenByHalves(Composer &b, UOpRef x);

/// Singular values, descending, and vectors of square matrices, by the polar form: u in columns, v' in rows.
struct SingularParts {
  UOpRef u = nullptr, s = nullptr, v = nullptr, info = nullptr;
};
SingularParts singularByPolar(Composer &b, UOpRef x, bool vectors);

/// The cotangent of vectors in columns [count, n, k] before each was multiplied by a direction that makes its greatest
/// component real; `along` [count, 1, k] is the imaginary part of what directions give: that goes to this component.
UOpRef beforeDirections(Composer &b, UOpRef vectors, UOpRef g, UOpRef along);
/// The imaginary part of each column of x times the conjugate of the one of y, summed. [count, 1, k]
UOpRef imaginaryProduct(Composer &b, UOpRef x, UOpRef y);

/// Whether all elements are finite, and the exponent of the greatest magnitude. [count]
struct Scale {
  UOpRef finite = nullptr, exponent = nullptr;
};
Scale scaleOf(Composer &b, UOpRef x);
/// x [count, ..] where `finite`, else NaN.
UOpRef orNaN(Composer &b, UOpRef finite, UOpRef x);

/// f of batches, a part at a time that stays in the second cache, where the batch is constant and large; a step of a
/// loop passes over all of its batch. f sees nothing but what it is given. The first axis of all is the batch.
std::vector<UOpRef> inParts(Composer &b, llvm::ArrayRef<UOpRef> batches,
                            llvm::function_ref<std::vector<UOpRef>(llvm::ArrayRef<UOpRef>)> f);

} // namespace astra::compose::linalg
