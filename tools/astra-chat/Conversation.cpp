//===- Conversation.cpp: prompts and replies ---------------------------------===//
// Takes:    prompts.
// Gives:    see Conversation.h.
// Keeps:    the whole conversation becomes tokens each time; the model reads those that it has not read yet.
#include "Conversation.h"
#include <chrono>

using namespace astra::tool;
using std::string;

namespace {

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What a function of text.h writes, with the room that it asks for.
template <class T, class Fn> T written(Fn fn) {
  Checked check;
  T out;
  size_t size = 0;
  astra_status s = fn(nullptr, size_t(0), &size, check);
  if (s != ASTRA_CAPACITY) check(s);
  out.resize(size);
  if (size) check(fn(out.data(), size, &size, check));
  return out;
}

} // namespace

Conversation::Conversation(LanguageModel &model, const string &system, bool raw) : model(model), raw(raw) {
  if (!raw && !astra_text_chat_form(model.text()))
    throw Refusal{Unsupported, "the model has no form of conversations: give --raw, and it goes on with a text"};
  if (!system.empty()) said.push_back({"system", system});
  opening = said.size();
}

std::vector<int32_t> Conversation::encode() const {
  if (raw) {
    const string &prompt = said.back().content;
    return written<std::vector<int32_t>>([&](int32_t *to, size_t room, size_t *size, astra_diag *diag) {
      return astra_text_encode(model.text(), prompt.data(), prompt.size(), ASTRA_TEXT_AROUND, to, room, size, diag);
    });
  }
  std::vector<astra_text_message> messages;
  for (const Said &s : said) messages.push_back({s.role.c_str(), s.content.c_str()});
  return written<std::vector<int32_t>>([&](int32_t *to, size_t room, size_t *size, astra_diag *diag) {
    return astra_text_chat_encode(model.text(), messages.data(), messages.size(), ASTRA_TEXT_ANSWER, to, room, size,
                                  diag);
  });
}

Reply Conversation::answer(const string &prompt, const Sampling &sampling, int64_t mostTokens,
                           const volatile std::sig_atomic_t &interrupted,
                           const std::function<void(std::string_view)> &show) {
  if (prompt.empty()) throw Refusal{Failure, "the prompt is empty"};
  if (prompt.find('\0') != prompt.npos) throw Refusal{Failure, "the prompt has a zero byte, which text does not have"};
  Reply reply;
  if (raw) said.clear();
  said.push_back({"user", prompt});
  try {
    reply.promptTokens = encode();
    if (reply.promptTokens.empty()) throw Refusal{Failure, "the prompt has no tokens"};
    // A token more must fit: else there is no reply.
    if (int64_t(reply.promptTokens.size()) >= model.context())
      throw Refusal{Failure, (raw || said.size() <= opening + 1 ? "the prompt has " : "the conversation has ") +
                                 std::to_string(reply.promptTokens.size()) + " tokens, and the context " +
                                 std::to_string(model.context()) +
                                 (raw || said.size() <= opening + 1 ? "" : ": /reset begins a new one")};
    auto begin = std::chrono::steady_clock::now();
    reply.promptRead = model.become(reply.promptTokens);
    reply.promptSeconds = secondsSince(begin);
  } catch (const Refusal &) {
    said.pop_back();
    throw;
  }

  Checked check;
  astra_text_stream stream = {};
  auto add = [&](std::string_view piece) {
    reply.text += piece;
    if (!piece.empty()) show(piece);
  };
  int32_t end = astra_text_role_token(model.text(), ASTRA_TEXT_END);
  int32_t turn = astra_text_role_token(model.text(), ASTRA_TEXT_TURN);
  auto begin = std::chrono::steady_clock::now();
  while (reply.finish.empty()) {
    int32_t token = model.next(sampling);
    if (token < 0 || token == end || token == turn) {
      reply.finish = "stop";
      break;
    }
    reply.tokens.push_back(token);
    add(written<string>([&](char *to, size_t room, size_t *size, astra_diag *diag) {
      return astra_text_stream_next(model.text(), &stream, token, ASTRA_TEXT_PLAIN, to, room, size, diag);
    }));
    if (interrupted)
      reply.finish = "interrupt";
    else if (int64_t(reply.tokens.size()) == mostTokens)
      reply.finish = "length";
    else if (int64_t(model.length()) == model.context())
      reply.finish = "context";
    else
      model.append(token);
  }
  reply.seconds = secondsSince(begin);
  char held[8];
  size_t bytes = 0;
  check(astra_text_stream_end(&stream, held, sizeof held, &bytes, check));
  add({held, bytes});
  if (!raw) said.push_back({"assistant", reply.text});
  return reply;
}
