//===- Complex.cpp: complex values become two real ones --------------------===//
// Takes:    entries and function bodies, callees first.
// Gives:    each node once per body: the parts of a complex value, or the node over split sources.
// Keeps:    time linear in the number of nodes; no recursion over the graph. A function is split once for each way in
//           which its arguments are complex: an argument that the body does not use has no type of its own.
#include "Complex.h"
#include "ComplexParts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <set>

using namespace astra;
using namespace astra::numerics;
using llvm::ArrayRef;
using llvm::SmallVector;

std::vector<UOpRef> numerics::functionsOf(ArrayRef<UOpRef> roots) {
  std::vector<UOpRef> found;
  llvm::DenseSet<UOpRef> seen;
  auto scan = [&](ArrayRef<UOpRef> from) {
    for (UOpRef n : topoSort(from))
      for (UOpRef f : n->fns)
        if (seen.insert(f).second) found.push_back(f);
  };
  scan(roots);
  for (size_t i = 0; i < found.size(); ++i) scan(found[i]);
  llvm::sort(found, [](UOpRef a, UOpRef b) { return a->id < b->id; }); // a body is made before the op that calls it
  return found;
}

static bool isBorder(UOpRef n) { return n->is(Op::Arg) || n->is(Op::Param) || n->is(Op::State); }

bool numerics::isSplit(UOpRef n) {
  if (n->is(Op::Real) || n->is(Op::Imag)) return isBorder(n->src[0]);
  if (!isComplex(n->dtype)) return true;
  return isBorder(n) || n->is(Op::Complex) || (n->is(Op::Tap) && n->src[0]->is(Op::Complex));
}

namespace {
using Kinds = std::vector<bool>; // of a function's arguments: which are complex

Kinds kindsOf(ArrayRef<UOpRef> values) {
  Kinds k;
  for (UOpRef v : values) k.push_back(isComplex(v->dtype));
  return k;
}
/// What a control op gives its functions.
Kinds argumentKinds(UOpRef control) { return kindsOf(control->tensors().drop_front(control->is(Op::Cond) ? 1 : 0)); }
/// How many real values the first n become.
int64_t countSplit(const Kinds &kinds, size_t n) {
  return int64_t(n) + std::count(kinds.begin(), kinds.begin() + n, true);
}

class Splitter {
public:
  explicit Splitter(Module &m) : m(m), b(m.ctx()) {}
  void run(ArrayRef<UOpRef> functions);

private:
  Module &m;
  Builder b;
  llvm::DenseMap<UOpRef, Parts> done;                     // in the body at hand
  const Kinds *arguments = nullptr;                       // of the function at hand; null in entries
  std::map<std::pair<uint32_t, Kinds>, UOpRef> functions; // looked up only

  void add(ArrayRef<UOpRef> roots);
  Parts split(UOpRef n);
  Parts leaf(UOpRef n);
  Parts arithmetic(UOpRef n);
  UOpRef control(UOpRef n);
  Parts projection(UOpRef n);
  Parts partByPart(UOpRef n);
  UOpRef border(UOpRef n);

