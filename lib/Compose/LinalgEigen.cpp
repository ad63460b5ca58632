//===- LinalgEigen.cpp: eigenvalues of general matrices -------------------===//
// Takes:    square matrices, real or complex.
// Gives:    reflections to Hessenberg form, of real matrices in real numbers; then, in complex ones, the QR algorithm
//           with single shifts (J. Francis; in the form of EISPACK's comqr2: the shift is taken off and put back) to
//           Schur's triangular form; eigenvectors by substitution.
// Keeps:    a matrix that is done does not change by a bit while others of its batch go on. A sweep is two scans, one
//           over rows and one over columns, that each carry one line: no step passes over the whole matrix.
// Does not: balance; derive.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

using namespace linalg;

namespace {

constexpr int64_t mostExtent = 512, sweepsOfEach = 30;

/// x = z t z', t zero below the diagonal under the main one.
struct Similar {
  UOpRef t = nullptr, z = nullptr; // [count, n, n]
};

/// z is null unless `vectors`.
Similar toHessenberg(Composer &b, UOpRef x, bool vectors) {
  if (!x || b.failed()) return {};
  int64_t n = *x->shape[1]->constIndex();
  UOpRef eye = vectors ? identity(b, x->shape[0], n, x->dtype) : nullptr;
  if (n < 3) return {x, eye};
  UOpRef i = rowNumbers(b, n), k = columnNumbers(b, n);
  ScanMaker scan(b, b.idx(n - 2));
  UOpRef now = scan.carry(x), z = vectors ? scan.carry(eye) : nullptr, j = scan.slice(columnNumbers(b, n - 2));
  UOpRef head = b.bin(Op::Add, j, 1);
  auto [vector, tau, beta] = reflectionOf(b, columnAt(b, now, j), head);
  if (!vector || !tau || b.failed()) return {};
  UOpRef row = b.unsqueeze(conjugate(b, vector), {1}), column = b.unsqueeze(vector, {2}), all = b.unsqueeze(tau, {1});
  auto fromRight = [&](UOpRef y) { // y (I - tau v v')
    return minusProduct(b, y, b.bin(Op::Mul, times(b, y, column), all), row);
  };
  UOpRef left = minusProduct(b, now, b.bin(Op::Mul, conjugate(b, all), column), times(b, row, now));
  UOpRef first = b.select(b.bin(Op::Eq, i, head), b.unsqueeze(likewise(b, beta, x), {2}),
                          b.select(b.bin(Op::Lt, head, i), number(b, x, 0), left)); // what column j becomes
  std::vector<UOpRef> next = {fromRight(b.select(b.bin(Op::Eq, k, j), first, left))};
  if (vectors) next.push_back(fromRight(z));
  std::vector<UOpRef> done = scan.finish(next, {});
  return {done[0], vectors ? done[1] : nullptr};
}

/// The block lo .. hi that a sweep works on, its last subdiagonals being not 0: hi is 0 where there is none left.
/// [count, 1]
struct Active {
  UOpRef lo = nullptr, hi = nullptr;
};

/// Subdiagonals [count, n - 1] that are small beside their neighbours on the diagonal count as 0.
Active activeOf(Composer &b, UOpRef isZero, int64_t n) {
  UOpRef after = b.bin(Op::Add, columnNumbers(b, n - 1), 1), none = b.b.litInt(DType::I64, 0);
  Active a;
  a.hi = b.reduce(ReduceKind::Max, b.select(isZero, none, after), {1});
  UOpRef before = b.bin(Op::And, isZero, b.bin(Op::Lt, after, a.hi));
  a.lo = b.reduce(ReduceKind::Max, b.select(before, after, none), {1});
  return a;
}

/// The eigenvalue of the last two rows and columns of the block that is nearer to the last element; every tenth sweep
/// for one eigenvalue something else, in case it goes round. [count, 1]
UOpRef shiftOf(Composer &b, UOpRef diagonal, UOpRef above, UOpRef under, const Active &at, UOpRef sweeps) {
  UOpRef before = b.bin(Op::Max, b.bin(Op::Sub, at.hi, 1), b.b.litInt(DType::I64, 0));
  auto pick = [&](UOpRef x, UOpRef i) { return b.make(Op::Pick, {x, i}, {1}); };
  UOpRef last = pick(diagonal, at.hi), product = b.bin(Op::Mul, pick(above, before), pick(under, before));
  UOpRef half = b.bin(Op::Sub, pick(diagonal, before), last);
  if (!half || b.failed()) return nullptr;
  half = timesReal(b, half, b.b.lit(partOf(half->dtype), 0.5));
  UOpRef root = findComplexFunction("sqrt")->apply(b, b.bin(Op::Add, b.bin(Op::Mul, half, half), product));
  UOpRef plus = b.bin(Op::Add, half, root), minus = b.bin(Op::Sub, half, root);
  UOpRef greater = b.select(b.bin(Op::Lt, greaterPart(b, plus), greaterPart(b, minus)), minus, plus);
  UOpRef none = isNumber(b, greater, 0);
  UOpRef step = b.bin(Op::Div, product, b.select(none, number(b, greater, 1), greater));
  UOpRef usual = b.bin(Op::Sub, last, b.select(none, number(b, step, 0), step));
  UOpRef size = greaterPart(b, pick(under, before));
  UOpRef odd = b.bin(Op::Eq, b.bin(Op::Mod, sweeps, b.b.litInt(DType::I64, 10)), b.b.litInt(DType::I64, 9));
  return b.select(odd, b.bin(Op::Add, last, likewise(b, size, last)), usual);
}

/// Lines of [n, count, w] turned in pairs from the first to the last: `first` and `second` are the new ones of a step.
/// Rotations, data of a step, are read from `slices`; what `stack` gives is stacked.
struct Turned {
  UOpRef lines = nullptr;
  std::vector<UOpRef> stacked;
};
struct TurnStep {
  UOpRef first = nullptr, second = nullptr;
  std::vector<UOpRef> stacked;
};
Turned turnLines(Composer &b, UOpRef lines, llvm::ArrayRef<UOpRef> slices, llvm::ArrayRef<UOpRef> closed, int64_t n,
                 llvm::function_ref<TurnStep(UOpRef, UOpRef, llvm::ArrayRef<UOpRef>)> step) {
  if (!lines || b.failed()) return {};
  ScanMaker scan(b, b.idx(n - 1));
  UOpRef first = scan.carry(b.element(lines, 0, 0)), second = scan.slice(b.part(lines, 0, 1, n - 1));
  llvm::SmallVector<UOpRef, 4> given;
  for (UOpRef s : slices) given.push_back(scan.slice(s));
  for (UOpRef s : closed) given.push_back(scan.close(s));
  TurnStep made = step(first, second, given);
  std::vector<UOpRef> stacked = {made.first};
  stacked.insert(stacked.end(), made.stacked.begin(), made.stacked.end());
  std::vector<UOpRef> done = scan.finish({made.second}, stacked);
  if (b.failed()) return {};
  Turned t;
  t.lines = b.concat({done[1], b.unsqueeze(done[0], {0})}, 0);
  t.stacked.assign(done.begin() + 2, done.end());
  return t;
}

/// A sweep on the block: t - shift = q r, then r q + shift; z q. Rotations turn what stands under the diagonal into 0.
Similar sweep(Composer &b, const Similar &s, const Active &at, UOpRef shift, int64_t n) {
  UOpRef i = rowNumbers(b, n), k = columnNumbers(b, n), steps = columnNumbers(b, n - 1);
  auto inBlock = [&](UOpRef number, UOpRef hi) {
    return b.bin(Op::And, b.bin(Op::Le, at.lo, number), b.bin(Op::Lt, number, hi));
  };
  UOpRef touched =
      b.bin(Op::And, inBlock(k, b.bin(Op::Add, at.hi, 1)), b.bin(Op::Lt, b.b.litInt(DType::I64, 0), at.hi));
  UOpRef shifted = b.bin(Op::And, b.bin(Op::Eq, i, k), b.unsqueeze(touched, {1})); // [count, n, n]
  UOpRef wide = b.unsqueeze(shift, {2});
  UOpRef t = b.select(shifted, b.bin(Op::Sub, s.t, wide), s.t);
  UOpRef zero = number(b, t, 0), one = number(b, t, 1);
  UOpRef turns = b.permute(inBlock(steps, at.hi), {1, 0}); // [n - 1, count]
  Turned rows =
      turnLines(b, b.permute(t, {1, 0, 2}), {turns, steps}, {}, n,
                [&](UOpRef first, UOpRef second, llvm::ArrayRef<UOpRef> given) -> TurnStep {
                  UOpRef j = given[1], onJ = b.bin(Op::Eq, k, j);
                  auto element = [&](UOpRef row) { return b.unsqueeze(b.make(Op::Gather, {row, j}, {1}), {1}); };
                  UOpRef p = element(first), q = element(second); // [count, 1]
                  UOpRef size = b.un(Op::Abs, b.make(Op::Complex, {b.un(Op::Abs, p), b.un(Op::Abs, q)}));
                  UOpRef turn = b.bin(Op::And, b.unsqueeze(given[0], {1}), b.bin(Op::Ne, size, 0.0));
                  UOpRef divisor = b.select(turn, size, number(b, size, 1));
                  UOpRef c = b.select(turn, overReal(b, p, divisor), one),
                         d = b.select(turn, overReal(b, q, divisor), zero);
                  auto sum = [&](UOpRef x, UOpRef y) {
                    return b.bin(Op::Add, b.bin(Op::Mul, x, first), b.bin(Op::Mul, y, second));
                  };
                  UOpRef top = b.select(onJ, likewise(b, size, p), sum(conjugate(b, c), conjugate(b, d)));
                  UOpRef bottom = b.select(onJ, zero, sum(b.un(Op::Neg, d), c));
                  return {b.select(turn, top, first),
                          b.select(turn, bottom, second),
                          {b.squeeze(c, {1}), b.squeeze(d, {1}), b.squeeze(turn, {1})}};
                });
  if (rows.stacked.size() != 3 || b.failed()) return {};
  UOpRef columns = b.permute(rows.lines, {2, 1, 0}); // [n, count, n]
  if (s.z) columns = b.concat({columns, b.permute(s.z, {2, 0, 1})}, 2);
  Turned done = turnLines(
      b, columns, rows.stacked, {}, n, [&](UOpRef first, UOpRef second, llvm::ArrayRef<UOpRef> given) -> TurnStep {
        UOpRef c = b.unsqueeze(given[0], {1}), d = b.unsqueeze(given[1], {1}), turn = b.unsqueeze(given[2], {1});
        auto sum = [&](UOpRef x, UOpRef y) {
          return b.bin(Op::Add, b.bin(Op::Mul, x, first), b.bin(Op::Mul, y, second));
        };
        UOpRef left = sum(c, d), right = sum(b.un(Op::Neg, conjugate(b, d)), conjugate(b, c));
        return {b.select(turn, left, first), b.select(turn, right, second), {}};
      });
  if (!done.lines || b.failed()) return {};
  UOpRef back = b.permute(done.lines, {1, 2, 0}); // [count, n or 2 n, n]
  Similar r;
  r.t = block(b, back, 0, n, 0, n);
  r.t = b.select(shifted, b.bin(Op::Add, r.t, wide), r.t);
  if (s.z) r.z = block(b, back, n, n, 0, n);
  return r;
}

struct Schur {
  Similar s;
  UOpRef info = nullptr; // [count]
};
Schur toSchur(Composer &b, Similar s) {
  if (!s.t || b.failed()) return {};
  UOpRef count = s.t->shape[0];
  int64_t n = *s.t->shape[1]->constIndex();
  UOpRef none = b.broadcastTo(b.b.litInt(DType::I64, 0), {count, b.idx(1)});
  if (n == 1) return {s, b.squeeze(none, {1})};
  llvm::SmallVector<UOpRef, 6> src = {s.t, b.broadcastTo(b.b.litInt(DType::I64, n), {count, b.idx(1)}), none,
                                      b.b.litInt(DType::I64, 0)},
                               args;
  if (s.z) src.push_back(s.z);
  for (auto [i, v] : llvm::enumerate(src)) args.push_back(b.b.arg(i, v->dtype, v->shape));
  UOpRef any = b.squeeze(b.reduce(ReduceKind::Or, b.bin(Op::Ne, args[1], 0.0), {0, 1}), {0, 1});
  UOpRef again = b.bin(Op::And, any, b.bin(Op::Lt, args[3], b.b.litInt(DType::I64, sweepsOfEach * n)));

  UOpRef t = args[0], diagonal = diagonalOf(b, t), under = diagonalOf(b, block(b, t, 1, n - 1, 0, n - 1)),
         above = diagonalOf(b, block(b, t, 0, n - 1, 1, n - 1));
  UOpRef size = greaterPart(b, diagonal);
  UOpRef beside = b.bin(Op::Add, b.part(size, 1, 0, n - 1), b.part(size, 1, 1, n - 1));
  DType part = partOf(t->dtype);
  UOpRef bound = b.bin(Op::Mul, b.select(b.bin(Op::Eq, beside, 0.0), b.b.lit(part, 1), beside), epsilonOf(part));
  UOpRef isSmall = b.bin(Op::Le, greaterPart(b, under), bound); // [count, n - 1]
  UOpRef zeros = b.pad(isSmall, {b.idx(0), b.idx(0)}, {b.idx(0), b.idx(1)}, 0);
  UOpRef onUnder = b.bin(Op::Eq, rowNumbers(b, n), b.bin(Op::Add, columnNumbers(b, n), 1));
  UOpRef cleared = b.select(b.bin(Op::And, onUnder, b.unsqueeze(zeros, {1})), number(b, t, 0), t);
  Active at = activeOf(b, isSmall, n);
  UOpRef sweeps = b.select(b.bin(Op::Eq, at.hi, args[1]), b.bin(Op::Add, args[2], 1), b.b.litInt(DType::I64, 0));
  Similar next = sweep(b, {cleared, s.z ? args[4] : nullptr}, at, shiftOf(b, diagonal, above, under, at, sweeps), n);
  llvm::SmallVector<UOpRef, 6> body = {next.t, at.hi, sweeps, b.bin(Op::Add, args[3], 1)};
  if (s.z) body.push_back(next.z);
  if (b.failed() || !again || llvm::is_contained(body, nullptr)) return {};
  int64_t nargs = int64_t(src.size());
  UOpRef loop =
      control(b, Op::While, src, {}, "", {b.make(Op::Func, {again}, {nargs}), b.make(Op::Func, body, {nargs})});
  Schur r;
  r.s.t = result(b, loop, 0, t->dtype, t->shape);
  if (s.z) r.s.z = result(b, loop, 4, t->dtype, t->shape);
  r.info = b.squeeze(result(b, loop, 1, DType::I64, {count, b.idx(1)}), {1});
  return r;
}

/// Eigenvectors of an upper triangular matrix, in columns, none of length 1: row after row from the last. A difference
/// of eigenvalues below eps counts as eps; a column that grows is divided by a power of two.
UOpRef vectorsOfTriangle(Composer &b, UOpRef t) {
  if (!t || b.failed()) return nullptr;
  int64_t n = *t->shape[1]->constIndex();
  DType part = partOf(t->dtype);
  UOpRef diagonal = diagonalOf(b, t); // [count, n]
  UOpRef numbers = b.flip(columnNumbers(b, n), 0), i = rowNumbers(b, n), k = columnNumbers(b, n);
  ScanMaker scan(b, b.idx(n));
  UOpRef now = scan.carry(b.broadcastTo(number(b, t, 0), t->shape)), j = scan.slice(numbers);
  UOpRef whole = scan.close(t), values = scan.close(diagonal);
  UOpRef own = b.unsqueeze(b.make(Op::Gather, {values, j}, {1}), {1}); // [count, 1]
  UOpRef sum = b.squeeze(times(b, b.unsqueeze(rowAt(b, whole, j), {1}), now), {1});
  UOpRef apart = b.bin(Op::Sub, values, own);
  UOpRef least = b.b.lit(part, epsilonOf(part));
  UOpRef isSmall = b.bin(Op::Lt, greaterPart(b, apart), least);
  if (!apart || b.failed()) return nullptr;
  apart = b.select(isSmall, likewise(b, least, apart), apart);
  UOpRef row = b.bin(Op::Div, sum, apart);
  row = b.select(b.bin(Op::Lt, j, k), row, b.select(b.bin(Op::Eq, j, k), number(b, t, 1), number(b, t, 0)));
  UOpRef exponent = exponentOf(b, greaterPart(b, row)); // [count, n]
  double most = part == DType::F64 ? 300 : 40;
  if (!exponent || b.failed()) return nullptr;
  exponent = b.select(b.bin(Op::Lt, exponent, most), number(b, exponent, 0), exponent);
  UOpRef grown = b.select(b.bin(Op::Eq, i, j), b.unsqueeze(row, {1}), now);
  UOpRef turned = scaledEach(b, grown, b.unsqueeze(exponent, {1}));
  return scan.finish({turned}, {})[0];
}

/// Values [count, n] and vectors [count, n, n] with a rule, where derivatives are wanted: of gw and gV it is V'^-1 (gw
/// on the diagonal, V' gV over the conjugate of w_j - w_i beside it) V'; equal values give nothing. gV is first that of
/// vectors of any length and direction.
GeneralEigen withDerivative(Composer &b, const Matrices &m, GeneralEigen r) {
  if (!r.vectors || !b.wantsGradients() || b.failed()) return r;
  int64_t n = m.rows;
  UOpRef both = b.concat({r.vectors, b.unsqueeze(r.values, {2})}, 2);
  both = withRule(b, both, {m.x}, [&](UOpRef y, llvm::ArrayRef<UOpRef> x, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
    UOpRef v = block(b, y, 0, n, 0, n), w = block(b, y, 0, n, n, 1), gv = block(b, g, 0, n, 0, n),
           gw = block(b, g, 0, n, n, 1), products = b.bin(Op::Mul, gv, conjugate(b, v));
    UOpRef length = realPart(b, b.reduce(ReduceKind::Sum, products, {1})); // along the vectors
    gv = beforeDirections(b, v, gv, imaginaryProduct(b, gv, v));
    gv = b.bin(Op::Sub, gv, timesReal(b, v, length));
    UOpRef apart = conjugate(b, b.bin(Op::Sub, transposed(b, w), w)), equal = isNumber(b, apart, 0);
    UOpRef inner = b.bin(Op::Div, times(b, v, gv, true), b.select(equal, number(b, apart, 1), apart));
    UOpRef onDiagonal = b.bin(Op::Eq, rowNumbers(b, n), columnNumbers(b, n));
    inner = b.select(onDiagonal, gw, b.select(equal, number(b, inner, 0), inner));
    UOpRef whole = solve(b, adjoint(b, v), times(b, inner, v, false, true)).value;
    return {isComplex(x[0]->dtype) ? whole : realPart(b, whole)};
  });
  if (!both || b.failed()) return {};
  r.vectors = block(b, both, 0, n, 0, n);
  r.values = b.squeeze(block(b, both, 0, n, n, 1), {2});
  return r;
}

} // namespace

