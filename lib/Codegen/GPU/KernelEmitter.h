//===- KernelEmitter.h: a linear kernel on its way to the llvm dialect -----===//
// Gives:    the class that writes one kernel: its control (EmitKernel.cpp) and its memory (EmitMemory.cpp).
#pragma once
#include "../Value.h"
#include "Barriers.h"
#include "EmitKernel.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace astra::gpu {
namespace L = mlir::LLVM;

using Lanes = llvm::SmallVector<V, 4>;

inline bool isThread(UOpRef x) { return x->op == Op::Range && RangeKind(x->ints[1]) == RangeKind::Thread; }
inline bool isParallel(UOpRef range) { return RangeKind(range->ints[1]) == RangeKind::Parallel; }
inline unsigned lanesOf(UOpRef x) { return x->rank() ? unsigned(x->shape[0]->constIndex().value_or(0)) : 1; }
inline bool fits32(int64_t lo, int64_t hi) { return lo >= INT32_MIN && hi <= INT32_MAX; }
inline unsigned widthOf(UOpRef index) { return fits32(index->lo, index->hi) ? 32 : 64; }

class KernelEmitter {
public:
  KernelEmitter(Context &c, Scalar &s, Machine &machine, mlir::ModuleOp module, const GpuKernel &k,
                llvm::ArrayRef<UOpRef> dims, const GpuTarget &target)
      : c(c), s(s), machine(machine), module(module), k(k), dims(dims), target(target), warp(target.warp) {}
  llvm::Expected<GpuLaunch> run();

private:
  struct Loop {
    UOpRef range;
    mlir::Block *header, *exit;
    std::vector<UOpRef> carried; // accumulators
    Lanes next = {};             // what the next turn puts into shared arrays, or the place in the ring where it reads
    bool outer = false;          // another loop is inside
    unsigned steps = 0;          // of a sum of shared operands, in a turn
    size_t begin = 0;            // the number of its LoopBegin
    bool kept = false;           // a few turns, each with an element of a thread's own array
  };

  llvm::Error fail(const llvm::Twine &what) const {
    return llvm::createStringError(std::errc::not_supported, "kernel '%s': %s", k.name.c_str(), what.str().c_str());
  }
  V refuse(const llvm::Twine &what) { return s.refuse(what.str()); }
  llvm::Error findCarried();
  llvm::Error signature(GpuLaunch &launch);
  llvm::Error bindThreads(GpuLaunch &launch);
  void setItem(V block);
  llvm::Error body();
  llvm::Error steps(GpuLaunch &launch);
  llvm::Error step(GpuLaunch &launch, bool last);
  mlir::Block *newBlock() {
    auto *block = new mlir::Block;
    function.getBody().push_back(block);
    return block;
  }
  void enter(mlir::Block *block) { s.b.setInsertionPointToEnd(block); }
  L::BrOp jump(mlir::Block *to, llvm::ArrayRef<V> with = {}) { return L::BrOp::create(s.b, s.loc, with, to); }
  void branch(V condition, mlir::Block *yes, mlir::Block *no) { L::CondBrOp::create(s.b, s.loc, condition, yes, no); }

