//===- Machine.h: what differs between nvvm and rocdl ----------------------===//
// Gives:    the operations of a GPU that LLVM has no common name for.
// Does not: compute (Scalar.h). Each dialect's headers are read in one file (NVVM.cpp, ROCDL.cpp): they take seconds.
#pragma once
#include "Arith.h"
#include "astra/Codegen/GPU.h"
#include <memory>

namespace astra::gpu {

class Machine {
public:
  explicit Machine(Arith &a) : a(a) {}
  virtual ~Machine() = default;

  virtual void markKernel(mlir::LLVM::LLVMFuncOp f, unsigned threads) = 0;
  virtual V thread() = 0; // number in its block, i32
  virtual V block() = 0;  // number of the block, i32
  virtual void barrier() = 0;
  /// One step of a fold over `lanes` neighbouring lanes of a warp: the word (i32) of the lane whose number differs in
  /// bit `distance`. Lanes that differ in higher bits of those have been folded already, so they hold equal words.
  virtual V folded(V word, unsigned distance, unsigned lanes) = 0;

  /// An asynchronous copy of 4, 8 or 16 bytes from global to shared memory, both so aligned, into the thread's open
  /// group; of the bytes behind `taken` (i32; null: all) nothing is read, and zeros arrive. Of targets that have them.
  virtual void copyAsync(V, V, unsigned, V) { llvm_unreachable("a target without asynchronous copies"); }
  virtual void closeCopies() { llvm_unreachable("a target without asynchronous copies"); } // the group is complete
  /// Waits until of the thread's groups all but the last `left` have arrived.
  virtual void awaitCopies(unsigned) { llvm_unreachable("a target without asynchronous copies"); }

  virtual unsigned privateSpace() const = 0; // the address space of a thread's own memory
  virtual unsigned constantSpace() const = 0;
  static constexpr unsigned globalSpace = 1, sharedSpace = 3;

protected:
  Arith &a;
};

std::unique_ptr<Machine> nvvmMachine(Arith &a);
std::unique_ptr<Machine> rocdlMachine(Arith &a, unsigned warp);

} // namespace astra::gpu
