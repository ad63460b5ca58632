//===- Arith.h: what a scalar is made of in the llvm dialect ---------------===//
// Gives:    one short name for each operation of the dialect that scalars need; constants; bits of floats and back.
// Keeps:    no fast-math flag, no overflow flag: an operation means what its name says.
// Does not: know ops or dtypes of Astra (Scalar.h).
#pragma once
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace astra::gpu {

using V = mlir::Value;
using ICmp = mlir::LLVM::ICmpPredicate;
using FCmp = mlir::LLVM::FCmpPredicate;

class Arith {
public:
  Arith(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Type i(unsigned bits) { return b.getIntegerType(bits); }
  mlir::Type f(unsigned bits) { return bits == 32 ? mlir::Type(b.getF32Type()) : mlir::Type(b.getF64Type()); }
  static unsigned width(V x) { return x.getType().getIntOrFloatBitWidth(); }
  static bool isReal(V x) { return mlir::isa<mlir::FloatType>(x.getType()); }

  V integer(unsigned bits, uint64_t v) {
    return make<mlir::LLVM::ConstantOp>(i(bits), b.getIntegerAttr(i(bits), llvm::APInt(bits, v, false, true)));
  }
  V like(V x, uint64_t v) { return integer(width(x), v); }
  /// The float of these bits.
  V real(unsigned bits, uint64_t v) {
    llvm::APFloat value(bits == 32 ? llvm::APFloat::IEEEsingle() : llvm::APFloat::IEEEdouble(), llvm::APInt(bits, v));
    return make<mlir::LLVM::ConstantOp>(f(bits), b.getFloatAttr(f(bits), value));
  }
  /// 2^e, within the range of normal numbers.
  V power(unsigned bits, int e) {
    return bits == 32 ? real(32, uint64_t(e + 127) << 23) : real(64, uint64_t(e + 1023) << 52);
  }

  V add(V x, V y) { return make<mlir::LLVM::AddOp>(x, y); }
  V sub(V x, V y) { return make<mlir::LLVM::SubOp>(x, y); }
  V mul(V x, V y) { return make<mlir::LLVM::MulOp>(x, y); }
  V udiv(V x, V y) { return make<mlir::LLVM::UDivOp>(x, y); }
  V sdiv(V x, V y) { return make<mlir::LLVM::SDivOp>(x, y); }
  V urem(V x, V y) { return make<mlir::LLVM::URemOp>(x, y); }
  V srem(V x, V y) { return make<mlir::LLVM::SRemOp>(x, y); }
  V band(V x, V y) { return make<mlir::LLVM::AndOp>(x, y); }
  V bor(V x, V y) { return make<mlir::LLVM::OrOp>(x, y); }
  V bxor(V x, V y) { return make<mlir::LLVM::XOrOp>(x, y); }
  V shl(V x, V n) { return make<mlir::LLVM::ShlOp>(x, n); }
  V lshr(V x, V n) { return make<mlir::LLVM::LShrOp>(x, n); }
  V ashr(V x, V n) { return make<mlir::LLVM::AShrOp>(x, n); }
  V ones(V x) { return make<mlir::LLVM::CtPopOp>(x); }
  // With a constant.
  V add(V x, uint64_t k) { return add(x, like(x, k)); }
  V sub(V x, uint64_t k) { return sub(x, like(x, k)); }
  V band(V x, uint64_t k) { return band(x, like(x, k)); }
  V bor(V x, uint64_t k) { return bor(x, like(x, k)); }
  V bxor(V x, uint64_t k) { return bxor(x, like(x, k)); }
  V shl(V x, unsigned n) { return shl(x, like(x, n)); }
  V lshr(V x, unsigned n) { return lshr(x, like(x, n)); }

  V fadd(V x, V y) { return make<mlir::LLVM::FAddOp>(x, y); }
  V fsub(V x, V y) { return make<mlir::LLVM::FSubOp>(x, y); }
  V fmul(V x, V y) { return make<mlir::LLVM::FMulOp>(x, y); }
  V fdiv(V x, V y) { return make<mlir::LLVM::FDivOp>(x, y); }
  V fma(V x, V y, V z) { return make<mlir::LLVM::FMAOp>(x, y, z); }
  V fneg(V x) { return make<mlir::LLVM::FNegOp>(x); }
  V fabs(V x) { return make<mlir::LLVM::FAbsOp>(x); }
  V sqrt(V x) { return make<mlir::LLVM::SqrtOp>(x); }
  V roundeven(V x) { return make<mlir::LLVM::RoundEvenOp>(x); }
  V floor(V x) { return make<mlir::LLVM::FFloorOp>(x); }
  V ceil(V x) { return make<mlir::LLVM::FCeilOp>(x); }
  V ftrunc(V x) { return make<mlir::LLVM::FTruncOp>(x); }
  V maximum(V x, V y) { return make<mlir::LLVM::MaximumOp>(x, y); }
  V minimum(V x, V y) { return make<mlir::LLVM::MinimumOp>(x, y); }

  V cmp(ICmp p, V x, V y) { return make<mlir::LLVM::ICmpOp>(p, x, y); }
  V cmp(ICmp p, V x, uint64_t k) { return cmp(p, x, like(x, k)); }
  V cmp(FCmp p, V x, V y) { return make<mlir::LLVM::FCmpOp>(p, x, y); }
  V isNaN(V x) { return cmp(FCmp::uno, x, x); }
  V select(V c, V x, V y) { return make<mlir::LLVM::SelectOp>(c, x, y); }

  V zext(V x, unsigned bits) { return width(x) == bits ? x : make<mlir::LLVM::ZExtOp>(i(bits), x); }
  V sext(V x, unsigned bits) { return width(x) == bits ? x : make<mlir::LLVM::SExtOp>(i(bits), x); }
  V trunc(V x, unsigned bits) { return width(x) == bits ? x : make<mlir::LLVM::TruncOp>(i(bits), x); }
  /// To a width above or below.
  V resize(V x, unsigned bits, bool isSigned) {
    return width(x) > bits ? trunc(x, bits) : isSigned ? sext(x, bits) : zext(x, bits);
  }
  V fext(V x) { return make<mlir::LLVM::FPExtOp>(f(64), x); }
  V fnarrow(V x) { return make<mlir::LLVM::FPTruncOp>(f(32), x); }
  V fromSigned(V x, unsigned bits) { return make<mlir::LLVM::SIToFPOp>(f(bits), x); }
  V fromUnsigned(V x, unsigned bits) { return make<mlir::LLVM::UIToFPOp>(f(bits), x); }
  V toSigned(V x, unsigned bits) { return make<mlir::LLVM::FPToSIOp>(i(bits), x); }
  V toUnsigned(V x, unsigned bits) { return make<mlir::LLVM::FPToUIOp>(i(bits), x); }
  V bits(V x) { return isReal(x) ? make<mlir::LLVM::BitcastOp>(i(width(x)), x) : x; }
  V asReal(V x) { return isReal(x) ? x : make<mlir::LLVM::BitcastOp>(f(width(x)), x); }

  V offset(V pointer, mlir::Type element, V index) {
    return make<mlir::LLVM::GEPOp>(pointer.getType(), element, pointer,
                                   llvm::ArrayRef<mlir::LLVM::GEPArg>{mlir::LLVM::GEPArg(index)});
  }

private:
  template <class OpT, class... Args> V make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }
};

} // namespace astra::gpu
