//===- RunMetal.cpp: Metal's text compiled and executed on the host ---------===//
#include "RunMetal.h"
#include "astra/Toolchain/TemporaryFolder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <algorithm>
#include <dlfcn.h>
#include <random>
#include <ucontext.h>

using namespace astra;
using namespace astra::test;

namespace {

constexpr unsigned simdThreads = 32;
constexpr size_t stackBytes = 64 * 1024, around = 64; // bytes beside a buffer that must not change
constexpr uint8_t untouched = 0xA5;

enum class State : uint8_t { Ready, Barrier, Exchange, Done };

/// The threads of one block.
class Block {
public:
  explicit Block(unsigned most) : stacks(most * stackBytes), fibers(most) {}

  std::string run(void (*call)(void **, uint32_t, uint32_t), void **arguments, unsigned threads, uint32_t number,
                  std::mt19937_64 &random) {
    kernel = call, all = arguments, block = number, count = threads;
    std::vector<unsigned> order(threads);
    for (unsigned t = 0; t < threads; ++t) {
      order[t] = t;
      Fiber &f = fibers[t];
      f.state = State::Ready;
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = stacks.data() + t * stackBytes;
      f.context.uc_stack.ss_size = stackBytes;
      f.context.uc_link = &scheduler;
      makecontext(&f.context, reinterpret_cast<void (*)()>(begin), 0);
    }
    current = this;
    while (true) {
      std::shuffle(order.begin(), order.end(), random);
      for (unsigned t : order)
        if (fibers[t].state == State::Ready) {
          at = t;
          swapcontext(&scheduler, &fibers[t].context);
        }
      if (std::string wrong = release(); !wrong.empty() || finished()) return wrong;
    }
  }

  static void barrier() { current->wait(State::Barrier); }
  static uint32_t exchange(uint32_t word, uint32_t bits) {
    Fiber &f = current->fibers[current->at];
    f.word = word, f.bits = bits;
    current->wait(State::Exchange);
    return current->fibers[current->at].received;
  }

private:
  struct Fiber {
    ucontext_t context;
    State state;
    uint32_t word, bits, received;
  };

  static void begin() {
    Block &b = *current;
    b.kernel(b.all, b.at, b.block);
    b.fibers[b.at].state = State::Done; // uc_link leads back to the scheduler
  }
  void wait(State why) {
    Fiber &f = fibers[at];
    f.state = why;
    swapcontext(&f.context, &scheduler);
  }
  unsigned inState(State s, unsigned from, unsigned to) const {
    unsigned n = 0;
    for (unsigned t = from; t < to; ++t) n += fibers[t].state == s;
    return n;
  }
  bool finished() const { return inState(State::Done, 0, count) == count; }

  /// Lets go on those that have what they wait for; a sentence where nobody has.
  std::string release() {
    bool any = finished();
    for (unsigned first = 0; first < count; first += simdThreads) {
      unsigned last = std::min(first + simdThreads, count);
      if (!inState(State::Exchange, first, last)) continue;
      for (unsigned t = first; t < last; ++t) {
        Fiber &f = fibers[t];
        if (f.state != State::Exchange) continue;
        unsigned other = t ^ f.bits;
        if (other < first || other >= last || fibers[other].state != State::Exchange || fibers[other].bits != f.bits)
          return "thread " + std::to_string(t) + " exchanges with one that does not take part";
        f.received = fibers[other].word;
      }
      for (unsigned t = first; t < last; ++t)
        if (fibers[t].state == State::Exchange) fibers[t].state = State::Ready, any = true;
    }
    if (any) return "";
    if (inState(State::Barrier, 0, count) != count) return "a barrier is not reached by all threads of its block";
    for (unsigned t = 0; t < count; ++t) fibers[t].state = State::Ready;
    return "";
  }

  static Block *current;
  std::vector<char> stacks;
  std::vector<Fiber> fibers;
  ucontext_t scheduler;
  void (*kernel)(void **, uint32_t, uint32_t) = nullptr;
  void **all = nullptr;
  uint32_t block = 0;
  unsigned count = 0, at = 0;
};
Block *Block::current = nullptr;

struct Host {
  void (*barrier)();
  uint32_t (*exchange)(uint32_t, uint32_t);
};

/// A buffer with bytes around it, at an address as a GPU's are.
class Copy {
public:
  explicit Copy(llvm::ArrayRef<uint8_t> bytes) : size(bytes.size()), memory(size + 2 * around + 16, untouched) {
    auto at = reinterpret_cast<uintptr_t>(memory.data()) + around;
    place = memory.data() + around + (16 - at % 16) % 16;
    std::copy(bytes.begin(), bytes.end(), place);
  }
  bool intact() const {
    auto same = [](uint8_t b) { return b == untouched; };
    return std::all_of(memory.data(), static_cast<const uint8_t *>(place), same) &&
           std::all_of(static_cast<const uint8_t *>(place) + size, memory.data() + memory.size(), same);
  }
  uint8_t *place;
  size_t size;

private:
  std::vector<uint8_t> memory;
};

} // namespace

