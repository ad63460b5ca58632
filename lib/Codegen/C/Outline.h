//===- Outline.h: repeated elementwise code as functions --------------------===//
#pragma once
#include "astra/Codegen/Linear.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace astra::cemit {

/// A function of one vector: elementwise ops on it, on what they give, and on constants.
struct Outlined {
  UOpRef argument;
  std::vector<UOpRef> body; // in order; the last one is the result
};

struct Outlines {
  std::vector<Outlined> functions; // each as its first use has it
  struct Call {
    unsigned function;
    UOpRef argument;
  };
  llvm::DenseMap<UOpRef, Call> calls;      // by the value that a call gives
  llvm::DenseMap<UOpRef, bool> isInternal; // values that calls have in place of their own definitions
};

/// The functions that `insts` are worth: see Outline.cpp. `regionOf`: the number of the loop that defines a value.
Outlines outline(llvm::ArrayRef<Inst> insts, llvm::function_ref<unsigned(UOpRef)> regionOf, unsigned vectorBytes);

/// A constant, or a vector whose lanes are one.
bool isLiteral(UOpRef x);

} // namespace astra::cemit
