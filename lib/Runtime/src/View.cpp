//===- View.cpp: views of tensors with any strides ------------------------===//
// Takes:    views of callers, which may hold any numbers.
// Gives:    astra_view_*: other views of the same memory.
// Keeps:    each view that comes in is resolved, so that it lies in its memory; what goes out lies in that one. An
//           empty view touches no memory: its strides may be anything, and arithmetic on them is checked.
// Does not: allocate, but for astra_view_init_pool.
#include "IndexSets.h"

using namespace astra::rt;

namespace {

using Number = long long;

/// A view that has been checked, and what it is resolved to.
struct Checked {
  astra_view view; ///< strides of axes of one element are 0, or those of row-major order
  View at;
};

astra_tensor tensorOf(const astra_view &v) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.buffer = v.buffer, t.data = v.data, t.data_bytes = v.data_bytes, t.byte_offset = v.byte_offset;
  t.dtype = v.dtype, t.ndim = v.ndim, t.shape = v.shape, t.strides = v.strides;
  t.flags = v.flags & ASTRA_VIEW_CONJUGATE ? ASTRA_TENSOR_CONJUGATE : 0;
  return t;
}

/// `view` has been read. Resolves it, and takes over the strides that this settles.
Status settle(Checked &c, const char *name, astra_diag *diag) {
  astra_view &v = c.view;
  if (v.buffer)
    if (Status s = checkHandle(v.buffer, "the buffer of the view", diag)) return s;
  if (v.flags & ~uint32_t(ASTRA_VIEW_CONJUGATE) || v.reserved)
    return fail(diag, ASTRA_NEWER_CLIENT, "the tensor %s has flags that this library does not know; use a newer one",
                name);
  if (Status s = resolve(c.at, tensorOf(v), name, diag)) return s;
  if (c.at.dtype->bits < 8)
    return fail(diag, ASTRA_UNSUPPORTED, "the tensor %s is packed (%s); views are of elements of whole bytes", name,
                c.at.dtype->name);
  memcpy(v.strides, c.at.strides, c.at.rank * sizeof(int64_t));
  return ASTRA_OK;
}

constexpr size_t kLeast = 312; // of the first version: a view has no field that may be missing
static_assert(kLeast <= sizeof(astra_view));

Status read(Checked &c, const astra_view *view, const char *name, astra_diag *diag) {
  if (Status s = readStruct(&c.view, sizeof(c.view), view, kLeast, "astra_view", diag)) return s;
  return settle(c, name, diag);
}

Status write(astra_view *out, const astra_view &view, astra_diag *diag) {
  if (out && out->size >= kLeast && writeStruct(out, view) == ASTRA_OK) return ASTRA_OK;
  return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL or its size is not set; begin with ASTRA_INIT(astra_view)");
}

Status checkAxis(const Checked &c, int32_t axis, astra_diag *diag) {
  if (axis >= 0 && axis < c.view.ndim) return ASTRA_OK;
  return fail(diag, ASTRA_INVALID_ARGUMENT, "there is no axis %d; the view has %d, counted from 0", axis, c.view.ndim);
}

Status checkRank(int32_t ndim, const int64_t *shape, astra_diag *diag) {
  if (ndim < 0 || ndim > ASTRA_MAX_RANK)
    return fail(diag, ASTRA_WRONG_RANK, "%d dims; 0 to %d are allowed", ndim, ASTRA_MAX_RANK);
  if (ndim && !shape) return fail(diag, ASTRA_INVALID_ARGUMENT, "the shape is NULL; give %d numbers", ndim);
  for (int32_t i = 0; i < ndim; i++)
    if (shape[i] < 0)
      return fail(diag, ASTRA_WRONG_SHAPE, "axis %d of the shape has %lld elements; 0 is the least", i,
                  static_cast<Number>(shape[i]));
  return ASTRA_OK;
}

/// A view that is broadcast, or a slice of step 0, may have more elements than memory has.
Status checkSize(const Checked &c, const astra_view &v, astra_diag *diag) {
  uint64_t bytes;
  if (denseBytes(*c.at.dtype, v.shape, uint32_t(v.ndim), bytes)) return ASTRA_OK;
  return fail(diag, ASTRA_WRONG_SHAPE, "the shape is too large; its elements must be fewer than 2^63 bytes");
}

Status leaves64(astra_diag *diag) {
  return fail(diag, ASTRA_OVERFLOW, "a stride of the view leaves 64 bits; use smaller strides");
}

