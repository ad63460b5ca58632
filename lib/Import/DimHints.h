//===- DimHints.h: flags that bound dims -----------------------------------===//
// Gives:    the ends of sentences that say which --dim flag helps; front doors share them.
#pragma once
#include "astra/IR/UOp.h"
#include <string>

namespace astra {

/// A word as a shell takes it: in quotes where it holds more than letters, digits and plain signs.
std::string shellWord(llvm::StringRef word);

/// "; give --dim h=3..64", the widest bounds of one dim within its own between which the extent is `least` or more; ""
/// where bounds of one dim do not say so.
std::string boundHint(Context &c, UOpRef extent, int64_t least);
std::string signHint(UOpRef extent);
/// "; fix h and w with --dim h=N --dim w=N", for what holds for some values of the dims; "" where there are none.
std::string fixHint(llvm::ArrayRef<UOpRef> extents);

} // namespace astra
