//===- Recipe.h: "adamw(lr=1e-3, weight_decay=0.01)" -----------------------===//
// Takes:    what a user wrote, and the table that it names a row of.
// Gives:    the row's number, and a value for each of its parameters.
// Keeps:    every parameter has a default and bounds; an unknown name is refused with those that there are, a value
//           beyond its bounds with what is expected.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <limits>
#include <string>
#include <vector>

namespace astra::nn {

/// What values a parameter may have.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool aboveLeast = false, belowMost = false; // the bound itself is beyond
  bool whole = false;

  bool hold(double v) const;
  bool isYesOrNo() const { return whole && least == 0 && most == 1; }
  /// "a whole number, at least 1"
  std::string text() const;
};
inline constexpr Bounds anyNumber{}, notNegative{.least = 0}, positive{.least = 0, .aboveLeast = true},
    zeroToOne{.least = 0, .most = 1}, zeroToBelowOne{.least = 0, .most = 1, .belowMost = true},
    yesOrNo{.least = 0, .most = 1, .whole = true}, wholeNumber{.least = -0x1p53, .most = 0x1p53, .whole = true},
    wholeFromOne{.least = 1, .most = 0x1p53, .whole = true}, wholeFromZero{.least = 0, .most = 0x1p53, .whole = true};

struct Parameter {
  const char *name;
  double value; // unless it is given
  Bounds bounds;
  const char *meaning;
};

class Recipe;
/// What the parameters of a row must be together.
struct Relation {
  bool (*holds)(const Recipe &);
  const char *text; // "low is below high"
};

/// What can be asked for by name: the part that all tables share.
struct Signature {
  const char *name;
  llvm::ArrayRef<Parameter> parameters;
  const char *meaning; // with its source
  llvm::ArrayRef<Relation> relations = {};
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
