//===- LinalgTridiagonal.cpp: eigenvalues of larger symmetric matrices ----===//
// Takes:    symmetric or Hermitian matrices, finite, whose greatest magnitude is below 2.
// Gives:    reflections to tridiagonal form, a panel at a time (J. Dongarra, S. Hammarling and D. Sorensen); then
//           eigenvalues and eigenvectors by halves (J. Cuppen): blocks by rotations, all of them at once, and two
//           neighbours joined by a matrix of rank 1, again all pairs of a size at once.
// Keeps:    no step depends on what data deflate. Where LAPACK deflates, numbers move by some eps of the norm: equal
//           poles apart, weights and couplings off 0. Eigenvectors are made of the weights whose roots were found
//           (M. Gu and S. Eisenstat), so they are orthogonal however near the roots.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace astra::compose::linalg {

namespace {

constexpr int64_t mostBlock = 32, mostRounds = 100;

/// x = q t q', t real with diagonal d and e beside it, q the product of panels of reflections.
struct Tridiagonal {
  UOpRef d = nullptr, e = nullptr; // [count, n], the last of e is 0
  std::vector<UOpRef> vectors;     // of panels [count, rows, steps], which act on the last rows
  std::vector<UOpRef> factors;     // [count, steps]
};

/// A panel of reflections: columns of what is left of x, x - v w' - w v' being what it becomes.
Tridiagonal toTridiagonal(Composer &b, UOpRef x) {
  int64_t n = *x->shape[1]->constIndex(), panel = panelOf(n);
  UOpRef count = x->shape[0], rest = x;
  Tridiagonal made;
  std::vector<UOpRef> diagonals, beside;
  for (int64_t at = 0; at < n && rest && !b.failed(); at += panel) {
    int64_t m = n - at, steps = std::min(panel, m);
    UOpRef none = b.broadcastTo(number(b, rest, 0), {count, b.idx(m), b.idx(steps)});
    ScanMaker scan(b, b.idx(steps));
    UOpRef v = scan.carry(none), w = scan.carry(none), j = scan.slice(columnNumbers(b, steps)), a = scan.close(rest);
    auto rowOf = [&](UOpRef y) { return b.unsqueeze(conjugate(b, rowAt(b, y, j)), {2}); }; // [count, steps, 1]
    UOpRef column = b.unsqueeze(columnAt(b, a, j), {2});
    column = b.bin(Op::Sub, column, b.bin(Op::Add, times(b, v, rowOf(w)), times(b, w, rowOf(v))));
    column = b.squeeze(column, {2}); // [count, m]
    UOpRef corner = realPart(b, b.make(Op::Gather, {column, j}, {1}));
    Reflection r = reflectionOf(b, column, b.bin(Op::Add, j, 1));
    if (!r.vector || b.failed()) return {};
    UOpRef own = b.unsqueeze(r.vector, {2}), tau = b.unsqueeze(r.tau, {2}); // [count, m, 1], [count, 1, 1]
    UOpRef product = adjoint(b, times(b, b.unsqueeze(conjugate(b, r.vector), {1}), a));
    product = b.bin(Op::Sub, product,
                    b.bin(Op::Add, times(b, v, times(b, w, own, true)), times(b, w, times(b, v, own, true))));
    product = b.bin(Op::Mul, product, tau);
    UOpRef twice = realPart(b, b.bin(Op::Mul, conjugate(b, tau), times(b, own, product, true)));
    twice = b.bin(Op::Mul, twice, 0.5);
    UOpRef other = b.bin(Op::Sub, product, timesReal(b, own, b.broadcastTo(twice, own->shape)));
    UOpRef here = b.bin(Op::Eq, columnNumbers(b, steps), j);
    std::vector<UOpRef> done = scan.finish({b.select(here, own, v), b.select(here, other, w)},
                                           {corner, b.squeeze(r.beta, {1}), b.squeeze(r.tau, {1})});
    if (b.failed()) return {};
    auto stacked = [&](UOpRef y) { return b.permute(y, {1, 0}); };
    diagonals.push_back(stacked(done[2]));
    beside.push_back(stacked(done[3]));
    if (m > 1) {
      made.vectors.push_back(block(b, done[0], 1, m - 1, 0, std::min(steps, m - 1)));
      made.factors.push_back(b.part(stacked(done[4]), 1, 0, std::min(steps, m - 1)));
    }
    if (m == steps) break;
    UOpRef left = block(b, done[0], steps, m - steps, 0, steps), right = block(b, done[1], steps, m - steps, 0, steps);
    UOpRef both = b.concat({left, right}, 2), turned = b.concat({right, left}, 2);
    rest = b.bin(Op::Sub, block(b, rest, steps, m - steps, steps, m - steps), times(b, both, turned, false, true));
  }
  if (b.failed()) return {};
  made.d = b.concat(diagonals, 1);
  made.e = b.concat(beside, 1);
  return made;
}

/// Poles d, ascending and apart, weights z and coupling rho: eigenvalues and eigenvectors of diag(d) + rho z z'. The
/// roots are counted from the nearest pole.
struct Joined {
  UOpRef values = nullptr;  // [blocks, n]
  UOpRef vectors = nullptr; // [blocks, n, n], in columns
  UOpRef info = nullptr;    // [blocks]
};
Joined joined(Composer &b, UOpRef d, UOpRef z, UOpRef rho) {
  if (!d || !z || !rho || b.failed()) return {};
  int64_t n = *d->shape[1]->constIndex();
  UOpRef blocks = d->shape[0];
  DType t = d->dtype;
  UOpRef i = rowNumbers(b, n), j = columnNumbers(b, n), zero = number(b, d, 0), one = number(b, d, 1);
  UOpRef squares = b.bin(Op::Mul, b.bin(Op::Mul, z, z), rho); // [blocks, n]
  // The interval of each root: from its pole to the next one; of the last, as far as the sum of the weights.
  UOpRef next = b.concat({b.part(d, 1, 1, n - 1), b.part(d, 1, n - 1, 1)}, 1);
  UOpRef width = b.concat(
      {b.bin(Op::Sub, b.part(d, 1, 1, n - 1), b.part(d, 1, 0, n - 1)), b.reduce(ReduceKind::Sum, squares, {1})}, 1);
  UOpRef half = b.bin(Op::Mul, width, 0.5);
  auto perRoot = [&](UOpRef x) { return b.unsqueeze(x, {2}); };
  auto perPole = [&](UOpRef x) { return b.unsqueeze(x, {1}); };
  // poles from an origin of each root [blocks, n, n]: those of a root stand in a row
  auto polesFrom = [&](UOpRef origin) { return b.bin(Op::Sub, perPole(d), perRoot(origin)); };
  UOpRef isLeft = b.bin(Op::Le, j, i); // poles up to the root's own
  struct Sums {
    UOpRef left, right, leftSlope, rightSlope;
  };
  auto sumsAt = [&](UOpRef poles, UOpRef weights, UOpRef tau) {
    UOpRef apart = b.bin(Op::Sub, poles, perRoot(tau)), term = b.bin(Op::Div, perPole(weights), apart);
    UOpRef slope = b.bin(Op::Div, term, apart);
    auto sum = [&](UOpRef x, bool left) {
      UOpRef masked = left ? b.select(isLeft, x, zero) : b.select(isLeft, zero, x);
      return b.squeeze(b.reduce(ReduceKind::Sum, masked, {2}), {2});
    };
    return Sums{sum(term, true), sum(term, false), sum(slope, true), sum(slope, false)};
  };
  Sums mid = sumsAt(polesFrom(d), squares, half);
  UOpRef atMiddle = b.bin(Op::Add, b.bin(Op::Add, mid.left, mid.right), one);
  UOpRef isNear = b.bin(Op::Le, zero, atMiddle); // the root is in the first half
  UOpRef last = b.bin(Op::Eq, j, double(n - 1)); // which has no pole behind it
  isNear = b.bin(Op::Or, isNear, last);
  UOpRef origin = b.select(isNear, d, next);
  UOpRef isFull = b.bin(Op::And, last, b.bin(Op::Lt, atMiddle, zero));
  UOpRef lo = b.select(isNear, b.select(isFull, half, zero), b.un(Op::Neg, half)),
         hi = b.select(isNear, b.select(isFull, b.bin(Op::Mul, half, 2), half), zero);
  UOpRef start = b.select(isNear, half, b.un(Op::Neg, half));
  UOpRef firstPole = b.select(isNear, zero, b.un(Op::Neg, width)), secondPole = b.select(isNear, width, zero);

  // tau, lo, hi, done, round; closed over: origin, d, squares, both poles
  llvm::SmallVector<UOpRef, 10> src = {start,
                                       lo,
                                       hi,
                                       b.broadcastTo(b.b.lit(DType::Bool, 0), {blocks, b.idx(n)}),
                                       b.b.litInt(DType::I64, 0),
                                       origin,
                                       d,
                                       squares,
                                       firstPole,
                                       secondPole},
                                args;
  if (llvm::is_contained(src, nullptr) || b.failed()) return {};
  for (auto [k, s] : llvm::enumerate(src)) args.push_back(b.b.arg(k, s->dtype, s->shape));
  UOpRef open = b.squeeze(b.reduce(ReduceKind::Or, b.un(Op::Not, args[3]), {0, 1}), {0, 1});
  UOpRef again = b.bin(Op::And, open, b.bin(Op::Lt, args[4], b.b.litInt(DType::I64, mostRounds)));
  {
    UOpRef tau = args[0], poles = b.bin(Op::Sub, perPole(args[6]), perRoot(args[5]));
    Sums s = sumsAt(poles, args[7], tau);
    UOpRef f = b.bin(Op::Add, b.bin(Op::Add, s.left, s.right), one), slope = b.bin(Op::Add, s.leftSlope, s.rightSlope);
    UOpRef below = b.bin(Op::Lt, f, zero);
    UOpRef lo = b.select(below, tau, args[1]), hi = b.select(below, args[2], tau);
    UOpRef size = b.bin(Op::Add, b.bin(Op::Sub, s.right, s.left), one);
    size = b.bin(Op::Add, size, b.bin(Op::Mul, b.un(Op::Abs, tau), slope));
    UOpRef isRoot = b.bin(Op::Le, b.un(Op::Abs, f), b.bin(Op::Mul, size, 4 * epsilonOf(t)));
    UOpRef far = b.bin(Op::Max, b.un(Op::Abs, lo), b.un(Op::Abs, hi));
    UOpRef isTight = b.bin(Op::Le, b.bin(Op::Sub, hi, lo), b.bin(Op::Mul, far, 2 * epsilonOf(t)));
    // the zero of what has these two poles, this value and both these slopes (R. Li's middle way)
    UOpRef p = b.bin(Op::Sub, args[8], tau), q = b.bin(Op::Sub, args[9], tau), pq = b.bin(Op::Mul, p, q);
    UOpRef u = b.bin(Op::Sub, b.bin(Op::Mul, b.bin(Op::Add, p, q), f), b.bin(Op::Mul, pq, slope));
    UOpRef v = b.bin(Op::Mul, pq, f);
    UOpRef c = b.bin(Op::Sub, f, b.bin(Op::Add, b.bin(Op::Mul, p, s.leftSlope), b.bin(Op::Mul, q, s.rightSlope)));
    UOpRef inner = b.bin(Op::Sub, b.bin(Op::Mul, u, u), b.bin(Op::Mul, b.bin(Op::Mul, v, c), 4));
    UOpRef root = b.un(Op::Sqrt, b.bin(Op::Max, inner, zero));
    UOpRef positive = b.bin(Op::Lt, zero, u);
    UOpRef above = b.select(positive, b.bin(Op::Mul, v, 2), b.bin(Op::Sub, u, root)),
           under = b.select(positive, b.bin(Op::Add, u, root), b.bin(Op::Mul, c, 2));
    UOpRef step = b.bin(Op::Add, tau, b.bin(Op::Div, above, under));
    UOpRef fits = b.bin(Op::And, b.bin(Op::Lt, lo, step), b.bin(Op::Lt, step, hi)); // a NaN does not
    // else the middle, or, where an end is the pole and the root may be of any magnitude, a step towards it
    UOpRef middle = b.bin(Op::Add, lo, b.bin(Op::Mul, b.bin(Op::Sub, hi, lo), 0.5));
    middle = b.select(b.bin(Op::Eq, lo, 0.0), b.bin(Op::Mul, hi, 0x1p-8), middle);
    middle = b.select(b.bin(Op::Eq, hi, 0.0), b.bin(Op::Mul, lo, 0x1p-8), middle);
    UOpRef better = b.select(fits, step, middle);
    UOpRef done = b.bin(Op::Or, args[3], b.bin(Op::Or, isRoot, isTight));
    auto kept = [&](UOpRef was, UOpRef now) { return b.select(done, was, now); };
    llvm::SmallVector<UOpRef, 10> body = {kept(tau, better), kept(args[1], lo), kept(args[2], hi), done,
                                          b.bin(Op::Add, args[4], 1)};
    body.append(args.begin() + 5, args.end());
    if (b.failed() || !again || llvm::is_contained(body, nullptr)) return {};
    int64_t nargs = int64_t(src.size());
    UOpRef loop =
        control(b, Op::While, src, {}, "", {b.make(Op::Func, {again}, {nargs}), b.make(Op::Func, body, {nargs})});
    start = result(b, loop, 0, t, start->shape);
    lo = result(b, loop, 3, DType::Bool, start->shape);
    isFull = lo;
  }
  Joined r;
  r.info = b.cast(b.un(Op::Not, b.squeeze(b.reduce(ReduceKind::And, isFull, {1}), {1})), DType::I64);
  r.values = b.bin(Op::Add, origin, start);
  // Weights that have these roots, by products of quotients between 0 and 1: row i of what follows is root i.
  UOpRef apart = b.bin(Op::Add, b.un(Op::Neg, polesFrom(origin)), perRoot(start)); // root i less pole j
  UOpRef before = b.bin(Op::Sub, perRoot(d), perPole(d)), behind = b.bin(Op::Sub, perRoot(next), perPole(d));
  UOpRef divisor = b.select(b.bin(Op::Lt, i, j), before, b.select(b.bin(Op::Eq, i, double(n - 1)), one, behind));
  UOpRef weights = b.reduce(ReduceKind::Prod, b.bin(Op::Div, apart, divisor), {1}); // [blocks, 1, n]
  weights = b.make(Op::CopySign, {b.un(Op::Sqrt, b.un(Op::Abs, weights)), perPole(z)});
  UOpRef rows = b.bin(Op::Div, weights, apart);
  UOpRef lengths = b.un(Op::Sqrt, b.reduce(ReduceKind::Sum, b.bin(Op::Mul, rows, rows), {2}));
  r.vectors = transposed(b, b.bin(Op::Div, rows, lengths));
  return r;
}

/// Poles in ascending order, `least` apart but for rounding: 2 eps of the norm.
UOpRef spread(Composer &b, UOpRef d, UOpRef least) {
  UOpRef steps = b.bin(Op::Mul, least, b.cast(columnNumbers(b, *d->shape[1]->constIndex()), d->dtype));
  return b.bin(Op::Add, b.make(Op::Cumulate, {b.bin(Op::Sub, d, steps)}, {int64_t(CumulateKind::Max), 1}), steps);
}

} // namespace

