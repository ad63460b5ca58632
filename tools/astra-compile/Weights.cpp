//===- Weights.cpp: a model with other weights --------------------------------===//
// Takes:    a module whose parameters have the names that they have in the model, what a file holds.
// Gives:    the module with the file's values.
// Keeps:    the module as it was if anything is refused.
#include "Weights.h"
#include "astra/IR/Text.h"
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

llvm::Error astra::setWeights(Module &m, const std::string &path, tool::Safetensors &file,
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
  for (const auto &[name, a] : file.tensors) {
    auto place = places.find(name);
    if (place == places.end()) return fail(path + ": has '" + name + "', which is no weight of the model");
    UOpRef value = place->second.first;
    if (!fits(a, value)) {
      std::string found = DType(a.dtype + 1) == value->dtype ? "another shape" : "another type";
      return fail(path + ": '" + name + "' has " + found + " than in the model, where it is " +
                  typeText(value->dtype, value->shape));
    }
  }
  for (auto &[name, a] : file.tensors)
    *places[name].second = std::make_shared<const std::vector<uint8_t>>(std::move(a.data));
  for (Param &p : m.params)
    if (file.find(p.value->str.str())) p.file.clear(), p.tensor.clear();
  return llvm::Error::success();
}
