//===- Helpers.h: the inline functions that emitted C is made of -----------===//
// Gives:    typedefs and static inline functions, of C or of Metal, made when first asked for and listed in the order
//           of their uses; the text at the head of every translation unit. Each function is one op of the table on
//           one type, and exact on gcc and clang at every level of optimization.
// Keeps:    the text is a function of what was asked for, in order.
#pragma once
#include "Names.h"
#include "astra/IR/MatrixUnits.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <set>

namespace astra::cemit {

/// Metal is C++ without f64, unions and builtins: helpers are then those of the last resort, scalar ones alone.
enum class Dialect : uint8_t { C, Metal };

class Helpers {
public:
  explicit Helpers(Dialect dialect = Dialect::C) : dialect(dialect) {}

  /// The name of a C type, its typedef made.
  std::string type(DType t, unsigned lanes);
  std::string unaligned(DType t, unsigned lanes); // the same for access at any element's address
  std::string mask(unsigned bits, unsigned lanes) { return lanes > 1 ? type(signedOf(bits), lanes) : "b1"; }

  /// The name of the function for an elementwise op on operands of dtype t (of select: its values; of scale2: its
  /// first). Not for vectors of bools, nor for casts, bitcasts and lookups, which have their own.
  std::string op(Op op, DType t, unsigned lanes);
  /// The expression of an op of masks `a` and `b`; null where there is none.
  static const char *onMasks(Op op);
  std::string cast(DType from, DType to, unsigned lanes, bool saturate); // not from or to vectors of bools
  std::string fromMask(DType to, unsigned lanes);                        // a mask as wide as maskBits(to) to 0 and 1
  std::string toMask(DType from, unsigned lanes);                        // a != 0, as wide as maskBits(from)
  std::string bitcast(DType from, DType to, unsigned lanes);
  std::string lookup(DType from, DType to, llvm::ArrayRef<int64_t> table, unsigned lanes);
  std::string unitStep(Combine step, unsigned lanes); // (words, sum)
  /// a / b of f32 vectors, all lanes of b the same; what depends on b alone is for the compiler to take out of loops.
  std::string quotient(unsigned lanes);
  /// Metal: the value that the lane of the same SIMD group has whose number differs in the bits of the second argument.
  std::string exchange(DType t);
  std::string maskedLoad(DType t, unsigned lanes);  // (const T *p, mask as wide as an element)
  std::string maskedStore(DType t, unsigned lanes); // (T *p, mask, value)

  /// A literal of a scalar type.
  std::string literal(DType t, uint64_t bits);

  /// The sentence for the first thing asked for that does not exist; empty when all does.
  const std::string &refused() const { return refusal; }
  void refuse(const std::string &what) {
    if (refusal.empty()) refusal = what;
  }
  /// Prelude, typedefs and functions.
  std::string text() const;
  bool isTaken(llvm::StringRef name) const { return made.count(name.str()); }

private:
  bool begin(const std::string &name) { return made.insert(name).second; }
  void define(const std::string &result, const std::string &name, const std::string &params, const std::string &body);
  std::string expand(llvm::StringRef pattern, DType t, unsigned lanes);
  std::string each(llvm::StringRef function, DType result, unsigned lanes, unsigned operands);
  std::string expandTwo(std::string pattern, DType small, unsigned lanes);
  std::string smallToF32(DType t, unsigned lanes);
  std::string f64ToSmall(DType to, unsigned lanes, bool saturate);
  std::string wideToSmall(DType from, DType to, unsigned lanes, bool saturate);
  std::string integerToSmall(DType from, DType to, bool saturate);
  std::string floatToInt(DType from, DType to, unsigned lanes);
  std::string convert(DType to, unsigned lanes, const std::string &x); // C's conversion
  std::string unitBody(const UnitStep &step, unsigned lanes);
  std::string permutation(const std::string &table, DType from, DType to, unsigned lanes);
  std::string widthOf(unsigned from, unsigned to, unsigned lanes, const std::string &mask);

  std::string spelled(std::string text) const; // in this dialect
  const char *tableType() const { return dialect == Dialect::Metal ? "constant " : "static const "; }

  Dialect dialect;
  std::set<std::string> made;
  std::string typedefs, functions, refusal;
  std::vector<std::vector<int64_t>> tables;
};

} // namespace astra::cemit
