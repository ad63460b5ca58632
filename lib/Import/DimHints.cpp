//===- DimHints.cpp: flags that bound dims ---------------------------------===//
// Takes:    extents that may be too small, of either sign, or that must be constant.
// Gives:    the end of a sentence, with the --dim flags that help; "" where none does.
#include "DimHints.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace astra {

std::string shellWord(llvm::StringRef word) {
  auto plain = [](char ch) { return llvm::isAlnum(ch) || llvm::StringRef("_.:/-=+,@%").contains(ch); };
  if (llvm::all_of(word, plain)) return word.str();
  std::string quoted = "'";
  for (char ch : word) quoted += ch == '\'' ? std::string("'\\''") : std::string(1, ch);
  return quoted + "'";
}

static std::vector<std::string> dimsOf(llvm::ArrayRef<UOpRef> extents) {
  std::vector<std::string> names;
  for (UOpRef extent : extents)
    for (UOpRef part : topoSort(extent))
      if (part->is(Op::Dim) && !llvm::is_contained(names, part->str.str())) names.push_back(part->str.str());
  llvm::sort(names);
  return names;
}

std::string boundHint(Context &c, UOpRef extent, int64_t least) {
  for (UOpRef dim : topoSort(extent)) {
    if (!dim->is(Op::Dim)) continue;
    auto holds = [&](int64_t lo, int64_t hi) {
      UOpRef other = c.make(Op::Dim, {}, {lo, hi}, dim->str.str() + "_");
      return idxSubstitute(c, extent, dim, lo == hi ? c.index(lo) : other)->lo >= least;
    };
    for (bool raise : {true, false}) { // the lower bound, or the upper one lowered
      int64_t good = raise ? dim->hi : dim->lo, bad = raise ? dim->lo : dim->hi;
      auto within = [&](int64_t bound) { return raise ? holds(bound, dim->hi) : holds(dim->lo, bound); };
      if (good == bad || !within(good)) continue;
      while (std::abs(good - bad) > 1) {
        int64_t middle = bad + (good - bad) / 2;
        (within(middle) ? good : bad) = middle;
      }
      std::string bounds = std::to_string(raise ? good : dim->lo) + ".." + std::to_string(raise ? dim->hi : good);
      return "; give --dim " + shellWord((dim->str + "=" + bounds).str());
    }
  }
  return "";
}

std::string signHint(UOpRef extent) {
  std::vector<std::string> names = dimsOf(extent);
  return names.empty() ? "" : "; give --dim " + llvm::join(names, ", ") + " bounds between which it has one sign";
}

std::string fixHint(llvm::ArrayRef<UOpRef> extents) {
  std::vector<std::string> names = dimsOf(extents);
  if (names.empty()) return "";
  std::string flags;
  for (const std::string &name : names) flags += " --dim " + shellWord(name + "=N");
  return "; fix " + llvm::join(names, " and ") + " with" + flags;
}

} // namespace astra
