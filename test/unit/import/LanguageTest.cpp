//===- LanguageTest.cpp: language models from their files --------------------===//
// Takes:    small models of random weights, written into a folder, right and wrong ones.
// Gives:    the reference evaluator's bytes, however the same tokens come; sentences for what is wrong.
#include "astra/Import/Language.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstring>
#include <map>

namespace astra {
namespace {

constexpr int64_t vocabulary = 19, width = 16, context = 12;

/// A folder as transformers writes one: config.json and model.safetensors.
class Folder {
public:
  Folder() {
    llvm::cantFail(llvm::errorCodeToError(llvm::sys::fs::createUniqueDirectory("language", path)));
    add("model.embed_tokens.weight", {vocabulary, width});
    add("model.norm.weight", {width});
    for (int layer = 0; layer < 2; ++layer) {
      std::string of = "model.layers." + std::to_string(layer) + ".";
      for (const char *norm : {"input_layernorm", "post_attention_layernorm"}) add(of + norm + ".weight", {width});
      add(of + "self_attn.q_proj.weight", {width, width});
      for (const char *half : {"self_attn.k_proj", "self_attn.v_proj"}) add(of + half + ".weight", {width / 2, width});
      add(of + "self_attn.o_proj.weight", {width, width});
      for (const char *up : {"mlp.gate_proj", "mlp.up_proj"}) add(of + up + ".weight", {24, width});
      add(of + "mlp.down_proj.weight", {width, 24});
    }
  }
  ~Folder() { llvm::sys::fs::remove_directories(path); }

  std::map<std::string, std::vector<int64_t>> tensors;
  std::map<std::string, std::string> config = {{"model_type", "\"llama\""},  {"hidden_size", "16"},
                                               {"num_hidden_layers", "2"},   {"num_attention_heads", "4"},
                                               {"num_key_value_heads", "2"}, {"intermediate_size", "24"},
                                               {"vocab_size", "19"},         {"max_position_embeddings", "32"}};

  void add(const std::string &name, std::vector<int64_t> shape) { tensors[name] = std::move(shape); }

  llvm::Expected<Module> import(LanguageOptions options = {context, 2, 5}) {
    std::string json;
    for (auto &[key, value] : config) json += (json.empty() ? "{\"" : ", \"") + key + "\": " + value;
    return import(json + "}", options);
  }
  llvm::Expected<Module> import(const std::string &json, LanguageOptions options = {context, 2, 5}) {
    write("config.json", json);
    write("model.safetensors", weights());
    return importLanguageModel(path, options);
  }
  /// The sentence behind the folder's name, and what kind it is.
  std::string refusal(LanguageOptions options = {context, 2, 5}) { return text(import(options)); }
  std::string refusal(const std::string &json) { return text(import(json)); }

private:
  llvm::SmallString<64> path;

  std::string text(llvm::Expected<Module> m) {
    if (m) return "none";
    std::string out;
    llvm::handleAllErrors(m.takeError(), [&](const llvm::ErrorInfoBase &e) {
      out = e.convertToErrorCode() == std::errc::not_supported ? "unsupported: " : "";
      out += e.message();
    });
    size_t at = out.find(path.str().str());
    return at == out.npos ? out : out.substr(0, at) + out.substr(at + path.size());
  }
  void write(const char *name, llvm::StringRef bytes) {
    llvm::SmallString<64> file(path);
    llvm::sys::path::append(file, name);
    std::error_code failed;
    llvm::raw_fd_ostream(file, failed) << bytes;
    ASSERT_FALSE(failed);
  }
  std::string weights() {
    std::string header, data;
    uint32_t state = 1;
    for (auto &[name, shape] : tensors) {
      size_t begin = data.size(), count = 1;
      std::string dims;
      for (int64_t d : shape) count *= size_t(d), dims += (dims.empty() ? "" : ",") + std::to_string(d);
      for (size_t i = 0; i < count; ++i) {
        state = state * 1664525 + 1013904223;
        float x = float(int32_t(state)) * 0x1p-31f + (shape.size() == 1);
        data.append(reinterpret_cast<char *>(&x), 4);
      }
      header += (header.empty() ? "{\"" : ",\"") + name + "\":{\"dtype\":\"F32\",\"shape\":[" + dims +
                "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
    }
    header += "}";
    uint64_t length = header.size();
    return std::string(reinterpret_cast<char *>(&length), 8) + header + data;
  }
};

template <class T> Tensor tensor(DType t, std::vector<int64_t> shape, std::vector<T> values) {
  Tensor x{t, std::move(shape), std::vector<uint8_t>(values.size() * sizeof(T))};
  memcpy(x.bytes.data(), values.data(), x.bytes.size());
  return x;
}
template <class T> std::vector<T> values(const Tensor &t) {
  std::vector<T> out(t.bytes.size() / sizeof(T));
  memcpy(out.data(), t.bytes.data(), t.bytes.size());
  return out;
}

/// Calls of a module's entries by the reference evaluator; states go from one to the next.
class Session {
public:
  explicit Session(const Module &m) : m(m) {}

