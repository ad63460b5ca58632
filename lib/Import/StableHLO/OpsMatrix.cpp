//===- OpsMatrix.cpp: factorizations of matrices, and those of LAPACK that JAX calls on a CPU ----===//
// Takes:    real matrices; of a call of LAPACK its options, which are letters.
// Gives:    composites of linear algebra (docs/linalg.md). `info` is 0 where a factorization succeeded.
// Keeps:    numbers of rows count from 1 in what LAPACK gives, from 0 in the composites.
// Does not: complex matrices, eigenvalues of matrices that are not symmetric, tridiagonal forms.
#include "Lowering.h"
#include "astra/Compose/Linalg.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::stablehlo {

namespace {

void choleskyOp(Statement &s) {
  bool lower = s.boolAttr("lower", false);
  UOpRef x = s.in(0);
  if (!s.b.failed()) s.give(cholesky(s.b, x, !lower).factor);
}

void triangularSolveOp(Statement &s) {
  compose::TriangularOptions o;
  o.right = !s.boolAttr("left_side", true);
  o.upper = !s.boolAttr("lower", false);
  o.unit = s.boolAttr("unit_diagonal", false);
  std::string turned = s.word("transpose_a", "NO_TRANSPOSE");
  o.transposed = turned == "TRANSPOSE" || turned == "ADJOINT";
  UOpRef a = s.in(0), y = s.in(1);
  if (!s.b.failed()) s.give(triangularSolve(s.b, a, y, o));
}

// ---- calls of LAPACK

/// An option of a call, a letter; 0 where it has none of this name.
char letter(Statement &s, llvm::StringRef name) {
  const Attribute *a = s.op.find("mhlo.backend_config");
  if (a && a->kind == Attribute::Kind::Dictionary)
    for (const NamedAttribute &f : a->fields)
      if (f.name == name && f.value.kind == Attribute::Kind::Int) return char(f.value.integer);
  s.fail("a call of LAPACK needs its option '" + name + "' in mhlo.backend_config");
  return 0;
}

/// Results of a call, as many as it has; integers become the type that the text says.
void giveAll(Statement &s, llvm::ArrayRef<UOpRef> xs) {
  if (!s.b.failed() && s.outputs.size() != xs.size())
    s.fail("the call has " + llvm::Twine(s.outputs.size()) + " results, LAPACK's has " + llvm::Twine(xs.size()));
  for (unsigned i = 0; i < xs.size() && !s.b.failed(); ++i)
    s.give(i, isInt(s.resultDType(i)) ? s.b.cast(xs[i], s.resultDType(i)) : xs[i]);
}
/// What a call leaves open, of the shape that the text says.
UOpRef zeros(Statement &s, unsigned i) {
  Dims dims = s.b.failed() ? Dims() : s.resultDims(i);
  return s.b.failed() ? nullptr : s.b.broadcastTo(s.b.literal(s.in(0), 0), dims);
}

void potrf(Statement &s) {
  char uplo = letter(s, "uplo");
  UOpRef x = s.in(0);
  if (s.b.failed()) return;
  compose::Cholesky c = cholesky(s.b, x, uplo == 'U');
  giveAll(s, {c.factor, c.info});
}

void trsm(Statement &s) {
  compose::TriangularOptions o;
  o.right = letter(s, "side") == 'R';
  o.upper = letter(s, "uplo") == 'U';
  o.transposed = letter(s, "trans_x") != 'N';
  o.unit = letter(s, "diag") == 'U';
  UOpRef a = s.in(0), y = s.in(1);
  if (!s.b.failed()) giveAll(s, {triangularSolve(s.b, a, y, o)});
}

void getrf(Statement &s) {
  UOpRef x = s.in(0);
  if (s.b.failed()) return;
  compose::LU f = luFactor(s.b, x);
  giveAll(s, {f.packed, s.b.bin(Op::Add, f.pivots, s.b.b.litInt(DType::I64, 1)), f.info});
}

void geqrf(Statement &s) {
  UOpRef x = s.in(0);
  if (s.b.failed()) return;
  compose::Reflections r = reflections(s.b, x);
  giveAll(s, {r.packed, r.factors});
}

void orgqr(Statement &s) {
  UOpRef x = s.in(0), factors = s.in(1);
  if (!s.b.failed()) giveAll(s, {productOfReflections(s.b, x, factors)});
}

void syevd(Statement &s) {
  char mode = letter(s, "mode"), uplo = letter(s, "uplo");
  UOpRef x = s.in(0);
  if (s.b.failed()) return;
  if (mode == 'N') {
    UOpRef values = eigvalsh(s.b, x, uplo == 'U');
    return giveAll(s, {x, values, zeros(s, 2)});
  }
  compose::Eigen e = eigh(s.b, x, uplo == 'U');
  giveAll(s, {e.vectors, e.values, e.info});
}

void gesdd(Statement &s) {
  char mode = letter(s, "mode");
  UOpRef x = s.in(0);
  if (s.b.failed()) return;
  if (mode == 'N') {
    UOpRef values = svdvals(s.b, x);
    return giveAll(s, {x, values, zeros(s, 2), zeros(s, 3), zeros(s, 4)});
  }
  compose::SVD f = svd(s.b, x, mode == 'A');
  giveAll(s, {x, f.s, f.u, f.vh, f.info});
}

struct Routine {
  const char *name; // behind "lapack_" and the letter of the type
  void (*lower)(Statement &);
  unsigned operands;
};
constexpr Routine routines[] = {{"potrf", potrf, 1}, {"trsm", trsm, 2},   {"getrf", getrf, 1}, {"geqrf", geqrf, 1},
                                {"orgqr", orgqr, 2}, {"syevd", syevd, 1}, {"gesdd", gesdd, 1}};

const Row rows[] = {
    {"stablehlo.cholesky", choleskyOp, "real matrices; the other triangle is 0; NaN where one is not positive definite",
     1, 1},
    {"stablehlo.triangular_solve", triangularSolveOp, "real matrices", 2, 2},
};

} // namespace

void lapackCall(Statement &s, llvm::StringRef target) {
  llvm::StringRef name = target;
  if (!name.consume_front("lapack_") || !name.consume_back("_ffi") || name.size() < 2)
    return void(
        s.unsupported("the target '" + target + "' is not supported: calls of LAPACK are lapack_<type><name>_ffi"));
  if (name.front() != 's' && name.front() != 'd')
    return void(s.unsupported("the target '" + target + "' is not supported: matrices of complex numbers"));
  for (const Routine &r : routines) {
    if (name.drop_front() != r.name) continue;
    if (s.numInputs() != r.operands)
      return void(
          s.fail("the call has " + llvm::Twine(s.numInputs()) + " operands, expected " + llvm::Twine(r.operands)));
    return r.lower(s);
  }
  s.unsupported("the target '" + target +
                "' is not supported: of LAPACK there are potrf, trsm, getrf, geqrf, orgqr, syevd and gesdd");
}

llvm::ArrayRef<Row> matrixRows() { return rows; }

} // namespace astra::stablehlo
