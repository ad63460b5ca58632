//===- RunMetal.h: Metal's text compiled and executed on the host -----------===//
// Takes:    a text of kernels in the Metal Shading Language, and what launches must know.
// Gives:    the text compiled by clang's C++ front end against shim/metal_stdlib; launches of its kernels, thread after
//           thread. A thread is a fiber that rests where it waits: for all of its block at a barrier, for its SIMD
//           group at an exchange. Blocks and threads go in an order that the seed decides.
// Does not: model caches, or flush subnormal numbers; it says nothing of Apple's compiler or of a GPU.
#pragma once
#include "astra/Codegen/GPU.h"
#include <memory>

namespace astra::test {

class MetalLibrary {
public:
  static llvm::Expected<MetalLibrary> build(const MetalText &text);
  MetalLibrary(MetalLibrary &&) = default;
  ~MetalLibrary();

  /// Fails with a sentence where threads wait for one another in vain, or bytes around a buffer change.
  llvm::Error launch(size_t kernel, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> buffers,
                     llvm::ArrayRef<int64_t> dims, int64_t items, uint64_t seed);
  uint64_t threads = 0; // executed

private:
  struct Entry {
    void (*call)(void **, uint32_t, uint32_t);
    GpuLaunch launch;
    bool waits; // its text has a barrier or an exchange
  };
  MetalLibrary() = default;
  struct Close {
    void operator()(void *handle) const;
  };
  std::unique_ptr<void, Close> handle;
  std::vector<Entry> entries;
};

} // namespace astra::test