void removeAxis(astra_view &v, int32_t axis) {
  for (int32_t i = axis; i + 1 < v.ndim; i++) v.shape[i] = v.shape[i + 1], v.strides[i] = v.strides[i + 1];
  v.ndim--;
}

/// The first element becomes the one `index` places further along an axis. It is one of a view that is not empty.
void move(Checked &c, int32_t axis, int64_t index) {
  if (c.at.bytes) c.view.byte_offset += uint64_t(index) * uint64_t(c.view.strides[axis]) * (c.at.dtype->bits / 8);
}

/// The elements start, start + step, ... of an axis.
Status slice(Checked &c, int32_t axis, int64_t start, int64_t count, int64_t step, astra_diag *diag) {
  int64_t extent = c.view.shape[axis], last;
  if (count < 0)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "a slice of %lld elements; 0 is the least", static_cast<Number>(count));
  if (count == 0 ? start < 0 || start > extent
                 : start < 0 || start >= extent || __builtin_mul_overflow(count - 1, step, &last) ||
                       __builtin_add_overflow(last, start, &last) || last < 0 || last >= extent)
    return fail(diag, ASTRA_OUT_OF_BOUNDS,
                "a slice of %lld elements from %lld on with step %lld leaves axis %d, which has %lld", Number(count),
                Number(start), Number(step), axis, Number(extent));
  if (count) move(c, axis, start);
  if (count <= 1) step = 1;
  if (__builtin_mul_overflow(c.view.strides[axis], step, &c.view.strides[axis])) return leaves64(diag);
  c.view.shape[axis] = count;
  return ASTRA_OK;
}

Status checkPart(int64_t index, int64_t parts, astra_diag *diag) {
  if (parts > 0 && index >= 0 && index < parts) return ASTRA_OK;
  return fail(diag, ASTRA_OUT_OF_BOUNDS, "part %lld of %lld; parts are counted from 0, and there is at least one",
              Number(index), Number(parts));
}

} // namespace

astra_status astra_view_init(astra_view *out, const astra_tensor *tensor, astra_diag *diag) {
  astra_tensor t;
  if (Status s = readStruct(t, tensor, "astra_tensor", diag)) return s;
  if (t.flags & ~uint32_t(ASTRA_TENSOR_CONJUGATE))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the tensor has flags %#x; a view can be conjugated and no more",
                t.flags);
  if (Status s = checkRank(t.ndim, t.shape, diag)) return s;
  Checked c{};
  astra_view &v = c.view;
  v.size = sizeof(v), v.buffer = t.buffer, v.data = t.data, v.data_bytes = t.data_bytes, v.byte_offset = t.byte_offset;
  v.dtype = t.dtype, v.ndim = t.ndim, v.flags = t.flags & ASTRA_TENSOR_CONJUGATE ? ASTRA_VIEW_CONJUGATE : 0;
  int64_t step = 1;
  for (int32_t i = t.ndim; i-- > 0;) {
    v.shape[i] = t.shape[i], v.strides[i] = t.strides ? t.strides[i] : step;
    // Where this leaves 64 bits the shape is refused, or the tensor empty.
    if (__builtin_mul_overflow(step, t.shape[i] > 1 ? t.shape[i] : 1, &step)) step = 0;
  }
  if (Status s = settle(c, "of the view", diag)) return s;
  return write(out, v, diag);
}

astra_status astra_view_init_pool(astra_view *out, astra_buffer **buffer, astra_pool *pool, int32_t dtype, int32_t ndim,
                                  const int64_t *shape, astra_diag *diag) {
  if (Status s = checkHandle(pool, "the pool", diag)) return s;
  if (!buffer) return fail(diag, ASTRA_INVALID_ARGUMENT, "buffer is NULL; give the address of a pointer");
  if (Status s = checkRank(ndim, shape, diag)) return s;
  const DType *row = dtypeOf(dtype);
  uint64_t bytes;
  if (!row) return fail(diag, ASTRA_WRONG_DTYPE, "the unknown dtype %d", dtype);
  if (!denseBytes(*row, shape, uint32_t(ndim), bytes))
    return fail(diag, ASTRA_WRONG_SHAPE, "the shape of the tensor is too large");
  astra_tensor t = ASTRA_INIT(astra_tensor);
  astra_buffer *made = nullptr;
  if (Status s = astra_buffer_init(&made, pool, bytes, diag)) return s;
  t.buffer = made, t.dtype = dtype, t.ndim = ndim, t.shape = shape;
  if (Status s = astra_view_init(out, &t, diag)) {
    astra_buffer_free(&made);
    return s;
  }
  *buffer = made;
  return ASTRA_OK;
}

