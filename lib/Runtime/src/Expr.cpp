//===- Expr.cpp: integer expressions over dims ----------------------------===//
// Takes:    expressions that checkManifest accepted: the stack neither underflows nor passes kMaxExprStack.
// Gives:    values with checked arithmetic, and intervals.
// Keeps:    manifest.fbs's meaning of each code.
// Does not: allocate.
#include "Manifest.h"
#include <stdio.h>

using namespace astra::rt;
using astra::fmt::ExprCode;

namespace {

int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

/// One binary step. False when the result does not exist.
bool apply(ExprCode code, int64_t a, int64_t b, int64_t &out) {
  switch (code) {
  case ExprCode::Add: return !__builtin_add_overflow(a, b, &out);
  case ExprCode::Sub: return !__builtin_sub_overflow(a, b, &out);
  case ExprCode::Mul: return !__builtin_mul_overflow(a, b, &out);
  case ExprCode::FloorDiv:
    if (b <= 0) return false;
    out = floorDiv(a, b);
    return true;
  case ExprCode::Mod:
    if (b <= 0) return false;
    out = a - floorDiv(a, b) * b;
    return true;
  case ExprCode::Min: out = a < b ? a : b; return true;
  case ExprCode::Max: out = a > b ? a : b; return true;
  case ExprCode::Lt: out = a < b; return true;
  case ExprCode::Le: out = a <= b; return true;
  case ExprCode::Eq: out = a == b; return true;
  case ExprCode::And: out = a && b; return true;
  case ExprCode::Or: out = a || b; return true;
  default: return false;
  }
}

struct Range {
  int64_t lo, hi;
};

int64_t saturate(__int128 x) { return x < INT64_MIN ? INT64_MIN : x > INT64_MAX ? INT64_MAX : static_cast<int64_t>(x); }

/// The hull of f over the four corners: right for operations that are monotone in each argument.
template <typename F> Range corners(Range a, Range b, F f) {
  __int128 v[4] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
  __int128 lo = v[0], hi = v[0];
  for (__int128 x : v) lo = x < lo ? x : lo, hi = x > hi ? x : hi;
  return {saturate(lo), saturate(hi)};
}

Range applyRange(ExprCode code, Range a, Range b) {
  using Wide = __int128;
  switch (code) {
  case ExprCode::Add: return corners(a, b, [](Wide x, Wide y) { return x + y; });
  case ExprCode::Sub: return corners(a, b, [](Wide x, Wide y) { return x - y; });
  case ExprCode::Mul: return corners(a, b, [](Wide x, Wide y) { return x * y; });
  case ExprCode::FloorDiv: {
    Range d = {b.lo > 1 ? b.lo : 1, b.hi > 1 ? b.hi : 1};
    return corners(a, d,
                   [](Wide x, Wide y) -> Wide { return floorDiv(static_cast<int64_t>(x), static_cast<int64_t>(y)); });
  }
  case ExprCode::Mod: return {0, b.hi > 1 ? (a.lo >= 0 && a.hi < b.hi - 1 ? a.hi : b.hi - 1) : 0};
  case ExprCode::Min: return corners(a, b, [](Wide x, Wide y) { return x < y ? x : y; });
  case ExprCode::Max: return corners(a, b, [](Wide x, Wide y) { return x > y ? x : y; });
  default: return {0, 1};
  }
}

} // namespace

Status astra::rt::evaluate(const fmt::Manifest &m, uint32_t index, const int64_t *dims, int64_t &out,
                           astra_diag *diag) {
  int64_t stack[fmt::kMaxExprStack];
  uint32_t depth = 0;
  for (const fmt::ExprOp *op : *m.exprs()->Get(index)->code()) {
    switch (op->code()) {
    case ExprCode::Const: stack[depth++] = op->value(); break;
    case ExprCode::Dim: stack[depth++] = dims[op->value()]; break;
    case ExprCode::Not: stack[depth - 1] = !stack[depth - 1]; break;
    default:
      depth--;
      if (!apply(op->code(), stack[depth - 1], stack[depth], stack[depth - 1]))
        return fail(
            diag, ASTRA_OVERFLOW, "expression %u of module %.64s %s; use smaller dims", index, m.module_()->c_str(),
            op->code() == ExprCode::FloorDiv || op->code() == ExprCode::Mod ? "divides by a number that is not positive"
                                                                            : "leaves 64 bits");
    }
  }
  out = stack[0];
  return ASTRA_OK;
}