GeneralEigen eig(Composer &b, UOpRef given, bool vectors) {
  Matrices m = matricesOf(b, given, true, mostExtent);
  if (b.failed()) return {};
  if (b.wantsGradients()) vectors = true; // derivatives of values need them
  Scale scale = scaleOf(b, m.x);
  UOpRef x = scaled(b, m.x, scale.exponent, false);
  if (!x || b.failed()) return {};
  x = b.select(b.unsqueeze(scale.finite, {1, 2}), x, number(b, x, 0));
  Similar h = toHessenberg(b, x, vectors);
  if (!h.t || b.failed()) return {};
  DType type = partOf(x->dtype) == DType::F64 ? DType::C128 : DType::C64;
  Schur done = toSchur(b, {b.cast(h.t, type), b.cast(h.z, type)});
  if (!done.s.t || b.failed()) return {};
  GeneralEigen r;
  r.values = orNaN(b, scale.finite, scaled(b, diagonalOf(b, done.s.t), scale.exponent, true));
  r.info = b.select(scale.finite, b.cast(b.bin(Op::Ne, done.info, 0.0), DType::I64), b.b.litInt(DType::I64, 1));
  if (vectors) {
    UOpRef v = transposed(b, times(b, done.s.z, vectorsOfTriangle(b, done.s.t))); // in rows
    UOpRef exponent = exponentOf(b, b.squeeze(b.reduce(ReduceKind::Max, greaterPart(b, v), {2}), {2}));
    v = exponent ? scaledEach(b, v, b.unsqueeze(exponent, {2})) : nullptr;
    v = overReal(b, v, b.un(Op::Sqrt, b.reduce(ReduceKind::Sum, squared(b, v), {2})));
    UOpRef at = b.make(Op::ArgReduce, {b.un(Op::Abs, v)}, {0, 2});
    UOpRef greatest = b.make(Op::Pick, {v, b.unsqueeze(at, {2})}, {2});
    v = b.bin(Op::Mul, v, conjugate(b, directionOf(b, greatest)));
    r.vectors = orNaN(b, scale.finite, transposed(b, v));
  }
  r = withDerivative(b, m, r);
  r.values = m.back(b, r.values);
  if (vectors) r.vectors = m.back(b, r.vectors);
  r.info = m.back(b, r.info);
  return r;
}

} // namespace astra::compose
