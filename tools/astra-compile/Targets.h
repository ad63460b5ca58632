//===- Targets.h: what --target and --tune take ------------------------------===//
#pragma once
#include "astra/Pipeline/Pipeline.h"

namespace astra {

/// The CPU targets, with commas between them.
std::string targetNames();

/// What --target takes: all targets by name, and native.
std::vector<std::string> targetWords();

/// What --tune takes: the names of cores, and native.
std::vector<std::string> coreWords();

/// Adds to the targets, for each core, the best of them that it runs as it is planned for that core. What is wrong, or
/// "".
std::string addTuned(PipelineOptions &o, const std::vector<std::string> &cores);

} // namespace astra
