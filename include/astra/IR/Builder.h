//===- Builder.h: making graphs from C++ -----------------------------------===//
// Gives:    one function per op and the small composites that everybody needs. Elementwise functions broadcast scalars
//           (rank 0) to the other source's shape; nothing else broadcasts by itself. All sources must be of one dtype.
//           A wrong call is a fatal internal error (Context::make): check user input first.
#pragma once
#include "astra/IR/Contract.h"
#include "astra/IR/Index.h"
#include "astra/IR/UOp.h"

namespace astra {

class Builder {
public:
  explicit Builder(Context &c) : c(c) {}
  Context &c;

  // literals and leaves
  UOpRef lit(DType t, double v); // rounded once to t (exact for integers up to 2^53)
  UOpRef litInt(DType t, int64_t v);
  UOpRef bits(DType t, uint64_t v) { return c.literal(t, v); }
  UOpRef idx(int64_t v) { return c.index(v); }
  UOpRef dim(llvm::StringRef name, int64_t lo, int64_t hi);
  UOpRef arg(int64_t index, DType t, Shape shape);
  UOpRef param(llvm::StringRef name, DType t, Shape shape);
  UOpRef state(llvm::StringRef name, DType t, Shape shape);
  UOpRef iota(DType t, Shape shape, int64_t axis);
  UOpRef fromIndex(UOpRef index, DType t);
  UOpRef extent(UOpRef i64scalar, int64_t lo, int64_t hi);

  // elementwise: un(Op::Neg, x), bin(Op::Add, x, y), tern(Op::Fma, ...) with scalar broadcast; the common ones by name
  UOpRef un(Op op, UOpRef x);
  UOpRef bin(Op op, UOpRef x, UOpRef y);
  UOpRef tern(Op op, UOpRef x, UOpRef y, UOpRef z);
  UOpRef add(UOpRef x, UOpRef y) { return bin(Op::Add, x, y); }
  UOpRef sub(UOpRef x, UOpRef y) { return bin(Op::Sub, x, y); }
  UOpRef mul(UOpRef x, UOpRef y) { return bin(Op::Mul, x, y); }
  UOpRef div(UOpRef x, UOpRef y) { return bin(Op::Div, x, y); }
  UOpRef max(UOpRef x, UOpRef y) { return bin(Op::Max, x, y); }
  UOpRef min(UOpRef x, UOpRef y) { return bin(Op::Min, x, y); }
  UOpRef lt(UOpRef x, UOpRef y) { return bin(Op::Lt, x, y); }
  UOpRef eq(UOpRef x, UOpRef y) { return bin(Op::Eq, x, y); }
  UOpRef select(UOpRef cond, UOpRef x, UOpRef y) { return tern(Op::Select, cond, x, y); }
  UOpRef fma(UOpRef x, UOpRef y, UOpRef z) { return tern(Op::Fma, x, y, z); }
  UOpRef scale2(UOpRef x, UOpRef n) { return bin(Op::Scale2, x, n); }
  UOpRef lookup16(UOpRef i, DType t, llvm::ArrayRef<uint64_t> table);
  UOpRef cast(UOpRef x, DType to, bool saturate = false);
  UOpRef bitcast(UOpRef x, DType to);
  UOpRef complex(UOpRef re, UOpRef im) { return bin(Op::Complex, re, im); }
  UOpRef real(UOpRef x) { return un(Op::Real, x); }
  UOpRef imag(UOpRef x) { return un(Op::Imag, x); }

  // movement
  UOpRef reshape(UOpRef x, Shape shape);
  UOpRef permute(UOpRef x, llvm::ArrayRef<int64_t> perm);
  UOpRef expand(UOpRef x, Shape shape);
  UOpRef pad(UOpRef x, llvm::ArrayRef<UOpRef> lo, llvm::ArrayRef<UOpRef> hi, uint64_t valueBits = 0);
  UOpRef shrink(UOpRef x, llvm::ArrayRef<UOpRef> begin, llvm::ArrayRef<UOpRef> size);
  UOpRef flip(UOpRef x, llvm::ArrayRef<int64_t> axes);
  UOpRef window(UOpRef x, int64_t axis, int64_t size, int64_t stride, int64_t dilation);
  /// A scalar, or a tensor of lower rank aligned at the last axes with extents equal or 1 (NumPy), repeated to `shape`.
  UOpRef broadcastTo(UOpRef x, Shape shape);
  UOpRef splat(UOpRef scalar, Shape shape);
  UOpRef concat(llvm::ArrayRef<UOpRef> xs, int64_t axis); // selects over pads: bits pass unchanged

  // reductions and the rest
  /// order: lane64 for float sum and prod (and a complex sum) unless `chain`; pairs for a complex prod; exact for
  /// everything else. Axes ascending.
  UOpRef reduce(ReduceKind kind, UOpRef x, llvm::ArrayRef<int64_t> axes, bool chain = false);
  UOpRef reduce(const ReduceSpec &spec, UOpRef x, llvm::ArrayRef<UOpRef> domainIndices);
  UOpRef contract(const ContractSpec &spec, UOpRef a, UOpRef b, llvm::ArrayRef<UOpRef> extents,
                  llvm::ArrayRef<UOpRef> domainIndices = {});
  /// With a third operand (Contract.h).
  UOpRef contract(const ContractSpec &spec, UOpRef a, UOpRef b, UOpRef outside, llvm::ArrayRef<UOpRef> extents);
  /// [.., m, k] x [.., k, n] -> [.., m, n], batch axes equal.
  UOpRef matmul(UOpRef a, UOpRef b);
  UOpRef argReduce(bool max, UOpRef x, int64_t axis);
  UOpRef cumulate(CumulateKind kind, UOpRef x, int64_t axis);
  UOpRef gather(UOpRef x, UOpRef index, int64_t axis);
  UOpRef pick(UOpRef x, UOpRef index, int64_t axis);
  UOpRef scatter(ScatterKind kind, UOpRef x, UOpRef index, UOpRef update, int64_t axis);
  UOpRef sliceAt(UOpRef x, llvm::ArrayRef<UOpRef> start, llvm::ArrayRef<UOpRef> size);
  UOpRef updateAt(UOpRef x, UOpRef value, llvm::ArrayRef<UOpRef> start);
  UOpRef compact(UOpRef x, UOpRef mask); // builds the count and its extent too
  UOpRef argSort(UOpRef x, int64_t axis, bool descending);
  UOpRef random(UOpRef seed, UOpRef stream, Shape shape);
};

} // namespace astra
