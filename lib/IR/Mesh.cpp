//===- Mesh.cpp: meshes, shardings and groups as text -----------------------===//
// Takes:    text of command lines, modules and nodes, which may be wrong.
// Gives:    them, or a sentence.
#include "astra/IR/Mesh.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using llvm::StringRef;
using llvm::Twine;

static llvm::Error wrong(const Twine &what) { return llvm::createStringError(what); }

int64_t Mesh::count(MeshAxes over) const {
  int64_t n = 1;
  for (size_t i = 0; i < axes.size(); ++i)
    if (over >> i & 1) n *= axes[i].size;
  return n;
}

int64_t Mesh::indexOf(int64_t shard, MeshAxes over) const {
  int64_t index = 0, scale = 1;
  for (size_t i = axes.size(); i-- > 0; shard /= axes[i].size)
    if (over >> i & 1) index += shard % axes[i].size * scale, scale *= axes[i].size;
  return index;
}

std::vector<int64_t> Mesh::groupOf(int64_t shard, MeshAxes over) const {
  std::vector<int64_t> out;
  for (int64_t s = 0; s < shards(); ++s) // in the mesh's order, and so in that of their numbers among themselves
    if (indexOf(s, all() & ~over) == indexOf(shard, all() & ~over)) out.push_back(s);
  return out;
}

std::string astra::checkMesh(const Mesh &mesh) {
  if (mesh.axes.empty()) return "a mesh has one axis at least";
  if (mesh.axes.size() > mostMeshAxes)
    return "a mesh of " + std::to_string(mesh.axes.size()) + " axes, at most " + std::to_string(mostMeshAxes) +
           " are supported";
  int64_t shards = 1;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    const auto &[name, size] = mesh.axes[i];
    if (!isIdentifier(name) || StringRef(name).contains('.')) return "'" + name + "' is no name of an axis of a mesh";
    for (size_t k = 0; k < i; ++k)
      if (mesh.axes[k].name == name) return "the mesh has two axes '" + name + "'";
    if (size < 1 || size > mostShards || (shards *= size) > mostShards)
      return "axis '" + name + "' has " + std::to_string(size) + " shards; a mesh has 1 to " +
             std::to_string(mostShards) + " in all";
  }
  return "";
}

std::string astra::meshText(const Mesh &mesh) {
  std::string out;
  for (const MeshAxis &a : mesh.axes) out += (out.empty() ? "" : ",") + a.name + "=" + std::to_string(a.size);
  return out;
}

llvm::Expected<Mesh> astra::parseMesh(StringRef text) {
  Mesh mesh;
  llvm::SmallVector<StringRef, 4> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, size] = part.trim().split('=');
    MeshAxis a{name.trim().str(), 0};
    if (size.trim().getAsInteger(10, a.size))
      return wrong("'" + part + "' is no axis of a mesh, expected NAME=SIZE, as data=8");
    mesh.axes.push_back(a);
  }
  mesh.name = "m";
  if (std::string why = checkMesh(mesh); !why.empty()) return wrong(why);
  return mesh;
}

static std::string axisNames(const Mesh &mesh, MeshAxes over) {
  std::string out;
  for (size_t i = 0; i < mesh.axes.size(); ++i)
    if (over >> i & 1) out += (out.empty() ? "" : "+") + mesh.axes[i].name;
  return out;
}

/// "data+model", each once and in the mesh's order.
static llvm::Expected<MeshAxes> parseAxes(const Mesh &mesh, StringRef text) {
  MeshAxes out = 0;
  llvm::SmallVector<StringRef, 4> names;
  text.split(names, '+');
  for (StringRef name : names) {
    name = name.trim();
    auto at = llvm::find_if(mesh.axes, [&](const MeshAxis &a) { return a.name == name; });
    if (at == mesh.axes.end())
      return wrong("the mesh has no axis '" + name + "'; it has " +
                   llvm::join(llvm::map_range(mesh.axes, [](const MeshAxis &a) { return a.name; }), ", "));
    MeshAxes bit = MeshAxes(1) << (at - mesh.axes.begin());
    if (out >= bit) return wrong("'" + text + "': axes of a mesh are named once each, in the mesh's order");
    out |= bit;
  }
  return out;
}

bool Sharding::isReplicated() const {
  return llvm::all_of(axes, [](MeshAxes a) { return a == 0; });
}
MeshAxes Sharding::used() const {
  MeshAxes all = 0;
  for (MeshAxes a : axes) all |= a;
  return all;
}

std::string astra::shardingList(const Mesh &mesh, const Sharding &s) {
  std::string out;
  for (size_t i = 0; i < s.axes.size(); ++i) out += (i ? "," : "") + (s.axes[i] ? axisNames(mesh, s.axes[i]) : "-");
  return out;
}

std::string astra::shardingText(const Mesh &mesh, const Sharding &s) {
  std::string out = "(";
  for (size_t i = 0; i < s.axes.size(); ++i) out += (i ? ", " : "") + (s.axes[i] ? axisNames(mesh, s.axes[i]) : "-");
  return out + (s.gathered ? ") gathered" : ")");
}

llvm::Expected<Sharding> astra::parseSharding(const Mesh &mesh, StringRef text) {
  Sharding s;
  StringRef rest = text.trim();
  if (rest.consume_back("gathered")) s.gathered = true, rest = rest.rtrim();
  if (rest.consume_front("(") != rest.consume_back(")")) return wrong("'" + text + "': a parenthesis is missing");
  llvm::SmallVector<StringRef, 4> parts;
  if (!rest.trim().empty()) rest.split(parts, ',');
  for (StringRef part : parts) {
    part = part.trim();
    if (part == "-") {
      s.axes.push_back(0);
      continue;
    }
    auto axes = parseAxes(mesh, part);
    if (!axes) return axes.takeError();
    if (s.used() & *axes)
      return wrong("'" + text.trim() + "': axis '" + axisNames(mesh, s.used() & *axes) +
                   "' of the mesh cuts two axes of one tensor");
    s.axes.push_back(*axes);
  }
  return s;
}

std::string astra::groupText(const Mesh &mesh, MeshAxes over) { return meshText(mesh) + "/" + axisNames(mesh, over); }

llvm::Expected<MeshGroup> astra::parseGroup(StringRef text) {
  auto [axes, over] = text.split('/');
  auto mesh = parseMesh(axes);
  if (!mesh) return mesh.takeError();
  auto set = parseAxes(*mesh, over);
  if (!set) return set.takeError();
  return MeshGroup{std::move(*mesh), *set};
}