  V index(UOpRef x, unsigned width);
  /// The place of an element and `plus` more.
  V at(V pointer, mlir::Type element, V number, uint64_t plus) {
    V place = s.offset(pointer, element, number);
    return plus ? s.offset(place, element, s.integer(32, plus)) : place; // so LLVM sees neighbours as such
  }
  V indexOp(UOpRef x);
  const Lanes &value(UOpRef x);
  Lanes compute(const Inst &i);
  Lanes elementwise(UOpRef x);
  /// `body` where `condition` holds (null: everywhere); elsewhere zeros of its types.
  Lanes guarded(V condition, llvm::ArrayRef<mlir::Type> types, llvm::function_ref<Lanes()> body);
  V inside(UOpRef at, unsigned first, unsigned lanes, UOpRef count);
  Lanes read(UOpRef x, V pointer, UOpRef at, const Lanes *gate, llvm::function_ref<V(unsigned, unsigned)> condition);
  Lanes load(const Inst &i);
  Lanes stageRead(const Inst &i);
  struct StagePlace {
    V element;          // its number in the array,
    uint64_t plus;      // and that
    uint64_t alignment; // a divisor of it
  };
  StagePlace stagePlace(size_t array, llvm::ArrayRef<UOpRef> indices, unsigned lanes);
  Lanes loadLanes(V place, mlir::Type element, uint64_t alignment, unsigned count);
  void storeLanes(V place, mlir::Type element, unsigned bytes, llvm::ArrayRef<V> xs);
  size_t arrayOf(UOpRef stage) const;
  void put(UOpRef stage, Lanes all);
  Lanes restOf(UOpRef stage);
  /// How a stage is filled by asynchronous copies: a load, in place of which there is a literal where one of the
  /// conditions is false, the last of them first.
  struct Copy {
    UOpRef load = nullptr; // null: it is not
    llvm::SmallVector<std::pair<UOpRef, UOpRef>, 2> unless = {};
  };
  Copy copyOf(UOpRef stage, size_t begin, size_t end) const;
  void copy(UOpRef stage, const Copy &from, const Inst &load);
  void issue(size_t loop, V turn, V isTurn, V place);
  void beginRing(size_t loop, V count);
  V turnRing(size_t loop, V turn, V count, V place);
  void again(size_t loop, V turn);
  L::GlobalOp sharedArray(size_t number, mlir::Type element, uint64_t count, unsigned alignment = 64);
  llvm::Error makeArrays(GpuLaunch &launch);
  void makeSums(GpuLaunch &launch);
  V sumPlace(UOpRef fold, unsigned lane);
  Lanes loadSum(UOpRef fold);
  void storeSum(UOpRef fold);
  V firstOf(uint32_t bits);
  V putsAlone(UOpRef stage);
  uint64_t slotElements(size_t number);
  void emit(const Inst &i);
  void fill(size_t begin, size_t end, llvm::function_ref<bool(UOpRef)> define, llvm::function_ref<void(UOpRef)> atPut);
  Lanes fetch(size_t loop, V turn, V count);
  void write(UOpRef store);
  void update(UOpRef fold);
  // Matrix units (MatrixTiles.cpp).
  /// Where a fold's words are in shared arrays, of its row (1) and of its columns (0).
  struct UnitPlaces {
    unsigned array[2];
    UOpRef first[2];  // the place of the first word
    int64_t apart[2]; // from word to word
    int64_t lane = 0; // from column to column of a thread
  };
  /// The words of a step of a fold, of its row and of its columns.
  struct UnitWords {
    llvm::ArrayRef<UOpRef> row, columns;
  };
  UnitWords wordsOf(UOpRef fold) const;
  UOpRef flatPlace(UOpRef at, unsigned &array);
  bool findPlaces(UOpRef fold, UnitPlaces &out);
  V valueOf(UOpRef flat);
  V loadWord(unsigned array, V place, uint64_t plus);
  V times(V x, int64_t n) { return s.mul(x, s.integer(32, uint64_t(n))); }
  bool multiplyMma(llvm::ArrayRef<UOpRef> folds, const UnitInstruction &unit); // Mma.cpp, as the next four
  V swizzled(V place, unsigned line);
  Lanes loadMatrices(unsigned array, V line, llvm::ArrayRef<int64_t> lines);
  Lanes unitOperand(const UnitPlaces &of, bool isRow, V first, V own, int64_t step, llvm::ArrayRef<int64_t> points,
                    unsigned words);
  std::optional<int64_t> behind(UOpRef place, UOpRef first);
  bool multiplyMfma(llvm::ArrayRef<UOpRef> folds, const UnitInstruction &unit);
  void callStep(UOpRef fold);
  void flushUnit();
  void updateUnit(UOpRef fold);
  L::LLVMFuncOp unitFunction(Combine kind, std::string name = "");
  // Warp groups (WarpGroups.cpp).
  V ptx(llvm::StringRef name, llvm::ArrayRef<V> arguments, mlir::Type result = {});
  void findWarpGroups();
  void makeTileRing(GpuLaunch &launch);
  V groupBarrier(V of, V slot);
  V inTileRing(V slot, uint64_t bytes);
  uint64_t turnsOfTile() const;
  Lanes ringLoop(V tile, llvm::ArrayRef<V> carried, llvm::function_ref<Lanes(V, V, V, llvm::ArrayRef<V>)> body);
  llvm::Error eachTile(llvm::function_ref<llvm::Error(V)> body);
  llvm::Error beginGroups();
  void multiplyByGroups();
  V indexOf(UOpRef x, unsigned width);
  Lanes laneFold(UOpRef fold);
  void beginLoop(size_t at);
  void endLoop();

  Context &c;
  Scalar &s;
  Machine &machine;
  mlir::ModuleOp module;
  const GpuKernel &k;
  llvm::ArrayRef<UOpRef> dims;
  const GpuTarget &target;
  unsigned warp;
  L::LLVMFuncOp function;
  llvm::DenseMap<UOpRef, Lanes> values;
  llvm::DenseMap<UOpRef, V> dimValues;
  std::vector<V> buffers, arrays;
  std::vector<uint32_t> usedDims;
  llvm::DenseMap<size_t, std::vector<UOpRef>> carried; // by the number of a LoopBegin
  std::vector<Loop> loops;
  std::vector<UOpRef> pendingUnit;                     // folds that wait for other rows of the same columns
  llvm::MapVector<UOpRef, V> spilled;                  // accumulators in shared memory, each with its array
  llvm::DenseMap<size_t, std::vector<UOpRef>> resumed; // by the number of a LoopBegin: those that end with the loop
  Threads threads;                                     // what depends on which digits of the thread's number
  Barriers barriers;                                   // where they go; loops that go ahead of what they put
  llvm::DenseMap<size_t, V> slots;                     // by array: where in it the turn at hand is
  // Of a tile that warp groups make (WarpGroups.cpp).
  struct Groups {
    UOpRef sums = nullptr;       // the stage that they fill; null: there is none
    size_t begin = 0;            // the LoopBegin of what fills it
    V ring, full, empty;         // places of the tile's operands; a barrier of each for who waits to read and to fill
    llvm::SmallVector<V, 2> map; // of rows, of columns
    std::vector<Lanes> result;   // by row of the thread
    V tile;                      // number of the tile at hand among those of the block
    mlir::Block *end = nullptr;  // of the kernel, where those go who bring the operands
  } groups;
  V within;     // the number of the thread's item among those of its block
  V lane;       // the thread's number among those of its item; null where each has its own
  V item, base; // the item's number; where those of the next parallel range begin
};

/// The only thread range in a place that has one of these bits of the thread's number, with its coefficient; null where
/// there are several, or where it is a part of something.
std::pair<UOpRef, int64_t> digitIn(UOpRef place, uint32_t bits, const Threads &threads);
bool dependsOnBits(UOpRef place, uint32_t bits, const Threads &threads);

/// LLVM unrolls such a loop, or none of its turns, or so many.
L::LoopAnnotationAttr unrolled(mlir::OpBuilder &b, bool all, unsigned times = 0);

} // namespace astra::gpu
