//===- Scalar.h: ops on scalars, in the llvm dialect -----------------------===//
// Takes:    an op, a dtype, operands as values of the llvm dialect.
// Gives:    the operations that compute it with the bits of the evaluator, up to which NaN it is.
// Keeps:    a bool is i1; f16, bf16 and the formats of 8 bits are their bits, so that no optimizer can compute in them
//           (numerics.md, the trap about narrowing); integers are i8 ... i64 of either sign.
// Does not: touch memory, except for constant tables; know which machine it is.
#pragma once
#include "../SmallFloat.h"
#include "Arith.h"
#include "astra/IR/UOp.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace astra::gpu {

class Scalar : public Arith {
public:
  /// constantSpace: the address space of constant tables.
  Scalar(mlir::OpBuilder &b, mlir::ModuleOp module, unsigned constantSpace)
      : Arith(b, b.getUnknownLoc()), module(module), constantSpace(constantSpace) {}

  mlir::Type type(DType t);       // of a value
  mlir::Type memoryType(DType t); // the same in memory: a bool is a byte
  V literal(DType t, uint64_t bits);

  /// An elementwise op on operands of dtype t (of select: its values; of scale2: its first). Null where there is none:
  /// then refused() says so.
  V op(Op o, DType t, llvm::ArrayRef<V> x);
  V cast(DType from, DType to, V x, bool saturate);
  V bitcast(DType from, DType to, V x);
  V lookup(DType to, llvm::ArrayRef<int64_t> table, V index);

  /// The sentence for the first thing asked for that does not exist; empty when all does.
  const std::string &refused() const { return refusal; }
  V refuse(const std::string &what) {
    if (refusal.empty()) refusal = what;
    return nullptr;
  }

private:
  V widened(DType t, V x);                // what is small, as f32
  V rounded(DType t, V x, bool saturate); // an f32, to what is small
  V smallToF32(DType t, V x);
  V f32ToSmall(DType t, V x, bool saturate);
  V f64ToSmall(DType t, V x, bool saturate);
  V wideToSmall(DType from, DType to, V x, bool saturate);
  V floatToInt(DType to, V x);
  V tableAt(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<uint64_t> bits, V index);

  mlir::ModuleOp module;
  unsigned constantSpace;
  std::map<std::vector<uint64_t>, std::string> tables; // contents, the element's width first
  std::string refusal;
};

} // namespace astra::gpu
