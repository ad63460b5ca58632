//===- TokenizerGguf.cpp: the tokenizer of a GGUF file becomes a draft -----===//
// Takes:    the keys tokenizer.ggml.* of a GGUF file, as llama.cpp's documentation names them.
// Gives:    what Tokenizer.h says. "gpt2" is BPE on bytes, "llama" SentencePiece's BPE, whose merges follow from
//           scores, "t5" SentencePiece's unigram model, "bert" WordPiece.
// Keeps:    numbers of tokens stay as they are.
// Does not: repeat steps that tokenizer.json has too: it names them.
#include "Charsmap.h"
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
      return refuse("it has no tokenizer (the keys tokenizer.ggml.model and .tokens)");
    static constexpr struct {
      const char *name;
      llvm::Error (Reader::*read)();
      bool begin, end; // whether tokens are put there when the file does not say
    } kinds[] = {{"gpt2", &Reader::bytes, false, false},
                 {"llama", &Reader::sentencePiece, true, false},
                 {"t5", &Reader::unigram, false, true},
                 {"bert", &Reader::wordPiece, true, true}};
    auto kind = llvm::find_if(kinds, [&](auto &row) { return *model == row.name; });
    if (kind == std::end(kinds))
      return refuse("its tokenizer is of the kind \"" + *model + "\", supported are gpt2, llama, t5 and bert");
    const std::vector<int64_t> *types = file.integers(key("token_type"));
    if (types && types->size() != tokens->size())
      return refuse("it has " + llvm::Twine(tokens->size()) + " tokens and " + llvm::Twine(types->size()) +
                    " types of tokens");
    if (tokens->size() > kMaxTokens)
      return refuse("it has " + llvm::Twine(tokens->size()) + " tokens, at most " + llvm::Twine(kMaxTokens) +
                    " are supported");
    isUnigram = *model == "t5";
    for (size_t i = 0; i < tokens->size(); ++i) add(uint32_t(i), (*tokens)[i], types ? (*types)[i] : int64_t(Normal));
    for (auto [name, role] : {std::pair{"unknown_token_id", &d.info.unknown},
                              {"bos_token_id", &d.info.begin},
                              {"eos_token_id", &d.info.end},
                              {"eot_token_id", &d.info.turn},
                              {"padding_token_id", &d.info.pad}})
      if (llvm::Error e = this->role(name, *role)) return e;
    if (llvm::Error e = (this->*kind->read)()) return e;
    if (fault) return fault.take();
    if (file.integer(key("add_bos_token")).value_or(kind->begin) && d.info.begin != kNone) d.before = {d.info.begin};
    if (file.integer(key("add_eos_token")).value_or(kind->end) && d.info.end != kNone) d.after = {d.info.end};
    const std::string *jinja = file.string("tokenizer.chat_template");
    auto name = [&](uint32_t token) { return token == kNone ? std::string() : (*tokens)[token]; };
    return setChat(d, jinja ? *jinja : "", form, name(d.info.begin), name(d.info.end));
  }

