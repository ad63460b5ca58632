//===- ChatForms.cpp: the table of forms, read -----------------------------===//
// Takes:    see ChatForms.h.
// Gives:    one record of lib/Text/format/Blob.h.
// Keeps:    the order of the table decides between forms.
// Does not: render.
#include "ChatForms.h"
#include "astra/Import/Tokenizer.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::import {

using namespace astra::text;

namespace {

struct Form {
  const char *name, *markers, *begin, *systemPrefix, *systemSuffix, *userPrefix, *userSuffix, *assistantPrefix,
      *assistantSuffix, *answer, *system;
  uint32_t flags;
  const char *turn;
};

const Form forms[] = {
#define FORM(...) {__VA_ARGS__},
#include "ChatForms.def"
#undef FORM
};

bool hasMarkers(llvm::StringRef text, llvm::StringRef markers) {
  llvm::SmallVector<llvm::StringRef, 4> each;
  markers.split(each, '&');
  return llvm::all_of(each, [&](llvm::StringRef m) { return text.contains(m); });
}

} // namespace

std::string chatForms() {
  return llvm::join(llvm::map_range(forms, [](const Form &f) { return llvm::StringRef(f.name); }), ", ");
}

llvm::Error text::setChat(Draft &draft, llvm::StringRef chatTemplate, llvm::StringRef form, llvm::StringRef bos,
                          llvm::StringRef eos) {
  if (form == "none" || (form.empty() && chatTemplate.empty())) return llvm::Error::success();
  const Form *f = llvm::find_if(
      forms, [&](const Form &row) { return form.empty() ? hasMarkers(chatTemplate, row.markers) : form == row.name; });
  if (f == std::end(forms)) {
    std::string found = form.empty() ? "the chat template is none of the known forms"
                                     : ("the form of conversations " + form + " is unknown").str();
    return llvm::createStringError(found + ": " + chatForms() + "; name one of them, or \"none\"");
  }
  auto filled = [&](const char *text) {
    std::string out;
    for (llvm::StringRef rest = text; !rest.empty();) {
      bool isBos = rest.consume_front("{bos}"), isEos = !isBos && rest.consume_front("{eos}");
      if (isBos || isEos)
        out += isBos ? bos : eos;
      else
        out += rest.front(), rest = rest.drop_front();
    }
    return out.empty() ? kNone : draft.string(out);
  };
  Chat chat = {};
  chat.name = draft.string(f->name);
  chat.begin = filled(f->begin);
  chat.systemPrefix = filled(f->systemPrefix), chat.systemSuffix = filled(f->systemSuffix);
  chat.userPrefix = filled(f->userPrefix), chat.userSuffix = filled(f->userSuffix);
  chat.assistantPrefix = filled(f->assistantPrefix), chat.assistantSuffix = filled(f->assistantSuffix);
  chat.answer = filled(f->answer);
  chat.system = f->system ? draft.string(f->system) : kNone;
  chat.flags = f->flags;
  draft.chat = chat;
  for (uint32_t token = 0; *f->turn && token < draft.tokens.size(); ++token)
    if (draft.tokens[token].bytes == f->turn) draft.info.turn = token;
  return llvm::Error::success();
}

} // namespace astra::import
