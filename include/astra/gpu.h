/*===- gpu.h: functions of the program on a GPU's memory ----------------------===
 * Takes:    a function that is registered (astra_runtime_register).
 * Gives:    a second way of it, for calls of GPUs: it works on the GPU's memory, in the order of the call's queue.
 * Keeps:    the conventions of astra.h; a part of libastra_rt. Does not: need a header of CUDA or HIP.
 */
#ifndef ASTRA_GPU_H
#define ASTRA_GPU_H

#include "astra/astra.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What such a function may do while it runs. Pointers are of the device's memory unless it says otherwise. What is
 * queued is done later, in the order of `queue`, behind what the call has put there before. */
typedef struct astra_gpu_call astra_gpu_call;
struct astra_gpu_call {
  size_t size;
  const char *driver; /* "cuda" or "hip" */
  int32_t number;     /* of the device, as the driver counts. It is current on this thread */
  void *queue;        /* a CUstream or hipStream_t */
  /* Queues a copy; zeros; a copy from memory of the host, which stays as it is until the call has ended. */
  astra_status (*copy)(const astra_gpu_call *gpu, void *to, const void *from, uint64_t bytes, astra_diag *diag);
  astra_status (*zero)(const astra_gpu_call *gpu, void *to, uint64_t bytes, astra_diag *diag);
  astra_status (*write)(const astra_gpu_call *gpu, void *to, const void *host, uint64_t bytes, astra_diag *diag);
  /* Memory of the session for what is between, the same in each call until more is asked for, at a multiple of 256. */
  astra_status (*room)(const astra_gpu_call *gpu, uint64_t bytes, void **out, astra_diag *diag);
  /* Queues an entry of the bundle, of vectors of `length` elements each, inputs before outputs, that begin at multiples
   * of 16 bytes and do not overlap. ASTRA_UNSUPPORTED if it has states, parameters, other dims or values between. */
  astra_status (*run)(const astra_gpu_call *gpu, const char *entry, void *const *vectors, uint32_t num_vectors,
                      int64_t length, astra_diag *diag);
  /* A place in the queue; whether it has been reached: ASTRA_OK, ASTRA_NOT_READY, or what failed before. */
  astra_status (*mark)(const astra_gpu_call *gpu, void **mark, astra_diag *diag);
  astra_status (*reached)(const astra_gpu_call *gpu, void *mark);
  void (*unmark)(const astra_gpu_call *gpu, void *mark);
};

/* As astra_function_fn, of tensors in the GPU's memory: it queues what makes the outputs, and returns. */
typedef astra_status (*astra_gpu_function_fn)(void *self, const astra_gpu_call *gpu, const astra_tensor *inputs,
                                              uint32_t num_inputs, const astra_tensor *outputs, uint32_t num_outputs,
                                              astra_diag *diag);
/* Returns when what functions have queued has ended, or makes it end and says why it failed. */
typedef astra_status (*astra_gpu_settle_fn)(void *self, const astra_gpu_call *gpu, astra_diag *diag);
/* A second way of a function that is registered: calls of GPUs take this one, without copies to the host and without
 * waiting. It gets the `self` of the first. `settle` (or NULL), with a self of its own, is called before a call that
 * has called functions waits for its queue, and at its end, whether or not it failed. Loaded bundles keep what they
 * have. ASTRA_UNKNOWN_NAME: there is no function of that name. */
ASTRA_API astra_status astra_runtime_register_gpu(astra_runtime *runtime, const char *name, astra_gpu_function_fn fn,
                                                  astra_gpu_settle_fn settle, void *settle_self, astra_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
