//===- MLAttributes.h: what classifiers of ai.onnx.ml share ----------------===//
#pragma once
#include "Node.h"
#include "astra/Compose/Scores.h"

namespace astra::onnx {

compose::ScoreTransform scoreTransform(Node &n, const std::string &name);
/// Integers that are labels or categories; strings are refused.
Ints classLabels(Node &n, const char *integers, const char *strings);

} // namespace astra::onnx
