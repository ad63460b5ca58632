//===- Value.h: graph values at an index, as kernel UOps -------------------===//
// Takes:    a kernel's graph (KernelSpec) and symbolic indices.
// Gives:    the scalar kernel UOp that is the value's element there; movement folds into the index, reductions become
//           folds.
// Keeps:    one node per (value, index, gate); recursion is bounded by the size of a fusion group (the scheduler's
//           cap).
#pragma once
#include "KeptTiles.h"
#include "Phases.h"
#include "astra/Codegen/Kernel.h"
#include "astra/Codegen/Lower.h"
#include "astra/Codegen/Plan.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <map>
#include <optional>

namespace astra {

class ValueAt {
public:
  ValueAt(Context &c, const KernelSpec &spec, const RowTile *tile = nullptr);

  UOpRef at(UOpRef value, llvm::ArrayRef<UOpRef> index, UOpRef gate = nullptr);
  /// Stores `value`, an element of output 0, at `index` of it.
  UOpRef store(llvm::ArrayRef<UOpRef> index, UOpRef value, UOpRef gate = nullptr);
  /// The store of an in-place update_at: element `index` of the window, at its place in the buffer.
  UOpRef storeUpdate(UOpRef update, llvm::ArrayRef<UOpRef> index);
  /// The store of an in-place scatter: source `index`, at its place in the buffer; along the axis the index is a
  /// loop's.
  UOpRef storeScatter(UOpRef scatter, llvm::ArrayRef<UOpRef> index);
  UOpRef range(UOpRef extent, RangeKind kind);
  /// A digit of the thread's number; the constant 0 where it has one value.
  UOpRef digit(int64_t extent, int64_t stride);
  UOpRef lt(UOpRef a, UOpRef b);   // of indices, folded by bounds
  UOpRef both(UOpRef a, UOpRef b); // null is true

  // How a lane64 or exact reduction takes its elements: lanes of a vector along the reduced axis, or one lane after
  // another.
  unsigned reduceLanes = 0;               // 0: columns
  bool lanesSpill = false;                // by columns: all lanes of a sum take a step before any goes on
  int64_t stepsTogether = 1;              // steps of a contract's sum, by columns
  int64_t blocksTogether = 1;             // blocks of its chain that are lanes of a vector
  RangeKind laneKind = RangeKind::Vector; // what those lanes are: of a register, or threads
  unsigned rowLanes = 0;                  // elements of a row that are kept or written at once
  // Of a GPU, where a row is read once: so many neighbours are a thread's, and rowLanes counts threads. 0: each has
  // one.
  unsigned width = 0;
  /// What the lanes or threads of a row have of it in one step.
  struct RowStep {
    llvm::SmallVector<UOpRef, 3> ranges; // the innermost last
    UOpRef at;                           // the element at hand, from where the step begins
  };
  RowStep rowStep();
  /// How many elements that are.
  int64_t rowStepLength() const { return int64_t(rowLanes) * std::max(width, 1u); }
  // Of a GPU: the threads of an item that share a reduction. Chunks of a sum are dealt to `chunks` of them, or of their
  // warps. Of columns the lanes of a chunk are dealt to `parts` threads, neighbours in them are as many apart as an
  // item has columns, and `column` is the digit that tells which column the element at hand is.
  struct Cooperation {
    int64_t parts = 0, chunks = 0; // 0: each reduction is a thread's, or a warp's
    int64_t partStride = 1, chunkStride = 1;
    UOpRef column = nullptr;
  } cooperation;

  // A lane mask n < N of a partial tile: loads whose address depends on `masked` are gated by it, unless their layout
  // is padded.
  UOpRef masked = nullptr, mask = nullptr, column = nullptr; // the lanes' range, n < N, n
  // The columns of a contract's operand that are packed in fast memory: label `label` from `first` on, as `vectors`
  // vectors; the tile's own column is vector number `vector`, lane `lane`. operand -1: none.
  struct Panel {
    int operand = -1;
    int64_t label = 0;
    UOpRef first = nullptr, vector = nullptr, lane = nullptr;
    unsigned vectors = 1, lanes = 1;
  } panel;

