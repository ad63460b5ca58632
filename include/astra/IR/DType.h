//===- DType.h: element types and their promotion --------------------------===//
// Gives:    the enum, names and sizes of DType.def, and the promotion lattice.
// Does not: describe shapes (UOp.h) or convert values (Eval).
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace llvm {
struct fltSemantics;
}

namespace astra {

enum class DType : uint8_t {
#define DTYPE(Name, text, bits, Class, e, m) Name,
#include "astra/IR/DType.def"
#undef DTYPE
};
constexpr unsigned numDTypes = 0
#define DTYPE(Name, text, bits, Class, e, m) +1
#include "astra/IR/DType.def"
#undef DTYPE
    ;

enum class DTypeClass : uint8_t { Void, Index, Bool, Signed, Unsigned, Float, Complex, Storage };

struct DTypeInfo {
  const char *text;
  unsigned bits;
  DTypeClass cls;
  unsigned exponentBits, mantissaBits;
};

const DTypeInfo &info(DType t);
inline unsigned bitWidth(DType t) { return info(t).bits; }
/// Bytes of one element; 0 for sub-byte types, whose rows are packed.
inline unsigned byteSize(DType t) { return info(t).bits / 8; }
inline bool isSubByte(DType t) { return bitWidth(t) && bitWidth(t) < 8; }
inline bool isFloat(DType t) { return info(t).cls == DTypeClass::Float; }
inline bool isSigned(DType t) { return info(t).cls == DTypeClass::Signed; }
inline bool isUnsigned(DType t) { return info(t).cls == DTypeClass::Unsigned; }
inline bool isInt(DType t) { return isSigned(t) || isUnsigned(t); }
inline bool isComplex(DType t) { return info(t).cls == DTypeClass::Complex; }
/// The type of the two parts of a complex type; any other type itself.
inline DType partOf(DType t) { return t == DType::C64 ? DType::F32 : t == DType::C128 ? DType::F64 : t; }
/// A type with an order; complex types compute and have none.
/// Of f16, bf16, f32 and f64, for llvm::APFloat.
const llvm::fltSemantics &semanticsOf(DType t);
inline bool isArithmetic(DType t) { return isFloat(t) || isInt(t) || t == DType::Bool; }

/// The dtype named `text`, or nothing.
std::optional<DType> dtypeNamed(llvm::StringRef text);

/// The least type that both promote to, by JAX's lattice (without its weak types). Nothing when there is none
/// (storage-only types, index).
std::optional<DType> promote(DType a, DType b);

} // namespace astra
