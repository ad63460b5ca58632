//===- Inputs.h: what a user says of a model's inputs ----------------------===//
// Gives:    bounds of dims, and inputs that are constants; every front door takes them.
#pragma once
#include "astra/IR/Module.h"

namespace astra {

/// What `--dim NAME=LO..HI` says, or `--dim NAME=EXPRESSION`: that an extent is that of other dims of the inputs. The
/// name "*" is for the dims of inputs that have no bounds of their own.
struct DimBound {
  std::string name;
  int64_t lo, hi;         // 0 <= lo <= hi
  std::string value = {}; // "past + 1", of names and integers with + - * // % ( ); empty where there are bounds
};

/// What `--constant NAME=FILE` says: an input of the model that has one value for good.
struct ConstantInput {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes; // row-major
};

} // namespace astra
