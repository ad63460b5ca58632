//===- FoldProcedural.cpp: elementwise ops on literals ---------------------===//
// Takes:    an elementwise op whose sources are all equal literals throughout.
// Gives:    the literal, computed by the evaluator, which is the meaning of the op; never by the host's float unit.
#include "Fold.h"
#include "Procedures.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

UOpRef rules::foldLiterals(RuleContext r, UOpRef n) {
  if (isSubByte(n->dtype)) return nullptr; // a cast at the border, where such values stay (lib/Numerics/SubByte.h)
  SmallVector<UOpRef, 3> literals;
  for (UOpRef s : n->src) {
    UOpRef k = s->isIndex() ? nullptr : uniformLiteral(s);
    if (!k) return nullptr;
    literals.push_back(k);
  }
  UOpRef folded = literals.empty() ? nullptr : foldScalar(r.c, n->op, n->ints, n->dtype, literals);
  return folded ? spread(r, folded, n->shape) : nullptr;
}
