//===- Shardings.cpp: meshes and shardings of Shardy ------------------------===//
// Takes:    text of the dialect `sdy`, which is untrusted.
// Gives:    see Shardings.h.
#include "Shardings.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace astra;
using namespace astra::stablehlo;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

Error refusal(const Twine &text) { return llvm::createStringError(text); }
Error unknown(StringRef text) { return refusal("'" + text.take_front(80) + "' is not understood"); }

/// `"name"` from the front.
bool takeName(StringRef &rest, StringRef &name) {
  if (!rest.consume_front("\"")) return false;
  size_t end = rest.find('"');
  if (end == StringRef::npos) return false;
  name = rest.take_front(end);
  rest = rest.drop_front(end + 1);
  return true;
}

/// `<["data"=2, "model"=2]>` behind `sdy.mesh`.
Expected<Mesh> readMesh(StringRef text) {
  StringRef rest = text;
  std::string axes;
  if (!rest.consume_front("sdy.mesh<[")) return unknown(text);
  rest = rest.ltrim();
  while (!rest.consume_front("]")) {
    StringRef name;
    uint64_t size = 0;
    if (!takeName(rest, name) || !rest.consume_front("=") || rest.consumeInteger(10, size)) return unknown(text);
    axes += (axes.empty() ? "" : ",") + name.str() + "=" + std::to_string(size);
    rest.consume_front(",");
    rest = rest.ltrim();
  }
  if (rest.contains("device_ids"))
    return refusal("the mesh " + text + " has devices in another order: shards are numbered row-major");
  if (axes.empty()) return Mesh{}; // of one device
  return parseMesh(axes);
}

} // namespace

Expected<Mesh> stablehlo::meshOf(const File &file) {
  Mesh mesh;
  for (const Region &region : file.module.regions)
    for (const Operation &op : region.ops) {
      if (op.name != "sdy.mesh") continue;
      const Attribute *a = op.find("mesh");
      if (!a || a->kind != Attribute::Kind::Dialect) return refusal("an sdy.mesh has no mesh");
      auto found = readMesh(a->text);
      if (!found) return found.takeError();
      if (found->isEmpty()) continue;
      if (!mesh.isEmpty() && mesh.axes != found->axes)
        return refusal("there are two meshes, " + meshText(mesh) + " and " + meshText(*found) + "; one is supported");
      mesh = *found;
    }
  return mesh;
}

Expected<Sharding> stablehlo::shardingOf(const Attribute &attribute, const Mesh &mesh) {
  StringRef text = attribute.text, rest = text;
  if (attribute.kind != Attribute::Kind::Dialect || !rest.consume_front("sdy.sharding<")) return unknown(text);
  size_t begin = rest.find('[');
  if (begin == StringRef::npos) return unknown(text);
  rest = rest.drop_front(begin + 1).ltrim();
  std::string axes;
  while (!rest.consume_front("]")) {
    if (!rest.consume_front("{")) return unknown(text);
    std::string names;
    rest = rest.ltrim();
    while (!rest.consume_front("}")) {
      StringRef name;
      if (!rest.consume_front("?")) {
        if (!takeName(rest, name)) return unknown(text);
        if (rest.starts_with(":")) return refusal("'#" + text + "' cuts by a part of the axis '" + name + "'");
        names += (names.empty() ? "" : "+") + name.str();
      }
      rest.consume_front(",");
      rest = rest.ltrim();
    }
    if (rest.starts_with("p")) return refusal("'#" + text + "' has priorities");
    axes += (axes.empty() ? "" : ", ") + (names.empty() ? "-" : names);
    rest.consume_front(",");
    rest = rest.ltrim();
  }
  if (rest.contains("unreduced")) return refusal("'#" + text + "' is of parts of a sum");
  if (axes.empty() || axes.find_first_not_of("-, ") == std::string::npos) return Sharding{};
  if (mesh.isEmpty()) return refusal("'#" + text + "' is of no mesh of the program");
  return parseSharding(mesh, "(" + axes + ")");
}
