//===- RecurrentAttributes.h: the attributes of RNN, GRU, LSTM -------------===//
#pragma once
#include "Node.h"
#include "astra/Compose/Recurrent.h"

namespace astra::onnx {

/// Those that all have: direction, clip, hidden_size, activations with their numbers; and whether output 0 is wanted.
compose::RecurrentOptions recurrentAttributes(Node &n);

} // namespace astra::onnx
