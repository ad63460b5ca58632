//===- OpsSequence.cpp: ops along a sequence's axis ----------------------===//
// Takes:    nodes that turn round, rotate, filter, update or accumulate parts of sequences.
// Gives:    the composites of Sequence.h.
#include "OpTable.h"
#include "astra/Compose/Sequence.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

UOpRef optional(Node &n, unsigned i) { return n.has(i) ? n.in(i) : nullptr; }

void reverseSequences(Node &n) {
  UOpRef x = n.in(0), lengths = n.in(1);
  int64_t batch = n.intAttr("batch_axis", 1), time = n.intAttr("time_axis", 0);
  if (!n.requireRank(x, 2) || !n.requireRank(lengths, 1, 1)) return;
  if (batch + time != 1 || batch * time != 0)
    n.fail("batch_axis and time_axis are " + llvm::Twine(batch) + " and " + llvm::Twine(time) +
           ", expected 0 and 1 or 1 and 0");
  else if (lengths->shape[0] != x->shape[batch])
    n.failExtents("there are " + dimsText(lengths->shape) + " lengths for " + dimsText(x->shape[batch]) + " sequences",
                  lengths->shape, {x->shape[batch]});
  n.give(reverseSequence(n, x, lengths, batch, time));
}

void rotaryEmbedding(Node &n) {
  compose::RotaryOptions options{n.intAttr("interleaved", 0) != 0, n.intAttr("num_heads", 0),
                                 n.intAttr("rotary_embedding_dim", 0)};
  n.give(rotaryEmbedding(n, n.in(0), n.in(1), n.in(2), optional(n, 3), options));
}

/// A row that would lie outside of the cache is dropped in the mode linear, which ONNX leaves open.
void tensorScatter(Node &n) {
  std::string mode = n.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular") n.fail("attribute 'mode' is '" + mode + "', expected linear or circular");
  n.give(updatedCache(n, n.in(0), n.in(1), optional(n, 2), n.intAttr("axis", -2), mode == "circular"));
}

void causalConvolution(Node &n) {
  std::string activation = n.stringAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.fail("attribute 'activation' is '" + activation + "', expected none, silu or swish");
  compose::CausalConvolution r =
      causalConvolution(n, n.in(0), n.in(1), optional(n, 2), optional(n, 3), activation != "none");
  n.give(r.value);
  if (n.wants(1)) n.give(1, r.state);
}

/// The update rule says whether the state decays and whether it is corrected by what it gives for the key.
void linearAttention(Node &n) {
  n.ignoreAttr("chunk_size"); // a hint
  std::string rule = n.stringAttr("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    n.fail("attribute 'update_rule' is '" + rule + "', expected linear, gated, delta or gated_delta");
  compose::LinearAttentionOperands operands{n.in(0), n.in(1), n.in(2), optional(n, 3), optional(n, 4), optional(n, 5)};
  operands.heads = n.intAttr("q_num_heads", 0);
  operands.keyHeads = n.intAttr("kv_num_heads", 0);
  operands.scale = n.floatAttr("scale", 0);
  if (n.has(4) != gated) n.fail("the input decay goes with the rules gated and gated_delta, the rule is " + rule);
  if (n.has(5) != delta) n.fail("the input beta goes with the rules delta and gated_delta, the rule is " + rule);
  compose::LinearAttention r = linearAttention(n, operands);
  n.give(r.value);
  if (n.wants(1)) n.give(1, r.state);
}

/// As of the default domain, of one spatial axis.
void causalConvolutionOfRuntime(Node &n) {
  constexpr std::pair<const char *, int64_t> usuals[] = {
      {"ndim", 1}, {"dilation", 1}, {"channels_last", 0}, {"state_window", 0}};
  for (auto [name, usual] : usuals)
    if (int64_t given = n.intAttr(name, usual); given != usual)
      n.unsupported(llvm::Twine("attribute '") + name + "' is " + llvm::Twine(given) + ", supported is " +
                    llvm::Twine(usual));
  if (!n.failed()) causalConvolution(n);
}

void linearAttentionOfRuntime(Node &n) {
  if (n.intAttr("state_window", 0)) n.unsupported("attribute 'state_window' is set: states of several steps");
  if (!n.failed()) linearAttention(n);
}

constexpr Row rows[] = {
    {"CausalConvWithState", 27, latest, 2, 4, causalConvolution, floatTypes},
    {"com.microsoft::CausalConvWithState", 1, latest, 2, 4, causalConvolutionOfRuntime, floatTypes,
     "one spatial axis, channels first, no dilation, one state"},
    {"com.microsoft::LinearAttention", 1, latest, 3, 6, linearAttentionOfRuntime, floatTypes,
     "one state; no fewer query heads than key heads"},
    {"LinearAttention", 27, latest, 3, 6, linearAttention, floatTypes},
    {"ReverseSequence", 10, latest, 2, 2, reverseSequences},
    {"RotaryEmbedding", 23, latest, 3, 4, rotaryEmbedding, floatTypes},
    {"TensorScatter", 24, latest, 2, 3, tensorScatter, anyType,
     "in the mode linear a row outside of the cache is dropped"},
};

} // namespace

llvm::ArrayRef<Row> sequenceRows() { return rows; }

} // namespace astra::onnx
