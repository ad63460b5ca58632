//===- Format.h: the bytes of a bundle file -------------------------------===//
// Takes:    nothing; these are the fixed-size records that a bundle begins with.
// Gives:    header, section table and their constants, for the writer, the tools and the runtime.
// Keeps:    little-endian, no padding, no pointer; the runtime and its tests include only the C library beside it.
// Does not: describe the manifest (manifest.fbs), read or write files.
//
// A bundle is:
//
//     0                Header (64 bytes)
//     64               Section[header.sectionCount] (64 bytes each)
//     ...              the sections, in the order of the table, zero bytes between them
//     header.fileBytes end
//
// Section 0 is the manifest, and there is no other. Code and Weights begin at multiples of kMapAlign, so that each can
// be mapped alone; the others at multiples of kAlign. Sections do not overlap. The bytes between them are zero and the
// file ends where the last section ends.
//
// What vouches for what: header.digest = SHA-256(header bytes 0 .. 31, then the whole section table); each section
// record holds the SHA-256 of its section. Signature, when there is one, is the last section: 32 bytes public key, 64
// bytes ed25519 signature of the 64 header bytes; its record's sha256 is zero, since the header must not depend on it.
// So one signature covers every byte. Opening checks the manifest; a device checks the code that it loads;
// ASTRA_VERIFY_ALL checks every section at opening.
#pragma once

#include <cstdint>

namespace astra::fmt {

inline constexpr unsigned char kMagic[8] = {0x89, 'A', 'S', 'T', 'R', 'A', '\r', '\n'};

/// A reader refuses another major, and a minor newer than its own.
inline constexpr uint16_t kMajor = 1;
inline constexpr uint16_t kMinor = 0;

/// Required-feature bits this format knows. A reader refuses a file with a bit that it does not know.
enum Feature : uint64_t {
  kFeatureDataDims = 1u << 0,    ///< some entry has Internal dims in an output's shape
  kFeatureControl = 1u << 1,     ///< some program has While, Loop or Cond
  kFeaturePrepare = 1u << 2,     ///< some param has a prepare routine
  kFeatureHeldWeights = 1u << 3, ///< some param has no place: the user must set it
  kFeatureDerive = 1u << 4,      ///< some param has a derive routine
  kFeatureGpu = 1u << 5,         ///< some target is a GPU, or a host build of a GPU's kernels
  kFeatureExternal = 1u << 6,    ///< some program calls a function of the host
  kFeatureRings = 1u << 7,       ///< some kernel of a GPU has more than kMostStaticShared, or asynchronous copies
  kFeatureTensorMaps = 1u << 8,  ///< some kernel of a GPU takes tensor maps
  kFeatureBeside = 1u << 9,      ///< some program waits for functions of the host that run beside it
};
inline constexpr uint64_t kKnownFeatures = 1023;

inline constexpr uint64_t kAlign = 64;
inline constexpr uint64_t kMapAlign = 65536;
/// "There is none", in every index field of the manifest that may be absent.
inline constexpr uint32_t kNone = 0xffffffffu;

// Limits that the reader enforces.
inline constexpr uint32_t kMaxSections = 4096;
inline constexpr uint32_t kMaxExprStack = 64;
inline constexpr uint32_t kMaxProgramDepth = 16;
inline constexpr uint32_t kMaxVariants = 4;
inline constexpr uint32_t kMaxRank = 16;
inline constexpr uint32_t kMaxDims = 65536;
inline constexpr uint32_t kMaxTargets = 256;
inline constexpr uint32_t kMaxKernelBuffers = 256;
inline constexpr uint32_t kMaxKernelMaps = 4;
inline constexpr uint32_t kMaxBoxLines = 256;   ///< of a tensor map, which the driver allows
inline constexpr uint32_t kMaxGrid = 8;         ///< axes of a kernel's grid
inline constexpr uint32_t kMaxOrigins = 8;      ///< of a launch
inline constexpr uint32_t kMaxHostTensors = 64; ///< of a call of a function of the host
inline constexpr uint32_t kMaxBlockThreads = 1024;
inline constexpr uint64_t kMaxBlockShared = 1u << 20;
/// Shared memory that code for NVIDIA states itself; of a block that has more the driver is told, at load and launch.
inline constexpr uint64_t kMostStaticShared = 48u << 10;
// Kernel ABIs (manifest.fbs, KernelCode): of a CPU, of a GPU, of the host build of a GPU's kernel.
inline constexpr uint32_t kCpuKernelAbi = 1;
inline constexpr uint32_t kGpuKernelAbi = 2;
inline constexpr uint32_t kHostBuildAbi = 3;

enum class SectionKind : uint32_t {
  Manifest = 1,   ///< a FlatBuffer, identifier "ASTM" (manifest.fbs)
  Code = 2,       ///< a flat image: position-independent, no relocation, no import, no writable data
  Weights = 3,    ///< stored bytes of params and initial states, each at a multiple of kAlign; at most one such section
  Signature = 4,  ///< 32 + 64 bytes, see above; always the last
  DeviceCode = 5, ///< a cubin or HSACO, as the driver of a GPU takes it
  DeviceText = 6, ///< PTX
};

struct Header {
  unsigned char magic[8];
  uint16_t major;
  uint16_t minor;
  uint32_t sectionCount;
  uint64_t features; ///< Feature bits
  uint64_t fileBytes;
  unsigned char digest[32];
};
static_assert(sizeof(Header) == 64);

struct Section {
  uint32_t kind;     ///< SectionKind; an unknown kind is refused
  uint32_t reserved; ///< 0
  uint64_t offset;   ///< from the beginning of the file
  uint64_t bytes;
  uint64_t reserved2; ///< 0
  unsigned char sha256[32];
};
static_assert(sizeof(Section) == 64);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the records are little-endian");

} // namespace astra::fmt
