//===- TokenizerGguf.cpp: the tokenizer of a GGUF file becomes a draft -----===//
// Takes:    the keys tokenizer.ggml.* of a GGUF file, as llama.cpp's documentation names them.
// Gives:    what Tokenizer.h says. "gpt2" is BPE on bytes, "llama" SentencePiece's BPE, whose merges follow from
//           scores.
// Keeps:    numbers of tokens stay as they are.
// Does not: support "bert" and "t5", whose normalization such a file does not have.
#include "ChatForms.h"
#include "Patterns.h"
#include "Steps.h"
#include "astra/Import/Tokenizer.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace astra::import {

using namespace astra::text;
using namespace text;

namespace {

struct Pre {
  const char *name, *digits, *pattern;
  bool whole;
};
const Pre pres[] = {
#define PRE(...) {__VA_ARGS__},
#include "PreTokenizers.def"
#undef PRE
};

// Values of tokenizer.ggml.token_type.
enum Type : int64_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

class Reader {
public:
  Reader(const WeightFile &file, Draft &draft) : file(file), d(draft) {}

  llvm::Error run(llvm::StringRef form) {
    const std::string *model = file.string(key("model"));
    const std::vector<std::string> *tokens = file.strings(key("tokens"));
    if (!model || !tokens || tokens->empty())
      return fault("it has no tokenizer (the keys tokenizer.ggml.model and .tokens)");
    if (*model != "gpt2" && *model != "llama")
      return fault("its tokenizer is of the kind \"" + *model + "\", supported are gpt2 and llama");
    const std::vector<int64_t> *types = file.integers(key("token_type"));
    if (types && types->size() != tokens->size())
      return fault("it has " + llvm::Twine(tokens->size()) + " tokens and " + llvm::Twine(types->size()) +
                   " types of tokens");
    if (tokens->size() > kMaxTokens)
      return fault("it has " + llvm::Twine(tokens->size()) + " tokens, at most " + llvm::Twine(kMaxTokens) +
                   " are supported");
    d.info.kind = uint32_t(ModelKind::Bpe);
    for (size_t i = 0; i < tokens->size(); ++i) add(uint32_t(i), (*tokens)[i], types ? (*types)[i] : int64_t(Normal));
    if (llvm::Error e = *model == "gpt2" ? bytes() : sentencePiece()) return e;
    for (auto [name, role] : {std::pair{"bos_token_id", &d.info.begin},
                              {"eos_token_id", &d.info.end},
                              {"eot_token_id", &d.info.turn},
                              {"padding_token_id", &d.info.pad}})
      if (llvm::Error e = this->role(name, *role)) return e;
    bool llama = *model == "llama";
    if (file.integer(key("add_bos_token")).value_or(llama) && d.info.begin != kNone) d.before = {d.info.begin};
    if (file.integer(key("add_eos_token")).value_or(false) && d.info.end != kNone) d.after = {d.info.end};
    const std::string *jinja = file.string("tokenizer.chat_template");
    auto name = [&](uint32_t token) { return token == kNone ? std::string() : (*tokens)[token]; };
    return setChat(d, jinja ? *jinja : "", form, name(d.info.begin), name(d.info.end));
  }

private:
  static std::string key(const char *name) { return std::string("tokenizer.ggml.") + name; }
  llvm::Error fault(const llvm::Twine &why) const { return llvm::createStringError(file.path() + ": " + why); }

  void add(uint32_t number, const std::string &text, int64_t type) {
    DraftToken t;
    t.bytes = t.output = text;
    t.inModel =
        type != Control && type != Byte && type != Unused && !text.empty() && numbers.try_emplace(text, number).second;
    t.kind = type == Control  ? TokenKind::Special
             : type == Byte   ? TokenKind::Byte
             : type == Unused ? TokenKind::Unused
                              : TokenKind::Normal;
    d.tokens.push_back(std::move(t));
    if ((type == Control || type == UserDefined) && !text.empty())
      d.added.push_back({number, type == Control ? uint32_t(kSpecial) : 0, d.string(text)});
  }

  llvm::Error role(const char *name, uint32_t &role) {
    std::optional<int64_t> value = file.integer(key(name));
    if (!value) return llvm::Error::success();
    if (*value < 0 || size_t(*value) >= d.tokens.size())
      return fault(key(name) + " is " + llvm::Twine(*value) + ", it has " + llvm::Twine(d.tokens.size()) + " tokens");
    role = uint32_t(*value);
    return llvm::Error::success();
  }

  uint32_t number(llvm::StringRef text) const {
    auto it = numbers.find(text);
    return it == numbers.end() ? kNone : it->second;
  }

