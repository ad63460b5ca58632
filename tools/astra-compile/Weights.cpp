//===- Weights.cpp: a model with other weights --------------------------------===//
// Takes:    a module whose parameters have the names that they have in the model, what a file holds.
// Gives:    the module with the file's values; what a training keeps beside them is left out, which is said.
// Keeps:    the module as it was if anything is refused.
#include "Weights.h"
#include "astra/IR/Text.h"
#include "astra/NN/Optimizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/GlobPattern.h"

using namespace astra;
using llvm::StringRef;

static llvm::Error fail(const llvm::Twine &why) { return llvm::createStringError(why); }

static bool fits(const tool::Npy &a, UOpRef value) {
  bool same = DType(a.dtype + 1) == value->dtype && a.shape.size() == value->rank();
  for (size_t i = 0; same && i < a.shape.size(); ++i) same = value->shape[i]->constIndex() == a.shape[i];
  return same;
}

/// Whether a tensor of a file with all states of a training (`--save-states`) is none of the model: the number of
/// steps, or what an optimizer keeps of a weight, `WEIGHT.NAME` of its type and shape.
static bool isOfTraining(StringRef name, const tool::Npy &a,
                         const llvm::StringMap<std::pair<UOpRef, Bytes *>> &places) {
  if (name == "step") return a.shape.empty() && DType(a.dtype + 1) == DType::I64;
  auto [owner, kept] = name.rsplit('.');
  auto weight = places.find(owner);
  return nn::isSlot(kept) && weight != places.end() && fits(a, weight->second.first);
}

llvm::Expected<std::string> astra::setWeights(Module &m, const std::string &path, tool::Safetensors &file,
                                              llvm::ArrayRef<std::string> kept) {
  std::vector<llvm::GlobPattern> patterns;
  for (const std::string &text : kept) {
    auto p = llvm::GlobPattern::create(text);
    if (!p) return fail("'" + text + "' is no pattern: " + llvm::toString(p.takeError()));
    patterns.push_back(*p);
  }
  llvm::StringMap<std::pair<UOpRef, Bytes *>> places;
  for (Param &p : m.params) {
    if (p.kind == ParamKind::Constant) continue;
    places[p.value->str] = {p.value, &p.data};
    bool isTrained = p.kind == ParamKind::Weight && p.value->rank() &&
                     (p.value->dtype == DType::F32 || p.value->dtype == DType::F64);
    StringRef name = p.value->str;
    if (!isTrained || file.find(name.str()) || llvm::any_of(patterns, [&](auto &g) { return g.match(name); })) continue;
    return fail(path + ": has no '" + name + "', which is a weight of the model: --freeze='" + name +
                "' keeps the model's own");
  }
  for (StateVar &s : m.states) places[s.value->str] = {s.value, &s.initial};
  size_t others = 0; // of a training
  for (const auto &[name, a] : file.tensors) {
    auto place = places.find(name);
    if (place == places.end() && isOfTraining(name, a, places)) {
      ++others;
      continue;
    }
    if (place == places.end()) return fail(path + ": has '" + name + "', which is no weight of the model");
    UOpRef value = place->second.first;
    if (!fits(a, value)) {
      std::string found = DType(a.dtype + 1) == value->dtype ? "another shape" : "another type";
      return fail(path + ": '" + name + "' has " + found + " than in the model, where it is " +
                  typeText(value->dtype, value->shape));
    }
  }
  for (auto &[name, a] : file.tensors)
    if (auto place = places.find(name); place != places.end())
      *place->second.second = std::make_shared<const std::vector<uint8_t>>(std::move(a.data));
  for (Param &p : m.params)
    if (file.find(p.value->str.str())) p.file.clear(), p.tensor.clear();
  if (!others) return "";
  return (path + ": left out " + llvm::Twine(others) + (others == 1 ? " state" : " states") +
          " of a training: the number of steps, and what its optimizer keeps")
      .str();
}
