//===- GpuTarget.cpp: the GPUs, one row each -------------------------------===//
#include "astra/Codegen/GPU.h"

using namespace astra;

static constexpr uint64_t KiB = 1024;
static const GpuTarget rows[] = {
    // name, flavour, chip, features, warp, threads, shared memory
    {"cuda:sm_80", GpuFlavour::CUDA, "sm_80", "+ptx80", 32, 1024, 48 * KiB},
    {"cuda:sm_90", GpuFlavour::CUDA, "sm_90", "+ptx80", 32, 1024, 48 * KiB},
    {"cuda:sm_100", GpuFlavour::CUDA, "sm_100", "+ptx86", 32, 1024, 48 * KiB},
    {"hip:gfx90a", GpuFlavour::HIP, "gfx90a", "", 64, 1024, 64 * KiB},
    {"hip:gfx942", GpuFlavour::HIP, "gfx942", "", 64, 1024, 64 * KiB},
    {"hip:gfx1100", GpuFlavour::HIP, "gfx1100", "", 32, 1024, 64 * KiB},
};

llvm::ArrayRef<GpuTarget> astra::allGpuTargets() { return rows; }

const GpuTarget *astra::gpuTargetNamed(llvm::StringRef name) {
  for (const GpuTarget &t : rows)
    if (name == t.name) return &t;
  return nullptr;
}
