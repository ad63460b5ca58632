//===- Text.h: MLIR's generic form, as a tree ------------------------------===//
// Takes:    the text of a module, as MLIR prints it with print_generic_op_form.
// Gives:    its ops: operands and results by number, properties and attributes as one dictionary, regions of one block,
//           types, and where in the text and in the user's source each op stands.
// Keeps:    the text, which must live as long as the tree: numbers of large constants are read when somebody asks.
// Does not: know an op; read the pretty form of a dialect, bytecode, or blocks that branch to each other.
#pragma once
#include "astra/IR/DType.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace astra::stablehlo {

constexpr int64_t dynamic = -1; // `?`

struct Type {
  enum class Kind : uint8_t { Tensor, Token, Tuple, Function, Other } kind = Kind::Other;
  DType dtype = DType::Void; // of a tensor; Void: an element type that Astra lacks
  bool encoded = false;      // a tensor with an encoding behind its element type
  llvm::StringRef text;      // as it is written; of a tensor its element type alone
  std::vector<int64_t> dims;
  std::vector<Type> parts, results; // of a tuple, of a function
};

struct NamedAttribute;
struct Attribute {
  enum class Kind : uint8_t { Unit, Bool, Int, Float, String, Symbol, List, Dictionary, Type, Dense, Dialect } kind;
  int64_t integer = 0;  // Bool, Int
  double number = 0;    // Float
  std::string string;   // String, Symbol
  llvm::StringRef text; // Dense: between < and >; Dialect: what is behind #
  std::vector<Attribute> items;
  std::vector<NamedAttribute> fields;
  Type type; // Type; of Dense the tensor's
};

struct NamedAttribute {
  std::string name;
  Attribute value;
};

struct Operation;
struct Argument {
  unsigned value;
  Type type;
  llvm::StringRef location;
};
struct Region {
  std::vector<Argument> arguments;
  std::vector<Operation> ops;
};

struct Operation {
  std::string name; // "stablehlo.add"
  const char *at = nullptr;
  llvm::StringRef location; // of the user's source: what stands between the parentheses of loc(...)
  llvm::SmallVector<unsigned, 4> operands, results;
  std::vector<Type> operandTypes, resultTypes;
  std::vector<NamedAttribute> attributes;
  std::vector<Region> regions;

  const Attribute *find(llvm::StringRef key) const;
};

class File {
public:
  Operation module;    // builtin.module
  unsigned values = 0; // how many numbers there are

  /// "model.mlir:12:5".
  std::string place(const char *at) const;
  /// What the user's source says of an op: "jit(f)/dot_general, model.py:12"; "" where the text does not.
  std::string source(llvm::StringRef location) const;
  /// "x" of loc("x"); "" of any other location.
  std::string nameOf(llvm::StringRef location) const;

private:
  friend class Parser;
  llvm::StringRef text, path;
  llvm::StringMap<llvm::StringRef> locations; // aliases, with what is between the parentheses
};

/// The tree of a text. Errors begin with FILE:LINE:COL.
llvm::Expected<File> parseText(llvm::StringRef text, llvm::StringRef path);

/// The bytes of a Dense attribute, row-major; of one number for all elements those of one, whatever their number is. An
/// error is the end of a sentence.
llvm::Expected<std::vector<uint8_t>> denseBytes(const Attribute &a);
/// The number of elements of a constant tensor; of a dynamic one, or above 2^40, nothing.
std::optional<int64_t> elementCount(const Type &t);

/// `key = value` pairs of a dialect's attribute, as of #stablehlo.dot<...>: lists of integers, integers and words. The
/// text is what is behind the `#`.
struct Fields {
  std::string mnemonic; // "stablehlo.dot"; of #stablehlo<precision DEFAULT> "stablehlo.precision"
  std::vector<std::pair<std::string, std::vector<int64_t>>> lists;
  std::string words; // what is no pair: "DEFAULT"
  const std::vector<int64_t> *find(llvm::StringRef key) const;
};
std::optional<Fields> parseFields(llvm::StringRef text);

} // namespace astra::stablehlo
