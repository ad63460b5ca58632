//===- Place.cpp: the memory that a collective works on ---------------------===//
// Takes:    addresses of the host, or of a GPU and what a call may do with it (astra_gpu_call).
// Gives:    copies, zeros, room, folds.
// Keeps:    on a GPU nothing is waited for. The kernels that fold there are the bundle's: its entries mesh_KIND_TYPE,
//           which map two vectors to one, as the compiler makes them for what the bundle's collectives fold.
#include "Ranks.h"
#include <stdio.h>

using namespace astra::ranks;

void Place::copy(void *to, const void *from, uint64_t bytes) {
  if (status || !bytes) return;
  if (gpu)
    status = gpu->copy(gpu, to, from, bytes, diag);
  else
    memcpy(to, from, bytes);
}

void Place::zero(void *to, uint64_t bytes) {
  if (status || !bytes) return;
  if (gpu)
    status = gpu->zero(gpu, to, bytes, diag);
  else
    memset(to, 0, bytes);
}

char *Place::room(uint64_t bytes, int64_t members, uint64_t value) {
  if (status) return nullptr;
  if (!gpu) {
    if (ranks->scratch.size() < bytes && !ranks->scratch.resize(bytes))
      status = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the parts of '%.200s'", ranks->own.what);
    return status ? nullptr : ranks->scratch.data();
  }
  void *at = nullptr;
  status = gpu->room(gpu, slot(bytes) + foldRoom(members, value), &at, diag);
  behind = static_cast<char *>(at) + slot(bytes), run = foldRun(value);
  return status ? nullptr : static_cast<char *>(at);
}

void Place::fold(void *out, const Part *parts, size_t numParts, int64_t lo, int64_t hi, uint64_t count, Kind kind,
                 int32_t dtype) {
  if (status) return;
  uint32_t bytes = astra_dtype_bits(dtype) / 8;
  if (gpu) {
    constexpr const char *kinds[] = {"sum", "prod", "max", "min"};
    char entry[40];
    snprintf(entry, sizeof(entry), "mesh_%s_%s", kinds[int(kind)], astra_dtype_name(dtype));
    status = foldOnGpu(gpu, entry, out, parts, numParts, lo, hi, count, bytes, behind, run, diag);
  } else if (!astra::ranks::fold(out, parts, numParts, lo, hi, count, bytes, combineOf(kind, dtype))) {
    status = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the parts of '%.200s'", ranks->own.what);
  }
}
