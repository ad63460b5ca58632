//===- Target.cpp: the CPU levels, one row each ----------------------------===//
// Takes:    MachineTable.def: what fmas take, caches of levels that are planned for a kind of core.
// Gives:    targets.
#include "astra/Codegen/Target.h"
#include "format/Cores.h"
#include "llvm/ADT/STLExtras.h"
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

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

/// What hides the latency of an fma, of a row of MachineTable.def.
static constexpr unsigned sumsOf(std::string_view row) {
  struct Fma {
    std::string_view name;
    double aCycle, latency;
  };
  constexpr Fma rows[] = {
#define SPEEDS(name, ranks, fma, loads, stores, latency, issue, masked, l2, l3, memory, source) {name, fma, latency},
#include "format/MachineTable.def"
  };
  for (const Fma &r : rows)
    if (r.name == row) return unsigned(r.aCycle * r.latency);
  return 0;
}

static constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;
static constexpr Executor v3Core{.vectorBytes = 32,
                                 .vectorRegisters = 16,
                                 .maskedBytes = 4,
                                 .l1Bytes = 32 * KiB,
                                 .l2Bytes = 512 * KiB,
                                 .l3Bytes = 8 * MiB,
                                 .sums = sumsOf("cpu:x86-64-v3")},
    v4Core{.vectorBytes = 64,
           .vectorRegisters = 32,
           .fmaFromMemory = true,
           .maskedBytes = 1,
           .l1Bytes = 32 * KiB,
           .l2Bytes = 1024 * KiB,
           .l3Bytes = 24 * MiB,
           .sums = sumsOf("cpu:x86-64-v4")},
    amxCore{.vectorBytes = 64,
            .vectorRegisters = 32,
            .fmaFromMemory = true,
            .maskedBytes = 1,
            .l1Bytes = 32 * KiB,
            .l2Bytes = 1024 * KiB,
            .l3Bytes = 24 * MiB,
            .sums = sumsOf("cpu:x86-64-v4"),
            .tiles = true},
    armCore{.vectorBytes = 16,
            .vectorRegisters = 32,
            .maskedBytes = 16,
            .l1Bytes = 64 * KiB,
            .l2Bytes = 512 * KiB,
            .l3Bytes = 8 * MiB,
            .sums = sumsOf("cpu:aarch64")};
static const Target rows[] = {
    // core, name, arch, rank, scales in one, slow division, features, flags, on request
    {v3Core, "cpu:x86-64-v3", Arch::X86_64, 3, false, false, v3Features, v3Flags},
    {v4Core, "cpu:x86-64-v4", Arch::X86_64, 4, true, true, v4Features, v4Flags},
    {v4Core, "cpu:x86-64-v4+avx512vnni", Arch::X86_64, 5, true, true, vnniFeatures, vnniFlags, true},
    {v4Core, "cpu:x86-64-v4+avx512bf16", Arch::X86_64, 6, true, true, bf16Features, bf16Flags, true},
    {amxCore, "cpu:x86-64-v4+amxbf16", Arch::X86_64, 7, true, true, amxFeatures, amxFlags, true},
    {armCore, "cpu:aarch64", Arch::AArch64, 1, false, false, armFeatures, armFlags},
};

llvm::ArrayRef<Target> astra::allTargets() { return rows; }

static const Target *levelNamed(llvm::StringRef name) {
  auto at = llvm::find_if(rows, [&](const Target &t) { return name == t.name; });
  return at == std::end(rows) ? nullptr : at;
}

static const Core cores[] = {
#define CORE(name, title, arch, level, l1, l2, l3, source)                                                             \
  {name, title, Arch::arch, level, l1 * KiB, l2 * KiB, l3 * KiB, source},
#include "format/MachineTable.def"
};

llvm::ArrayRef<Core> astra::allCores() { return cores; }

const Core *astra::coreNamed(llvm::StringRef name) {
  auto at = llvm::find_if(cores, [&](const Core &c) { return name == c.name; });
  return at == std::end(cores) ? nullptr : at;
}

namespace {
/// A target that was made, and what it points to.
struct Tuned {
  std::string name, feature;
  std::vector<const char *> features;
  Target target;
};
} // namespace

const Target *astra::tunedTarget(const Target &level, const Core &core) {
  constexpr unsigned ahead = 100; // of every rank of a level; ranks are this times the level's, and the core's row
  const Target *most = levelNamed(core.level);
  if (level.arch != core.arch || level.rank > most->rank || !levelNamed(level.name)) return nullptr;
  static std::mutex busy;
  static std::vector<std::unique_ptr<Tuned>> made;
  std::lock_guard lock(busy);
  std::string name = std::string(level.name) + "@" + core.name;
  for (const auto &t : made)
    if (t->name == name) return &t->target;
  auto t = std::make_unique<Tuned>(Tuned{name, std::string(fmt::coreFeature) + core.name, level.features, level});
  t->features.push_back(t->feature.c_str());
  t->target.name = t->name.c_str();
  t->target.features = t->features;
  t->target.rank = (level.rank + 1) * ahead + unsigned(&core - cores);
  t->target.l1Bytes = core.l1Bytes, t->target.l2Bytes = core.l2Bytes, t->target.l3Bytes = core.l3Bytes;
  if (unsigned sums = sumsOf(core.name); sums && level.vectorBytes == most->vectorBytes) t->target.sums = sums;
  t->target.onRequest = true, t->target.level = levelNamed(level.name);
  return &made.emplace_back(std::move(t))->target;
}

const Target *astra::targetNamed(llvm::StringRef name) {
  auto [level, core] = name.split('@');
  const Target *t = levelNamed(level);
  if (!t || !name.contains('@')) return t;
  const Core *c = coreNamed(core);
  return c ? tunedTarget(*t, *c) : nullptr;
}
