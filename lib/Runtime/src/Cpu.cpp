//===- Cpu.cpp: CPU feature tables ----------------------------------------===//
// Takes:    CPUID and XGETBV, or the auxiliary vector and MIDR_EL1.
// Gives:    one row per feature; names are those of Linux's /proc/cpuinfo, with LLVM's spelling where it differs.
// Keeps:    a feature counts only if the OS saves its registers. It is asked to save those of AMX.
// Does not: cache (asked a few times per load).
#include "Cpu.h"
#include "format/Cores.h"

using namespace astra::rt;

static fmt::CpuModel cpuModel();

/// Of a name of a kind of core, as cpuHasFeature; -1 of another name.
static int hasCore(const char *name) {
  constexpr size_t n = sizeof fmt::coreFeature - 1;
  return strncmp(name, fmt::coreFeature, n) == 0 ? fmt::isCore(name + n, cpuModel()) : -1;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

enum Register : uint8_t { A, B, C, D };
/// Which registers the OS must save: bits of XCR0.
enum Saved : uint8_t { None = 0, Avx = 0x06, Avx512 = 0xe6 };
constexpr uint64_t amxState = 0x60000;

struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  uint64_t state;
};

constexpr Feature features[] = {
    {"sse", 1, 0, D, 25, None},
    {"sse2", 1, 0, D, 26, None},
    {"pni", 1, 0, C, 0, None},
    {"sse3", 1, 0, C, 0, None},
    {"ssse3", 1, 0, C, 9, None},
    {"sse4_1", 1, 0, C, 19, None},
    {"sse4.1", 1, 0, C, 19, None},
    {"sse4_2", 1, 0, C, 20, None},
    {"sse4.2", 1, 0, C, 20, None},
    {"cx16", 1, 0, C, 13, None},
    {"movbe", 1, 0, C, 22, None},
    {"popcnt", 1, 0, C, 23, None},
    {"fma", 1, 0, C, 12, Avx},
    {"avx", 1, 0, C, 28, Avx},
    {"f16c", 1, 0, C, 29, Avx},
    {"bmi1", 7, 0, B, 3, None},
    {"bmi", 7, 0, B, 3, None},
    {"bmi2", 7, 0, B, 8, None},
    {"avx2", 7, 0, B, 5, Avx},
    {"avx512f", 7, 0, B, 16, Avx512},
    {"avx512dq", 7, 0, B, 17, Avx512},
    {"avx512ifma", 7, 0, B, 21, Avx512},
    {"avx512cd", 7, 0, B, 28, Avx512},
    {"sha_ni", 7, 0, B, 29, None},
    {"sha", 7, 0, B, 29, None},
    {"avx512bw", 7, 0, B, 30, Avx512},
    {"avx512vl", 7, 0, B, 31, Avx512},
    {"avx512vbmi", 7, 0, C, 1, Avx512},
    {"avx512_vbmi2", 7, 0, C, 6, Avx512},
    {"avx512vbmi2", 7, 0, C, 6, Avx512},
    {"gfni", 7, 0, C, 8, None},
    {"vaes", 7, 0, C, 9, Avx},
    {"vpclmulqdq", 7, 0, C, 10, Avx},
    {"avx512_vnni", 7, 0, C, 11, Avx512},
    {"avx512vnni", 7, 0, C, 11, Avx512},
    {"avx512_bitalg", 7, 0, C, 12, Avx512},
    {"avx512_vpopcntdq", 7, 0, C, 14, Avx512},
    {"avx512_fp16", 7, 0, D, 23, Avx512},
    {"avx512fp16", 7, 0, D, 23, Avx512},
    {"amx_bf16", 7, 0, D, 22, amxState},
    {"amx_tile", 7, 0, D, 24, amxState},
    {"amx_int8", 7, 0, D, 25, amxState},
    {"avx_vnni", 7, 1, A, 4, Avx},
    {"avxvnni", 7, 1, A, 4, Avx},
    {"avx512_bf16", 7, 1, A, 5, Avx512},
    {"avx512bf16", 7, 1, A, 5, Avx512},
    {"abm", 0x80000001, 0, C, 5, None},
    {"lzcnt", 0x80000001, 0, C, 5, None},
};

