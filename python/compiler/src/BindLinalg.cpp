//===- BindLinalg.cpp: linear algebra and Fourier transforms ----------------===//
// Gives:    one function per composite of Linalg.h and Fourier.h, its Graph first; a result that says where it failed
//           gives that last.
#include "Bind.h"
#include "astra/Compose/Fourier.h"
#include "astra/Compose/Linalg.h"

using namespace astra;
using namespace astra::compose;
using namespace astra::python;
using namespace nb::literals;

static void bindFactors(nb::module_ &m) {
  m.def("triangular_solve",
        guarded([](Graph &g, UOpRef a, UOpRef y, bool right, bool upper, bool transposed, bool unit) {
          return triangularSolve(g, a, y, {right, upper, transposed, unit});
        }),
        inside);
  m.def("cholesky", guarded([](Graph &g, UOpRef x, bool upper) {
          Cholesky f = cholesky(g, x, upper);
          return std::tuple(f.factor, f.info);
        }),
        inside);
  m.def("lu_factor", guarded([](Graph &g, UOpRef x) {
          LU f = luFactor(g, x);
          return std::tuple(f.packed, f.pivots, f.order, f.info);
        }),
        inside);
  m.def("lu", guarded([](Graph &g, UOpRef x) {
          PermutedLU f = lu(g, x);
          return std::tuple(f.p, f.l, f.u, f.info);
        }),
        inside);
  m.def("qr", guarded([](Graph &g, UOpRef x, bool complete) {
          QR f = qr(g, x, complete);
          return std::tuple(f.q, f.r);
        }),
        inside);
  m.def("solve", guarded([](Graph &g, UOpRef a, UOpRef y) {
          Solution s = solve(g, a, y);
          return std::tuple(s.value, s.info);
        }),
        inside);
  m.def("inverse", guarded([](Graph &g, UOpRef a) {
          Solution s = inverse(g, a);
          return std::tuple(s.value, s.info);
        }),
        inside);
  m.def("lu_solve", checked(&luSolve), inside);
  m.def("order_of_pivots", checked(&orderOfPivots), inside);
  m.def("cholesky_solve", checked(&choleskySolve), inside);
  m.def("least_squares", guarded([](Graph &g, UOpRef a, UOpRef y, std::optional<double> tolerance) {
          LeastSquares s = leastSquares(g, a, y, tolerance);
          return std::tuple(s.value, s.residual, s.rank, s.singular, s.info);
        }),
        "g"_a, "a"_a, "y"_a, "tolerance"_a.none(), inside);
  m.def("log_determinant", guarded([](Graph &g, UOpRef x) {
          LogDeterminant d = logDeterminant(g, x);
          return std::tuple(d.sign, d.logarithm);
        }),
        inside);
  m.def("matrix_power", checked(&matrixPower), inside);
  m.def("matrix_exp", checked(&matrixExp), inside);
  m.def("eigh", guarded([](Graph &g, UOpRef x, bool upper) {
          Eigen e = eigh(g, x, upper);
          return std::tuple(e.values, e.vectors, e.info);
        }),
        inside);
  m.def("eig", guarded([](Graph &g, UOpRef x) {
          GeneralEigen e = eig(g, x);
          return std::tuple(e.values, e.vectors, e.info);
        }),
        inside);
  m.def("eigvals", guarded([](Graph &g, UOpRef x) {
          GeneralEigen e = eig(g, x, false);
          return std::tuple(e.values, e.info);
        }),
        inside);
  m.def("eigvalsh", checked(&eigvalsh), inside);
  m.def("svd", guarded([](Graph &g, UOpRef x, bool full) {
          SVD f = svd(g, x, full);
          return std::tuple(f.u, f.s, f.vh, f.info);
        }),
        inside);
  m.def("svdvals", checked(&svdvals), inside);
  m.def("pinv", checked(&pinv), "g"_a, "x"_a, "tolerance"_a.none(), inside);
  m.def("matrix_rank", checked(&matrixRank), "g"_a, "x"_a, "tolerance"_a.none(), inside);
  m.def("pinv_within", checked(&pinvWithin), inside);
  m.def("matrix_rank_within", checked(&matrixRankWithin), inside);
}

static void bindNorms(nb::module_ &m) {
  m.def("matrix_norm", guarded([](Graph &g, UOpRef x, std::string kind, bool keep) {
          using N = MatrixNorm;
          N norm = named<N>(kind,
                            {{"fro", N::Frobenius},
                             {"nuc", N::Nuclear},
                             {"2", N::Spectral},
                             {"-2", N::LeastSingular},
                             {"1", N::One},
                             {"-1", N::LeastOne},
                             {"inf", N::Infinity},
                             {"-inf", N::LeastInfinity}},
                            "norm of matrices");
          return matrixNorm(g, x, norm, keep);
        }),
        inside);
  m.def("vector_norm", checked(&vectorNorm), inside);
  m.def("outer", checked(&outer), inside);
  m.def("vecdot", checked(&vecdot), inside);
  m.def("tensordot", checked(&tensordot), inside);
  m.def("cross", checked(&cross), inside);
  m.def("kron", checked(&kron), inside);
  m.def("diagonal", checked(&diagonal), inside);
  m.def("trace", checked(&trace), inside);
}

static FourierNorm normOf(const std::string &name) {
  using N = FourierNorm;
  return named<N>(name, {{"backward", N::Backward}, {"forward", N::Forward}, {"ortho", N::Orthogonal}},
                  "norm of transforms");
}

static void bindFourier(nb::module_ &m) {
  using OfAxis = UOpRef (*)(Composer &, UOpRef, const FourierAxis &);
  static const std::pair<const char *, OfAxis> ofAxis[] = {{"fft", fft},     {"ifft", ifft}, {"rfft", rfft},
                                                           {"irfft", irfft}, {"hfft", hfft}, {"ihfft", ihfft}};
  for (auto [name, f] : ofAxis)
    m.def(name, guarded([f = f](Graph &g, UOpRef x, int64_t axis, UOpRef length, std::string norm) {
            return f(g, x, {axis, length, normOf(norm)});
          }),
          "g"_a, "x"_a, "axis"_a, "length"_a.none(), "norm"_a, inside);
  using OfAxes = UOpRef (*)(Composer &, UOpRef, const FourierAxes &);
  static const std::pair<const char *, OfAxes> ofAxes[] = {
      {"fftn", fftn}, {"ifftn", ifftn}, {"rfftn", rfftn}, {"irfftn", irfftn}};
  for (auto [name, f] : ofAxes)
    m.def(name, guarded([f = f](Graph &g, UOpRef x, Numbers axes, Nodes lengths, std::string norm) {
            return f(g, x, {Ints(axes.begin(), axes.end()), Dims(lengths.begin(), lengths.end()), normOf(norm)});
          }),
          inside);
  m.def("fftfreq", checked(&fftfreq), inside);
  m.def("rfftfreq", checked(&rfftfreq), inside);
  m.def("fftshift", checked(&fftshift), inside);
  m.def("ifftshift", checked(&ifftshift), inside);
}

void python::bindLinalg(nb::module_ &m) {
  bindFactors(m);
  bindNorms(m);
  bindFourier(m);
}
