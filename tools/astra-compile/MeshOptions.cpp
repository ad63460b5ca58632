//===- MeshOptions.cpp: --mesh, --shard and how shards exchange -------------===//
#include "MeshOptions.h"

using namespace astra;
using namespace astra::tool;

std::vector<Option> tool::meshOptions(PipelineOptions &o) {
  auto mesh = [&o](std::string_view v) -> std::string {
    auto parsed = parseMesh(v);
    if (!parsed) return llvm::toString(parsed.takeError());
    o.mesh = std::move(*parsed);
    return "";
  };
  auto shard = [&o](std::string_view v) -> std::string {
    auto [pattern, sharding] = llvm::StringRef(v).rsplit('=');
    if (pattern.empty() || sharding.empty()) return "'" + std::string(v) + "' is not PATTERN=(AXES)";
    o.shards.push_back({pattern.str(), sharding.str()});
    return "";
  };
  auto pipeline = [&o](std::string_view v) -> std::string {
    auto rule = parsePipeline(v);
    if (!rule) return llvm::toString(rule.takeError());
    o.pipeline = std::move(*rule);
    return "";
  };
  auto bucket = [&o](std::string_view v) -> std::string {
    return llvm::StringRef(v).getAsInteger(10, o.bucket) ? "'" + std::string(v) + "' is no number of bytes" : "";
  };
  auto overlap = [&o](std::string_view v) -> std::string {
    if (v != "on" && v != "off") return "'" + std::string(v) + "' is neither on nor off";
    o.overlap = v == "on";
    return "";
  };
  return {
      {"mesh", "AXES",
       "compiles the program of the shards of a mesh, as data=8,model=2: bits depend on the mesh alone, not on how "
       "many "
       "ranks run its shards (docs/distributed.md)",
       mesh},
      {"shard", "PATTERN=(AXES)",
       "with a mesh: how the parameters, states, inputs, outputs and named values that the pattern matches are cut, "
       "for each axis an axis of the mesh, or -: 'layers.*.fc.weight=(model, -)'; ... once for the axes left, data? "
       "where the shards divide: '*.{mean,squares}=(data?, ...)'; gathered behind it stores a weight cut and reads it "
       "whole; once for each, the first that matches is taken",
       shard},
      {"pipeline", "AXIS,microbatches=N[,schedule=gpipe|1f1b]",
       "with a mesh: a scan over layers is a pipeline: each shard along the axis has as many layers, a batch goes "
       "through them in N microbatches; all of them forward and then all backward (gpipe), or with --train one forward "
       "and one backward in each turn, which keeps less (1f1b)",
       pipeline},
      {"bucket", "BYTES",
       "with a mesh: sums and weights that do not wait for each other move together, up to so many bytes a shard; bits "
       "stay (default 1048576; 0: each alone)",
       bucket},
      {"overlap", "on|off", "with a mesh: transfers run beside kernels; bits stay (default on)", overlap},
  };
}
