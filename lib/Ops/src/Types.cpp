//===- Types.cpp: the type that an operation is computed in ----------------===//
// Takes:    operands of any type that a row takes.
// Gives:    the same numbers in a type that it is compiled for, and the result in theirs.
// Keeps:    bits. An integer that wraps is the low part of a wider one that does; f16 and bf16 are computed in f32 and
//           rounded once (N12); no conversion rounds twice.
#include "Ops.h"

namespace astra::ops {

namespace {

/// The type of the same width whose elements have the same bits, by which movement and sums of integers go.
int32_t twin(int32_t t) {
  switch (t) {
  case ASTRA_BOOL:
  case ASTRA_I8: return ASTRA_U8;
  case ASTRA_I16: return ASTRA_U16;
  case ASTRA_U8: return ASTRA_I8;
  case ASTRA_U16: return ASTRA_I16;
  case ASTRA_I32: return ASTRA_U32;
  case ASTRA_I64: return ASTRA_U64;
  case ASTRA_U32: return ASTRA_I32;
  case ASTRA_U64: return ASTRA_I64;
  default: return t;
  }
}

bool isIn(Types set, int32_t t) { return set & only(t); }
bool isNarrow(int32_t t) { return isIn((kInts & ~(kWords | kU32 | kU64)) | kBool, t); }

/// The next type on the way of a cast: `to` itself, or one in which nothing of it is lost. 0: there is none.
int32_t step(int32_t from, int32_t to) {
  if (isIn(castTargets(from), to)) return to;
  if (from == ASTRA_BOOL) return ASTRA_U8;
  bool isInteger = isIn(kInts, to);
  if (isInteger && twin(from) == to) return to;
  if (isIn(kHalves, from)) return ASTRA_F32;
  if (isNarrow(from)) return ASTRA_I32;
  bool toPart = !isIn(kComplex, to); // of a complex type first the real one
  switch (from) {
  case ASTRA_U32: return isNarrow(to) ? ASTRA_I32 : ASTRA_I64; // low bits; the number
  case ASTRA_U64:
    if (isInteger || to == ASTRA_BOOL) return ASTRA_I64;
    return to == ASTRA_C64 ? ASTRA_F32 : ASTRA_F64; // f16: what f64 does not hold is infinite there
  case ASTRA_I32: return isNarrow(to) ? twin(to) : isInteger ? ASTRA_I64 : ASTRA_F64;
  case ASTRA_I64: return isInteger ? ASTRA_I32 : to == ASTRA_C64 ? ASTRA_F32 : ASTRA_F64;
  case ASTRA_F32: return toPart ? 0 : ASTRA_F64;
  case ASTRA_F64: return toPart ? 0 : ASTRA_F32;
  default: return 0;
  }
}

} // namespace

int32_t nativeType(const Row &row, int32_t t) {
  if (isIn(row.native, t)) return t;
  bool asksForSign = isIn(row.native, ASTRA_U64) && isIn(row.native, ASTRA_I64);
  if (!asksForSign && isIn(row.native, twin(t))) return twin(t);
  if (isNarrow(t) || t == ASTRA_I32 || t == ASTRA_U32) {
    for (int32_t wide : {ASTRA_I32, ASTRA_U32, ASTRA_I64})
      if (isIn(row.native, wide) && (isNarrow(t) || wide == ASTRA_I64)) return wide;
  }
  return isIn(kHalves, t) ? int32_t(ASTRA_F32) : t;
}

bool canCast(int32_t from, int32_t to) { return isIn(kComplex, to) || !isIn(kComplex, from); }

Status cast(Work &w, const View &in, const View &out) {
  int64_t n = elements(in);
  View at = reshaped(in, {n});
  Temporary steps[4];
  uint32_t launches = 0;
  while (at.dtype != out.dtype) {
    int32_t next = step(at.dtype, out.dtype);
    const astra_entry *entry = next ? w.ops->casts[at.dtype][next] : nullptr;
    if (!entry) { // the same bits
      at.dtype = next;
      continue;
    }
    bool isLast = next == out.dtype || twin(next) == out.dtype;
    View result = reshaped(retyped(out, next), {n});
    if (!isLast) {
      if (Status s = steps[launches].init(w, next, 1, &n)) return s;
      result = steps[launches].view;
    }
    if (Status s = w.launch(entry, &at, 1, result)) return s;
    if (isLast) return ASTRA_OK;
    at = result, launches++;
  }
  return copy(w, at, reshaped(out, {n}));
}

Status Operands::init(Work &w, const View *const *in, uint32_t count, uint32_t keeps, int32_t native) {
  for (uint32_t i = 0; i < count; i++) {
    const View &v = *in[i];
    views[i] = v;
    if (keeps >> i & 1 || v.dtype == native) continue;
    if (astra_dtype_bits(v.dtype) == astra_dtype_bits(native)) {
      views[i].dtype = native;
      continue;
    }
    Temporary packed;
    View whole;
    if (Status s = dense(w, v, packed, whole)) return s;
    if (Status s = temporaries[i].init(w, native, v.ndim, v.shape)) return s;
    if (Status s = cast(w, whole, temporaries[i].view)) return s;
    views[i] = temporaries[i].view;
  }
  return ASTRA_OK;
}

Status Outcome::init(Work &w, const Row &row, int32_t native, const View &out) {
  int32_t type = resultType(row, native);
  isWide = astra_dtype_bits(type) != astra_dtype_bits(out.dtype);
  view = retyped(out, type);
  if (!isWide) return ASTRA_OK;
  Status s = wide.init(w, type, out.ndim, out.shape);
  view = wide.view;
  return s;
}

Status Outcome::finish(Work &w, const View &out) { return isWide ? cast(w, view, out) : ASTRA_OK; }

} // namespace astra::ops
