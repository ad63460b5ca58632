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

/// The roots without the marks (`after`) that something comes behind the cotangent: what is computed again for a
/// derivative. Forward mode has no cotangents, and the same bits without the marks.
static std::vector<UOpRef> unmarked(Context &c, llvm::ArrayRef<UOpRef> roots, UOpRef cotangent) {
  llvm::DenseSet<UOpRef> depends;
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort(roots)) {
    llvm::SmallVector<UOpRef, 8> src;
    bool marks = n->is(Op::After);
    for (size_t i = 0; i < n->src.size(); ++i)
      if (!marks || i == 0 || !depends.contains(n->src[i])) src.push_back(now.lookup(n->src[i]));
    if (n == cotangent ||
        (marks ? depends.contains(n->src[0]) : llvm::any_of(n->src, [&](UOpRef s) { return depends.contains(s); })))
      depends.insert(n);
    now[n] = marks && src.size() == 1 ? src[0] : c.withSources(n, src);
  }
  std::vector<UOpRef> out;
  for (UOpRef root : roots) out.push_back(now.lookup(root));
  return out;
}

llvm::Expected<UOpRef> autograd::customTangent(Graph &g, UOpRef n, llvm::ArrayRef<UOpRef> d) {
  Builder b(g.c);
  UOpRef function = n->fns[0], cotangent = argumentsOf(function).back();
  if (!cotangent) return nullptr;
  // The function's arguments, then the tangents of the sources that have one.
  std::vector<UOpRef> given(n->src), outputs, seeds;
  given.push_back(n); // the cotangent's place: no result depends on it
  std::vector<UOpRef> gradients = unmarked(g.c, function->src, cotangent);
  for (size_t i = 1; i < d.size(); ++i) {
    if (!d[i]) continue;
    outputs.push_back(gradients[i - 1]);
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
