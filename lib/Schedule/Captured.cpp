//===- Captured.cpp: weights that bodies of control ops read themselves ----===//
// Takes:    a control op and one of its sources.
// Gives:    whether its bodies may have the source in place of their argument.
// Keeps:    what a body carries, or reads slice by slice, stays an argument.
#include "Captured.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

/// The number of the argument that source `i` is; -1 where it is none, or does not stay what it is.
static int64_t capturedAs(UOpRef control, unsigned i) {
  if (i >= control->ntensors) return -1;
  switch (control->op) {
  case Op::Cond: return int64_t(i) - 1;
  case Op::Scan: return i < control->ints[0] + control->ints[1] ? -1 : int64_t(i);
  case Op::While: {
    UOpRef next = control->fns[1]->src[i];
    return next->op == Op::Arg && next->ints[0] == int64_t(i) && next->shape == control->src[i]->shape ? int64_t(i)
                                                                                                       : -1;
  }
  default: return -1;
  }
}

static bool givesToContracts(UOpRef fn, int64_t argument) {
  auto isIt = [&](UOpRef x) { return x->op == Op::Arg && x->ints[0] == argument; };
  return llvm::none_of(fn->src, isIt) && llvm::all_of(topoSort(fn->src), [&](UOpRef n) {
           return n->op == Op::Contract || llvm::none_of(n->tensors(), isIt);
         });
}

bool astra::isReadInBody(UOpRef control, unsigned i) {
  int64_t argument = capturedAs(control, i);
  if (argument < 0) return false;
  UOpRef x = control->src[i];
  if (x->op == Op::Param) return true;
  while (has(x->op, Movement) && x->op != Op::Pad) x = x->src[0];
  return x->op == Op::Param && llvm::all_of(control->fns, [&](UOpRef fn) { return givesToContracts(fn, argument); });
}
