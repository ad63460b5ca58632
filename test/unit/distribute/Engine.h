//===- Engine.h: ranks that are threads -------------------------------------===//
// Takes:    a stacked module, an entry, whole tensors, a number of ranks.
// Gives:    whole tensors: each rank runs the entry on the parts of its shards; functions of the names astra.mesh.*
//           exchange values between them.
// Keeps:    what the table of docs/distributed.md says, written apart from the evaluator's own collectives.
#pragma once
#include "astra/IR/Eval.h"

namespace astra::test {

/// Runs an entry by `ranks` threads, which must divide the number of shards. A state that is sharded begins as
/// `shards_init` makes it, where the module has that entry.
llvm::Expected<EvalResult> runRanks(const Module &m, const Entry &e, const EvalInputs &in, int64_t ranks);

} // namespace astra::test
