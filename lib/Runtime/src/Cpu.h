//===- Cpu.h: what this CPU has -------------------------------------------===//
// Takes:    names of CPU features as bundles list them.
// Gives:    whether the CPU and the OS have them; the floating point environment of kernels.
// Keeps:    numerics clause N8.
// Does not: choose a level (Loaded.cpp).
#pragma once

#include "Manifest.h"

namespace astra::rt {

inline constexpr fmt::Arch kHostArch =
#if defined(__x86_64__)
    fmt::Arch::X86_64;
#elif defined(__aarch64__)
    fmt::Arch::AArch64;
#else
#error "the CPU device knows x86-64 and AArch64"
#endif

/// 1 or 0; -1 for a name that is not known on this architecture.
int cpuHasFeature(const char *name);

/// Sets MXCSR to 0x1f80 (FPCR to 0) for its lifetime.
class FloatEnvironment {
public:
#if defined(__x86_64__)
  FloatEnvironment() : saved(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
  ~FloatEnvironment() { __builtin_ia32_ldmxcsr(saved); }

private:
  unsigned saved;
#else
  FloatEnvironment() {
    uint64_t zero = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(zero));
  }
  ~FloatEnvironment() { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }

private:
  uint64_t saved;
#endif
public:
  FloatEnvironment(const FloatEnvironment &) = delete;
};

} // namespace astra::rt
