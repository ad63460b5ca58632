//===- Refusals.h: ops that are known and have no row ----------------------===//
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace astra::onnx {

struct Refusal {
  const char *ops; // "domain::name name ...", in order of the alphabet
  const char *why; // the end of a sentence: "... is not supported: WHY"
};
llvm::ArrayRef<Refusal> refusals();

/// Why an op ("domain::name") is not supported; "" where nothing is known of it.
llvm::StringRef whyRefused(llvm::StringRef op);

} // namespace astra::onnx
