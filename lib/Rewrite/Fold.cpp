//===- Fold.cpp: literals --------------------------------------------------===//
#include "Fold.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"

using namespace astra;

UOpRef astra::foldScalar(Context &c, Op op, llvm::ArrayRef<int64_t> ints, DType result,
                         llvm::ArrayRef<UOpRef> literals) {
  llvm::SmallVector<std::pair<DType, uint64_t>, 3> sources;
  for (UOpRef l : literals) sources.push_back({l->dtype, uint64_t(l->ints[0])});
  auto bits = foldElementwise(op, ints, result, sources);
  if (bits) return c.literal(result, *bits);
  llvm::consumeError(bits.takeError());
  return nullptr;
}

UOpRef astra::spread(RuleContext r, UOpRef literal, Shape shape) {
  if (shape.empty()) return literal;
  if (r.level == Level::Kernel) return r.c.make(Op::Splat, {literal}, {*shape[0]->constIndex()});
  return Builder(r.c).splat(literal, shape);
}

UOpRef astra::uniformLiteral(UOpRef x) {
  for (unsigned depth = 0; depth < 4; ++depth) { // a splat in its normal form is expand(reshape(literal))
    if (x->isConst()) return x->isIndex() ? nullptr : x;
    if (x->op != Op::Reshape && x->op != Op::Expand && x->op != Op::Splat) return nullptr;
    x = x->src[0];
  }
  return nullptr;
}
