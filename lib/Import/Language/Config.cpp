//===- Config.cpp: what a language model is made of -------------------------===//
// Takes:    fields of an untrusted file.
// Gives:    a configuration whose numbers fit each other, or a sentence.
#include "Config.h"
#include "Fields.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace astra::language;
using llvm::StringRef;

llvm::ArrayRef<Architecture> astra::language::architectures() {
  static const Architecture rows[] = {
#define ARCHITECTURE(name, gguf, norm, places, headNorm, feedForward, traits, remarks)                                 \
  {name, gguf, Norm::norm, Places::places, HeadNorm::headNorm, FeedForward::feedForward, unsigned(traits), remarks},
#include "Architectures.def"
  };
  return rows;
}

namespace {

/// What neither layers nor a product of them may leave.
constexpr int64_t mostVocabulary = 1 << 22, mostWidth = 1 << 17, mostLayers = 1024, mostHeads = 1024,
                  mostHeadSize = 4096, mostPositions = int64_t(1) << 31, mostExperts = 1024;

class Reader {
public:
  Reader(Fields &f, Config &c) : f(f), c(c) {}

  void read() {
    sizes();
    if (!f.error.empty()) return;
    experts();
    numbers();
    windows();
    rotations();
    if (!f.error.empty()) return;
    check();
  }

private:
  Fields &f;
  Config &c;

  void sizes() {
    c.width = f.integer({"hidden_size|n_embd", "embedding_length"}, 1, mostWidth, std::nullopt);
    c.layers = f.integer({"num_hidden_layers|n_layer", "block_count"}, 1, mostLayers, std::nullopt);
    c.heads = f.integer({"num_attention_heads|n_head", "attention.head_count"}, 1, mostHeads, std::nullopt);
    bool two = c.architecture->feedForward == FeedForward::Two;
    c.keyHeads = two ? c.heads : f.integer({"num_key_value_heads", "attention.head_count_kv"}, 1, mostHeads, c.heads);
    int64_t usual = std::max<int64_t>(c.width / std::max<int64_t>(c.heads, 1), 1);
    if (c.architecture->name.starts_with("gemma")) usual = 256;
    c.headSize = two ? usual : f.integer({"head_dim", "attention.key_length"}, 1, mostHeadSize, usual);
    std::optional<int64_t> fourfold;
    if (two) fourfold = 4 * c.width;
    c.hidden = two && !c.gguf ? f.integer({"n_inner", ""}, 1, 64 * mostWidth, fourfold)
                              : f.integer({"intermediate_size", "feed_forward_length"}, 1, 64 * mostWidth, fourfold);
    c.positions = f.integer({"max_position_embeddings|n_positions", "context_length"}, 1, mostPositions, std::nullopt);
    c.vocabulary = f.integer({"vocab_size", ""}, 1, mostVocabulary, c.gguf ? std::optional<int64_t>(0) : std::nullopt);
  }

  void experts() {
    c.experts = f.integer({"num_local_experts|num_experts", "expert_count"}, 0, mostExperts, 0);
    c.routed.assign(size_t(c.layers), c.experts > 0);
    if (!c.experts) return;
    c.chosen = f.integer({"num_experts_per_tok", "expert_used_count"}, 1, c.experts, std::nullopt);
    c.expertHidden = f.integer({"moe_intermediate_size", "expert_feed_forward_length"}, 1, 64 * mostWidth, c.hidden);
    c.sharedHidden =
        f.integer({"shared_expert_intermediate_size", "expert_shared_feed_forward_length"}, 0, 64 * mostWidth, 0);
    c.normalizedRoutes = c.architecture->has(NormalizedRoutes) || (c.gguf && c.architecture->has(NormalizedInGGUF)) ||
                         f.flag({"norm_topk_prob", "expert_weights_norm"}).value_or(false);
    int64_t step = f.integer({"decoder_sparse_step", ""}, 1, mostLayers, 1);
    for (int64_t layer = 0; layer < c.layers; ++layer) c.routed[size_t(layer)] = (layer + 1) % step == 0;
    if (auto dense = f.numbers({"mlp_only_layers", ""}))
      for (double layer : *dense)
        if (layer >= 0 && layer < double(c.layers)) c.routed[size_t(layer)] = false;
  }

