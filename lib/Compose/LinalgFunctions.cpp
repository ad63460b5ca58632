//===- LinalgFunctions.cpp: systems, and functions of matrices -----------===//
// Takes:    matrices that may not fit, or be singular.
// Gives:    what Linalg.h says, by the factorizations.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Matrix.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace astra::compose {

using namespace linalg;

// ---- systems

namespace {

/// Matrices and right sides of one type, with one batch: false, and a failure, where they do not fit.
bool fitTogether(Composer &b, UOpRef &a, UOpRef &y, Dims &batch) {
  if (!a || !y || b.failed() || !b.requireRank(a, 2) || !b.requireRank(y, 2)) return false;
  if (a->dtype != y->dtype)
    b.fail(llvm::Twine("the matrices are of type ") + info(a->dtype).text + ", the right sides of type " +
           info(y->dtype).text);
  b.requireEqual(a->shape[a->rank() - 2], y->shape[y->rank() - 2], "the matrices and the right sides");
  batch = b.broadcastShape({a->shape.drop_back(2), y->shape.drop_back(2)});
  Dims full = batch, sides = batch;
  full.append(a->shape.end() - 2, a->shape.end());
  sides.append(y->shape.end() - 2, y->shape.end());
  if (b.failed()) return false;
  a = b.broadcastTo(b.widen(a), full);
  y = b.broadcastTo(b.widen(y), sides);
  return !b.failed();
}

} // namespace

UOpRef luSolve(Composer &b, UOpRef packed, UOpRef order, UOpRef y) {
  Dims batch;
  DType type = y ? y->dtype : DType::Void;
  if (!order || !fitTogether(b, packed, y, batch) || !matricesOf(b, packed, true).x) return nullptr;
  int64_t rows = int64_t(batch.size());
  Dims index = batch;
  index.push_back(packed->shape[rows]);
  order = b.unsqueeze(b.broadcastTo(order, index), {rows + 1});
  if (!order || b.failed()) return nullptr;
  UOpRef x = b.make(Op::Pick, {y, b.broadcastTo(order, y->shape)}, {rows});
  UOpRef isRow = b.bin(Op::And, b.bin(Op::Le, number(b, order, 0), order),
                       b.bin(Op::Lt, order, number(b, order, double(*packed->shape[rows]->constIndex()))));
  x = b.select(isRow, x, quietNaN(b, y->dtype));
  TriangularOptions lower, upper;
  lower.unit = upper.upper = true;
  return b.cast(triangularSolve(b, packed, triangularSolve(b, packed, x, lower), upper), type);
}

UOpRef orderOfPivots(Composer &b, UOpRef pivots, int64_t m) {
  if (!b.requireRank(pivots, 1)) return nullptr;
  int64_t k = b.constExtent(pivots, pivots->rank() - 1, "the number of pivots");
  if (!isInt(pivots->dtype) || k > m) return b.fail("pivots are integers, at most one a row");
  if (b.failed()) return nullptr;
  Dims batch(pivots->shape.begin(), pivots->shape.end() - 1);
  UOpRef count = idxProduct(b.c, batch), i = columnNumbers(b, m);
  ScanMaker scan(b, b.idx(k));
  UOpRef now = scan.carry(b.broadcastTo(i, {count, b.idx(m)})), j = scan.slice(columnNumbers(b, k));
  UOpRef flat = b.reshape(b.cast(pivots, DType::I64), {count, b.idx(k)});
  UOpRef pivot = b.unsqueeze(scan.slice(b.permute(flat, {1, 0})), {1}); // [count, 1]
  UOpRef atStep = b.unsqueeze(b.make(Op::Gather, {now, j}, {1}), {1}), atPivot = b.make(Op::Pick, {now, pivot}, {1});
  UOpRef isRow =
      b.bin(Op::And, b.bin(Op::Le, number(b, pivot, 0), pivot), b.bin(Op::Lt, pivot, b.b.litInt(DType::I64, m)));
  atPivot = b.select(isRow, atPivot, b.b.litInt(DType::I64, -1)); // no row
  UOpRef next = b.select(b.bin(Op::Eq, i, j), atPivot, b.select(b.bin(Op::Eq, i, pivot), atStep, now));
  Dims dims = batch;
  dims.push_back(b.idx(m));
  return b.failed() ? nullptr : b.reshape(scan.finish({next}, {})[0], dims);
}

