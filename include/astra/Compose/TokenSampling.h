//===- TokenSampling.h: the next token of a language model ------------------===//
// Takes:    scores of all tokens for several sequences, and for each sequence how to choose.
// Gives:    a token for each, greedy or drawn.
// Keeps:    what one sequence gets follows from its own operands alone, its seed and its length: the same in any batch.
//           No sort: the least score that is kept is found bit by bit.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// All of the first axis [batch].
struct TokenSamplingOperands {
  UOpRef scores = nullptr;      // f32 [batch, tokens], before any softmax
  UOpRef allowed = nullptr;     // bool [batch, tokens]
  UOpRef history = nullptr;     // i32 [batch, capacity]: the tokens of the sequence, of which ...
  UOpRef lengths = nullptr;     // ... i32 [batch] are there
  UOpRef temperature = nullptr; // f32: above 0, else the greatest score is taken
  UOpRef topK = nullptr;        // i32: so many of the greatest scores are kept, and equals of the least; 0: all
  UOpRef topP = nullptr;        // f32: the fewest of the greatest that have this probability together; 1: all
  UOpRef minP = nullptr;        // f32: those that have this part of the greatest probability; 0: all
  UOpRef repetition = nullptr; // f32: scores of tokens in the history are divided by it, below 0 multiplied; 1: nothing
  UOpRef seed = nullptr;       // u32: with the length, as the stream, it gives the number that is drawn (N13)
};
struct SampledTokens {
  UOpRef tokens = nullptr;   // i32 [batch]; -1 where nothing is allowed
  UOpRef logprobs = nullptr; // f32 [batch]: of these tokens by the scores as they came
};
/// The repetition's penalty, what is allowed, temperature, topK, topP and minP, in this order.
SampledTokens sampleTokens(Composer &b, const TokenSamplingOperands &operands);

} // namespace astra::compose
