//===- Forward.cpp: forward mode -------------------------------------------===//
// Takes:    outputs, the values they are differentiated by, a tangent for each.
// Gives:    the tangents of the outputs.
// Keeps:    one pass over the active nodes, sources before users.
#include "Modes.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using llvm::ArrayRef;
using llvm::SmallVector;

llvm::Expected<Derivatives> autograd::forward(Context &c, ArrayRef<UOpRef> outputs, ArrayRef<UOpRef> wrt,
                                              ArrayRef<UOpRef> tangents, Origins *origins, ArrayRef<UOpRef> beside) {
  Graph g(c, origins);
  Builder b(c);
  auto found = activity(outputs, wrt, origins);
  if (!found) return found.takeError();
  llvm::DenseMap<UOpRef, UOpRef> tangent;
  llvm::DenseMap<UOpRef, SmallVector<int64_t, 8>> numbers; // of the tangents of control ops
  for (auto [w, d] : llvm::zip(wrt, tangents)) tangent[w] = d;
  for (UOpRef n : found->order) {
    if (tangent.contains(n)) continue;
    if (n->op == Op::Proj) {
      if (!numbers.contains(n->src[0])) continue;
      SmallVector<UOpRef, 8> src(n->src); // of the type that is stated here: dims may have been carried
      src[0] = g.replaced.find(n->src[0])->second.now;
      tangent[n] = c.make(Op::Proj, src, {numbers[n->src[0]][n->ints[0]]}, {}, n->dtype);
      continue;
    }
    SmallVector<UOpRef, 8> d;
    for (UOpRef s : n->tensors()) d.push_back(tangent.lookup(s));
    if (llvm::none_of(d, [](UOpRef x) { return x; })) continue;
    if (auto call = found->calls.find(n); call != found->calls.end()) {
      auto theirs = forwardCall(g, n, call->second, d);
      if (!theirs) return theirs.takeError();
      numbers[n] = std::move(*theirs);
    } else if (n->op == Op::WithGradient) {
      auto d0 = customTangent(g, n, d);
      if (!d0) return d0.takeError();
      if (*d0) tangent[n] = *d0;
    } else if (const Formula *f = formulaOf(n->op))
      tangent[n] = tangentOf(b, *f, n, d);
    else
      tangent[n] = rowOf(n->op).tangent(b, n, d);
  }
  std::vector<UOpRef> roots = outputs.vec();
  llvm::append_range(roots, beside);
  size_t values = roots.size();
  for (UOpRef o : outputs) roots.push_back(tangent.lookup(o));
  roots = rebuild(g, roots);
  auto middle = roots.begin() + values;
  return Derivatives{{roots.begin(), middle}, {middle, roots.end()}};
}

llvm::Expected<Derivatives> astra::jvp(Context &c, ArrayRef<UOpRef> outputs, ArrayRef<UOpRef> wrt,
                                       ArrayRef<UOpRef> tangents, Origins *origins, ArrayRef<UOpRef> beside) {
  auto d = forward(c, outputs, wrt, tangents, origins, beside);
  if (!d) return d;
  Builder b(c);
  for (auto [o, part] : llvm::zip(outputs, d->derivatives)) part = orZeros(b, part, o);
  return d;
}