UOpRef choleskySolve(Composer &b, UOpRef factor, UOpRef y, bool upper) {
  Dims batch;
  DType type = y ? y->dtype : DType::Void;
  if (!fitTogether(b, factor, y, batch)) return nullptr;
  TriangularOptions there, back;
  there.upper = back.upper = upper;
  back.transposed = true;
  UOpRef adjoint = conjugate(b, factor); // transposed below
  if (upper) return b.cast(triangularSolve(b, factor, triangularSolve(b, adjoint, y, back), there), type);
  return b.cast(triangularSolve(b, adjoint, triangularSolve(b, factor, y, there), back), type);
}

Solution solve(Composer &b, UOpRef a, UOpRef y) {
  Dims batch;
  DType type = y ? y->dtype : DType::Void;
  if (!fitTogether(b, a, y, batch) || !matricesOf(b, a, true).x) return {};
  LU f = luFactor(b, a);
  return {b.cast(luSolve(b, f.packed, f.order, y), type), f.info};
}

Solution inverse(Composer &b, UOpRef a) {
  Matrices m = matricesOf(b, a, true);
  if (b.failed()) return {};
  Dims dims = m.batch;
  dims.append(2, b.idx(m.rows));
  Solution s = solve(b, m.back(b, m.x), b.cast(b.reshape(identity(b, m.count, m.rows, m.x->dtype), dims), m.type));
  return s;
}

LogDeterminant logDeterminant(Composer &b, UOpRef given) {
  Matrices m = matricesOf(b, given, true);
  if (b.failed()) return {};
  LU f = luFactor(b, b.reshape(m.x, {m.count, b.idx(m.rows), b.idx(m.rows)}));
  if (b.failed() || !f.packed) return {};
  UOpRef diagonal = diagonalOf(b, f.packed); // [count, n]
  auto over = [&](ReduceKind kind, UOpRef x) { return b.squeeze(b.reduce(kind, x, {1}), {1}); };
  bool complex = isComplex(diagonal->dtype);
  UOpRef negative = b.bin(Op::Ne, f.pivots, columnNumbers(b, m.rows)); // each exchange turns the sign
  if (!complex) negative = b.bin(Op::Xor, negative, b.bin(Op::Lt, diagonal, 0.0));
  UOpRef odd = over(ReduceKind::Sum, b.cast(negative, DType::I64));
  UOpRef one = number(b, diagonal, 1);
  UOpRef sign = b.select(b.bin(Op::Eq, b.bin(Op::And, odd, b.b.litInt(DType::I64, 1)), 0.0), one, b.un(Op::Neg, one));
  if (complex) sign = b.bin(Op::Mul, over(ReduceKind::Prod, directionOf(b, diagonal)), sign);
  UOpRef sum = over(ReduceKind::Sum, b.un(Op::Log, b.un(Op::Abs, diagonal)));
  UOpRef isZero = b.bin(Op::Ne, f.info, 0.0), isNaN = b.bin(Op::Ne, sum, sum);
  sign = b.select(isNaN, quietNaN(b, m.x->dtype), b.select(isZero, number(b, one, 0), sign));
  return {m.back(b, sign), m.back(b, sum)};
}

UOpRef matrixPower(Composer &b, UOpRef given, int64_t exponent) {
  Matrices m = matricesOf(b, given, true);
  if (b.failed()) return nullptr;
  if (exponent == std::numeric_limits<int64_t>::min()) return b.fail("the exponent is too small");
  UOpRef base = m.x, result = nullptr;
  if (exponent < 0) base = inverse(b, base).value;
  for (uint64_t left = uint64_t(std::abs(exponent)); left && !b.failed(); left >>= 1) {
    if (left & 1) result = result ? times(b, result, base) : base;
    if (left > 1) base = times(b, base, base);
  }
  return m.back(b, result || b.failed() ? result : identity(b, m.count, m.rows, base->dtype));
}