astra_status astra_view_describe(const astra_view *view, astra_tensor *out, astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  astra_tensor t = tensorOf(c.view);
  t.shape = view->shape, t.strides = view->strides;
  if (writeStruct(out, t) == ASTRA_OK) return ASTRA_OK;
  return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL or its size is not set; begin with ASTRA_INIT(astra_tensor)");
}

astra_status astra_view_permute(astra_view *out, const astra_view *view, const int32_t *axes, astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (c.view.ndim && !axes) return fail(diag, ASTRA_INVALID_ARGUMENT, "axes is NULL; give %d numbers", c.view.ndim);
  astra_view v = c.view;
  uint32_t seen = 0;
  for (int32_t i = 0; i < v.ndim; i++) {
    if (Status s = checkAxis(c, axes[i], diag)) return s;
    if (seen & 1u << axes[i])
      return fail(diag, ASTRA_INVALID_ARGUMENT, "axis %d is named twice; name each once", axes[i]);
    seen |= 1u << axes[i];
    v.shape[i] = c.view.shape[axes[i]], v.strides[i] = c.view.strides[axes[i]];
  }
  return write(out, v, diag);
}

astra_status astra_view_slice(astra_view *out, const astra_view *view, int32_t axis, int64_t start, int64_t count,
                              int64_t step, astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (Status s = checkAxis(c, axis, diag)) return s;
  if (Status s = slice(c, axis, start, count, step, diag)) return s;
  if (Status s = checkSize(c, c.view, diag)) return s;
  return write(out, c.view, diag);
}

astra_status astra_view_index(astra_view *out, const astra_view *view, int32_t axis, int64_t index, astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (Status s = checkAxis(c, axis, diag)) return s;
  if (Status s = slice(c, axis, index, 1, 1, diag)) return s;
  removeAxis(c.view, axis);
  return write(out, c.view, diag);
}

astra_status astra_view_expand(astra_view *out, const astra_view *view, int32_t ndim, const int64_t *shape,
                               astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (Status s = checkRank(ndim, shape, diag)) return s;
  astra_view v = c.view;
  int32_t added = ndim - v.ndim;
  if (added < 0) return fail(diag, ASTRA_WRONG_RANK, "a view of %d dims cannot be broadcast to %d", v.ndim, ndim);
  for (int32_t i = ndim; i-- > 0;) {
    int64_t extent = i < added ? 1 : c.view.shape[i - added];
    if (extent != shape[i] && extent != 1)
      return fail(diag, ASTRA_WRONG_SHAPE, "axis %d of %lld elements cannot be broadcast to %lld; only one element can",
                  i - added, Number(extent), Number(shape[i]));
    v.strides[i] = extent == shape[i] && i >= added ? c.view.strides[i - added] : 0;
    v.shape[i] = shape[i];
  }
  v.ndim = ndim;
  if (Status s = checkSize(c, v, diag)) return s;
  return write(out, v, diag);
}

astra_status astra_view_diagonal(astra_view *out, const astra_view *view, int32_t axis_a, int32_t axis_b,
                                 int64_t offset, astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (Status s = checkAxis(c, axis_a, diag)) return s;
  if (Status s = checkAxis(c, axis_b, diag)) return s;
  if (axis_a == axis_b) return fail(diag, ASTRA_INVALID_ARGUMENT, "a diagonal is of two axes, and both are %d", axis_a);
  // Extents are at most 2^63 - 1: no difference below leaves 64 bits.
  int32_t shifted = offset < 0 ? axis_a : axis_b, other = offset < 0 ? axis_b : axis_a;
  int64_t room = c.view.shape[shifted];
  if (offset < 0 ? room > -(offset + 1) : room > offset)
    room -= offset < 0 ? -offset : offset;
  else
    room = 0;
  int64_t count = room < c.view.shape[other] ? room : c.view.shape[other], stride;
  if (count) move(c, shifted, offset < 0 ? -offset : offset);
  if (__builtin_add_overflow(c.view.strides[axis_a], c.view.strides[axis_b], &stride)) return leaves64(diag);
  removeAxis(c.view, axis_a > axis_b ? axis_a : axis_b);
  removeAxis(c.view, axis_a > axis_b ? axis_b : axis_a);
  c.view.shape[c.view.ndim] = count, c.view.strides[c.view.ndim] = stride;
  c.view.ndim++;
  return write(out, c.view, diag);
}

