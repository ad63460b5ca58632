//===- TestBundle.h: bundles for the tests of the runtime -----------------===//
// Takes:    manifests filled by hand, kernels.c linked as flat images.
// Gives:    bytes of bundles.
// Keeps:    Format.h's rules, unless a test breaks them on purpose.
// Does not: use the compiler or its bundle writer: the runtime is tested against the format's text alone.
#pragma once

#include "format/Format.h"
#include "format/manifest_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace astra::test {

using Bytes = std::vector<uint8_t>;

/// A linked kernel image.
class Image {
public:
  explicit Image(const char *path);
  /// Offset of a kernel; aborts if there is none.
  uint64_t offset(const std::string &name) const;
  Bytes code;

private:
  std::vector<std::pair<std::string, uint64_t>> symbols;
};

/// Fills a manifest step by step. Indices are returned where others need them.
struct ManifestMaker {
  ManifestMaker();
  fmt::ManifestT m;
  Image x86, aarch64;
  Bytes weights;

  using Code = std::vector<fmt::ExprOp>;
  uint32_t expr(Code code);
  uint32_t number(int64_t n) { return expr({{fmt::ExprCode::Const, n}}); }
  uint32_t dimValue(uint32_t d, int64_t factor = 1) {
    return expr({{fmt::ExprCode::Dim, d}, {fmt::ExprCode::Const, factor}, {fmt::ExprCode::Mul, 0}});
  }
  uint32_t dim(const char *name, fmt::DimSource source, int64_t lo, int64_t hi);
  /// A kernel of kernels.c; `items` and `scratch` are exprs.
  uint32_t kernel(const char *name, std::vector<fmt::Access> access, uint32_t items, uint32_t scratch);
  uint32_t param(const char *name, std::vector<int64_t> shape, const std::vector<float> &stored, const char *layout);
  uint32_t state(const char *name, std::vector<uint32_t> shape, const std::vector<float> *init);
  void asset(const char *name, const std::vector<float> &values);
  fmt::EntryT &entry(const char *name);

  Bytes manifest();
};

/// Places of the parts of a routine.
uint32_t addBuffer(fmt::RoutineT &r, fmt::BufferKind kind, uint32_t index, uint32_t bytes, uint64_t offset = 0);
uint32_t addProgram(fmt::RoutineT &r);
template <typename T> void addInstr(fmt::RoutineT &r, uint32_t program, T instr) {
  fmt::InstrUnion u;
  u.Set(std::move(instr));
  r.programs[program]->code.push_back(std::move(u));
}
void addLaunch(fmt::RoutineT &r, uint32_t program, uint32_t kernel, std::vector<uint32_t> buffers);
void addTensor(std::vector<std::unique_ptr<fmt::TensorT>> &list, const char *name, std::vector<uint32_t> shape,
               std::vector<uint32_t> bound = {}, fmt::DType dtype = fmt::DType::F32);

struct RawSection {
  fmt::SectionKind kind;
  Bytes bytes;
};
/// Lays sections out and hashes them. A Signature section is made by `sign`, given the header, when it is not null.
Bytes assemble(const std::vector<RawSection> &sections, uint64_t features = 0,
               Bytes (*sign)(const fmt::Header &) = nullptr);
/// Header and section hashes made right again after a test changed bytes.
void rehash(Bytes &bundle);
/// The same after the manifest alone has changed.
void rehashManifest(uint8_t *bundle);
Bytes assemble(ManifestMaker &maker, uint64_t features = 0);

/// The bundle that most tests use; its entries are listed in TestBundle.cpp.
ManifestMaker standardManifest();

/// The same with targets cuda:sm_90, of bytes that no driver saw, and emu:cuda:sm_90, whose host build is the CPU's
/// image: the emulator of a test calls its kernels as a CPU does. The sections of assembleGpu go with it.
ManifestMaker gpuManifest();
Bytes assembleGpu(ManifestMaker &maker);

/// The standard bundle with code for cuda:sm_90 and hip:gfx942 and its host builds: CPU kernels that the stand-in
/// driver calls for all items at once (StandIn.h, isDirect). What `change` does to the manifest is in the file.
Bytes deviceBundle(void (*change)(fmt::ManifestT &) = nullptr);
/// The hash of its PTX.
Bytes textHash();

} // namespace astra::test
