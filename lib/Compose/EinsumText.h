//===- EinsumText.h: what the text of an einsum says of its operands -------===//
// Takes:    a text, which may be wrong in every way, and the shapes of operands.
// Gives:    numbered labels with their extents; the contraction, as ContractionPath.h wants it.
// Keeps:    labels are numbered in the order in which they first occur.
#pragma once
#include "astra/Compose/Einsum.h"

namespace astra::compose {

using EinsumLabels = llvm::SmallVector<unsigned, 6>;

struct EinsumText {
  std::vector<EinsumLabels> operands; // a label for each axis; twice: a diagonal
  EinsumLabels result;
  Dims extents;                   // by label
  std::vector<std::string> names; // by label; "" of a place of the ellipsis
  std::string equation;           // as it was written, with its result
  std::optional<std::vector<PathStep>> path;
  EinsumLabels slices;
  std::optional<Cost> memory;

  /// What is left to contract when diagonals are taken, axes of extent 1 that are repeated are gone, and labels of one
  /// operand alone are summed.
  Contraction contraction;
};
std::optional<EinsumText> readEinsum(Composer &b, llvm::StringRef text, llvm::ArrayRef<Dims> shapes);
/// The path and slices of the text, or those that are chosen: nothing after a failure.
std::optional<ContractionPath> pathOf(Composer &b, const EinsumText &e);

} // namespace astra::compose
