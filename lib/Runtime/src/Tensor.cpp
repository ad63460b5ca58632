//===- Tensor.cpp: the caller's tensors, resolved -------------------------===//
// Takes:    see Tensor.h.
// Gives:    bounds of strided storage with checked arithmetic.
// Keeps:    a tensor of no element touches no byte and may have no storage.
// Does not: convert dtypes.
#include "Tensor.h"
#include "Device.h"

using namespace astra::rt;

Status astra::rt::readTensor(astra_tensor &out, const astra_tensor *array, uint32_t index, const char *what,
                             astra_diag *diag) {
  if (!array) return fail(diag, ASTRA_INVALID_ARGUMENT, "the array of %s is NULL; give one", what);
  size_t stride;
  memcpy(&stride, array, sizeof(stride));
  return readStruct(out, reinterpret_cast<const astra_tensor *>(reinterpret_cast<const char *>(array) + index * stride),
                    what, diag);
}

Status astra::rt::resolve(View &v, const astra_tensor &t, const char *name, astra_diag *diag) {
  using Number = unsigned long long;
  v = {};
  v.dtype = dtypeOf(t.dtype);
  if (!v.dtype) return fail(diag, ASTRA_WRONG_DTYPE, "tensor %.64s has the unknown dtype %d", name, t.dtype);
  if (t.ndim < 0 || t.ndim > ASTRA_MAX_RANK)
    return fail(diag, ASTRA_WRONG_RANK, "tensor %.64s has %d dims; 0 to %d are allowed", name, t.ndim, ASTRA_MAX_RANK);
  if (t.ndim && !t.shape)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "tensor %.64s has no shape; give %d numbers", name, t.ndim);
  v.rank = uint32_t(t.ndim);
  if (v.rank) memcpy(v.shape, t.shape, v.rank * sizeof(int64_t));
  if (!denseBytes(*v.dtype, v.shape, v.rank, v.bytes))
    return fail(diag, ASTRA_WRONG_SHAPE, "the shape of tensor %.64s is negative or too large", name);

  // Strides of axes with one element or none say nothing.
  int64_t expected = 1;
  bool empty = false;
  v.dense = true;
  for (uint32_t i = v.rank; i-- > 0;) {
    v.strides[i] = expected;
    empty |= v.shape[i] == 0;
    if (t.strides && v.shape[i] > 1 && t.strides[i] != expected) v.dense = false;
    if (__builtin_mul_overflow(expected, v.shape[i] > 1 ? v.shape[i] : 1, &expected)) expected = INT64_MAX;
  }
  v.dense |= empty;
  if (t.flags & ASTRA_TENSOR_CONJUGATE) {
    if (t.dtype != ASTRA_C64 && t.dtype != ASTRA_C128)
      return fail(diag, ASTRA_WRONG_DTYPE, "tensor %.64s is to be conjugated and has dtype %s; only complex types can",
                  name, v.dtype->name);
    v.conjugate = !empty;
  }
  uint64_t low = 0, high = v.bytes; // bytes before and behind element [0, ..., 0]
  if (!v.dense) {
    if (v.dtype->bits < 8)
      return fail(diag, ASTRA_WRONG_STRIDES, "tensor %.64s is packed (%s) and must be row-major", name, v.dtype->name);
    uint64_t size = v.dtype->bits / 8;
    high = size;
    for (uint32_t i = 0; i < v.rank; i++) {
      v.strides[i] = v.shape[i] > 1 ? t.strides[i] : 0;
      uint64_t step = v.strides[i] < 0 ? -uint64_t(v.strides[i]) : uint64_t(v.strides[i]), reach;
      uint64_t &side = v.strides[i] < 0 ? low : high;
      if (!mul(step, uint64_t(v.shape[i]) - 1, reach) || !mul(reach, size, reach) || !add(side, reach, side))
        return fail(diag, ASTRA_OVERFLOW, "the strides of tensor %.64s leave 64 bits", name);
    }
  }
  v.dense &= !v.conjugate;
  if (t.flags & ~uint32_t(ASTRA_TENSOR_DONATED | ASTRA_TENSOR_CONJUGATE))
    return fail(diag, ASTRA_NEWER_CLIENT, "tensor %.64s has flags %#x that this library does not know", name, t.flags);
  if (t.buffer && t.data)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "tensor %.64s has both a buffer and data; give one", name);
  v.gpu = t.buffer && t.buffer->onGpu() ? t.buffer->pool->device : nullptr;
  char *base = static_cast<char *>(t.buffer ? t.buffer->data() : t.data);
  uint64_t room = t.buffer ? t.buffer->bytes : t.data_bytes, end;
  if (v.bytes == 0) {
    v.data = v.bytes == 0 && base && t.byte_offset <= room ? base + t.byte_offset : base;
    v.low = v.high = v.data;
    return ASTRA_OK;
  }
  if (!base) return fail(diag, ASTRA_INVALID_ARGUMENT, "tensor %.64s has no storage; give a buffer or data", name);
  if (t.byte_offset < low)
    return fail(diag, ASTRA_CAPACITY, "tensor %.64s needs %llu bytes before byte %llu of its storage", name,
                Number(low), Number(t.byte_offset));
  if (!add(t.byte_offset, high, end) || end > room)
    return fail(diag, ASTRA_CAPACITY, "tensor %.64s needs %llu bytes from byte %llu on and its storage has %llu", name,
                Number(high), Number(t.byte_offset), Number(room));
  if (uint64_t last; !add(reinterpret_cast<uintptr_t>(base), end, last))
    return fail(diag, ASTRA_OVERFLOW, "the %llu bytes of tensor %.64s leave the address space", Number(end), name);
  v.data = base + t.byte_offset;
  v.low = v.data - low, v.high = v.data + high;
  v.block = t.buffer ? t.buffer->block : nullptr;
  uint64_t alignment = v.dtype->bits >= 64 ? 8 : v.dtype->bits >= 8 ? v.dtype->bits / 8 : 1;
  if (reinterpret_cast<uintptr_t>(v.data) % alignment)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "tensor %.64s is not aligned to %llu bytes; align it", name,
                Number(alignment));
  return ASTRA_OK;
}

