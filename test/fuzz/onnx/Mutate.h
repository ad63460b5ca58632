//===- Mutate.h: models that are nearly right ------------------------------===//
// Takes:    a model, a seed, perhaps a second model.
// Gives:    the model altered in one to four places.
// Keeps:    a function of model, donor and seed alone.
#pragma once
#include <cstdint>

namespace astra::onnx::proto {
class Model;
}

namespace astra::fuzz {

/// Alters ops, attributes, shapes, types, wires, nodes, constants or opsets; with a donor, takes parts of it over.
void mutate(onnx::proto::Model &model, const onnx::proto::Model *donor, uint32_t seed);

} // namespace astra::fuzz
