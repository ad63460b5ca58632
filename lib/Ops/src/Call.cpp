//===- Call.cpp: astra_ops_call --------------------------------------------===//
// Takes:    a name, operands, axes of a caller, which may be wrong in every way.
// Gives:    the result's type and shape, or a sentence; then the calls that compute it.
// Keeps:    everything is checked before the first call is submitted; on failure nothing that was given is changed, but
//           for what a result's memory holds.
#include "Ops.h"

using namespace astra::ops;
using Number = long long;

namespace {

/// What is to be computed, checked.
struct Request {
  uint32_t row;
  View in[3];
  uint32_t count;
  uint32_t axes = 0; ///< a set
  int32_t axis = 0;  ///< the only one
  bool descending = false;
};

/// The type and shape of a result.
struct Shape {
  int32_t dtype, ndim = 0;
  int64_t extents[ASTRA_MAX_RANK];
};

const char *typeName(int32_t t) { return astra_dtype_name(t) ? astra_dtype_name(t) : "an unknown type"; }

uint32_t operandsOf(Kind kind) {
  switch (kind) {
  case Kind::Random: return 0;
  case Kind::Commuting:
  case Kind::Binary:
  case Kind::PlainCommuting:
  case Kind::Plain:
  case Kind::Long:
  case Kind::Swapped:
  case Kind::Negated:
  case Kind::Remainder:
  case Kind::Matmul:
  case Kind::Take:
  case Kind::Pick: return 2;
  case Kind::Select:
  case Kind::Fma:
  case Kind::Scatter: return 3;
  default: return 1;
  }
}

/// The operand that says the type of the operation.
uint32_t mainOf(Kind kind) { return kind == Kind::Select ? 1 : 0; }
bool hasPlaces(Kind kind) { return kind == Kind::Take || kind == Kind::Pick || kind == Kind::Scatter; }
bool isFold(Kind kind) { return kind == Kind::Sum || kind == Kind::Prod || kind == Kind::Mean || kind == Kind::Reduce; }
bool isOfAxis(Kind kind) {
  return hasPlaces(kind) || kind == Kind::ArgReduce || kind == Kind::ArgSort || kind == Kind::Sort;
}

Status readOperands(Work &w, Request &r) {
  const Row &row = kRows[r.row];
  const astra_op &op = *w.op;
  if (op.num_inputs && !op.inputs)
    return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: inputs is NULL and num_inputs is %u; give both", w.name,
                op.num_inputs);
  if (op.num_inputs != operandsOf(row.kind))
    return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: %u operands; it takes %u", w.name, op.num_inputs,
                operandsOf(row.kind));
  r.count = op.num_inputs;
  for (uint32_t i = 0; i < r.count; i++) {
    if (!op.inputs[i] || op.inputs[i]->size < sizeof(View))
      return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: operand %u is NULL or its size is not set", w.name, i);
    r.in[i] = *op.inputs[i];
    astra_tensor t = ASTRA_INIT(astra_tensor);
    if (Status s = astra_view_describe(&r.in[i], &t, w.diag)) return s;
    bool isMask = row.kind == Kind::Select && i == 0, isPlaces = hasPlaces(row.kind) && i == 1;
    int32_t type = r.in[i].dtype, main = op.inputs[mainOf(row.kind)] ? op.inputs[mainOf(row.kind)]->dtype : 0;
    if (isMask && type != ASTRA_BOOL)
      return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: the mask is %s; it must be bool", w.name, typeName(type));
    if (isPlaces && type != ASTRA_I64 && type != ASTRA_I32)
      return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: the places are %s; they must be i64 or i32", w.name, typeName(type));
    if (isMask || isPlaces) continue;
    if (type != main)
      return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: the operands are %s and %s; cast one of them", w.name, typeName(main),
                  typeName(type));
    if (type < ASTRA_BOOL || type > ASTRA_C128 || !(row.types & only(type)))
      return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: it takes no %s; cast it", w.name, typeName(type));
  }
  return ASTRA_OK;
}

