//===- Driver.h: what is called of a GPU's driver -------------------------===//
// Takes:    the path of a driver's library.
// Gives:    its functions, one table for NVIDIA's and AMD's; what their error numbers mean.
// Keeps:    nothing is linked and no header of a driver is read: a row names a function in each library. Handles and
//           device addresses are pointers of 64 bits in both.
// Does not: know streams or bundles (GpuDevice.cpp).
#pragma once

#include "Handles.h"

namespace astra::rt {

// CALL(field, parameters, its name in libcuda, in libamdhip64). A name may be empty where the other row has its own
// way. Behind a `?` it may be missing (CUDA 11 has no tensor maps): then the field is null.
#define ASTRA_DRIVER_CALLS(CALL)                                                                                       \
  CALL(init, (unsigned flags), "cuInit", "hipInit")                                                                    \
  CALL(version, (int *out), "cuDriverGetVersion", "hipDriverGetVersion")                                               \
  CALL(errorName, (int error, const char **out), "cuGetErrorName", "hipDrvGetErrorName")                               \
  CALL(deviceCount, (int *out), "cuDeviceGetCount", "hipGetDeviceCount")                                               \
  CALL(deviceGet, (int *out, int number), "cuDeviceGet", "hipDeviceGet")                                               \
  CALL(attribute, (int *out, int which, int device), "cuDeviceGetAttribute", "hipDeviceGetAttribute")                  \
  CALL(properties, (void *out, int device), "", "hipGetDevicePropertiesR0600")                                         \
  CALL(retainContext, (void **out, int device), "cuDevicePrimaryCtxRetain", "")                                        \
  CALL(releaseContext, (int device), "cuDevicePrimaryCtxRelease_v2", "")                                               \
  CALL(pushContext, (void *context), "cuCtxPushCurrent_v2", "")                                                        \
  CALL(popContext, (void **out), "cuCtxPopCurrent_v2", "")                                                             \
  CALL(currentDevice, (int *out), "", "hipGetDevice")                                                                  \
  CALL(setDevice, (int device), "", "hipSetDevice")                                                                    \
  CALL(moduleLoad, (void **out, const void *image), "cuModuleLoadData", "hipModuleLoadData")                           \
  CALL(moduleUnload, (void *module), "cuModuleUnload", "hipModuleUnload")                                              \
  CALL(moduleFunction, (void **out, void *module, const char *name), "cuModuleGetFunction", "hipModuleGetFunction")    \
  CALL(encodeMap,                                                                                                      \
       (void *map, int type, uint32_t rank, void *address, const uint64_t *extents, const uint64_t *strides,           \
        const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill),             \
       "?cuTensorMapEncodeTiled", "")                                                                                  \
  CALL(functionAttribute, (void *function, int which, int value), "cuFuncSetAttribute", "")                            \
  CALL(allocate, (void **out, size_t bytes), "cuMemAlloc_v2", "hipMalloc")                                             \
  CALL(release, (void *memory), "cuMemFree_v2", "hipFree")                                                             \
  CALL(pin, (void **out, size_t bytes, unsigned flags), "cuMemHostAlloc", "hipHostMalloc")                             \
  CALL(unpin, (void *memory), "cuMemFreeHost", "hipHostFree")                                                          \
  CALL(fill, (void *to, unsigned char value, size_t bytes, void *queue), "cuMemsetD8Async", "hipMemsetD8Async")        \
  CALL(copyIn, (void *to, const void *from, size_t bytes, void *queue), "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync")  \
  CALL(copyOut, (void *to, const void *from, size_t bytes, void *queue), "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync") \
  CALL(copyOn, (void *to, const void *from, size_t bytes, void *queue), "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync")  \
  CALL(streamCreate, (void **out, unsigned flags), "cuStreamCreate", "hipStreamCreateWithFlags")                       \
  CALL(streamDestroy, (void *stream), "cuStreamDestroy_v2", "hipStreamDestroy")                                        \
  CALL(streamSync, (void *stream), "cuStreamSynchronize", "hipStreamSynchronize")                                      \
  CALL(streamWait, (void *stream, void *event, unsigned flags), "cuStreamWaitEvent", "hipStreamWaitEvent")             \
  CALL(eventCreate, (void **out, unsigned flags), "cuEventCreate", "hipEventCreateWithFlags")                          \
  CALL(eventDestroy, (void *event), "cuEventDestroy_v2", "hipEventDestroy")                                            \
  CALL(eventRecord, (void *event, void *stream), "cuEventRecord", "hipEventRecord")                                    \
  CALL(eventQuery, (void *event), "cuEventQuery", "hipEventQuery")                                                     \
  CALL(eventSync, (void *event), "cuEventSynchronize", "hipEventSynchronize")                                          \
  CALL(hostFunction, (void *stream, void (*fn)(void *), void *arg), "cuLaunchHostFunc", "hipLaunchHostFunc")           \
  CALL(launch,                                                                                                         \
       (void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,              \
        unsigned blockZ, unsigned sharedBytes, void *stream, void **parameters, void **extra),                         \
       "cuLaunchKernel", "hipModuleLaunchKernel")

struct DriverCalls {
#define CALL(field, parameters, cuda, hip) int(*field) parameters;
  ASTRA_DRIVER_CALLS(CALL)
#undef CALL
};

/// One kind of driver.
struct DriverKind {
  const char *prefix;  ///< of device names: "cuda:"
  const char *maker;   ///< for sentences
  const char *library; ///< opened where the caller names none
  int least;           ///< the least version, as the driver counts
  const char *leastName;
  fmt::Arch arch;
  bool isCuda;
};
extern const DriverKind driverKinds[2];

/// Values that both drivers share.
enum : int {
  kDriverOk = 0,
  kDriverOutOfMemory = 2,
  kDriverStub = 34, // of CUDA: the library is there to link with, and does nothing
  kDriverNoDevice = 100,
  kDriverNotReady = 600,
};
/// Whether a context that gave this error can be used no more.
bool isLoss(int error);

/// Opens a library and fills the table. What is opened stays so: a driver has threads of its own.
Status openDriver(DriverCalls &out, const DriverKind &kind, const char *path, astra_diag *diag);

} // namespace astra::rt