EigenPairs eigenByHalves(Composer &b, UOpRef x) {
  if (!x || b.failed()) return {};
  int64_t n = *x->shape[1]->constIndex();
  UOpRef count = x->shape[0];
  Tridiagonal f = toTridiagonal(b, x);
  if (!f.d || !f.e || b.failed()) return {};
  DType t = f.d->dtype;
  // Blocks of one size; what is added at the end stands apart, above all eigenvalues.
  int64_t levels = 0, size = n;
  while (size > mostBlock) size = (n + (int64_t(1) << ++levels) - 1) >> levels;
  int64_t whole = size << levels, more = whole - n;
  UOpRef e = b.un(Op::Abs, f.e);
  UOpRef norm = b.reduce(ReduceKind::Max, b.bin(Op::Add, b.un(Op::Abs, f.d), e), {1});
  UOpRef isZero = b.bin(Op::Eq, norm, 0.0);
  norm = b.bin(Op::Max, b.bin(Op::Mul, norm, 2), 1); // [count, 1], no eigenvalue is above it
  UOpRef d = f.d, beside = f.e;
  if (more) {
    UOpRef places = b.bin(Op::Add, b.bin(Op::Mul, b.cast(columnNumbers(b, more), t), 0x1p-6), 1.25);
    d = b.concat({d, b.bin(Op::Mul, norm, places)}, 1); // far enough apart
    beside = b.concat({beside, b.broadcastTo(number(b, d, 0), {count, b.idx(more)})}, 1);
  }
  UOpRef k = columnNumbers(b, whole), inSize = b.bin(Op::Mod, k, double(size));
  UOpRef isCut = b.bin(Op::And, b.bin(Op::Eq, inSize, double(size - 1)), b.bin(Op::Lt, k, double(whole - 1)));
  UOpRef least = b.bin(Op::Mul, norm, epsilonOf(t));
  UOpRef coupling = b.select(isCut, b.bin(Op::Max, b.un(Op::Abs, beside), least), number(b, d, 0));
  UOpRef none = b.idx(0);
  UOpRef shifted = b.pad(b.part(coupling, 1, 0, whole - 1), {none, b.idx(1)}, {none, none}, 0); // of the element before
  d = b.bin(Op::Sub, b.bin(Op::Sub, d, coupling), shifted);
  int64_t parts = int64_t(1) << levels;
  UOpRef blocks = idxMul(b.c, count, b.idx(parts));
  UOpRef inBlock = b.reshape(b.select(isCut, number(b, d, 0), beside), {blocks, b.idx(size)});
  UOpRef own = b.reshape(d, {blocks, b.idx(size)});
  if (!inBlock || !own || b.failed()) return {};
  UOpRef i = rowNumbers(b, size), j = columnNumbers(b, size);
  UOpRef leaf =
      b.select(b.bin(Op::Eq, i, j), b.unsqueeze(own, {2}),
               b.select(b.bin(Op::Eq, i, b.bin(Op::Add, j, 1)), b.unsqueeze(inBlock, {1}),
                        b.select(b.bin(Op::Eq, b.bin(Op::Add, i, 1), j), b.unsqueeze(inBlock, {2}), number(b, d, 0))));
  EigenPairs pairs = eigenByRotations(b, leaf);
  if (b.failed() || !pairs.rows) return {};
  UOpRef values = pairs.values, q = transposed(b, pairs.rows); // [blocks, size], [blocks, size, size]
  UOpRef info = b.reduce(ReduceKind::Max, b.reshape(pairs.info, {count, b.idx(parts)}), {1});
  for (int64_t at = size; at < whole && !b.failed(); at *= 2, parts /= 2) {
    UOpRef half = b.idx(at), full = b.idx(2 * at), fewer = idxMul(b.c, count, b.idx(parts / 2));
    // couplings stand behind the first half of each pair
    UOpRef place = b.iota(DType::I64, {b.idx(parts / 2)}, 0);
    place = b.bin(Op::Add, b.bin(Op::Mul, place, double(2 * at)), double(at - 1));
    UOpRef rho = b.reshape(b.make(Op::Gather, {coupling, place}, {1}), {fewer, b.idx(1)});
    UOpRef negative = b.bin(Op::Lt, b.reshape(b.make(Op::Gather, {beside, place}, {1}), {fewer, b.idx(1)}), 0.0);
    UOpRef pair = b.reshape(q, {fewer, b.idx(2), half, half});
    UOpRef upper = b.element(b.element(pair, 1, 0), 1, at - 1), lower = b.element(b.element(pair, 1, 1), 1, 0);
    UOpRef z = b.concat({upper, b.select(negative, b.un(Op::Neg, lower), lower)}, 1); // [fewer, 2 at]
    UOpRef tiny = number(b, z, epsilonOf(t));
    z = b.make(Op::CopySign, {b.bin(Op::Max, b.un(Op::Abs, z), tiny), z});
    UOpRef poles = b.reshape(values, {fewer, full});
    UOpRef order = b.make(Op::ArgSort, {poles}, {1, 0}), rank = b.make(Op::ArgSort, {order}, {1, 0});
    auto sorted = [&](UOpRef y) { return b.make(Op::Pick, {y, order}, {1}); };
    UOpRef each = b.reshape(b.broadcastTo(least, {count, b.idx(parts / 2)}), {fewer, b.idx(1)});
    Joined made = joined(b, spread(b, sorted(poles), each), sorted(z), rho);
    if (b.failed() || !made.vectors) return {};
    UOpRef turned = b.reshape(rowsInOrder(b, made.vectors, rank), {idxMul(b.c, count, b.idx(parts)), half, full});
    q = b.reshape(times(b, q, turned), {fewer, full, full});
    values = made.values;
    UOpRef failed = b.reduce(ReduceKind::Max, b.reshape(made.info, {count, b.idx(parts / 2)}), {1});
    info = b.bin(Op::Max, info, failed);
  }
  if (b.failed()) return {};
  UOpRef order = b.make(Op::ArgSort, {values}, {1, 0});
  values = b.part(b.make(Op::Pick, {values, order}, {1}), 1, 0, n);
  values = b.select(isZero, number(b, values, 0), values); // of zeros nothing moves
  q = block(b, columnsInOrder(b, q, order), 0, n, 0, n);
  q = likewise(b, q, x);
  for (size_t p = f.vectors.size(); p-- > 0 && !b.failed();) {
    int64_t rows = *f.vectors[p]->shape[1]->constIndex();
    UOpRef lower = reflected(b, f.vectors[p], f.factors[p], block(b, q, n - rows, rows, 0, n));
    q = rows < n ? b.concat({block(b, q, 0, n - rows, 0, n), lower}, 1) : lower;
  }
  return {values, adjoint(b, q), b.squeeze(info, {1})};
}

} // namespace astra::compose::linalg