Status readAxes(Work &w, Request &r) {
  const Row &row = kRows[r.row];
  const astra_op &op = *w.op;
  uint32_t known = isFold(row.kind) || row.kind == Kind::ArgReduce       ? uint32_t(ASTRA_OPS_KEEP_AXES)
                   : row.kind == Kind::Sort || row.kind == Kind::ArgSort ? uint32_t(ASTRA_OPS_DESCENDING)
                                                                         : 0;
  if (op.flags & ~known)
    return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: it takes no flag %#x", w.name, op.flags & ~known);
  r.descending = op.flags & ASTRA_OPS_DESCENDING;
  if (!isFold(row.kind) && !isOfAxis(row.kind)) {
    if (op.num_axes) return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: it takes no axes", w.name);
    return ASTRA_OK;
  }
  if (op.num_axes && !op.axes)
    return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: axes is NULL and num_axes is %u; give both", w.name, op.num_axes);
  if (isOfAxis(row.kind) && op.num_axes != 1 && (row.kind != Kind::ArgReduce || op.num_axes))
    return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: %u axes; it takes one", w.name, op.num_axes);
  int32_t rank = r.in[0].ndim;
  for (uint32_t i = 0; i < op.num_axes; i++) {
    int32_t axis = op.axes[i];
    if (axis < -rank || axis >= rank)
      return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: there is no axis %d; the tensor has %d", w.name, axis, rank);
    axis += axis < 0 ? rank : 0;
    if (r.axes >> axis & 1) return fail(w.diag, ASTRA_INVALID_ARGUMENT, "%s: axis %d is named twice", w.name, axis);
    r.axes |= 1u << axis, r.axis = axis;
  }
  if (!op.num_axes) r.axes = (1u << rank) - 1;
  return ASTRA_OK;
}

Status broadcast(Work &w, const View *in, uint32_t count, uint32_t drop, Shape &out) {
  for (uint32_t k = 0; k < count; k++)
    out.ndim = in[k].ndim - int32_t(drop) > out.ndim ? in[k].ndim - int32_t(drop) : out.ndim;
  for (int32_t i = 0; i < out.ndim; i++) {
    int64_t n = 1;
    for (uint32_t k = 0; k < count; k++) {
      int32_t at = i - (out.ndim - (in[k].ndim - int32_t(drop)));
      int64_t m = at < 0 ? 1 : in[k].shape[at];
      if (n != m && n != 1 && m != 1)
        return fail(w.diag, ASTRA_WRONG_SHAPE,
                    "%s: axis %d from the back has %lld and %lld elements; they do not broadcast", w.name,
                    out.ndim - i + int32_t(drop), Number(n), Number(m));
      n = n == 1 ? m : n;
    }
    out.extents[i] = n;
  }
  return ASTRA_OK;
}

Status sameButAxis(Work &w, const View &a, const View &b, int32_t axis, const char *what) {
  if (a.ndim != b.ndim)
    return fail(w.diag, ASTRA_WRONG_RANK, "%s: the %s have %d axes; they must have %d", w.name, what, b.ndim, a.ndim);
  for (int32_t i = 0; i < a.ndim; i++)
    if (i != axis && a.shape[i] != b.shape[i])
      return fail(w.diag, ASTRA_WRONG_SHAPE, "%s: axis %d of the %s has %lld elements; it must have %lld", w.name, i,
                  what, Number(b.shape[i]), Number(a.shape[i]));
  return ASTRA_OK;
}

Status matmulShape(Work &w, const Request &r, Shape &out) {
  View a = r.in[0], b = r.in[1];
  if (!a.ndim || !b.ndim)
    return fail(w.diag, ASTRA_WRONG_RANK, "%s: an operand has no axis; it needs one or more", w.name);
  int64_t k = a.shape[a.ndim - 1], l = b.shape[b.ndim == 1 ? 0 : b.ndim - 2];
  if (k != l)
    return fail(w.diag, ASTRA_WRONG_SHAPE, "%s: %lld columns and %lld rows; they must be equal", w.name, Number(k),
                Number(l));
  int64_t m = a.ndim == 1 ? 1 : a.shape[a.ndim - 2], n = b.ndim == 1 ? 1 : b.shape[b.ndim - 1];
  View stacks[] = {a, b};
  for (View &v : stacks) v.ndim = v.ndim < 2 ? 2 : v.ndim;
  if (Status s = broadcast(w, stacks, 2, 2, out)) return s;
  if (a.ndim > 1) out.extents[out.ndim++] = m;
  if (b.ndim > 1) out.extents[out.ndim++] = n;
  return ASTRA_OK;
}

