//===- HostBuild.cpp: a GPU's module as an image of the host ---------------===//
// Takes:    a module of kernels.
// Gives:    a flat image, as the kernels of CPUs have it (EmitC.h); the same mapped, with its launches.
// Keeps:    all arithmetic as it was lowered: LLVM's pipeline for a CPU that has a fused multiply-add, fusing nothing.
#include "astra/Emulator/HostBuild.h"
#include "Retarget.h"
#include "astra/Codegen/Machinery.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <sys/mman.h>

using namespace astra;
using namespace astra::emulator;

llvm::Expected<HostBuild> astra::buildHost(const GpuModule &g, const Target &cpu, bool quickly) {
  llvm::LLVMContext context;
  auto m = gpu::readBitcode(g.bitcode, context);
  if (!m) return m.takeError();
  bool x86 = cpu.arch == Arch::X86_64;
  auto machine = gpu::backEnd(x86 ? "x86_64-unknown-linux-gnu" : "aarch64-unknown-linux-gnu",
                              x86 ? llvm::StringRef(cpu.name).split(':').second : "generic", "");
  if (!machine) return machine.takeError();
  if (quickly) (*machine)->setOptLevel(llvm::CodeGenOptLevel::None);
  (*m)->setTargetTriple((*machine)->getTargetTriple());
  (*m)->setDataLayout((*machine)->createDataLayout());
  auto shared = retarget(**m);
  if (!shared) return shared.takeError();
  std::string why;
  llvm::raw_string_ostream reason(why);
  if (llvm::verifyModule(**m, &reason)) return llvm::createStringError("the host form is wrong: " + why);
  gpu::optimize(**m, **machine, llvm::OptimizationLevel::O1);
  auto object = gpu::emit(**m, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!object) return object.takeError();
  std::vector<std::string> names;
  for (const GpuLaunch &k : g.kernels) names.push_back(k.name);
  auto image = linkImage(*object, names, cpu);
  if (!image) return image.takeError();
  HostBuild out{std::move(*image), {}};
  for (const std::string &name : names) out.shared.push_back(shared->lookup(name));
  return out;
}

struct Emulator::Parts {
  std::vector<GpuLaunch> launches;
  std::vector<EmulatedKernel> kernels;
  void *code = MAP_FAILED;
  size_t bytes = 0;
  ~Parts() {
    if (code != MAP_FAILED) munmap(code, bytes);
  }
};

Emulator::Emulator(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}
Emulator::Emulator(Emulator &&) = default;
Emulator::~Emulator() = default;

llvm::Expected<Emulator> Emulator::build(const GpuModule &g) {
  bool x86 = llvm::Triple(llvm::sys::getProcessTriple()).isX86();
  auto host = buildHost(g, *targetNamed(x86 ? "cpu:x86-64-v3" : "cpu:aarch64"), /*quickly=*/true);
  if (!host) return host.takeError();
  auto parts = std::make_unique<Parts>();
  parts->bytes = std::max<size_t>(host->image.bytes.size(), 1);
  parts->code = mmap(nullptr, parts->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (parts->code == MAP_FAILED) return llvm::createStringError("no memory for the host form");
  llvm::copy(host->image.bytes, static_cast<uint8_t *>(parts->code));
  if (mprotect(parts->code, parts->bytes, PROT_READ | PROT_EXEC))
    return llvm::createStringError("the system refuses executable memory");
  parts->launches = g.kernels;
  for (auto [i, k] : llvm::enumerate(g.kernels))
    parts->kernels.push_back({k.name, static_cast<const uint8_t *>(parts->code) + host->image.offsets[i], k.threads,
                              k.group, g.target->warp, host->shared[i]});
  return Emulator(std::move(parts));
}

llvm::Error Emulator::launch(size_t kernel, llvm::ArrayRef<EmulatedBuffer> buffers, llvm::ArrayRef<int64_t> dims,
                             int64_t items, EmulatedRun &run) const {
  std::vector<int64_t> numbers;
  for (uint32_t d : parts->launches[kernel].dims) numbers.push_back(dims[d]);
  std::vector<EmulatedMap> maps;
  for (const GpuMap &m : parts->launches[kernel].maps)
    maps.push_back({m.buffer, m.box, m.words, buffers[m.buffer].bytes.size() / (4 * m.words)});
  std::string wrong = emulate(parts->kernels[kernel], buffers, numbers, items, run, maps);
  return wrong.empty() ? llvm::Error::success() : llvm::createStringError(wrong);
}
