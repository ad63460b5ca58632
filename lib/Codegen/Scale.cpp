//===- Scale.cpp: exponentials on machines that scale in one instruction ---===//
// Takes:    a lowered kernel.
// Gives:    the same kernel, each f32 program of exp with one `scale2`.
// Keeps:    bits. The program scales a number of [1/4, 4) in two steps that round once together (`scaled` in
//           Functions.h), which is what `scale2` computes. It takes a 0 for what is too small so that nothing
//           underflows; here the scaling's own mask does that. A program is found by making it anew of what it may be
//           of: equal nodes are one node.
#include "Scale.h"
#include "astra/Numerics/Functions.h"
#include "astra/Numerics/GraphValue.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"

using namespace astra;
using namespace astra::numerics;
using Real = Graph<float>;

/// As a graph's nodes are when kernels are made of them.
static UOpRef simplified(Builder &b, Real x) {
  RewriteOptions options;
  auto roots = rewrite(b.c, {x.node(b)}, graphRules, options);
  if (roots) return (*roots)[0];
  llvm::consumeError(roots.takeError());
  return x.node(b);
}

/// What x is if n is exp(x), else null.
static UOpRef exponentOf(Builder &b, UOpRef n) {
  if (n->op != Op::Select || n->src[0]->op != Op::Lt || n->src[1] != b.bits(DType::F32, 0)) return nullptr;
  UOpRef x = n->src[0]->src[0], low = b.bits(DType::F32, literalBits(Format<float>::expLow));
  if (n->src[0]->src[1] != low) return nullptr;
  Real program = numerics::exp<float, Graph>(Real(b, x));
  return program.node(b) == n || simplified(b, program) == n ? x : nullptr;
}

static Real scaledExp(Builder &b, Real x) {
  constexpr float low = Format<float>::expLow, high = Format<float>::expHigh;
  ExpParts<float, Graph> e(select(high < x, Real(high), x));
  Real m = fma(e.r, fma(e.r, e.tail, 1.0f), 1.0f);
  return select(x < low, Real(0.0f), Real(b, b.scale2(m.node(b), e.k.node(b))));
}

Kernel astra::scaleInOne(Context &c, const Kernel &k) {
  Builder b(c);
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort(k.sink)) {
    if (UOpRef x = exponentOf(b, n)) {
      now[n] = simplified(b, scaledExp(b, Real(b, now[x])));
      continue;
    }
    llvm::SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(now[s]);
    now[n] = c.withSources(n, src);
  }
  Kernel out = k;
  out.sink = now[k.sink];
  return out;
}