  // What the tiles of a contract prefetch, a part each step: the panel of the lanes' operand behind that which begins
  // at the column `first`, of `width` columns; the last one begins at `last`. `turn` is the tile's number among the
  // `turns` that come one after another. turns 0: nothing.
  struct NextPanel {
    int operand = 0;
    int64_t label = 0;
    UOpRef first = nullptr, last = nullptr, turn = nullptr;
    int64_t width = 0, turns = 0;
  } nextPanel;
  std::vector<UOpRef> hints; // Kernel.h

  // The tile of a contract whose sums are spilled every `kc` steps while the other tiles go as far: the loop over
  // the tiles of an item. null: none. Of a reduction by columns: the loop over the columns of an item, which all take a
  // step before any goes on.
  struct Spill {
    UOpRef tile = nullptr;
    int64_t kc = 0;
  } spill;

  // The tile of a contract whose operands the threads of an item share (Shared.cpp). One side is of the operand along
  // which the lanes run, the other of the rows.
  struct Shared {
    struct Side {
      int64_t points = 1;                                               // of the tile along this side
      UOpRef own = nullptr;                                             // which of them the element at hand is
      std::function<void(UOpRef, llvm::MutableArrayRef<UOpRef>)> place; // sets the labels of a point
      std::function<UOpRef(UOpRef)> inside;                             // whether a point is one; null: certainly
      UOpRef extent = nullptr;                                          // of all points of this side
      int64_t together = 1; // points that neighbouring threads have side by side: with chains, each's lie so
    } side[2];              // by operand
    unsigned threads = 0;   // 0: none
    int64_t kc = 1;         // steps of the sum that are in fast memory at once
    bool copied = false;    // they go there as they are: of an operand that is turned, element by element
    bool lines = false;     // an operand whose neighbours are steps is not turned: it lies point by point
    // So many threads have the same points of the tile and each another chain of their sums, number `chain` of those
    // at hand. The operands' blocks have the points of each chain one behind another.
    int64_t chains = 1;
    UOpRef chain = nullptr;
    llvm::SmallVector<UOpRef, 2> place; // the digits of the number that tell which points a thread has
  } shared;

  // Of a tile that warp groups make: what runs along the sums of a thread, rows, vectors of columns and their lanes.
  // All of them are an array that the groups fill.
  struct {
    UOpRef row = nullptr, vector = nullptr, lane = nullptr;
    int64_t rows = 0, vectors = 0, lanes = 0;
  } warpGroups;

  // Of a tile that is transposed: the digits of the thread's number along the innermost dim and along the other. An
  // operand whose elements are neighbours along the other is read from an array that the threads fill.
  struct Transpose {
    UOpRef along = nullptr, across = nullptr;
    int64_t wide = 0, high = 0; // how many there are of each
  } transpose;

  // A sum whose domain cuts its end goes as far as that (domainEnd): elements side by side share the loop, those behind
  // where the first of them ends are checked.
  bool cutsSums = false;
  // Of rows, so many elements are computed; null: all of them.
  UOpRef columnsOfRows = nullptr;

  // The kernel's contraction at `index` sums over what the phase says.
  struct {
    const Phase *labels = nullptr;
    llvm::ArrayRef<UOpRef> index = {};
  } phase;

  // The items that are stored and the loops inside of them: range() adds to it, an item's range begins it anew. Who
  // leaves a loop takes it away.
  llvm::SmallVector<UOpRef, 3> around;

  // Values of which a row is kept in fast memory (Rows.h), its elements written in vectors of reduceLanes.
  llvm::DenseSet<UOpRef> cached;

  // Of a program of a user's kernel: the tiles that it keeps, and how each is computed; the ranges along which an
  // element and its reader go together, so that what is kept is of one of their points; the bytes that there are for
  // tiles.
  llvm::DenseMap<UOpRef, TileLanes> tiles;
  llvm::DenseSet<UOpRef> together;
  uint64_t tileBytes = 0;

