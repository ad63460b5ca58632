//===- Distribute.h: one program for all shards of a mesh -------------------===//
// Gives:    from a module of whole tensors the program of one shard, and from that the program of the shards that one
//           rank has (docs/distributed.md).
// Keeps:    bits are a function of the mesh. Where no sum is split they are those of the whole tensors. A value is
//           gathered only where a `reshard`, or the sharding of an output, a state or a stored weight, says so.
// Does not: search for shardings: they are given for inputs, parameters and states and follow from there, op by op.
#pragma once
#include "astra/Autograd/Autograd.h"
#include "astra/IR/Module.h"
#include "llvm/Support/Error.h"

namespace astra {

/// A sharding for what a glob pattern matches: parameters, states, inputs, outputs and taps.
struct ShardRule {
  std::string pattern, sharding;
};
/// Gives the module this mesh, where it has none, and what the rules match these shardings; the first rule that matches
/// a name counts. An error for a rule that matches nothing, and for a sharding that its tensor cannot have.
llvm::Error annotate(Module &m, const Mesh &mesh, llvm::ArrayRef<ShardRule> rules);

/// A scan over layers as a pipeline: each shard along an axis of the mesh has as many layers, and a batch goes through
/// them in so many microbatches.
struct PipelineRule {
  std::string axis;
  int64_t microbatches = 1;
  bool interleaved = false; // a training takes a microbatch forward and another one backward in each turn (1F1B)
};
/// "stage,microbatches=8" or "stage,microbatches=8,schedule=1f1b", as a command line and Python say it.
llvm::Expected<PipelineRule> parsePipeline(llvm::StringRef text);
/// Before gradients are taken. Weights of the layers are cut along their first axis, unless something else is said of
/// it. An error where no entry has such a scan. An interleaved one is of trainings alone, whose gradients
/// interleavedGradients takes: entry `forward`, which a training is made of, keeps the scan over layers.
llvm::Error pipelineLayers(Module &m, const PipelineRule &rule, bool ofTraining = false);
/// What vjp gives, of a loss over a batch and a scan over layers that pipelineLayers has kept, with forward and
/// backward turns in one scan. `step` has the inputs that the loss reads. An error names the op where the loss is no
/// linear function of sums over microbatches.
llvm::Expected<Derivatives> interleavedGradients(Module &m, const PipelineRule &rule, const Entry &step, UOpRef loss,
                                                 UOpRef seed, llvm::ArrayRef<UOpRef> wrt,
                                                 llvm::ArrayRef<UOpRef> beside);

/// From the form Whole to PerShard; a module without a mesh stays. An error names the op where two shardings meet that
/// do not agree, or that cannot compute on parts.
llvm::Error partition(Module &m);

/// From the form PerShard to Stacked: a value that differs from shard to shard has an axis more in front, of the shards
/// that one rank has, dim `shards`; collectives are calls of functions `astra.mesh.OP/MESH/AXES/KIND` that the program
/// registers. Sharded states that do not begin as zeros are set by an entry `shards_init`. `withFolds` adds entries
/// mesh_KIND_TYPE, of two vectors, for what the collectives fold: by their kernels it is folded on a GPU.
llvm::Error stackShards(Module &m, bool withFolds = false);

/// In the form Stacked: calls of one collective that do not wait for each other are one call with several tensors, of
/// `most` bytes a shard together; 0: none. Bits stay.
void joinCollectives(Module &m, uint64_t most);
inline constexpr uint64_t usualBucket = 1 << 20;
/// A comment for each call of several tensors.
std::string bucketList(const Module &m);

/// What a bundle says of its mesh: lines of fields with tabs between them. "" without a mesh.
std::string meshRecord(const Module &m);
inline constexpr const char *meshAsset = "astra.mesh";

} // namespace astra