astra_status astra_view_reshape(astra_view *out, const astra_view *view, int32_t ndim, const int64_t *shape,
                                astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (Status s = checkRank(ndim, shape, diag)) return s;
  uint64_t bytes;
  if (!denseBytes(*c.at.dtype, shape, uint32_t(ndim), bytes) || bytes != c.at.bytes)
    return fail(diag, ASTRA_WRONG_SHAPE, "the new shape has not as many elements as the view");
  astra_view v = c.view;
  v.ndim = ndim;
  if (ndim) memcpy(v.shape, shape, uint32_t(ndim) * sizeof(int64_t));
  if (bytes == 0) {
    memset(v.strides, 0, sizeof(v.strides));
    return write(out, v, diag);
  }
  // Groups of old and new axes with as many elements, from the first axes on; axes of one element belong to none.
  int32_t from = 0, to = 0;
  while (to < ndim) {
    if (shape[to] == 1) {
      v.strides[to++] = 0;
      continue;
    }
    while (c.view.shape[from] == 1) from++;
    int32_t fromEnd = from + 1, toEnd = to + 1;
    int64_t old = c.view.shape[from], made = shape[to];
    int32_t inner = from; // of the old axes of the group
    while (old != made) {
      if (made < old) {
        made *= shape[toEnd++];
        continue;
      }
      int32_t axis = fromEnd++;
      old *= c.view.shape[axis];
      if (c.view.shape[axis] == 1) continue;
      int64_t span;
      if (__builtin_mul_overflow(c.view.strides[axis], c.view.shape[axis], &span) || span != c.view.strides[inner])
        return fail(diag, ASTRA_WRONG_STRIDES,
                    "the new shape cannot be said by strides: axes %d and %d are not one run; copy the view first",
                    inner, axis);
      inner = axis;
    }
    int64_t stride = c.view.strides[inner];
    for (int32_t i = toEnd; i-- > to;) {
      v.strides[i] = stride;
      if (__builtin_mul_overflow(stride, shape[i], &stride)) stride = 0; // of the group before this one: not used
    }
    from = fromEnd, to = toEnd;
  }
  return write(out, v, diag);
}

astra_status astra_view_conjugate(astra_view *out, const astra_view *view, astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (c.view.dtype == ASTRA_C64 || c.view.dtype == ASTRA_C128) c.view.flags ^= ASTRA_VIEW_CONJUGATE;
  return write(out, c.view, diag);
}

int32_t astra_view_is_row_major(const astra_view *view) {
  Checked c;
  return read(c, view, "of the view", nullptr) ? -1 : c.at.dense;
}

astra_status astra_view_address(const astra_view *view, const int64_t *index, void **out, astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (!out || (c.view.ndim && !index))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "out or index is NULL; give the address of a pointer and %d numbers",
                c.view.ndim);
  if (c.at.gpu) return fail(diag, ASTRA_UNSUPPORTED, "the view lies on a GPU and has no address on the host");
  char *at = c.at.data;
  for (int32_t i = 0; i < c.view.ndim; i++) {
    if (index[i] < 0 || index[i] >= c.view.shape[i])
      return fail(diag, ASTRA_OUT_OF_BOUNDS, "index %lld of axis %d, which has %lld elements", Number(index[i]), i,
                  Number(c.view.shape[i]));
    at += index[i] * c.view.strides[i] * int64_t(c.at.dtype->bits / 8);
  }
  *out = at;
  return ASTRA_OK;
}

astra_status astra_view_copy(const astra_view *to, const astra_view *from, astra_diag *diag) {
  Checked a, b;
  if (Status s = read(a, to, "of the target", diag)) return s;
  if (Status s = read(b, from, "of the source", diag)) return s;
  if (a.at.gpu || b.at.gpu)
    return fail(diag, ASTRA_UNSUPPORTED, "a view lies on a GPU; astra_stream_write and astra_stream_read copy");
  if (Status s = expect(b.at, a.view.dtype, a.at.rank, a.at.shape, "the source", "of the copy", diag)) return s;
  if (Status s = checkWritable(a.at, "the target", "of the copy", diag)) return s;
  Meeting met = meet(a.at, b.at);
  if (met != Meeting::No)
    return fail(diag, ASTRA_OVERLAP, "the target of the copy %s its source; copy to memory of its own",
                met == Meeting::Yes ? "shares memory with" : "is not shown to share no memory with");
  copyElements(a.at, b.at);
  return ASTRA_OK;
}

