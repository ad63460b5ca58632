//===- ONNX.h: a module from an ONNX file ----------------------------------===//
// Gives:    importONNX: one entry `main` with the model's inputs and outputs, one parameter per initializer of rank 1
//           or more (scalars become literals, unless they are to be trained), composite ops expanded to UOps, model
//           functions inlined, control flow as `cond`, `while` and `scan`, shape arithmetic folded to symbolic dims;
//           origins name the model's nodes.
// Source:   the ONNX operator specification, opsets 1 to 28 of the default domain, ai.onnx.ml on numbers, and ONNX
//           Runtime's com.microsoft; docs/onnx.md lists the rows.
#pragma once
#include "astra/Import/Inputs.h"

namespace astra {

/// What `--elements NAME=LIST` says of an input that is a sequence or an optional value: "none" (it has no value), the
/// number of its elements, which have the declared shape, or their shapes, "[2,3],[n,3]". Each is an input of the
/// module, "NAME.0" and so on; that of an optional tensor is NAME.
struct InputElements {
  std::string name, said;
};

struct ImportOptions {
  std::vector<DimBound> dims = {}; // every dynamic dim of the model's inputs; lo = hi makes it a constant
  std::string taps = {}; // an extended regular expression: values of the model whose whole name matches become further
                         // outputs, after the model's own
  std::vector<ConstantInput> constants = {}; // inputs that become constants: the module does not have them as inputs
  /// A second entry, `forward`: what the graph does in training. Dropout drops, by numbers that depend on the state
  /// "random.key", which changes with every call; batch norm takes the statistics of the batch, and running ones are
  /// states that it updates (the variance of a sample, as PyTorch has it).
  bool training = false;
  std::string prediction = {}; // with training: a value of the model that both entries have as an output too
  /// Initializers of rank 0 that are parameters and no literals, since a file of weights has them or the user names
  /// them. A training keeps those that PyTorch's exporter calls parameters too. The others are numbers of formulas more
  /// often than not.
  std::vector<std::string> scalars = {};
  std::vector<InputElements> elements = {};
  /// Products between DequantizeLinear and QuantizeLinear are products of integers (compose::integerProducts), unless
  /// it is trained; false: of floats, as the nodes say one by one.
  bool integers = true;
  /// Gets sentences about what may not be meant; null: nobody asks.
  std::vector<std::string> *notes = nullptr;
};

/// Reads the model and everything that it needs from its folder; the file is not kept open.
/// Errors are sentences that name the file, the node and what to do: unreadable or malformed file, an IR version or
/// opset that is not known, unsupported ops (all of them at once, with whatever else is refused), a dynamic dim without
/// a bound, a bound whose name the model does not have, shapes or dtypes that do not fit. All that is asked about dims
/// is asked at once, and the last line is the flags that answer it. What ONNX allows and Astra lacks has the error code
/// std::errc::not_supported, beside wrong flags too, all else invalid_argument.
llvm::Expected<Module> importONNX(llvm::StringRef path, const ImportOptions &options);

/// One row of the table of ops, for docs and tests.
struct ONNXRow {
  const char *op;      // "domain::op" for another domain than the default one
  int since, until;    // opsets for which the row holds, inclusive
  std::string types;   // of the first input: "any" or a list with commas
  const char *remarks; // what is limited or decided; "" for nothing
};
std::vector<ONNXRow> onnxRows();
/// Ops of other domains that are known and have no row, and why they are refused: the end of a sentence.
std::vector<std::pair<std::string, std::string>> onnxRefusals();

} // namespace astra
