//===- Mixture.h: a mixture of experts as fused operators have it -----------===//
// Takes:    tokens, a router's scores of the experts, the experts' matrices side by side.
// Gives:    for each token the sum of what its experts give, each by its weight.
// Keeps:    f16 and bf16 compute in f32 and round once (N4). Of equal scores the first expert is chosen. Every expert
//           computes every token; what one that was not chosen gives counts for nothing, even if it is no number.
#pragma once
#include "astra/Compose/Decoder.h"

namespace astra::compose {

/// A layer of all experts: weights [experts, out, in], bias [experts, out] or null.
struct ExpertLayer {
  UOpRef weights = nullptr, bias = nullptr;
};

struct MixtureOperands {
  UOpRef x = nullptr;      // [rows, width] or [batch, sequence, width]
  UOpRef scores = nullptr; // [rows, experts]
  UOpRef shares = nullptr; // [rows, experts]: how much a chosen expert counts; null: its part of the scores' softmax
  ExpertLayer first, second;
  ExpertLayer gated; // beside the first layer; without weights: none
};

struct MixtureOptions {
  enum Activation { Relu, Gelu, Silu, Identity, SwiGLU };
  enum Halves { Apart, Interleaved, OneBehindTheOther }; // where SwiGLU's gate and its other factor are
  RoutingOptions routing;
  Activation activation = Relu;
  Halves halves = Apart;                                  // Apart: the first layer is the gate, `gated` the other
  double alpha = 1, beta = 0;                             // gate * sigmoid(alpha * gate) * (other + beta)
  double limit = std::numeric_limits<double>::infinity(); // the gate is at most this, the other within +-
};

UOpRef mixture(Composer &b, const MixtureOperands &operands, const MixtureOptions &options);

} // namespace astra::compose
