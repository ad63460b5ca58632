//===- OpsMicrosoftTransformer.cpp: fused layers of transformers -----------===//
// Takes:    nodes of the domain com.microsoft that ONNX Runtime's optimizer and exporters of language models write.
// Gives:    the composites of FusedAttention.h, FusedNormalization.h, BlockQuantization.h, Activation.h.
// Source:   ONNX Runtime's ContribOperators documentation; where it is open, its kernels for CPUs.
#include "OpTable.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Bifurcation.h"
#include "astra/Compose/BlockQuantization.h"
#include "astra/Compose/FusedAttention.h"
#include "astra/Compose/FusedNormalization.h"
#include "astra/Compose/Mixture.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Sequence.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace astra::onnx {

namespace {

UOpRef optional(Node &n, unsigned i) { return n.has(i) ? n.in(i) : nullptr; }

/// The attribute 'scale', of which 0 is as none.
std::optional<double> scaleOf(Node &n) {
  double scale = n.floatAttr("scale", 0);
  return scale == 0 ? std::nullopt : std::optional(scale);
}

/// An input that a form of the op has which is refused.
void refuseInput(Node &n, unsigned i, const char *why) {
  if (n.has(i)) n.unsupported("input " + llvm::Twine(i) + " is not supported: " + why);
}

constexpr const char *beams = "it is for a beam search inside of the runtime";

// ---- weights of few bits

void matMulNBits(Node &n) {
  compose::BlockProductOptions options{n.intAttr("K", 0), n.intAttr("N", 0), n.intAttr("bits", 4),
                                       n.intAttr("block_size", 0)};
  n.ignoreAttr("accuracy_level"); // how much a kernel may round
  if (n.intAttr("weight_prepacked", 0))
    return void(n.unsupported("attribute 'weight_prepacked' is set: weights in the order of a GPU's kernel"));
  n.give(blockProduct(n, n.in(0), {n.in(1), n.in(2), optional(n, 3)}, optional(n, 4), optional(n, 5), options));
}

void gatherBlockQuantized(Node &n) {
  compose::BlockGatherOptions options{n.intAttr("gather_axis", 0), n.intAttr("quantize_axis", 1), n.intAttr("bits", 4),
                                      n.intAttr("block_size", 128)};
  n.give(blockGather(n, {n.in(0), n.in(2), optional(n, 3)}, n.in(1), options));
}

// ---- mixtures of experts

compose::MixtureOptions mixtureAttributes(Node &n) {
  using compose::MixtureOptions;
  constexpr std::pair<const char *, MixtureOptions::Activation> names[] = {{"relu", MixtureOptions::Relu},
                                                                           {"gelu", MixtureOptions::Gelu},
                                                                           {"silu", MixtureOptions::Silu},
                                                                           {"identity", MixtureOptions::Identity},
                                                                           {"swiglu", MixtureOptions::SwiGLU}};
  MixtureOptions options;
  options.routing.chosen = n.intAttr("k", 1);
  options.routing.normalized = n.intAttr("normalize_routing_weights", 0) != 0;
  options.alpha = n.floatAttr("activation_alpha", 1);
  options.beta = n.floatAttr("activation_beta", 0);
  options.limit = n.floatAttr("swiglu_limit", options.limit);
  std::string name = n.stringAttr("activation_type", "relu");
  auto *row = llvm::find_if(names, [&](auto &r) { return name == r.first; });
  if (row == std::end(names))
    n.fail("attribute 'activation_type' is '" + name + "', expected relu, gelu, silu, identity or swiglu");
  else
    options.activation = row->second;
  int64_t fusion = n.intAttr("swiglu_fusion", 0);
  if (fusion < 0 || fusion > 2) n.fail("attribute 'swiglu_fusion' is " + llvm::Twine(fusion) + ", expected 0 to 2");
  options.halves = MixtureOptions::Halves(std::clamp<int64_t>(fusion, 0, 2));
  if (n.intAttr("use_sparse_mixer", 0))
    n.unsupported("attribute 'use_sparse_mixer' is set: a router of a GPU's kernel alone is not supported");
  return options;
}

void mixtureOfExperts(Node &n) {
  compose::MixtureOptions options = mixtureAttributes(n);
  compose::MixtureOperands o{n.in(0),
                             n.in(1),
                             nullptr,
                             {n.in(2), optional(n, 3)},
                             {n.in(4), optional(n, 5)},
                             {optional(n, 6), optional(n, 7)}};
  if (!n.failed()) n.give(mixture(n, o, options));
}

void quantizedMixture(Node &n) {
  compose::MixtureOptions options = mixtureAttributes(n);
  int64_t bits = n.intAttr("expert_weight_bits", 4), block = n.intAttr("block_size", 0);
  n.ignoreAttr("accuracy_level"); // how much a kernel may round
  if (std::string type = n.stringAttr("quant_type", "int"); type != "int")
    n.unsupported("attribute 'quant_type' is '" + type + "': a format of one vendor's kernels, supported is int");
  if (n.intAttr("weights_prepacked", 0) > 0)
    n.unsupported("attribute 'weights_prepacked' is set: weights in the order of a GPU's kernel");
  for (unsigned i = 15; i < n.numInputs(); ++i) refuseInput(n, i, "a scale of a format of one vendor's kernels");
  auto layer = [&](const char *attribute, unsigned weights, unsigned zero) -> compose::ExpertLayer {
    int64_t its = n.intAttr(attribute, bits);
    if (!n.has(weights)) return {};
    return {expertWeights(n, {n.in(weights), n.in(weights + 1), optional(n, zero)}, its, block),
            optional(n, weights + 2)};
  };
  compose::MixtureOperands o{n.in(0), n.in(1), optional(n, 14), {}, {}, {}};
  o.first = layer("fc1_expert_weight_bits", 2, 11);
  o.second = layer("fc2_expert_weight_bits", 5, 12);
  o.gated = layer("fc3_expert_weight_bits", 8, 13);
  if (!n.failed()) n.give(mixture(n, o, options));
}

// ---- steps of decoding

void bifurcationDetector(Node &n) {
  int64_t least = n.intAttr("min_ngram_size", 1), most = n.intAttr("max_ngram_size", 3);
  compose::Bifurcation r = bifurcation(n, n.in(0), n.in(1), n.in(2), optional(n, 3), least, most);
  n.give(r.tokens);
  if (n.wants(1)) n.give(1, r.suffix);
}

// ---- attention

void rotaryEmbedding(Node &n) {
  compose::RotaryOptions options;
  options.interleaved = n.intAttr("interleaved", 0) != 0;
  int64_t heads = n.intAttr("num_heads", 0), columns = n.intAttr("rotary_embedding_dim", 0);
  if (n.intAttr("is_packed_batching", 0))
    return void(n.unsupported("attribute 'is_packed_batching' is set: sequences of several lengths in one"));
  if (n.floatAttr("scale", 1) != 1) return void(n.unsupported("attribute 'scale' is not 1, which is not supported"));
  UOpRef x = n.in(0), positions = n.in(1);
  if (n.failed() || !n.requireRank(x, 3, 4) || !n.requireRank(n.in(2), 2, 2)) return;
  int64_t half = n.constExtent(n.in(2), 1, "the columns of the cosines");
  if (x->rank() == 3 && columns == 0 && !n.failed()) { // heads as wide as the table
    int64_t hidden = n.constExtent(x, 2, "the hidden size");
    if (half < 1 || hidden % (2 * half))
      return void(n.fail("the hidden size " + llvm::Twine(hidden) + " is no multiple of twice the columns " +
                         llvm::Twine(half) + " of the cosines"));
    heads = hidden / (2 * half);
  }
  options.heads = heads;
  options.columns = columns;
  n.give(rotaryEmbedding(n, x, n.in(2), n.in(3), compose::positionsFrom(n, positions, x), options));
}

void giveAttention(Node &n, const compose::AttentionResult &r) {
  n.give(r.result);
  if (n.wants(1)) n.give(1, r.keys);
  if (n.wants(2)) n.give(2, r.values);
}

compose::FusedAttentionOptions fusedAttributes(Node &n) {
  compose::FusedAttentionOptions options;
  options.heads = n.intAttr("num_heads", 0);
  options.scale = scaleOf(n);
  options.hidden = n.floatAttr("mask_filter_value", -10000.0f);
  return options;
}

void multiHeadAttention(Node &n) {
  compose::FusedAttentionOptions options = fusedAttributes(n);
  options.causal = n.intAttr("unidirectional", 0) != 0;
  refuseInput(n, 8, "the caches are those of the sequences so far, without rows to be filled");
  refuseInput(n, 9, beams);
  compose::FusedAttentionOperands operands{n.in(0),        optional(n, 1), optional(n, 2), optional(n, 3),
                                           optional(n, 4), optional(n, 5), optional(n, 6), optional(n, 7)};
  compose::AttentionResult r = fusedAttention(n, operands, options);
  giveAttention(n, r);
  if (n.wants(3)) n.give(3, r.scores);
}

/// One step of a decoder. With a buffer, its rows up to the past length are filled and the next one is written.
void decoderAttention(Node &n) {
  compose::FusedAttentionOptions options = fusedAttributes(n);
  bool buffered = n.intAttr("past_present_share_buffer", 0) != 0;
  refuseInput(n, 9, beams);
  n.ignoreAttr("output_qk");
  compose::FusedAttentionOperands operands;
  operands.query = n.in(0), operands.key = optional(n, 1), operands.value = optional(n, 2);
  operands.mask = optional(n, 3), operands.scoreBias = optional(n, 4);
  operands.pastKey = optional(n, 5), operands.pastValue = optional(n, 6), operands.bias = optional(n, 10);
  if (n.has(8) && n.literalNumber(8, "the beam width") != 1) refuseInput(n, 8, beams);
  compose::AttentionResult r =
      buffered ? bufferedAttention(n, operands, n.in(7), options) : fusedAttention(n, operands, options);
  giveAttention(n, r);
  if (n.wants(3)) n.give(3, r.scores);
}

/// Attention with the projections in it.
void attention(Node &n) {
  compose::FusedAttentionOptions options = fusedAttributes(n);
  options.causal = n.intAttr("unidirectional", 0) != 0;
  if (n.intAttr("do_rotary", 0)) n.unsupported("attribute 'do_rotary' is set, which is not supported");
  n.ignoreAttr("rotary_embedding_dim");
  if (n.intAttr("past_present_share_buffer", 0))
    n.unsupported("attribute 'past_present_share_buffer' is set, which is not supported");
  refuseInput(n, 6, "it belongs to past_present_share_buffer");
  Ints sizes = n.intsAttr("qkv_hidden_sizes");
  UOpRef x = n.in(0), weights = n.in(1);
  if (n.failed() || !n.requireRank(weights, 2, 2)) return;
  int64_t all = n.constExtent(weights, 1, "the columns of the weights");
  if (sizes.empty()) sizes = {all / 3, all / 3, all / 3};
  if (sizes.size() != 3)
    n.fail("attribute 'qkv_hidden_sizes' has " + llvm::Twine(sizes.size()) + " numbers, expected 3");
  if (n.failed()) return;
  compose::JoinedProjection p = joinedProjection(n, x, weights, optional(n, 2), sizes);
  compose::FusedAttentionOperands operands;
  operands.query = p.query, operands.key = p.key, operands.value = p.value;
  operands.mask = optional(n, 3), operands.scoreBias = optional(n, 5);
  std::tie(operands.pastKey, operands.pastValue) = compose::splitCache(n, optional(n, 4));
  if (n.failed()) return;
  compose::AttentionResult r = fusedAttention(n, operands, options);
  n.give(r.result);
  if (n.wants(1)) n.give(1, compose::joinedCache(n, r.keys, r.values));
}

void groupQueryAttention(Node &n) {
  compose::CachedAttentionOptions options;
  options.heads = n.intAttr("num_heads", 0);
  options.keyHeads = n.intAttr("kv_num_heads", 0);
  options.scale = scaleOf(n);
  options.softcap = n.floatAttr("softcap", 0);
  options.causal = n.intAttr("causal", 1) != 0;
  options.interleaved = n.intAttr("rotary_interleaved", 0) != 0;
  options.zeroSink = n.intAttr("smooth_softmax", 0) == 1;
  options.epsilon = n.floatAttr("qk_norm_epsilon", 1e-6f);
  int64_t window = n.intAttr("local_window_size", -1);
  options.window = window < 1 ? -1 : window - 1; // its own key is one of them
  for (const char *name : {"k_quant_type", "v_quant_type"})
    if (n.stringAttr(name, "NONE") != "NONE")
      n.unsupported(llvm::Twine("attribute '") + name + "' is set: a quantized cache is not supported");
  n.ignoreAttr("kv_cache_bit_width"); // of quantized caches
  if (n.intAttr("sliding_window_cache", 0))
    n.unsupported("attribute 'sliding_window_cache' is set: a cache that moves is not supported");
  if (n.intAttr("qk_output", 0)) n.unsupported("attribute 'qk_output' is set: scores as an output are not supported");
  refuseInput(n, 12, "a quantized cache is not supported");
  refuseInput(n, 13, "a quantized cache is not supported");
  bool rotary = n.intAttr("do_rotary", 0) != 0;
  if (rotary && !(n.has(7) && n.has(8))) n.fail("attribute 'do_rotary' is set without cos_cache and sin_cache");
  compose::CachedAttentionOperands operands;
  operands.query = n.in(0), operands.key = optional(n, 1), operands.value = optional(n, 2);
  operands.pastKey = optional(n, 3), operands.pastValue = optional(n, 4);
  operands.last = n.in(5), operands.total = n.in(6);
  if (rotary) operands.cosines = optional(n, 7), operands.sines = optional(n, 8), operands.positions = optional(n, 9);
  operands.scoreBias = optional(n, 10), operands.sink = optional(n, 11);
  operands.queryNorm = optional(n, 14), operands.keyNorm = optional(n, 15);
  if (n.failed()) return;
  giveAttention(n, cachedAttention(n, operands, options));
}

// ---- norms

void giveSum(Node &n, const compose::SumNormalized &r) {
  n.give(r.value);
  if (n.wants(1)) n.give(1, r.mean);
  if (n.wants(2)) n.give(2, r.inverse);
  if (n.wants(3)) n.give(3, r.sum);
}

void skipLayerNormalization(Node &n) {
  compose::SumNormalizationOptions options{n.floatAttr("epsilon", 1e-12f), false};
  giveSum(n, sumNormalization(n, n.in(0), n.in(1), optional(n, 4), n.in(2), optional(n, 3), options));
}

void skipSimplifiedLayerNormalization(Node &n) {
  compose::SumNormalizationOptions options{n.floatAttr("epsilon", 1e-12f), true};
  giveSum(n, sumNormalization(n, n.in(0), n.in(1), optional(n, 3), n.in(2), nullptr, options));
}

/// The RMS norm as ONNX Runtime has it, without a skip.
void simplifiedLayerNormalization(Node &n) {
  compose::LayerNormalizationOptions options{n.intAttr("axis", -1), n.floatAttr("epsilon", 1e-5f), DType::F32};
  if (n.intAttr("stash_type", 1) != 1) n.unsupported("attribute 'stash_type' is not 1 (float), which is not supported");
  compose::LayerNormalized r = rmsNormalization(n, n.in(0), n.in(1), options);
  n.give(r.value);
  if (n.wants(1)) n.give(1, r.inverse);
}

/// The RMS norm of each group of as many columns as the scale has, times a function of a gate.
void gatedRMSNorm(Node &n) {
  compose::LayerNormalizationOptions options{-1, n.floatAttr("epsilon", 1e-5f), DType::F32};
  std::string activation = n.stringAttr("activation", "silu");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    return void(n.fail("attribute 'activation' is '" + activation + "', expected silu, swish or sigmoid"));
  UOpRef x = n.in(0), scale = n.in(1), gate = n.in(2);
  if (n.failed() || !n.requireRank(x, 1) || !n.requireRank(scale, 1, 1)) return;
  int64_t columns = n.constExtent(x, x->rank() - 1, "the columns"), size = n.constExtent(scale, 0, "the scale");
  if (n.failed()) return;
  if (size < 1 || columns % size)
    return void(n.fail("the scale has " + llvm::Twine(size) + " elements, which do not divide the " +
                       llvm::Twine(columns) + " columns"));
  compose::Dims grouped(x->shape.begin(), x->shape.end());
  grouped.back() = n.idx(columns / size);
  grouped.push_back(n.idx(size));
  UOpRef y = rmsNormalization(n, n.reshape(n.widen(x), grouped), n.widen(scale), options).value;
  gate = n.widen(gate);
  gate = activation == "sigmoid" ? n.un(Op::Sigmoid, gate) : compose::swish(n, gate);
  if (y) n.give(n.cast(n.bin(Op::Mul, n.reshape(y, x->shape), gate), x->dtype));
}

void embedLayerNormalization(Node &n) {
  int64_t type = n.intAttr("mask_index_type", 1);
  if (type != 0 && type != 1)
    return void(n.unsupported("attribute 'mask_index_type' is " + llvm::Twine(type) + ", supported are 0 and 1"));
  compose::EmbeddingOperands operands{n.in(0), optional(n, 1), optional(n, 8), n.in(2), n.in(3), optional(n, 4)};
  compose::SumNormalized r = embeddingNormalization(n, operands, n.in(5), n.in(6), n.floatAttr("epsilon", 1e-12f));
  n.give(r.value);
  if (n.wants(1)) n.give(1, n.has(7) ? compose::onesOfRows(n, n.in(7)) : compose::zeroOfRows(n, n.in(0)));
  if (n.wants(2)) n.give(2, r.sum);
}

template <bool skips> void groupNorm(Node &n) {
  compose::FusedGroupNormalizationOptions options;
  options.groups = n.intAttr("groups", 0);
  options.epsilon = n.floatAttr("epsilon", 1e-5f);
  options.channelsLast = n.intAttr("channels_last", 1) != 0;
  int64_t activation = n.intAttr("activation", 0);
  if (activation != 0 && activation != 1)
    return void(n.fail("attribute 'activation' is " + llvm::Twine(activation) + ", expected 0 (none) or 1 (SiLU)"));
  options.swish = activation == 1;
  compose::SumNormalized r = sumGroupNormalization(n, n.in(0), skips ? n.in(3) : nullptr,
                                                   skips ? optional(n, 4) : nullptr, n.in(1), n.in(2), options);
  n.give(r.value);
  if (n.wants(1)) n.give(1, r.sum);
}

// ---- activations

template <bool approximate> void biasGelu(Node &n) { n.give(biasedGelu(n, n.in(0), optional(n, 1), approximate)); }
void gelu(Node &n) { n.give(compose::gelu(n, n.in(0))); }
/// As its parts, each of which rounds to the type.
void scaledSiLU(Node &n) {
  double alpha = n.floatAttr("alpha", 1);
  UOpRef x = n.in(0);
  if (n.failed()) return;
  UOpRef scale = n.has(1) ? n.cast(n.reshape(n.in(1), {}), DType::F32) : n.b.lit(DType::F32, alpha);
  UOpRef z = n.cast(n.bin(Op::Mul, n.cast(x, DType::F32), scale), x->dtype);
  n.give(n.bin(Op::Mul, z, n.un(Op::Sigmoid, z)));
}
void gatedAdd(Node &n) { n.give(n.bin(Op::Add, n.in(0), n.bin(Op::Mul, n.in(1), n.in(2)))); }
void quickGelu(Node &n) { n.give(compose::swish(n, n.in(0), n.floatAttr("alpha", 1.702f))); }
void biasSplitGelu(Node &n) { n.give(compose::splitGelu(n, n.in(0), n.in(1))); }

constexpr Types narrowFloats = only(DType::F16) | only(DType::BF16) | only(DType::F32);
constexpr Types indices = only(DType::I32) | only(DType::I64);

constexpr Row rows[] = {
    {"com.microsoft::MatMulNBits", 1, latest, 3, 6, matMulNBits, narrowFloats,
     "2, 4 and 8 bits; the products are of f32 numbers whatever accuracy_level says"},
    {"com.microsoft::GatherBlockQuantized", 1, latest, 3, 4, gatherBlockQuantized, anyType, "u8 packs 2, 4 or 8 bits"},
    {"com.microsoft::MoE", 1, latest, 5, 8, mixtureOfExperts, narrowFloats,
     "all experts compute all rows; no sparse mixer; of equal scores the first expert"},
    {"com.microsoft::QMoE", 1, latest, 6, 21, quantizedMixture, narrowFloats,
     "as MoE; integers of 2, 4 and 8 bits; weights of the chosen experts are normalized as normalize_routing_weights "
     "says, where ONNX Runtime's kernel for CPUs always does it without router_weights"},
    {"com.microsoft::RotaryEmbedding", 1, latest, 4, 4, rotaryEmbedding, narrowFloats, "no packed batches, no scale"},
    {"com.microsoft::MultiHeadAttention", 1, latest, 1, 10, multiHeadAttention, narrowFloats,
     "masks [batch], [2 batch], [batch, keys], [batch, queries, keys]; no buffers that are filled in part, no beams"},
    {"com.microsoft::DecoderMaskedMultiHeadAttention", 1, latest, 1, 11, decoderAttention, narrowFloats,
     "the keys' buffer is not reordered; no beams"},
    {"com.microsoft::Attention", 1, latest, 2, 7, attention, narrowFloats,
     "masks as of MultiHeadAttention; no rotary embedding, no shared buffer"},
    {"com.microsoft::GroupQueryAttention", 1, latest, 7, 16, groupQueryAttention, narrowFloats,
     "caches have max(past, total_sequence_length) rows where the latter follows from shapes, else those of the past; "
     "no quantized or sliding caches, no scores as an output; position_ids hold in a first prompt too, where ONNX "
     "Runtime's kernel for CPUs counts from 0; results of padding rows are other than ONNX Runtime's",
     input(6)},
    {"com.microsoft::SkipLayerNormalization", 1, latest, 3, 5, skipLayerNormalization, narrowFloats},
    {"com.microsoft::SkipSimplifiedLayerNormalization", 1, latest, 3, 4, skipSimplifiedLayerNormalization, narrowFloats,
     "no mean"},
    {"SimplifiedLayerNormalization", 1, latest, 2, 2, simplifiedLayerNormalization, floatTypes,
     "as ONNX Runtime's optimizer writes it"},
    {"com.microsoft::SimplifiedLayerNormalization", 1, latest, 2, 2, simplifiedLayerNormalization, floatTypes},
    {"com.microsoft::GatedRMSNorm", 1, latest, 3, 3, gatedRMSNorm, narrowFloats},
    {"com.microsoft::ScaledSiLU", 1, latest, 1, 2, scaledSiLU, narrowFloats},
    {"com.microsoft::GatedAdd", 1, latest, 3, 3, gatedAdd, narrowFloats},
    {"com.microsoft::BifurcationDetector", 1, latest, 3, 4, bifurcationDetector, only(DType::I64),
     "n-grams of up to 64 tokens; the number of tokens is a dim whose value the run reports"},
    {"com.microsoft::EmbedLayerNormalization", 1, latest, 7, 9, embedLayerNormalization, indices,
     "without a mask mask_index is 0"},
    {"com.microsoft::GroupNorm", 1, latest, 3, 3, groupNorm<false>, narrowFloats},
    {"com.microsoft::SkipGroupNorm", 1, latest, 4, 5, groupNorm<true>, narrowFloats},
    {"com.microsoft::BiasGelu", 1, latest, 2, 2, biasGelu<false>, floatTypes},
    {"com.microsoft::FastGelu", 1, latest, 1, 2, biasGelu<true>, floatTypes},
    {"com.microsoft::Gelu", 1, latest, 1, 1, gelu, floatTypes},
    {"com.microsoft::QuickGelu", 1, latest, 1, 1, quickGelu, floatTypes},
    {"com.microsoft::BiasSplitGelu", 1, latest, 2, 2, biasSplitGelu, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> microsoftTransformerRows() { return rows; }

} // namespace astra::onnx
