//===- Uses.h: how a module reads its weights -------------------------------===//
// Takes:    a module, and parameters that may be weights.
// Gives:    of each its axes as the products that read it have them, or why it is no weight.
// Keeps:    time linear in the nodes. Bodies of control ops are not looked into: what goes there is read by the op.
#pragma once
#include "astra/Compose/Composer.h"
#include "llvm/ADT/DenseMap.h"

namespace astra::quantize {

/// A value that is a parameter, its shape read anew, its axes in another order, its type a wider one.
struct View {
  UOpRef param = nullptr;             // null: it is no such value
  llvm::SmallVector<UOpRef, 4> base;  // the parameter's elements under this shape
  llvm::SmallVector<int64_t, 4> axes; // of the base, in the order of the view
};
/// `of` is the view that a source is.
View viewOf(UOpRef x, llvm::function_ref<View(UOpRef)> of);

/// How a weight is read: the same by all that read it.
struct Use {
  std::string other;                   // what else reads it, so that it stays; "": nothing
  llvm::SmallVector<int64_t, 4> base;  // its shape
  llvm::SmallVector<int64_t, 4> order; // axes of the base: kept ones, then summed ones in the order of the sum
  unsigned summed = 0;                 // how many of the last of them
  bool isGathered = false, isMultiplied = false;
  bool isWeight() const { return isGathered || isMultiplied; }
};

class Uses {
public:
  explicit Uses(const Module &m);
  /// Of a parameter of f32, f16 or bf16.
  const Use &of(UOpRef param) const { return found.find(param)->second; }
  bool knows(UOpRef param) const { return found.count(param); }

private:
  llvm::DenseMap<UOpRef, Use> found;
  llvm::DenseMap<UOpRef, View> views;

  void read(const View &v, UOpRef reader, unsigned operand);
  void multiplied(const View &v, UOpRef contract, unsigned operand);
  void settle(const View &v, llvm::ArrayRef<int64_t> kept, llvm::ArrayRef<int64_t> summed, bool gather);
};

} // namespace astra::quantize
