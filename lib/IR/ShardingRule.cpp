//===- ShardingRule.cpp: a sharding for tensors of several ranks ------------===//
// Takes:    text of command lines, modules and nodes, which may be wrong; the shape of one tensor.
// Gives:    the sharding of that tensor, or a sentence.
// Does not: check that axes divide where the text does not ask (Verify.cpp, Annotate.cpp).
#include "astra/IR/ShardingRule.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::StringRef;

/// What is wrong with an entry of a rule, or null.
static const char *oddness(StringRef part) {
  if (part.empty()) return "an axis of the mesh, - or ... is missing";
  if (part == "...") return nullptr;
  llvm::SmallVector<StringRef, 4> names;
  part.rtrim("? ").split(names, '+');
  if (names.size() > 1 && llvm::any_of(names, [](StringRef n) { return n.trim().empty(); }))
    return "an axis of the mesh is missing beside +";
  if (part.contains("...")) return "... stands alone, for axes that the rule does not name";
  if (!part.contains('?')) return nullptr;
  StringRef axes = part;
  bool isLast = axes.consume_back("?");
  axes = axes.trim();
  if (axes.empty() || axes == "-") return "? stands behind an axis of the mesh";
  if (!isLast || axes.contains('?')) return "? stands once, behind the last axis of the mesh";
  return nullptr;
}

llvm::Expected<Sharding> astra::shardingFor(const Mesh &mesh, StringRef text, llvm::ArrayRef<UOpRef> shape) {
  auto wrong = [&](const llvm::Twine &what) { return llvm::createStringError("'" + text.trim() + "': " + what); };
  StringRef inside = text.trim();
  bool isGathered = inside.consume_back("gathered");
  inside = inside.rtrim();
  bool opens = inside.consume_front("("), closes = inside.consume_back(")");
  if (opens && !closes)
    return wrong(inside.contains(')') ? "behind ) stands nothing, or gathered"
                                      : "a parenthesis is missing: ( without )");
  if (closes && !opens)
    return wrong(inside.contains('(') ? "something stands before (" : "a parenthesis is missing: ) without (");
  if (size_t at = inside.find_first_of("()"); at != StringRef::npos)
    return wrong("one pair of parentheses is around all axes; there is another one at character " +
                 llvm::Twine(inside.data() + at - text.trim().data() + 1));
  llvm::SmallVector<StringRef, 4> parts;
  if (!inside.trim().empty()) inside.split(parts, ',');
  for (auto [i, part] : llvm::enumerate(parts)) {
    part = part.trim();
    if (const char *what = oddness(part)) return wrong("entry " + llvm::Twine(i + 1) + " is '" + part + "': " + what);
    StringRef axes = part;
    axes.consume_back("?");
    if (axes == "...") continue;
    if (auto known = parseSharding(mesh, axes); !known)
      return wrong("entry " + llvm::Twine(i + 1) + " is '" + part + "': " + llvm::toString(known.takeError()));
  }
  if (!text.contains("...") && !text.contains('?')) return parseSharding(mesh, text);
  if (mesh.form != MeshForm::Whole) return wrong("... and ? are of modules of whole tensors");
  auto rest = llvm::find(parts, "...");
  if (rest != parts.end()) {
    if (llvm::count(parts, "...") > 1) return wrong("... stands once");
    // Axes that the tensor does not have: those behind a "?" are given up, the last first.
    size_t at = rest - parts.begin();
    parts.erase(rest);
    for (size_t i = parts.size(); i-- > 0 && parts.size() > shape.size();)
      if (parts[i].ends_with("?")) parts.erase(parts.begin() + i), at -= i < at;
    if (parts.size() < shape.size()) parts.insert(parts.begin() + at, shape.size() - parts.size(), "-");
  }
  std::string exact;
  for (size_t i = 0; i < parts.size(); ++i) {
    StringRef part = parts[i];
    if (part.consume_back("?") && i < shape.size()) {
      auto extent = shape[i]->constIndex();
      if (extent && *extent % mesh.count(llvm::cantFail(parseSharding(mesh, part)).axes[0])) part = "-";
    }
    exact += ((i ? ", " : "") + part).str();
  }
  auto s = parseSharding(mesh, "(" + exact + (isGathered ? ") gathered" : ")"));
  if (s && s->isReplicated()) s->gathered = false; // nothing is stored cut
  return s;
}
