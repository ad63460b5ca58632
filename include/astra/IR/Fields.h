//===- Fields.h: the attribute column of Ops.def, read once ----------------===//
// Gives:    for each op the fields of its attribute, as the text form and the documentation need them, and the text of
//           literals.
// Does not: check values (TypeRules.cpp) or know the forms of contract and reduce (Contract.h).
#pragma once
#include "astra/IR/UOp.h"
#include <string>

namespace astra {

enum class FieldKind : uint8_t {
  Integer,     // one of the node's integers
  Enumeration, // one integer, written as a name
  Rest,        // all remaining integers
  Literal,     // one integer: bits of the result's dtype
  Literals,    // all remaining integers, likewise
  String,      // the node's string
  Dtype        // the result's dtype, written as the type after the colon
};

struct Field {
  llvm::StringRef name;
  FieldKind kind;
  llvm::SmallVector<llvm::StringRef, 6> values; // of an enumeration, by number
  std::optional<int64_t> absent; // the value of an integer that is not written; of a list that it may be left out
};

/// The fields of an op's attribute, in the order of its row.
llvm::ArrayRef<Field> fields(Op op);

/// A literal of type t (of a complex type the real part, as a literal of its part's type): "1.5", "-0.0", "inf", "nan"
/// (canonical), "true", "-3", and hexadecimal bits where no other form is exact (other NaNs, storage-only types).
/// literalBits(t, literalText(t, b)) == b.
std::string literalText(DType t, uint64_t bits);

/// The bits of a literal: a decimal float is rounded once to t; an integer must fit t; hexadecimal digits are the bits
/// of any type. An error says what does not fit.
llvm::Expected<uint64_t> literalBits(DType t, llvm::StringRef text);

} // namespace astra
