//===- Conversation.h: prompts and replies -----------------------------------===//
// Takes:    a language model, what a user says.
// Gives:    the reply, piece by piece and as a whole.
// Keeps:    a prompt that is refused changes nothing: the conversation goes on.
// Does not: read or print.
#pragma once
#include "LanguageModel.h"
#include <csignal>

namespace astra::tool {

struct Reply {
  std::string text, finish; // finish: "stop", "length", "context" or "interrupt"
  std::vector<int32_t> promptTokens, tokens;
  size_t promptRead = 0; // of its tokens, those that had not been read before
  double promptSeconds = 0, seconds = 0;
};

class Conversation {
public:
  /// `raw`: a prompt is a text that the model goes on with, and nothing is remembered.
  Conversation(LanguageModel &model, const std::string &system, bool raw);
  /// Throws a Refusal where the prompt cannot be answered. `interrupted` ends the reply when it is set. `show` gets
  /// each piece when it is complete.
  Reply answer(const std::string &prompt, const Sampling &sampling, int64_t mostTokens,
               const volatile std::sig_atomic_t &interrupted, const std::function<void(std::string_view)> &show);
  /// Forgets what was said.
  void reset() { said.resize(opening); }

private:
  struct Said {
    std::string role, content;
  };
  std::vector<int32_t> encode() const;

  LanguageModel &model;
  bool raw;
  std::vector<Said> said;
  size_t opening; // what a conversation begins with: the system's message or nothing
};

} // namespace astra::tool