uint64_t savedState() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return 0;
  uint32_t lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return lo | uint64_t(hi) << 32;
}

/// Tiles are 8 KiB that Linux saves for those alone that asked for it (ARCH_REQ_XCOMP_PERM). What has asked may again.
bool maySaveTiles() {
  constexpr long request = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, request, tileData) == 0;
}

} // namespace

int astra::rt::cpuHasFeature(const char *name) {
  for (const Feature &f : features) {
    if (strcmp(f.name, name) != 0) continue;
    unsigned regs[4];
    if (!__get_cpuid_count(f.leaf, f.subleaf, &regs[A], &regs[B], &regs[C], &regs[D])) return 0;
    if (!(regs[f.reg] >> f.bit & 1) || (savedState() & f.state) != f.state) return 0;
    return f.state != amxState || maySaveTiles();
  }
  return hasCore(name);
}

/// Of CPUID: leaf 0 says who made it, leaf 1 which.
static fmt::CpuModel cpuModel() {
  unsigned a, b, c, d;
  fmt::CpuModel cpu;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return cpu;
  constexpr unsigned ofAmd = 0x68747541, ofIntel = 0x756e6547; // "Auth", "Genu"
  cpu.vendor = b == ofAmd ? fmt::Vendor::AMD : b == ofIntel ? fmt::Vendor::INTEL : fmt::Vendor::Unknown;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return cpu;
  cpu.family = a >> 8 & 15, cpu.model = a >> 4 & 15;
  if (cpu.family == 6 || cpu.family == 15) cpu.model += a >> 12 & 0xf0;
  if (cpu.family == 15) cpu.family += a >> 20 & 0xff;
  return cpu;
}

#else
#include <sys/auxv.h>

namespace {

struct Feature {
  const char *name;
  unsigned long kind;
  uint8_t bit;
};

constexpr Feature features[] = {
    {"fp", AT_HWCAP, 0},       {"asimd", AT_HWCAP, 1},    {"neon", AT_HWCAP, 1},      {"aes", AT_HWCAP, 3},
    {"pmull", AT_HWCAP, 4},    {"sha1", AT_HWCAP, 5},     {"sha2", AT_HWCAP, 6},      {"crc32", AT_HWCAP, 7},
    {"atomics", AT_HWCAP, 8},  {"fphp", AT_HWCAP, 9},     {"asimdhp", AT_HWCAP, 10},  {"asimdrdm", AT_HWCAP, 12},
    {"jscvt", AT_HWCAP, 13},   {"fcma", AT_HWCAP, 14},    {"lrcpc", AT_HWCAP, 15},    {"sha3", AT_HWCAP, 17},
    {"asimddp", AT_HWCAP, 20}, {"sha512", AT_HWCAP, 21},  {"sve", AT_HWCAP, 22},      {"asimdfhm", AT_HWCAP, 23},
    {"sve2", AT_HWCAP2, 1},    {"svei8mm", AT_HWCAP2, 9}, {"svebf16", AT_HWCAP2, 12}, {"i8mm", AT_HWCAP2, 13},
    {"bf16", AT_HWCAP2, 14},
};

} // namespace

int astra::rt::cpuHasFeature(const char *name) {
  for (const Feature &f : features)
    if (strcmp(f.name, name) == 0) return getauxval(f.kind) >> f.bit & 1;
  return hasCore(name);
}

/// Of MIDR_EL1, which Linux lets programs read where it says so (HWCAP_CPUID): of the core that asks.
static fmt::CpuModel cpuModel() {
  constexpr unsigned readable = 1u << 11;
  if (!(getauxval(AT_HWCAP) & readable)) return {};
  uint64_t midr;
  __asm__("mrs %0, midr_el1" : "=r"(midr));
  return {fmt::Vendor(midr >> 24 & 0xff), 0, unsigned(midr >> 4 & 0xfff)};
}
#endif
