//===- ScanMaker.cpp: a scan whose body a lowering builds ------------------===//
// Takes:    the sources of a scan and the results of its body.
// Gives:    the `scan`, its function and its projections.
#include "ScanMaker.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

namespace astra::onnx {

UOpRef ScanMaker::declare(UOpRef x, Shape inside) {
  if (!x) return n.fail("a value is missing");
  sources.push_back(x);
  return n.make(Op::Arg, inside, {int64_t(sources.size()) - 1}, x->dtype);
}

UOpRef ScanMaker::carry(UOpRef initial) {
  assert(carries == int64_t(sources.size()) && "carries are declared first");
  ++carries;
  return declare(initial, initial ? initial->shape : Shape());
}

UOpRef ScanMaker::slice(UOpRef x) {
  assert(carries + slices == int64_t(sources.size()) && "slices are declared before what is closed over");
  ++slices;
  return declare(x, x ? x->shape.drop_front() : Shape());
}

std::vector<UOpRef> ScanMaker::finish(llvm::ArrayRef<UOpRef> next, llvm::ArrayRef<UOpRef> stacked) {
  std::vector<UOpRef> body(next.begin(), next.end());
  body.insert(body.end(), stacked.begin(), stacked.end());
  std::vector<UOpRef> results(body.size());
  if (n.failed() || llvm::is_contained(body, nullptr)) return results;
  UOpRef func = n.make(Op::Func, body, {int64_t(sources.size())});
  sources.push_back(length);
  llvm::Expected<UOpRef> scan = n.c.tryMake(Op::Scan, sources, {carries, slices}, {}, DType::Void, {func});
  if (!scan) {
    n.fail(llvm::toString(scan.takeError()));
    return results;
  }
  for (auto [i, r] : llvm::enumerate(body)) {
    Dims parts = {*scan};
    if (i >= next.size()) parts.push_back(length);
    parts.append(r->shape.begin(), r->shape.end());
    results[i] = n.make(Op::Proj, parts, {int64_t(i)}, r->dtype);
  }
  return results;
}

} // namespace astra::onnx
