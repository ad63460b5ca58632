//===- HostCpu.cpp: which targets this machine runs ------------------------===//
// Takes:    a target; the first list of features in Linux's /proc/cpuinfo, whose names a target's are.
// Gives:    whether all are there. Where there is no such file, nothing runs.
#include "astra/Search/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <fstream>

using namespace astra;

#if defined(__x86_64__)
static constexpr Arch hostArch = Arch::X86_64;
static constexpr llvm::StringLiteral list = "flags";
#else
static constexpr Arch hostArch = Arch::AArch64;
static constexpr llvm::StringLiteral list = "Features";
#endif

static llvm::StringSet<> hostFeatures() {
  llvm::StringSet<> out;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; out.empty() && std::getline(file, line);) {
    auto [name, words] = llvm::StringRef(line).split(':');
    if (name.trim() == list)
      for (llvm::StringRef word : llvm::split(words.trim(), ' ')) out.insert(word);
  }
  return out;
}

bool astra::hostRuns(const Target &target) {
  if (target.arch != hostArch) return false;
  llvm::StringSet<> here = hostFeatures();
  return llvm::all_of(target.features, [&](const char *feature) { return here.contains(feature); });
}

const Target *astra::nativeTarget() {
  const Target *best = nullptr;
  for (const Target &t : allTargets())
    if (hostRuns(t) && (!best || t.rank > best->rank)) best = &t;
  return best;
}