Status astra::rt::checkPlace(const View &v, const astra_device *device, const char *name, astra_diag *diag) {
  if (v.gpu && v.gpu != device && v.bytes)
    return fail(diag, ASTRA_INVALID_ARGUMENT,
                "tensor %.64s lies in memory of another device; copy it to the host first (astra_stream_read)", name);
  if (v.gpu && !v.dense)
    return fail(diag, ASTRA_WRONG_STRIDES, "tensor %.64s lies on a GPU and must be row-major, and not to be conjugated",
                name);
  return ASTRA_OK;
}

Status astra::rt::fetch(void *dense, const View &from, astra_diag *diag) {
  if (!from.gpu) return gather(dense, from), ASTRA_OK;
  void *queue = ownQueue(from.gpu);
  Status s = from.gpu->type.copy(from.gpu, queue, Way::Out, dense, from.data, from.bytes, diag);
  return s ? s : from.gpu->type.settle(from.gpu, queue, diag);
}

Status astra::rt::give(const View &to, const void *dense, astra_diag *diag) {
  if (!to.gpu) return scatter(to, dense), ASTRA_OK;
  void *queue = ownQueue(to.gpu);
  Status s = to.gpu->type.copy(to.gpu, queue, Way::In, to.data, dense, to.bytes, diag);
  return s ? s : to.gpu->type.settle(to.gpu, queue, diag);
}

Status astra::rt::expect(const View &v, int32_t dtype, uint32_t rank, const int64_t *shape, const char *what,
                         const char *name, astra_diag *diag) {
  const DType *wanted = dtypeOf(dtype);
  if (v.dtype != wanted)
    return fail(diag, ASTRA_WRONG_DTYPE, "%s %.64s has dtype %s; it must be %s", what, name, v.dtype->name,
                wanted->name);
  if (v.rank != rank)
    return fail(diag, ASTRA_WRONG_RANK, "%s %.64s has %u dims; it must have %u", what, name, v.rank, rank);
  for (uint32_t i = 0; i < rank; i++)
    if (v.shape[i] != shape[i])
      return fail(diag, ASTRA_WRONG_SHAPE, "axis %u of %s %.64s has %lld elements; it must have %lld", i, what, name,
                  static_cast<long long>(v.shape[i]), static_cast<long long>(shape[i]));
  return ASTRA_OK;
}
