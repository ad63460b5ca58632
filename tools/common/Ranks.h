//===- Ranks.h: a tool as one rank of a job ----------------------------------===//
// Takes:    an open bundle. If it has a mesh, the process joins the job that a launcher has started (alone otherwise).
// Gives:    what the bundle's tensors are as logical ones; this rank's part of them, and logical ones of all parts.
// Keeps:    of a bundle without a mesh every tensor is whole, and nothing is moved. Outlives what is loaded.
#pragma once
#include "Host.h"
#include "astra/ranks.h"
#include <deque>

namespace astra::tool {

/// --engine.
Option engineOption(std::string &engine);

/// What every rank of a job is given alike: what it is called in a sentence, and a checksum of it.
struct Given {
  std::string name;
  uint64_t sum;
};

class Ranks {
public:
  Ranks() = default;
  Ranks(const Ranks &) = delete;
  Ranks &operator=(const Ranks &) = delete;
  ~Ranks();

  /// Before the bundle is loaded. `engine` as in astra_ranks_options, or "". Throws a Refusal.
  void open(const Handles &h, const std::string &engine, Checked &check);
  /// The values of dims for a session, with this rank's shards among them if the bundle asks for them.
  std::vector<astra_dim_value> dims(std::vector<astra_dim_value> given) const;
  /// In a new session with its stream: the dim that each call has, and what states that are cut begin as.
  void begin(Handles &h, Checked &check) const;

  int64_t localShards() const { return astra_mesh_local_shards(mesh); }
  int rank() const { return ranks ? astra_ranks_rank(ranks) : 0; }
  /// Whether this rank writes what all have in common.
  bool first() const { return rank() == 0; }
  int size() const { return ranks ? astra_ranks_size(ranks) : 1; }
  /// Logical shards of the mesh.
  int64_t shards() const { return mesh ? astra_mesh_shards(mesh) : 1; }
  void wait(Checked &check);
  /// Of all ranks, in their order; the least of all ranks' values.
  std::vector<std::string> gather(Checked &check, const std::string &own);
  uint64_t least(Checked &check, uint64_t own);
  /// Bytes of tensors that this rank has sent; 0 if it is alone.
  uint64_t sent() const;
  /// Every rank was given the same, in a list of as many on each; else all throw a Refusal that says who was not. A
  /// barrier too.
  void requireSame(Checked &check, const std::vector<Given> &given);

  bool isCut(int32_t kind, const char *entry, const char *name) const;
  /// Of the tensor that is cut, where `info` is that of a rank's part. The struct's arrays live as long as this.
  astra_tensor_info logical(int32_t kind, const char *entry, const astra_tensor_info &info);
  /// The shape of this rank's part. Throws a Refusal if the tensor cannot be cut so.
  std::vector<int64_t> localShape(int32_t kind, const char *entry, const char *name,
                                  const std::vector<int64_t> &logical) const;
  std::vector<int64_t> logicalShape(int32_t kind, const char *entry, const char *name,
                                    const std::vector<int64_t> &local) const;
  /// Of a tensor of this shape. Throws a Refusal.
  static uint64_t bytes(int32_t dtype, const std::vector<int64_t> &shape);
  void take(Checked &check, int32_t kind, const char *entry, const char *name, int32_t dtype,
            const std::vector<int64_t> &shape, const void *logical, void *local) const;
  /// All ranks call it; each has the result.
  void join(Checked &check, int32_t kind, const char *entry, const char *name, int32_t dtype,
            const std::vector<int64_t> &shape, const void *local, void *logical);

private:
  astra_mesh_cut cut(int32_t kind, const char *entry, const char *name) const;
  astra_ranks *ranks = nullptr;
  astra_mesh *mesh = nullptr;
  bool bySession = false, byCall = false; // who says how many shards
  std::deque<std::vector<int64_t>> extents;
};

} // namespace astra::tool
