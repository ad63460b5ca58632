//===- Scan.cpp: a scan whose body a composite builds --------------------===//
// Takes:    the sources of a scan and the results of its body.
// Gives:    the `scan`, its function and its projections.
#include "astra/Compose/Scan.h"
#include "astra/Compose/Closure.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

namespace astra::compose {

UOpRef control(Composer &b, Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, llvm::StringRef names,
               llvm::ArrayRef<UOpRef> fns) {
  llvm::Expected<UOpRef> made = b.c.tryMake(op, src, ints, names, DType::Void, fns);
  return made ? *made : b.fail(llvm::toString(made.takeError()));
}

UOpRef result(Composer &b, UOpRef control, int64_t i, DType t, llvm::ArrayRef<UOpRef> shape) {
  Dims src = {control};
  src.append(shape.begin(), shape.end());
  return b.make(Op::Proj, src, {i}, t);
}

UOpRef ScanMaker::declare(UOpRef x, Shape inside) {
  if (!x) return b.fail("a value is missing");
  sources.push_back(x);
  return b.make(Op::Arg, inside, {int64_t(sources.size()) - 1}, x->dtype);
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
  if (b.failed() || llvm::is_contained(body, nullptr)) return results;
  UOpRef func = b.make(Op::Func, body, {int64_t(sources.size())});
  sources.push_back(length);
  UOpRef scan = control(b, Op::Scan, sources, {carries, slices}, "", {func});
  for (auto [i, r] : llvm::enumerate(body)) {
    Dims shape(r->shape.begin(), r->shape.end());
    if (i >= next.size()) shape.insert(shape.begin(), length);
    results[i] = result(b, scan, i, r->dtype, shape);
  }
  return results;
}

std::vector<UOpRef> foldInOrder(Composer &b, llvm::ArrayRef<UOpRef> xs, llvm::ArrayRef<UOpRef> inits,
                                llvm::function_ref<std::vector<UOpRef>(llvm::ArrayRef<UOpRef>)> combine) {
  size_t n = xs.size();
  std::vector<UOpRef> arguments, next, results(n);
  if (b.failed() || n == 0 || inits.size() != n || !b.requireRank(xs[0], 1)) return results;
  Closure closure(b);
  Dims rest(xs[0]->shape.begin() + 1, xs[0]->shape.end()), src;
  for (UOpRef init : inits) {
    arguments.push_back(closure.own(init->dtype, rest));
    src.push_back(b.broadcastTo(init, rest));
  }
  for (UOpRef x : xs) {
    arguments.push_back(closure.own(x->dtype, rest));
    src.push_back(x);
  }
  if (!b.failed()) next = combine(arguments);
  if (!b.failed() && next.size() != n) b.fail("the function of a fold gives " + llvm::Twine(next.size()) + " values");
  for (size_t i = 0; i < n && !b.failed(); ++i) {
    next[i] = b.broadcastTo(next[i], rest);
    if (next[i] && next[i]->dtype != inits[i]->dtype) b.fail("the function of a fold changes the type of a value");
  }
  if (b.failed() || !closure.capture(next)) return results;
  src.append(closure.captured().begin(), closure.captured().end());
  src.push_back(xs[0]->shape[0]);
  UOpRef scan = control(b, Op::Scan, src, {int64_t(n), int64_t(n)}, "", {closure.func(next)});
  for (size_t i = 0; i < n && !b.failed(); ++i) results[i] = result(b, scan, int64_t(i), next[i]->dtype, rest);
  return results;
}

} // namespace astra::compose