Status shapeOf(Work &w, const Request &r, Shape &out) {
  const Row &row = kRows[r.row];
  const View &x = r.in[mainOf(row.kind)];
  out.dtype = r.count ? resultType(row, x.dtype) : w.op->dtype;
  auto like = [&](const View &v) {
    out.ndim = v.ndim;
    memcpy(out.extents, v.shape, sizeof(int64_t) * size_t(v.ndim));
    return ASTRA_OK;
  };
  switch (row.kind) {
  case Kind::Random:
    if (out.dtype < ASTRA_BOOL || out.dtype > ASTRA_C128 || !(row.types & only(out.dtype)))
      return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: it gives no %s", w.name, typeName(out.dtype));
    if (w.op->ndim < 0 || w.op->ndim > ASTRA_MAX_RANK || (w.op->ndim && !w.op->shape))
      return fail(w.diag, ASTRA_WRONG_RANK, "%s: a shape of %d axes, or none; 0 to %d are allowed", w.name, w.op->ndim,
                  ASTRA_MAX_RANK);
    out.ndim = w.op->ndim;
    for (int32_t i = 0; i < out.ndim; i++)
      if ((out.extents[i] = w.op->shape[i]) < 0)
        return fail(w.diag, ASTRA_WRONG_SHAPE, "%s: axis %d has %lld elements", w.name, i, Number(w.op->shape[i]));
    break;
  case Kind::Cast:
    out.dtype = w.op->dtype;
    if (out.dtype < ASTRA_BOOL || out.dtype > ASTRA_C128)
      return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: there is no way to %s", w.name, typeName(out.dtype));
    if (!canCast(x.dtype, out.dtype))
      return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: there is no way from %s to %s; take the real or the imaginary part",
                  w.name, typeName(x.dtype), typeName(out.dtype));
    return like(x);
  case Kind::Commuting:
  case Kind::Binary:
  case Kind::PlainCommuting:
  case Kind::Plain:
  case Kind::Long:
  case Kind::Swapped:
  case Kind::Negated:
  case Kind::Remainder:
  case Kind::Select:
  case Kind::Fma:
    if (Status s = broadcast(w, r.in, r.count, 0, out)) return s;
    break;
  case Kind::Sum:
  case Kind::Prod:
  case Kind::Mean:
  case Kind::Reduce:
  case Kind::ArgReduce:
    for (int32_t i = 0; i < x.ndim; i++)
      if (!(r.axes >> i & 1) || w.op->flags & ASTRA_OPS_KEEP_AXES)
        out.extents[out.ndim++] = r.axes >> i & 1 ? 1 : x.shape[i];
    break;
  case Kind::Matmul:
    if (Status s = matmulShape(w, r, out)) return s;
    break;
  case Kind::Take:
    if (x.ndim - 1 + r.in[1].ndim > ASTRA_MAX_RANK)
      return fail(w.diag, ASTRA_WRONG_RANK, "%s: the result has %d axes, at most %d are allowed", w.name,
                  x.ndim - 1 + r.in[1].ndim, ASTRA_MAX_RANK);
    for (int32_t i = 0; i < x.ndim; i++) {
      if (i != r.axis) out.extents[out.ndim++] = x.shape[i];
      for (int32_t k = 0; i == r.axis && k < r.in[1].ndim; k++) out.extents[out.ndim++] = r.in[1].shape[k];
    }
    break;
  case Kind::Pick:
    if (Status s = sameButAxis(w, x, r.in[1], r.axis, "places")) return s;
    return like(r.in[1]);
  case Kind::Scatter:
    if (Status s = sameButAxis(w, x, r.in[1], r.axis, "places")) return s;
    if (Status s = sameButAxis(w, r.in[1], r.in[2], -1, "updates")) return s;
    return like(x);
  default: return like(x);
  }
  __int128 bytes = 16;
  for (int32_t i = 0; i < out.ndim; i++)
    if ((bytes *= out.extents[i]) > INT64_MAX)
      return fail(w.diag, ASTRA_OVERFLOW, "%s: the result has too many elements", w.name);
  return ASTRA_OK;
}

