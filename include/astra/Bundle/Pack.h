//===- Pack.h: a param's bytes in its stored layout ------------------------===//
// Takes:    row-major bytes.
// Gives:    the bytes that the param's prepare program would give: what the compiler stores, so that nobody packs at
//           load time.
// Does not: choose the layout (the scheduler does).
#pragma once
#include "astra/IR/Module.h"
#include "astra/Schedule/Layout.h"

namespace astra {

/// `data` holds a tensor of this constant shape and dtype, row-major. Blocks that stick out are filled with zeros. The
/// same bytes, shared, when the layout is row-major; sub-byte types have no other layout.
Bytes pack(Bytes data, const Layout &layout, llvm::ArrayRef<int64_t> shape, DType dtype);

/// Bytes of a row-major tensor; rows of sub-byte types are padded to a byte.
uint64_t denseBytes(llvm::ArrayRef<int64_t> shape, DType dtype);

} // namespace astra
