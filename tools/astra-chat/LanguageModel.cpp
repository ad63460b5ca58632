//===- LanguageModel.cpp: one sequence of a language model -------------------===//
// Takes:    a bundle; what it says of its entries is compared with docs/language.md before it is used.
// Gives:    see LanguageModel.h.
#include "LanguageModel.h"
#include <algorithm>
#include <cstring>

using namespace astra::tool;
using std::string;

static constexpr int64_t kMostElements = int64_t(1) << 28; // of a tensor here: far beyond any vocabulary

Refusal LanguageModel::none(const string &why) const {
  return {Unsupported, check.file + ": is no language model: " + why +
                           "; astra-compile makes one of a GGUF file, or of a folder that transformers saved"};
}

LanguageModel::LanguageModel(const string &path, const DeviceChoice &where) {
  check.file = path;
  check(astra_runtime_init(&h.runtime, nullptr, check));
  check(astra_bundle_init_file(&h.bundle, h.runtime, path.c_str(), nullptr, check));
  measure();

  const void *bytes;
  uint64_t size;
  if (astra_status s = astra_bundle_find_asset(h.bundle, "tokenizer", &bytes, &size, check)) {
    if (s != ASTRA_UNKNOWN_NAME) check(s);
    throw Refusal{Unsupported, path +
                                   ": has no tokenizer: compile it with --asset=tokenizer=FILE.tok, which astra-text "
                                   "writes"};
  }
  check(astra_text_init(&tokenizer, bytes, size, check));

  tokens.resize(size_t(batch * chunk)), logits.resize(size_t(batch * vocabulary)), allowed.resize(logits.size());
  for (std::vector<int32_t> *v : {&count, &token, &status, &topK, &keep, &kept, &drawn}) v->resize(size_t(batch));
  for (std::vector<float> *v : {&temperature, &topP, &minP, &penalty, &logprobs}) v->resize(size_t(batch));
  seed.resize(size_t(batch));
  std::fill(token.begin(), token.end(), -1); // the other sequences are left alone
  std::fill(keep.begin(), keep.end(), -1);
  // A model may have more scores than its tokenizer has tokens.
  for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = int64_t(i) % vocabulary < astra_text_tokens(tokenizer);

  prefill = find("prefill", {{"tokens", tokens}, {"count", count}}, {{"logits", logits}, {"status", status}});
  decode = find("decode", {{"tokens", token}}, {{"logits", logits}, {"status", status}});
  sample = find("sample",
                {{"logits", logits},
                 {"allowed", allowed},
                 {"temperature", temperature},
                 {"top_k", topK},
                 {"top_p", topP},
                 {"min_p", minP},
                 {"repetition_penalty", penalty},
                 {"seed", seed}},
                {{"tokens", drawn}, {"logprobs", logprobs}});
  reset = find("reset", {{"keep", keep}}, {{"length", kept}});

  openDevice(where, machine, h, check);
  check(astra_loaded_init(&h.loaded, h.bundle, &h.device, 1, check));
  check(astra_session_init(&h.session, h.loaded, nullptr, check));
  check(astra_stream_init(&h.stream, h.device, check));
}

/// How many sequences, tokens of a call, tokens of a sequence and scores there are.
void LanguageModel::measure() {
  const astra_entry *entry;
  for (const char *name : {"decode", "sample", "reset", "prefill"})
    if (astra_bundle_find_entry(h.bundle, name, &entry, nullptr)) throw none(string("it has no entry '") + name + "'");
  astra_tensor_info ids = ASTRA_INIT(astra_tensor_info), scores = ids, state = ids;
  uint32_t at;
  check(astra_entry_find_input(entry, "tokens", &at, check));
  check(astra_entry_get_input(entry, at, &ids));
  check(astra_entry_find_output(entry, "logits", &at, check));
  check(astra_entry_get_output(entry, at, &scores));
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  check(astra_bundle_get_info(h.bundle, &info));
  for (uint32_t i = 0; i < info.num_states; ++i) {
    check(astra_bundle_get_state(h.bundle, i, &state));
    if (!strcmp(state.name, "history") && state.ndim == 2) mostTokens = state.upper[1];
  }
  if (ids.ndim != 2 || scores.ndim != 2 || mostTokens < 1) throw none("its shapes are others");
  batch = ids.upper[0], chunk = ids.upper[1], vocabulary = scores.upper[1];
  if (batch < 1 || chunk < 1 || vocabulary < 1 || batch > kMostElements / vocabulary || batch > kMostElements / chunk)
    throw none("its shapes are others");
}

