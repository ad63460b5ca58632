//===- Rows.h: one row of derivatives for each op --------------------------===//
// Gives:    how each op is differentiated, as the two modes read it. The rows are in Rows.cpp; the functions that they
//           name in Movement.cpp, Reduce.cpp, Contract.cpp and Indexing.cpp.
#pragma once
#include "astra/Autograd/Autograd.h"
#include "astra/Autograd/Formula.h"
#include "astra/IR/Builder.h"

namespace astra::autograd {

using Tangents = llvm::ArrayRef<UOpRef>; // one for each tensor source; null: zero

/// The tangent of n, linear in d, of which one at least is not null; null for zero.
using TangentFn = UOpRef (*)(Builder &b, UOpRef n, Tangents d);
/// The cotangent of tensor source i of a linear op, whose own is g.
using TransposeFn = UOpRef (*)(Builder &b, UOpRef n, UOpRef g, unsigned i);

struct Row {
  Op op;
  DerivativeKind kind;
  TangentFn tangent = nullptr;     // Linear and Tangent
  TransposeFn transpose = nullptr; // Linear; the graph of a Tangent is transposed by the sweep
  const char *text = "", *note = "";
};
const Row &rowOf(Op op);
const Formula *formulaOf(Op op);
/// Why n has no derivative though its row gives one to others; null if it has.
const char *refusal(UOpRef n);

// Formula.cpp
UOpRef tangentOf(Builder &b, const Formula &f, UOpRef n, Tangents d);
/// The cotangents of the sources for which `wanted` is true; null for zero.
llvm::SmallVector<UOpRef, 3> transposed(Builder &b, const Formula &f, UOpRef n, UOpRef g, llvm::ArrayRef<bool> wanted);

// ---- what the functions share
inline UOpRef zeros(Builder &b, DType t, Shape s) { return b.splat(b.litInt(t, 0), s); }
inline UOpRef zerosLike(Builder &b, UOpRef x) { return zeros(b, x->dtype, x->shape); }
/// The parts, the imaginary one negated: what a factor is in a cotangent. A real number itself.
inline UOpRef conjugate(Builder &b, UOpRef x) {
  return isComplex(x->dtype) ? b.complex(b.real(x), b.un(Op::Neg, b.imag(x))) : x;
}
inline UOpRef orZeros(Builder &b, UOpRef d, UOpRef like) { return d ? d : zerosLike(b, like); }
/// True where the point of x's axes lies in the domain: one inequality each, the bounds in `bounds`. Null without one.
UOpRef domainMask(Builder &b, Shape shape, llvm::ArrayRef<AffineForm> domain, llvm::ArrayRef<UOpRef> bounds);
/// A value without the axes, repeated along them to the shape.
UOpRef spread(Builder &b, UOpRef x, llvm::ArrayRef<int64_t> axes, Shape shape);

// Movement.cpp, Reduce.cpp, Contract.cpp, Indexing.cpp: by op
#define LINEAR(Name)                                                                                                   \
  UOpRef tangent##Name(Builder &b, UOpRef n, Tangents d);                                                              \
  UOpRef transpose##Name(Builder &b, UOpRef n, UOpRef g, unsigned i);
LINEAR(Reshape)
LINEAR(Permute)
LINEAR(Expand)
LINEAR(Pad)
LINEAR(Shrink)
LINEAR(Flip)
LINEAR(Window)
LINEAR(Cast)
LINEAR(Complex)
LINEAR(Real)
LINEAR(Imag)
LINEAR(Tap)
LINEAR(After)
LINEAR(Contract)
LINEAR(Gather)
LINEAR(Pick)
LINEAR(SliceAt)
LINEAR(UpdateAt)
LINEAR(Compact)
// Mesh.cpp
LINEAR(AllReduce)
LINEAR(ReduceScatter)
LINEAR(AllGather)
LINEAR(AllToAll)
LINEAR(Shift)
LINEAR(Reshard)
#undef LINEAR
// Reduce, cumulate and scatter are linear for some kinds only: sums, and scatter that adds or sets.
UOpRef tangentReduce(Builder &b, UOpRef n, Tangents d);
UOpRef transposeReduce(Builder &b, UOpRef n, UOpRef g, unsigned i);
UOpRef tangentCumulate(Builder &b, UOpRef n, Tangents d);
UOpRef transposeCumulate(Builder &b, UOpRef n, UOpRef g, unsigned i);
UOpRef tangentScatter(Builder &b, UOpRef n, Tangents d);
UOpRef transposeScatter(Builder &b, UOpRef n, UOpRef g, unsigned i);
/// Whether n is transposed by its row's function, and not by the sweep over its tangent.
bool isLinear(UOpRef n);

} // namespace astra::autograd
