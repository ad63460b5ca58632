//===- Refusals.cpp: ops that are known and have no row --------------------===//
// Gives:    why ops of ONNX Runtime's domains and of ai.onnx.ml are refused, for sentences and docs/onnx.md.
// Keeps:    an op is here or has a row (a unit test visits them).
#include "Refusals.h"
#include "astra/Import/ONNX.h"
#include "llvm/ADT/StringExtras.h"

namespace astra {
namespace onnx {

static constexpr Refusal table[] = {
    {"ai.onnx.ml::CastMap DictVectorizer", "it takes a map, which is no tensor"},
    {"ai.onnx.ml::CategoryMapper", "it takes or gives strings"},
    {"ai.onnx.preview.training::Gradient", "it names values of the graph around it: --train makes gradients"},
    {"com.microsoft::BeamSearch GreedySearch Sampling WhisperBeamSearch",
     "a search with a decoder inside of the node: compile the decoder, and search around it"},
    {"com.microsoft::DynamicTimeWarping MurmurHash3 NGramHashMapping NGramRepeatBlock "
     "VarlenNGramHashMapping",
     "a step of a search over tokens, which belongs into the program around the model"},
    {"com.microsoft::Tokenizer WordConvEmbedding", "it takes text as strings or characters"},
    {"com.microsoft::BitmaskBiasDropout BitmaskDropout", "the mask of a training in bits: take the model from before "
                                                         "training"},
    {"com.microsoft::PackedAttention PackedMultiHeadAttention PackedSparseAttentionIndexer PagedAttention "
     "RemovePadding RestorePadding SparsePagedAttention VarlenCausalConvWithState",
     "sequences of several lengths in one, whose places are data: export with padding"},
    {"com.microsoft::DynamicSparseAttention LongformerAttention SparseAttention SparseAttentionIndexer",
     "attention to chosen blocks of keys"},
    {"com.microsoft::DequantizeBFP DequantizeWithOrder GemmFloat8 MatMulBlockQuantizedFp4Weight "
     "MatMulBlockQuantizedFp8Weight MatMulBnb4 MatMulFpQ4 MatMulNBitsMlp MatMulNBitsQkv QOrderedAttention QOrderedGelu "
     "QOrderedLayerNormalization QOrderedLongformerAttention QOrderedMatMul QuantizeBFP QuantizeWithOrder",
     "a format of numbers or an order of a matrix that one vendor's kernels have"},
    {"com.microsoft::EPContext Snpe", "what another device's compiler made is inside of the node"},
    {"com.microsoft::AttnLSTM DecoderAttention DecoderMaskedSelfAttention GatedRelativePositionBias "
     "RelativePositionBias QEmbedLayerNormalization",
     "a fusion that has no composite: take the model from before ONNX Runtime's optimizer"},
    {"com.microsoft::BranchwiseRMSNorm EngramGate GatedDeltaNet GemmaRotaryEmbedding HyperConnectionPostMix "
     "HyperConnectionPreMix LinearAttentionGate MRotaryEmbedding",
     "a fusion that has no composite: export its parts"},
    {"com.microsoft::ComplexMul ComplexMulConj Irfft Rfft",
     "complex numbers as pairs in a last axis: export DFT of the default domain"},
    {"com.microsoft::ConvTransposeWithDynamicPads IsAllFinite MaxpoolWithMask SampleOp SparseToDenseMatMul "
     "UnfoldTensor",
     "exporters do not write it"},
    {"com.microsoft.nchwc::AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput "
     "Upsample",
     "channels in blocks of one machine's vectors: save the model at a level below 'all'"},
    {"com.ms.internal.nhwc::AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool "
     "GlobalLpPool GlobalMaxPool GridSample InstanceNormalization LRN LpPool MaxPool MaxUnpool QLinearAveragePool "
     "QLinearConv QLinearConvTranspose Resize SpaceToDepth",
     "what a session makes for its device: take the model that it was given"},
};

llvm::ArrayRef<Refusal> refusals() { return table; }

llvm::StringRef whyRefused(llvm::StringRef op) {
  for (const Refusal &r : table) {
    auto [domain, names] = llvm::StringRef(r.ops).split("::");
    auto [ofDomain, name] = op.split("::");
    llvm::SmallVector<llvm::StringRef, 16> all;
    names.split(all, ' ');
    if (domain == ofDomain && llvm::is_contained(all, name)) return r.why;
  }
  return "";
}

} // namespace onnx

std::vector<std::pair<std::string, std::string>> onnxRefusals() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const onnx::Refusal &r : onnx::refusals()) {
    auto [domain, names] = llvm::StringRef(r.ops).split("::");
    llvm::SmallVector<llvm::StringRef, 16> each;
    names.split(each, ' ');
    for (llvm::StringRef name : each) all.push_back({(domain + "::" + name).str(), r.why});
  }
  return all;
}

} // namespace astra
