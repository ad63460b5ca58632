//===- ScanMaker.h: a scan whose body a lowering builds --------------------===//
// Takes:    the length; then, in this order, carried values, tensors sliced along axis 0, values closed over.
// Gives:    what stands for each of them in the body, and the scan's results from the body's.
// Keeps:    the body closed: what it reads of the graph outside must have been declared here (literals and symbolic
//           integers need not).
// Does not: lower graphs inside of nodes.
#pragma once
#include "Node.h"

namespace astra::onnx {

class ScanMaker {
public:
  ScanMaker(Node &n, UOpRef length) : n(n), length(length) {}

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

  Node &n;
  UOpRef length;
  int64_t carries = 0, slices = 0;
  llvm::SmallVector<UOpRef, 8> sources;
};

} // namespace astra::onnx
