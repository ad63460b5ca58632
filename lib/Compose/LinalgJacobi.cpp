//===- LinalgJacobi.cpp: eigenvalues and singular values by rotations ----===//
// Takes:    symmetric matrices; matrices of any two extents.
// Gives:    C. Jacobi's method on one side (M. Hestenes): rows are made orthogonal by rotations of pairs, in the
//           parallel order of R. Brent and F. Luk: n / 2 pairs a step, n - 1 steps a sweep, in which each pair stands
//           once; sweeps until one rotates nothing. Of svd the rows are those of R of a QR, of eigh those of a Cholesky
//           factor of the matrix made positive definite by a shift.
// Keeps:    a matrix that is done does not change by a bit while others of its batch go on: a pair that need not be
//           rotated is handed on as it is.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

namespace astra::compose {

using namespace linalg;

namespace {

constexpr int64_t mostSweeps = 30, mostExtent = 1024;

/// A step of the order: positions 0 .. h - 1 stand over positions h .. 2 h - 1; pair k are rows k and h + k. After the
/// rotation rows move on, all but the first in a circle, and after 2 h - 1 steps stand where they were.
struct Circle {
  UOpRef pair, isUpper, source; // [2 h]: of the row that comes to a position its pair, its half, where it was
};
Circle circle(Composer &b, int64_t h) {
  UOpRef i = columnNumbers(b, 2 * h);
  if (h == 1) return {b.bin(Op::Mul, i, 0.0), b.bin(Op::Lt, i, 1.0), i};
  UOpRef inUpper = b.bin(Op::Lt, i, double(h));
  UOpRef above = b.bin(Op::Max, b.bin(Op::Sub, i, 1), 0.0),
         under = b.bin(Op::Min, b.bin(Op::Sub, i, double(h - 1)), double(h - 1));
  Circle c;
  c.pair = b.select(inUpper, above, under);
  c.isUpper = b.select(inUpper, b.bin(Op::Ne, i, 1.0), b.bin(Op::Eq, i, double(2 * h - 1)));
  c.source = b.select(c.isUpper, c.pair, b.bin(Op::Add, c.pair, double(h)));
  return c;
}

/// Rotations of all pairs, at the positions to which rows move: a row is `u`, real, times the upper of its pair and `v`
/// times the lower one, where its pair turns at all. [count, 2 h] each.
struct Turn {
  UOpRef u, v, turns;
};

/// The rotation of p and q that makes their product r 0: tan of the angle is the lesser root of t^2 + 2 z t - 1,
/// z = (q - p) / 2 r. All [count, h]. Of complex rows the lower one is turned first, so that r is its magnitude.
Turn turnOf(Composer &b, const Circle &at, UOpRef p, UOpRef q, UOpRef r, UOpRef turns) {
  if (!r || !turns || b.failed()) return {};
  UOpRef direction = nullptr;
  if (isComplex(r->dtype)) {
    direction = b.make(Op::Gather, {directionOf(b, r), at.pair}, {1});
    r = b.un(Op::Abs, r);
  }
  double large = r->dtype == DType::F64 ? 0x1p27 : 0x1p13; // beyond its square root of 1 + z^2 is z
  UOpRef one = number(b, r, 1), z = b.bin(Op::Div, b.bin(Op::Sub, q, p), b.bin(Op::Mul, b.select(turns, r, one), 2));
  UOpRef size = b.un(Op::Abs, z), isLarge = b.bin(Op::Lt, number(b, r, large), size);
  UOpRef near = b.select(isLarge, one, size);
  UOpRef root = b.un(Op::Sqrt, b.bin(Op::Add, b.bin(Op::Mul, near, near), 1));
  UOpRef t = b.bin(Op::Div, one, b.select(isLarge, b.bin(Op::Mul, size, 2), b.bin(Op::Add, near, root)));
  t = b.make(Op::CopySign, {t, z});
  t = b.select(turns, t, number(b, t, 0)); // then c is 1 and s is 0
  UOpRef c = b.bin(Op::Div, one, b.un(Op::Sqrt, b.bin(Op::Add, b.bin(Op::Mul, t, t), 1))), s = b.bin(Op::Mul, t, c);
  auto moved = [&](UOpRef v) { return b.make(Op::Gather, {v, at.pair}, {1}); };
  UOpRef cosine = moved(c), sine = moved(s);
  UOpRef v = b.select(at.isUpper, b.un(Op::Neg, sine), cosine);
  if (direction) v = timesReal(b, direction, v);
  return {b.select(at.isUpper, cosine, sine), v, moved(turns)};
}

/// Rows of z [count, 2 h, w], turned and moved.
UOpRef turned(Composer &b, const Circle &at, const Turn &turn, UOpRef z, int64_t h) {
  auto rows = [&](UOpRef index) { return b.make(Op::Gather, {z, index}, {1}); };
  UOpRef upper = rows(at.pair), lower = rows(b.bin(Op::Add, at.pair, double(h)));
  if (!upper || !turn.u || !turn.v || b.failed()) return nullptr;
  auto across = [&](UOpRef v) { return b.broadcastTo(b.unsqueeze(v, {2}), z->shape); };
  UOpRef second = b.bin(Op::Mul, across(turn.v), lower);
  UOpRef sum = isComplex(z->dtype) ? b.bin(Op::Add, timesReal(b, upper, across(turn.u)), second)
                                   : b.make(Op::Fma, {across(turn.u), upper, second});
  return b.select(across(turn.turns), sum, rows(at.source));
}

/// Sweeps over carried values until one turned nothing: `step` gives them after a step, and which pairs it turned.
struct Swept {
  std::vector<UOpRef> values;
  UOpRef info; // [count]
};
using Step = llvm::function_ref<std::pair<std::vector<UOpRef>, UOpRef>(llvm::ArrayRef<UOpRef>)>;
Swept sweep(Composer &b, std::vector<UOpRef> values, UOpRef count, int64_t steps, Step step) {
  if (b.failed() || llvm::is_contained(values, nullptr)) return {};
  size_t n = values.size();
  UOpRef some = b.broadcastTo(b.b.lit(DType::Bool, 1), {count});
  llvm::SmallVector<UOpRef, 4> src(values.begin(), values.end()), args;
  src.append({some, b.b.litInt(DType::I64, 0)});
  for (auto [i, s] : llvm::enumerate(src)) args.push_back(b.b.arg(i, s->dtype, s->shape));
  UOpRef any = b.squeeze(b.reduce(ReduceKind::Or, args[n], {0}), {0});
  UOpRef again = b.bin(Op::And, any, b.bin(Op::Lt, args[n + 1], b.b.litInt(DType::I64, mostSweeps)));
  ScanMaker scan(b, b.idx(steps));
  std::vector<UOpRef> now;
  for (size_t i = 0; i < n; ++i) now.push_back(scan.carry(args[i]));
  UOpRef has = scan.carry(b.broadcastTo(b.b.lit(DType::Bool, 0), {count}));
  auto [next, turns] = step(now);
  next.push_back(b.bin(Op::Or, has, b.squeeze(b.reduce(ReduceKind::Or, turns, {1}), {1})));
  std::vector<UOpRef> body = scan.finish(next, {});
  body.push_back(b.bin(Op::Add, args[n + 1], 1));
  if (b.failed() || llvm::is_contained(body, nullptr) || !again) return {};
  int64_t nargs = int64_t(src.size());
  UOpRef loop =
      control(b, Op::While, src, {}, "", {b.make(Op::Func, {again}, {nargs}), b.make(Op::Func, body, {nargs})});
  Swept done;
  for (size_t i = 0; i < n; ++i) done.values.push_back(result(b, loop, i, values[i]->dtype, values[i]->shape));
  done.info = b.cast(result(b, loop, n, DType::Bool, {count}), DType::I64);
  return done;
}

/// Rows of z [count, n, w] orthogonal to one another in their first `width` elements, by rotations of pairs: a pair
/// turns where its product is above `bound` times that of the lengths. A row whose square is not above `least` counts
/// as zeros.
struct Orthogonal {
  UOpRef rows, info;
};
double leastSquare(DType t) { return partOf(t) == DType::F64 ? 0x1p-900 : 0x1p-100; }
Orthogonal orthogonalOf(Composer &b, UOpRef z, int64_t width) {
  if (!z || b.failed()) return {};
  int64_t n = *z->shape[1]->constIndex(), w = *z->shape[2]->constIndex(), h = (n + 1) / 2;
  DType t = z->dtype;
  UOpRef none = b.idx(0);
  z = b.pad(z, {none, none, none}, {none, b.idx(2 * h - n), none}, 0); // a row of zeros never turns
  double bound = epsilonOf(t) / 2 * std::sqrt(double(n));
  Swept done = sweep(b, {z}, z ? z->shape[0] : nullptr, 2 * h - 1, [&](llvm::ArrayRef<UOpRef> now) {
    Circle at = circle(b, h);
    UOpRef upper = block(b, now[0], 0, h, 0, width), lower = block(b, now[0], h, h, 0, width);
    auto sum = [&](UOpRef v) { return b.squeeze(b.reduce(ReduceKind::Sum, v, {2}), {2}); };
    UOpRef p = sum(squared(b, upper)), q = sum(squared(b, lower)), r = sum(b.bin(Op::Mul, upper, conjugate(b, lower)));
    UOpRef lengths = b.bin(Op::Mul, b.un(Op::Sqrt, p), b.un(Op::Sqrt, q));
    UOpRef turns = b.bin(Op::Lt, b.bin(Op::Mul, lengths, bound), b.un(Op::Abs, r));
    turns = b.bin(Op::And, turns, b.bin(Op::Lt, b.b.lit(partOf(t), leastSquare(t)), b.bin(Op::Min, p, q)));
    Turn turn = turnOf(b, at, p, q, r, turns);
    return std::pair(std::vector<UOpRef>{turned(b, at, turn, now[0], h)}, turns);
  });
  if (b.failed() || done.values.empty()) return {};
  return {block(b, done.values[0], 0, n, 0, w), done.info};
}
Orthogonal orthogonalRows(Composer &b, UOpRef z, int64_t width) {
  std::vector<UOpRef> made = inParts(b, {z}, [&](llvm::ArrayRef<UOpRef> part) -> std::vector<UOpRef> {
    Orthogonal o = orthogonalOf(b, part[0], width);
    return {o.rows, o.info};
  });
  return {made[0], made[1]};
}

UOpRef infoOf(Composer &b, const Scale &scale, UOpRef info) { return b.select(scale.finite, info, number(b, info, 1)); }

/// The direction of the greatest component of each row of x [count, k, n], of real ones 1 or -1. [count, k, 1]
UOpRef signOfRows(Composer &b, UOpRef x) {
  UOpRef at = b.make(Op::ArgReduce, {b.un(Op::Abs, x)}, {0, 2});
  UOpRef greatest = b.make(Op::Pick, {x, b.unsqueeze(at, {2})}, {2});
  return directionOf(b, greatest);
}

// ---- eigenvalues

constexpr int64_t mostByRotations = 32;

/// Values ascending, vectors in rows, conjugated, with their signs.
EigenPairs eigenPairs(Composer &b, const Matrices &m, bool upper) {
  if (b.failed()) return {};
  int64_t n = m.rows;
  UOpRef low = upper ? adjoint(b, upperPart(b, m.x)) : lowerPart(b, m.x);
  UOpRef onDiagonal = b.bin(Op::Eq, rowNumbers(b, n), columnNumbers(b, n));
  UOpRef x = b.select(b.bin(Op::Lt, columnNumbers(b, n), rowNumbers(b, n)), low, adjoint(b, low));
  if (x && isComplex(x->dtype)) x = b.select(onDiagonal, likewise(b, realPart(b, x), x), x);
  Scale scale = scaleOf(b, x);
  x = scaled(b, x, scale.exponent, false);
  if (n > mostByRotations && x)
    x = b.select(b.unsqueeze(scale.finite, {1, 2}), x, number(b, x, 0));
  else
    x = orNaN(b, scale.finite, x);
  EigenPairs found = n > mostByRotations ? eigenByHalves(b, x) : eigenByRotations(b, x);
  if (b.failed() || !found.rows) return {};
  UOpRef order = b.make(Op::ArgSort, {found.values}, {1, 0});
  UOpRef values = orNaN(b, scale.finite, scaled(b, b.make(Op::Pick, {found.values, order}, {1}), scale.exponent, true));
  UOpRef rows = n > mostByRotations ? found.rows : rowsInOrder(b, found.rows, order);
  rows = orNaN(b, scale.finite, b.bin(Op::Mul, rows, conjugate(b, signOfRows(b, rows))));
  return {values, rows, infoOf(b, scale, found.info)};
}

} // namespace

/// x + c, c twice a norm of x, is positive definite and well conditioned: L L'. Rows of L' that are made orthogonal are
/// multiples of the eigenvectors of x (K. Veselic and V. Hari), whose eigenvalues are Rayleigh's quotients.
EigenPairs linalg::eigenByRotations(Composer &b, UOpRef x) {
  if (!x || b.failed()) return {};
  int64_t n = *x->shape[1]->constIndex();
  UOpRef onDiagonal = b.bin(Op::Eq, rowNumbers(b, n), columnNumbers(b, n));
  UOpRef norm = b.reduce(ReduceKind::Max, b.reduce(ReduceKind::Sum, b.un(Op::Abs, x), {2}), {1}); // [count, 1, 1]
  UOpRef shift = b.bin(Op::Mul, b.bin(Op::Max, norm, 1), 2);
  UOpRef positive = b.select(onDiagonal, b.bin(Op::Add, x, likewise(b, shift, x)), x);
  Orthogonal found = orthogonalRows(b, adjoint(b, factorCholesky(b, positive, panelOf(n)).factor), n);
  if (b.failed() || !found.rows) return {};
  UOpRef squares = b.reduce(ReduceKind::Sum, squared(b, found.rows), {2});
  UOpRef rows = overReal(b, found.rows, b.un(Op::Sqrt, squares));
  UOpRef along = realPart(b, b.bin(Op::Mul, times(b, rows, x), conjugate(b, rows)));
  return {b.squeeze(b.reduce(ReduceKind::Sum, along, {2}), {2}), rows, found.info};
}

/// Of gV and gw it is V (gw on the diagonal, V' gV over w_j - w_i beside it) V', its Hermitian part; pairs of equal
/// values give nothing.
Eigen eigh(Composer &b, UOpRef given, bool upper) {
  Matrices m = matricesOf(b, given, true, mostExtent);
  EigenPairs pairs = eigenPairs(b, m, upper);
  if (b.failed()) return {};
  int64_t n = m.rows;
  UOpRef vectors = adjoint(b, pairs.rows), values = pairs.values;
  if (vectors && b.wantsGradients()) {
    UOpRef both = b.concat({vectors, likewise(b, b.unsqueeze(values, {2}), vectors)}, 2);
    both = withRule(b, both, {m.x}, [&](UOpRef y, llvm::ArrayRef<UOpRef>, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
      UOpRef v = block(b, y, 0, n, 0, n), w = block(b, y, 0, n, n, 1), gv = block(b, g, 0, n, 0, n),
             gw = block(b, g, 0, n, n, 1);
      if (y && isComplex(y->dtype)) gv = beforeDirections(b, v, gv, imaginaryProduct(b, gv, v));
      UOpRef apart = b.bin(Op::Sub, transposed(b, w), w), equal = isNumber(b, apart, 0);
      UOpRef inner = b.bin(Op::Div, times(b, v, gv, true), b.select(equal, number(b, apart, 1), apart));
      UOpRef onDiagonal = b.bin(Op::Eq, rowNumbers(b, n), columnNumbers(b, n));
      inner = b.select(onDiagonal, gw, b.select(equal, number(b, inner, 0), inner));
      UOpRef whole = times(b, times(b, v, inner), v, false, true);
      return {halved(b, b.bin(Op::Add, whole, adjoint(b, whole)))};
    });
    vectors = block(b, both, 0, n, 0, n);
    values = b.squeeze(realPart(b, block(b, both, 0, n, n, 1)), {2});
  }
  return {m.back(b, values), m.back(b, vectors), m.back(b, pairs.info)};
}

UOpRef eigvalsh(Composer &b, UOpRef given, bool upper) { return eigh(b, given, upper).values; }

// ---- singular values

namespace {

/// By rotations of the rows of square matrices.
SingularParts singularByRotations(Composer &b, UOpRef x, bool vectors) {
  if (!x || b.failed()) return {};
  int64_t n = *x->shape[1]->constIndex();
  DType t = x->dtype;
  UOpRef z = x; // its rows are turned; beside them stand the rotations
  if (vectors) {
    UOpRef eye = identity(b, x->shape[0], n, t);
    z = z && eye ? b.concat({z, eye}, 2) : nullptr;
  }
  Orthogonal done = orthogonalRows(b, z, n);
  if (b.failed() || !done.rows) return {};
  UOpRef rows = block(b, done.rows, 0, n, 0, n); // s V'
  UOpRef squares = b.squeeze(b.reduce(ReduceKind::Sum, squared(b, rows), {2}), {2});
  UOpRef lengths = b.select(b.bin(Op::Lt, b.b.lit(partOf(t), leastSquare(t)), squares), b.un(Op::Sqrt, squares),
                            number(b, squares, 0));
  UOpRef order = b.make(Op::ArgSort, {lengths}, {1, 1});
  SingularParts r;
  r.s = b.make(Op::Pick, {lengths, order}, {1});
  r.info = done.info;
  if (!vectors || b.failed()) return r;
  // Rows of length 1, and for those of zeros what completes a basis: Q of a QR, its columns with the signs of R.
  UOpRef isZero = b.unsqueeze(b.bin(Op::Eq, r.s, 0.0), {2});
  UOpRef unit = overReal(b, rowsInOrder(b, rows, order), b.select(isZero, number(b, r.s, 1), b.unsqueeze(r.s, {2})));
  unit = b.select(isZero, number(b, unit, 0), unit);
  QR basis = factorQR(b, adjoint(b, unit), false);
  UOpRef flips = b.bin(Op::Lt, realPart(b, diagonalOf(b, basis.r)), 0.0);
  UOpRef v = adjoint(b, basis.q); // in rows
  r.v = b.select(b.unsqueeze(flips, {2}), b.un(Op::Neg, v), v);
  r.u = adjoint(b, rowsInOrder(b, block(b, done.rows, 0, n, n, n), order)); // of rotations in rows
  return r;
}

/// Of x [count, m, n], m >= n: u [count, m, n], or [count, m, m] if full, s [count, n], v [count, n, n] in rows. Only s
/// without vectors. Signs are those of u, or of v.
SVD singular(Composer &b, UOpRef x, bool full, bool vectors, bool signsOfV = false) {
  if (!x || b.failed()) return {};
  int64_t m = *x->shape[1]->constIndex(), n = *x->shape[2]->constIndex();
  Scale scale = scaleOf(b, x);
  x = scaled(b, x, scale.exponent, false);
  bool large = n > mostByRotations;
  if (large && x)
    x = b.select(b.unsqueeze(scale.finite, {1, 2}), x, number(b, x, 0));
  else
    x = orNaN(b, scale.finite, x);
  QR first = factorQR(b, x, false);
  SingularParts parts = large ? singularByPolar(b, first.r, vectors) : singularByRotations(b, first.r, vectors);
  if (b.failed() || !parts.s) return {};
  SVD r;
  r.s = orNaN(b, scale.finite, scaled(b, parts.s, scale.exponent, true));
  r.info = infoOf(b, scale, parts.info);
  if (!vectors) return r;
  UOpRef u = times(b, first.q, parts.u), v = parts.v;        // [count, m, n], [count, n, n]
  UOpRef sign = signOfRows(b, signsOfV ? v : adjoint(b, u)); // of a row of v, or of an adjoint column of u
  v = b.bin(Op::Mul, v, conjugate(b, sign));
  u = b.bin(Op::Mul, u, transposed(b, sign));
  if (full && m > n) { // the rest of a basis
    QR whole = factorQR(b, u, true);
    u = whole.q && u ? b.concat({u, block(b, whole.q, 0, m, n, m - n)}, 2) : nullptr;
  }
  r.u = orNaN(b, scale.finite, u);
  r.vh = orNaN(b, scale.finite, v);
  return r;
}

} // namespace

SVD svd(Composer &b, UOpRef given, bool full) {
  Matrices m = matricesOf(b, given, false, mostExtent);
  if (b.failed()) return {};
  bool wide = m.rows < m.columns;
  int64_t tall = std::max(m.rows, m.columns), k = std::min(m.rows, m.columns);
  SVD r = singular(b, wide ? adjoint(b, m.x) : m.x, full, true, wide);
  if (b.failed()) return {};
  UOpRef u = wide ? adjoint(b, r.vh) : r.u, v = wide ? adjoint(b, r.u) : r.vh, s = r.s;
  if (u && b.wantsGradients()) {
    // The three in one value, [m + k + 1, ..]: u, s as a row, v; of the full ones the rest stays as it is.
    UOpRef thinU = block(b, u, 0, m.rows, 0, k), thinV = adjoint(b, block(b, v, 0, k, 0, m.columns));
    UOpRef all = thinU && thinV ? b.concat({thinU, likewise(b, b.unsqueeze(s, {1}), thinU), thinV}, 1) : nullptr;
    all = withRule(b, all, {m.x}, [&](UOpRef y, llvm::ArrayRef<UOpRef>, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
      auto parts = [&](UOpRef from) {
        return std::array<UOpRef, 3>{block(b, from, 0, m.rows, 0, k), block(b, from, m.rows, 1, 0, k),
                                     block(b, from, m.rows + 1, m.columns, 0, k)};
      };
      auto [u, s, v] = parts(y);
      auto [gu, gs, gv] = parts(g);
      bool complex = y && isComplex(y->dtype);
      gs = likewise(b, realPart(b, gs), gs);
      if (complex)
        gu = beforeDirections(b, u, gu, b.bin(Op::Add, imaginaryProduct(b, gu, u), imaginaryProduct(b, gv, v)));
      UOpRef zero = number(b, y, 0), one = number(b, y, 1), column = transposed(b, s);
      auto safe = [&](UOpRef x) { return b.select(isNumber(b, x, 0), one, x); };
      auto orZero = [&](UOpRef by, UOpRef x) { return b.select(isNumber(b, by, 0), zero, x); };
      UOpRef apart = b.bin(Op::Mul, b.bin(Op::Sub, s, column), b.bin(Op::Add, s, column)); // s_j^2 - s_i^2
      auto skew = [&](UOpRef w) {                                                          // over that
        return orZero(apart, b.bin(Op::Div, b.bin(Op::Sub, w, adjoint(b, w)), safe(apart)));
      };
      UOpRef ofU = times(b, u, gu, true), ofV = times(b, v, gv, true);
      UOpRef inner = b.bin(Op::Add, b.bin(Op::Mul, skew(ofU), s), b.bin(Op::Mul, column, skew(ofV)));
      UOpRef onDiagonal = b.bin(Op::Eq, rowNumbers(b, k), columnNumbers(b, k));
      if (complex) { // a direction that u and v do not share
        UOpRef own = b.bin(Op::Complex, b.literal(b.un(Op::Imag, s), 0), b.un(Op::Imag, ofU));
        gs = b.bin(Op::Add, gs, orZero(s, b.bin(Op::Div, own, safe(s))));
      }
      inner = b.bin(Op::Add, inner, b.select(onDiagonal, gs, zero));
      UOpRef whole = times(b, times(b, u, inner), v, false, true);
      auto outside = [&](UOpRef basis, UOpRef w, UOpRef along) { // what of w / s lies outside of the basis
        UOpRef rest = b.bin(Op::Sub, w, times(b, basis, along));
        return orZero(s, b.bin(Op::Div, rest, safe(s)));
      };
      if (m.rows > k) whole = b.bin(Op::Add, whole, times(b, outside(u, gu, ofU), v, false, true));
      if (m.columns > k) whole = b.bin(Op::Add, whole, times(b, u, outside(v, gv, ofV), false, true));
      return {whole};
    });
    if (!all) return {};
    thinU = block(b, all, 0, m.rows, 0, k);
    thinV = adjoint(b, block(b, all, m.rows + 1, m.columns, 0, k));
    u = u->shape == thinU->shape ? thinU : b.concat({thinU, block(b, u, 0, m.rows, k, tall - k)}, 2);
    v = v->shape == thinV->shape ? thinV : b.concat({thinV, block(b, v, k, tall - k, 0, m.columns)}, 1);
    s = b.squeeze(realPart(b, block(b, all, m.rows, 1, 0, k)), {1});
  }
  return {m.back(b, u), m.back(b, s), m.back(b, v), m.back(b, r.info)};
}

UOpRef svdvals(Composer &b, UOpRef given) {
  if (b.wantsGradients()) return svd(b, given).s;
  Matrices m = matricesOf(b, given, false, mostExtent);
  if (b.failed()) return nullptr;
  return m.back(b, singular(b, m.rows < m.columns ? adjoint(b, m.x) : m.x, false, false).s);
}

} // namespace astra::compose
