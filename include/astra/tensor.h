/*===- tensor.h: views of tensors with any strides --------------------------===
 * Takes:    memory: a buffer of a pool, or the caller's.
 * Gives:    views of it, which are values: permuted, sliced, broadcast, reshaped, split into parts; whether parts are
 *           disjoint; copies between any two.
 * Keeps:    the conventions of astra.h. No view reaches beyond the memory it was made of, whatever its numbers are: a
 *           function checks the view that it takes, and all arithmetic. Nothing is allocated but by
 *           astra_view_init_pool.
 * Does not: own memory (the buffer does, or the caller), compute, wait, know packed types (elements of less than a
 * byte).
 *
 * A function that makes a view takes `out`, which may be the view that it takes. On failure `out` is untouched.
 */
#ifndef ASTRA_TENSOR_H
#define ASTRA_TENSOR_H

#include "astra/astra.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===- Views ----------------------------------------------------------------===*/

/* The elements are the conjugates of what is in memory. Complex types only. */
enum { ASTRA_VIEW_CONJUGATE = 1 };

/* Element [i, j, ...] begins at byte byte_offset + (i * strides[0] + j * strides[1] + ...) * bytes of an element. A
 * view borrows its memory, which must outlive it; a call in flight keeps a buffer by itself. */
typedef struct astra_view {
  size_t size;
  astra_buffer *buffer; /* the memory: this, or data and data_bytes */
  void *data;
  uint64_t data_bytes;
  uint64_t byte_offset; /* of element [0, ..., 0] */
  int32_t dtype;
  int32_t ndim;
  uint32_t flags;    /* ASTRA_VIEW_CONJUGATE */
  uint32_t reserved; /* 0 */
  int64_t shape[ASTRA_MAX_RANK];
  int64_t strides[ASTRA_MAX_RANK]; /* in elements; negative and 0 too. Those of axes of one element say nothing */
} astra_view;

/* A view of all of a tensor. ASTRA_UNSUPPORTED for a packed type. */
ASTRA_API astra_status astra_view_init(astra_view *out, const astra_tensor *tensor, astra_diag *diag);
/* A buffer of the pool, as large as a row-major tensor of this shape, and the view of all of it. The caller owns the
 * buffer. */
ASTRA_API astra_status astra_view_init_pool(astra_view *out, astra_buffer **buffer, astra_pool *pool, int32_t dtype,
                                            int32_t ndim, const int64_t *shape, astra_diag *diag);
/* The tensor for a call, a param or a state. Its shape and strides are those of `view`, which must outlive it. */
ASTRA_API astra_status astra_view_describe(const astra_view *view, astra_tensor *out, astra_diag *diag);

/* Axis i of the result is axis axes[i]: a permutation of 0 .. ndim - 1. */
ASTRA_API astra_status astra_view_permute(astra_view *out, const astra_view *view, const int32_t *axes,
                                          astra_diag *diag);
/* The elements start, start + step, ... of an axis, `count` of them; each must be one of the axis. step may be
 * negative, and 0 repeats one. */
ASTRA_API astra_status astra_view_slice(astra_view *out, const astra_view *view, int32_t axis, int64_t start,
                                        int64_t count, int64_t step, astra_diag *diag);
/* One element of an axis, which goes away. */
ASTRA_API astra_status astra_view_index(astra_view *out, const astra_view *view, int32_t axis, int64_t index,
                                        astra_diag *diag);
/* Broadcast: axes are matched from the last one on; an axis of one element, and one that is not there, gets stride 0.
 */
ASTRA_API astra_status astra_view_expand(astra_view *out, const astra_view *view, int32_t ndim, const int64_t *shape,
                                         astra_diag *diag);
/* The elements [i, i + offset] of two axes, or [i - offset, i] where offset is negative. The two axes go away, theirs
 * is the last one. */
ASTRA_API astra_status astra_view_diagonal(astra_view *out, const astra_view *view, int32_t axis_a, int32_t axis_b,
                                           int64_t offset, astra_diag *diag);
/* The same elements in the same row-major order under another shape; ASTRA_WRONG_STRIDES where strides cannot say that:
 * copy the view first. */
ASTRA_API astra_status astra_view_reshape(astra_view *out, const astra_view *view, int32_t ndim, const int64_t *shape,
                                          astra_diag *diag);
/* The conjugates, without a copy; a view of real numbers as it is. */
ASTRA_API astra_status astra_view_conjugate(astra_view *out, const astra_view *view, astra_diag *diag);

/* 1: calls use it where it is. 0: they copy it, if ASTRA_CALL_ALLOW_COPY lets them. -1: no legal view. */
ASTRA_API int32_t astra_view_is_row_major(const astra_view *view);
/* The address on the host of the element `index`, ndim numbers. */
ASTRA_API astra_status astra_view_address(const astra_view *view, const int64_t *index, void **out, astra_diag *diag);
/* Copies between two views on the host of one dtype and shape, now. `to` must hold each element once, and share no
 * byte with `from` (ASTRA_OVERLAP). */
ASTRA_API astra_status astra_view_copy(const astra_view *to, const astra_view *from, astra_diag *diag);

/*===- Parts ----------------------------------------------------------------===*/

/* Several streams may write parts of one array at once, as long as no two of them share a byte. Calls see to that
 * themselves (ASTRA_OVERLAP). What decides is the sets of bytes, not the ranges they lie in: columns of one matrix are
 * disjoint. The test is exact. Where it would take more than ASTRA_PARTS_MOST_STEPS steps it says that nothing was
 * shown, and calls refuse then. Parts that the functions below make of one view take a few steps. */
enum { ASTRA_PARTS_MOST_STEPS = 8192 };

/* Block `index` of `parts` blocks along an axis: they are in order, and their lengths differ by one at most. Rows are
 * blocks of axis 0, columns of axis 1. */
ASTRA_API astra_status astra_view_part(astra_view *out, const astra_view *view, int32_t axis, int64_t index,
                                       int64_t parts, astra_diag *diag);
/* The elements index, index + parts, index + 2 parts, ... of an axis. */
ASTRA_API astra_status astra_view_interleaved(astra_view *out, const astra_view *view, int32_t axis, int64_t index,
                                              int64_t parts, astra_diag *diag);
/* The tile at `index` of the grid of tiles of extents `tile`, ndim numbers each; those at the end are cut off. */
ASTRA_API astra_status astra_view_tile(astra_view *out, const astra_view *view, const int64_t *tile,
                                       const int64_t *index, astra_diag *diag);
/* 1 in `out` if the two share no byte, 0 if they do; ASTRA_UNSUPPORTED if that could not be shown. */
ASTRA_API astra_status astra_view_is_disjoint(const astra_view *a, const astra_view *b, int32_t *out, astra_diag *diag);
/* ASTRA_OK if all of them may be written at once: each holds each of its elements once, no two share a byte. At most
 * 4096 views: each is compared with each. */
ASTRA_API astra_status astra_view_check_parts(const astra_view *views, uint32_t count, astra_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
