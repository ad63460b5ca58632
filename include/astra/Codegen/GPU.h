//===- GPU.h: kernels as code of GPUs --------------------------------------===//
// Gives:    the table of GPU targets; plans for them; linear kernels as an MLIR module of the `llvm` dialect with
//           operations of `nvvm` or `rocdl`, as LLVM IR, as PTX and cubin, as AMDGPU assembly and HSACO; as Metal's
//           source.
// Keeps:    bits: no fast-math flag, no fusion that the UOps do not ask for (N2); text and code are functions of the
//           kernels, the target and the toolchain.
// Does not: run anything (astra/Emulator, and the runtime's devices).
//
// A kernel's arguments are its buffers in the order of their slots, then the dims that it reads, as i64, then its
// tensor maps, 128 bytes each. Buffers begin at multiples of 16 bytes. A block has `threads` threads; each `group` of
// them works on one item, so that a launch of n items takes ceil(n / (threads / group)) blocks.
#pragma once
#include "astra/Codegen/Accesses.h"
#include "astra/Codegen/Linear.h"
#include "astra/Codegen/Plan.h"
#include "astra/IR/MatrixUnits.h"
#include "llvm/ADT/DenseMap.h"
#include <array>

namespace astra {

enum class GpuFlavour : uint8_t { CUDA, HIP, Metal };

struct GpuTarget {
  const char *name; // "cuda:sm_90"
  GpuFlavour flavour;
  const char *chip, *features; // as LLVM's back end calls them
  unsigned warp;               // threads that go in step
  unsigned threads;            // most in a block
  uint64_t sharedBytes;        // most that a block has without asking the driver
  // Of a unit on which blocks run: parts that have their own registers, warps that a part holds, registers of a lane in
  // it, by how many they are given out; shared memory, and what each block takes of it beside its own.
  unsigned parts, partWarps, laneRegisters, registersAtOnce;
  uint64_t unitShared, blockShared;
  bool copiesAsync = false; // from global memory to shared memory, without registers
  bool warpGroups = false;  // four warps multiply together, operands come by boxes of a tensor map
};
/// Threads of a warp group.
inline constexpr unsigned groupThreads = 128;
/// The most shared memory that a block of it can have: of NVIDIA's more than the code states by itself.
uint64_t mostShared(const GpuTarget &target);
/// Of the warps that a unit holds, how many of a hundred it has when it is full of blocks that take so much.
unsigned gpuOccupancy(const GpuTarget &target, unsigned threads, unsigned registers, uint64_t shared);
/// An instruction by which a warp does a step of a matrix unit for a tile. Each thread gives words of a row and of a
/// column, and has some of the sums.
struct UnitInstruction {
  const char *unit, *input, *chip;
  const char *intrinsic; // of LLVM
  enum Form {
    Mma, // 16 rows, 8 columns. Thread t gives of the rows t / 4 and t / 4 + 8, and of the column t / 4, the word t % 4
         // and each fourth one from it on; it has of both rows the columns t % 4 * 2 and the next one.
    Mfma // 32 rows, 32 columns. Thread t gives of the row and of the column t % 32 the word t / 32 * 2 and the next
         // one, of four; it has of that column the rows 8 q + t / 32 * 4 + p, p and q each of 0 to 3.
  } form;
  unsigned rows() const { return form == Mma ? 2 : 16; } // of a thread
  unsigned lanes() const { return form == Mma ? 2 : 1; } // neighbouring columns of a thread
  unsigned wide() const { return form == Mma ? 4 : 32; } // threads beside each other
};
/// The target's instruction for a step, or null.
const UnitInstruction *unitInstruction(const GpuTarget &target, const UnitStep &step);
/// Whether the target's instructions for matrix units read both operands along the sum: where they are stored so, lines
/// of words come to shared memory as they are.
bool multipliesLines(const GpuTarget &target);
/// The type of both operands in the instruction by which a warp group does a step for 64 rows and many columns, or "".
llvm::StringRef warpGroupType(const GpuTarget &target, const UnitStep &step);
/// The target of this name, or null.
const GpuTarget *gpuTargetNamed(llvm::StringRef name);
llvm::ArrayRef<GpuTarget> allGpuTargets();
/// "metal": plans and text for Apple's GPUs. No bundle has code of it and it is not among the targets above.
const GpuTarget &metalTarget();

/// A linear kernel and how it is bound to threads.
struct GpuKernel {
  std::string name;
  const Kernel *kernel;
  Linear linear;
  unsigned threads, group;
  unsigned pipeline = 1;   // 2: loops that fill shared arrays load what the next turn puts there
  AccessCount proved = {}; // that it stays in its buffers
  unsigned stages = 0;     // of the ring in which those arrays lie, which asynchronous copies fill; 0: no ring
  bool spillSums = false;  // what a loop around loops adds up lies in shared memory, not in registers
  unsigned unrollK = 0;    // steps of a sum of shared operands that are a turn of their loop; 0: as LLVM likes
  unsigned perBlock = 1;   // of a tile that warp groups make: so many tiles are a block's, one after another
  // Shared arrays whose lines of so many words a matrix unit reads by ldmatrix: their parts of 16 bytes change places.
  llvm::DenseMap<UOpRef, unsigned> lines = llvm::DenseMap<UOpRef, unsigned>();
  // Of one that computes its followers too, a tile of rows in each item (decision 0070): what is done with a tile, by
  // all threads of a block one step after another; the dim that only the steps know, the number of the tile; how many
  // tiles there are; and the bytes of shared memory in which rows pass from one step to the next.
  std::vector<GpuKernel> steps = {};
  UOpRef tile = nullptr, tiles = nullptr;
  uint64_t rowBytes = 0;
  std::vector<std::shared_ptr<const Kernel>> ofSteps = {};
  /// Of a step, for each of its buffers: which of the kernel's it is, or where in the rows' memory it begins.
  struct Argument {
    bool local;
    uint64_t number;
  };
  std::vector<Argument> arguments = {};
};
/// The items of a kernel.
UOpRef itemsOf(Context &c, const GpuKernel &k);

/// All of a buffer as lines of words of 32 bits, of which boxes come to shared memory: what the driver encodes as a
/// tensor map. A box is 32 words of so many lines, its 16-byte parts in the order of the 128-byte swizzle.
struct GpuMap {
  uint32_t buffer;
  uint64_t words; // of a line
  uint32_t box;   // lines
};

/// What a launch must know.
struct GpuLaunch {
  std::string name;
  unsigned threads, group;
  std::vector<uint32_t> dims;            // numbers in the dim vector, in the order of the arguments
  uint64_t shared = 0, privateBytes = 0; // of a block, of a thread
  std::vector<GpuMap> maps = {};         // arguments behind the dims
};

struct GpuModule {
  const GpuTarget *target;
  std::vector<GpuLaunch> kernels; // in the order given
  std::string mlir;               // its text, if asked for
  std::string bitcode;            // LLVM IR as MLIR's translation gives it, before any optimization
};

/// Refuses with a sentence what has no GPU form yet, naming the kernel and the op. dims: the module's dim vector.
llvm::Expected<GpuModule> lowerGpu(Context &c, llvm::ArrayRef<GpuKernel> kernels, const GpuTarget &target,
                                   llvm::ArrayRef<UOpRef> dims, bool withText = false);

/// Kernels in the Metal Shading Language.
struct MetalText {
  std::vector<GpuLaunch> kernels; // in the order given
  std::string source;
};
/// Refuses with a sentence what has no form in Metal: f64, what a launch cannot have. dims: the module's dim vector.
llvm::Expected<MetalText> emitMetal(Context &c, llvm::ArrayRef<GpuKernel> kernels, llvm::ArrayRef<UOpRef> dims);

/// The heuristic choice for this kernel on this target.
Plan chooseGpuPlan(Context &c, const KernelSpec &spec, const GpuTarget &target);
/// Refuses a plan from outside that this kernel cannot have on this target, as checkPlan does (Plan.h).
llvm::Error checkGpuPlan(const KernelSpec &spec, const Plan &plan, const GpuTarget &target);
/// A kernel under a plan, lowered, expanded and in order. It lives in `storage`.
llvm::Expected<GpuKernel> gpuKernel(Context &c, const KernelSpec &spec, const Plan &plan, Kernel &storage);
/// Every kernel of a schedule planned (or under the plan given), lowered, expanded and in order. The kernels live in
/// `storage`.
llvm::Expected<std::vector<GpuKernel>> gpuKernels(Context &c, const Schedule &s, const GpuTarget &target,
                                                  std::vector<Kernel> &storage, const Plans &plans = {});

/// How the threads of a warp meet in memory, at one access of a kernel.
struct GpuAccess {
  int64_t buffer; // -1: an array that threads share
  bool write;
  unsigned loops;        // around it
  unsigned bytes = 0;    // of a thread at once
  unsigned sectors = 0;  // of 32 bytes that a warp touches in global memory
  double waste = 0;      // those, by how many would hold what it touches
  uint64_t moved = 0;    // bytes of the sectors that an item touches, all turns of the loops around together
  unsigned conflict = 0; // of a shared array: most words in one bank, of threads that go together
  uint64_t waves = 0;    // of a shared array: how often an item takes up to 128 bytes at once, all turns together
};
/// `dims`: at which turns of loops are counted; where it is null or does not know one, they are at their bounds.
std::vector<GpuAccess> gpuAccesses(const GpuKernel &kernel, const GpuTarget &target,
                                   llvm::function_ref<std::optional<int64_t>(UOpRef)> dims = {});

/// What a GPU does in a cycle, a row of MachineTable.def.
struct GpuSpeeds {
  const char *name, *title;
  unsigned units;
  double fma, matrix, latency; // of a unit
  uint64_t l2Bytes;            // of the chip, as the next two
  double l2, memory;
  const char *source;
};
llvm::ArrayRef<GpuSpeeds> allGpuSpeeds();
/// The row of a target, or null.
const GpuSpeeds *speedsOf(const GpuTarget &target);

/// What runs beside each other: a launch takes as long as the longest of them.
enum class GpuTerm : uint8_t { Arithmetic, Matrix, Chains, Shared, L2, Memory };
inline constexpr size_t numGpuTerms = 6;
const char *gpuTermName(GpuTerm t);

/// Cycles, by GpuTerm.
using GpuCost = std::array<double, numGpuTerms>;
/// The cost of a launch of all items; nothing where an extent is not known at these dims.
std::optional<GpuCost> costOf(Context &c, const GpuKernel &kernel, const GpuTarget &target, const GpuSpeeds &speeds,
                              llvm::function_ref<std::optional<int64_t>(UOpRef)> dims);

/// Optimized LLVM IR, as text.
llvm::Expected<std::string> gpuOptimizedIR(const GpuModule &m);
/// PTX, or AMDGPU assembly.
llvm::Expected<std::string> gpuAssembly(const GpuModule &m);

/// What the compiled code takes, read back from it.
struct GpuUse {
  std::string name;
  unsigned registers = 0;         // of a thread; of HIP vector registers, accumulation registers among them
  unsigned scalarRegisters = 0;   // HIP: of a wave
  uint64_t shared = 0;            // bytes of a block
  uint64_t stack = 0, spills = 0; // bytes of a thread; of HIP spills are registers
};
struct GpuBinary {
  std::string assembly;         // PTX; empty for HIP
  std::vector<uint8_t> code;    // cubin or HSACO; empty where ptxas is not installed
  std::vector<GpuUse> kernels;  // in the order of the module's; empty where there is no code
  double backEnd = 0, tool = 0; // milliseconds of LLVM, and of ptxas or ld.lld
};
/// Where ptxas is, or "".
std::string ptxasPath();
/// What ptxas says of itself: "13.0.88".
llvm::Expected<std::string> ptxasVersion(const std::string &ptxas);
/// `noFuse`: ptxas is told not to fuse by itself either, which must change nothing. ptxas: "" for PTX alone. Fails with
/// checkLaunch's sentence, or with that of a tool.
llvm::Expected<GpuBinary> buildGpu(const GpuModule &m, bool noFuse = false, const std::string &ptxas = ptxasPath());
/// Whether the driver must be told of a kernel's shared memory: of NVIDIA's GPUs, where it is more than code may state.
bool hasDynamicShared(const GpuLaunch &k, const GpuTarget &target);
/// Refuses a kernel that cannot be launched on its target: kernel, target, figure and limit in one sentence.
llvm::Error checkLaunch(const GpuLaunch &k, const GpuTarget &target);

/// All kernels of a schedule as code of one GPU, in the order of Schedule::kernels.
struct CompiledGpu {
  const GpuTarget *target;
  std::vector<Kernel> kernels;               // expanded
  std::vector<UOpRef> items;                 // work items of a launch, over dims
  std::vector<std::optional<GpuCost>> costs; // at the upper bounds of all dims, where they are counted
  GpuModule module;
  GpuBinary binary;
  std::string ptxasVersion; // where there is a cubin
  AccessCount proved = {};  // that its kernels stay in their buffers
};
llvm::Expected<CompiledGpu> compileGpu(Context &c, const Schedule &s, const GpuTarget &target, const std::string &ptxas,
                                       const Plans &plans = {});

/// How long one kernel takes to compile when it is compiled alone, in milliseconds: planned and lowered, written as
/// MLIR and LLVM IR, by LLVM, by ptxas or ld.lld.
struct GpuTime {
  std::string name;
  double plan, lower, backEnd, tool;
};
llvm::Expected<std::vector<GpuTime>> timeGpuKernels(Context &c, const Schedule &s, const GpuTarget &target,
                                                    const std::string &ptxas, const Plans &plans = {});

} // namespace astra