/// Degree 13 serves every norm up to theta; a matrix above it is halved so often, and its exponential squared again.
UOpRef matrixExp(Composer &b, UOpRef given) {
  Matrices m = matricesOf(b, given, true, 1024);
  if (b.failed()) return nullptr;
  constexpr double c[] = {64764752532480000,
                          32382376266240000,
                          7771770303897600,
                          1187353796428800,
                          129060195264000,
                          10559470521600,
                          670442572800,
                          33522128640,
                          1323241920,
                          40840800,
                          960960,
                          16380,
                          182,
                          1};
  constexpr double theta = 5.371920351148152;
  bool wide = partOf(m.x->dtype) == DType::F64;
  UOpRef norm = b.squeeze(b.reduce(ReduceKind::Max, b.reduce(ReduceKind::Sum, b.un(Op::Abs, m.x), {1}), {2}), {1, 2});
  UOpRef ratio = b.bin(Op::Div, norm, theta), none = b.b.litInt(DType::I32, 0);
  UOpRef times2 = b.bin(Op::Max, b.bin(Op::Add, exponentOf(b, ratio), 1), none); // 2^times2 > ratio
  UOpRef isFinite = b.bin(Op::Eq, b.bin(Op::Sub, norm, norm), 0.0);
  int64_t most = wide ? 1024 : 128;
  times2 = b.select(isFinite, times2, none);
  UOpRef a = scaled(b, m.x, times2, false);
  if (!a || b.failed()) return nullptr;
  UOpRef eye = identity(b, m.count, m.rows, a->dtype);
  UOpRef a2 = times(b, a, a), a4 = times(b, a2, a2), a6 = times(b, a2, a4);
  auto by = [&](UOpRef x, double k) { return b.bin(Op::Mul, x, number(b, x, k)); };
  auto sum = [&](double k6, double k4, double k2, UOpRef more) {
    UOpRef s = b.bin(Op::Add, by(a6, k6), by(a4, k4));
    s = b.bin(Op::Add, s, by(a2, k2));
    return more ? b.bin(Op::Add, s, more) : s;
  };
  UOpRef odd = times(
             b, a,
             sum(c[7], c[5], c[3], b.bin(Op::Add, times(b, a6, sum(c[13], c[11], c[9], nullptr)), by(eye, c[1])))),
         even = sum(c[6], c[4], c[2], b.bin(Op::Add, times(b, a6, sum(c[12], c[10], c[8], nullptr)), by(eye, c[0])));
  UOpRef r = solve(b, b.bin(Op::Sub, even, odd), b.bin(Op::Add, even, odd)).value;
  if (!r || b.failed()) return nullptr;
  // Squared as often as was halved: as long as some matrix of the batch needs it; the others are handed on.
  UOpRef left = times2;
  llvm::SmallVector<UOpRef, 3> src = {r, left, b.b.litInt(DType::I64, 0)}, args;
  for (auto [i, s] : llvm::enumerate(src)) args.push_back(b.b.arg(i, s->dtype, s->shape));
  UOpRef more = b.bin(Op::Lt, none, args[1]), any = b.squeeze(b.reduce(ReduceKind::Or, more, {0}), {0});
  UOpRef again = b.bin(Op::And, any, b.bin(Op::Lt, args[2], b.b.litInt(DType::I64, most)));
  UOpRef squared = b.select(b.unsqueeze(more, {1, 2}), times(b, args[0], args[0]), args[0]);
  UOpRef next = b.bin(Op::Sub, args[1], 1), count = b.bin(Op::Add, args[2], 1);
  if (!squared || !next || !count || !again) return nullptr;
  UOpRef loop = control(b, Op::While, src, {}, "",
                        {b.make(Op::Func, {again}, {3}), b.make(Op::Func, {squared, next, count}, {3})});
  return m.back(b, result(b, loop, 0, r->dtype, r->shape));
}

// ---- by singular values

namespace {

/// Which of s [count, k], descending, are above the tolerance times the greatest: one for all, one for each matrix, or
/// the default.
struct Tolerance {
  std::optional<double> number;
  UOpRef each = nullptr; // broadcasts to the batch

