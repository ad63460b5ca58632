//===- Program.h: what the scheduler gives ---------------------------------===//
// Gives:    kernels as small graphs over buffers, and for each entry the list of launches with a memory plan. Symbolic
// throughout: sizes are index UOps over the
//           dim vector. lib/Codegen lowers the kernels for each target, lib/Bundle writes the programs.
// Does not: know targets. Weight layouts are chosen here, once for all targets.
#pragma once
#include "astra/IR/Module.h"
#include "astra/Schedule/Layout.h"
#include <variant>

namespace astra {

/// A tensor in a buffer: which value, how it lies, its allocated shape (data dims at their bounds).
struct Placed {
  UOpRef value;
  Layout layout;
  std::vector<UOpRef> allocated;
};

/// One kernel: computes outputs[i].value from the inputs' values. Buffers of a launch: inputs first, then outputs.
struct KernelSpec {
  std::string name;
  std::vector<Placed> inputs, outputs;
  UOpRef heavy = nullptr; // the contract or reduce that decides the plan, or null
  bool inPlace = false;   // the output is written into the buffer of inputs[0] (a window of it for update_at)
  std::string origin;     // user's nodes, for traces
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
using Instr =
    std::variant<LaunchInstr, CopyInstr, SetDimInstr, ReadDimInstr, WhileInstr, LoopInstr, CondInstr, SwapInstr>;

struct Routine {
  std::vector<ProgramBuffer> buffers;
  std::vector<UOpRef> slots;                // bytes, over entry dims
  std::vector<std::vector<Instr>> programs; // 0 is where it begins
};

/// A parameter as it is stored: its own bytes, in one layout for all targets.
struct StoredParam {
  UOpRef param;
  Layout layout;
  int32_t prepare = -1; // index into Schedule::prepares; -1: row-major as it is
};

struct ScheduledEntry {
  const Entry *entry;
  Routine routine;
  std::vector<UOpRef> dims; // dims it uses: bound by shapes or by the host
};

struct Schedule {
  std::vector<UOpRef>
      dims; // the dim vector: module dims first, then internal ones (data dims, carried dims, counters) as `dim` nodes
  std::vector<UOpRef> dimBounds; // same length: an index over other dims that bounds an internal dim, or null
  unsigned moduleDims = 0;       // how many of them the module declares
  std::vector<KernelSpec> kernels;
  std::vector<StoredParam> params; // those that entries use
  std::vector<Routine> prepares;
  std::vector<ScheduledEntry> entries;
  std::vector<std::vector<UOpRef>>
      outputShapes; // per entry and output, concatenated: shapes over the dim vector (data dims as internal dims)
};

} // namespace astra