void MetalLibrary::Close::operator()(void *h) const { dlclose(h); }
MetalLibrary::~MetalLibrary() = default;

llvm::Expected<MetalLibrary> MetalLibrary::build(const MetalText &text) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.takeError();
  std::string calls = "#include \"call.h\"\nextern \"C\" {\n#include \"kernels.metal\"\n}\n";
  for (const GpuLaunch &k : text.kernels) calls += "CALL(" + k.name + ")\n";
  if (auto e = folder->write("kernels.metal", text.source)) return e;
  if (auto e = folder->write("call.cpp", calls)) return e;
  std::string library = folder->at("kernels.so"), log = folder->at("log"), source = folder->at("call.cpp");
  // -Wno-unknown-attributes: places of arguments; -Wno-unknown-pragmas: those of Metal, whose meaning the flags have.
  llvm::StringRef args[] = {ASTRA_CLANGXX,
                            "-std=c++14",
                            "-O1",
                            "-w",
                            "-Werror=implicit-function-declaration",
                            "-ffp-contract=off",
                            "-fno-fast-math",
                            "-fsigned-char",
                            "-fvisibility=hidden",
                            "-march=x86-64-v3",
                            "-fPIC",
                            "-shared",
                            "-I" ASTRA_METAL_SHIM,
                            source,
                            "-o",
                            library};
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(log), llvm::StringRef(log)};
  if (llvm::sys::ExecuteAndWait(ASTRA_CLANGXX, args, std::nullopt, redirects)) {
    auto output = llvm::MemoryBuffer::getFile(log);
    return llvm::createStringError("clang refuses the text:\n" + (output ? (*output)->getBuffer().str() : ""));
  }
  MetalLibrary out;
  out.handle.reset(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!out.handle) return llvm::createStringError(dlerror());
  auto *host = static_cast<Host *>(dlsym(out.handle.get(), "metalHost"));
  if (!host) return llvm::createStringError("the text has no metalHost");
  *host = {Block::barrier, Block::exchange};
  for (const GpuLaunch &k : text.kernels) {
    llvm::StringRef body = llvm::StringRef(text.source).split(("kernel void " + k.name + "(").c_str()).second;
    body = body.split("\n}\n").first;
    Entry e{nullptr, k, body.contains("threadgroup_barrier(") || body.contains("exchange_")};
    e.call = reinterpret_cast<decltype(e.call)>(dlsym(out.handle.get(), ("call_" + k.name).c_str()));
    if (!e.call) return llvm::createStringError("the text has no kernel '%s'", k.name.c_str());
    out.entries.push_back(std::move(e));
  }
  return out;
}

llvm::Error MetalLibrary::launch(size_t kernel, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> buffers,
                                 llvm::ArrayRef<int64_t> dims, int64_t items, uint64_t seed) {
  const Entry &e = entries[kernel];
  std::vector<Copy> copies;
  copies.reserve(buffers.size());
  std::vector<void *> arguments;
  for (auto b : buffers) {
    copies.emplace_back(b);
    arguments.push_back(copies.back().place);
  }
  std::vector<int64_t> values(dims);
  arguments.push_back(values.data());
  std::mt19937_64 random(seed);
  int64_t perBlock = e.launch.threads / e.launch.group, blocks = (items + perBlock - 1) / perBlock;
  std::vector<uint32_t> order(blocks);
  for (int64_t i = 0; i < blocks; ++i) order[i] = uint32_t(i);
  std::shuffle(order.begin(), order.end(), random);
  static Block block(1024);
  std::string wrong;
  for (uint32_t b : order) {
    threads += e.launch.threads;
    if (e.waits)
      wrong = block.run(e.call, arguments.data(), e.launch.threads, b, random);
    else
      for (uint32_t t = 0; t < e.launch.threads; ++t) e.call(arguments.data(), t, b);
    if (!wrong.empty()) return llvm::createStringError("kernel '%s': %s", e.launch.name.c_str(), wrong.c_str());
  }
  for (auto [i, c] : llvm::enumerate(copies)) {
    if (!c.intact())
      return llvm::createStringError("kernel '%s' writes beside buffer %zu", e.launch.name.c_str(), size_t(i));
    std::copy(c.place, c.place + c.size, buffers[i].begin());
  }
  return llvm::Error::success();
}
