//===- Closure.h: functions from values that were lowered in place ---------===//
// Takes:    values that follow from placeholders (Composer::placeholder) and from values around.
// Gives:    `func` nodes, which see only their arguments; what they take from around are further arguments.
// Keeps:    what was there before the closure began and does not follow from its placeholders is computed outside and
//           handed in; literals and ramps are made again inside. One list of captured values for all functions of a
//           control op, in the order in which they were met. An argument has no data dim: a value that has one is
//           padded to its bounds outside and cut inside, by the count that is handed in beside it.
// Does not: recurse.
#pragma once
#include "astra/Compose/Composer.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace astra::compose {

/// The room that a value needs along an axis whose extent may follow data: at least the extent, free of data dims.
/// Null where the extent has no bound.
UOpRef roomFor(Context &c, UOpRef extent);
/// x with zeros behind it, up to `room`, which is at least its shape.
UOpRef padTo(Composer &n, UOpRef x, llvm::ArrayRef<UOpRef> room);

class Closure {
public:
  /// What has a number below `begin` was there before.
  Closure(Composer &n, size_t begin) : n(n), begin(begin) {}
  explicit Closure(Composer &n) : Closure(n, n.c.size()) {}

  /// A value that stands for an argument of the functions: own argument number 0, 1, ...
  UOpRef own(DType t, llvm::ArrayRef<UOpRef> shape);
  /// A data dim from around is this dim inside: a loop carries it.
  void carry(UOpRef extent, UOpRef dim) { carried[extent] = dim; }
  /// Notes what these values take from around. False, and a failure, if it cannot be handed in.
  bool capture(llvm::ArrayRef<UOpRef> values);
  /// In the order of the arguments that follow the own ones.
  llvm::ArrayRef<UOpRef> captured() const { return handed; }
  /// Of values that were captured. With `pass` its results end with the captured values, as they came.
  UOpRef func(llvm::ArrayRef<UOpRef> values, bool pass = false);

private:
  std::vector<UOpRef> inner(llvm::ArrayRef<UOpRef> values);
  /// An extent as functions see it.
  UOpRef inside(UOpRef extent);
  /// Whether a symbolic integer is made from a data dim (`extent`), and whether x has one that is.
  bool followsData(UOpRef index);
  bool isOpen(UOpRef x);    // whether its shape has a data dim
  bool isCarried(UOpRef x); // whether a loop carries all that its shape has
  bool hasDataDim(UOpRef x);
  bool isFree(UOpRef x);

  Composer &n;
  size_t begin;
  llvm::SetVector<UOpRef> placeholders, outside;
  std::vector<UOpRef> handed;            // what is outside, padded where it has data dims
  llvm::DenseMap<UOpRef, bool> dataDims; // memo of followsData
  llvm::DenseMap<UOpRef, UOpRef> carried;
};

} // namespace astra::compose
