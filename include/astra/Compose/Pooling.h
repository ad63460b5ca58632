//===- Pooling.h: pools over windows and over whole images -----------------===//
// Takes:    x [N, C, spatial...]; the extents may be symbolic.
// Gives:    windows of the padded input, folded in a plain chain, row-major (N4).
// Keeps:    pads out of what a pool gives: they are the identity of the fold, unless the options count them. f16 and
//           bf16 compute in f32 and round once.
#pragma once
#include "astra/Compose/Windows.h"

namespace astra::compose {

struct PoolOptions {
  WindowOptions window;
  bool ceil = false;      // a last window more, which ends beyond the pads
  bool padsCount = false; // averagePool: pads are zeros that count
  double divisor = 0;     // averagePool: what sums are divided by; 0: the number of elements
};

/// [N, C, places...], of any real type. A window of nothing but pads gives -inf, or the least integer.
UOpRef maxPool(Composer &b, UOpRef x, const PoolOptions &options);

struct MaxPoolResult {
  UOpRef values = nullptr;
  UOpRef indices = nullptr; // i64, row-major numbers in all of x; columnMajor: the spatial axes in reverse order
};
/// The same with the number of the first maximum of each window.
MaxPoolResult maxPoolWithIndices(Composer &b, UOpRef x, const PoolOptions &options, bool columnMajor = false);

/// The inverse of maxPoolWithIndices: zeros, and each element of x where its index says. `shape`: [N, C, spatial...] of
/// the result, at least what the window covers; empty: just that. An index outside of its channel is dropped.
UOpRef maxUnpool(Composer &b, UOpRef x, UOpRef index, llvm::ArrayRef<UOpRef> shape, const WindowOptions &options);

/// The same where an index is a row-major number in the image alone, the last axes of x [channels..., spatial...]:
/// zeros [channels..., image...], and each element of x put where its index says; where `adds`, the sum of those that
/// say the same: the gradient of a max pool. An index outside of the image is dropped.
UOpRef unpool(Composer &b, UOpRef x, UOpRef index, llvm::ArrayRef<UOpRef> image, bool adds);

/// The sum of the window over the number of elements in it; of a float type.
UOpRef averagePool(Composer &b, UOpRef x, const PoolOptions &options);

/// The p-th root of the sum of p-th powers of magnitudes, p >= 1; of a float type.
UOpRef lpPool(Composer &b, UOpRef x, double p, const PoolOptions &options);

/// The last axes of x, as many as `size` has numbers, cut into that many bins each: bin i of n goes from floor(i extent
/// / n) up to ceil((i + 1) extent / n). The means of the bins, of a float type; their maxima, with row-major numbers in
/// the image. An extent is known where it becomes more than one bin.
UOpRef adaptiveAveragePool(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> size);
MaxPoolResult adaptiveMaxPool(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> size);

/// One window over the whole image: [N, C, 1...].
UOpRef globalAveragePool(Composer &b, UOpRef x);
UOpRef globalMaxPool(Composer &b, UOpRef x);
UOpRef globalLpPool(Composer &b, UOpRef x, double p);

} // namespace astra::compose
