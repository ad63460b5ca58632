//===- Npy.h: NumPy's array files -------------------------------------------===//
// Gives:    reading and writing of .npy, format versions 1.0 to 3.0, little-endian, C order (numpy.lib.format).
// Does not: read pickled objects, Fortran order or big-endian data: refused with a sentence.
#pragma once
#include "astra/IR/Eval.h"

namespace astra {

/// The array in `path`. Types without a NumPy name (bf16, fp8) are read from raw bytes of the same width (`|V2`, `|V1`)
/// when `expected` asks for one; any other difference to `expected` is left to the caller.
llvm::Expected<Tensor> readNpy(llvm::StringRef path, DType expected);

/// Writes to a temporary file beside `path` and renames it: nothing half-written stays.
llvm::Error writeNpy(llvm::StringRef path, const Tensor &t);

/// Writes `bytes` the same way.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes);

} // namespace astra