  void numbers() {
    const Architecture &a = *c.architecture;
    double usual = a.norm == Norm::RMS ? 1e-6 : 1e-5;
    c.epsilon = a.norm == Norm::RMS ? f.real({"rms_norm_eps", "attention.layer_norm_rms_epsilon"}, usual)
                                    : f.real({"layer_norm_epsilon", "attention.layer_norm_epsilon"}, usual);
    c.scale = 1 / std::sqrt(double(c.headSize));
    if (a.name.starts_with("gemma") && !c.gguf)
      c.scale = 1 / std::sqrt(f.real({"query_pre_attn_scalar", ""}, double(c.headSize)));
    else if ((a.name == "gemma2" && c.layers == 46) || (a.name == "gemma3_text" && c.layers == 62))
      c.scale = 1 / std::sqrt(double(c.width) / double(c.heads)); // those of 27 billion weights: no key says it
    if (f.flag({"scale_attn_weights", ""}) == false) c.scale = 1;
    c.scaleByLayer = f.flag({"scale_attn_by_inverse_layer_idx", ""}).value_or(false);
    c.softcap = f.real({"attn_logit_softcapping", "attn_logit_softcapping"}, 0);
    c.finalSoftcap = f.real({"final_logit_softcapping", "final_logit_softcapping"}, 0);
    c.clip = f.real({"clip_qkv", "attention.clamp_kqv"}, 0);
    std::string usualActivation = a.feedForward == FeedForward::Two ? "gelu_new"
                                  : a.name.starts_with("gemma")     ? "gelu_pytorch_tanh"
                                                                    : "silu";
    std::string name = f.text({"hidden_activation|hidden_act|activation_function", ""}).value_or(usualActivation);
    auto known = llvm::StringSwitch<std::optional<Activation>>(name)
                     .Cases({"silu", "swish"}, Activation::Silu)
                     .Case("gelu", Activation::Gelu)
                     .Cases({"gelu_new", "gelu_pytorch_tanh", "gelu_tanh"}, Activation::GeluTanh)
                     .Case("relu", Activation::Relu)
                     .Default(std::nullopt);
    if (!known) f.fail("the activation '" + name + "' is not supported: silu, gelu, gelu_new and relu are", true);
    c.activation = known.value_or(Activation::Silu);
    if (f.flag({"use_bidirectional_attention", ""}).value_or(false))
      f.fail("attention to tokens behind (use_bidirectional_attention) is not supported", true);
  }

  void windows() {
    const Architecture &a = *c.architecture;
    int64_t window = f.integer({"sliding_window", "attention.sliding_window"}, 0, mostPositions, 0);
    c.windows.assign(size_t(c.layers), -1);
    auto types = f.texts({"layer_types", ""});
    if (types && types->size() != size_t(c.layers))
      return f.fail("'layer_types' has " + llvm::Twine(types->size()) + " elements, there are " +
                    llvm::Twine(c.layers) + " layers");
    if (types)
      for (const std::string &type : *types)
        if (type != "full_attention" && type != "sliding_attention")
          return f.fail("layers of the type '" + type + "' are not supported", true);
    bool asked = types || f.flag({"use_sliding_window", ""}).value_or(!a.name.starts_with("qwen"));
    int64_t period = a.name == "gemma2" ? 2 : 6; // of gemma: the last layer of each period sees all
    if (a.name == "gemma3_text") period = f.integer({"sliding_window_pattern|_sliding_window_pattern", ""}, 1, 1024, 6);
    int64_t from = f.integer({"max_window_layers", ""}, 0, mostPositions, 0);
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      bool slides = types                         ? (*types)[size_t(layer)] == "sliding_attention"
                    : a.name.starts_with("gemma") ? (layer + 1) % period != 0
                    : a.name.starts_with("qwen")  ? asked && layer >= from
                                                  : window > 0;
      if (slides && window > 0 && asked) c.windows[size_t(layer)] = window;
      if (slides && window < 1)
        return f.fail("layer " + llvm::Twine(layer) + " has a window, and 'sliding_window' is none");
    }
    c.hasLocalRotation = a.name == "gemma3_text";
  }

  void rotations() {
    if (c.architecture->has(Positions)) return;
    std::unique_ptr<Fields> all = f.object({"rope_parameters|rope_scaling", ""});
    std::unique_ptr<Fields> full = all ? all->object({"full_attention", ""}) : nullptr,
                            local = all ? all->object({"sliding_attention", ""}) : nullptr;
    c.rotation = rotation(full ? *full : all ? *all : f);
    if (!c.hasLocalRotation) return;
    if (local)
      c.localRotation = rotation(*local);
    else
      c.localRotation.theta = f.real({"rope_local_base_freq", ""}, 10000);
  }