  std::vector<Tensor> call(const char *entry, std::vector<Tensor> inputs) {
    EvalOptions options;
    options.function = evalFunction;
    auto r = evalEntry(m, *m.entry(entry), {std::move(inputs), {}, {}, states}, options);
    if (!r) ADD_FAILURE() << llvm::toString(r.takeError());
    if (!r) return {};
    states = std::move(r->states);
    return std::move(r->outputs);
  }
  std::map<std::string, Tensor> states;

private:
  const Module &m;
};

const int32_t texts[2][9] = {{3, 1, 4, 1, 5, 9, 2, 6, 5}, {2, 7, 18, 2, 8, 1, 8, 2, 8}};

/// Log-probabilities of texts[b][1 ...] in chunks: sizes[b] tokens of text b a call, in rows of `rows`.
std::vector<std::vector<float>> scored(const Module &m, std::array<int, 2> sizes, int rows,
                                       Session *session = nullptr) {
  Session own(m);
  Session &s = session ? *session : own;
  std::vector<std::vector<float>> out(2);
  std::array<int, 2> at{};
  while (at[0] < 8 || at[1] < 8) {
    std::vector<int32_t> tokens(size_t(2 * rows), 0), targets = tokens, counts(2);
    for (size_t b : {0u, 1u}) {
      counts[b] = std::min(sizes[b], 8 - at[b]);
      for (int i = 0; i < counts[b]; ++i) {
        tokens[b * size_t(rows) + size_t(i)] = texts[b][at[b] + i];
        targets[b * size_t(rows) + size_t(i)] = texts[b][at[b] + i + 1];
      }
      at[b] += counts[b];
    }
    std::vector<Tensor> r = s.call("score", {tensor(DType::I32, {2, rows}, tokens),
                                             tensor(DType::I32, {2, rows}, targets), tensor(DType::I32, {2}, counts)});
    if (r.size() != 2) return out;
    EXPECT_EQ(values<int32_t>(r[1]), (std::vector<int32_t>{0, 0}));
    std::vector<float> logprobs = values<float>(r[0]);
    for (size_t b : {0u, 1u})
      out[b].insert(out[b].end(), logprobs.begin() + int(b) * rows, logprobs.begin() + int(b) * rows + counts[b]);
  }
  return out;
}

bool same(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && !memcmp(a.data(), b.data(), a.size() * sizeof(float));
}

TEST(LanguageModel, GivesTheSameBitsHoweverTokensCome) {
  for (DType cache : {DType::F32, DType::F16}) {
    Folder folder;
    LanguageOptions options{context, 2, 5, cache};
    auto m = folder.import(options);
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    auto reference = scored(*m, {5, 5}, 5);
    for (auto [sizes, rows] : {std::pair{std::array{1, 1}, 1}, {std::array{2, 5}, 5}, {std::array{3, 1}, 4}}) {
      auto other = scored(*m, sizes, rows);
      for (size_t b : {0u, 1u}) EXPECT_TRUE(same(reference[b], other[b])) << sizes[0] << " " << sizes[1];
    }
    // Alone, and with a larger context.
    options.context = 32;
    auto large = folder.import(options);
    ASSERT_TRUE(bool(large));
    auto other = scored(*large, {4, 3}, 4);
    for (size_t b : {0u, 1u}) EXPECT_TRUE(same(reference[b], other[b]));
  }
}

TEST(LanguageModel, DecodesWhatItPrefills) {
  Folder folder;
  auto m = folder.import();
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  Session all(*m), steps(*m);
  Tensor counts = tensor<int32_t>(DType::I32, {2}, {4, 3});
  auto first = all.call("prefill", {tensor<int32_t>(DType::I32, {2, 4}, {3, 1, 4, 1, 2, 7, 18, 0}), counts});
  std::vector<Tensor> last;
  for (auto tokens : {std::vector<int32_t>{3, 2}, {1, 7}, {4, 18}, {1, -1}}) {
    auto r = steps.call("decode", {tensor<int32_t>(DType::I32, {2}, tokens)});
    EXPECT_EQ(values<int32_t>(r[1]), (std::vector<int32_t>{0, 0}));
    std::vector<float> now = values<float>(r[0]), then = values<float>(first[0]);
    for (size_t b : {0u, 1u})
      if (values<int32_t>(steps.states.at("length"))[b] == (b ? 3 : 4) && tokens[b] >= 0)
        EXPECT_FALSE(memcmp(&now[b * vocabulary], &then[b * vocabulary], vocabulary * sizeof(float)));
  }
  EXPECT_EQ(steps.states, all.states);
}

TEST(LanguageModel, RefusesWhatDoesNotFitAndGoesOn) {
  Folder folder;
  auto m = folder.import();
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  auto reference = scored(*m, {5, 5}, 5);
  Session s(*m);
  auto call = [&](std::vector<int32_t> tokens, std::vector<int32_t> counts) {
    auto r = s.call("prefill", {tensor(DType::I32, {2, 5}, tokens), tensor(DType::I32, {2}, counts)});
    return values<int32_t>(r[1]);
  };
  std::vector<int32_t> none(10, 0), wrong = none;
  wrong[1] = vocabulary, wrong[6] = -1;
  EXPECT_EQ(call(none, {6, -1}), (std::vector<int32_t>{1, 1})); // more than there are rows, and fewer than none
  EXPECT_EQ(call(wrong, {2, 2}), (std::vector<int32_t>{2, 2}));
  EXPECT_EQ(call(wrong, {1, 1}), (std::vector<int32_t>{0, 0})); // the wrong ones do not count
  EXPECT_EQ(call(none, {INT32_MAX, 0}), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(call(none, {5, 5}), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(call(none, {5, 5}), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(call(none, {2, 1}), (std::vector<int32_t>{1, 0})); // 11 of 12
  auto left = s.call("decode", {tensor<int32_t>(DType::I32, {2}, {1, 1})});
  EXPECT_EQ(values<int32_t>(left[1]), (std::vector<int32_t>{0, 1}));
  auto reset = [&](std::vector<int32_t> keep) {
    return values<int32_t>(s.call("reset", {tensor(DType::I32, {2}, keep)})[0]);
  };
  EXPECT_EQ(reset({-1, 99}), (std::vector<int32_t>{12, 12}));
  EXPECT_EQ(reset({0, -1}), (std::vector<int32_t>{0, 12}));
  EXPECT_EQ(reset({0, 0}), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(s.states.at("values.1").bytes, std::vector<uint8_t>(s.states.at("values.1").bytes.size()));
  auto again = scored(*m, {2, 4}, 4, &s);
  for (size_t b : {0u, 1u}) EXPECT_TRUE(same(reference[b], again[b]));
}

TEST(LanguageModel, Samples) {
  Folder folder;
  auto m = folder.import();
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  Session s(*m);
  std::vector<float> logits(2 * vocabulary);
  for (size_t i = 0; i < vocabulary; ++i) logits[i] = float(i % 5), logits[vocabulary + i] = -float(i);
  struct How {
    float temperature = 0;
    int32_t topK = 0;
    float topP = 1, minP = 0, repetition = 1;
    uint32_t seed = 0;
    std::vector<uint8_t> allowed = std::vector<uint8_t>(2 * vocabulary, 1);
  };
  auto sample = [&](const How &h) {
    auto each = [](DType t, auto x) { return tensor(t, {2}, std::vector{x, x}); };
    auto r =
        s.call("sample", {tensor(DType::F32, {2, vocabulary}, logits), tensor(DType::Bool, {2, vocabulary}, h.allowed),
                          each(DType::F32, h.temperature), each(DType::I32, h.topK), each(DType::F32, h.topP),
                          each(DType::F32, h.minP), each(DType::F32, h.repetition), each(DType::U32, h.seed)});
    return values<int32_t>(r[0]);
  };
  EXPECT_EQ(sample({}), (std::vector<int32_t>{4, 0})); // the first of equals
  How grammar;
  grammar.allowed[0] = 1, grammar.allowed[4] = 0;
  for (size_t i = 0; i < vocabulary; ++i) grammar.allowed[vocabulary + i] = 0;
  EXPECT_EQ(sample(grammar), (std::vector<int32_t>{9, -1}));
  std::map<int32_t, int> seen[2];
  auto draw = [&](How h) {
    for (auto &x : seen) x.clear();
    h.temperature = 1;
    for (h.seed = 0; h.seed < 100; ++h.seed) {
      auto t = sample(h);
      for (size_t b : {0u, 1u}) ++seen[b][t[b]];
    }
  };
  draw({});
  EXPECT_NEAR((seen[0][4] + seen[0][9] + seen[0][14]) / 100.0, 0.568, 0.15); // three e^4 of 288.6
  EXPECT_NEAR(seen[1][0] / 100.0, 0.632, 0.15);                              // 1 - 1/e
  draw({0, 2});
  EXPECT_EQ(seen[0].size(), 3u); // 4, 9 and 14 are equal
  EXPECT_EQ(seen[1].size(), 2u);
  draw({0, 0, 0.7f});
  EXPECT_EQ(seen[0].size(), 7u); // 0.568 of 4s, then all 3s
  EXPECT_EQ(seen[1].size(), 2u);
  draw({0, 0, 1, 0.2f});
  EXPECT_EQ(seen[1].size(), 2u); // 1 and 1/e, not 1/e^2
  // Tokens that the sequences have.
  s.call("prefill", {tensor<int32_t>(DType::I32, {2, 2}, {4, 9, 0, 1}), tensor<int32_t>(DType::I32, {2}, {2, 2})});
  EXPECT_EQ(sample({0, 0, 1, 0, 1.5f}), (std::vector<int32_t>{14, 0})); // -0 stays the greatest
  logits[vocabulary] = -1.0f;
  EXPECT_EQ(sample({0, 0, 1, 0, 2.5f}), (std::vector<int32_t>{14, 2}));
  How fixed{0.8f};
  fixed.seed = 5;
  EXPECT_EQ(sample(fixed), sample(fixed));
}

std::string moduleText(llvm::Expected<Module> m) { return m ? print(*m) : llvm::toString(m.takeError()); }

/// Only phi3 rotates a part of each head, in transformers too.
TEST(LanguageModel, TakesWhatTransformersIgnores) {
  std::string as = moduleText(Folder().import());
  Folder part;
  part.config["partial_rotary_factor"] = "0.5";
  EXPECT_EQ(moduleText(part.import()), as);
  part.config["rope_scaling"] = R"({"rope_type": "linear", "factor": 2})";
  EXPECT_EQ(part.refusal(),
            "unsupported: /config.json: 'partial_rotary_factor' beside the scaling 'linear' is not supported "
            "for this architecture");
}

TEST(LanguageModel, RefusesWithASentence) {
  EXPECT_EQ(Folder().refusal("[1"), "/config.json: is no JSON: [1:2, byte=2]: Expected , or ] after array element");
  EXPECT_EQ(Folder().refusal(std::string(100, '[')), "/config.json: is nested more than 64 deep");
  auto with = [](const char *key, const char *value, LanguageOptions options = {context, 2, 5}) {
    Folder f;
    f.config[key] = value;
    return f.refusal(options);
  };
  std::string unknown = with("model_type", "\"bert\"");
  EXPECT_TRUE(llvm::StringRef(unknown).starts_with("unsupported: /config.json: the architecture (model_type) 'bert' is "
                                                   "not supported: llama, mistral,"))
      << unknown;
  EXPECT_EQ(with("hidden_size", "\"x\""), "/config.json: 'hidden_size' is not a number");
  EXPECT_EQ(with("hidden_size", "0"), "/config.json: 'hidden_size' is 0, expected a whole number in 1..131072");
  // Numbers that are absurd.
  EXPECT_EQ(with("num_hidden_layers", "-1"),
            "/config.json: 'num_hidden_layers' is -1, expected a whole number in 1..1024");
  EXPECT_EQ(with("num_hidden_layers", "2.5"),
            "/config.json: 'num_hidden_layers' is 2.5, expected a whole number in 1..1024");
  EXPECT_EQ(with("num_attention_heads", "4097"),
            "/config.json: 'num_attention_heads' is 4097, expected a whole number in 1..1024");
  EXPECT_EQ(with("vocab_size", "1000000000000000000"),
            "/config.json: 'vocab_size' is 1000000000000000000, expected a whole number in 1..4194304");
  EXPECT_EQ(with("rms_norm_eps", "-1"), "/config.json: the epsilon of norms is -1");
  EXPECT_EQ(with("rms_norm_eps", "1e400"), "/config.json: 'rms_norm_eps' is not finite");
  EXPECT_EQ(with("rope_theta", "0"), "/config.json: a parameter of rotations is 0, expected above 0");
  EXPECT_EQ(with("head_dim", "1"), "/config.json: of heads of 1 columns a part of 1 cannot be rotated in pairs");
  EXPECT_EQ(with("sliding_window", "-3"),
            "/config.json: 'sliding_window' is -3, expected a whole number in 0..2147483648");
  EXPECT_EQ(with("num_local_experts", "2"), "/config.json: 'num_experts_per_tok' is missing");
  EXPECT_EQ(with("num_hidden_layers", "3"), ": the tensor 'model.layers.2.input_layernorm.weight' is missing");
  EXPECT_EQ(with("num_key_value_heads", "3"), "/config.json: 4 query heads are not a multiple of 3 key heads");
  EXPECT_EQ(with("hidden_act", "\"gelu_10\""),
            "unsupported: /config.json: the activation 'gelu_10' is not supported: silu, gelu, gelu_new and relu are");
  EXPECT_EQ(with("rope_scaling", R"({"type": "dynamic", "factor": 2})"),
            "unsupported: /config.json: the scaling 'dynamic' of rotations is not supported: default, linear, llama3, "
            "yarn and longrope are");
  EXPECT_EQ(with("rope_scaling", R"({"type": "longrope", "short_factor": [1], "long_factor": [1, 2]})"),
            "/config.json: the rotations have 1 factors, expected 2");
  EXPECT_EQ(with("layer_types", R"(["full_attention", "linear_attention"])"),
            "unsupported: /config.json: layers of the type 'linear_attention' are not supported");
  EXPECT_EQ(with("vocab_size", "20"), ": the tensor 'model.embed_tokens.weight' is [19, 16], expected [20, 16]");
  EXPECT_EQ(with("vocab_size", "19", {1 << 24, 4096, 5}),
            ": a cache of 4096 sequences of 16777216 tokens is too large");
  Folder lacks, more;
  lacks.tensors.erase("model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(lacks.refusal(), ": the tensor 'model.layers.1.mlp.up_proj.weight' is missing");
  more.add("model.layers.0.self_attn.q_norm.weight", {4});
  EXPECT_EQ(more.refusal(), "unsupported: : the tensor 'model.layers.0.self_attn.q_norm.weight' is none that the "
                            "architecture has");
}

} // namespace
} // namespace astra
