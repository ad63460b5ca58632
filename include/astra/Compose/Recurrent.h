//===- Recurrent.h: RNN, GRU, LSTM -----------------------------------------===//
// Takes:    a sequence, weights of one or two directions D (1 or 2), initial states, lengths. N is the batch, T the
//           steps, I the inputs, H the hidden size, G the gates of a cell: 1, 3 (z, r, h) or 4 (i, o, f, c).
// Gives:    one `scan` per direction; the inputs' products with W and the biases are made before it, for all steps at
//           once, in one contract.
// Keeps:    f16 and bf16 in f32 throughout, states too, rounded once (N4). Past the end of a sequence the states stay
//           and the outputs are 0; a sequence of length 0 ends in its initial states.
#pragma once
#include "astra/Compose/Composer.h"
#include <cmath>

namespace astra::compose {

enum class RecurrentCell { RNN, GRU, LSTM };

struct RecurrentOperands {
  UOpRef x = nullptr;         // [T, N, I], of a float type; all others but the lengths are of it
  UOpRef w = nullptr;         // [D, G H, I]
  UOpRef r = nullptr;         // [D, G H, H]
  UOpRef bias = nullptr;      // [D, 2 G H]: of W, then of R; null: 0
  UOpRef lengths = nullptr;   // integers [N]: of each sequence; null: T
  UOpRef hidden = nullptr;    // [D, N, H], at the beginning; null: 0
  UOpRef cell = nullptr;      // LSTM: the same
  UOpRef peepholes = nullptr; // LSTM: [D, 3 H], of i, o, f; null: none
};

struct RecurrentOptions {
  enum class Direction { Forward, Reverse, Bidirectional } direction = Direction::Forward;
  bool batchFirst = false;                   // x is [N, T, I], states [N, D, H], the result [N, T, D, H]
  bool linearBeforeReset = false;            // GRU: the reset gate is applied after R
  bool inputForget = false;                  // LSTM: the gate f is 1 - i
  double clip = INFINITY;                    // of what every activation takes
  std::optional<int64_t> hiddenSize;         // only checked
  std::vector<std::string> activations;      // by name, of each direction in turn; empty: sigmoid and tanh
  llvm::SmallVector<float, 4> alphas, betas; // go, in order, to the activations that take one
  bool allSteps = true;                      // whether `all` of the result is wanted
  bool roundsByRange = false; // x, and in every step h, become what quantizeByRange (Quantization.h) leaves of them
};

struct RecurrentResult {
  UOpRef all = nullptr;                    // [T, D, N, H]
  UOpRef hidden = nullptr, cell = nullptr; // after the last step, [D, N, H]; cell: of an LSTM
};

RecurrentResult recurrent(Composer &b, RecurrentCell cell, const RecurrentOperands &operands,
                          const RecurrentOptions &options);

/// Weights or biases [G H, ...] whose gates stand as PyTorch has them, r, z, n or i, f, g, o: in the order of
/// `recurrent`, which is ONNX's.
UOpRef gatesInOrder(Composer &b, RecurrentCell cell, UOpRef w);

} // namespace astra::compose
