//===- Barriers.h: what threads share, and where they wait ------------------===//
// Takes:    a linear kernel whose values depend on digits of the thread's number.
// Gives:    for each value the bits of that number that it depends on; which stages are shared; the instructions before
//           which all threads wait, so that nobody reads an element before it is put, or puts one that is still read;
//           the loops that may load what their next turn puts while they use what this one did.
// Keeps:    no barrier inside of a loop that threads leave at different times (the emitter refuses such a loop).
// Does not: emit.
#pragma once
#include "astra/Codegen/GPU.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace astra::gpu {

class Threads {
public:
  /// Empty, or the sentence for what the machine cannot do. group: threads of an item; warp: lanes that go in step.
  std::string find(const GpuKernel &k, unsigned warp);
  /// Bits of the thread's number that a value depends on.
  uint32_t bitsOf(UOpRef x) const {
    auto it = open.find(x);
    return it == open.end() ? 0 : it->second.bits;
  }
  /// Whether the threads of an item have one array of this stage; else each has its own.
  bool isShared(UOpRef stage) const { return shared.contains(stage); }

private:
  struct Open {
    uint32_t bits = 0;
    llvm::SmallVector<UOpRef, 2> ranges;
  };
  llvm::DenseMap<UOpRef, Open> open;
  llvm::DenseSet<UOpRef> shared;
};

/// The bits of a thread's number that a thread range is.
uint32_t bitsOfRange(UOpRef range);

struct Barriers {
  llvm::DenseSet<size_t> before;  // instructions
  std::map<size_t, size_t> ahead; // LoopBegins, with the end of what fills the arrays of a turn
  llvm::DenseSet<UOpRef> fetched; // by those: values that nothing after that end uses
  std::vector<size_t> endOf;      // of a LoopBegin: its LoopEnd
  void find(const GpuKernel &k, const Threads &t);
  /// Whether threads wait inside of the loop that begins there.
  bool within(size_t loop) const;
};

} // namespace astra::gpu