Status astra::rt::evaluateBytes(const fmt::Manifest &m, uint32_t index, const int64_t *dims, uint64_t &out,
                                astra_diag *diag) {
  int64_t value;
  if (Status s = evaluate(m, index, dims, value, diag)) return s;
  if (value < 0)
    return fail(diag, ASTRA_MALFORMED, "expression %u of module %.64s gives the size %lld; the compiler made a mistake",
                index, m.module_()->c_str(), static_cast<long long>(value));
  out = static_cast<uint64_t>(value);
  return ASTRA_OK;
}

void astra::rt::evaluateRange(const fmt::Manifest &m, uint32_t index, int64_t &lower, int64_t &upper) {
  Range stack[fmt::kMaxExprStack];
  uint32_t depth = 0;
  for (const fmt::ExprOp *op : *m.exprs()->Get(index)->code()) {
    switch (op->code()) {
    case ExprCode::Const: stack[depth++] = {op->value(), op->value()}; break;
    case ExprCode::Dim: {
      const fmt::Dim *dim = m.dims()->Get(static_cast<uint32_t>(op->value()));
      stack[depth++] = {dim->lo(), dim->hi()};
      break;
    }
    case ExprCode::Not: stack[depth - 1] = {0, 1}; break;
    default: depth--; stack[depth - 1] = applyRange(op->code(), stack[depth - 1], stack[depth]);
    }
  }
  lower = stack[0].lo, upper = stack[0].hi;
}

/// Refuses a call in which a kernel's program fails a test: its sentence, the place of the program in the grid.
static Status failedTest(const fmt::Manifest &m, const fmt::Dim &dim, int64_t which, const int64_t *dims, Status status,
                         astra_diag *diag) {
  int64_t tests = dim.says()->size(), program = which / tests, at[fmt::kMaxGrid];
  uint32_t axes = dim.grid()->size();
  for (uint32_t a = axes; a-- > 0;) {
    int64_t extent;
    if (Status s = evaluate(m, dim.grid()->Get(a), dims, extent, diag)) return s;
    if (extent < 1) extent = 1;
    at[a] = a ? program % extent : program;
    program /= extent;
  }
  char ids[24 * fmt::kMaxGrid] = "";
  int length = 0;
  for (uint32_t a = 0; a < axes; a++)
    length +=
        snprintf(ids + length, sizeof(ids) - size_t(length), "%s%lld", a ? ", " : "", static_cast<long long>(at[a]));
  return fail(diag, status, "%.360s: program (%s)", dim.says()->Get(uint32_t(which % tests))->c_str(), ids);
}

Status astra::rt::checkDim(const fmt::Manifest &m, uint32_t index, int64_t value, const int64_t *dims, Status status,
                           astra_diag *diag) {
  const fmt::Dim *dim = m.dims()->Get(index);
  int64_t hi = dim->hi();
  if (dim->bound() != kNone) {
    int64_t bound;
    if (Status s = evaluate(m, dim->bound(), dims, bound, diag)) return s;
    hi = bound < hi ? bound : hi;
  }
  if (value >= dim->lo() && value <= hi) return ASTRA_OK;
  if (dim->says() && value > hi) return failedTest(m, *dim, value - hi - 1, dims, status, diag);
  return fail(diag, status, "dim %.64s is %lld; it must be in %lld .. %lld", dim->name()->c_str(),
              static_cast<long long>(value), static_cast<long long>(dim->lo()), static_cast<long long>(hi));
}
