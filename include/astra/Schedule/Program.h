//===- Program.h: what the scheduler gives ---------------------------------===//
// Gives:    kernels as small graphs over buffers, and for each entry the list of launches with a memory plan. Symbolic
//           throughout: sizes are index UOps over the dim vector. lib/Codegen lowers the kernels for each target,
//           lib/Bundle writes the programs.
// Does not: know targets. Weight layouts are chosen here, once for all targets.
#pragma once
#include "astra/IR/Contract.h"
#include "astra/IR/Module.h"
#include "astra/Schedule/Layout.h"
#include <optional>
#include <variant>

namespace astra {

/// Of memory, on all CPUs here: what a prefetcher stays in.
inline constexpr int64_t pageBytes = 4096;

/// A tensor in a buffer: which value, how it lies, its allocated shape (data dims at their bounds).
struct Placed {
  UOpRef value;
  Layout layout;
  std::vector<UOpRef> allocated;
  std::vector<UOpRef> begin = {}; // of its element 0 there: it is a part of what lies in the buffer; empty: all of it
};

struct Follower;

/// The integer sum of a block that a contract of f32 adds up, block by block, with a scale for each (Note [Sums of
/// blocks] in Fusion.cpp); null where it is something else. The contract's kernel computes it if it is no input.
UOpRef sumOfBlock(UOpRef contract);

/// One kernel: a closed graph that computes outputs[0].value from its inputs, which are `arg` nodes 0, 1, ... in order;
/// so equal kernels are equal nodes. Buffers of a launch: inputs first, then the output; when in place, the inputs
/// alone, and the output goes into the buffer of input 0.
struct KernelSpec {
  std::string name;
  std::vector<Placed> inputs, outputs;
  UOpRef rootOp = nullptr;              // the contract or reduce inside that decides the plan, or null
  std::optional<ContractSpec> contract; // what a rootOp that is one says
  int64_t vectorIndex = -1; // of a contract: the kept label along which the layouts let vector lanes run, or -1
  int64_t mostRows =
      0; // of a contract: this variant runs only when the row labels have at most so many points; 0: any number
  // Output 0 lies where input 0 does: an update_at that writes only the window, a scatter, or a value that reads each
  // element of input 0 only to write it.
  bool inPlace = false;
  // Kernels that come right behind this one, each of which reads the rows that the one before it writes, and nobody
  // else does. A CPU computes them all in this kernel's items, some rows at a time; a GPU launches them (decision
  // 0070). This kernel has the buffers of all of them: its outputs behind the first are theirs, in order, which it does
  // not write on a GPU.
  std::vector<Follower> followers;
  // Of a kernel that a user wrote: the dims of its grid, which its value mentions, and their extents. The value is a
  // `place`: what one program stores.
  std::vector<std::pair<UOpRef, UOpRef>> grid;
  bool follows = false;      // it is one of those: on a CPU it has no items
  std::vector<UOpRef> known; // of dims, wherever it is launched: none of these is negative (Known.cpp)

