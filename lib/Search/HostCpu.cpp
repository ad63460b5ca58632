//===- HostCpu.cpp: which targets this machine runs ------------------------===//
// Takes:    a target; of /proc/cpuinfo the first CPU's features, whose names a target's are, and its model.
// Gives:    whether all are there. Where there is no such file, nothing runs.
#include "astra/Search/Search.h"
#include "format/Cores.h"
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

namespace {
/// What /proc/cpuinfo says of its first CPU.
struct Host {
  llvm::StringSet<> features;
  fmt::CpuModel cpu;
};
} // namespace

static Host readHost() {
  Host out;
  std::ifstream file("/proc/cpuinfo");
  auto number = [](llvm::StringRef text, unsigned &into) { (void)text.getAsInteger(0, into); };
  for (std::string line; std::getline(file, line) && !line.empty();) {
    auto [name, value] = llvm::StringRef(line).split(':');
    name = name.trim(), value = value.trim();
    if (name == list)
      for (llvm::StringRef word : llvm::split(value, ' ')) out.features.insert(word);
    else if (name == "vendor_id")
      out.cpu.vendor = value == "AuthenticAMD"   ? fmt::Vendor::AMD
                       : value == "GenuineIntel" ? fmt::Vendor::INTEL
                                                 : fmt::Vendor::Unknown;
    else if (name == "cpu family")
      number(value, out.cpu.family);
    else if (name == "model" || name == "CPU part")
      number(value, out.cpu.model);
    else if (name == "CPU implementer") {
      unsigned who = 0;
      number(value, who);
      out.cpu.vendor = fmt::Vendor(who);
    }
  }
  return out;
}

bool astra::hostRuns(const Target &target) {
  if (target.arch != hostArch) return false;
  Host here = readHost();
  return llvm::all_of(target.features, [&](const char *feature) {
    llvm::StringRef core = feature;
    return core.consume_front(fmt::coreFeature) ? fmt::isCore(core.data(), here.cpu) == 1
                                                : here.features.contains(feature);
  });
}

const Target *astra::nativeTarget() {
  const Target *best = nullptr;
  for (const Target &t : allTargets())
    if (hostRuns(t) && (!best || t.rank > best->rank)) best = &t;
  return best;
}

const Core *astra::nativeCore() {
  Host here = readHost();
  auto at = llvm::find_if(allCores(),
                          [&](const Core &c) { return c.arch == hostArch && fmt::isCore(c.name, here.cpu) == 1; });
  return at == allCores().end() ? nullptr : at;
}
