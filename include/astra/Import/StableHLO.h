//===- StableHLO.h: a module from the text of a StableHLO program ----------===//
// Gives:    importStableHLO: one entry `main` with the program's arguments and results, constants of rank 1 or more as
//           parameters, ops expanded to UOps, functions inlined, control flow as `cond`, `while` and `scan`, shape
//           arithmetic folded to symbolic dims; origins name the ops.
// Source:   the StableHLO specification, version 1; docs/stablehlo.md lists the rows.
#pragma once
#include "astra/Import/Inputs.h"

namespace astra {

struct StableHLOOptions {
  std::vector<DimBound> dims = {}; // every dynamic dim of main's arguments; lo = hi makes it a constant
  /// Arguments that become constants: the module does not have them as inputs.
  std::vector<ConstantInput> constants = {};
};

/// `text` is MLIR's generic form, as get_asm(print_generic_op_form=True) gives it; `path` is for diagnostics.
/// Errors are sentences that begin with FILE:LINE:COL and name the op, and the place in the user's source where the
/// text says it: text that is malformed, ops that are not supported (all of them at once), a dynamic dim without a
/// bound, shapes or dtypes that do not fit. What StableHLO allows and Astra lacks has the error code
/// std::errc::not_supported, all else invalid_argument.
llvm::Expected<Module> importStableHLO(llvm::StringRef text, llvm::StringRef path, const StableHLOOptions &options);

/// One row of the table of ops, for docs and tests.
struct StableHLORow {
  const char *op;      // "stablehlo.add"
  bool supported;      // else every use is refused
  const char *remarks; // what is limited or decided, or why it is refused; "" for nothing
};
std::vector<StableHLORow> stableHLORows();

} // namespace astra