  UOpRef areLarge(Composer &b, const Matrices &m, UOpRef s) const {
    if (!s) return nullptr;
    UOpRef greatest = b.part(s, 1, 0, 1), bound = nullptr;
    if (each)
      bound = b.bin(Op::Mul, greatest, b.reshape(b.cast(b.broadcastTo(each, m.batch), s->dtype), {m.count, b.idx(1)}));
    else
      bound = b.bin(Op::Mul, greatest, number.value_or(double(std::max(m.rows, m.columns)) * epsilonOf(m.x->dtype)));
    return b.bin(Op::Lt, bound, s);
  }
};

/// How many of s are large; -1, which no matrix has, where s is NaN.
UOpRef countOf(Composer &b, UOpRef large, UOpRef s) {
  if (!large || !s) return nullptr;
  UOpRef count = b.reduce(ReduceKind::Sum, b.cast(large, DType::I64), {1}), greatest = b.part(s, 1, 0, 1);
  return b.squeeze(b.select(b.bin(Op::Ne, greatest, greatest), b.b.litInt(DType::I64, -1), count), {1});
}

UOpRef pinvBy(Composer &b, UOpRef given, const Tolerance &tolerance) {
  Matrices m = matricesOf(b, given, false, 1024);
  if (b.failed()) return nullptr;
  SVD d = svd(b, m.x);
  if (b.failed() || !d.s) return nullptr;
  UOpRef large = tolerance.areLarge(b, m, d.s), one = number(b, d.s, 1);
  UOpRef inverse = b.select(large, b.bin(Op::Div, one, b.select(large, d.s, one)), number(b, d.s, 0));
  inverse = b.select(b.bin(Op::Ne, d.s, d.s), d.s, inverse);
  UOpRef v = timesReal(b, d.vh, b.unsqueeze(inverse, {2}));
  return m.back(b, times(b, v, d.u, true, true));
}

UOpRef rankBy(Composer &b, UOpRef given, const Tolerance &tolerance) {
  Matrices m = matricesOf(b, given, false, 1024);
  if (b.failed()) return nullptr;
  UOpRef s = svdvals(b, m.x);
  return m.back(b, countOf(b, tolerance.areLarge(b, m, s), s));
}

} // namespace

LeastSquares leastSquares(Composer &b, UOpRef a, UOpRef y, std::optional<double> tolerance) {
  Dims batch;
  DType type = y ? y->dtype : DType::Void;
  if (!fitTogether(b, a, y, batch)) return {};
  Matrices m = matricesOf(b, a, false, 1024);
  if (b.failed()) return {};
  int64_t columns = b.constExtent(y, y->rank() - 1, "the number of right sides");
  UOpRef right = b.reshape(y, {m.count, b.idx(m.rows), b.idx(columns)});
  SVD d = svd(b, m.x);
  if (b.failed() || !d.s) return {};
  UOpRef large = Tolerance{tolerance}.areLarge(b, m, d.s), one = number(b, d.s, 1);
  UOpRef along = times(b, d.u, right, true); // [count, k, columns]
  along = overReal(b, along, b.unsqueeze(b.select(large, d.s, one), {2}));
  along = b.select(b.unsqueeze(large, {2}), along, number(b, along, 0));
  UOpRef isNaN = b.unsqueeze(b.bin(Op::Ne, d.s, d.s), {2});
  UOpRef x = times(b, d.vh, b.select(isNaN, quietNaN(b, m.x->dtype), along), true);
  UOpRef left = b.bin(Op::Sub, right, times(b, m.x, x));
  LeastSquares r;
  r.value = m.back(b, x);
  r.residual = m.back(b, b.squeeze(b.reduce(ReduceKind::Sum, squared(b, left), {1}), {1}));
  r.rank = m.back(b, countOf(b, large, d.s));
  r.singular = m.back(b, d.s);
  r.info = m.back(b, d.info);
  if (isFloat(type)) {
    r.value = b.cast(r.value, type);
    r.residual = b.cast(r.residual, type);
    r.singular = b.cast(r.singular, type);
  }
  return r;
}

UOpRef pinv(Composer &b, UOpRef x, std::optional<double> tolerance) { return pinvBy(b, x, {tolerance}); }
UOpRef pinvWithin(Composer &b, UOpRef x, UOpRef tolerance) { return pinvBy(b, x, {std::nullopt, tolerance}); }
UOpRef matrixRank(Composer &b, UOpRef x, std::optional<double> tolerance) { return rankBy(b, x, {tolerance}); }
UOpRef matrixRankWithin(Composer &b, UOpRef x, UOpRef tolerance) { return rankBy(b, x, {std::nullopt, tolerance}); }

