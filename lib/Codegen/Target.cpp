//===- Target.cpp: the CPU levels, one row each ----------------------------===//
#include "astra/Codegen/Target.h"

using namespace astra;

// Names of Linux's /proc/cpuinfo.
static const char *const v3Features[] = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"};
static const char *const v4Features[] = {"avx",   "avx2",    "bmi1",     "bmi2",     "f16c",     "fma",     "abm",
                                         "movbe", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
static const char *const vnniFeatures[] = {"avx",      "avx2",     "bmi1",     "bmi2",       "f16c",
                                           "fma",      "abm",      "movbe",    "avx512f",    "avx512bw",
                                           "avx512cd", "avx512dq", "avx512vl", "avx512_vnni"};
static const char *const bf16Features[] = {"avx",      "avx2",     "bmi1",     "bmi2",        "f16c",
                                           "fma",      "abm",      "movbe",    "avx512f",     "avx512bw",
                                           "avx512cd", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"};
static const char *const amxFeatures[] = {"avx",      "avx2",        "bmi1",        "bmi2",     "f16c",     "fma",
                                          "abm",      "movbe",       "avx512f",     "avx512bw", "avx512cd", "avx512dq",
                                          "avx512vl", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16"};
static const char *const armFeatures[] = {"fp", "asimd"};

static const char *const v3Flags[] = {"--target=x86_64-unknown-linux-gnu", "-march=x86-64-v3"};
static const char *const v4Flags[] = {"--target=x86_64-unknown-linux-gnu", "-march=x86-64-v4",
                                      "-mprefer-vector-width=512"};
static const char *const vnniFlags[] = {"--target=x86_64-unknown-linux-gnu", "-march=x86-64-v4", "-mavx512vnni",
                                        "-mprefer-vector-width=512"};
static const char *const bf16Flags[] = {"--target=x86_64-unknown-linux-gnu", "-march=x86-64-v4", "-mavx512vnni",
                                        "-mavx512bf16", "-mprefer-vector-width=512"};
static const char *const amxFlags[] = {
    "--target=x86_64-unknown-linux-gnu", "-march=x86-64-v4", "-mavx512vnni", "-mavx512bf16", "-mamx-tile", "-mamx-bf16",
    "-mprefer-vector-width=512"};
static const char *const armFlags[] = {"--target=aarch64-unknown-linux-gnu", "-march=armv8-a"};

static constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;
static const Target rows[] = {
    // name, arch, rank, vector bytes, registers, fma from memory, scales in one, slow division, masked bytes, L1, L2,
    // L3, cores, features, flags, on request
    {"cpu:x86-64-v3", Arch::X86_64, 3, 32, 16, false, false, false, 4, 32 * KiB, 512 * KiB, 8 * MiB, 16, v3Features,
     v3Flags},
    {"cpu:x86-64-v4", Arch::X86_64, 4, 64, 32, true, true, true, 1, 32 * KiB, 1024 * KiB, 24 * MiB, 16, v4Features,
     v4Flags},
    {"cpu:x86-64-v4+avx512vnni", Arch::X86_64, 5, 64, 32, true, true, true, 1, 32 * KiB, 1024 * KiB, 24 * MiB, 16,
     vnniFeatures, vnniFlags, true},
    {"cpu:x86-64-v4+avx512bf16", Arch::X86_64, 6, 64, 32, true, true, true, 1, 32 * KiB, 1024 * KiB, 24 * MiB, 16,
     bf16Features, bf16Flags, true},
    {"cpu:x86-64-v4+amxbf16", Arch::X86_64, 7, 64, 32, true, true, true, 1, 32 * KiB, 1024 * KiB, 24 * MiB, 16,
     amxFeatures, amxFlags, true, true},
    {"cpu:aarch64", Arch::AArch64, 1, 16, 32, false, false, false, 16, 64 * KiB, 512 * KiB, 8 * MiB, 16, armFeatures,
     armFlags},
};

llvm::ArrayRef<Target> astra::allTargets() { return rows; }

const Target *astra::targetNamed(llvm::StringRef name) {
  for (const Target &t : rows)
    if (name == t.name) return &t;
  return nullptr;
}
