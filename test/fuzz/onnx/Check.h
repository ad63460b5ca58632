//===- Check.h: what must hold of any model --------------------------------===//
// Takes:    bytes that may be an ONNX model.
// Gives:    whether the importer and the numerics stage kept their promises.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace astra::fuzz {

/// Imports the bytes with bounds for every dynamic dim. A module must verify, pass the numerics stage and verify again;
/// a refusal must be a sentence. Gives "", or what was broken.
std::string brokenPromise(llvm::StringRef bytes);

} // namespace astra::fuzz
