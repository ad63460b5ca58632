//===- Targets.cpp: what --target and --tune take -----------------------------===//
// Takes:    the targets and the cores of a command line.
// Gives:    the targets beside these that are planned for the cores.
#include "Targets.h"
#include "astra/Codegen/GPU.h"
#include "astra/Search/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;

std::string astra::targetNames() {
  std::vector<std::string> names;
  for (const Target &t : allTargets()) names.push_back(t.name);
  return llvm::join(names, ", ");
}

std::vector<std::string> astra::targetWords() {
  std::vector<std::string> out{"native", metalTarget().name};
  for (const Target &t : allTargets()) out.push_back(t.name);
  for (const char *before : {"", "emu:"})
    for (const GpuTarget &t : allGpuTargets()) out.push_back(std::string(before) + t.name);
  return out;
}

std::vector<std::string> astra::coreWords() {
  std::vector<std::string> words;
  for (const Core &c : allCores()) words.push_back(c.name);
  words.push_back("native");
  return words;
}

std::string astra::addTuned(PipelineOptions &o, const std::vector<std::string> &cores) {
  std::vector<const Target *> given = o.targets;
  for (const std::string &name : cores) {
    const Core *core = name == "native" ? nativeCore() : coreNamed(name);
    if (!core && name == "native")
      return "--tune=native: this machine's cores are none of " + llvm::join(coreWords(), ", ");
    if (!core) return "--tune=" + name + ": there is no such core; they are " + llvm::join(coreWords(), ", ");
    const Target *best = nullptr;
    for (const Target *t : given)
      if (!t->level && tunedTarget(*t, *core) && (!best || t->rank > best->rank)) best = t;
    if (!best)
      return "--tune=" + name + ": none of the targets runs on " + core->title + "; it runs " + core->level +
             " and what is below it";
    const Target *tuned = tunedTarget(*best, *core);
    if (llvm::is_contained(o.targets, tuned)) return "target " + std::string(tuned->name) + " is given twice";
    o.targets.push_back(tuned);
  }
  return "";
}
