/*===- ops.h: operations on tensors without a model ---------------------------===
 * Takes:    views of tensors (tensor.h), a stream, and libastra_ops.astra, the bundle in the folder of the library.
 * Gives:    what one operation gives: elementwise functions with broadcasting, casts, sums and other folds of axes,
 *           products of matrices, copies between any strides, sorting, gathers and scatters, random numbers. The rows
 *           of ops.def, each a function astra_op_NAME.
 * Keeps:    the conventions of astra.h. The bits are those of the same operation in a compiled model. Nothing is
 *           compiled: each call runs kernels of the bundle.
 * Does not: promote types (cast), give a result whose shape depends on data, run on GPUs.
 *
 * Shapes broadcast as NumPy's do. Operands of one call are of one type, but for masks and places.
 *
 * The result. A view without memory (ASTRA_INIT(astra_view)) gets memory of the pool: free it by
 * astra_buffer_free(&out.buffer). Any other is written where it lies, with any strides; it must have the result's type
 * and shape and share no byte with an operand.
 *
 * Order. A call runs on its stream, behind what was submitted to it, and after calls of other streams that it shares
 * memory with. Wait for its promise (astra_ops_call), or for a mark of the stream, before you read the result. On a
 * device without threads it has ended when the function returns.
 */
#ifndef ASTRA_OPS_H
#define ASTRA_OPS_H

#include "astra/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bundle on a device; any thread may use it. */
typedef struct astra_ops astra_ops;

typedef struct astra_ops_options {
  size_t size;
  const char
      *path; /* the bundle; NULL: libastra_ops.astra beside this library, or beside the program if it is inside */
  astra_pool *pool; /* for results, and for what lies between steps; NULL: one of its own */
} astra_ops_options;

/* options may be NULL. The device is a CPU; it and the pool must outlive the handle. */
ASTRA_API astra_status astra_ops_init(astra_ops **out, astra_runtime *runtime, astra_device *device,
                                      const astra_ops_options *options, astra_diag *diag);
/* ASTRA_BUSY while a call is in flight. With a pool of its own ASTRA_IN_USE while one of its buffers lives; then the
 * handle is as it was. */
ASTRA_API astra_status astra_ops_free(astra_ops **ops);
/* Gives back the memory that calls keep for the next ones. */
ASTRA_API astra_status astra_ops_trim(astra_ops *ops);
/* The pool that results lie in. */
ASTRA_API astra_pool *astra_ops_pool(astra_ops *ops);

enum {
  ASTRA_OPS_KEEP_AXES = 1, /* axes that are folded stay, with one element */
  ASTRA_OPS_DESCENDING = 2 /* of sort and argsort: the greatest first; equal ones stay in their order */
};

/* One operation: its name and operands, and what it takes beside them. */
typedef struct astra_op {
  size_t size;
  const char *name;                /* "add" */
  const astra_view *const *inputs; /* in the order of its function astra_op_NAME */
  uint32_t num_inputs;
  uint32_t flags;
  const int32_t *axes;  /* that are folded, sorted along, taken from; negative ones count from the back */
  uint32_t num_axes;    /* 0: all of them, where it folds; else one is wanted */
  int32_t dtype;        /* of the result of cast, random_bits, uniform, normal */
  const int64_t *shape; /* of random numbers, ndim numbers */
  int32_t ndim;
  uint32_t seed, sequence; /* the key of random numbers: each pair gives others */
  astra_promise *const *after;
  uint32_t num_after;
} astra_op;

/* Any operation, with a promise (which may be NULL) and promises that it waits for. The functions below call it. */
ASTRA_API astra_status astra_ops_call(astra_ops *ops, astra_stream *stream, const astra_op *op, astra_view *out,
                                      astra_promise **promise, astra_diag *diag);
/* An Einstein sum: "ij,jk->ik", with an ellipsis and labels that repeat as NumPy has them; of more than two operands
 * the order stands behind it, "ij,jk,kl->il path=[(0, 1), (0, 1)]", as astra.einsum_path, opt_einsum and NumPy give it.
 * All operands are of one type, not bool. The bits are those of the same text in a compiled model, but where a pair
 * sums several labels of more than 512 products together: these are one axis here. Several calls of this library: what
 * is refused half way may leave some of them submitted, and `out` as it was. It is ordered as they are. */
ASTRA_API astra_status astra_ops_einsum(astra_ops *ops, astra_stream *stream, const char *text,
                                        const astra_view *const *operands, uint32_t count, astra_view *out,
                                        astra_diag *diag);
/* The name of operation `index`, in the order of ops.def; NULL for a number that there is not. */
ASTRA_API const char *astra_ops_name(uint32_t index);
/* 1 if the operation takes elements of the type (of select the second and third operand), 0, or -1 for a name that is
 * not known. */
ASTRA_API int32_t astra_ops_takes(const char *name, int32_t dtype);

/*===- A function for each row of ops.def -----------------------------------===*/

static inline astra_status astra_ops_run(astra_ops *ops, astra_stream *stream, const char *name, uint32_t count,
                                         const astra_view *a, const astra_view *b, const astra_view *c,
                                         const int32_t *axes, uint32_t num_axes, uint32_t flags, int32_t dtype,
                                         astra_view *out, astra_diag *diag) {
  const astra_view *inputs[3];
  astra_op op = ASTRA_INIT(astra_op);
  inputs[0] = a, inputs[1] = b, inputs[2] = c;
  op.name = name, op.inputs = inputs, op.num_inputs = count;
  op.axes = axes, op.num_axes = num_axes, op.flags = flags, op.dtype = dtype;
  return astra_ops_call(ops, stream, &op, out, NULL, diag);
}