  /// Where a value lies among the inputs, or null: it is computed in the kernel.
  const Placed *input(UOpRef value) const {
    for (const Placed &in : inputs)
      if (in.value == value) return &in;
    return nullptr;
  }
  /// Whether a value is an input that lies in panels.
  bool isPacked(UOpRef value) const {
    const Placed *in = input(value);
    return in && !in->layout.isPermuted();
  }
};

struct Follower {
  KernelSpec spec;
  std::vector<uint32_t> buffers; // its arguments, as numbers of buffers of the kernel that it follows
};

enum class BufferKind : uint8_t { Input, Output, Param, State, Slot };
struct ProgramBuffer {
  BufferKind kind;
  uint32_t index; // input or output number, param or state index in the Schedule, slot number
  UOpRef bytes;   // allocated, over entry dims
};

struct LaunchInstr {
  struct Variant {
    UOpRef left = nullptr, right = nullptr; // taken when left <= right; null: always (the last one)
    uint32_t kernel;
  };
  std::vector<Variant> variants;
  std::vector<uint32_t> buffers;
  Origin origins = {}; // the user's nodes that it computes some of; `count` is at least so many
};
struct CopyInstr {
  uint32_t dst, src;
  UOpRef bytes;
};
struct SetDimInstr {
  UOpRef dim, value;
};
struct ReadDimInstr {
  UOpRef dim;
  uint32_t buffer;
};
struct WhileInstr {
  uint32_t cond, flag, body;
}; // program, buffer, program
struct LoopInstr {
  UOpRef counter, count;
  uint32_t body;
};
struct CondInstr {
  uint32_t flag, then, otherwise;
};
struct SwapInstr {
  uint32_t a, b;
};
/// A call of a function of the program; each tensor is all of a buffer from its begin on, row-major.
struct ExternalInstr {
  struct Tensor {
    uint32_t buffer;
    DType dtype;
    std::vector<UOpRef> shape; // over the dim vector
  };
  std::string function;
  bool deterministic, effects;
  std::vector<Tensor> operands, results;
  bool beside = false; // what follows does not wait until it has ended; such calls run one after another
};
/// Waits until so many at most of the calls that run beside have not ended.
struct WaitInstr {
  uint32_t left;
};
using Instr = std::variant<LaunchInstr, CopyInstr, SetDimInstr, ReadDimInstr, WhileInstr, LoopInstr, CondInstr,
                           SwapInstr, ExternalInstr, WaitInstr>;

struct Routine {
  std::vector<ProgramBuffer> buffers;
  std::vector<UOpRef> slots;                // bytes, over entry dims
  std::vector<std::vector<Instr>> programs; // 0 is where it begins
};

/// A parameter as it is stored: one place, one layout for all targets.
struct StoredParam {
  UOpRef param; // as kernels see it: a complex one is real, with the two parts of an element as a last axis
  Layout layout;
  int32_t prepare = -1;      // index into Schedule::prepares; -1: row-major as it is
  UOpRef declared = nullptr; // as the module has it
  Bytes data = {};           // row-major, of the declared type; empty pointer: set at run time
  bool fixed = false;        // computed while compiling (FoldParams.h): users neither see nor replace it
  int32_t derive = -1;       // index into Schedule::derives; -1: it depends on no parameter of the user's
};

/// A tensor of an entry that a routine reads or writes where the caller has it, at strides that are not negative.
struct StridedTensor {
  bool isOutput;
  uint32_t index; // of the entry's inputs or outputs
  UOpRef span;    // internal dims, which the runtime sets: see Layout
  std::vector<UOpRef> strides;
};
/// A second routine of an entry, for calls with strides.
struct StridedRoutine {
  std::vector<StridedTensor> tensors;
  Routine routine;
};

struct ScheduledEntry {
  const Entry *entry;
  Routine routine;
  std::vector<std::vector<UOpRef>> outputShapes; // over the dim vector: data dims as internal dims
  std::vector<std::vector<UOpRef>> outputBounds; // the same with internal dims at their bounds
  std::optional<StridedRoutine> strided = {};
};

/// An internal dim that is 0 unless a kernel's program fails a test: then 2 + p * n + s, of the first program p, in
/// row-major order of the grid, and the test s of the n that `says` has sentences of.
struct DimCheck {
  UOpRef dim;
  std::vector<std::string> says;
  std::vector<UOpRef> grid; // over the dim vector
};

struct Schedule {
  std::vector<UOpRef>
      dims; // the dim vector, `dim` nodes: the module's first, then internal ones (data dims, carried dims, counters)
  unsigned moduleDims = 0; // how many of them the module declares
  std::vector<KernelSpec> kernels;
  std::vector<StoredParam> params; // those that entries use
  std::vector<UOpRef> states;      // `state` nodes; a ProgramBuffer's index counts in these
  std::vector<Routine> prepares;   // input 0: the row-major parameter; output 0: its stored form
  std::vector<Routine> derives;    // no input; output 0: the stored form of what is computed from parameters
  std::vector<ScheduledEntry> entries;
  std::vector<DimCheck> checks;
};

/// What is computed from parameters alone while compiling: nothing; what makes a bundle little larger; all.
enum class FoldLevel : uint8_t { None, Small, All };
struct ScheduleOptions {
  FoldLevel fold = FoldLevel::Small;
  bool gpus = true; // some target launches one by one what a CPU computes as one kernel: rows between these need memory
  bool checks = false; // what kernels of users assume is tested when they run
  bool alongSum =
      false;            // some target multiplies words of a matrix unit by an instruction that reads them along the sum
  bool overlap = true;  // collectives run beside kernels
  bool strides = false; // entries get a routine for tensors at any strides too
};

/// Notes in each kernel what its launches have in common: the conditions of its variants, dims that were set and found
/// within their bounds, counters of loops, equations of the entry.
void noteKnown(Module &m, Schedule &s);

/// Plans kernels, memory and programs for every entry of a module whose graph is past the numerics stage. An error
/// names what cannot be scheduled.
llvm::Expected<Schedule> schedule(Module &m, const ScheduleOptions &options = {});

/// Rewrites, bit for bit, what kernels cannot say into what they can: large and multi-axis lane64 sums into chunks,
/// operands that are read outside into padded ones, sorting, scatter, compaction and argmax into folds, cumulative sums
/// into blocks of 16; complex values at the border into real ones with a last axis of 2, sub-byte ones into bytes.
/// `replaced` is told what each node has become, sources first.
std::vector<UOpRef> legalize(Context &c, llvm::ArrayRef<UOpRef> roots,
                             llvm::function_ref<void(UOpRef to, UOpRef from)> replaced = nullptr);

/// A listing, for --emit=schedule and tests.
std::string print(const Schedule &s);

} // namespace astra
