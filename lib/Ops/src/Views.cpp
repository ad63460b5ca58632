//===- Views.cpp: arithmetic on views that have been checked ---------------===//
// Takes:    views that the runtime has checked, and numbers that follow from them.
// Gives:    other views of the same memory.
// Does not: check: what could be wrong is refused in Call.cpp.
#include "Ops.h"

namespace astra::ops {

uint64_t elementBytes(int32_t dtype) { return astra_dtype_bits(dtype) / 8; }

int64_t elements(const View &v) {
  int64_t n = 1;
  for (int32_t i = 0; i < v.ndim; i++) n *= v.shape[i];
  return n;
}

bool isDense(const View &v) {
  if (v.flags & ASTRA_VIEW_CONJUGATE) return false;
  int64_t step = 1;
  for (int32_t i = v.ndim; i-- > 0;) {
    if (v.shape[i] == 0) return true;
    if (v.shape[i] == 1) continue;
    if (v.strides[i] != step) return false;
    step *= v.shape[i];
  }
  return true;
}

void setDense(View &v, int32_t ndim, const int64_t *shape) {
  v.ndim = ndim;
  int64_t step = 1;
  for (int32_t i = ndim; i-- > 0; step *= shape[i]) v.shape[i] = shape[i], v.strides[i] = step;
}

View reshaped(const View &dense, int32_t ndim, const int64_t *shape) {
  View v = dense;
  setDense(v, ndim, shape);
  return v;
}

View part(View v, int32_t axis, int64_t start, int64_t count) {
  if (count && start)
    v.byte_offset += uint64_t(start * v.strides[axis]) * elementBytes(v.dtype); // wraps back where it is negative
  v.shape[axis] = count;
  return v;
}

View expanded(const View &v, int32_t ndim, const int64_t *shape) {
  View out = v;
  out.ndim = ndim;
  for (int32_t i = ndim, k = v.ndim; i-- > 0;) {
    bool isThere = --k >= 0 && (v.shape[k] != 1 || shape[i] == 1);
    out.shape[i] = shape[i], out.strides[i] = isThere ? v.strides[k] : 0;
  }
  return out;
}

View moved(View v, int32_t from, int32_t to) {
  int64_t extent = v.shape[from], stride = v.strides[from];
  for (; from < to; from++) v.shape[from] = v.shape[from + 1], v.strides[from] = v.strides[from + 1];
  for (; from > to; from--) v.shape[from] = v.shape[from - 1], v.strides[from] = v.strides[from - 1];
  v.shape[to] = extent, v.strides[to] = stride;
  return v;
}

} // namespace astra::ops
