//===- Scan.h: a scan whose body a composite builds ------------------------===//
// Takes:    the length; then, in this order, carried values, tensors sliced along axis 0, values closed over.
// Gives:    what stands for each of them in the body, and the scan's results from the body's.
// Keeps:    the body closed: what it reads of the graph outside must have been declared here (literals and symbolic
//           integers need not).
// Does not: lower graphs inside of nodes.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// A control op; a refusal by its type rule is a failure.
UOpRef control(Composer &b, Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, llvm::StringRef names,
               llvm::ArrayRef<UOpRef> fns);
/// Result number i of a control op.
UOpRef result(Composer &b, UOpRef control, int64_t i, DType t, llvm::ArrayRef<UOpRef> shape);

class ScanMaker {
public:
  ScanMaker(Composer &b, UOpRef length) : b(b), length(length) {}

  /// The value at the beginning of a step; the first step sees `initial`.
  UOpRef carry(UOpRef initial);
  /// Row i of x in step i; x is as long as the scan.
  UOpRef slice(UOpRef x);
  /// x itself.
  UOpRef close(UOpRef x) { return declare(x, x ? x->shape : Shape()); }

  /// The final carries, then each of `stacked` with a leading axis of the scan's length. Nulls after a failure.
  std::vector<UOpRef> finish(llvm::ArrayRef<UOpRef> next, llvm::ArrayRef<UOpRef> stacked);

private:
  UOpRef declare(UOpRef x, Shape inside);

  Composer &b;
  UOpRef length;
  int64_t carries = 0, slices = 0;
  llvm::SmallVector<UOpRef, 8> sources;
};

/// What axis 0 of each of xs is folded to, one element after another from `inits`, scalars: `combine` gives the next
/// values for those so far and those of a step, of whatever axes there are besides. It may read what is around it.
std::vector<UOpRef> foldInOrder(Composer &b, llvm::ArrayRef<UOpRef> xs, llvm::ArrayRef<UOpRef> inits,
                                llvm::function_ref<std::vector<UOpRef>(llvm::ArrayRef<UOpRef>)> combine);

} // namespace astra::compose
