//===- ContractionPath.h: in which order many operands are contracted ------===//
// Takes:    the labels of operands and of the result, the labels' extents.
// Gives:    the pairs to contract, one after another, the labels to slice where a bound on memory asks for it, and
//           what that costs.
// Keeps:    integers alone and a seeded generator: the same contraction has the same path on every machine. A path
//           decides the order of sums, so it is a part of the graph's meaning.
// Does not: build a graph (Einsum.h), or look at a clock.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>
#include <vector>

namespace astra::compose {

/// Numbers of products or elements. What is greater is `mostCost`.
using Cost = unsigned __int128;
constexpr Cost mostCost = Cost(1) << 120;
Cost costProduct(Cost x, Cost y);
std::string costText(Cost c);

/// Labels are numbered. An operand has a label at most once.
struct Contraction {
  std::vector<llvm::SmallVector<unsigned, 6>> operands;
  llvm::SmallVector<unsigned, 6> result;
  std::vector<int64_t> extents; // by label, 1 or more
};

/// Positions among the operands that are left, ascending. They go, and what they give is put behind the others. More
/// than two are contracted from the left.
using PathStep = llvm::SmallVector<unsigned, 2>;
struct ContractionPath {
  std::vector<PathStep> steps;
  llvm::SmallVector<unsigned, 2>
      slices; // labels: the steps are done once for each of their indices, the first outermost
};

/// "" or what is wrong with the steps for so many operands.
std::string checkPath(llvm::ArrayRef<PathStep> steps, size_t operands);

/// What a step computes.
struct StepCost {
  llvm::SmallVector<unsigned, 6> labels; // of what it gives, ascending
  Cost flops = 0, elements = 0;
};
struct ContractionCost {
  Cost flops = 0;              // products of two elements (a fused multiply-add is one), over all slices
  Cost largest = 0;            // elements of the largest result of a pair or step, the last one's too
  std::vector<StepCost> steps; // of one slice
};
ContractionCost costOf(const Contraction &c, const ContractionPath &path);

/// The fewest products: exactly, to 16 operands (dynamic programming over subsets); above, the best of some seeded
/// greedy orders, improved subtree by subtree. Where `mostElements` is given no result of a step but the last is
/// larger: another order, or slices, whichever costs less. Nothing where that cannot be.
std::optional<ContractionPath> choosePath(const Contraction &c, std::optional<Cost> mostElements = std::nullopt);

} // namespace astra::compose
