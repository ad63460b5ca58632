//===- Rebuild.cpp: graphs with some nodes exchanged -----------------------===//
// Takes:    roots, and what some nodes are exchanged for.
// Gives:    the roots over the exchanged nodes.
// Keeps:    time linear in what the roots reach; no recursion.
#include "Modes.h"

using namespace astra;
using namespace astra::autograd;
using llvm::SmallVector;

std::vector<UOpRef> autograd::rebuild(const Graph &g, llvm::ArrayRef<UOpRef> roots,
                                      llvm::DenseMap<UOpRef, UOpRef> made) {
  if (made.empty() && g.replaced.empty()) return roots.vec();
  auto replacement = [&](UOpRef n) { // of a result
    auto it = n->op == Op::Proj ? g.replaced.find(n->src[0]) : g.replaced.end();
    return it == g.replaced.end() ? nullptr : &it->second;
  };
  struct Frame {
    UOpRef node;
    uint32_t next = 0;
  };
  SmallVector<Frame, 32> stack;
  auto need = [&](UOpRef n) {
    if (!made.contains(n)) stack.push_back({n});
  };
  for (UOpRef r : roots) {
    if (!r) continue;
    need(r);
    while (!stack.empty()) {
      UOpRef n = stack.back().node;
      const Replacement *other = replacement(n);
      uint32_t &next = stack.back().next;
      if (next < n->src.size()) {
        UOpRef s = n->src[next++];
        need(other && s == n->src[0] ? other->now : s);
        continue;
      }
      stack.pop_back();
      SmallVector<UOpRef, 8> src;
      for (UOpRef s : n->src) src.push_back(other && s == n->src[0] ? made.lookup(other->now) : made.lookup(s));
      if (other)
        made[n] = g.c.make(Op::Proj, src, {other->number[n->ints[0]]}, {}, n->dtype);
      else
        made[n] = g.c.withSources(n, src);
      if (g.origins) g.origins->inherit(made[n], n);
    }
  }
  std::vector<UOpRef> out;
  for (UOpRef r : roots) out.push_back(r ? made.lookup(r) : nullptr);
  return out;
}
