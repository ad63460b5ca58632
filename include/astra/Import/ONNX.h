//===- ONNX.h: a module from an ONNX file ----------------------------------===//
// Gives:    importONNX: one entry `main` with the model's inputs and outputs, one parameter per initializer of rank 1
//           or more (scalars become literals), composite ops expanded to UOps, shape arithmetic folded to symbolic
//           dims; origins name the model's nodes.
// Source:   the ONNX operator specification, opsets 7 to 28 of the default domain; docs/onnx.md lists the rows.
#pragma once
#include "astra/IR/Module.h"

namespace astra {

/// What `--dim NAME=LO..HI` says.
struct DimBound {
  std::string name;
  int64_t lo, hi; // 0 <= lo <= hi
};

struct ImportOptions {
  std::vector<DimBound> dims; // every dynamic dim of the model's inputs; lo = hi makes it a constant
  std::string taps; // an extended regular expression: values of the model whose whole name matches become further
                    // outputs, after the model's own
};

/// Reads the model and everything that it needs from its folder; the file is not kept open.
/// Errors are sentences that name the file, the node and what to do: unreadable or malformed file, an IR version or
/// opset that is not known, unsupported ops (all of them at once), a dynamic dim without a bound, a bound whose name
/// the model does not have, shapes or dtypes that do not fit. What ONNX allows and Astra lacks has the error code
/// std::errc::not_supported, all else invalid_argument.
llvm::Expected<Module> importONNX(llvm::StringRef path, const ImportOptions &options);

/// One row of the table of ops, for docs and tests.
struct ONNXRow {
  const char *op;
  int since, until; // opsets for which the row holds, inclusive
};
std::vector<ONNXRow> onnxRows();

} // namespace astra