astra_status astra_view_part(astra_view *out, const astra_view *view, int32_t axis, int64_t index, int64_t parts,
                             astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (Status s = checkAxis(c, axis, diag)) return s;
  if (Status s = checkPart(index, parts, diag)) return s;
  int64_t extent = c.view.shape[axis], each = extent / parts, longer = extent % parts;
  int64_t begin = each * index + (index < longer ? index : longer);
  if (Status s = slice(c, axis, begin, each + (index < longer), 1, diag)) return s;
  return write(out, c.view, diag);
}

astra_status astra_view_interleaved(astra_view *out, const astra_view *view, int32_t axis, int64_t index, int64_t parts,
                                    astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (Status s = checkAxis(c, axis, diag)) return s;
  if (Status s = checkPart(index, parts, diag)) return s;
  int64_t extent = c.view.shape[axis], count = index < extent ? (extent - 1 - index) / parts + 1 : 0;
  if (Status s = slice(c, axis, count ? index : 0, count, parts, diag)) return s;
  return write(out, c.view, diag);
}

astra_status astra_view_tile(astra_view *out, const astra_view *view, const int64_t *tile, const int64_t *index,
                             astra_diag *diag) {
  Checked c;
  if (Status s = read(c, view, "of the view", diag)) return s;
  if (c.view.ndim && (!tile || !index))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "tile or index is NULL; give %d numbers each", c.view.ndim);
  for (int32_t i = 0; i < c.view.ndim; i++) {
    int64_t extent = c.view.shape[i], begin;
    if (tile[i] < 1 || index[i] < 0 || __builtin_mul_overflow(tile[i], index[i], &begin) || begin >= extent)
      return fail(diag, ASTRA_OUT_OF_BOUNDS, "tile %lld of %lld elements of axis %d, which has %lld", Number(index[i]),
                  Number(tile[i]), i, Number(extent));
    int64_t count = extent - begin < tile[i] ? extent - begin : tile[i];
    if (Status s = slice(c, i, begin, count, 1, diag)) return s;
  }
  return write(out, c.view, diag);
}

astra_status astra_view_is_disjoint(const astra_view *a, const astra_view *b, int32_t *out, astra_diag *diag) {
  Checked x, y;
  if (Status s = read(x, a, "of the first view", diag)) return s;
  if (Status s = read(y, b, "of the second view", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a number");
  Meeting met = meet(x.at, y.at);
  if (met == Meeting::Unknown)
    return fail(diag, ASTRA_UNSUPPORTED, "whether the views share memory was not shown in %u steps", kMostSteps);
  *out = met == Meeting::No;
  return ASTRA_OK;
}

astra_status astra_view_check_parts(const astra_view *views, uint32_t count, astra_diag *diag) {
  constexpr uint32_t kMost = 4096;
  if (count > kMost)
    return fail(diag, ASTRA_UNSUPPORTED, "%u views; at most %u are compared with each other", count, kMost);
  if (count && !views) return fail(diag, ASTRA_INVALID_ARGUMENT, "views is NULL; give %u", count);
  if (count == 0) return ASTRA_OK;
  size_t size;
  memcpy(&size, views, sizeof(size));
  auto nth = [&](uint32_t i) {
    return reinterpret_cast<const astra_view *>(reinterpret_cast<const char *>(views) + i * size);
  };
  for (uint32_t i = 0; i < count; i++) {
    Checked x, y;
    if (Status s = read(x, nth(i), "of a part", diag)) return s;
    if (Status s = checkWritable(x.at, "a part", "of the array", diag)) return s;
    for (uint32_t k = 0; k < i; k++) {
      if (Status s = read(y, nth(k), "of a part", diag)) return s;
      Meeting met = meet(x.at, y.at);
      if (met != Meeting::No)
        return fail(diag, ASTRA_OVERLAP, "parts %u and %u %s", k, i,
                    met == Meeting::Yes ? "share memory; parts written at once must not"
                                        : "are not shown to share no memory; use simpler strides");
    }
  }
  return ASTRA_OK;
}
