//===- ShardingRule.cpp: a sharding for tensors of several ranks ------------===//
// Takes:    text of command lines, modules and nodes, which may be wrong; the shape of one tensor.
// Gives:    the sharding of that tensor, or a sentence.
// Does not: check that axes divide where the text does not ask (Verify.cpp, Annotate.cpp).
#include "astra/IR/ShardingRule.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::StringRef;

llvm::Expected<Sharding> astra::shardingFor(const Mesh &mesh, StringRef text, llvm::ArrayRef<UOpRef> shape) {
  if (!text.contains("...") && !text.contains('?')) return parseSharding(mesh, text);
  auto wrong = [&](const char *what) { return llvm::createStringError("'" + text.trim() + "': " + what); };
  if (mesh.form != MeshForm::Whole) return wrong("... and ? are of modules of whole tensors");
  size_t begin = text.find('('), end = text.rfind(')');
  if ((begin == StringRef::npos) != (end == StringRef::npos)) return wrong("a parenthesis is missing");
  StringRef inside = begin == StringRef::npos ? text : text.slice(begin + 1, end);
  StringRef behind = end == StringRef::npos ? "" : text.substr(end + 1);
  llvm::SmallVector<StringRef, 4> parts;
  inside.split(parts, ',');
  for (StringRef &part : parts) part = part.trim();
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
    if (part == "?") return wrong("? stands behind an axis of the mesh");
    if (part.consume_back("?") && i < shape.size()) {
      auto one = parseSharding(mesh, part);
      if (!one) return one.takeError();
      auto extent = shape[i]->constIndex();
      if (one->axes.size() == 1 && extent && *extent % mesh.count(one->axes[0])) part = "-";
    }
    exact += ((i ? ", " : "") + part).str();
  }
  auto s = parseSharding(mesh, "(" + exact + ")" + behind.str());
  if (s && s->isReplicated()) s->gathered = false; // nothing is stored cut
  return s;
}
