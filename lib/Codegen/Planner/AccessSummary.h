//===- AccessSummary.h: what a lowered kernel reads, and how ----------------===//
// Gives:    one traversal of a kernel that was lowered under a plan, and what planning asks about it.
// Does not: know a machine: a summary is the same for every target.
#pragma once
#include "astra/Codegen/Kernel.h"
#include "astra/Codegen/Plan.h"

namespace astra {

/// What an index, or a part of one, depends on: the kinds of its ranges, and what computes it.
struct Dependence {
  bool lane = false, unrolled = false, loop = false; // ranges
  bool loaded = false, divided = false;              // what is read; quotients and remainders
  Dependence &operator|=(const Dependence &o) {
    lane |= o.lane, unrolled |= o.unrolled, loop |= o.loop, loaded |= o.loaded, divided |= o.divided;
    return *this;
  }
};

/// What a term of an address is a multiple of: one range, the remainder of the number of an item, or something else.
enum class Along : uint8_t { Item, ItemRemainder, Loop, Unroll, Lane, Else };

/// A term of the address of a load: `coefficient` elements for each step of what it is a multiple of.
struct AccessTerm {
  int64_t coefficient = 0;
  Along along = Along::Else;
  int64_t modulus = 0; // of an ItemRemainder
  Dependence on;
  bool computesLanes = false; // a part that is no range depends on lanes: each computes its own
};

struct LoadAccess {
  unsigned bytes; // of an element
  bool first;     // the value of the first store needs it
  bool gatedByLane;
  Dependence address;
  llvm::SmallVector<AccessTerm, 4> terms; // without the constant one
};

/// By how many elements, of so many bytes, an address of a load grows from lane to lane.
struct LaneStep {
  int64_t elements;
  unsigned bytes;
};

/// Elementwise ops of a step by their bytes: as many vectors each as the lanes take, but divisions of integers, which
/// are one for each lane, and casts from and to small floats, each of which is several.
struct StepOps {
  unsigned bytes;
  enum : uint8_t { Vector, Division, SmallFloat } kind;
  unsigned count;
};

struct AccessSummary {
  bool stores = false; // an element at all
  /// What addresses cost beside their arithmetic: loads and stores that are not of neighbouring lanes, and divisions.
  unsigned cost = 0;
  /// Nodes of addresses that are computed for each lane by itself: the code has them once for every lane of a step.
  unsigned perLane = 0;
  bool readsByIndices = false; // at places that are computed from what is read: then not all of the inputs
  llvm::SmallVector<LoadAccess, 8> loads;
  llvm::SmallVector<StepOps, 4> ops;

  /// Of each load that has lanes in its address.
  llvm::SmallVector<LaneStep, 4> laneSteps() const;
  /// How far apart in memory lanes are that do not lie side by side, in bytes: the most of all loads.
  uint64_t bytesAcross() const;
  /// Whether the lanes lie side by side in all that is read, in either direction, or at every other element.
  bool readsRuns() const;
  /// Whether lanes are read backwards.
  bool readsBackwards() const;
  /// Whether a load is gated lane by lane. Where the lanes' places are numbers, so is the gate of most vectors.
  bool gatesLanes() const;
  /// Whether what is read lies at quotients or remainders, as along some of the dims that are merged.
  bool divides() const;
  /// Whether what is taken at once, the points of a block or the steps of a sum (`sums`), are neighbours in each
  /// operand whose lanes are not (of a sum in one: what its last steps read is read lane by lane), and there is such a
  /// one: it is read by vectors along them.
  bool transposesInRegisters(bool sums) const;
  /// Whether neighbouring lanes lie at most so many elements apart in what the first store needs.
  bool readsNear(int64_t elements) const;
  /// Whether lanes lie where an index tensor says, and the points of a block share their places.
  bool sharesPlaces() const;
  /// About how many statements of whole vectors one of the plan's steps is, which a C compiler's time grows with.
  unsigned statements(unsigned lanes, unsigned vectorBytes) const;
};

AccessSummary summarize(const Kernel &k, const Plan &plan);

} // namespace astra