//===- Computing -----------------------------------------------------------===//

Status compute(Work &w, const Request &r, const View &out);

/// Of complex operands that a row is not compiled for: of the real parts, then of the imaginary ones.
Status byParts(Work &w, const Request &r, const View &out) {
  const Row &row = kRows[r.row];
  int32_t part = out.dtype == ASTRA_C64 ? ASTRA_F32 : ASTRA_F64;
  Temporary parts[3], results[2];
  for (uint32_t half = 0; half < 2; half++) {
    Request real = r;
    Temporary operands[3];
    for (uint32_t i = 0; i < r.count; i++) {
      if (r.in[i].dtype != out.dtype) continue;
      if (Status s = operands[i].init(w, part, r.in[i].ndim, r.in[i].shape)) return s;
      if (Status s = elementwise(w, half ? rowOf("imag") : rowOf("real"), &r.in[i], 1, operands[i].view)) return s;
      real.in[i] = operands[i].view;
    }
    if (Status s = results[half].init(w, part, out.ndim, out.shape)) return s;
    if (row.kind == Kind::Sum) {
      if (Status s = reduce(w, r.row, real.in[0], r.axes, results[half].view)) return s;
    } else if (Status s = compute(w, real, results[half].view)) {
      return s;
    }
  }
  const View both[] = {results[0].view, results[1].view};
  return elementwise(w, rowOf("complex"), both, 2, out);
}

/// (rr - ii) + (ri + ir) i, as the contract says.
Status complexProduct(Work &w, const Request &r, const View &out) {
  int32_t part = out.dtype == ASTRA_C64 ? ASTRA_F32 : ASTRA_F64;
  Temporary parts[4], products[4], sums[2];
  for (uint32_t i = 0; i < 4; i++) { // re a, im a, re b, im b
    const View &of = r.in[i / 2];
    if (Status s = parts[i].init(w, part, of.ndim, of.shape)) return s;
    if (Status s = elementwise(w, i % 2 ? rowOf("imag") : rowOf("real"), &of, 1, parts[i].view)) return s;
  }
  constexpr uint32_t factors[4][2] = {{0, 2}, {1, 3}, {0, 3}, {1, 2}};
  for (uint32_t i = 0; i < 4; i++) {
    if (Status s = products[i].init(w, part, out.ndim, out.shape)) return s;
    if (Status s = matmul(w, parts[factors[i][0]].view, parts[factors[i][1]].view, products[i].view)) return s;
  }
  for (uint32_t i = 0; i < 2; i++) {
    const View both[] = {products[2 * i].view, products[2 * i + 1].view};
    if (Status s = sums[i].init(w, part, out.ndim, out.shape)) return s;
    if (Status s = elementwise(w, i ? rowOf("add") : rowOf("sub"), both, 2, sums[i].view)) return s;
  }
  const View both[] = {sums[0].view, sums[1].view};
  return elementwise(w, rowOf("complex"), both, 2, out);
}

/// The sum, divided by the number of elements.
Status mean(Work &w, const Request &r, const View &in, const View &out) {
  if (!r.axes) return copy(w, in, out);
  int64_t n = 1;
  for (int32_t i = 0; i < in.ndim; i++) n *= r.axes >> i & 1 ? in.shape[i] : 1;
  Temporary sum, count;
  const int64_t one = 1;
  if (Status s = sum.init(w, in.dtype, out.ndim, out.shape)) return s;
  if (only(in.dtype) & kComplex) {
    Request sums = r;
    sums.row = rowOf("sum"), sums.in[0] = in;
    if (Status s = byParts(w, sums, sum.view)) return s;
  } else if (Status s = reduce(w, rowOf("sum"), in, r.axes, sum.view)) {
    return s;
  }
  if (Status s = count.init(w, in.dtype, 1, &one)) return s;
  void *at = astra_buffer_data(count.view.buffer); // new: no call uses it yet
  bool isDouble = in.dtype == ASTRA_F64 || in.dtype == ASTRA_C128;
  memset(at, 0, elementBytes(in.dtype));
  if (isDouble)
    *static_cast<double *>(at) = double(n);
  else
    *static_cast<float *>(at) = float(n);
  const View both[] = {sum.view, count.view};
  return elementwise(w, rowOf("div"), both, 2, out);
}

