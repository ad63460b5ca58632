//===- Tensor.h: the caller's tensors, resolved ---------------------------===//
// Takes:    astra_tensor descriptions.
// Gives:    addresses and extents that are known to lie inside their storage; strided copies (Copy.cpp).
// Keeps:    nothing; owns nothing.
// Does not: compare with what an entry expects (Submit.cpp).
#pragma once

#include "Handles.h"

namespace astra::rt {

struct View {
  char *data; ///< element [0, ..., 0]
  const DType *dtype;
  uint32_t rank;
  int64_t shape[ASTRA_MAX_RANK];
  int64_t strides[ASTRA_MAX_RANK]; ///< in elements; of row-major order where `dense`
  bool dense;                      ///< row-major, and its elements are what is in memory
  bool isStrided;                  ///< not dense, and the call uses it where it is (Call.cpp)
  bool conjugate;                  ///< its elements are the conjugates of what is in memory
  uint64_t bytes;                  ///< of the row-major form
  const char *low, *high;          ///< every byte it can touch; equal when it is empty
  Block *block;                    ///< what to hold while it is used; may be null
  astra_device *gpu;               ///< whose memory it is; null for memory of the host
};

/// The i-th of an array of caller's structs, whose size is that of the first.
Status readTensor(astra_tensor &out, const astra_tensor *array, uint32_t index, const char *what, astra_diag *diag);

/// Refuses a null shape, an unknown dtype, storage that is too small or misaligned.
Status resolve(View &out, const astra_tensor &tensor, const char *name, astra_diag *diag);

/// Refuses what is neither on the host nor on this device, and what lies on a GPU and is not row-major.
Status checkPlace(const View &view, const astra_device *device, const char *name, astra_diag *diag);
/// Row-major bytes of a view on the host or a device, and back; waits.
Status fetch(void *dense, const View &from, astra_diag *diag);
Status give(const View &to, const void *dense, astra_diag *diag);

/// Copies between a view on the host and row-major bytes, and between two views of one dtype and shape (Copy.cpp).
void gather(void *dense, const View &from);
void scatter(const View &to, const void *dense);
void copyElements(const View &to, const View &from);
/// The elements of a view in row-major order in other memory; `view` is not empty.
View denseOf(const View &view, void *data);

/// Refuses another dtype, rank or shape. `what` is "param", "state", ...
Status expect(const View &view, int32_t dtype, uint32_t rank, const int64_t *shape, const char *what, const char *name,
              astra_diag *diag);

} // namespace astra::rt
