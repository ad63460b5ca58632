//===- Hints.h: what a front door adds to the sentence of a refusal --------===//
// Gives:    the end of a sentence that says what to do about it, in the words of the front door: a command line names a
//           flag, a package an argument. By default nothing is added.
// Keeps:    each begins with "; ", or is "".
#pragma once
#include "astra/IR/UOp.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace astra::compose {

/// Puts multiples of new dims in the place of dims.
using WithMultiples = llvm::function_ref<UOpRef(UOpRef)>;

class Hints {
public:
  virtual ~Hints();

  /// The bounds of a dim between which the extent is `least` or more.
  virtual std::string bound(UOpRef extent, int64_t least) const;
  /// Bounds between which an extent has one sign.
  virtual std::string sign(UOpRef extent) const;
  /// Values for all dims of the extents: what holds for some values of them.
  virtual std::string fix(llvm::ArrayRef<UOpRef> extents) const;
  /// How to say that two extents are equal.
  virtual std::string equal(UOpRef x, UOpRef y) const;
  /// Of which numbers dims of the extents would have to be multiples so that `holds`.
  virtual std::string multiple(llvm::ArrayRef<UOpRef> extents, llvm::function_ref<bool(WithMultiples)> holds) const;
  /// " with --dim": by what a dim is fixed, behind words that say which; "" where the words say enough.
  virtual std::string means() const;

  /// A parameter of a composite by its name, as the user wrote it: "option 'size'", "attribute 'size'".
  virtual std::string option(llvm::StringRef name) const;
  /// An operand at the beginning of a sentence: "the operand f32[2, 3]".
  virtual std::string operand(UOpRef x) const;

  /// Of these two the one that is there, or both as one; either may be "".
  static std::string orElse(const std::string &hint, const std::string &other);
};

} // namespace astra::compose
