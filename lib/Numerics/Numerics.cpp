//===- Numerics.cpp: the numerics stage ------------------------------------===//
// Takes:    a verified module.
// Gives:    the module with complex values split (Complex.cpp) and sub-byte ones widened (SubByte.cpp), then every node
//           lowered, sources first; function bodies before the ops that call them.
// Keeps:    time linear in the number of nodes; no recursion over the graph.
// Does not: know what an op becomes (Lower.cpp).
#include "astra/Numerics/Numerics.h"
#include "Canonical.h"
#include "Complex.h"
#include "Lower.h"
#include "SubByte.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::numerics;
using llvm::ArrayRef;
using llvm::SmallVector;

static std::vector<UOpRef> allRoots(const Module &m) {
  std::vector<UOpRef> roots = m.roots();
  for (const Equation &e : m.equations) roots.insert(roots.end(), {e.left, e.right});
  return roots;
}

/// Complex and sub-byte values are left at the border alone, as Complex.cpp and SubByte.cpp leave them.
static llvm::Error checkBorder(UOpRef n) {
  if (!isWidened(n))
    return llvm::createStringError(
        llvm::Twine("found ") + info(n->op).mnemonic + " of a sub-byte type after the " +
        "numerics stage, expected casts of arguments, parameters and states, and of results");
  if (isSplit(n)) return llvm::Error::success();
  return llvm::createStringError(llvm::Twine("found ") + info(n->op).mnemonic + " of " + info(n->dtype).text +
                                 " after the numerics stage, expected the two real parts of complex values");
}

namespace {
class Lowering {
public:
  explicit Lowering(Module &m) : m(m), b(m.ctx()), nan(b) {}

  void add(ArrayRef<UOpRef> roots) {
    for (UOpRef n : topoSort(roots)) {
      if (done.contains(n)) continue;
      UOpRef now = lower(b, rebuilt(n));
      m.origins.inherit(now, n);
      done[n] = now;
    }
  }
  UOpRef of(UOpRef n) const { return done.lookup(n); }
  UOpRef output(UOpRef n) {
    UOpRef now = of(n), canonical = nan.of(now);
    m.origins.inherit(canonical, now);
    return canonical;
  }

private:
  /// What programs scatter narrow floats into is f32 until all have run (N4): the caller rounds it.
  UOpRef withWideScatters(UOpRef fn) {
    SmallVector<UOpRef, 4> results(fn->src);
    for (UOpRef &r : results)
      if (r->is(Op::Cast) && r->src[0]->is(Op::Scatter)) r = r->src[0];
    return m.ctx().make(Op::Func, results, fn->ints);
  }

  Module &m;
  Builder b;
  Canonical nan;
  llvm::DenseMap<UOpRef, UOpRef> done;

  UOpRef rebuilt(UOpRef n) {
    auto now = [&](UOpRef x) { return of(x); };
    SmallVector<UOpRef, 8> src(llvm::map_range(n->src, now)), fns(llvm::map_range(n->fns, now));
    // A window is canonical when it is written, so the value that a state takes is the one that the entry goes on with.
    if (n->is(Op::UpdateAt)) src[1] = nan.of(src[1]);
    if (n->is(Op::External)) // what a function sees is the same on every target
      for (UOpRef &x : llvm::MutableArrayRef(src).take_front(n->ntensors)) x = nan.of(x);
    if (n->is(Op::Place)) src[0] = nan.of(src[0]); // so that nobody goes through a kernel's results once more
    if (n->is(Op::Custom)) fns[0] = withWideScatters(fns[0]);
    if (n->is(Op::Proj) && src[0]->is(Op::Custom))
      if (DType stored = src[0]->fns[0]->src[n->ints[0]]->dtype; stored != n->dtype)
        return b.cast(m.ctx().make(Op::Proj, src, n->ints, n->str, stored), n->dtype);
    if (ArrayRef<UOpRef>(fns) == n->fns) return m.ctx().withSources(n, src);
    return m.ctx().make(n->op, src, n->ints, n->str, n->dtype, fns);
  }
};
} // namespace

/// A state is canonical when an entry begins: its first value too.
static void canonicalizeInitial(StateVar &s) {
  if (!s.initial || !byteSize(s.value->dtype)) return;
  Tensor t{s.value->dtype, {int64_t(s.initial->size() / byteSize(s.value->dtype))}, *s.initial};
  canonicalizeNaN(t);
  if (t.bytes != *s.initial) s.initial = std::make_shared<const std::vector<uint8_t>>(std::move(t.bytes));
}

/// Where a value is given out with canonical NaNs, the entry goes on with what it gives out, so that one buffer serves
/// both. Which NaN an op reads is not promised (clause N6).
static void readOutputs(Module &m, Entry &e) {
  Builder b(m.ctx());
  std::vector<UOpRef> roots;
  for (Value &v : e.outputs) roots.push_back(v.value);
  for (StateUpdate &u : e.updates) roots.push_back(u.value);
  std::vector<UOpRef> order = topoSort(roots);
  llvm::DenseMap<UOpRef, UOpRef> canonical; // a computed value -> the select that makes it so
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : order)
    if (n->is(Op::Select) && !has(n->src[1]->op, Leaf) && !n->src[1]->is(Op::Proj) &&
        n == selectCanonical(b, n->src[1]))
      canonical[n->src[1]] = n;
  if (canonical.empty()) return;
  for (UOpRef n : order) {
    if (n->is(Op::Select) && canonical.lookup(n->src[1]) == n) {
      now[n] = now.lookup(n->src[1]);
      continue;
    }
    UOpRef x = b.c.withSources(n, llvm::to_vector(llvm::map_range(n->src, [&](UOpRef s) { return now.lookup(s); })));
    now[n] = canonical.count(n) ? selectCanonical(b, x) : x;
    if (now[n] != n) m.origins.inherit(now[n], n);
  }
  for (Value &v : e.outputs) v.value = now.lookup(v.value);
  for (StateUpdate &u : e.updates) u.value = now.lookup(u.value);
}

llvm::Error astra::runNumerics(Module &m) {
  splitComplex(m);
  widenSubByte(m);
  Lowering stage(m);
  std::vector<UOpRef> roots = allRoots(m);
  for (UOpRef f : functionsOf(roots)) stage.add(f);
  stage.add(roots);
  for (Entry &e : m.entries) {
    for (Value &v : e.outputs) v.value = stage.output(v.value);
    for (StateUpdate &u : e.updates) u.value = stage.output(u.value);
    readOutputs(m, e);
  }
  for (StateVar &s : m.states) canonicalizeInitial(s);
  for (Equation &e : m.equations) e = {stage.of(e.left), stage.of(e.right)};
  m.stage = Stage::Numbers;
  return llvm::Error::success();
}

llvm::Error astra::verifyNumerics(const Module &m) {
  std::vector<UOpRef> roots = allRoots(m), bodies = functionsOf(roots);
  roots.insert(roots.end(), bodies.begin(), bodies.end());
  for (UOpRef n : topoSort(roots)) {
    if (auto e = checkBorder(n)) return e;
    if (!isPrimitive(n))
      return llvm::createStringError(llvm::Twine("found ") + info(n->op).mnemonic + " of " + info(n->dtype).text +
                                     " after the numerics stage, expected primitives (clause N1)");
  }
  return llvm::Error::success();
}