astra_tensor LanguageModel::describe(const astra_tensor_info &info, const Argument &argument,
                                     std::vector<int64_t> &shape) const {
  shape.assign(info.upper, info.upper + info.ndim);
  uint64_t elements = 1;
  bool fits = info.dtype == argument.dtype;
  for (int64_t extent : shape) fits = fits && !__builtin_mul_overflow(elements, uint64_t(extent), &elements);
  if (!fits || elements != argument.elements) throw none(string("its '") + info.name + "' is another tensor");
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = argument.data, t.data_bytes = elements * (astra_dtype_bits(info.dtype) / 8);
  t.dtype = info.dtype, t.ndim = info.ndim, t.shape = shape.data();
  return t;
}

LanguageModel::Call LanguageModel::find(const char *name, std::initializer_list<Argument> in,
                                        std::initializer_list<Argument> out) {
  Call call;
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  check(astra_bundle_find_entry(h.bundle, name, &call.entry, check));
  check(astra_entry_get_info(call.entry, &info));
  if (info.num_inputs != in.size() || info.num_outputs != out.size())
    throw none(string("its entry '") + name + "' is another one");
  call.in.resize(in.size()), call.out.resize(out.size()), call.shapes.resize(in.size() + out.size());
  uint32_t at;
  astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
  for (const Argument &a : in) {
    check(astra_entry_find_input(call.entry, a.name, &at, check));
    check(astra_entry_get_input(call.entry, at, &t));
    call.in[at] = describe(t, a, call.shapes[at]);
  }
  for (const Argument &a : out) {
    check(astra_entry_find_output(call.entry, a.name, &at, check));
    check(astra_entry_get_output(call.entry, at, &t));
    call.out[at] = describe(t, a, call.shapes[in.size() + at]);
  }
  return call;
}

void LanguageModel::run(const Call &call) {
  astra_call c = ASTRA_INIT(astra_call);
  c.entry = call.entry;
  c.inputs = call.in.data(), c.num_inputs = uint32_t(call.in.size());
  c.outputs = call.out.data(), c.num_outputs = uint32_t(call.out.size());
  astra_promise *promise = nullptr;
  check(astra_session_submit(h.session, h.stream, &c, &promise, check));
  astra_status s = astra_promise_wait(promise, check);
  astra_promise_free(&promise);
  check(s);
}

/// The tokens are the first row of [batch, n].
void LanguageModel::prefillPart(const int32_t *from, int64_t n) {
  std::fill(tokens.begin(), tokens.end(), 0);
  std::copy_n(from, n, tokens.begin());
  count[0] = int32_t(n);
  for (astra_tensor &t : prefill.in)
    if (t.data == tokens.data()) const_cast<int64_t *>(t.shape)[1] = n; // of call.shapes
  run(prefill);
  if (status[0]) throw Refusal{Failure, check.file + ": the model does not have a token of its tokenizer"};
  read.insert(read.end(), from, from + n);
}

size_t LanguageModel::become(const std::vector<int32_t> &wanted) {
  size_t same = size_t(std::mismatch(read.begin(), read.end(), wanted.begin(), wanted.end()).first - read.begin());
  same = std::min(same, wanted.size() - 1); // scores come with a token that is read
  keep[0] = int32_t(same);
  run(reset);
  read.resize(same);
  for (size_t at = same; at < wanted.size();) {
    size_t n = std::min(wanted.size() - at, size_t(chunk));
    prefillPart(wanted.data() + at, int64_t(n));
    at += n;
  }
  return wanted.size() - same;
}

int32_t LanguageModel::next(const Sampling &s) {
  temperature[0] = s.temperature, topK[0] = int32_t(s.topK), topP[0] = s.topP, minP[0] = s.minP;
  penalty[0] = s.repetitionPenalty, seed[0] = uint32_t(s.seed);
  run(sample);
  return drawn[0];
}

void LanguageModel::append(int32_t t) {
  token[0] = t;
  run(decode);
  if (status[0]) throw Refusal{Failure, check.file + ": the token does not fit the context"};
  read.push_back(t);
}
