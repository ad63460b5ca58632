//===- Linear.h: a kernel in order -----------------------------------------===//
// Takes:    an expanded kernel (no vector or unroll ranges, a lanefold only of a thread range).
// Gives:    a list of instructions with loops: each value is defined in the outermost loop that has all it depends on,
//           folds and stages that close the same range share one loop, stages fill their arrays before their first use.
// Keeps:    the order is a function of the graph's structure alone; time is linear in the number of nodes (times the
//           depth of the loops); no recursion. Assumes no CPU.
// Does not: define literals, buffers, dims and ranges, which have no place.
//
// A value that is hoisted out of a loop which may run zero times is computed although nobody asked for it. Loads and
// reads of stages among them are marked speculative: an emitter must not touch memory outside the buffer or the array
// for them (the value is then never used). Index division must not trap on a divisor of 0 for the same reason.
//
// Arrays of stages are row-major over the extents of their ranges at their bounds, or as their strides say. A stage of
// vectors of L lanes writes L neighbouring elements at each point: the last extent counts elements (it is L times the
// last range's), and the last index of its `at` is an element's.
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
  StageFill, // uop: the stage of a spilling fold; its array at its ranges takes the initial value
  AccResume, // uop: the stage of a spilling fold; the fold's accumulator takes the array's element at the stage's
             // ranges
  Write,     // uop: the store
  Call,      // uop: the range of the items, tiles of rows; `ahead`: which region of the kernel (EmitC.h)
  Prefetch,  // uop: a load; its element, or the one `ahead` elements behind it, is wanted soon. Need not exist
};
struct Inst {
  InstKind kind;
  UOpRef uop;
  bool speculative = false; // Define of a load or at: see above
  int64_t ahead = 0;        // Prefetch, Call
};
struct StageArray {
  UOpRef stage;
  uint64_t offset;              // bytes into the worker's scratch memory, a multiple of 64
  std::vector<int64_t> extents; // at their bounds, the last in elements
  std::vector<int64_t> strides; // in elements
  int64_t elements;
};
struct Linear {
  std::vector<Inst> insts;
  std::vector<StageArray> stages;
  uint64_t scratchBytes = 0; // per worker
};

/// Whether the bounds of a speculative read's index leave open that it lies within `count` elements: emitters test it.
inline bool needsTest(UOpRef index, int64_t lanes, int64_t count) {
  return !(index->lo >= 0 && index->hi + lanes <= count);
}
inline bool needsTest(UOpRef index, int64_t lanes, UOpRef count) { return needsTest(index, lanes, count->lo); }

/// The fold whose accumulators rest in a stage's array: it is the stage's value and has ranges of kind around. Or null.
UOpRef spillingFold(UOpRef stage);

/// Refuses (with a sentence) what is not expanded, ranges used outside their loop, and arrays of more than 2^40 bytes.
llvm::Expected<Linear> linearize(Context &c, const Kernel &k);
/// A listing, for --emit=plan and tests.
std::string print(const Linear &l);

} // namespace astra