Status sort(Work &w, const Request &r, const View &out) {
  constexpr uint32_t row = rowOf("pick");
  Temporary places;
  if (Status s = places.init(w, ASTRA_I64, out.ndim, out.shape)) return s;
  if (Status s = argSort(w, r.in[0], r.axis, r.descending, places.view)) return s;
  Request picked = r;
  picked.row = row, picked.in[1] = places.view, picked.count = 2;
  return compute(w, picked, out);
}

Status computeNative(Work &w, const Request &r, const View &out) {
  const Row &row = kRows[r.row];
  switch (row.kind) {
  case Kind::Sum:
  case Kind::Prod:
  case Kind::Reduce: return reduce(w, r.row, r.in[0], r.axes, out);
  case Kind::Mean: return mean(w, r, r.in[0], out);
  case Kind::ArgReduce: {
    if (w.op->num_axes || r.in[0].ndim == 1) return argReduce(w, r.row, r.in[0], r.axis, out);
    Temporary packed;
    View flat;
    if (Status s = dense(w, r.in[0], packed, flat)) return s;
    return argReduce(w, r.row, reshaped(flat, {elements(flat)}), 0, out);
  }
  case Kind::Matmul: return matmul(w, r.in[0], r.in[1], out);
  case Kind::Take: return take(w, r.in[0], r.in[1], r.axis, out);
  case Kind::Pick: return pick(w, r.in[0], r.in[1], r.axis, out);
  case Kind::Scatter: return scatter(w, r.row, r.in[0], r.in[1], r.in[2], r.axis, out);
  case Kind::Random: return random(w, r.row, out);
  default: return elementwise(w, r.row, r.in, r.count, out);
  }
}

/// The greatest or the least of no i8 or i16: the least or the greatest number of the type, which a wider one has not.
Status extreme(Work &w, bool isGreatest, const View &out) {
  Temporary value;
  const int64_t one = 1;
  if (Status s = value.init(w, out.dtype, 1, &one)) return s;
  void *at = astra_buffer_data(value.view.buffer); // new: no call uses it yet
  if (out.dtype == ASTRA_I8)
    *static_cast<int8_t *>(at) = isGreatest ? INT8_MAX : INT8_MIN;
  else
    *static_cast<int16_t *>(at) = isGreatest ? INT16_MAX : INT16_MIN;
  return copy(w, expanded(value.view, out.ndim, out.shape), out);
}

