//===- TellPrograms.h: places that tell which program stores ----------------===//
// Takes:    where a program's tile begins along each axis, its size there, and the grid: symbolic integers.
// Gives:    whether tiles that share an element are of one program, for all sizes.
// Keeps:    a proof: what is not shown may hold all the same.
#pragma once
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace astra::verifier {

class TellPrograms {
public:
  /// names: of the dims of the grid; extents: of its axes, which begin at 0.
  TellPrograms(Context &c, llvm::ArrayRef<llvm::StringRef> names, llvm::ArrayRef<UOpRef> extents)
      : c(c), names(names), extents(extents) {}
  /// Whether tiles of these sizes, at these places, that share an element are of one program.
  bool told(llvm::ArrayRef<UOpRef> begins, llvm::ArrayRef<UOpRef> sizes);
  /// x, where each min and max that has one of its sides in all programs is that side.
  UOpRef decided(UOpRef x);
  /// The axis of the grid that x is the number along.
  std::optional<size_t> axisOf(UOpRef x) const;

private:
  bool isFixed(UOpRef x);
  bool isUniform(UOpRef leaf);
  std::optional<UOpRef> most(UOpRef x, unsigned deep = 0);
  void tell(UOpRef x, UOpRef reach, bool symbolic);
  void learn(UOpRef x);

  Context &c;
  llvm::ArrayRef<llvm::StringRef> names;
  llvm::ArrayRef<UOpRef> extents;
  llvm::DenseSet<UOpRef> known;         // equal in all programs whose tiles meet
  llvm::DenseMap<UOpRef, bool> fixed;   // as follows from `known`
  llvm::DenseMap<UOpRef, bool> uniform; // of leaves: equal in all programs
  unsigned steps = 0;                   // of `most`
};

/// Whether x is computed from symbolic integers.
bool isArithmetic(UOpRef x);
/// x and what it is computed from, operands first, down to what is not computed.
std::vector<UOpRef> computed(llvm::ArrayRef<UOpRef> roots);

} // namespace astra::verifier
