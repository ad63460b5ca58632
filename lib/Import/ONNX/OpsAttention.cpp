//===- OpsAttention.cpp: scaled dot product attention ----------------------===//
// Takes:    queries, keys and values of rank 3 or 4, masks, caches; graphs that change scores.
// Gives:    the composites of Attention.h.
// Does not: write caches outside the op (OpsSequence.cpp, TensorScatter).
#include "Lowering.h"
#include "OpTable.h"
#include "astra/Compose/Attention.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

compose::AttentionOperands operandsOf(Node &n) {
  auto optional = [&](unsigned i) { return n.has(i) ? n.in(i) : nullptr; };
  return {n.in(0), n.in(1), n.in(2), optional(3), optional(4), optional(5), optional(6)};
}

/// The type in which softmax reads the scores and gives its result.
std::optional<DType> softmaxPrecision(Node &n) {
  constexpr std::pair<int64_t, DType> codes[] = {
      {1, DType::F32}, {10, DType::F16}, {11, DType::F64}, {16, DType::BF16}};
  if (!n.hasAttr("softmax_precision")) return std::nullopt;
  int64_t given = n.intAttr("softmax_precision", 1);
  for (auto [code, type] : codes)
    if (code == given) return type;
  n.fail("attribute 'softmax_precision' is " + llvm::Twine(given) +
         ", expected 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
  return std::nullopt;
}

/// What both ops have.
compose::AttentionOptions commonAttributes(Node &n) {
  compose::AttentionOptions options;
  if (n.hasAttr("q_num_heads")) options.heads = n.intAttr("q_num_heads", 0);
  if (n.hasAttr("kv_num_heads")) options.keyHeads = n.intAttr("kv_num_heads", 0);
  if (n.hasAttr("scale")) options.scale = n.floatAttr("scale", 1);
  options.softmaxType = softmaxPrecision(n);
  return options;
}

void attention(Node &n) {
  compose::AttentionOptions options = commonAttributes(n);
  options.softcap = n.floatAttr("softcap", 0);
  options.causal = n.intAttr("is_causal", 0) != 0;
  if (n.opset >= 25) {
    options.left = n.intAttr("left_window_size", -1);
    options.right = n.intAttr("right_window_size", -1);
  }
  options.padMask = n.opset >= 24;
  int64_t mode = n.intAttr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return void(n.fail("attribute 'qk_matmul_output_mode' is " + llvm::Twine(mode) + ", expected 0 to 3"));
  options.shown = compose::AttentionOptions::Shown(mode);
  compose::AttentionResult r = attention(n, operandsOf(n), options);
  n.give(r.result);
  if (n.wants(1)) n.give(1, r.keys);
  if (n.wants(2)) n.give(2, r.values);
  if (n.wants(3)) n.give(3, r.scores);
}

/// x after the graph in an attribute, if there is one, which keeps type and shape.
UOpRef modified(Node &n, UOpRef x, const char *attribute) {
  if (!x || !n.hasAttr(attribute)) return x;
  const proto::Graph *graph = n.graphAttr(attribute);
  if (n.failed()) return nullptr;
  auto results = n.lowering.body(*graph, {x}, n.scope, n.title() + ", " + attribute);
  if (!results) {
    n.failReported();
    return nullptr;
  }
  if (results->size() != 1 || (*results)[0]->dtype != x->dtype || (*results)[0]->shape != x->shape)
    return n.fail(llvm::Twine("the graph in attribute '") + attribute + "' does not give one value of the type " +
                  typeText(x->dtype, x->shape));
  return (*results)[0];
}

/// Attention with graphs that alter scores and probabilities.
void flexAttention(Node &n) {
  n.give(modifiedAttention(
      n, operandsOf(n), commonAttributes(n), [&](UOpRef x) { return modified(n, x, "score_mod"); },
      [&](UOpRef x) { return modified(n, x, "prob_mod"); }));
}

constexpr Row rows[] = {
    {"ai.onnx.preview::FlexAttention", 1, latest, 3, 3, flexAttention, floatTypes},
    {"Attention", 23, 23, 3, 6, attention, floatTypes},
    {"Attention", 24, latest, 3, 7, attention, floatTypes,
     "a last axis of the mask that is shorter than the keys is padded, be it of extent 1"},
};

} // namespace

llvm::ArrayRef<Row> attentionRows() { return rows; }

} // namespace astra::onnx
