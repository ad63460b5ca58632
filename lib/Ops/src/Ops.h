//===- Ops.h: what the files of libastra_ops share -------------------------===//
// Takes:    the C ABI of the runtime, and nothing of what lies behind it.
// Gives:    a call at work: its stream, temporaries, launches of entries of the bundle.
// Keeps:    no global state, no exception; libstdc++ is used for headers only. Functions that compute write into a
//           `Dense` view of the right type and shape, and submit to the stream; none waits.
#pragma once

#include "Table.h"
#include "astra/ops.h"
#include <atomic>
#include <cstring>

namespace astra::ops {

using Status = astra_status;
using View = astra_view;

inline constexpr uint32_t kMostForms = 6, kMostSessions = 64, kNumTypes = ASTRA_C128 + 1;

/// Fills `diag` (may be null) with the sentence and gives `status`.
[[gnu::cold, gnu::format(printf, 3, 4)]] Status fail(astra_diag *diag, Status status, const char *format, ...);

/// A session is used by one call at a time: `taken` is for the time of a submit, in which the dims of the host are set
/// too.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<astra_session *> session{nullptr};
};

} // namespace astra::ops

struct astra_ops {
  astra_runtime *runtime;
  astra_device *device;
  astra_bundle *bundle;
  astra_loaded *loaded;
  astra_pool *pool;
  bool ownsPool;
  const astra_entry *entries[astra::ops::kNumRows][astra::ops::kNumTypes][astra::ops::kMostForms];
  const astra_entry *casts[astra::ops::kNumTypes][astra::ops::kNumTypes];
  uint8_t byName[512]; ///< rows + 1, by the hash of their names; 0: none
  astra::ops::Slot slots[astra::ops::kMostSessions];
};

namespace astra::ops {

/// The row of a name, or kNumRows.
uint32_t findRow(const astra_ops *ops, const char *name);

/// A call of astra_ops_call while it is submitted, in one launch or in several.
struct Work {
  astra_ops *ops;
  astra_stream *stream;
  const astra_op *op;
  astra_diag *diag;
  const char *name;        ///< of the operation, for sentences
  astra_promise **promise; ///< null: nobody asks
  astra_promise *last = nullptr;

  /// Submits an entry. `host`, if it is not negative, is the dim N.
  Status launch(const astra_entry *entry, const View *inputs, uint32_t count, const View &out, int64_t host = -1);
};

/// Memory of the pool that is given back at the end of a scope; a call in flight keeps it by itself.
class Temporary {
public:
  Temporary() : view(ASTRA_INIT(View)) {}
  Temporary(const Temporary &) = delete;
  ~Temporary() { astra_buffer_free(&view.buffer); }
  /// A row-major tensor.
  Status init(Work &w, int32_t dtype, int32_t ndim, const int64_t *shape);
  View view;
};

//===- Views.cpp -----------------------------------------------------------===//

/// Whether what has been checked is row-major, as it stands in memory.
bool isDense(const View &v);
int64_t elements(const View &v);
uint64_t elementBytes(int32_t dtype);
/// The same memory with other extents, of a dense view with as many elements.
View reshaped(const View &dense, int32_t ndim, const int64_t *shape);
inline View reshaped(const View &dense, std::initializer_list<int64_t> shape) {
  return reshaped(dense, int32_t(shape.size()), shape.begin());
}
/// The same bits as another type of the same width.
inline View retyped(View v, int32_t dtype) {
  v.dtype = dtype;
  return v;
}
/// `count` elements of an axis.
View part(View v, int32_t axis, int64_t start, int64_t count);
/// The view broadcast to a shape that has been checked.
View expanded(const View &v, int32_t ndim, const int64_t *shape);
/// Axis `from` moved to `to`, the others in their order.
View moved(View v, int32_t from, int32_t to);
void setDense(View &v, int32_t ndim, const int64_t *shape);

//===- Copy.cpp ------------------------------------------------------------===//

/// Copies between any two strides, of one type and shape.
Status copy(Work &w, const View &in, const View &out);
/// `in` as a dense view: itself, or a copy in `temporary`.
Status dense(Work &w, const View &in, Temporary &temporary, View &out);

//===- Types.cpp -----------------------------------------------------------===//

/// The type that an operation on `dtype` is compiled for: one of the same width, or a wider one to cast to.
int32_t nativeType(const Row &row, int32_t dtype);
/// Between dense views of one shape.
Status cast(Work &w, const View &in, const View &out);
bool canCast(int32_t from, int32_t to);
/// Operands as the native type in `out`, of `count`; those that `keeps` names by bits stay as they are.
struct Operands {
  View views[3];
  Temporary temporaries[3];
  Status init(Work &w, const View *const *in, uint32_t count, uint32_t keeps, int32_t native);
};
/// What a row gives for native operands, brought to the type that was asked for when it is wider.
struct Outcome {
  View view; ///< dense, of the native result type: compute into it
  Status init(Work &w, const Row &row, int32_t native, const View &out);
  Status finish(Work &w, const View &out);

private:
  Temporary wide;
  bool isWide = false;
};

//===- The operations: dense results, operands of native types -------------===//

Status elementwise(Work &w, uint32_t row, const View *in, uint32_t count, const View &out);
/// Folds the axes of a set of bits; out has the kept ones.
Status reduce(Work &w, uint32_t row, const View &in, uint32_t axes, const View &out);
Status argReduce(Work &w, uint32_t row, const View &in, int32_t axis, const View &out);
Status matmul(Work &w, const View &a, const View &b, const View &out);
Status take(Work &w, const View &in, const View &places, int32_t axis, const View &out);
Status pick(Work &w, const View &in, const View &places, int32_t axis, const View &out);
Status scatter(Work &w, uint32_t row, const View &in, const View &places, const View &updates, int32_t axis,
               const View &out);
/// i64 keys in the order of the elements, or against it, between dense views.
Status sortKeys(Work &w, const View &in, bool descending, const View &out);
/// out: i64 places of in's shape. `in` is of any type that has an order.
Status argSort(Work &w, const View &in, int32_t axis, bool descending, const View &out);
Status random(Work &w, uint32_t row, const View &out);

} // namespace astra::ops
