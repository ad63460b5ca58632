//===- Emulator.cpp: launches, thread by thread ----------------------------===//
// Takes:    a module of kernels and what a launch is given.
// Gives:    a shared object of the host, loaded; launches.
// Keeps:    one block after the other, in an order that the seed gives; in a block each warp runs until a barrier, its
//           lanes together from exchange to exchange.
#include "astra/Emulator/Emulator.h"
#include "Memory.h"
#include "Retarget.h"
#include "astra/Codegen/Machinery.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <dlfcn.h>
#include <numeric>

using namespace astra;
using namespace astra::emulator;

namespace {
using HostKernel = void *(*)(Thread *, void **);
using Resume = void (*)(void *);

/// A sequence of numbers from a seed, the same on every machine.
struct Random {
  uint64_t state;
  uint32_t operator()() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return uint32_t(state >> 33);
  }
  void shuffle(std::vector<uint32_t> &xs) {
    for (size_t i = xs.size(); i > 1; --i) std::swap(xs[i - 1], xs[(*this)() % i]);
  }
};
} // namespace

struct Emulator::Parts {
  const GpuTarget *target;
  std::vector<GpuLaunch> kernels;
  std::vector<HostKernel> functions;
  uint64_t shared = 0;
  void *library = nullptr;
  ~Parts() {
    if (library) dlclose(library);
  }
};

Emulator::Emulator(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}
Emulator::Emulator(Emulator &&) = default;
Emulator::~Emulator() = default;

/// The level of the host that the code is built for: it has a fused multiply-add.
static llvm::StringRef hostCpu() {
  return llvm::Triple(llvm::sys::getProcessTriple()).isX86() ? "x86-64-v3" : "generic";
}

llvm::Expected<Emulator> Emulator::build(const GpuModule &g) {
  llvm::LLVMContext context;
  auto m = gpu::readBitcode(g.bitcode, context);
  if (!m) return m.takeError();
  auto machine = gpu::backEnd(llvm::sys::getProcessTriple(), hostCpu(), "");
  if (!machine) return machine.takeError();
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

  llvm::SmallString<128> folder;
  if (auto ec = llvm::sys::fs::createUniqueDirectory("astra-emulator", folder))
    return llvm::createStringError("cannot make a temporary folder: " + ec.message());
  std::string in = (folder + "/kernels.o").str(), library = (folder + "/kernels.so").str();
  {
    std::error_code ec;
    llvm::raw_fd_ostream(in, ec) << *object;
  }
  auto parts = std::make_unique<Parts>();
  auto lld = llvm::sys::findProgramByName("ld.lld-22");
  if (lld && !llvm::sys::ExecuteAndWait(*lld, {*lld, "-shared", in, "-o", library}))
    parts->library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  llvm::sys::fs::remove_directories(folder);
  if (!lld) return llvm::createStringError("ld.lld-22 was not found: install the packages of LLVM 22");
  if (!parts->library) return llvm::createStringError("the host form cannot be linked or loaded");
  parts->target = g.target;
  parts->kernels = g.kernels;
  parts->shared = *shared;
  for (const GpuLaunch &k : g.kernels)
    parts->functions.push_back(reinterpret_cast<HostKernel>(dlsym(parts->library, k.name.c_str())));
  return Emulator(std::move(parts));
}

namespace {

/// A block of threads, used for one block of the grid after the other.
class Block {
public:
  Block(Launch &launch, HostKernel kernel, void **arguments, unsigned threads, unsigned warp)
      : launch(launch), kernel(kernel), arguments(arguments), warp(warp), threads(threads), memory(threads),
        handles(threads) {}

  /// Runs all threads; false after a fault.
  bool run(uint32_t number, Random &random) {
    launch.beginBlock();
    for (uint32_t t = 0; t < threads.size(); ++t) {
      threads[t] = {};
      threads[t].number = t, threads[t].block = number;
      launch.attach(threads[t]);
      threads[t].allocate = [](Thread *x, uint64_t bytes) {
        return static_cast<Block *>(static_cast<Launch *>(x->self)->block)->allocate(x->number, bytes);
      };
      threads[t].received = [](Thread *x) {
        auto &all = static_cast<Block *>(static_cast<Launch *>(x->self)->block)->threads;
        return x->from < all.size() ? all[x->from].word[x->parity] : 0;
      };
      handles[t] = nullptr;
    }
    launch.block = this;
    std::vector<uint32_t> warps(threads.size() / warp);
    std::iota(warps.begin(), warps.end(), 0);
    for (bool first = true;; first = false) {
      random.shuffle(warps);
      for (uint32_t w : warps)
        if (!runWarp(w * warp, first, random)) return false;
      Thread &some = threads[0];
      for (Thread &t : threads)
        if (!together(t, some)) return launch.fault(t, "waits where other threads do not");
      if (some.wait == Wait::None) return true;
      launch.passBarrier();
    }
  }

private:
  /// Whether both have ended, or wait at the same place.
  static bool together(const Thread &a, const Thread &b) {
    return a.wait == b.wait && (a.wait == Wait::None || a.site == b.site);
  }
  /// All lanes of a warp until a barrier or the end.
  bool runWarp(uint32_t begin, bool first, Random &random) {
    std::vector<uint32_t> lanes(warp);
    std::iota(lanes.begin(), lanes.end(), begin);
    while (true) {
      random.shuffle(lanes);
      for (uint32_t t : lanes) {
        if (first)
          handles[t] = kernel(&threads[t], arguments);
        else
          (*static_cast<Resume *>(handles[t]))(handles[t]);
        if (launch.failed()) return false;
      }
      first = false;
      Thread &some = threads[begin];
      for (uint32_t t : lanes)
        if (!together(threads[t], some)) return launch.fault(threads[t], "waits where other lanes of its warp do not");
      if (some.wait != Wait::Exchange) return true;
      for (uint32_t t : lanes)
        if (threads[t].from / warp != t / warp) return launch.fault(threads[t], "reads a lane of another warp");
    }
  }
  void *allocate(uint32_t thread, uint64_t bytes) {
    memory[thread].resize((bytes + 15) / 16);
    return memory[thread].data();
  }

  struct alignas(16) Sixteen {
    uint8_t bytes[16];
  };
  Launch &launch;
  HostKernel kernel;
  void **arguments;
  unsigned warp;
  std::vector<Thread> threads;
  std::vector<std::vector<Sixteen>> memory;
  std::vector<void *> handles;
};

} // namespace

llvm::Error Emulator::launch(size_t kernel, llvm::ArrayRef<EmulatedBuffer> buffers, llvm::ArrayRef<int64_t> dims,
                             int64_t items, EmulatedRun &run) const {
  const GpuLaunch &k = parts->kernels[kernel];
  uint64_t perBlock = k.threads / k.group, blocks = (uint64_t(items) + perBlock - 1) / perBlock;
  Launch launch(k.name, buffers, parts->shared);
  std::vector<void *> pointers, arguments;
  std::vector<int64_t> numbers;
  for (const EmulatedBuffer &b : buffers) pointers.push_back(launch.placeOf(b));
  for (uint32_t d : k.dims) numbers.push_back(dims[d]);
  for (void *&p : pointers) arguments.push_back(&p);
  for (int64_t &n : numbers) arguments.push_back(&n);
  Random random{run.seed};
  std::vector<uint32_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  Block block(launch, parts->functions[kernel], arguments.data(), k.threads, parts->target->warp);
  for (uint32_t b : order) {
    run.threads += k.threads;
    if (!block.run(b, random)) return launch.takeError();
  }
  return llvm::Error::success();
}