/// Into a dense result.
Status compute(Work &w, const Request &given, const View &out) {
  Request r = given;
  if (kRows[r.row].kind == Kind::Swapped) { // a > b is b < a
    r.row -= 2;
    View first = r.in[0];
    r.in[0] = r.in[1], r.in[1] = first;
  }
  const Row &row = kRows[r.row];
  if (row.kind == Kind::Negated) {
    r.row--;
    Temporary equal;
    if (Status s = equal.init(w, ASTRA_BOOL, out.ndim, out.shape)) return s;
    if (Status s = compute(w, r, equal.view)) return s;
    return elementwise(w, rowOf("bit_not"), &equal.view, 1, out);
  }
  if (row.kind == Kind::Remainder) { // a - a / b * b, which wraps as all of it does
    Request step = r;
    Temporary quotient, product;
    step.row = r.row - 1;
    if (Status s = quotient.init(w, out.dtype, out.ndim, out.shape)) return s;
    if (Status s = compute(w, step, quotient.view)) return s;
    step.row = rowOf("mul"), step.in[0] = quotient.view;
    if (Status s = product.init(w, out.dtype, out.ndim, out.shape)) return s;
    if (Status s = compute(w, step, product.view)) return s;
    step.row = rowOf("sub"), step.in[0] = r.in[0], step.in[1] = product.view;
    return compute(w, step, out);
  }
  uint32_t main = mainOf(row.kind);
  int32_t type = r.count ? r.in[main].dtype : out.dtype;
  switch (row.kind) {
  case Kind::Copy: return copy(w, r.in[0], out);
  case Kind::ArgSort: return argSort(w, r.in[0], r.axis, r.descending, out);
  case Kind::Sort: return sort(w, r, out);
  case Kind::Cast: {
    Temporary packed;
    View whole;
    if (Status s = dense(w, r.in[0], packed, whole)) return s;
    return cast(w, whole, out);
  }
  default: break;
  }
  if (only(type) & kComplex & ~row.native && row.kind != Kind::Mean)
    return row.kind == Kind::Matmul ? complexProduct(w, r, out) : byParts(w, r, out);

  if (row.kind == Kind::Reduce && (type == ASTRA_I8 || type == ASTRA_I16))
    for (int32_t i = 0; i < r.in[0].ndim; i++)
      if (r.axes >> i & 1 && !r.in[0].shape[i]) return extreme(w, r.row == rowOf("amin"), out);

  Temporary keys, packedKeys;
  if (row.kind == Kind::ArgReduce && type == ASTRA_U64) { // as what is ordered like it
    View whole;
    if (Status s = dense(w, r.in[0], packedKeys, whole)) return s;
    if (Status s = keys.init(w, ASTRA_I64, whole.ndim, whole.shape)) return s;
    if (Status s = sortKeys(w, whole, false, keys.view)) return s;
    r.in[0] = keys.view, type = ASTRA_I64;
  }
  int32_t native = nativeType(row, type);
  uint32_t keeps = row.kind == Kind::Select ? 1 : hasPlaces(row.kind) ? 2 : 0;
  const View *views[] = {&r.in[0], &r.in[1], &r.in[2]};
  Operands operands;
  if (Status s = operands.init(w, views, r.count, keeps, native)) return s;
  for (uint32_t i = 0; i < r.count; i++) r.in[i] = operands.views[i];
  Temporary packed, wide;
  if (hasPlaces(row.kind) && r.in[1].dtype == ASTRA_I32) {
    View whole;
    if (Status s = dense(w, r.in[1], packed, whole)) return s;
    if (Status s = wide.init(w, ASTRA_I64, whole.ndim, whole.shape)) return s;
    if (Status s = cast(w, whole, wide.view)) return s;
    r.in[1] = wide.view;
  }
  Outcome result;
  if (Status s = result.init(w, row, native, out)) return s;
  if (Status s = computeNative(w, r, result.view)) return s;
  return result.finish(w, out);
}

/// Whether two checked views are stretches of memory that do not touch, which most are; false says nothing. The
/// runtime's exact test reads both views again.
bool areApart(const View &a, const View &b) {
  if (!isDense(a) || !isDense(b)) return false;
  auto begin = [](const View &v) {
    return uintptr_t(v.buffer ? astra_buffer_data(v.buffer) : v.data) + uintptr_t(v.byte_offset);
  };
  uintptr_t x = begin(a), y = begin(b);
  return x + uint64_t(elements(a)) * elementBytes(a.dtype) <= y ||
         y + uint64_t(elements(b)) * elementBytes(b.dtype) <= x;
}

