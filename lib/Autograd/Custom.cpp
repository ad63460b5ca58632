//===- Custom.cpp: derivatives that the user states ------------------------===//
// Takes:    a `with_gradient`, the cotangent of its result or the tangents of its sources.
// Gives:    its function's results in place; for forward mode, the transpose of that function.
// Keeps:    a function that is not linear in the cotangent (one that clips it) has no forward mode: refused.
#include "Modes.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;

/// Values over the arguments of a function, over what is given for them.
static std::vector<UOpRef> inlined(Graph &g, llvm::ArrayRef<UOpRef> values, llvm::ArrayRef<UOpRef> given) {
  llvm::DenseMap<UOpRef, UOpRef> made;
  for (UOpRef n : topoSort(values))
    if (n->op == Op::Arg) made[n] = given[n->ints[0]];
  return rebuild(Graph(g.c, g.origins), values, std::move(made));
}

std::vector<UOpRef> autograd::customCotangents(Graph &g, UOpRef now, UOpRef mine) {
  std::vector<UOpRef> given(now->src);
  given.push_back(mine);
  return inlined(g, now->fns[0]->src, given);
}

llvm::Expected<UOpRef> autograd::customTangent(Graph &g, UOpRef n, llvm::ArrayRef<UOpRef> d) {
  Builder b(g.c);
  UOpRef function = n->fns[0], cotangent = argumentsOf(function).back();
  if (!cotangent) return nullptr;
  // The function's arguments, then the tangents of the sources that have one.
  std::vector<UOpRef> given(n->src), outputs, seeds;
  given.push_back(n); // the cotangent's place: no result depends on it
  for (size_t i = 1; i < d.size(); ++i) {
    if (!d[i]) continue;
    outputs.push_back(function->src[i - 1]);
    seeds.push_back(b.arg(int64_t(given.size()), d[i]->dtype, d[i]->shape));
    given.push_back(d[i]);
  }
  auto transposed = backward(g.c, outputs, seeds, cotangent, g.origins);
  if (!transposed) return transposed.takeError();
  UOpRef tangent = transposed->derivatives[0];
  if (!tangent) return nullptr;
  if (llvm::is_contained(topoSort(tangent), cotangent))
    return refuse(n, "forward mode transposes its gradient, which is not linear in the cotangent", g.origins);
  return inlined(g, tangent, given)[0];
}
