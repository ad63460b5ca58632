//===- Linear.h: a kernel in order -----------------------------------------===//
// Takes:    an expanded kernel (no vector or unroll ranges).
// Gives:    a list of instructions with loops: each value is defined in the outermost loop that has all it depends on,
// folds that close the same range share one
//           loop, stages fill their arrays in loops of their own before their first use.
// Keeps:    the order is a function of the graph's structure alone.
#pragma once
#include "astra/Codegen/Kernel.h"
#include "llvm/Support/Error.h"

namespace astra {

enum class InstKind : uint8_t {
  Define,    // uop's value (index arithmetic, loads, elementwise, vector ops)
  LoopBegin, // uop: the range
  LoopEnd,   // uop: the range
  AccInit,   // uop: the fold; its accumulator takes its initial value
  AccUpdate, // uop: the fold; acc = combine(acc, value)
  StagePut,  // uop: the stage; its array at its ranges takes the value
  Write,     // uop: the store
};
struct Inst {
  InstKind kind;
  UOpRef uop;
};
struct StageArray {
  UOpRef stage;
  uint64_t offset;              // bytes into the worker's scratch memory, a multiple of 64
  std::vector<int64_t> extents; // at their bounds
};
struct Linear {
  std::vector<Inst> insts;
  std::vector<StageArray> stages;
  uint64_t scratchBytes = 0; // per worker
};

llvm::Expected<Linear> linearize(Context &c, const Kernel &k);
/// A listing, for --emit=plan and tests.
std::string print(const Linear &l);

} // namespace astra
