//===- Weights.h: weights of a module as codes of few bits ------------------===//
// Takes:    a module of any front door, and which weights become what.
// Gives:    the module with other parameters in place of those weights, and arithmetic that gives their values where
//           products read them; a row for each weight of what was done.
// Keeps:    what a module computes but for the weights' values. A weight is a parameter of f32, f16 or bf16 that
//           contracts multiply by, or whose rows are gathered, and nothing else reads; each is one matrix: kept axes
//           give channels, summed ones the elements of a row. It is stored with its rows in the order of the sum,
//           whichever way the model has it.
// Does not: look into the bodies of control ops, or quantize again what is of few bits.
#pragma once
#include "astra/IR/Module.h"
#include "astra/Quantize/Blocks.h"

namespace astra::quantize {

/// Weights whose names the pattern matches (as a shell matches names) become what the scheme says; null: they stay.
struct Rule {
  std::string pattern;
  const Scheme *scheme = nullptr;
};

/// What products read beside a weight: floats; or bytes, u8 with a zero point, by the range of each row when it runs;
/// or by a range that was measured. Rows are the places of axes that a product keeps as they are: those of a matrix,
/// the images of a batch; so no result depends on what is beside it in a batch.
enum class Activations : uint8_t { Float, Dynamic, Static };

/// A measured range of a value.
struct Range {
  float least = 0, most = 0;
};

struct WeightOptions {
  std::vector<Rule> rules;           // the first whose pattern matches a name is taken
  const Scheme *otherwise = nullptr; // of names that no rule matches; null: they stay
  Activations activations = Activations::Float;
  std::map<UOpRef, Range> ranges; // of Static: for each of activationsOf()
  int64_t fewest = 1024;          // elements: a smaller weight stays, unless a rule with its scheme matches
};
/// "q8_0", "PATTERN=q8_0" or "PATTERN=float" into the options. What is wrong with it, or "".
std::string addRule(WeightOptions &options, llvm::StringRef text);

/// What became of a weight.
struct WeightRow {
  std::string name;
  DType was = DType::Void;
  std::vector<int64_t> shape;
  const Scheme *scheme = nullptr; // null: it stays, because of `why`
  std::string why;
  uint64_t before = 0, after = 0; // bytes
  bool bytes = false;             // whether all products by it read bytes
  double error = 0;               // root of the mean square of what values are off, relative to that of the values
};

/// In the order of the module's parameters; those that products read, or whose rows are gathered, have a row. An error
/// where a pattern is none, or where a rule with a scheme matches no weight; the module is then as it was.
///
/// With Activations other than Float, a product of x and a weight that is int8 is, exact in i32 but for the scales,
///   f32(sum of (x' - zero) * q) * (scale * d), with x', scale and zero of compose::quantizeByRange,
/// and of static ranges x' = x / scale, rounded to even, plus zero, saturated to u8. A product of matrices with a
/// weight of Q8_0, Q5_0, Q5_1, Q4_0 or Q4_1 is compose::weightProductOfBytes where ranges are dynamic. Others read
/// floats.
llvm::Expected<std::vector<WeightRow>> quantizeWeights(Module &m, const WeightOptions &options);
/// The values that products would read as bytes by static ranges, nodes of the module as it is.
llvm::Expected<std::vector<UOpRef>> activationsOf(const Module &m, const WeightOptions &options);

} // namespace astra::quantize
