//===- Chat.cpp: conversations --------------------------------------------===//
// Takes:    messages from anywhere.
// Gives:    astra_text_chat and astra_text_chat_encode.
// Keeps:    contents never become special tokens.
// Does not: know families of models: a form is data of the tokenizer.
#include "Encode.h"

using namespace astra::text;

namespace {

class Conversation {
public:
  Conversation(const astra_text &t, astra_diag *diag) : t(t), c(t.chat[0]), diag(diag) {}

  Status render(View<astra_text_message> messages, bool answer) {
    own(c.begin);
    size_t i = 0;
    Bytes system;
    bool hasSystem = messages.size && messages[0].role && !strcmp(messages[0].role, "system");
    if (hasSystem) {
      if (c.flags & kNoSystem)
        return fail(diag, ASTRA_UNSUPPORTED, "conversations of the form %.*s have no system message", int(name().size),
                    name().data);
      if (Status status = content(messages[i], i, system)) return status;
      i++;
    } else if (c.system != kNone) {
      system = t.strings[c.system], hasSystem = true;
    }
    bool inUser = hasSystem && c.flags & kSystemInUser;
    if (hasSystem && !inUser) own(c.systemPrefix), theirs(system), own(c.systemSuffix);
    for (bool user = true; i < messages.size; i++, user = !user) {
      const char *expected = user ? "user" : "assistant";
      if (!messages[i].role || strcmp(messages[i].role, expected))
        return fail(diag, ASTRA_INVALID_ARGUMENT,
                    "message %zu has the role \"%.40s\", expected \"%s\": after a system message, user and assistant "
                    "take turns",
                    i, messages[i].role ? messages[i].role : "", expected);
      Bytes text;
      if (Status status = content(messages[i], i, text)) return status;
      own(user ? c.userPrefix : c.assistantPrefix);
      if (inUser) own(c.systemPrefix), theirs(system), own(c.systemSuffix), inUser = false;
      theirs(text);
      own(user ? c.userSuffix : c.assistantSuffix);
    }
    if (answer) own(c.answer);
    if (inUser)
      return fail(
          diag, ASTRA_INVALID_ARGUMENT,
          "conversations of the form %.*s put the system message into the first user message, and there is none",
          int(name().size), name().data);
    return text.size() > 0x7fffffff ? fail(diag, ASTRA_OVERFLOW, "the conversation has more than 2^31 bytes")
                                    : ASTRA_OK;
  }

  Buffer<uint8_t> text;
  Buffer<Part> parts;

private:
  Bytes name() const { return c.name == kNone ? Bytes{} : t.strings[c.name]; }
  void own(uint32_t string) {
    if (string != kNone) text.append(t.strings[string]), parts.push({text.size(), true});
  }
  void theirs(Bytes bytes) { text.append(bytes), parts.push({text.size(), false}); }

  Status content(const astra_text_message &message, size_t i, Bytes &out) {
    if (!message.content) return fail(diag, ASTRA_INVALID_ARGUMENT, "message %zu has no content; give an empty one", i);
    out = {reinterpret_cast<const uint8_t *>(message.content), strlen(message.content)};
    if (out.size > 0x7fffffff) return fail(diag, ASTRA_OVERFLOW, "message %zu has more than 2^31 bytes", i);
    if (Status status = requireUtf8(out, "the content of a message", diag)) return status;
    auto space = [](uint8_t b) { return b == ' ' || (b >= '\t' && b <= '\r'); };
    while (c.flags & kTrim && out.size && space(out[0])) out = out.part(1, out.size);
    while (c.flags & kTrim && out.size && space(out[out.size - 1])) out = out.part(0, out.size - 1);
    return ASTRA_OK;
  }

  const astra_text &t;
  const Chat &c;
  astra_diag *diag;
};

Status check(const astra_text *text, const astra_text_message *messages, size_t count, uint32_t flags,
             const size_t *size, astra_diag *diag) {
  if (!text || (!messages && count) || !size)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the tokenizer, the messages or the size is NULL; give all of them");
  if (flags & ~uint32_t(ASTRA_TEXT_ANSWER))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the flags are %u, which has unknown bits", flags);
  if (!text->chat.size)
    return fail(diag, ASTRA_UNSUPPORTED, "the tokenizer has no form of conversations; encode the prompt as text");
  return ASTRA_OK;
}

} // namespace

const char *astra_text_chat_form(const astra_text *text) {
  return text && text->chat.size ? text->formName.view().data : nullptr;
}

astra_status astra_text_chat(const astra_text *text, const astra_text_message *messages, size_t count, uint32_t flags,
                             char *utf8, size_t capacity, size_t *bytes, astra_diag *diag) {
  if (Status status = check(text, messages, count, flags, bytes, diag)) return status;
  Conversation c(*text, diag);
  if (Status status = c.render({messages, count}, flags & ASTRA_TEXT_ANSWER)) return status;
  c.text.failed |= c.parts.failed;
  return give(c.text, utf8, capacity, bytes, "bytes of text", diag);
}

astra_status astra_text_chat_encode(const astra_text *text, const astra_text_message *messages, size_t count,
                                    uint32_t flags, int32_t *tokens, size_t capacity, size_t *got, astra_diag *diag) {
  if (Status status = check(text, messages, count, flags, got, diag)) return status;
  Conversation c(*text, diag);
  if (Status status = c.render({messages, count}, flags & ASTRA_TEXT_ANSWER)) return status;
  if (c.text.failed || c.parts.failed) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a conversation");
  Buffer<int32_t> out;
  if (Status status = encode(*text, c.text.view(), c.parts.view(), out, diag)) return status;
  return give(out, tokens, capacity, got, "tokens", diag);
}
