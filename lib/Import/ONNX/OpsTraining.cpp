//===- OpsTraining.cpp: optimizers of ai.onnx.preview.training --------------===//
// Takes:    nodes that are one step of an optimizer for several tensors: rate, count, tensors, their gradients, then
//           what is kept of each.
// Gives:    the composites of OptimizerStep.h.
// Does not: know Gradient, which names values of the graph around it.
#include "OpTable.h"
#include "astra/Compose/OptimizerStep.h"

namespace astra::onnx {

namespace {

/// A step for each tensor: inputs and outputs are all tensors, then all of what is kept first, and so on.
template <class Step> void steps(Node &n, unsigned kept, const Step &step) {
  unsigned groups = 2 + kept, given = n.numInputs() - 2, count = given / groups;
  if (given % groups || !given)
    return void(n.fail("found " + llvm::Twine(given) + " inputs behind the rate and the count, expected " +
                       llvm::Twine(groups) + " for each tensor"));
  for (unsigned i = 0; i < count; ++i) {
    compose::StepOperands o{n.in(0), n.in(1), n.in(2 + i), n.in(2 + count + i), {}};
    for (unsigned k = 0; k < kept; ++k) o.kept[k] = n.in(2 + (2 + k) * count + i);
    compose::StepResult r = optimizerStep(n, o, step);
    if (n.failed()) return;
    n.give(i, r.x);
    for (unsigned k = 0; k < kept; ++k) n.give((1 + k) * count + i, r.kept[k]);
  }
}

void adagrad(Node &n) {
  steps(n, 1,
        compose::AdagradStep{n.floatAttr("decay_factor", 0), n.floatAttr("epsilon", 1e-6f),
                             n.floatAttr("norm_coefficient", 0)});
}

void adam(Node &n) {
  steps(n, 2,
        compose::AdamStep{n.floatAttr("alpha", 0.9f), n.floatAttr("beta", 0.999f), n.floatAttr("epsilon", 1e-6f),
                          n.floatAttr("norm_coefficient", 0), n.floatAttr("norm_coefficient_post", 0)});
}

void momentum(Node &n) {
  std::string mode = n.stringAttr("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return void(n.fail("attribute 'mode' is '" + mode + "', expected standard or nesterov"));
  steps(n, 1,
        compose::MomentumStep{n.floatAttr("alpha", 0), n.floatAttr("beta", 0), n.floatAttr("norm_coefficient", 0),
                              mode == "nesterov"});
}

constexpr Types floats = only(DType::F32) | only(DType::F64);

constexpr Row rows[] = {
    {"ai.onnx.preview.training::Adagrad", 1, latest, 3, anyNumber, adagrad, floats},
    {"ai.onnx.preview.training::Adam", 1, latest, 3, anyNumber, adam, floats},
    {"ai.onnx.preview.training::Momentum", 1, latest, 3, anyNumber, momentum, floats},
};

} // namespace

llvm::ArrayRef<Row> trainingRows() { return rows; }

} // namespace astra::onnx