static inline astra_status astra_ops_draw(astra_ops *ops, astra_stream *stream, const char *name, uint32_t seed,
                                          uint32_t sequence, int32_t dtype, int32_t ndim, const int64_t *shape,
                                          astra_view *out, astra_diag *diag) {
  astra_op op = ASTRA_INIT(astra_op);
  op.name = name, op.seed = seed, op.sequence = sequence, op.dtype = dtype, op.ndim = ndim, op.shape = shape;
  return astra_ops_call(ops, stream, &op, out, NULL, diag);
}

#define ASTRA_OPS_HEAD(name) static inline astra_status astra_op_##name(astra_ops *ops, astra_stream *stream,
#define ASTRA_OPS_TAIL astra_view *out, astra_diag *diag)
#define ASTRA_OPS_RUN(name, ...) return astra_ops_run(ops, stream, #name, __VA_ARGS__, out, diag);

#define ASTRA_OPS_Unary(name)                                                                                          \
  ASTRA_OPS_HEAD(name) const astra_view *a, ASTRA_OPS_TAIL { ASTRA_OPS_RUN(name, 1, a, NULL, NULL, NULL, 0, 0, 0) }
#define ASTRA_OPS_Copy(name) ASTRA_OPS_Unary(name)
#define ASTRA_OPS_Cast(name)                                                                                           \
  ASTRA_OPS_HEAD(name) const astra_view *a, int32_t dtype, ASTRA_OPS_TAIL {                                            \
    ASTRA_OPS_RUN(name, 1, a, NULL, NULL, NULL, 0, 0, dtype)                                                           \
  }
#define ASTRA_OPS_Binary(name)                                                                                         \
  ASTRA_OPS_HEAD(name) const astra_view *a, const astra_view *b, ASTRA_OPS_TAIL {                                      \
    ASTRA_OPS_RUN(name, 2, a, b, NULL, NULL, 0, 0, 0)                                                                  \
  }
#define ASTRA_OPS_Commuting(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_PlainCommuting(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_Plain(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_Long(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_Swapped(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_Negated(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_Remainder(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_Matmul(name) ASTRA_OPS_Binary(name)
#define ASTRA_OPS_Select(name)                                                                                         \
  ASTRA_OPS_HEAD(name) const astra_view *a, const astra_view *b, const astra_view *c, ASTRA_OPS_TAIL {                 \
    ASTRA_OPS_RUN(name, 3, a, b, c, NULL, 0, 0, 0)                                                                     \
  }
#define ASTRA_OPS_Fma(name) ASTRA_OPS_Select(name)
/* axes: num_axes of them; 0: all */
#define ASTRA_OPS_Reduce(name)                                                                                         \
  ASTRA_OPS_HEAD(name) const astra_view *a, const int32_t *axes, uint32_t num_axes, uint32_t flags, ASTRA_OPS_TAIL {   \
    ASTRA_OPS_RUN(name, 1, a, NULL, NULL, axes, num_axes, flags, 0)                                                    \
  }
#define ASTRA_OPS_Sum(name) ASTRA_OPS_Reduce(name)
#define ASTRA_OPS_Prod(name) ASTRA_OPS_Reduce(name)
#define ASTRA_OPS_Mean(name) ASTRA_OPS_Reduce(name)
#define ASTRA_OPS_ArgReduce(name)                                                                                      \
  ASTRA_OPS_HEAD(name) const astra_view *a, int32_t axis, uint32_t flags, ASTRA_OPS_TAIL {                             \
    ASTRA_OPS_RUN(name, 1, a, NULL, NULL, &axis, 1, flags, 0)                                                          \
  }
#define ASTRA_OPS_ArgSort(name) ASTRA_OPS_ArgReduce(name)
#define ASTRA_OPS_Sort(name) ASTRA_OPS_ArgReduce(name)
/* places: i64 or i32. take: of any shape, which stands where the axis was; what is outside reads 0. pick: of a's shape
 * but along the axis */
#define ASTRA_OPS_Take(name)                                                                                           \
  ASTRA_OPS_HEAD(name) const astra_view *a, const astra_view *places, int32_t axis, ASTRA_OPS_TAIL {                   \
    ASTRA_OPS_RUN(name, 2, a, places, NULL, &axis, 1, 0, 0)                                                            \
  }
#define ASTRA_OPS_Pick(name) ASTRA_OPS_Take(name)
/* places and updates have one shape, a's but along the axis; what is outside is dropped */
#define ASTRA_OPS_Scatter(name)                                                                                        \
  ASTRA_OPS_HEAD(name)                                                                                                 \
  const astra_view *a, const astra_view *places, const astra_view *updates, int32_t axis, ASTRA_OPS_TAIL {             \
    ASTRA_OPS_RUN(name, 3, a, places, updates, &axis, 1, 0, 0)                                                         \
  }
#define ASTRA_OPS_Random(name)                                                                                         \
  ASTRA_OPS_HEAD(name)                                                                                                 \
  uint32_t seed, uint32_t sequence, int32_t dtype, int32_t ndim, const int64_t *shape, ASTRA_OPS_TAIL {                \
    return astra_ops_draw(ops, stream, #name, seed, sequence, dtype, ndim, shape, out, diag);                          \
  }

#define ASTRA_OP(name, kind, types, native, result, meaning) ASTRA_OPS_##kind(name)
#define ASTRA_OP_INNER(name, kind, types, native, result, meaning)
#include "astra/ops.def"
#undef ASTRA_OP
#undef ASTRA_OP_INNER

#ifdef __cplusplus
}
#endif

#endif
