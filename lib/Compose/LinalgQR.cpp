//===- LinalgQR.cpp: QR by Householder reflections -----------------------===//
// Takes:    matrices of any two extents.
// Gives:    panels: a scan of one reflection a step on a panel, then all of them at once as I - V T V' on what stands
//           to the right (R. Schreiber and C. Van Loan); Q from the last panel back to the first.
// Keeps:    a column is scaled by a power of two before it is squared: nothing overflows or underflows on the way.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"
#include <algorithm>

namespace astra::compose {

using namespace linalg;

Reflection linalg::reflectionOf(Composer &b, UOpRef column, UOpRef at) {
  if (!column || b.failed()) return {};
  UOpRef i = columnNumbers(b, *column->shape[1]->constIndex()), isBelow = b.bin(Op::Lt, at, i),
         isHead = b.bin(Op::Eq, i, at);
  UOpRef zero = number(b, column, 0), one = number(b, column, 1);
  UOpRef part = b.select(b.bin(Op::Le, at, i), column, zero);
  UOpRef exponent = exponentOf(b, b.squeeze(b.reduce(ReduceKind::Max, greaterPart(b, part), {1}), {1}));
  part = scaled(b, part, exponent, false);
  UOpRef tail = b.select(isBelow, part, zero), head = b.unsqueeze(b.make(Op::Gather, {part, at}, {1}), {1});
  UOpRef squares = b.reduce(ReduceKind::Sum, squared(b, tail), {1}); // [count, 1]
  UOpRef real = realPart(b, head);
  // A head that is not finite hides its tail, which is scaled to zeros: that is no column without one.
  UOpRef isNone = b.bin(Op::And, b.bin(Op::Eq, squares, 0.0), b.bin(Op::Eq, b.bin(Op::Sub, real, real), 0.0));
  if (isComplex(column->dtype)) isNone = b.bin(Op::And, isNone, b.bin(Op::Eq, b.un(Op::Imag, head), 0.0));
  UOpRef norm = b.un(Op::Sqrt, b.bin(Op::Add, squared(b, head), squares));
  UOpRef beta = b.un(Op::Neg, b.make(Op::CopySign, {norm, real}));
  beta = b.select(isNone, real, beta);
  UOpRef full = likewise(b, beta, column);
  UOpRef divisor = b.select(isNone, number(b, beta, 1), beta);
  UOpRef tau = b.select(isNone, zero, overReal(b, b.bin(Op::Sub, full, head), divisor));
  UOpRef under = b.select(isNone, one, b.bin(Op::Sub, head, full));
  UOpRef vector = b.select(isBelow, b.bin(Op::Div, tail, under), b.select(isHead, one, zero));
  return {vector, tau, scaled(b, beta, exponent, true)};
}

namespace {

struct Panel {
  UOpRef r = nullptr;       // [count, m, n]: the panel after its reflections; below the diagonal their vectors
  UOpRef v = nullptr;       // [count, m, steps]
  UOpRef t = nullptr;       // [count, steps, steps]: T'
  UOpRef factors = nullptr; // [count, steps]: 0 of no reflection
};

/// The panel of reflections from their vectors below the diagonal of r, and their factors.
Panel panelFrom(Composer &b, UOpRef r, UOpRef factors) {
  if (!r || !factors || b.failed()) return {};
  int64_t m = *r->shape[1]->constIndex(), steps = *factors->shape[1]->constIndex();
  Panel p;
  p.r = r;
  p.factors = factors;
  UOpRef zero = number(b, r, 0), one = number(b, r, 1),
         isSome = b.un(Op::Not, isNumber(b, factors, 0)); // [count, steps]
  UOpRef below = b.bin(Op::Lt, columnNumbers(b, steps), rowNumbers(b, m)),
         diagonal = b.bin(Op::Eq, columnNumbers(b, steps), rowNumbers(b, m));
  UOpRef ones = b.select(b.bin(Op::And, diagonal, b.unsqueeze(isSome, {1})), one, zero);
  p.v = b.select(below, block(b, r, 0, m, 0, steps), ones); // of no reflection: zeros
  // T'^-1 has 1 / tau on its diagonal and the products of the vectors below it.
  UOpRef inverses = b.bin(Op::Div, one, b.select(isSome, conjugate(b, factors), one));
  UOpRef s = b.select(b.bin(Op::Eq, columnNumbers(b, steps), rowNumbers(b, steps)), b.unsqueeze(inverses, {2}),
                      times(b, p.v, p.v, true));
  p.t = forwardSolve(b, s, identity(b, r->shape[0], steps, r->dtype), false, steps);
  return p;
}

Panel reflect(Composer &b, UOpRef x) {
  int64_t m = *x->shape[1]->constIndex(), n = *x->shape[2]->constIndex(), steps = std::min(m, n);
  UOpRef i = columnNumbers(b, m), k = columnNumbers(b, n);
  ScanMaker scan(b, b.idx(steps));
  UOpRef now = scan.carry(x), j = scan.slice(columnNumbers(b, steps));
  UOpRef isBelow = b.bin(Op::Lt, j, i), isHead = b.bin(Op::Eq, i, j);
  auto [vector, tau, beta] = reflectionOf(b, columnAt(b, now, j), j);
  if (!vector || !tau || b.failed()) return {};
  UOpRef along = times(b, b.unsqueeze(conjugate(b, vector), {1}), now); // [count, 1, n]
  UOpRef less = minusProduct(b, now, b.unsqueeze(b.bin(Op::Mul, conjugate(b, tau), vector), {2}), along);
  UOpRef stays = b.select(b.unsqueeze(isHead, {1}), b.unsqueeze(likewise(b, beta, x), {2}),
                          b.select(b.unsqueeze(isBelow, {1}), b.unsqueeze(vector, {2}), now));
  UOpRef next = b.select(b.bin(Op::Lt, j, k), less, b.select(b.bin(Op::Eq, k, j), stays, now));
  std::vector<UOpRef> done = scan.finish({next}, {b.squeeze(tau, {1})});
  return b.failed() ? Panel() : panelFrom(b, done[0], b.permute(done[1], {1, 0}));
}

/// (I - V T V') y, or with T' in T's place.
UOpRef applied(Composer &b, const Panel &p, UOpRef y, bool turned) {
  UOpRef along = times(b, p.t, times(b, p.v, y, true), !turned);
  return b.bin(Op::Sub, y, times(b, p.v, along));
}

struct Reduced {
  std::vector<Panel> panels;
  UOpRef r = nullptr; // [count, steps, n]
};

/// Panel after panel, each applied to what stands to its right.
Reduced reduce(Composer &b, UOpRef x, int64_t panel) {
  int64_t m = *x->shape[1]->constIndex(), n = *x->shape[2]->constIndex(), steps = std::min(m, n);
  Reduced made;
  std::vector<UOpRef> rows; // of R, a panel's at a time
  UOpRef rest = x;
  for (int64_t at = 0; at < steps && !b.failed(); at += panel) {
    int64_t here = std::min(panel, steps - at), left = m - at, columns = n - at;
    Panel p = reflect(b, block(b, rest, 0, left, 0, here));
    UOpRef top = upperPart(b, block(b, p.r, 0, here, 0, here));
    if (columns > here) {
      UOpRef others = applied(b, p, block(b, rest, 0, left, here, columns - here), true);
      top = top && others ? b.concat({top, block(b, others, 0, here, 0, columns - here)}, 2) : nullptr;
      rest = left > here ? block(b, others, here, left - here, 0, columns - here) : nullptr;
    }
    if (!top || b.failed()) return {};
    Dims none(3, b.idx(0)), before = none;
    before[2] = b.idx(at);
    rows.push_back(b.pad(top, before, none, 0));
    made.panels.push_back(p);
  }
  made.r = b.concat(rows, 1);
  return made;
}

/// x [count, rows, n] with rows of zeros behind.
UOpRef withRows(Composer &b, UOpRef x, int64_t rows) {
  int64_t have = x ? *x->shape[1]->constIndex() : rows;
  if (have >= rows) return x;
  Dims none(3, b.idx(0)), behind = none;
  behind[1] = b.idx(rows - have);
  return b.pad(x, none, behind, 0);
}

/// The first `width` columns of the product of the reflections of panels of one width on m rows, like x in type.
UOpRef orthogonal(Composer &b, llvm::ArrayRef<Panel> panels, UOpRef x, int64_t m, int64_t width, int64_t panel) {
  UOpRef count = x->shape[0], q = nullptr; // [count, m - at, width - at]
  for (size_t i = panels.size(); i-- > 0 && !b.failed();) {
    int64_t at = int64_t(i) * panel;
    UOpRef eye =
        b.select(b.bin(Op::Eq, rowNumbers(b, m - at), columnNumbers(b, width - at)), number(b, x, 1), number(b, x, 0));
    eye = b.broadcastTo(eye, {count, b.idx(m - at), b.idx(width - at)});
    if (q) {
      Dims before = {b.idx(0), b.idx(panel), b.idx(panel)};
      UOpRef inner = b.bin(Op::And, b.bin(Op::Le, b.b.litInt(DType::I64, panel), rowNumbers(b, m - at)),
                           b.bin(Op::Le, b.b.litInt(DType::I64, panel), columnNumbers(b, width - at)));
      eye = b.select(inner, b.pad(q, before, Dims(3, b.idx(0)), 0), eye);
    }
    q = applied(b, panels[i], eye, false);
  }
  return q;
}

} // namespace

static QR qrOf(Composer &b, UOpRef x, bool complete) {
  if (!x || b.failed()) return {};
  int64_t m = *x->shape[1]->constIndex(), n = *x->shape[2]->constIndex(), steps = std::min(m, n);
  int64_t width = complete ? m : steps, panel = panelOf(steps);
  Reduced made = reduce(b, x, panel);
  if (b.failed()) return {};
  UOpRef r = complete ? withRows(b, made.r, m) : made.r;
  return {orthogonal(b, made.panels, x, m, width, panel), r};
}

QR linalg::factorQR(Composer &b, UOpRef x, bool complete) {
  std::vector<UOpRef> made = inParts(b, {x}, [&](llvm::ArrayRef<UOpRef> part) -> std::vector<UOpRef> {
    QR f = qrOf(b, part[0], complete);
    return {f.q, f.r};
  });
  return {made[0], made[1]};
}

UOpRef linalg::reflected(Composer &b, UOpRef vectors, UOpRef factors, UOpRef y) {
  Panel p = panelFrom(b, vectors, factors);
  return b.failed() ? nullptr : applied(b, p, y, false);
}

Reflections reflections(Composer &b, UOpRef given) {
  Matrices m = matricesOf(b, given, false);
  if (b.failed()) return {};
  int64_t steps = std::min(m.rows, m.columns), panel = panelOf(steps);
  Reduced made = reduce(b, m.x, panel);
  if (b.failed()) return {};
  UOpRef packed = withRows(b, made.r, m.rows);
  std::vector<UOpRef> factors;
  for (size_t i = 0; i < made.panels.size() && !b.failed(); ++i) {
    const Panel &p = made.panels[i];
    int64_t at = int64_t(i) * panel, here = *p.factors->shape[1]->constIndex();
    UOpRef vectors = lowerPart(b, p.r, -1);
    Dims before = {b.idx(0), b.idx(at), b.idx(at)}, behind = {b.idx(0), b.idx(0), b.idx(m.columns - at - here)};
    packed = b.bin(Op::Add, packed, b.pad(vectors, before, behind, 0));
    factors.push_back(p.factors);
  }
  UOpRef all = b.failed() ? nullptr : b.unsqueeze(b.concat(factors, 1), {2});
  UOpRef back = m.back(b, all);
  return {m.back(b, packed), back ? b.squeeze(back, {int64_t(back->rank()) - 1}) : nullptr};
}

UOpRef productOfReflections(Composer &b, UOpRef packed, UOpRef factors) {
  Matrices m = matricesOf(b, packed, false);
  if (b.failed() || !factors) return nullptr;
  int64_t steps = factors->rank() ? factors->shape.back()->constIndex().value_or(-1) : -1;
  if (m.rows < m.columns || factors->rank() + 1 != packed->rank() || steps < 0 || steps > m.columns)
    return b.fail("factors of reflections must be [.., k] beside matrices [.., m, n] with k <= n <= m");
  if (steps < 1) return b.fail("there are no reflections");
  Matrices f = matricesOf(b, b.unsqueeze(factors, {int64_t(factors->rank())}), false);
  if (b.failed()) return nullptr;
  UOpRef all = b.squeeze(f.x, {2});                                     // [count, k]
  UOpRef isSome = b.unsqueeze(b.un(Op::Not, isNumber(b, all, 0)), {1}); // [count, 1, k]
  UOpRef vectors = block(b, m.x, 0, m.rows, 0, steps);
  vectors = b.select(isSome, vectors, number(b, vectors, 0));
  int64_t panel = panelOf(steps);
  std::vector<Panel> panels;
  for (int64_t at = 0; at < steps && !b.failed(); at += panel) {
    int64_t here = std::min(panel, steps - at);
    UOpRef part = b.squeeze(block(b, b.unsqueeze(all, {1}), 0, 1, at, here), {1});
    panels.push_back(panelFrom(b, block(b, vectors, at, m.rows - at, at, here), part));
  }
  return b.failed() ? nullptr : m.back(b, orthogonal(b, panels, m.x, m.rows, m.columns, panel));
}

namespace {

/// Q and R of m >= n, Q over R, with a rule: of gQ and gR with M = R gR' - gQ' Q it is
/// (gQ + Q (the lower half of M, mirrored to a Hermitian one)) R'^-1.
QR tallQR(Composer &b, UOpRef x) {
  int64_t m = *x->shape[1]->constIndex(), n = *x->shape[2]->constIndex();
  QR made = factorQR(b, x, false);
  if (!b.wantsGradients() || b.failed()) return made;
  UOpRef both = b.concat({made.q, made.r}, 1);
  both = withRule(b, both, {x}, [&](UOpRef y, llvm::ArrayRef<UOpRef>, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
    UOpRef q = block(b, y, 0, m, 0, n), r = upperPart(b, block(b, y, m, n, 0, n));
    UOpRef gq = block(b, g, 0, m, 0, n), gr = upperPart(b, block(b, g, m, n, 0, n));
    UOpRef mid = b.bin(Op::Sub, times(b, r, gr, false, true), times(b, gq, q, true));
    UOpRef low = lowerPart(b, mid, -1), onDiagonal = b.bin(Op::Eq, rowNumbers(b, n), columnNumbers(b, n));
    UOpRef mirrored = b.select(onDiagonal, likewise(b, realPart(b, mid), mid), b.bin(Op::Add, low, adjoint(b, low)));
    TriangularOptions right;
    right.right = right.upper = right.transposed = true;
    return {solveTriangular(b, conjugate(b, r), b.bin(Op::Add, gq, times(b, q, mirrored)), right, 1)};
  });
  return {block(b, both, 0, m, 0, n), block(b, both, m, n, 0, n)};
}

} // namespace

QR qr(Composer &b, UOpRef given, bool complete) {
  Matrices m = matricesOf(b, given, false);
  if (b.failed()) return {};
  QR made;
  if (complete && m.rows > m.columns) {
    made = factorQR(b, m.x, true);
  } else if (m.rows >= m.columns) {
    made = tallQR(b, m.x);
  } else { // the derivative of the columns behind goes through Q
    made = tallQR(b, block(b, m.x, 0, m.rows, 0, m.rows));
    UOpRef others = times(b, made.q, block(b, m.x, 0, m.rows, m.rows, m.columns - m.rows), true);
    made.r = made.r && others ? b.concat({made.r, others}, 2) : nullptr;
  }
  return {m.back(b, made.q), m.back(b, made.r)};
}

} // namespace astra::compose