  Parts of(UOpRef n) const { return done.lookup(n); }
  /// The sources of which each complex one becomes its parts.
  SmallVector<UOpRef, 8> spread(ArrayRef<UOpRef> from) const {
    SmallVector<UOpRef, 8> src;
    for (UOpRef s : from) {
      src.push_back(of(s).re);
      if (of(s).im) src.push_back(of(s).im);
    }
    return src;
  }
};

void Splitter::add(ArrayRef<UOpRef> roots) {
  for (UOpRef n : topoSort(roots)) {
    auto [at, fresh] = done.try_emplace(n);
    if (!fresh) continue;
    Parts p = split(n);
    m.origins.inherit(p.re, n);
    if (p.im) m.origins.inherit(p.im, n);
    done[n] = p;
  }
}

Parts Splitter::split(UOpRef n) {
  if (n->is(Op::WithGradient)) return of(n->src[0]); // nothing is differentiated any more
  if (has(n->op, Control) && !n->is(Op::Func) && !n->is(Op::Proj)) return {control(n)};
  if (n->is(Op::Proj)) return projection(n);
  if (isBorder(n) || n->isConst()) return leaf(n);
  bool complex = isComplex(n->dtype) || llvm::any_of(n->src, [&](UOpRef s) { return of(s).im; });
  return complex ? arithmetic(n) : Parts{b.c.withSources(n, spread(n->src))};
}

Parts Splitter::leaf(UOpRef n) {
  bool complex = isComplex(n->dtype);
  DType part = partOf(n->dtype);
  if (n->isConst()) return complex ? Parts{b.bits(part, uint64_t(n->ints[0])), b.bits(part, 0)} : Parts{n};
  SmallVector<UOpRef, 8> shape = spread(n->src);
  if (n->is(Op::Arg) && arguments) {
    int64_t at = countSplit(*arguments, n->ints[0]);
    return complex ? Parts{b.arg(at, part, shape), b.arg(at + 1, part, shape)} : Parts{b.arg(at, n->dtype, shape)};
  }
  UOpRef now = b.c.withSources(n, shape);
  return complex ? Parts{b.real(now), b.imag(now)} : Parts{now};
}

Parts Splitter::arithmetic(UOpRef n) {
  auto x = [&](unsigned i) { return of(n->src[i]); };
  auto zero = [&](UOpRef like) { return b.lit(like->dtype, 0); };
  switch (n->op) {
  case Op::Complex: return {x(0).re, x(1).re};
  case Op::Real: return {x(0).re};
  case Op::Imag: return {x(0).im};
  case Op::Mul: return multiply(b, x(0), x(1));
  case Op::Div: return divide(b, x(0), x(1));
  case Op::Abs: return {magnitude(b, x(0))};
  case Op::Eq: return {b.bin(Op::And, b.eq(x(0).re, x(1).re), b.eq(x(0).im, x(1).im))};
  case Op::Ne: return {b.bin(Op::Or, b.bin(Op::Ne, x(0).re, x(1).re), b.bin(Op::Ne, x(0).im, x(1).im))};
  case Op::Cast: {
    DType part = partOf(n->dtype);
    if (n->dtype == DType::Bool)
      return {b.bin(Op::Or, b.bin(Op::Ne, x(0).re, zero(x(0).re)), b.bin(Op::Ne, x(0).im, zero(x(0).im)))};
    if (x(0).im) return {b.cast(x(0).re, part), b.cast(x(0).im, part)};
    return {b.cast(x(0).re, part, n->ints[0]), b.splat(b.lit(part, 0), x(0).re->shape)};
  }
  case Op::Contract: return contraction(b, n->ints, spread(n->indices()), x(0), x(1));
  case Op::Reduce: {
    ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
    if (s.kind != ReduceKind::Prod) return partByPart(n);
    Parts p = x(0);
    for (int64_t axis : llvm::reverse(s.axes)) p = product(b, p, axis);
    return p;
  }
  case Op::Cumulate:
    return CumulateKind(n->ints[0]) == CumulateKind::Prod ? runningProduct(b, x(0), n->ints[1]) : partByPart(n);
  default: return partByPart(n); // sums, select, and what moves elements
  }
}

Parts Splitter::partByPart(UOpRef n) {
  auto with = [&](bool imaginary) {
    SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(imaginary && of(s).im ? of(s).im : of(s).re);
    SmallVector<int64_t, 8> ints(n->ints);
    if ((n->is(Op::Pad) || n->is(Op::Place)) && imaginary) ints[0] = 0;
    std::string name = n->str.str();
    if (n->is(Op::Tap)) name += imaginary ? ".im" : ".re";
    return b.c.make(n->op, src, ints, name, partOf(n->dtype));
  };
  return {with(false), with(true)};
}

UOpRef Splitter::control(UOpRef n) {
  Kinds kinds = argumentKinds(n);
  SmallVector<UOpRef, 2> fns;
  for (UOpRef f : n->fns) fns.push_back(functions.at({f->id, kinds}));
  SmallVector<int64_t, 2> ints(n->ints);
  if (n->is(Op::Scan)) {
    int64_t carries = countSplit(kinds, n->ints[0]), slices = countSplit(kinds, n->ints[0] + n->ints[1]) - carries;
    ints = {carries, slices};
  }
  return b.c.make(n->op, spread(n->src), ints, n->str, n->dtype, fns);
}

Parts Splitter::projection(UOpRef n) {
  if (n->src[0]->is(Op::External)) return {b.c.withSources(n, spread(n->src))};
  Kinds results = kindsOf(n->src[0]->fns.back()->src);
  size_t i = n->ints[0], values = std::min(i, results.size()); // beyond the results: carried dims
  int64_t at = countSplit(results, values) + int64_t(i - values);
  auto proj = [&](int64_t number) { return b.c.make(Op::Proj, spread(n->src), {number}, n->str, partOf(n->dtype)); };
  return isComplex(n->dtype) ? Parts{proj(at), proj(at + 1)} : Parts{proj(at)};
}

/// An output or a new state: complex again, if it was.
UOpRef Splitter::border(UOpRef n) {
  if (!of(n).im) return of(n).re;
  if (!n->is(Op::Tap)) return b.complex(of(n).re, of(n).im);
  Parts x = of(n->src[0]);
  return b.c.make(Op::Tap, {b.complex(x.re, x.im)}, {}, n->str);
}

void Splitter::run(ArrayRef<UOpRef> called) {
  std::vector<UOpRef> roots = m.roots();
  std::map<uint32_t, std::set<Kinds>> wanted; // by function
  auto scan = [&](ArrayRef<UOpRef> from) {
    for (UOpRef n : topoSort(from))
      if (!n->is(Op::WithGradient))
        for (UOpRef f : n->fns) wanted[f->id].insert(argumentKinds(n));
  };
  scan(roots);
  for (UOpRef f : called) scan(f);
  for (UOpRef f : called)
    for (const Kinds &kinds : wanted[f->id]) {
      done.clear();
      arguments = &kinds;
      add(f->src);
      functions[{f->id, kinds}] = b.c.make(Op::Func, spread(f->src), {countSplit(kinds, kinds.size())});
    }
  done.clear();
  arguments = nullptr;
  add(roots);
  for (Entry &e : m.entries) {
    for (Value &v : e.outputs) v.value = border(v.value);
    for (StateUpdate &u : e.updates) u.value = border(u.value);
  }
}
} // namespace

void numerics::splitComplex(Module &m) {
  std::vector<UOpRef> roots = m.roots(), functions = functionsOf(roots);
  auto complex = [](ArrayRef<UOpRef> from) {
    return llvm::any_of(topoSort(from), [](UOpRef n) {
      return isComplex(n->dtype) || llvm::any_of(n->src, [](UOpRef s) { return isComplex(s->dtype); });
    });
  };
  if (complex(roots) || llvm::any_of(functions, [&](UOpRef f) { return complex(f); })) Splitter(m).run(functions);
}
