//===- SequenceTest.cpp: attention, recurrent layers, caches --------===//
// Keeps:    expected numbers were worked out with NumPy from the definitions, in f64.
#include "astra/Compose/Sequence.h"
#include "Compose.h"
#include "astra/Compose/Attention.h"
#include "astra/Compose/Recurrent.h"

namespace astra::compose {
namespace {

class Sequence : public testing::Test {
protected:
  Context c;
  Composer b{c};
};

TEST_F(Sequence, Attention) {
  AttentionOperands operands{tensor(b, {1, 1, 2, 2}, {1, 0, 0, 1}), tensor(b, {1, 1, 2, 2}, {1, 2, 3, 4}),
                             tensor(b, {1, 1, 2, 2}, {1, 2, 3, 5})};
  AttentionResult r = attention(b, operands, {});
  expectValues(b, r.result, {1, 1, 2, 2}, {2.60885937, 4.41328905, 2.60885937, 4.41328905});
  expectValues(b, r.scores, {1, 1, 2, 2}, {0.70710678, 2.12132034, 1.41421356, 2.82842712});
  AttentionOptions options;
  options.causal = true;
  expectValues(b, attention(b, operands, options).result, {1, 1, 2, 2}, {1, 2, 2.60885937, 4.41328905});
  operands.mask = tensor(b, {1, 2}, {0, 0}, DType::Bool);
  expectValues(b, attention(b, operands, {}).result, {1, 1, 2, 2}, {0, 0, 0, 0});
  operands.mask = nullptr;
  auto same = [](UOpRef x) { return x; };
  expectValues(b, modifiedAttention(b, operands, {}, same, same), {1, 1, 2, 2},
               {2.60885937, 4.41328905, 2.60885937, 4.41328905});
  operands.query = tensor(b, {1, 2, 2}, {1, 0, 0, 1});
  operands.key = operands.value = operands.query;
  expectRefusal(b, attention(b, operands, {}).result, "option 'q_num_heads' is needed for an input of rank 3");
  options.heads = options.keyHeads = 1;
  expectValues(b, attention(b, operands, options).keys, {1, 1, 2, 2}, {1, 0, 0, 1});
}

TEST_F(Sequence, Recurrent) {
  UOpRef x = tensor(b, {2, 1, 1}, {1, 2});
  RecurrentOperands rnn{x, tensor(b, {1, 1, 1}, {0.5}), tensor(b, {1, 1, 1}, {0.25}), tensor(b, {1, 2}, {0.1, 0})};
  RecurrentResult r = recurrent(b, RecurrentCell::RNN, rnn, {});
  expectValues(b, r.all, {2, 1, 1, 1}, {0.53704957, 0.84381124});
  expectValues(b, r.hidden, {1, 1, 1}, {0.84381124});
  rnn.lengths = tensor(b, {1}, {1}, DType::I32);
  expectValues(b, recurrent(b, RecurrentCell::RNN, rnn, {}).all, {2, 1, 1, 1}, {0.53704957, 0});
  RecurrentOperands gru{x, tensor(b, {1, 3, 1}, {0.1, 0.2, 0.3}), tensor(b, {1, 3, 1}, {0.4, 0.5, 0.6})};
  expectValues(b, recurrent(b, RecurrentCell::GRU, gru, {}).all, {2, 1, 1, 1}, {0.13837955, 0.32783029});
  RecurrentOperands lstm{x, tensor(b, {1, 4, 1}, {0.1, 0.2, 0.3, 0.4}), tensor(b, {1, 4, 1}, {0.5, 0.6, 0.7, 0.8})};
  r = recurrent(b, RecurrentCell::LSTM, lstm, {});
  expectValues(b, r.all, {2, 1, 1, 1}, {0.10824109, 0.2990078});
  expectValues(b, r.cell, {1, 1, 1}, {0.53190443});
  RecurrentOptions options;
  options.activations = {"sigmoid", "nothing", "tanh"};
  expectRefusal(b, recurrent(b, RecurrentCell::LSTM, lstm, options).all,
                "activation 'nothing' is not known: expected one of Relu, Tanh, Sigmoid, Affine, LeakyRelu, "
                "ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign, Softplus");
  lstm.bias = tensor(b, {1, 3}, {1, 2, 3});
  expectRefusal(b, recurrent(b, RecurrentCell::LSTM, lstm, {}).all, "B has the shape [1, 3], expected [1, 8]");
}

TEST_F(Sequence, PartsOfSequences) {
  UOpRef x = tensor(b, {3, 2}, {1, 2, 3, 4, 5, 6}), lengths = tensor(b, {2}, {3, 2}, DType::I64);
  expectValues(b, reverseSequence(b, x, lengths, 1, 0), {3, 2}, {5, 4, 3, 2, 1, 6});
  UOpRef pair = tensor(b, {1, 1, 1, 2}, {1, 2}), cosine = tensor(b, {1, 1, 1}, {0.6}),
         sine = tensor(b, {1, 1, 1}, {0.8});
  expectValues(b, rotaryEmbedding(b, pair, cosine, sine, nullptr, {}), {1, 1, 1, 2}, {-1, 2});
  UOpRef cache = tensor(b, {1, 3, 1}, {1, 2, 3}), row = tensor(b, {1, 2, 1}, {8, 9}),
         two = tensor(b, {1}, {2}, DType::I64);
  expectValues(b, updatedCache(b, cache, row, nullptr, 1, false), {1, 3, 1}, {8, 9, 3});
  expectValues(b, updatedCache(b, cache, row, two, 1, false), {1, 3, 1}, {1, 2, 8});
  expectValues(b, updatedCache(b, cache, row, two, 1, true), {1, 3, 1}, {9, 2, 8});
  CausalConvolution y =
      causalConvolution(b, tensor(b, {1, 1, 3}, {1, 2, 3}), tensor(b, {1, 1, 2}, {10, 1}), nullptr, nullptr, false);
  expectValues(b, y.value, {1, 1, 3}, {1, 12, 23});
  expectValues(b, y.state, {1, 1, 1}, {3});
  LinearAttentionOperands operands{tensor(b, {1, 2, 1}, {1, 2}), tensor(b, {1, 2, 1}, {3, 4}),
                                   tensor(b, {1, 2, 1}, {5, 6})};
  LinearAttention a = linearAttention(b, operands);
  expectValues(b, a.value, {1, 2, 1}, {15, 78});
  expectValues(b, a.state, {1, 1, 1, 1}, {39});
  operands.heads = 0;
  expectRefusal(b, linearAttention(b, operands).value,
                "q_num_heads is 0, which is no positive multiple of kv_num_heads, 1");
}

} // namespace
} // namespace astra::compose
