//===- Index.h: symbolic integers ------------------------------------------===//
// Gives:    arithmetic on index UOps. add, sub and mul are kept in polynomial normal form (a sum of integer multiples
//           of products of atoms, terms ordered by structural hash, the constant last), so equal polynomials are the
//           same node. floordiv, mod, min and max fold constants and what divides exactly.
// Keeps:    bounds: every node carries lo <= value <= hi for all values of its dims and ranges; bounds saturate at
//           +-2^62.
// Does not: use bounds to remove div and mod: those are rules with proofs (Rewrite).
// Meaning:  integers are mathematical; the runtime's evaluation is checked against overflow. floordiv and mod need a
//           divisor > 0.
#pragma once
#include "astra/IR/UOp.h"

namespace astra {

UOpRef idxAdd(Context &c, UOpRef a, UOpRef b);
UOpRef idxSub(Context &c, UOpRef a, UOpRef b);
UOpRef idxMul(Context &c, UOpRef a, UOpRef b);
UOpRef idxDiv(Context &c, UOpRef a, UOpRef b); // floor
UOpRef idxMod(Context &c, UOpRef a, UOpRef b); // 0 <= r < b
UOpRef idxMin(Context &c, UOpRef a, UOpRef b);
UOpRef idxMax(Context &c, UOpRef a, UOpRef b);
inline UOpRef idxCeilDiv(Context &c, UOpRef a, UOpRef b) {
  return idxDiv(c, idxAdd(c, a, idxSub(c, b, c.index(1))), b);
}
/// Block number i, of `size` elements, of an axis: where it begins and how many elements of it there are; cut at the
/// end of the axis where bounds do not show that it lies inside.
struct IndexBlock {
  UOpRef begin, size;
};
IndexBlock idxBlock(Context &c, UOpRef extent, UOpRef i, int64_t size);
/// The product of all of them; 1 for none.
UOpRef idxProduct(Context &c, llvm::ArrayRef<UOpRef> xs);

/// One term of a polynomial: coefficient times a product of atoms (hash-ordered; empty for the constant term).
struct IndexTerm {
  int64_t coefficient;
  llvm::SmallVector<UOpRef, 2> atoms;
};
/// The terms of an index expression, in normal order; a constant term, if any, last. An atom is its own term.
llvm::SmallVector<IndexTerm, 4> terms(UOpRef x);
UOpRef fromTerms(Context &c, llvm::ArrayRef<IndexTerm> ts);
/// t / d as a monomial; nothing where d, which is positive, does not divide it.
std::optional<IndexTerm> divideTerm(const IndexTerm &t, const IndexTerm &d);

/// An extent that one dim gives: scale * dim + offset, scale >= 1.
struct DimMultiple {
  UOpRef dim;
  int64_t scale, offset;
};
/// What an extent says of a dim, if it is of one dim alone: who knows the extent knows the dim.
std::optional<DimMultiple> dimMultiple(UOpRef extent);

/// Bounds of left + right that take into account that atoms occur in several terms; nothing where that does not help.
std::optional<std::pair<int64_t, int64_t>> idxSumBounds(UOpRef left, UOpRef right);

/// x with every node in `from` replaced by its counterpart in `to`, rebuilt in normal form.
UOpRef idxSubstitute(Context &c, UOpRef x, llvm::ArrayRef<UOpRef> from, llvm::ArrayRef<UOpRef> to);
/// x with each dim that one of the equations has alone on a side replaced by the other side: of `n == 2*m`, n.
UOpRef idxByEquations(Context &c, UOpRef x, llvm::ArrayRef<Equation> equations);
/// Whether the equations, used like this, show that two symbolic integers are equal.
bool idxAreEqual(Context &c, UOpRef x, UOpRef y, llvm::ArrayRef<Equation> equations);
/// add, mul, floordiv, mod, min or max of two integers; nothing on overflow, division by what is not positive, or
/// another op.
std::optional<int64_t> idxApply(Op op, int64_t a, int64_t b);
/// The value of x where each dim or range is given by `value` (nothing when it gives nothing, on overflow or division
/// by zero).
std::optional<int64_t> idxEvaluate(UOpRef x, llvm::function_ref<std::optional<int64_t>(UOpRef)> value);

} // namespace astra
