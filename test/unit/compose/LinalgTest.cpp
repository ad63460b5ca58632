//===- LinalgTest.cpp: linear algebra and Fourier transforms ---------------===//
// Keeps:    expected numbers were worked out by hand; residuals, bytes of machines and gradients are test/linalg's.
#include "astra/Compose/Linalg.h"
#include "Compose.h"
#include "astra/Compose/Fourier.h"
#include "astra/Compose/Matrix.h"

namespace astra::compose {
namespace {

class Linalg : public testing::Test {
protected:
  Context c;
  Composer b{c};
  UOpRef matrix(std::vector<int64_t> dims, std::vector<double> v, DType t = DType::F64) {
    return tensor(b, std::move(dims), std::move(v), t);
  }
  static constexpr double infinity = std::numeric_limits<double>::infinity();
};

TEST_F(Linalg, Cholesky) {
  UOpRef x = matrix({2, 2, 2}, {4, 99, 2, 10, 1, 99, 2, 3}); // the second is not positive definite
  Cholesky made = cholesky(b, x);
  std::vector<double> factor = valuesOf(b, made.factor);
  EXPECT_EQ((std::vector<double>(factor.begin(), factor.begin() + 4)), (std::vector<double>{2, 0, 1, 3}));
  EXPECT_TRUE(std::isnan(factor[4]) && std::isnan(factor[7]));
  expectValues(b, made.info, {2}, {0, 2});
  expectValues(b, cholesky(b, matrix({2, 2}, {4, 2, 99, 10}), true).factor, {2, 2}, {2, 1, 0, 3});
  UOpRef half = cholesky(b, matrix({1, 1}, {9}, DType::F16)).factor;
  EXPECT_EQ(half->dtype, DType::F16);
  expectValues(b, half, {1, 1}, {3});
}

TEST_F(Linalg, LU) {
  LU f = luFactor(b, matrix({3, 3}, {1, 2, 4, 2, 4, 4, -2, 0, 2})); // of 2 and -2 the first is the pivot
  expectValues(b, f.packed, {3, 3}, {2, 4, 4, -1, 4, 6, 0.5, 0, 2});
  expectValues(b, f.pivots, {3}, {1, 2, 2});
  expectValues(b, f.order, {3}, {1, 2, 0});
  expectValues(b, f.info, {}, {0});
  PermutedLU wide = lu(b, matrix({2, 3}, {1, 2, 3, 2, 0, 4}));
  expectValues(b, wide.p, {2, 2}, {0, 1, 1, 0});
  expectValues(b, wide.l, {2, 2}, {1, 0, 0.5, 1});
  expectValues(b, wide.u, {2, 3}, {2, 0, 4, 0, 2, 1});
  PermutedLU tall = lu(b, matrix({3, 1}, {1, 4, 2}));
  expectValues(b, tall.p, {3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 1});
  expectValues(b, tall.l, {3, 1}, {1, 0.25, 0.5});
  expectValues(b, luFactor(b, matrix({2, 2, 2}, {0, 0, 0, 0, 1, 2, 2, 4})).info, {2}, {1, 2});
}

TEST_F(Linalg, QR) {
  QR f = qr(b, matrix({2, 2}, {3, 1, 4, 2}));
  expectValues(b, f.q, {2, 2}, {-0.6, -0.8, -0.8, 0.6});
  expectValues(b, f.r, {2, 2}, {-5, -2.2, 0, 0.4});
  QR whole = qr(b, matrix({2, 1}, {0, 2}), true);
  expectValues(b, whole.q, {2, 2}, {0, -1, -1, 0});
  expectValues(b, whole.r, {2, 1}, {-2, 0});
  QR zeros = qr(b, matrix({2, 2}, {0, 0, 0, 0}));
  expectValues(b, zeros.q, {2, 2}, {1, 0, 0, 1});
}

TEST_F(Linalg, Reflections) {
  Reflections f = reflections(b, matrix({2, 2}, {3, 1, 4, 2}));
  expectValues(b, f.packed, {2, 2}, {-5, -2.2, 0.5, 0.4});
  expectValues(b, f.factors, {2}, {1.6, 0});
  expectValues(b, productOfReflections(b, f.packed, f.factors), {2, 2}, {-0.6, -0.8, -0.8, 0.6});
  // a vector below a factor of 0 is none; fewer reflections than columns
  UOpRef packed = matrix({1, 2, 2}, {9, 9, 7, 9});
  expectValues(b, productOfReflections(b, packed, matrix({1, 1}, {0})), {1, 2, 2}, {1, 0, 0, 1});
  expectRefusal(b, productOfReflections(b, matrix({1, 2}, {1, 2}), matrix({1}, {1})),
                "factors of reflections must be [.., k] beside matrices [.., m, n] with k <= n <= m");
}

TEST_F(Linalg, Systems) {
  UOpRef low = matrix({2, 2}, {2, 99, 1, 4}), y = matrix({2, 1}, {2, 9});
  expectValues(b, triangularSolve(b, low, y), {2, 1}, {1, 2});
  TriangularOptions o;
  o.transposed = true;
  expectValues(b, triangularSolve(b, low, y, o), {2, 1}, {-0.125, 2.25});
  o.unit = true;
  expectValues(b, triangularSolve(b, low, y, o), {2, 1}, {-7, 9});
  o = {};
  o.right = true;
  expectValues(b, triangularSolve(b, low, matrix({1, 2}, {2, 8}), o), {1, 2}, {0, 2});
  o.upper = true;
  expectValues(b, triangularSolve(b, matrix({2, 2}, {2, 1, 99, 4}), matrix({1, 2}, {2, 9}), o), {1, 2}, {1, 2});
  expectValues(b, solve(b, matrix({2, 2}, {0, 2, 4, 0}), matrix({2, 1}, {2, 8})).value, {2, 1}, {2, 1});
  expectValues(b, solve(b, matrix({2, 2}, {1, 1, 1, 1}), y).info, {}, {2});
  expectValues(b, inverse(b, matrix({2, 2}, {0, 2, 4, 0})).value, {2, 2}, {0, 0.25, 0.5, 0});
  LogDeterminant d = logDeterminant(b, matrix({2, 2, 2}, {0, 2, 4, 0, 1, 1, 1, 1}));
  expectValues(b, d.sign, {2}, {-1, 0});
  expectValues(b, d.logarithm, {2}, {std::log(8.0), -infinity});
  expectValues(b, matrixPower(b, matrix({2, 2}, {1, 1, 0, 1}), 5), {2, 2}, {1, 5, 0, 1});
  expectValues(b, matrixPower(b, matrix({2, 2}, {1, 1, 0, 1}), -3), {2, 2}, {1, -3, 0, 1});
  expectValues(b, matrixExp(b, matrix({2, 2}, {0, 20, 0, 0})), {2, 2}, {1, 20, 0, 1});
}

TEST_F(Linalg, LargeDeterminant) { // 2 on the diagonal, of which two rows are exchanged
  std::vector<double> v(66 * 66);
  for (int64_t i = 0; i < 66; ++i) v[i * 66 + (i == 3 ? 60 : i == 60 ? 3 : i)] = i < 2 ? 2 : 1;
  expectValues(b, determinant(b, matrix({66, 66}, v)), {}, {-4});
}

TEST_F(Linalg, Eigenvalues) {
  Eigen e = eigh(b, matrix({2, 2, 2}, {0, 99, 2, 3, 3, 99, 0, -1}));
  expectValues(b, e.values, {2, 2}, {-1, 4, -1, 3});
  double one = 1 / std::sqrt(5.0), two = 2 * one;
  expectValues(b, e.vectors, {2, 2, 2}, {two, one, -one, two, 0, 1, 1, 0});
  expectValues(b, e.info, {2}, {0, 0});
  expectValues(b, eigvalsh(b, matrix({2, 2}, {0, 2, 99, 0}), true), {2}, {-2, 2});
}

TEST_F(Linalg, SingularValues) {
  SVD d = svd(b, matrix({2, 3}, {0, 3, 0, -4, 0, 0}), true);
  expectValues(b, d.s, {2}, {4, 3});
  expectValues(b, d.u, {2, 2}, {0, 1, 1, 0});
  std::vector<double> v = valuesOf(b, d.vh);
  EXPECT_NEAR(v[0], -1, 1e-15);
  EXPECT_NEAR(v[4], 1, 1e-15);
  EXPECT_NEAR(std::abs(v[8]), 1, 1e-15);
  expectValues(b, svd(b, matrix({2, 2}, {0, 0, 0, 0})).u, {2, 2}, {1, 0, 0, 1});
  expectValues(b, svdvals(b, matrix({2, 1}, {3, 4})), {1}, {5});
  expectValues(b, pinv(b, matrix({2, 3}, {0, 2, 0, 0, 0, 0})), {3, 2}, {0, 0, 0.5, 0, 0, 0});
  expectValues(b, matrixRank(b, matrix({2, 2, 2}, {1, 2, 2, 4, 1, 0, 0, 1})), {2}, {1, 2});
  expectValues(b, matrixRank(b, matrix({2, 2}, {1, 0, 0, 0.25}), 0.5), {}, {1});
  UOpRef twice = matrix({2, 2, 2}, {1, 0, 0, 0.25, 1, 0, 0, 0.25}), within = tensor(b, {2}, {0.5, 0.1});
  expectValues(b, matrixRankWithin(b, twice, within), {2}, {1, 2});
  expectValues(b, pinvWithin(b, twice, within), {2, 2, 2}, {1, 0, 0, 0, 1, 0, 0, 4});
}

TEST_F(Linalg, Norms) {
  UOpRef x = matrix({2, 2}, {3, 0, 0, -4});
  expectValues(b, matrixNorm(b, x, MatrixNorm::Frobenius), {}, {5});
  expectValues(b, matrixNorm(b, x, MatrixNorm::Nuclear), {}, {7});
  expectValues(b, matrixNorm(b, x, MatrixNorm::Spectral, true), {1, 1}, {4});
  expectValues(b, matrixNorm(b, x, MatrixNorm::LeastSingular), {}, {3});
  expectValues(b, matrixNorm(b, matrix({2, 2}, {1, 2, 3, 5}), MatrixNorm::One), {}, {7});
  expectValues(b, matrixNorm(b, matrix({2, 2}, {1, 2, 3, 5}), MatrixNorm::Infinity), {}, {8});
  std::vector<double> huge = valuesOf(b, vectorNorm(b, matrix({2}, {3e300, 4e300}), {0}));
  ASSERT_EQ(huge.size(), 1u);
  EXPECT_NEAR(huge[0] / 5e300, 1, 1e-15);
  expectValues(b, vectorNorm(b, matrix({3}, {3, -4, 0}), {0}, 0), {}, {2});
  expectValues(b, vectorNorm(b, matrix({3}, {3, -4, 0}), {0}, -infinity, true), {1}, {0});
  expectRefusal(b, vectorNorm(b, x, {0}, std::nan("")), "the order of a norm is not a number");
}

TEST_F(Linalg, Products) {
  UOpRef x = matrix({3}, {1, 2, 3}), y = matrix({3}, {4, 5, 6}), m = matrix({2, 3}, {1, 2, 3, 4, 5, 6});
  expectValues(b, outer(b, x, matrix({2}, {1, 10})), {3, 2}, {1, 10, 2, 20, 3, 30});
  expectValues(b, vecdot(b, m, x), {2}, {14, 32});
  expectValues(b, vecdot(b, m, matrix({2, 1, 3}, {1, 0, 0, 0, 1, 0})), {2, 2}, {1, 4, 2, 5});
  expectValues(b, vecdot(b, m, m, 0), {3}, {17, 29, 45});
  expectValues(b, cross(b, x, y), {3}, {-3, 6, -3});
  expectValues(b, tensordot(b, m, m, {0}, {0}), {3, 3}, {17, 22, 27, 22, 29, 36, 27, 36, 45});
  expectValues(b, tensordot(b, m, m, {0, 1}, {0, 1}), {}, {91});
  expectValues(b, tensordot(b, x, matrix({1}, {2}), {}, {}), {3, 1}, {2, 4, 6});
  expectValues(b, kron(b, matrix({1, 2}, {1, 10}), m), {2, 6}, {1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60});
  expectValues(b, diagonal(b, m, 1), {2}, {2, 6});
  expectValues(b, diagonal(b, m, -1), {1}, {4});
  expectValues(b, diagonal(b, m, 7), {0}, {});
  expectValues(b, trace(b, m), {}, {6});
  expectRefusal(b, cross(b, x, matrix({1}, {2}), 1), "axis 1 is outside rank 1");
  expectRefusal(b, cross(b, m, m, 0), "a cross product along an axis of extent [2], expected 3");
  expectRefusal(b, vecdot(b, m, matrix({1}, {2})), "extents 3 and 1 of the axes that are summed are not equal");
  expectRefusal(b, tensordot(b, m, x, {0}, {0}), "extents 2 and 3 of the axes that are summed are not equal");
}

TEST_F(Linalg, Refusals) {
  UOpRef x = matrix({2, 3}, {1, 2, 3, 4, 5, 6});
  expectRefusal(b, cholesky(b, x).factor, "the matrices [2, 3] are not square");
  expectRefusal(b, eigh(b, matrix({2}, {1, 2})).values, "the operand f64[2] has rank 1, expected 2 or more");
  expectRefusal(b, solve(b, matrix({2, 2}, {1, 0, 0, 1}), matrix({3, 1}, {1, 2, 3})).value,
                "extents 2 and 3 of the matrices and the right sides are not equal");
  expectRefusal(b, triangularSolve(b, matrix({2, 2}, {1, 0, 0, 1}), matrix({2, 1}, {1, 2}, DType::F32)),
                "the matrices are of type f64, the right sides of type f32");
  expectRefusal(b, qr(b, tensor(b, {2, 2}, {1, 2, 3, 4}, DType::I64)).q,
                "the operand is of type i64, expected a float type");
  UOpRef n = b.b.dim("n", 1, 8), any = b.b.arg(0, DType::F32, {n, n});
  expectRefusal(b, lu(b, any).l, "the number of rows must be a constant, found n", std::errc::not_supported);
  UOpRef large = b.b.arg(0, DType::F32, {b.idx(1025), b.idx(2)});
  expectRefusal(b, svdvals(b, large), "matrices of extent 1025 are not supported, only up to 1024",
                std::errc::not_supported);
  expectRefusal(b, inverse(b, b.b.arg(0, DType::F32, {b.idx(0), b.idx(0)})).value,
                "the matrices [0, 0] have no elements");
}

TEST_F(Linalg, EigenvaluesOfGeneralMatrices) {
  // A rotation has i and -i; a triangle its diagonal; what is not finite is NaN and has an info.
  UOpRef x = matrix({3, 2, 2}, {0, -1, 1, 0, 2, 1, 0, 3, std::nan(""), 0, 0, 1});
  GeneralEigen e = eig(b, x);
  EXPECT_EQ(e.values->dtype, DType::C128);
  EXPECT_EQ(valuesOf(b, e.info), (std::vector<double>{0, 0, 1}));
  UOpRef first = b.part(e.values, 0, 0, 2);
  UOpRef sum = b.reduce(ReduceKind::Sum, first, {1}),
         product = b.bin(Op::Mul, b.part(first, 1, 0, 1), b.part(first, 1, 1, 1));
  expectValues(b, b.un(Op::Real, sum), {2, 1}, {0, 5});
  expectValues(b, b.un(Op::Imag, sum), {2, 1}, {0, 0});
  expectValues(b, b.un(Op::Real, product), {2, 1}, {1, 6});
  expectValues(b, b.un(Op::Abs, b.un(Op::Imag, first)), {2, 2}, {1, 1, 0, 0});
  EXPECT_EQ(eig(b, x, false).vectors, nullptr);
  expectRefusal(b, eig(b, matrix({1, 2}, {1, 2})).values, "the matrices [1, 2] are not square");
}

TEST_F(Linalg, ComplexMatrices) {
  auto complex = [&](llvm::ArrayRef<int64_t> dims, const std::vector<double> &re, const std::vector<double> &im) {
    return b.make(Op::Complex, {matrix(dims, re), matrix(dims, im)});
  };
  UOpRef h = complex({2, 2}, {2, 0, 0, 2}, {0, -1, 1, 0}); // eigenvalues 1 and 3
  Eigen e = eigh(b, h);
  EXPECT_EQ(e.values->dtype, DType::F64);
  expectValues(b, e.values, {2}, {1, 3});
  Cholesky f = cholesky(b, h);
  expectValues(b, b.un(Op::Real, f.factor), {2, 2}, {1.414213562, 0, 0, 1.224744871});
  expectValues(b, b.un(Op::Imag, f.factor), {2, 2}, {0, 0, 0.707106781, 0});
  expectValues(b, svdvals(b, complex({1, 2}, {3, 0}, {0, 4})), {1}, {5});
  UOpRef x = choleskySolve(b, f.factor, complex({2, 1}, {2, 0}, {0, 1})); // h (1, 0)
  expectValues(b, b.un(Op::Real, x), {2, 1}, {1, 0});
  EXPECT_EQ(valuesOf(b, cholesky(b, complex({1, 1}, {-1}, {0})).info), (std::vector<double>{1}));
}

TEST_F(Linalg, LeastSquares) {
  LeastSquares s = leastSquares(b, matrix({3, 2}, {1, 0, 0, 2, 0, 0}), matrix({3, 1}, {1, 4, 3}));
  expectValues(b, s.value, {2, 1}, {1, 2});
  expectValues(b, s.residual, {1}, {9});
  EXPECT_EQ(valuesOf(b, s.rank), (std::vector<double>{2}));
  expectRefusal(b, leastSquares(b, matrix({2, 1}, {1, 2}), matrix({3, 1}, {1, 2, 3})).value,
                "extents 2 and 3 of the matrices and the right sides are not equal");
  UOpRef pivots = b.cast(matrix({2}, {1, 2}), DType::I64);
  EXPECT_EQ(valuesOf(b, orderOfPivots(b, pivots, 3)), (std::vector<double>{1, 2, 0}));
}

TEST_F(Linalg, Fourier) {
  UOpRef x = matrix({4}, {1, 2, 3, 4});
  auto re = [&](UOpRef v) { return b.un(Op::Real, v); };
  auto im = [&](UOpRef v) { return b.un(Op::Imag, v); };
  EXPECT_EQ(fft(b, x)->dtype, DType::C128);
  expectValues(b, re(fft(b, x)), {4}, {10, -2, -2, -2});
  expectValues(b, im(fft(b, x)), {4}, {0, 2, 0, -2});
  expectValues(b, re(ifft(b, fft(b, x))), {4}, {1, 2, 3, 4});
  expectValues(b, re(fft(b, x, {-1, b.idx(2), FourierNorm::Forward})), {2}, {1.5, -0.5});
  expectValues(b, re(rfft(b, x, {0, nullptr, FourierNorm::Orthogonal})), {3}, {5, -1, -1});
  expectValues(b, irfft(b, rfft(b, x)), {4}, {1, 2, 3, 4});
  expectValues(b, hfft(b, ihfft(b, x)), {4}, {1, 2, 3, 4});
  UOpRef m = matrix({2, 2}, {1, 2, 3, 4});
  expectValues(b, re(fftn(b, m)), {2, 2}, {10, -2, -4, 0});
  expectValues(b, irfftn(b, rfftn(b, m)), {2, 2}, {1, 2, 3, 4});
  expectValues(b, fftfreq(b, b.idx(5), 0.5, DType::F32), {5}, {0, 0.4, 0.8, -0.8, -0.4});
  expectValues(b, rfftfreq(b, b.idx(4), 1, DType::F32), {3}, {0, 0.25, 0.5});
  expectValues(b, fftshift(b, matrix({3}, {1, 2, 3})), {3}, {3, 1, 2});
  expectValues(b, ifftshift(b, fftshift(b, m)), {2, 2}, {1, 2, 3, 4});
  expectRefusal(b, fft(b, tensor(b, {2}, {1, 2}, DType::I64)),
                "a Fourier transform of type i64, expected f32, f64, complex64 or complex128");
  expectRefusal(b, rfft(b, fft(b, x)), "a one-sided transform of type complex128, expected f32 or f64");
  expectRefusal(b, fftn(b, m, {{0, 0}, {}}), "an axis is named twice");
  expectRefusal(b, fftn(b, m, {{0}, {b.idx(2), b.idx(2)}}), "found 2 lengths for 1 axes");
  expectRefusal(b, fftfreq(b, b.idx(4), 0, DType::F32), "the spacing of the samples is 0 or not a number");
}

} // namespace
} // namespace astra::compose
