//===- Target.h: what the planner and the emitters know of a machine -------===//
// Gives:    one row per target: names, vector width, registers, caches, features. A CPU level more is a row more
//           (Target.cpp).
// Does not: hold legalization or emission rows (C/).
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace astra {

// What plans take for granted of all CPUs: bytes of a cache line (of some of Apple's, half of one); the fewest ways of
// an L1, each of 4 KiB, so that lines a multiple of that apart meet in one set.
inline constexpr int64_t lineBytes = 64, cacheWays = 8;

enum class Arch : uint8_t { X86_64, AArch64 };

/// What executes the items of a kernel, as the planner sees it: a core of a CPU, or a thread of a GPU.
struct Executor {
  // Others run while it waits for memory; it has no tails, packs nothing and shares no cache that a plan is made for.
  bool isThread = false;
  unsigned vectorBytes;       // of the widest register that is fast
  unsigned vectorRegisters;   // architectural
  bool fmaFromMemory = false; // an fma can take a splat from memory without a register (x86 with EVEX)
  unsigned maskedBytes;       // elements of so many bytes or more are loaded and stored under a mask at once
  uint64_t l1Bytes, l2Bytes;  // of its own
  uint64_t l3Bytes;           // of the L3, what one bundle can hope for
  unsigned cores = 16;        // as many as a launch's items should keep at work, where it is large
  unsigned sums = 8;          // vectors of them that hide the latency of an fma: its cycles times fmas a cycle
  bool tiles = false;         // AMX: 16 rows of 16 sums are a register
};

/// Whether a store writes a whole line of the caches at once: only such go past them.
inline bool storesLines(const Executor &e) { return e.vectorBytes >= lineBytes; }

/// What kernels are compiled for, and the core that they are planned for.
struct Target : Executor {
  const char *name; // "cpu:x86-64-v3"
  Arch arch;
  unsigned rank;     // of several that a CPU can run, the highest is taken
  bool scalesInOne;  // x * 2^n of f32 is one instruction (Scale.h)
  bool slowDivision; // of a vector of f32: a product with the reciprocal, corrected, is faster (Helpers::quotient)
  llvm::ArrayRef<const char *> features; // names of Linux's /proc/cpuinfo that must be there
  llvm::ArrayRef<const char *> clangFlags;
  bool onRequest = false;        // compiled only where it is named
  const Target *level = nullptr; // of what is planned for a kind of core (tunedTarget)
};

/// The target of this name, or null. "LEVEL@CORE" is a level planned for one kind of core (tunedTarget).
const Target *targetNamed(llvm::StringRef name);
llvm::ArrayRef<Target> allTargets();

/// A kind of core, a row of MachineTable.def.
struct Core {
  const char *name, *title;
  Arch arch;
  const char *level; // the target of the highest rank that it runs
  uint64_t l1Bytes, l2Bytes, l3Bytes;
  const char *source; // of these sizes
};
llvm::ArrayRef<Core> allCores();
/// The row of this name, or null.
const Core *coreNamed(llvm::StringRef name);
/// The level with kernels planned for the sizes of a core's caches, which needs the feature `core:NAME`: the same bits,
/// taken before every other level where the CPU has such cores. Null where the core does not run the level. Lives as
/// long as the program.
const Target *tunedTarget(const Target &level, const Core &core);

} // namespace astra
