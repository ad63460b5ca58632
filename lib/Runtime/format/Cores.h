//===- Cores.h: which core a CPU has ----------------------------------------===//
// Takes:    who made the CPU, its family and model.
// Gives:    whether it has the cores of a row of MachineTable.def.
// Does not: ask the machine (Cpu.cpp of the runtime, HostCpu.cpp of the compiler).
#pragma once
#include <cstring>

namespace astra::fmt {

/// As Linux and CPUID, or the implementers of MIDR_EL1, tell them apart.
enum class Vendor { Unknown, AMD, INTEL, ARM = 0x41, APPLE = 0x61 };

/// Family and model of leaf 1, extended ones added; on AArch64 family 0 and the part number.
struct CpuModel {
  Vendor vendor = Vendor::Unknown;
  unsigned family = 0, model = 0;
};

inline bool isBetween(unsigned model, unsigned first, unsigned last) { return model - first <= last - first; }

/// What a feature's name begins with where it names a core.
inline constexpr char coreFeature[] = "core:";

/// 1 or 0; -1 where the table has no core of this name.
inline int isCore(const char *name, const CpuModel &cpu) {
  int known = -1;
#define CORE(row, title, arch, level, l1, l2, l3, source)                                                              \
  if (strcmp(name, row) == 0) known = 0;
#define MODELS(row, who, of, first, last)                                                                              \
  if (known == 0 && strcmp(name, row) == 0 && cpu.vendor == Vendor::who && cpu.family == of &&                         \
      isBetween(cpu.model, first, last))                                                                               \
    return 1;
#include "MachineTable.def"
  return known;
}

} // namespace astra::fmt
