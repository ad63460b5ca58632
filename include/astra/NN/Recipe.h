//===- Recipe.h: "adamw(lr=1e-3, weight_decay=0.01)" -----------------------===//
// Takes:    what a user wrote, and the table that it names a row of.
// Gives:    the row's number, and a value for each of its parameters.
// Keeps:    every parameter has a default; an unknown name is refused with those that there are.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace astra::nn {

struct Parameter {
  const char *name;
  double value; // unless it is given
  const char *meaning;
};

/// What can be asked for by name: the part that all tables share.
struct Signature {
  const char *name;
  llvm::ArrayRef<Parameter> parameters;
  const char *meaning; // with its source
};

class Recipe {
public:
  Recipe() = default;

  /// `text` names a row of `table`. `what` is "optimizer", "loss" ...: for sentences.
  static llvm::Expected<Recipe> parse(llvm::StringRef text, llvm::ArrayRef<Signature> table, llvm::StringRef what);

  size_t row = 0; // in the table
  const Signature *signature = nullptr;

  /// The value of a parameter that the row has.
  double operator[](llvm::StringRef parameter) const;
  bool given(llvm::StringRef parameter) const;

private:
  std::vector<double> values;
  std::vector<bool> isGiven;
};

} // namespace astra::nn
