//===- Inline.cpp: a function's body in place of its call --------------------===//
#include "Inline.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"

using namespace astra;
using llvm::SmallVector;

SmallVector<UOpRef, 8> astra::inlineFunction(Context &c, UOpRef function, llvm::ArrayRef<UOpRef> args,
                                             llvm::function_ref<void(UOpRef now, UOpRef was)> each) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort(function->src)) {
    SmallVector<UOpRef, 6> src;
    for (UOpRef s : n->src) src.push_back(now.lookup(s));
    UOpRef to = now[n] = n->op == Op::Arg ? args[n->ints[0]] : c.withSources(n, src);
    if (each && n->op != Op::Arg) each(to, n);
  }
  SmallVector<UOpRef, 8> out;
  for (UOpRef r : function->src) out.push_back(now.lookup(r));
  return out;
}
