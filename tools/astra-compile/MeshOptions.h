//===- MeshOptions.h: --mesh and --shard ------------------------------------===//
// Gives:    the options that make a program of shards.
// Does not: look at the model: what a pattern matches is known when it is compiled (Distribute.h).
#pragma once
#include "Options.h"
#include "astra/Pipeline/Pipeline.h"

namespace astra::tool {

std::vector<Option> meshOptions(PipelineOptions &o);

} // namespace astra::tool
