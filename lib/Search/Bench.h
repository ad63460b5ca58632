//===- Bench.h: kernels run and timed --------------------------------------===//
// Takes:    an image, a kernel's buffers at some extents.
// Gives:    whether two plans give the same result, and how long a launch takes.
// Keeps:    inputs a function of the kernel alone.
// Does not: catch a kernel that crashes: what the checks of plans let pass is right or an error of the compiler.
#pragma once
#include "astra/Codegen/EmitC.h"
#include "astra/Schedule/Program.h"
#include <memory>

namespace astra {

/// Kernel ABI 1.
using KernelFunction = void (*)(void *const *buffers, const int64_t *dims, void *scratch, int64_t first, int64_t last);

/// An image in executable memory.
class LoadedCode {
public:
  static llvm::Expected<LoadedCode> load(const Image &image);
  LoadedCode(LoadedCode &&o) : base(std::exchange(o.base, nullptr)), bytes(o.bytes) {}
  ~LoadedCode();
  KernelFunction at(uint64_t offset) const { return reinterpret_cast<KernelFunction>(base + offset); }

private:
  LoadedCode(uint8_t *base, size_t bytes) : base(base), bytes(bytes) {}
  uint8_t *base;
  size_t bytes;
};

/// One plan of a kernel, ready to run.
struct Runnable {
  KernelFunction function;
  int64_t items;    // of a launch
  uint64_t scratch; // bytes
};

/// The buffers of one kernel.
class Bench {
public:
  /// Null if the buffers are larger than `most` bytes together, or their sizes are not known at these values of the
  /// dims. `kernel` says what buffers there are, the same under every plan.
  static std::unique_ptr<Bench> make(const KernelSpec &spec, const Kernel &kernel, llvm::ArrayRef<UOpRef> dims,
                                     llvm::ArrayRef<int64_t> values, uint64_t most);

  /// Runs it over fresh buffers. The first time its result becomes the one that others must have, up to the payloads of
  /// NaNs, which is all that kernels promise. One that takes `patience` times as long as the first is not run to its
  /// end.
  enum class Verdict : uint8_t { Same, Different, Slow };
  Verdict tryOut(const Runnable &r, double patience);
  /// Seconds of a CPU that a launch takes. Of short ones several follow one another and share the time.
  double time(const Runnable &r);

private:
  struct Free {
    void operator()(void *p) const { free(p); }
  };
  struct Buffer {
    std::unique_ptr<uint8_t, Free> data;
    size_t bytes;
    DType dtype;
  };
  Bench() = default;
  static Buffer allocate(DType t, size_t bytes);
  void restore();
  double launch(const Runnable &r, unsigned calls);
  bool runWithin(const Runnable &r, double seconds);
  void prepare(const Runnable &r);

  std::vector<Buffer> buffers;
  Buffer scratch{nullptr, 0, DType::U8};
  std::vector<uint8_t> first; // of an in-place kernel: buffer 0 before it ran
  std::vector<uint8_t> expected;
  std::vector<int64_t> dims;
  std::vector<void *> places; // of the buffers
  size_t result = 0;          // number of the buffer
  double once = 0;            // seconds of a launch of the first
  unsigned calls = 1;
};

} // namespace astra