  llvm::Error bytes() {
    const std::string *name = file.string(key("pre"));
    const Pre *pre = llvm::find_if(pres, [&](const Pre &row) { return name && *name == row.name; });
    if (pre == std::end(pres))
      return fault((name ? "its text is cut as \"" + *name + "\" says"
                         : std::string("it does not say how text is cut (tokenizer.ggml.pre)")) +
                   "; supported are " +
                   llvm::join(llvm::map_range(pres, [](const Pre &row) { return llvm::StringRef(row.name); }), ", "));
    const std::vector<std::string> *merges = file.strings(key("merges"));
    if (!merges) return fault("it has no merges (tokenizer.ggml.merges)");
    for (const std::string &merge : *merges) {
      auto [left, right] = llvm::StringRef(merge).split(' ');
      Merge m = {number(left), number(right), number((left + right).str())};
      if (m.left == kNone || m.right == kNone || m.result == kNone)
        return fault("the merge \"" + merge + "\" is not of three of its tokens");
      d.merges.push_back(m);
    }
    d.info.flags = kByteLevel | (pre->whole ? uint32_t(kWholeFirst) : 0);
    d.bytes.assign(256, kNone);
    for (uint32_t i = 0; i < d.tokens.size(); ++i) {
      DraftToken &t = d.tokens[i];
      if (!t.inModel) continue;
      std::optional<std::string> bytes = fromByteLevel(t.bytes);
      t.inModel = bytes.has_value();
      if (bytes) t.bytes = t.output = *bytes;
      if (bytes && bytes->size() == 1) d.bytes[uint8_t(t.bytes[0])] = i;
    }
    for (const char *pattern : {pre->digits, pre->pattern})
      if (pattern)
        d.splitters.push_back(
            {uint32_t(StepKind::Split), llvm::cantFail(d.pattern(pattern)), uint32_t(SplitHow::Isolated), 0});
    return llvm::Error::success();
  }

  llvm::Error sentencePiece() {
    const std::vector<double> *scores = file.numbers(key("scores"));
    if (!scores || scores->size() != d.tokens.size())
      return fault("it has no score for each token (tokenizer.ggml.scores)");
    // Two tokens merge where a token is both, the higher score first: SentencePiece's BPE.
    struct Scored {
      double score;
      Merge merge;
    };
    std::vector<Scored> merges;
    for (uint32_t i = 0; i < d.tokens.size(); ++i) {
      llvm::StringRef text = d.tokens[i].bytes;
      if (!d.tokens[i].inModel || text.size() > 256) continue;
      for (size_t at = 1; at < text.size(); ++at) {
        if ((uint8_t(text[at]) & 0xc0) == 0x80) continue;
        uint32_t left = number(text.take_front(at)), right = number(text.drop_front(at));
        if (left != kNone && right != kNone) merges.push_back({(*scores)[i], {left, right, i}});
      }
    }
    llvm::sort(merges, [](const Scored &a, const Scored &b) {
      return std::tuple(-a.score, a.merge.result, a.merge.left, a.merge.right) <
             std::tuple(-b.score, b.merge.result, b.merge.left, b.merge.right);
    });
    for (const Scored &m : merges) d.merges.push_back(m.merge);
    d.bytes.assign(256, kNone);
    for (uint32_t i = 0; i < d.tokens.size(); ++i) {
      DraftToken &t = d.tokens[i];
      unsigned value = 0;
      llvm::StringRef hex = t.bytes;
      if (t.kind == TokenKind::Byte && hex.consume_front("<0x") && hex.consume_back(">") &&
          !hex.getAsInteger(16, value) && value < 256) {
        d.bytes[value] = i;
        t.output = std::string(1, char(value));
        continue;
      }
      std::string output;
      for (llvm::StringRef rest = t.bytes; !rest.empty();)
        if (rest.consume_front("\u2581"))
          output += ' ';
        else
          output += rest.front(), rest = rest.drop_front();
      t.output = output;
    }
    d.info.flags = kByteFallback | kFuseUnknown;
    if (llvm::Error e = role("unknown_token_id", d.info.unknown)) return e;
    if (file.integer(key("add_space_prefix")).value_or(true)) {
      d.normalizers.push_back({uint32_t(StepKind::Prepend), d.string(" "), uint32_t(PrependWhere::Always), 0});
      d.info.flags |= kDropSpace;
    }
    d.normalizers.push_back({uint32_t(StepKind::Replace), d.string(" "), d.string("\u2581"), 0});
    return llvm::Error::success();
  }

  const WeightFile &file;
  Draft &d;
  llvm::StringMap<uint32_t> numbers; // of tokens that the model may give
};

/// A file's text; "" where there is none and it may be missing.
llvm::Expected<std::string> read(const llvm::Twine &path, bool needed) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (file) return (*file)->getBuffer().str();
  if (!needed && file.getError() == std::errc::no_such_file_or_directory) return std::string();
  return llvm::createStringError(path + ": " + file.getError().message());
}

} // namespace

llvm::Expected<std::string> tokenizerFromGguf(const WeightFile &file, llvm::StringRef form) {
  Draft draft;
  if (llvm::Error e = Reader(file, draft).run(form)) return std::move(e);
  return draft.write();
}

llvm::Expected<std::string> tokenizerOf(const std::string &given, llvm::StringRef form) {
  llvm::SmallString<128> path(given), folder;
  if (llvm::sys::fs::is_directory(path)) llvm::sys::path::append(path, "tokenizer.json");
  if (path.ends_with(".gguf")) {
    llvm::Expected<WeightFile> file = WeightFile::open(path);
    if (!file) return file.takeError();
    return tokenizerFromGguf(*file, form);
  }
  llvm::Expected<std::string> file = read(path, true);
  if (!file || llvm::StringRef(*file).starts_with("\x89"
                                                  "ASTT"))
    return file;
  folder = path;
  llvm::sys::path::remove_filename(folder);
  auto beside = [&](const char *name) {
    llvm::SmallString<128> p = folder;
    llvm::sys::path::append(p, name);
    return read(p, false);
  };
  llvm::Expected<std::string> config = beside("tokenizer_config.json"), jinja = beside("chat_template.jinja");
  if (!config) return config.takeError();
  if (!jinja) return jinja.takeError();
  llvm::Expected<std::string> made = tokenizerFromJson(*file, *config, *jinja, form);
  if (!made) return llvm::createStringError(path + ": " + llvm::toString(made.takeError()));
  return made;
}

} // namespace astra::import
