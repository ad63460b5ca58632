//===- Copy.cpp: elements between any two strides --------------------------===//
// Takes:    two views of one type and shape.
// Gives:    calls that copy one to the other: axes of one element dropped, neighbours that are one axis fused, then a
//           kernel that transposes where memory is a transposed tensor, and else a copy that the runtime makes by
//           strides on the way into the call, or out of it.
// Keeps:    values; a NaN becomes canonical, as at every output (N6).
#include "Ops.h"

namespace astra::ops {

namespace {

/// Both views, axis by axis.
struct Pair {
  View in, out;
};

/// The axes that are left, outermost first.
void fuse(Pair &p) {
  int32_t kept = 0;
  for (int32_t i = 0; i < p.in.ndim; i++) {
    int64_t n = p.in.shape[i];
    if (n == 1) continue;
    auto isOne = [&](View &v) { return v.strides[kept - 1] == n * v.strides[i]; };
    bool joins = kept && isOne(p.in) && isOne(p.out);
    for (View *v : {&p.in, &p.out}) {
      int32_t at = joins ? kept - 1 : kept;
      v->shape[at] = joins ? v->shape[at] * n : n, v->strides[at] = v->strides[i];
    }
    kept += !joins;
  }
  p.in.ndim = p.out.ndim = kept;
}

/// [a, b, c] that lies in memory as [a, c, b], or [a, b, c, d] as [a, c, b, d].
Status transposed(Work &w, uint32_t row, int32_t native, const Pair &p, bool &done) {
  int64_t s[4] = {1, 1, 1, 1}, t[4] = {};
  bool isSwap = p.in.ndim && p.in.strides[p.in.ndim - 1] == 1;
  int32_t rank = isSwap ? 4 : 3, first = rank - p.in.ndim;
  if (first < 0 || first > 1 || !isDense(p.out)) return ASTRA_OK;
  for (int32_t i = 0; i < p.in.ndim; i++) s[first + i] = p.in.shape[i], t[first + i] = p.in.strides[i];
  int64_t a = s[0], b = s[1], c = s[2], d = isSwap ? s[3] : 1;
  if (t[1] != d || t[2] != b * d || (a > 1 && t[0] != b * c * d) || p.in.flags) return ASTRA_OK;
  const char *letters = formsOf(kRows[row].kind).list[0].shapes;
  const int64_t lies[] = {a, c, b, d};
  for (int32_t i = 0; i < rank; i++)
    if (lies[i] > mostOf(letters[i])) return ASTRA_OK;
  View in = reshaped(p.in, rank, lies);
  const int64_t becomes[] = {a, b, c, d};
  done = true;
  return w.launch(w.ops->entries[row][native][0], &in, 1, reshaped(p.out, rank, becomes));
}

Status strided(Work &w, int32_t native, const Pair &p) {
  constexpr uint32_t row = rowOf("copy");
  constexpr int32_t ranks[] = {2, 6};
  if (p.in.ndim > 6) { // one after another along the first axis
    for (int64_t i = 0; i < p.in.shape[0]; i++) {
      Pair inner = {part(p.in, 0, i, 1), part(p.out, 0, i, 1)};
      inner = {moved(inner.in, 0, p.in.ndim - 1), moved(inner.out, 0, p.in.ndim - 1)};
      inner.in.ndim = inner.out.ndim = p.in.ndim - 1;
      if (Status s = strided(w, native, inner)) return s;
    }
    return ASTRA_OK;
  }
  uint32_t form = p.in.ndim <= 2 ? form::Copy2 : form::Copy6;
  int32_t rank = ranks[form], first = rank - p.in.ndim;
  Pair all = p;
  for (View *v : {&all.in, &all.out}) {
    v->ndim = rank;
    for (int32_t i = rank; i-- > 0;) {
      v->shape[i] = i < first ? 1 : v->shape[i - first];
      v->strides[i] = i < first ? 0 : v->strides[i - first];
    }
  }
  const char *letters = formsOf(kRows[row].kind).list[form].shapes;
  for (int32_t i = 0; i < rank; i++) {
    int64_t most = mostOf(letters[i]), n = all.in.shape[i];
    if (n <= most) continue;
    for (int64_t at = 0; at < n; at += most) { // each part is no longer than the dim, and comes here once more
      int64_t count = n - at < most ? n - at : most;
      Pair piece = {part(all.in, i, at, count), part(all.out, i, at, count)};
      if (Status s = strided(w, native, piece)) return s;
    }
    return ASTRA_OK;
  }
  return w.launch(w.ops->entries[row][native][form], &all.in, 1, all.out);
}

} // namespace

Status copy(Work &w, const View &in, const View &out) {
  int32_t native = nativeType(kRows[rowOf("copy")], in.dtype);
  Pair p = {retyped(in, native), retyped(out, native)};
  if (elements(in) == 0) { // a call that copies nothing, for its promise
    setDense(p.in, 1, (const int64_t[]){0}), setDense(p.out, 1, (const int64_t[]){0});
    return strided(w, native, p);
  }
  fuse(p);
  bool done = false;
  for (uint32_t row : {rowOf("transpose"), rowOf("swap")}) {
    bool isSwap = p.in.ndim && p.in.strides[p.in.ndim - 1] == 1;
    if (p.in.ndim < 2 || isSwap != (row == rowOf("swap")) || !w.ops->entries[row][native][0]) continue;
    if (Status s = transposed(w, row, native, p, done); s || done) return s;
  }
  return strided(w, native, p);
}

Status dense(Work &w, const View &in, Temporary &temporary, View &out) {
  if (isDense(in)) {
    out = in;
    return ASTRA_OK;
  }
  if (Status s = temporary.init(w, in.dtype, in.ndim, in.shape)) return s;
  if (Status s = copy(w, in, temporary.view)) return s;
  out = temporary.view;
  return ASTRA_OK;
}

} // namespace astra::ops
