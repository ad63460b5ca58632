//===- LanguageModel.h: one sequence of a language model --------------------===//
// Takes:    a bundle of a language model (docs/language.md), tokens.
// Gives:    the tokenizer of the bundle, the next token.
// Keeps:    the tokens that the session has read. Of a bundle for several sequences the first is used.
// Does not: know conversations, print.
#pragma once
#include "Device.h"
#include "astra/text.h"

namespace astra::tool {

/// What `sample` is asked for; 0, 1, 0 and 1 are off.
struct Sampling {
  float temperature = 0.7f;
  int64_t topK = 0;
  float topP = 0.95f, minP = 0, repetitionPenalty = 1;
  int64_t seed = 0;
};

class LanguageModel {
public:
  /// Throws a Refusal where the bundle is none of a language model with a tokenizer.
  LanguageModel(const std::string &path, const DeviceChoice &where);
  ~LanguageModel() { astra_text_free(&tokenizer); }
  LanguageModel(const LanguageModel &) = delete;

  const astra_text *text() const { return tokenizer; }
  /// Tokens that a sequence may have.
  int64_t context() const { return mostTokens; }
  size_t length() const { return read.size(); }

  /// Makes `tokens` what has been read, and gives how many of them were read for that: not those that the sequence
  /// begins with already, except the last. They must fit the context.
  size_t become(const std::vector<int32_t> &tokens);
  /// The next token; -1 where there is none.
  int32_t next(const Sampling &sampling);
  /// Reads one token more.
  void append(int32_t token);

private:
  /// Memory for an input or output, with what docs/language.md says of it.
  struct Argument {
    template <class T>
    Argument(const char *name, std::vector<T> &values, int32_t dtype)
        : name(name), data(values.data()), elements(values.size()), dtype(dtype) {}
    Argument(const char *name, std::vector<int32_t> &values) : Argument(name, values, ASTRA_I32) {}
    Argument(const char *name, std::vector<uint32_t> &values) : Argument(name, values, ASTRA_U32) {}
    Argument(const char *name, std::vector<float> &values) : Argument(name, values, ASTRA_F32) {}
    Argument(const char *name, std::vector<uint8_t> &values) : Argument(name, values, ASTRA_BOOL) {}
    const char *name;
    void *data;
    uint64_t elements;
    int32_t dtype;
  };
  /// An entry with its inputs and outputs in their order.
  struct Call {
    const astra_entry *entry = nullptr;
    std::vector<astra_tensor> in, out;
    std::vector<std::vector<int64_t>> shapes; // of inputs, then outputs
  };
  Refusal none(const std::string &why) const;
  Call find(const char *name, std::initializer_list<Argument> in, std::initializer_list<Argument> out);
  astra_tensor describe(const astra_tensor_info &info, const Argument &argument, std::vector<int64_t> &shape) const;
  void measure();
  void run(const Call &call);
  void prefillPart(const int32_t *from, int64_t n);

  EmulatedMachine machine{0}; // before the handles: the device runs on it
  Handles h;
  Checked check;
  astra_text *tokenizer = nullptr;
  int64_t mostTokens = 0, chunk = 0, batch = 0, vocabulary = 0;
  std::vector<int32_t> read;
  Call prefill, decode, sample, reset;
  // Of each sequence.
  std::vector<int32_t> tokens, count, token, status, topK, keep, kept, drawn;
  std::vector<float> logits, temperature, topP, minP, penalty, logprobs;
  std::vector<uint32_t> seed;
  std::vector<uint8_t> allowed;
};

} // namespace astra::tool
