//===- Assemble.h: from a schedule and its code to the parts of a bundle ----===//
// Takes:    a module, its schedule, and for each target the image with the code of every kernel of the schedule.
// Gives:    what the writer writes.
// Keeps:    order: dims, params, kernels, entries stay in the schedule's order, expressions in order of first use.
// Does not: optimize anything; a thing the format cannot say is an error that names it.
#pragma once
#include "astra/Bundle/Writer.h"
#include "astra/Codegen/Compile.h"

namespace astra {

/// code[t].kernels[i] is the code of schedule kernel i.
llvm::Expected<BundleParts> assemble(const Module &module, const Schedule &schedule, std::vector<CompiledTarget> code);

/// What made the bundle: name, version, licence of the compiler and of what it was built from, in alphabetical order.
std::vector<std::unique_ptr<fmt::ComponentT>> toolchain();

} // namespace astra
