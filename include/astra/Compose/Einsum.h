//===- Einsum.h: Einstein sums ---------------------------------------------===//
// Takes:    a text, "ij,jk,kl->il", with the order of contraction behind it or without, and operands.
// Gives:    one `contract` for each pair of operands, in the order of the path; the path that was chosen, as text.
// Keeps:    reduced labels in the order in which they first occur in the equation (N4), whatever the path; a label of
//           one operand alone that the result has not is summed ahead, one of two as soon as they meet.
//
// The text, with spaces anywhere in the equation:
//
//     EQUATION [path=[(0, 1), (0, 2), ...]] [slices=LABELS] [memory=N]
//
// A label is a letter or any character beyond ASCII. The path names operands by their places among those that are left;
// what they give is put behind the others. It is chosen where it is not given (ContractionPath.h). `slices` are labels
// whose indices are contracted one after another, the first outermost, each slice by the same path. `memory` bounds the
// elements of every intermediate; the path and the slices are then chosen so.
#pragma once
#include "astra/Compose/Composer.h"
#include "astra/Compose/ContractionPath.h"

namespace astra::compose {

/// NumPy's einsum: the equation names the axes of each operand, with an ellipsis in any term; without "->" the result
/// has the ellipsis, then the labels that occur once, in the order of their characters. A label twice in one operand is
/// its diagonal. Operands are of one type; axes of one name are equal or 1. Of bools sums are any, and products all.
UOpRef einsum(Composer &b, llvm::StringRef text, llvm::ArrayRef<UOpRef> operands);

/// What einsum would do.
struct EinsumPlan {
  std::string text; // with the result, the path and the slices: einsum of it does the same
  ContractionPath path;
  std::vector<std::string> slices; // their labels
  Cost naive = 0;                  // products without intermediates
  ContractionCost cost;            // a symbolic extent counts as its upper bound
  std::vector<std::string> steps;  // "ij,jk->ik"
};
std::optional<EinsumPlan> einsumPlan(Composer &b, llvm::StringRef text, llvm::ArrayRef<Dims> shapes);

/// einsum, and of three operands or more its order of contraction with what that costs, for who reads:
/// "ij,jk,kl->il path=[(0, 1), (0, 1)]: products 6000 (at once 72000), largest intermediate or result
/// 400".
UOpRef einsumAndCost(Composer &b, llvm::StringRef text, llvm::ArrayRef<UOpRef> operands, std::string &cost);

} // namespace astra::compose
