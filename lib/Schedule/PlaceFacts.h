//===- PlaceFacts.h: where values are stored, for who chooses a layout ------===//
// Takes:    the scheduler's state, and the steps that a choice has added so far.
// Gives:    answers about layouts and strides as they are behind those steps.
// Keeps:    the scheduler as it is. An answer that rests on how a parameter is stored is a step too: it stays so.
// Does not: choose (Kernels.cpp, ContractLayout.cpp), or do what was chosen (Scheduler::carryOut).
#pragma once
#include "Scheduler.h"

namespace astra {

class Scheduler::PlaceFacts {
public:
  explicit PlaceFacts(const Scheduler &scheduler) : c(scheduler.c), scheduler(scheduler) {}
  Context &c;
  std::vector<LayoutStep> steps;

  void add(LayoutStep step);
  /// The place that a value was given; null: none, as a parameter that no kernel of the routine has read.
  const Place *given(UOpRef x) const;
  /// Where a value lies; null where it is still to be computed.
  const Place *placeOf(UOpRef x);
  /// The layout that a parameter is stored in; nothing where it is still to be chosen.
  std::optional<Layout> storedAs(UOpRef param) const;
  /// The step in memory of axis `d` of a view over a placed value; nothing when it is not a plain stride or there is no
  /// place yet.
  std::optional<int64_t> strideOf(UOpRef view, unsigned d);
  /// Whether an operand of a contract is arithmetic that its kernel does, as Fusion decided.
  bool computedHere(UOpRef operand) const;
  /// Whether lanes may run along this axis of an operand: they are neighbours in it, or in all that it is computed of,
  /// or read the same there.
  bool runsAlong(UOpRef operand, unsigned axis);
  /// The parameter that is an operand of a contract, or that the contract's kernel makes it of; null: none.
  UOpRef paramOf(UOpRef operand) const;
  /// Whether an operand is a parameter, or made of one, whose layout is still ours to choose, or was chosen as this
  /// one.
  bool canStore(UOpRef operand, const Layout &layout) const;
  /// Whether elements are neighbours along this axis where a packed value lay before: its copy can go.
  bool unpacks(UOpRef view, unsigned axis);
  /// The place that words have in their bytes, where these are neighbours there; the buffer is that of `bytesOf`.
  std::optional<Place> placeInBytes(UOpRef words);
  /// The value below permutations whose bytes words are.
  UOpRef bytesOf(UOpRef words) const;
  /// The order of the first input of this rank that is not row-major; of windows and other views of such an input, its
  /// innermost axis stays so. `placed`: v's own place counts. Nothing where all inputs are row-major.
  std::optional<Layout> inputOrder(UOpRef v, bool placed);

private:
  const Scheduler &scheduler;
  llvm::DenseMap<UOpRef, Place> places;  // that steps give; of buffers that are still to be made
  llvm::DenseMap<UOpRef, Layout> params; // that steps store

  /// The axis of a view whose elements are neighbours because its base is not row-major; -1: none, or too short.
  int64_t innermostOfView(UOpRef view);
};

/// A layout of words as one of their bytes.
Layout ofBytes(const Layout &words, llvm::ArrayRef<int64_t> axes);

} // namespace astra
