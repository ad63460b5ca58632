//===- LossScale.cpp: gradients of a scaled loss ---------------------------===//
// Takes:    a recipe of the table, gradients.
// Gives:    graphs: the gradients of the loss, whether all are finite, the factor's next value.
// Keeps:    the factor is f32 and is divided out by one product with its reciprocal: of powers of two exactly.
#include "astra/NN/LossScale.h"
#include "Elements.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"

using namespace astra;
using namespace astra::nn;
using llvm::ArrayRef;

namespace {
constexpr Bounds factorBounds{.least = 0x1p-100, .most = 0x1p100}, fromOne{.least = 1, .most = 0x1p100},
    belowOne{.least = 0, .most = 1, .aboveLeast = true, .belowMost = true};
constexpr Parameter scaleOf(double v) { return {"scale", v, factorBounds, "what the loss is multiplied by"}; }
constexpr Parameter staticParameters[] = {scaleOf(1024)};
constexpr Parameter dynamicParameters[] = {
    {"scale", 65536, factorBounds, "what the loss is multiplied by at first"},
    {"growth", 2, fromOne, "the factor after `interval` steps whose gradients were finite"},
    {"backoff", 0.5, belowOne, "the factor after a step that was left out"},
    {"interval", 2000, wholeFromOne, "steps in a row"},
    {"most", 0x1p24, factorBounds, "the greatest scale"}};
constexpr Relation dynamicRelations[] = {
    {[](const Recipe &r) { return r["scale"] <= r["most"]; }, "scale is at most `most`"}};

constexpr Signature rows[] = {
    {"none", {}, "the loss is not scaled"},
    {"static", staticParameters, "by one number; a gradient that is not finite goes where it goes"},
    {"dynamic", dynamicParameters,
     "less after a step with a gradient that is not finite, which replaces no weight, and more after many without one",
     dynamicRelations},
};
enum Row : size_t { None, Static, Dynamic };
constexpr llvm::StringLiteral ofScale = "loss_scale", ofSteps = "loss_scale.steps";

Bytes bytesOf(float v) {
  auto bytes = std::make_shared<std::vector<uint8_t>>();
  for (unsigned k = 0; k < 4; ++k) bytes->push_back(uint8_t(llvm::bit_cast<uint32_t>(v) >> 8 * k));
  return bytes;
}
} // namespace

ArrayRef<Signature> nn::lossScales() { return rows; }
llvm::Expected<Recipe> nn::parseLossScale(llvm::StringRef text) { return Recipe::parse(text, rows, "loss scale"); }
bool nn::isOfLossScale(llvm::StringRef state) { return state == ofScale || state == ofSteps; }

std::optional<float> LossScale::first(const Recipe &recipe) {
  return recipe.row == None ? std::nullopt : std::optional(float(recipe["scale"]));
}
bool LossScale::isDynamic(const Recipe &recipe) { return recipe.row == Dynamic; }

LossScale::LossScale(Builder &b, const Recipe &recipe, Kept kept) : b(b), recipe(recipe), now(kept) {
  if (recipe.row == Static) now.factor = b.lit(DType::F32, recipe["scale"]);
}

llvm::SmallVector<UOpRef> LossScale::unscaled(ArrayRef<UOpRef> gradients) {
  llvm::SmallVector<UOpRef> out(gradients);
  if (!now.factor) return out;
  UOpRef back = b.div(b.lit(DType::F64, 1), b.cast(now.factor, DType::F64));
  for (UOpRef &g : out) {
    g = b.mul(g, b.cast(back, g->dtype));
    if (!now.steps) continue;
    UOpRef infinity = b.lit(g->dtype, std::numeric_limits<double>::infinity());
    UOpRef below = b.lt(b.un(Op::Abs, g), infinity); // not so of a NaN
    UOpRef all = b.reduce(ReduceKind::And, below, llvm::to_vector<6>(llvm::seq<int64_t>(0, g->rank())));
    finite = finite ? b.bin(Op::And, finite, all) : all;
  }
  return out;
}

UOpRef LossScale::chosen(UOpRef before, UOpRef now) const {
  if (!finite) return now;
  return b.select(now->rank() ? b.splat(finite, now->shape) : finite, now, before);
}

LossScale::Kept LossScale::next() const {
  auto n = [&](const char *name) { return b.lit(DType::F32, recipe[name]); };
  auto whole = [&](int64_t v) { return b.litInt(DType::I64, v); };
  UOpRef count = b.add(now.steps, whole(1)), isDue = b.eq(count, whole(int64_t(recipe["interval"])));
  UOpRef more = b.select(isDue, b.min(b.mul(now.factor, n("growth")), n("most")), now.factor);
  UOpRef less = b.max(b.mul(now.factor, n("backoff")), b.lit(DType::F32, factorBounds.least));
  return {b.select(finite, more, less), b.select(finite, b.select(isDue, whole(0), count), whole(0))};
}

LossScale::Kept nn::addLossScale(Builder &b, const Recipe &recipe, std::vector<StateVar> &states) {
  if (!LossScale::isDynamic(recipe)) return {};
  LossScale::Kept kept{b.state(ofScale, DType::F32, {}), b.state(ofSteps, DType::I64, {})};
  states.push_back({kept.factor, bytesOf(*LossScale::first(recipe))});
  states.push_back({kept.steps, nullptr});
  return kept;
}

void nn::updateLossScale(const LossScale &scale, std::vector<StateUpdate> &updates) {
  if (!scale.isFinite()) return;
  LossScale::Kept next = scale.next();
  updates.push_back({ofScale.str(), next.factor});
  updates.push_back({ofSteps.str(), next.steps});
}
