//===- Reverse.cpp: reverse mode -------------------------------------------===//
// Takes:    outputs, their cotangents, the values they are differentiated by.
// Gives:    the cotangents of those values.
// Keeps:    one sweep over the active nodes, users before sources; contributions to a cotangent are added from left to
//           right as the sweep meets them. A row whose tangent is a graph of other ops is transposed by a sweep over
//           that graph alone: it is linear in stand-ins for the tangents.
#include "Modes.h"
#include "Recompute.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
class Reverse {
public:
  Reverse(Graph &g, Recompute *again = nullptr) : g(g), b(g.c), again(again) {}

  llvm::Error run(ArrayRef<UOpRef> outputs, ArrayRef<UOpRef> seeds, ArrayRef<UOpRef> wrt) {
    auto found = activity(outputs, wrt, g.origins);
    if (!found) return found.takeError();
    if (again) again->cut(found->order);
    for (auto [o, seed] : llvm::zip(outputs, seeds))
      if (seed && found->is(o)) add(o, seed);
    llvm::DenseSet<UOpRef> leaves(wrt.begin(), wrt.end());
    for (UOpRef n : llvm::reverse(found->order))
      if (!leaves.contains(n)) {
        if (again && again->begins(n)) again->begin(n, arrived(leaves));
        size_t before = g.c.size();
        if (auto e = step(n, *found)) return e;
        if (!g.origins) continue;
        for (size_t id = before; id < g.c.size(); ++id) // what the gradient of a node needs has its name
          if (UOpRef made = g.c.node(id); !made->isIndex()) g.origins->inherit(made, n);
      }
    return llvm::Error::success();
  }
  UOpRef of(UOpRef n) const { return cotangent.lookup(n); }

private:
  Graph &g;
  Builder b;
  llvm::DenseMap<UOpRef, UOpRef> cotangent;
  llvm::DenseMap<UOpRef, SmallVector<UOpRef, 8>> results; // of control ops
  Recompute *again;                                       // may be null
  std::vector<UOpRef> touched;                            // whose cotangents changed since the last segment began

  void add(UOpRef n, UOpRef part) {
    if (!part) return;
    UOpRef &slot = cotangent[n];
    slot = slot ? b.add(slot, part) : part;
    if (again) touched.push_back(n);
  }

  /// What the sweep has to have computed before it enters a segment: the gradients so far, and the cotangents of what
  /// lies before that segment's end.
  std::vector<UOpRef> arrived(const llvm::DenseSet<UOpRef> &leaves) {
    std::vector<UOpRef> out;
    llvm::DenseSet<UOpRef> seen;
    for (UOpRef n : touched)
      if (seen.insert(n).second && (leaves.contains(n) || !again->isPast(n))) out.push_back(of(n));
    touched.clear();
    return out;
  }

  llvm::Error step(UOpRef n, const Activity &a) {
    if (auto call = a.calls.find(n); call != a.calls.end()) {
      auto theirs = results.find(n);
      if (theirs == results.end()) return llvm::Error::success();
      auto sources = backwardCall(g, n, call->second, theirs->second);
      if (!sources) return sources.takeError();
      for (auto [s, part] : llvm::zip(n->tensors(), *sources)) add(s, part);
      return llvm::Error::success();
    }
    UOpRef mine = of(n);
    if (!mine) return llvm::Error::success();
    if (n->op == Op::Proj) {
      auto &all = results[n->src[0]];
      all.resize(n->src[0]->fns.back()->src.size());
      all[n->ints[0]] = mine;
      return llvm::Error::success();
    }
    SmallVector<bool, 4> wanted;
    for (UOpRef s : n->tensors()) wanted.push_back(a.is(s));
    UOpRef now = again ? again->of(n) : n; // the same, perhaps computed again
    if (n->op == Op::WithGradient) {
      for (auto [s, part] : llvm::zip(n->tensors().drop_front(), customCotangents(g, now, mine)))
        if (a.is(s)) add(s, part);
      return llvm::Error::success();
    }
    if (const Formula *f = formulaOf(n->op)) {
      for (auto [s, part] : llvm::zip(n->tensors(), transposed(b, *f, now, mine, wanted))) add(s, part);
      return llvm::Error::success();
    }
    if (!isLinear(n)) return throughTangent(n, now, mine, wanted);
    for (unsigned i = 0; i < n->ntensors; ++i)
      if (wanted[i]) add(n->src[i], rowOf(n->op).transpose(b, now, mine, i));
    return llvm::Error::success();
  }

  llvm::Error throughTangent(UOpRef n, UOpRef now, UOpRef mine, ArrayRef<bool> wanted) {
    SmallVector<UOpRef, 3> standIns(n->ntensors), wrt;
    for (unsigned i = 0; i < n->ntensors; ++i)
      if (wanted[i]) { // a node that nothing made before depends on; none is left in the result
        std::string fresh = "\1" + std::to_string(g.c.size());
        wrt.push_back(standIns[i] = b.param(fresh, n->src[i]->dtype, n->src[i]->shape));
      }
    UOpRef tangent = rowOf(n->op).tangent(b, now, standIns);
    Reverse inner(g);
    if (auto e = inner.run(tangent, mine, wrt)) return e;
    for (unsigned i = 0; i < n->ntensors; ++i)
      if (wanted[i]) add(n->src[i], inner.of(standIns[i]));
    return llvm::Error::success();
  }
};
} // namespace

llvm::Expected<Derivatives> autograd::backward(Context &c, ArrayRef<UOpRef> outputs, ArrayRef<UOpRef> cotangents,
                                               ArrayRef<UOpRef> wrt, Origins *origins, ArrayRef<UOpRef> beside,
                                               unsigned segments) {
  Graph g(c, origins);
  std::optional<Recompute> again;
  if (segments > 1) again.emplace(c, origins, segments);
  Reverse sweep(g, again ? &*again : nullptr);
  if (auto e = sweep.run(outputs, cotangents, wrt)) return std::move(e);
  std::vector<UOpRef> roots = outputs.vec();
  llvm::append_range(roots, beside);
  size_t values = roots.size();
  for (UOpRef w : wrt) roots.push_back(sweep.of(w));
  roots = rebuild(g, roots);
  auto middle = roots.begin() + values;
  return Derivatives{{roots.begin(), middle}, {middle, roots.end()}};
}

llvm::Expected<Derivatives> astra::vjp(Context &c, ArrayRef<UOpRef> outputs, ArrayRef<UOpRef> cotangents,
                                       ArrayRef<UOpRef> wrt, Origins *origins, ArrayRef<UOpRef> beside,
                                       unsigned segments) {
  auto d = backward(c, outputs, cotangents, wrt, origins, beside, segments);
  if (!d) return d;
  Builder b(c);
  for (auto [w, part] : llvm::zip(wrt, d->derivatives)) part = orZeros(b, part, w);
  return d;
}