  std::vector<KernelBuffer> buffers;

private:
  using Key = std::pair<std::pair<UOpRef, UOpRef>, const void *>;
  UOpRef compute(UOpRef value, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  bool positiveWhereTaken(UOpRef d);
  bool padded(const Layout &l, llvm::ArrayRef<UOpRef> index) const;
  UOpRef addressIn(unsigned slot, llvm::ArrayRef<UOpRef> index) const;
  UOpRef load(unsigned slot, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  UOpRef select(UOpRef valid, UOpRef x, UOpRef otherwise);
  UOpRef reduce(UOpRef r, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  /// Whether a point is one of the domain; null: certainly.
  UOpRef inDomain(llvm::ArrayRef<AffineForm> domain, llvm::ArrayRef<UOpRef> limits, llvm::ArrayRef<UOpRef> point);
  /// What of a thread's number a value depends on, as digits (Cooperation.cpp).
  using Place = llvm::SmallVector<UOpRef, 2>;
  using MakeShared = llvm::function_ref<UOpRef(UOpRef, UOpRef, llvm::ArrayRef<UOpRef>)>;
  std::optional<Place> sharesAt(llvm::ArrayRef<UOpRef> index, UOpRef gate) const;
  Place again(llvm::ArrayRef<UOpRef> place);
  UOpRef foldLanes(ReduceKind kind, llvm::ArrayRef<UOpRef> to,
                   llvm::function_ref<UOpRef(UOpRef, llvm::ArrayRef<UOpRef>)> lane);
  UOpRef sharedFold(ReduceKind kind, UOpRef n, int64_t chunk, UOpRef identity, llvm::ArrayRef<UOpRef> to,
                    MakeShared element);
  /// lane64 over n elements, element(i, bound, tile) being element i, or the identity where `bound` (null: certainly
  /// inside) is false, with another range in place of `tile`. tile: a range over columns that the result depends on, or
  /// null.
  using MakeTerm = llvm::function_ref<UOpRef(UOpRef, UOpRef, UOpRef)>;
  UOpRef laneFold(ReduceKind kind, UOpRef n, UOpRef chunk, UOpRef identity, UOpRef tile, MakeTerm element);
  UOpRef contract(UOpRef r, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  class Contraction;
  UOpRef contractOfTaps(UOpRef r, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  /// `extents`: of all labels, where they are certainly inside of them. `windows`: axes whose indices are inside where
  /// anything is taken.
  UOpRef operand(UOpRef x, llvm::ArrayRef<AffineForm> forms, llvm::ArrayRef<UOpRef> labels, UOpRef &inexact,
                 UOpRef gate, llvm::ArrayRef<UOpRef> extents = {}, llvm::ArrayRef<unsigned> windows = {});
  void prefetchPanel(UOpRef x, llvm::ArrayRef<AffineForm> forms, llvm::ArrayRef<UOpRef> labels, const ContractSpec &s,
                     llvm::ArrayRef<UOpRef> lengths);
  UOpRef staged(UOpRef x, llvm::ArrayRef<AffineForm> forms, llvm::ArrayRef<UOpRef> labels, int64_t reduced,
                UOpRef length, UOpRef columns);
  /// The operand's element as contract r multiplies it: words of bytes are i32, whichever way their bytes are read;
  /// those of a matrix unit stay u32.
  UOpRef asProduct(UOpRef element, UOpRef r) {
    return element->dtype == r->dtype || isFloat(r->dtype) ? element : c.make(Op::Bitcast, {element}, {}, {}, r->dtype);
  }
  /// Element (k, own point) of an operand's block of `kc` steps by `points`, from an array that the threads fill
  /// together. make(k, point, first k, first point of a vector): any element.
  using MakeElement = llvm::function_ref<UOpRef(UOpRef, UOpRef, UOpRef, UOpRef)>;
  UOpRef fromBlock(int64_t kc, int64_t points, UOpRef k, UOpRef own, unsigned bytes, MakeElement make);
  struct Along { // a label of a sum: begin + step * i, i < length; `all` of it
    int64_t label;
    UOpRef begin, length;
    int64_t step;
    UOpRef all;
  };
  struct Steps {                                                      // of a tile
    UOpRef own, extent;                                               // the step at hand within the tile; of all tiles
    int64_t kc;                                                       // of a tile
    std::function<void(UOpRef, llvm::MutableArrayRef<UOpRef>)> place; // sets the labels of a step of the tile
    std::function<UOpRef(UOpRef)> inside;                             // null: certainly
  };
  /// most: that a tile has, a power of two.
  Steps stepsOf(llvm::ArrayRef<Along> chain, int64_t most, llvm::MutableArrayRef<UOpRef> labels,
                llvm::SmallVectorImpl<UOpRef> &loops);
  /// The same whose steps are words, so many of each; `label` is which, `own` the thread's.
  Steps wordsOf(Steps steps, int64_t words, int64_t label, UOpRef own);
  /// Element (k, own point) of the operand on this side of a tile, at the labels of the thread's own chain.
  UOpRef tileOperand(UOpRef r, const ContractSpec &s, int side, const Steps &steps, llvm::ArrayRef<UOpRef> labels,
                     llvm::ArrayRef<UOpRef> lengths, UOpRef otherwise);
  /// What the threads' chains have summed, for each of them to add up in order.
  UOpRef chainSum(UOpRef sum, UOpRef chain);
  /// The loops along a sum whose accumulators are spilled every `kc` steps: the outer ones are of kind around.
  llvm::SmallVector<UOpRef, 6> spillLoops(llvm::ArrayRef<Along> chain, llvm::MutableArrayRef<UOpRef> labels);
  UOpRef transposedLoad(UOpRef buffer, UOpRef gate, UOpRef at);
  UOpRef sumOfBlocks(UOpRef r, const ContractSpec &s, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  UOpRef about(llvm::ArrayRef<UOpRef> index, UOpRef gate);
  UOpRef fold(UOpRef loop, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  UOpRef rowFold(ReduceKind kind, UOpRef n, UOpRef identity, llvm::function_ref<UOpRef(UOpRef, UOpRef)> element);
  UOpRef cachedRow(UOpRef value, llvm::ArrayRef<UOpRef> row);
  UOpRef fromTile(UOpRef value, llvm::ArrayRef<UOpRef> index, UOpRef gate);
  UOpRef atStep(const TileLanes &how, UOpRef step);
  bool keepsWithin(UOpRef loop);
  bool goesTogether(llvm::ArrayRef<UOpRef> index) const;
  UOpRef indexFrom(UOpRef scalar);
  std::pair<llvm::SmallVector<UOpRef, 4>, UOpRef> window(UOpRef x, llvm::ArrayRef<UOpRef> starts,
                                                         llvm::ArrayRef<UOpRef> size, llvm::ArrayRef<UOpRef> gateIndex,
                                                         UOpRef gate);

  Context &c;
  const KernelSpec &spec;
  llvm::DenseMap<UOpRef, unsigned> slotOf;
  std::vector<UOpRef> bufferNodes;
  llvm::DenseMap<unsigned, UOpRef> begins; // of buffers that hold some rows alone: the address of the first
  std::map<Key, UOpRef> memo, rows, loops; // looked up only, never iterated
  llvm::DenseMap<UOpRef, bool> keepsOwn;
  UOpRef rests = nullptr;         // a fold whose elements are kept from step to step of its loop
  UOpRef runs = nullptr;          // the range along which what is kept at the moment runs
  llvm::DenseSet<UOpRef> columns; // cooperation.column and the digits that stand for it
  int64_t nextAxis = 0;
};

/// Of a domain that says of a label only up to where it goes: the index behind, with the other labels as `at` has them.
/// null: it says more, or nothing.
UOpRef domainEnd(Context &c, llvm::ArrayRef<AffineForm> domain, llvm::ArrayRef<UOpRef> limits, int64_t label,
                 llvm::ArrayRef<UOpRef> at);
/// The blocks in which chain512 goes along a sum: of each label how long they are, and how many.
struct ChainBlocks {
  int64_t most() const; // at most so many together
  llvm::SmallVector<UOpRef, 4> length, count;
  llvm::SmallVector<int64_t, 4> order; // the labels that are cut, the outermost loop first
};
ChainBlocks chainBlocks(Context &c, llvm::ArrayRef<UOpRef> lengths);
/// `r`, or +0 when one of the extents is 0 (N4: a sum over an extent of 0 is +0.0).
UOpRef zeroIfEmpty(Context &c, UOpRef r, llvm::ArrayRef<UOpRef> extents);
/// A power of two, 64 at most, that divides every value of an index.
uint64_t alignmentOf(UOpRef x);
/// A graph with symbolic integers replaced by others, in shapes, indices and extents of ranges.
UOpRef withIndices(Context &c, UOpRef root, llvm::ArrayRef<UOpRef> from, llvm::ArrayRef<UOpRef> to);
/// The same of each node below some.
llvm::DenseMap<UOpRef, UOpRef> withIndices(Context &c, llvm::ArrayRef<UOpRef> roots, llvm::ArrayRef<UOpRef> from,
                                           llvm::ArrayRef<UOpRef> to);
/// Does x depend on `on`?
bool dependsOn(UOpRef x, UOpRef on);

} // namespace astra
