//===- Mesh.h: logical shards, and how tensors are cut among them -----------===//
// Gives:    Mesh, named axes whose sizes multiply to the number of logical shards M; Sharding, which axes of the mesh
//           cut which axis of a tensor; MeshGroup, the shards that a collective runs over; their text.
// Keeps:    shards are numbered row-major over the axes of the mesh. What a module means depends on the mesh, never on
//           how many ranks run its shards (docs/distributed.md).
#pragma once
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace astra {

/// A set of axes of a mesh: bit i is axis i.
using MeshAxes = uint32_t;
inline constexpr unsigned mostMeshAxes = 8;
inline constexpr int64_t mostShards = 65536;

struct MeshAxis {
  std::string name;
  int64_t size;
  bool operator==(const MeshAxis &) const = default;
};

/// How the types of a module are to be read.
enum class MeshForm : uint8_t {
  Whole,    // of whole tensors; shardings are a request to the pass spmd
  PerShard, // of one shard's parts; collectives exchange values between shards
  Stacked,  // of the parts of the shards that one rank has, one behind another along an axis more in front
};

struct Mesh {
  std::string name;
  std::vector<MeshAxis> axes; // none: the module has no mesh
  MeshForm form = MeshForm::Whole;

  bool isEmpty() const { return axes.empty(); }
  MeshAxes all() const { return (MeshAxes(1) << axes.size()) - 1; }
  /// The product of the sizes of the axes named.
  int64_t count(MeshAxes over) const;
  int64_t shards() const { return count(all()); }
  /// The number of a shard among those that differ from it along the axes named alone: row-major over these axes.
  int64_t indexOf(int64_t shard, MeshAxes over) const;
  /// Those shards, in the order of their numbers among them.
  std::vector<int64_t> groupOf(int64_t shard, MeshAxes over) const;
};

/// "data=8,model=2", as the command line, bundles and groups have it.
std::string meshText(const Mesh &mesh);
llvm::Expected<Mesh> parseMesh(llvm::StringRef text);
/// What is wrong with the names and sizes, or "".
std::string checkMesh(const Mesh &mesh);

/// For each axis of a tensor which axes of the mesh cut it; an axis of the mesh cuts one axis at most.
struct Sharding {
  llvm::SmallVector<MeshAxes, 4> axes; // empty: nothing is said, and of a scalar
  bool gathered = false;               // stored so, and whole wherever it is read

  bool isDeclared() const { return !axes.empty(); }
  bool isReplicated() const;
  MeshAxes used() const;
  bool operator==(const Sharding &) const = default;
};
/// "(data, -)", "(data+model, -) gathered". Parsing reads the parentheses' inside as well.
std::string shardingText(const Mesh &mesh, const Sharding &s);
llvm::Expected<Sharding> parseSharding(const Mesh &mesh, llvm::StringRef text);
/// "data,-", without spaces or parentheses; of none "".
std::string shardingList(const Mesh &mesh, const Sharding &s);

/// The mesh and the axes that a collective runs over: "data=8,model=2/data", axes joined by +.
struct MeshGroup {
  Mesh mesh;
  MeshAxes over = 0;
  int64_t size() const { return mesh.count(over); }
};
std::string groupText(const Mesh &mesh, MeshAxes over);
llvm::Expected<MeshGroup> parseGroup(llvm::StringRef text);

} // namespace astra
