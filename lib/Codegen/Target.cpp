//===- Target.cpp: the CPU levels, one row each ----------------------------===//
// Takes:    MachineTable.def for levels that are planned for a kind of core.
// Gives:    targets.
#include "astra/Codegen/Target.h"
#include "format/Cores.h"
#include "llvm/ADT/STLExtras.h"
#include <memory>
#include <mutex>
#include <string>
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
  constexpr unsigned ahead = 100; // of every other rank
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
  t->target.rank += ahead;
  t->target.l1Bytes = core.l1Bytes, t->target.l2Bytes = core.l2Bytes, t->target.l3Bytes = core.l3Bytes;
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
