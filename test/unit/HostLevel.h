//===- HostLevel.h: which CPU levels this machine runs ---------------------===//
#pragma once
#include "astra/Codegen/Target.h"

namespace astra::test {

/// Whether this machine itself runs code for the target; emulators are not asked.
inline bool hostRuns([[maybe_unused]] const Target &t) {
#ifdef __x86_64__
  if (t.arch != Arch::X86_64) return false;
  if (llvm::StringRef(t.name).ends_with("vnni") && !__builtin_cpu_supports("avx512vnni")) return false;
  if (llvm::StringRef(t.name).ends_with("bf16") && !__builtin_cpu_supports("avx512bf16")) return false;
  if (t.tiles) return false; // a program asks for its state first (lib/Runtime/src/Cpu.cpp)
  return llvm::StringRef(t.name).contains("v4") ? __builtin_cpu_supports("x86-64-v4")
                                                : __builtin_cpu_supports("x86-64-v3");
#else
  return false;
#endif
}

} // namespace astra::test