/// The result is the caller's: it fits, holds each element once and shares no byte with an operand.
Status checkResult(Work &w, const Request &r, const Shape &shape, const View &out) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  if (Status s = astra_view_describe(&out, &t, w.diag)) return s;
  if (out.dtype != shape.dtype)
    return fail(w.diag, ASTRA_WRONG_DTYPE, "%s: the result is %s; it must be %s", w.name, typeName(out.dtype),
                typeName(shape.dtype));
  if (out.ndim != shape.ndim)
    return fail(w.diag, ASTRA_WRONG_RANK, "%s: the result has %d axes; it must have %d", w.name, out.ndim, shape.ndim);
  for (int32_t i = 0; i < out.ndim; i++)
    if (out.shape[i] != shape.extents[i])
      return fail(w.diag, ASTRA_WRONG_SHAPE, "%s: axis %d of the result has %lld elements; it must have %lld", w.name,
                  i, Number(out.shape[i]), Number(shape.extents[i]));
  if (Status s = isDense(out) ? Status(ASTRA_OK) : astra_view_check_parts(&out, 1, w.diag)) {
    if (s != ASTRA_OVERLAP) return s;
    return fail(w.diag, s, "%s: elements of the result share memory; give it strides that hold each of them once",
                w.name);
  }
  for (uint32_t i = 0; i < r.count; i++) {
    int32_t disjoint = areApart(out, r.in[i]);
    if (disjoint) continue;
    if (Status s = astra_view_is_disjoint(&out, &r.in[i], &disjoint, w.diag)) return s;
    if (!disjoint)
      return fail(w.diag, ASTRA_OVERLAP, "%s: the result overlaps operand %u; give it memory of its own", w.name, i);
  }
  return ASTRA_OK;
}

/// A copy of the struct that the caller gave, of this version's size.
Status readOp(astra_op &op, const astra_op *given, astra_diag *diag) {
  op = ASTRA_INIT(astra_op);
  if (!given || given->size < offsetof(astra_op, num_after) + sizeof(uint32_t))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "op is NULL or its size is not set; begin with ASTRA_INIT(astra_op)");
  for (size_t i = sizeof(op); i < given->size; i++)
    if (reinterpret_cast<const char *>(given)[i])
      return fail(diag, ASTRA_NEWER_CLIENT, "op has fields that this library does not know; use a newer one");
  memcpy(&op, given, given->size < sizeof(op) ? given->size : sizeof(op));
  return ASTRA_OK;
}

} // namespace

astra_status astra_ops_call(astra_ops *ops, astra_stream *stream, const astra_op *given, astra_view *out,
                            astra_promise **promise, astra_diag *diag) {
  if (!ops || !stream) return fail(diag, ASTRA_INVALID_ARGUMENT, "the operations or the stream is NULL");
  astra_op op;
  if (Status s = readOp(op, given, diag)) return s;
  if (!op.name) return fail(diag, ASTRA_INVALID_ARGUMENT, "the operation has no name");
  Request r;
  r.row = findRow(ops, op.name);
  if (r.row == kNumRows || kRows[r.row].isInner)
    return fail(diag, ASTRA_UNKNOWN_NAME, "there is no operation %.64s", op.name);
  if (!out || out->size < sizeof(View))
    return fail(diag, ASTRA_INVALID_ARGUMENT,
                "%s: out is NULL or its size is not set; begin with ASTRA_INIT(astra_view)", op.name);
  Work w = {ops, stream, &op, diag, kRows[r.row].name, promise};
  if (Status s = readOperands(w, r)) return s;
  if (Status s = readAxes(w, r)) return s;
  Shape shape;
  if (Status s = shapeOf(w, r, shape)) return s;

  bool isOurs = !out->buffer && !out->data;
  Temporary made;
  View target = *out;
  if (!isOurs)
    if (Status s = checkResult(w, r, shape, target)) return s;
  if (isOurs || !isDense(target)) {
    if (Status s = made.init(w, shape.dtype, shape.ndim, shape.extents)) return s;
    target = made.view;
  }
  Status s = elements(target) ? compute(w, r, target) : copy(w, target, target); // a call that does nothing
  if (!s && !isOurs && !isDense(*out)) s = copy(w, target, *out);
  if (s) {
    astra_promise_free(&w.last);
    return s;
  }
  if (promise) *promise = w.last;
  if (isOurs) *out = target, made.view.buffer = nullptr;
  return ASTRA_OK;
}

int32_t astra_ops_takes(const char *name, int32_t dtype) {
  for (const Row &row : kRows)
    if (name && !row.isInner && !strcmp(row.name, name))
      return dtype >= ASTRA_BOOL && dtype <= ASTRA_C128 && row.types & only(dtype);
  return -1;
}
