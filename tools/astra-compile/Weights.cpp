//===- Weights.cpp: a model with other weights --------------------------------===//
// Takes:    a module whose parameters have the names that they have in the model, what a file holds.
// Gives:    the module with the file's values; what a training keeps beside them is left out, which is said.
// Keeps:    the module as it was if anything is refused.
#include "Weights.h"
#include "astra/Compose/WeightBlocks.h"
#include "astra/IR/Text.h"
#include "astra/NN/LossScale.h"
#include "astra/NN/Optimizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

using namespace astra;
using llvm::StringRef;

static llvm::Error fail(const llvm::Twine &why) { return llvm::createStringError(why); }

namespace {

/// A tensor of the file, or a plane of one, as a parameter would have it.
struct Array {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  llvm::ArrayRef<uint8_t> bytes;
};

} // namespace

static bool fits(const Array &a, UOpRef value) {
  bool same = a.dtype == value->dtype && a.shape.size() == value->rank();
  for (size_t i = 0; same && i < a.shape.size(); ++i) same = value->shape[i]->constIndex() == a.shape[i];
  return same;
}

/// Whether a tensor of a file with all states of a training (`--save-states`) is none of the model: the number of
/// steps, or what an optimizer keeps of a weight, `WEIGHT.NAME` of its type and shape.
static bool isOfTraining(StringRef name, const Array &a, const llvm::StringMap<std::pair<UOpRef, Bytes *>> &places) {
  if (name == "step") return a.shape.empty() && a.dtype == DType::I64;
  if (nn::isOfLossScale(name)) return a.shape.empty();
  auto [owner, kept] = name.rsplit('.');
  auto weight = places.find(owner);
  return nn::isSlot(kept) && weight != places.end() && fits(a, weight->second.first);
}

/// The tensors of a file, blocks as planes where the model has those; their bytes go to `planes`.
static llvm::Expected<std::vector<Array>> arraysOf(const WeightFile &file,
                                                   const llvm::StringMap<std::pair<UOpRef, Bytes *>> &places,
                                                   std::vector<std::vector<compose::Payload>> &planes) {
  std::vector<Array> all;
  for (const WeightTensor &t : file.tensors()) {
    if (!info(t.format).isBlocked()) {
      all.push_back({t.name, info(t.format).dtype, t.dims, t.bytes});
      continue;
    }
    auto place = places.find(t.name);
    if (place != places.end())
      return fail(file.path() + ": '" + t.name + "' is in blocks of " + info(t.format).text +
                  ", and the model has it as " + typeText(place->second.first->dtype, place->second.first->shape));
    planes.push_back(compose::splitBlocks(t.format, t.dims, t.bytes));
    for (auto [plane, payload] : llvm::zip(compose::planesOf(t.format), planes.back()))
      all.push_back({t.name + plane.suffix, payload.dtype, payload.dims, payload.bytes});
  }
  return all;
}

llvm::Expected<std::string> astra::setWeights(Module &m, const WeightFile &file, llvm::ArrayRef<std::string> kept) {
  const std::string &path = file.path();
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
    if (!isTrained || file.find(name) || llvm::any_of(patterns, [&](auto &g) { return g.match(name); })) continue;
    return fail(path + ": has no '" + name + "', which is a weight of the model: --freeze='" + name +
                "' keeps the model's own");
  }
  for (StateVar &s : m.states) places[s.value->str] = {s.value, &s.initial};
  std::vector<std::vector<compose::Payload>> planes;
  llvm::Expected<std::vector<Array>> arrays = arraysOf(file, places, planes);
  if (!arrays) return arrays.takeError();
  size_t others = 0; // of a training
  for (const Array &a : *arrays) {
    const std::string &name = a.name;
    auto place = places.find(name);
    if (place == places.end() && isOfTraining(name, a, places)) {
      ++others;
      continue;
    }
    if (place == places.end()) return fail(path + ": has '" + name + "', which is no weight of the model");
    UOpRef value = place->second.first;
    if (!fits(a, value)) {
      std::string found = a.dtype == value->dtype ? "another shape" : "another type";
      return fail(path + ": '" + name + "' has " + found + " than in the model, where it is " +
                  typeText(value->dtype, value->shape));
    }
  }
  llvm::StringSet<> replaced;
  for (const Array &a : *arrays)
    if (auto place = places.find(a.name); place != places.end()) {
      *place->second.second = std::make_shared<const std::vector<uint8_t>>(a.bytes.begin(), a.bytes.end());
      replaced.insert(a.name);
    }
  for (Param &p : m.params)
    if (replaced.contains(p.value->str)) p.file.clear(), p.tensor.clear();
  if (!others) return "";
  return (path + ": left out " + llvm::Twine(others) + (others == 1 ? " state" : " states") +
          " of a training: the number of steps, and what its optimizer keeps")
      .str();
}
