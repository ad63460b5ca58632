//===- LossScale.h: gradients of a scaled loss -----------------------------===//
// Takes:    gradients of `factor` times the loss.
// Gives:    those of the loss; whether all are finite, and the next factor.
// Keeps:    a step whose gradients are not finite replaces nothing but the factor, where that is dynamic. PyTorch's
//           definitions (torch.amp.GradScaler, 2.15).
// Does not: scale what the loss entry gives.
#pragma once
#include "astra/IR/Module.h"
#include "astra/NN/Recipe.h"

namespace astra {
class Builder;
}

namespace astra::nn {

/// Every way there is, for --help and the documentation. The first is none.
llvm::ArrayRef<Signature> lossScales();
llvm::Expected<Recipe> parseLossScale(llvm::StringRef text);

/// Whether a training keeps a state of this name for a loss scale: "loss_scale" (f32), "loss_scale.steps" (i64).
bool isOfLossScale(llvm::StringRef state);

/// Of a step.
class LossScale {
public:
  /// Scalars that a dynamic recipe keeps: the factor (f32), and the steps since it changed (i64).
  struct Kept {
    UOpRef factor = nullptr, steps = nullptr;
  };
  /// The factor of the first step; nothing: the loss is not scaled. Steps begin at 0.
  static std::optional<float> first(const Recipe &recipe);
  static bool isDynamic(const Recipe &recipe);

  /// `kept`: of a recipe that does, else nothing.
  LossScale(Builder &b, const Recipe &recipe, Kept kept);
  /// f32, a scalar; null: the loss is not scaled.
  UOpRef factor() const { return now.factor; }
  /// The gradients of the loss itself. To be called before the others below.
  llvm::SmallVector<UOpRef> unscaled(llvm::ArrayRef<UOpRef> gradients);
  /// Whether all gradients are finite, a bool; null: nobody asks, and no step is left out.
  UOpRef isFinite() const { return finite; }
  /// What a step makes of a value: `now`, or `before` where a gradient was not finite.
  UOpRef chosen(UOpRef before, UOpRef now) const;
  /// What a step makes of what is kept.
  Kept next() const;

private:
  Builder &b;
  const Recipe &recipe;
  Kept now;
  UOpRef finite = nullptr;
};

/// The states of a training that keeps a loss scale, with their first values.
LossScale::Kept addLossScale(Builder &b, const Recipe &recipe, std::vector<StateVar> &states);
/// Their updates.
void updateLossScale(const LossScale &scale, std::vector<StateUpdate> &updates);

} // namespace astra::nn
