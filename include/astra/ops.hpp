//===- ops.hpp: operations on tensors in C++ ------------------------------===//
// Takes:    ops.h.
// Gives:    astra::ops::Library, whose methods are the rows of ops.def: they take views and give memory of the pool.
// Keeps:    refusals are astra::Error; results are submitted to the stream and not waited for.
// Does not: broadcast otherwise, promote otherwise or know more than ops.h.
//
//   astra::ops::Library ops(runtime, device, stream);
//   astra::OwnedView sum = ops.add(a, b), mean = ops.mean(sum, {0});
#pragma once

#include "astra/ops.h"
#include "astra/tensor.hpp"

namespace astra::ops {

/// Axes of a fold; none: all of them.
using Axes = std::initializer_list<int32_t>;

class Library : public Handle<astra_ops, astra_ops_free> {
public:
  /// Results come in the order of the stream, which must outlive this. path: of the bundle; NULL: beside the library.
  Library(const Runtime &runtime, const Device &device, const Stream &stream, const char *path = nullptr,
          const Pool *pool = nullptr)
      : stream(stream.get()) {
    astra_ops_options options = ASTRA_INIT(astra_ops_options);
    options.path = path, options.pool = pool ? pool->get() : nullptr;
    check([&](astra_diag *d) { return astra_ops_init(&handle, runtime.get(), device.get(), &options, d); });
  }

  /// Any operation: as astra_ops_call, into new memory.
  OwnedView call(const astra_op &op, astra_promise **promise = nullptr) const {
    astra_view out = ASTRA_INIT(astra_view);
    check([&](astra_diag *d) { return astra_ops_call(handle, stream, &op, &out, promise, d); });
    return OwnedView(out);
  }
  /// An Einstein sum, "ij,jk->ik", as astra_ops_einsum.
  OwnedView einsum(const char *text, std::initializer_list<const View *> operands) const {
    const astra_view *views[32];
    uint32_t count = 0;
    for (const View *v : operands)
      if (count < 32) views[count++] = &v->raw();
    astra_view out = ASTRA_INIT(astra_view);
    check([&](astra_diag *d) {
      return astra_ops_einsum(handle, stream, text, views, uint32_t(operands.size()), &out, d);
    });
    return OwnedView(out);
  }
  /// Gives back the memory that calls keep for the next ones.
  void trim() const {
    if (astra_status status = astra_ops_trim(handle)) throw Error(status);
  }

#define ASTRA_OPS_CPP(name, parameters, count, a, b, c, axes, numAxes, flags, dtype)                                   \
  OwnedView name parameters const {                                                                                    \
    return run(#name, count, a, b, c, axes, numAxes, flags, dtype);                                                    \
  }
#define ASTRA_OPS_CPP_Unary(name) ASTRA_OPS_CPP(name, (const View &a), 1, &a, nullptr, nullptr, nullptr, 0, 0, 0)
#define ASTRA_OPS_CPP_Copy(name) ASTRA_OPS_CPP_Unary(name)
#define ASTRA_OPS_CPP_Cast(name)                                                                                       \
  ASTRA_OPS_CPP(name, (const View &a, int32_t dtype), 1, &a, nullptr, nullptr, nullptr, 0, 0, dtype)
#define ASTRA_OPS_CPP_Binary(name)                                                                                     \
  ASTRA_OPS_CPP(name, (const View &a, const View &b), 2, &a, &b, nullptr, nullptr, 0, 0, 0)
#define ASTRA_OPS_CPP_Commuting(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_PlainCommuting(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_Plain(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_Long(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_Swapped(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_Negated(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_Remainder(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_Matmul(name) ASTRA_OPS_CPP_Binary(name)
#define ASTRA_OPS_CPP_Select(name)                                                                                     \
  ASTRA_OPS_CPP(name, (const View &a, const View &b, const View &c), 3, &a, &b, &c, nullptr, 0, 0, 0)
#define ASTRA_OPS_CPP_Fma(name) ASTRA_OPS_CPP_Select(name)
#define ASTRA_OPS_CPP_Reduce(name)                                                                                     \
  ASTRA_OPS_CPP(name, (const View &a, Axes axes = {}, bool keep = false), 1, &a, nullptr, nullptr, axes.begin(),       \
                uint32_t(axes.size()), keep ? uint32_t(ASTRA_OPS_KEEP_AXES) : 0u, 0)
#define ASTRA_OPS_CPP_Sum(name) ASTRA_OPS_CPP_Reduce(name)
#define ASTRA_OPS_CPP_Prod(name) ASTRA_OPS_CPP_Reduce(name)
#define ASTRA_OPS_CPP_Mean(name) ASTRA_OPS_CPP_Reduce(name)
#define ASTRA_OPS_CPP_ArgReduce(name)                                                                                  \
  ASTRA_OPS_CPP(name, (const View &a, int32_t axis, bool keep = false), 1, &a, nullptr, nullptr, &axis, 1,             \
                keep ? uint32_t(ASTRA_OPS_KEEP_AXES) : 0u, 0)
#define ASTRA_OPS_CPP_Sort(name)                                                                                       \
  ASTRA_OPS_CPP(name, (const View &a, int32_t axis = -1, bool descending = false), 1, &a, nullptr, nullptr, &axis, 1,  \
                descending ? uint32_t(ASTRA_OPS_DESCENDING) : 0u, 0)
#define ASTRA_OPS_CPP_ArgSort(name) ASTRA_OPS_CPP_Sort(name)
#define ASTRA_OPS_CPP_Take(name)                                                                                       \
  ASTRA_OPS_CPP(name, (const View &a, const View &places, int32_t axis), 2, &a, &places, nullptr, &axis, 1, 0, 0)
#define ASTRA_OPS_CPP_Pick(name) ASTRA_OPS_CPP_Take(name)
#define ASTRA_OPS_CPP_Scatter(name)                                                                                    \
  ASTRA_OPS_CPP(name, (const View &a, const View &places, const View &updates, int32_t axis), 3, &a, &places,          \
                &updates, &axis, 1, 0, 0)
#define ASTRA_OPS_CPP_Random(name)                                                                                     \
  OwnedView name(uint32_t seed, uint32_t sequence, int32_t dtype, Numbers shape) const {                               \
    return draw(#name, seed, sequence, dtype, shape);                                                                  \
  }
#define ASTRA_OP(name, kind, types, native, result, meaning) ASTRA_OPS_CPP_##kind(name)
#define ASTRA_OP_INNER(name, kind, types, native, result, meaning)
#include "astra/ops.def"
#undef ASTRA_OP
#undef ASTRA_OP_INNER

private:
  OwnedView draw(const char *name, uint32_t seed, uint32_t sequence, int32_t dtype, const Numbers &shape) const {
    astra_op op = ASTRA_INIT(astra_op);
    op.name = name, op.seed = seed, op.sequence = sequence, op.dtype = dtype;
    op.ndim = int32_t(shape.size()), op.shape = shape.data();
    return call(op);
  }
  OwnedView run(const char *name, uint32_t count, const View *a, const View *b, const View *c, const int32_t *axes,
                uint32_t numAxes, uint32_t flags, int32_t dtype) const {
    const astra_view *inputs[] = {a ? &a->raw() : nullptr, b ? &b->raw() : nullptr, c ? &c->raw() : nullptr};
    astra_op op = ASTRA_INIT(astra_op);
    op.name = name, op.inputs = inputs, op.num_inputs = count, op.flags = flags;
    op.axes = axes, op.num_axes = numAxes, op.dtype = dtype;
    return call(op);
  }
  astra_stream *stream;
};

} // namespace astra::ops