private:
  static std::string key(const char *name) { return std::string("tokenizer.ggml.") + name; }
  llvm::Error refuse(const llvm::Twine &why) const { return llvm::createStringError(file.path() + ": " + why); }

  void add(uint32_t number, const std::string &text, int64_t type) {
    DraftToken t;
    t.bytes = t.output = text;
    bool plain = type == Normal || type == UserDefined || (type == Unknown && !isUnigram);
    t.inModel = plain && !text.empty() && numbers.try_emplace(text, number).second;
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
      return refuse(key(name) + " is " + llvm::Twine(*value) + ", it has " + llvm::Twine(d.tokens.size()) + " tokens");
    role = uint32_t(*value);
    return llvm::Error::success();
  }

  uint32_t number(llvm::StringRef text) const {
    auto it = numbers.find(text);
    return it == numbers.end() ? kNone : it->second;
  }

  llvm::Error bytes() {
    d.info.kind = uint32_t(ModelKind::Bpe);
    const std::string *name = file.string(key("pre"));
    const Pre *pre = llvm::find_if(pres, [&](const Pre &row) { return name && *name == row.name; });
    if (pre == std::end(pres))
      return refuse((name ? "its text is cut as \"" + *name + "\" says"
                          : std::string("it does not say how text is cut (tokenizer.ggml.pre)")) +
                    "; supported are " +
                    llvm::join(llvm::map_range(pres, [](const Pre &row) { return llvm::StringRef(row.name); }), ", "));
    const std::vector<std::string> *merges = file.strings(key("merges"));
    if (!merges) return refuse("it has no merges (tokenizer.ggml.merges)");
    for (const std::string &merge : *merges) {
      auto [left, right] = llvm::StringRef(merge).split(' ');
      Merge m = {number(left), number(right), number((left + right).str())};
      if (m.left == kNone || m.right == kNone || m.result == kNone)
        return refuse("the merge \"" + merge + "\" is not of three of its tokens");
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

  llvm::Expected<const std::vector<double> *> scores() const {
    const std::vector<double> *values = file.numbers(key("scores"));
    if (!values || values->size() != d.tokens.size())
      return refuse("it has no score for each token (tokenizer.ggml.scores)");
    return values;
  }

  llvm::Error sentencePiece() {
    d.info.kind = uint32_t(ModelKind::Bpe);
    auto scores = this->scores();
    if (!scores) return scores.takeError();
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
        if (left != kNone && right != kNone) merges.push_back({(**scores)[i], {left, right, i}});
      }
    }
    llvm::sort(merges, [](const Scored &a, const Scored &b) {
      return std::tuple(-a.score, a.merge.result, a.merge.left, a.merge.right) <
             std::tuple(-b.score, b.merge.result, b.merge.left, b.merge.right);
    });
    for (const Scored &m : merges) d.merges.push_back(m.merge);
    d.info.flags = kByteFallback | kFuseUnknown;
    sentencePieceOutputs();
    if (file.integer(key("add_space_prefix")).value_or(true)) {
      d.normalizers.push_back({uint32_t(StepKind::Prepend), d.string(" "), uint32_t(PrependWhere::Always), 0});
      d.info.flags |= kDropSpace;
    }
    d.normalizers.push_back({uint32_t(StepKind::Replace), d.string(" "), d.string("\u2581"), 0});
    return llvm::Error::success();
  }

  /// What SentencePiece's tokens stand for: bytes, or text with a sign for the space. Gives whether there are bytes.
  bool sentencePieceOutputs() {
    bool any = false;
    d.bytes.assign(256, kNone);
    for (uint32_t i = 0; i < d.tokens.size(); ++i) {
      DraftToken &t = d.tokens[i];
      unsigned value = 0;
      llvm::StringRef hex = t.bytes;
      if (t.kind == TokenKind::Byte && hex.consume_front("<0x") && hex.consume_back(">") &&
          !hex.getAsInteger(16, value) && value < 256) {
        d.bytes[value] = i, any = true;
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
    return any;
  }

  /// As SentencePiece normalizes: its table, white space at the ends and in rows, the sign for the space.
  llvm::Error unigram() {
    d.info.kind = uint32_t(ModelKind::Unigram);
    auto scores = this->scores();
    if (!scores) return scores.takeError();
    for (size_t i = 0; i < d.tokens.size(); ++i) d.tokens[i].score = (**scores)[i];
    d.info.flags = kFuseUnknown;
    if (sentencePieceOutputs()) d.info.flags |= kByteFallback;
    auto step = [&](StepKind kind, uint32_t a, uint32_t b) { d.normalizers.push_back({uint32_t(kind), a, b, 0}); };
    bool prefix = file.integer(key("add_space_prefix")).value_or(true);
    bool strips = file.integer(key("remove_extra_whitespaces")).value_or(false);
    auto prepend = [&] { step(StepKind::Prepend, d.string(" "), uint32_t(PrependWhere::Always)); };
    if (prefix) d.info.flags |= kDropSpace;
    if (prefix && !strips) prepend(); // a text of which nothing is left has its space then
    std::string charsmap;
    if (const std::vector<int64_t> *bytes = file.integers(key("precompiled_charsmap")))
      for (int64_t b : *bytes) charsmap.push_back(char(b));
    if (llvm::Error e = addCharsmap(d, charsmap, RewriteHow::Longest)) return refuse(llvm::toString(std::move(e)));
    if (strips) {
      step(StepKind::Strip, d.set(CharSet().add(' ')), 1);
      step(StepKind::Strip, d.set(CharSet().add(' ').add(0x2581)), 2);
      step(StepKind::ReplacePattern, llvm::cantFail(d.pattern(" {2,}")), d.string(" "));
    }
    if (prefix && strips) prepend();
    step(StepKind::Replace, d.string(" "), d.string("\u2581"));
    return llvm::Error::success();
  }

  /// Such files have words with a sign before them, and what goes on a word without one; BERT's own vocabulary has the
  /// reverse. They do not say whether text becomes lower case: it does where no word has a capital letter.
  llvm::Error wordPiece() {
    d.info.kind = uint32_t(ModelKind::WordPiece);
    d.info.continuing = d.string("##"), d.info.longest = 100;
    bool lower = true;
    for (DraftToken &t : d.tokens) {
      if (!t.inModel) continue;
      llvm::StringRef text = t.bytes;
      t.bytes = text.consume_front("\u2581") ? text.str() : "##" + text.str();
      for (char32_t c : characters(t.bytes).value_or(U"")) lower = lower && !lowerCases().contains(c);
    }
    for (auto [role, name, number] : {std::tuple{&d.info.unknown, "[UNK]", "unknown_token_id"},
                                      {&d.info.begin, "[CLS]", "cls_token_id"},
                                      {&d.info.end, "[SEP]", "seperator_token_id"}}) { // as llama.cpp spells it
      if (*role != kNone) continue;
      if (llvm::Error e = this->role(number, *role)) return e;
      for (uint32_t i = 0; *role == kNone && i < d.tokens.size(); ++i)
        if (d.tokens[i].bytes == name) *role = i;
      if (*role == kNone) return refuse(llvm::Twine("it has no token ") + name + " (" + key(number) + ")");
    }
    auto kind = [](const char *type) { return llvm::json::Object{{"type", type}}; };
    llvm::json::Object normalizer = kind("BertNormalizer"), words = kind("BertPreTokenizer"), text = kind("WordPiece");
    normalizer["lowercase"] = lower;
    bool byteLevel = false;
    addNormalizer(d, Members(&normalizer, file.path(), fault));
    addPreTokenizer(d, Members(&words, file.path(), fault), byteLevel);
    setOutputs(d, Members(&text, file.path(), fault));
    return llvm::Error::success();
  }

  const WeightFile &file;
  Draft &d;
  bool isUnigram = false; // its unknown token is no text
  Fault fault;
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
  llvm::Expected<std::string> made = draft.write();
  if (!made) return llvm::createStringError(file.path() + ": " + llvm::toString(made.takeError()));
  return made;
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