// ---- norms

namespace {

/// A matrix or vector whose norm is asked for: floats, or the magnitudes of complex numbers.
UOpRef magnitudesOf(Composer &b, UOpRef given) {
  return given && isComplex(given->dtype) ? b.un(Op::Abs, given) : b.widen(given);
}

/// The root of the sum of squares over the axes, which are scaled by a power of two first. Its gradient at zeros is 0.
UOpRef safeEuclidean(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  UOpRef most = b.reduce(ReduceKind::Max, b.un(Op::Detach, b.un(Op::Abs, x)), axes);
  UOpRef finite = b.bin(Op::Eq, b.bin(Op::Sub, most, most), 0.0);
  UOpRef exponent = exponentOf(b, b.select(finite, most, number(b, most, 1)));
  if (!exponent) return nullptr;
  UOpRef small = b.make(Op::Scale2, {x, b.broadcastTo(b.un(Op::Neg, exponent), x->shape)});
  return b.make(Op::Scale2, {rootOfSquares(b, sumOfSquares(b, small, axes)), exponent});
}

UOpRef givenBack(Composer &b, UOpRef y, llvm::ArrayRef<int64_t> axes, bool keep, DType t) {
  return b.cast(keep ? y : b.squeeze(y, axes), partOf(t));
}

} // namespace

UOpRef vectorNorm(Composer &b, UOpRef given, llvm::ArrayRef<int64_t> axes, double order, bool keep) {
  UOpRef x = magnitudesOf(b, given);
  if (!b.requireFloat(x)) return nullptr;
  Ints folded = b.axes(axes, x->rank());
  if (std::isnan(order)) return b.fail("the order of a norm is not a number");
  if (b.failed()) return nullptr;
  UOpRef size = b.un(Op::Abs, x), y = nullptr;
  if (std::isinf(order)) {
    y = b.reduce(order > 0 ? ReduceKind::Max : ReduceKind::Min, size, folded);
  } else if (order == 0) {
    y = b.reduce(ReduceKind::Sum, b.cast(b.bin(Op::Ne, x, 0.0), x->dtype), folded);
  } else if (order == 1) {
    y = b.reduce(ReduceKind::Sum, size, folded);
  } else if (order == 2) {
    y = safeEuclidean(b, x, folded);
  } else {
    y = b.bin(Op::Pow, b.reduce(ReduceKind::Sum, b.bin(Op::Pow, size, order), folded), 1 / order);
  }
  return givenBack(b, y, folded, keep, given->dtype);
}

UOpRef matrixNorm(Composer &b, UOpRef given, MatrixNorm kind, bool keep) {
  UOpRef x = magnitudesOf(b, given);
  if (!b.requireFloat(x) || !b.requireRank(x, 2)) return nullptr;
  int64_t row = int64_t(x->rank()) - 2, column = row + 1;
  Ints both = {row, column};
  auto sums = [&](int64_t inner, ReduceKind outer) {
    return b.reduce(outer, b.reduce(ReduceKind::Sum, b.un(Op::Abs, x), {inner}), {inner == row ? column : row});
  };
  UOpRef y = nullptr;
  switch (kind) {
  case MatrixNorm::Frobenius: y = safeEuclidean(b, x, both); break;
  case MatrixNorm::One: y = sums(row, ReduceKind::Max); break;
  case MatrixNorm::LeastOne: y = sums(row, ReduceKind::Min); break;
  case MatrixNorm::Infinity: y = sums(column, ReduceKind::Max); break;
  case MatrixNorm::LeastInfinity: y = sums(column, ReduceKind::Min); break;
  case MatrixNorm::Nuclear:
  case MatrixNorm::Spectral:
  case MatrixNorm::LeastSingular: {
    UOpRef s = svdvals(b, isComplex(given->dtype) ? given : x);
    if (!s || b.failed()) return nullptr;
    int64_t last = *s->shape.back()->constIndex() - 1;
    y = kind == MatrixNorm::Nuclear ? b.reduce(ReduceKind::Sum, s, {row})
                                    : b.part(s, row, kind == MatrixNorm::Spectral ? 0 : last, 1);
    y = b.unsqueeze(y, {column});
  }
  }
  return givenBack(b, y, both, keep, given->dtype);
}

} // namespace astra::compose
