//===- Importer.cpp: from a StableHLO program to a module -------------------===//
// Takes:    text and the options of the import.
// Gives:    a module with one entry, main; or an error.
// Keeps:    the program's order of arguments and results. A result's name is what JAX calls it (jax.result_info), else
//           result0, result1 ...
// Does not: know an op (Ops*.cpp).
#include "../DimHints.h"
#include "Arguments.h"
#include "Shardings.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace astra {
namespace stablehlo {

namespace {

/// The hints of a command line: flags.
class DimFlags : public compose::Hints {
public:
  explicit DimFlags(Context &c) : c(c) {}
  std::string bound(UOpRef extent, int64_t least) const override { return boundHint(c, extent, least); }
  std::string sign(UOpRef extent) const override { return signHint(extent); }
  std::string fix(llvm::ArrayRef<UOpRef> extents) const override { return fixHint(extents); }
  std::string equal(UOpRef x, UOpRef y) const override {
    if (!x->is(Op::Dim)) std::swap(x, y);
    if (!x->is(Op::Dim) || llvm::is_contained(topoSort(y), x)) return fixHint({x, y});
    return "; if they always are, say so with --dim " + shellWord((x->str + "=" + indexText(y)).str());
  }
  std::string means() const override { return " with --dim"; }
  std::string option(llvm::StringRef name) const override { return ("attribute '" + name + "'").str(); }

private:
  Context &c;
};

/// Ops without a row, or with one that refuses, each once, where they may be reached.
llvm::Error refuseUnknownOps(const File &file) {
  struct Found {
    const Operation *first;
    unsigned count = 0;
  };
  llvm::MapVector<llvm::StringRef, Found> found;
  std::vector<const Operation *> todo = {&file.module};
  while (!todo.empty()) {
    const Operation *op = todo.back();
    todo.pop_back();
    llvm::StringRef name = op->name;
    bool structure = name == "builtin.module" || name == "func.func" || name == "func.return" || name == "sdy.mesh" ||
                     name == "stablehlo.return" || name == "mhlo.return";
    const Row *row = structure ? nullptr : findRow(name);
    if (!structure && (!row || !row->lower)) {
      Found &f = found[op->name];
      if (!f.count++) f.first = op;
    }
    for (auto region = op->regions.rbegin(); region != op->regions.rend(); ++region)
      for (auto inner = region->ops.rbegin(); inner != region->ops.rend(); ++inner) todo.push_back(&*inner);
  }
  if (found.empty()) return llvm::Error::success();
  constexpr size_t most = 20;
  std::vector<std::string> lines;
  for (const auto &[name, f] : found) {
    const Row *row = findRow(name);
    std::string source = file.source(f.first->location), why = row ? row->remarks : "this op is not supported";
    lines.push_back(file.place(f.first->at) + ": error: " + name.str() + (source.empty() ? "" : " (" + source + ")") +
                    ": " + why + (f.count == 1 ? "" : " (" + std::to_string(f.count) + " ops are of it)"));
  }
  if (lines.size() > most) {
    lines.push_back("and " + std::to_string(lines.size() - most) + " more");
    lines.erase(lines.begin() + most, lines.end() - 1);
  }
  return llvm::createStringError(std::make_error_code(std::errc::not_supported), llvm::join(lines, "\n"));
}

const Operation *mainOf(const File &file) {
  const Operation *main = nullptr;
  unsigned functions = 0;
  if (file.module.regions.size() != 1) return nullptr;
  for (const Operation &op : file.module.regions[0].ops) {
    if (op.name != "func.func" || op.regions.size() != 1) continue;
    ++functions;
    const Attribute *name = op.find("sym_name");
    if (!main || (name && name->string == "main")) main = &op;
  }
  const Attribute *name = main ? main->find("sym_name") : nullptr;
  return functions == 1 || (name && name->string == "main") ? main : nullptr;
}

/// "result['loss']" as JAX has it: "loss" where that is a name; of several results without one, their place.
std::vector<std::string> resultNames(const Operation &main, size_t count) {
  std::vector<std::string> names(count);
  const Attribute *attributes = main.find("res_attrs");
  for (size_t i = 0; i < count; ++i) {
    if (attributes && i < attributes->items.size())
      for (const auto &[key, value] : attributes->items[i].fields)
        if (key == "jax.result_info") names[i] = value.string;
    llvm::StringRef name = names[i];
    if (name.consume_front("result['") && name.consume_back("']") && isIdentifier(name)) names[i] = name.str();
    if (names[i].empty()) names[i] = "result" + std::to_string(i);
  }
  for (size_t i = 0; i < count; ++i)
    while (llvm::is_contained(llvm::ArrayRef(names).take_front(i), names[i])) names[i] += "_";
  return names;
}

/// Programs of several replicas are refused, and those of several partitions without a mesh of as many shards:
/// collectives of one replica are what they are given.
llvm::Error checkDevices(const File &file, const Mesh &mesh) {
  for (const char *key : {"mhlo.num_partitions", "mhlo.num_replicas"})
    if (const Attribute *a = file.module.find(key); a && a->integer > 1)
      if (llvm::StringRef(key) == "mhlo.num_replicas" || a->integer != mesh.shards())
        return llvm::createStringError(std::make_error_code(std::errc::not_supported),
                                       file.place(file.module.at) + ": error: the program is for " +
                                           std::to_string(a->integer) + " devices (" + key +
                                           "), one is supported, or those of a mesh with names (sdy.mesh)");
  return llvm::Error::success();
}

/// Of arguments (arg_attrs) and results (res_attrs): `give(i, sharding)` for each that has one.
template <class Give> llvm::Error readShardings(const Operation &main, const char *key, const Mesh &mesh, Give give) {
  const Attribute *attributes = main.find(key);
  for (size_t i = 0; attributes && i < attributes->items.size(); ++i)
    for (const auto &[name, value] : attributes->items[i].fields) {
      if (name == "mhlo.sharding" && !mesh.isEmpty())
        return llvm::createStringError("mhlo.sharding has no names of axes: sdy.sharding is read");
      if (name != "sdy.sharding") continue;
      auto sharding = shardingOf(value, mesh);
      if (!sharding) return sharding.takeError();
      if (sharding->isDeclared()) give(i, *sharding);
    }
  return llvm::Error::success();
}

llvm::Expected<Module> import(const File &file, const StableHLOOptions &options) {
  auto wrong = [&](const llvm::Twine &sentence) {
    return llvm::createStringError(std::make_error_code(std::errc::invalid_argument),
                                   file.place(file.module.at) + ": error: " + sentence);
  };
  const Operation *main = mainOf(file);
  if (!main) return wrong("the module has no function main");
  llvm::Expected<Mesh> mesh = meshOf(file);
  if (!mesh) return wrong(llvm::toString(mesh.takeError()));
  if (llvm::Error e = checkDevices(file, *mesh)) return std::move(e);
  if (llvm::Error e = refuseUnknownOps(file)) return std::move(e);
  Module module;
  module.mesh = *mesh;
  module.entries.push_back({"main", {}, {}, {}});
  Entry &entry = module.entries[0];
  DimFlags hints(module.ctx());
  Lowering lowering(module, file, hints);
  llvm::Expected<std::vector<UOpRef>> arguments = Arguments(module, file, *main, options).declare(entry, module.params);
  if (!arguments) return arguments.takeError();
  std::vector<UOpRef> results = lowering.call(*main, *arguments);
  lowering.locate(*main);
  if (lowering.failed())
    return llvm::createStringError(
        std::make_error_code(lowering.isUnsupported() ? std::errc::not_supported : std::errc::invalid_argument),
        lowering.failure());
  if (results.empty()) return wrong("main has no result");
  std::vector<std::string> names = resultNames(*main, results.size());
  for (size_t i = 0; i < results.size(); ++i) entry.outputs.push_back({names[i], results[i]});
  llvm::Error e = readShardings(*main, "res_attrs", *mesh, [&](size_t i, const Sharding &s) {
    if (i < entry.outputs.size()) entry.outputs[i].sharding = s;
  });
  if (!e)
    e = readShardings(*main, "arg_attrs", *mesh, [&](size_t i, const Sharding &s) {
      for (Value &input : entry.inputs)
        if (i < arguments->size() && input.value == (*arguments)[i]) input.sharding = s;
      for (Param &param : module.params)
        if (i < arguments->size() && param.value == (*arguments)[i]) param.sharding = s;
    });
  if (e) return wrong(llvm::toString(std::move(e)));
  llvm::StringSet<> used;
  for (UOpRef node : topoSort(module.roots()))
    if (node->is(Op::Param)) used.insert(node->str);
  llvm::erase_if(module.params, [&](const Param &p) { return !used.count(p.value->str); });
  for (Param &param : lowering.params)
    if (used.count(param.value->str)) module.params.push_back(std::move(param));
  return module;
}

} // namespace

} // namespace stablehlo

llvm::Expected<Module> importStableHLO(llvm::StringRef text, llvm::StringRef path, const StableHLOOptions &options) {
  llvm::Expected<stablehlo::File> file = stablehlo::parseText(text, path);
  if (!file) return file.takeError();
  return stablehlo::import(*file, options);
}

std::vector<StableHLORow> stableHLORows() {
  using namespace stablehlo;
  std::vector<StableHLORow> rows;
  for (const Row *row : allRows()) rows.push_back({row->op, row->lower != nullptr, row->remarks});
  llvm::sort(rows, [](const StableHLORow &a, const StableHLORow &b) { return llvm::StringRef(a.op) < b.op; });
  return rows;
}

} // namespace astra
