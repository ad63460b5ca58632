//===- Safetensors.h: one tensor from a .safetensors file ------------------===//
#pragma once
#include "astra/IR/Module.h"

namespace astra {

/// The bytes of `tensor` in `file`, which must lie in the folder of `beside` (a path; "" is the working folder) or
/// below it: absolute paths, .. and links that lead out are refused, and so is another dtype or shape. Format: an
/// 8-byte little-endian length, a JSON header of that length, the data (github.com/huggingface/safetensors).
llvm::Expected<Bytes> readSafetensor(llvm::StringRef beside, llvm::StringRef file, llvm::StringRef tensor, DType dtype,
                                     llvm::ArrayRef<int64_t> shape);

} // namespace astra