  /// `r`: what the file says about rotations alone, or all that it says.
  Rotation rotation(Fields &r) {
    Rotation result;
    result.theta = r.number({"rope_theta", ""}).value_or(f.real({"rope_theta", "rope.freq_base"}, 10000));
    std::string type = r.text({"rope_type|type", "rope.scaling.type"}).value_or("default");
    auto kind = llvm::StringSwitch<std::optional<Rotation::Kind>>(type)
                    .Cases({"default", "none"}, Rotation::Plain)
                    .Case("linear", Rotation::Linear)
                    .Case("llama3", Rotation::Llama3)
                    .Case("yarn", Rotation::Yarn)
                    .Cases({"longrope", "su"}, Rotation::Long)
                    .Default(std::nullopt);
    if (!kind)
      f.fail("the scaling '" + type + "' of rotations is not supported: default, linear, llama3, yarn and longrope are",
             true);
    result.kind = kind.value_or(Rotation::Plain);
    result.factor = r.real({"factor", "rope.scaling.factor"}, 1);
    FieldName original{"original_max_position_embeddings", "rope.scaling.original_context_length"};
    result.original = r.real(original, f.real(original, 0));
    result.lowFactor = r.real({"low_freq_factor", ""}, 1);
    result.highFactor = r.real({"high_freq_factor", ""}, 4);
    result.betaFast = r.real({"beta_fast", "rope.scaling.yarn_beta_fast"}, 32);
    result.betaSlow = r.real({"beta_slow", "rope.scaling.yarn_beta_slow"}, 1);
    result.mscale = r.real({"mscale", ""}, 0);
    result.mscaleAll = r.real({"mscale_all_dim", ""}, 0);
    result.truncate = r.flag({"truncate", ""}).value_or(true);
    result.attentionFactor = r.number({"attention_factor", "rope.scaling.attn_factor"});
    if (c.gguf && result.kind == Rotation::Yarn) result.attentionFactor.reset(); // theirs is one more factor, 1
    FieldName part{"partial_rotary_factor", ""};
    result.part = r.number(part).value_or(f.real(part, 1));
    if (!c.architecture->has(Parts) && result.part != 1) {
      if (result.kind != Rotation::Plain)
        f.fail("'partial_rotary_factor' beside the scaling '" + type + "' is not supported for this architecture",
               true);
      result.part = 1;
    }
    if (c.gguf)
      result.part = double(f.integer({"", "rope.dimension_count"}, 2, c.headSize, c.headSize)) / double(c.headSize);
    result.shortFactors = r.numbers({"short_factor", ""}).value_or(std::vector<double>());
    result.longFactors = r.numbers({"long_factor", ""}).value_or(std::vector<double>());
    if (!r.error.empty()) f.fail(r.error, r.unsupported);
    checkRotation(result);
    return result;
  }

  void checkRotation(const Rotation &r) {
    auto columns = int64_t(double(c.headSize) * r.part);
    bool fits = r.part > 0 && r.part <= 1 && columns >= 2 && columns % 2 == 0;
    if (!fits)
      return f.fail("of heads of " + llvm::Twine(c.headSize) + " columns a part of " + numberText(r.part) +
                    " cannot be rotated in pairs");
    for (double x : {r.theta, r.factor, r.lowFactor, r.highFactor, r.betaFast, r.betaSlow})
      if (!(x > 0 && x < 1e30)) return f.fail("a parameter of rotations is " + numberText(x) + ", expected above 0");
    if (r.highFactor <= r.lowFactor) return f.fail("'high_freq_factor' is not above 'low_freq_factor'");
    if (r.original < 0 || r.original > double(mostPositions))
      return f.fail("'original_max_position_embeddings' is " + numberText(r.original));
    if (std::string wrong = r.wrong(c.headSize); !wrong.empty() && !c.gguf)
      f.fail(wrong); // tensors of a GGUF file come later
  }

  void check() {
    if (c.heads % c.keyHeads)
      f.fail(llvm::Twine(c.heads) + " query heads are not a multiple of " + llvm::Twine(c.keyHeads) + " key heads");
    if (!(c.epsilon >= 0 && c.epsilon < 1)) f.fail("the epsilon of norms is " + numberText(c.epsilon));
    if (!(c.softcap >= 0 && c.finalSoftcap >= 0 && c.clip >= 0)) f.fail("a softcap or 'clip_qkv' is negative");
    if (!(c.scale > 0 && std::isfinite(c.scale))) f.fail("'query_pre_attn_scalar' is not above 0");
  }
};

} // namespace

llvm::Error astra::language::readConfig(Fields &fields, Config &config) {
  Reader(fields, config).read();
  if (fields.error.empty()) return llvm::Error::success();
  return llvm::createStringError(fields.unsupported ? std::errc::not_supported : std::errc::invalid_argument, "%s",
                                 fields.error.c_str());
}

const Architecture *astra::language::architectureNamed(StringRef name, bool gguf, std::string &others) {
  std::vector<std::string> names;
  for (const Architecture &a : architectures()) {
    StringRef own = gguf ? a.gguf : a.name;
    if (own == name && !own.empty()) return &a;
    if (!own.empty()) names.push_back(own.str());
  }
  others = llvm::join(names, ", ") + " are";
  return nullptr;
}
