//===- TokenizerJson.cpp: tokenizer.json becomes a draft ------------------===//
// Takes:    see Tokenizer.h; the format is that of the package `tokenizers`, version 1.0 of the file.
// Gives:    vocabulary, model, added tokens, what stands around a text, roles of tokens.
// Keeps:    numbers of tokens stay as they are; gaps between them become unused tokens.
// Does not: know single steps (Steps.cpp) or conversations (ChatForms.cpp).
#include "../JsonDepth.h"
#include "ChatForms.h"
#include "Steps.h"
#include "astra/Import/Tokenizer.h"

#include "llvm/ADT/StringExtras.h"

namespace astra::import {

using namespace astra::text;
using namespace text;

namespace {

class Reader {
public:
  Reader(const llvm::json::Object *file, Fault &fault) : fault(fault), file(file, "tokenizer.json", fault) {}

  void run(Draft &d) {
    Members model = file.member("model");
    std::string kind = model.text("type", model.has("merges") ? "BPE" : "");
    bool byteLevel = false;
    // Gaps between numbers are no reason to take more memory than a few times the file's size.
    const llvm::json::Object *vocab = model.value("vocab") ? model.value("vocab")->getAsObject() : nullptr;
    size_t entries = (vocab ? vocab->size() : model.array("vocab").size()) + file.array("added_tokens").size();
    most = int64_t(std::min<size_t>(kMaxTokens, 2 * entries + 4096));
    addNormalizer(d, file.member("normalizer"));
    addPreTokenizer(d, file.member("pre_tokenizer"), byteLevel);
    if (kind == "BPE")
      bpe(d, model, byteLevel);
    else if (kind == "Unigram")
      unigram(d, model);
    else if (kind == "WordPiece")
      wordPiece(d, model);
    else
      model.refuse("the model \"" + kind + "\" is not supported; supported are BPE, Unigram, WordPiece");
    if (byteLevel && kind != "BPE") model.refuse("the step ByteLevel is supported before BPE only");
    added(d);
    setOutputs(d, file.member("decoder"));
    around(d, file.member("post_processor"));
  }

  /// Token of a text, special ones included.
  uint32_t tokenOf(llvm::StringRef text) const {
    if (text.empty()) return kNone;
    auto it = numbers.find(text);
    return it == numbers.end() ? kNone : it->second;
  }

private:
  void addToken(Draft &d, llvm::StringRef text, int64_t number) {
    if (number < 0 || number >= most)
      return fault("tokenizer.json: the token \"" + text + "\" has the number " + llvm::Twine(number) +
                   ", expected 0 to " + llvm::Twine(most - 1) + " for so many tokens as there are");
    if (d.tokens.size() <= size_t(number)) {
      DraftToken unused;
      unused.kind = TokenKind::Unused;
      d.tokens.resize(size_t(number) + 1, unused);
    }
    DraftToken &t = d.tokens[size_t(number)];
    if (t.kind != TokenKind::Unused && t.bytes != text)
      return fault("tokenizer.json: the tokens \"" + t.bytes + "\" and \"" + text + "\" have the same number " +
                   llvm::Twine(number));
    t.bytes = text.str(), t.kind = TokenKind::Normal;
    numbers[text] = uint32_t(number);
  }

  /// The member "vocab", an object of numbers.
  void vocabulary(Draft &d, const Members &model) {
    Members vocab = model.member("vocab");
    if (!vocab) return model.refuse("there is no vocabulary");
    std::vector<std::pair<int64_t, llvm::StringRef>> rows;
    for (const auto &[text, number] : *vocab.get()) {
      auto value = number.getAsInteger();
      if (!value) return vocab.refuse("a token's number is no integer");
      rows.push_back({*value, text});
    }
    llvm::sort(rows);
    for (auto [number, text] : rows) {
      addToken(d, text, number);
      if (!text.empty() && number >= 0 && size_t(number) < d.tokens.size()) d.tokens[size_t(number)].inModel = true;
    }
  }

  uint32_t required(const Members &model, llvm::StringRef text) {
    uint32_t token = tokenOf(text);
    if (token == kNone) model.refuse("the token \"" + text + "\" is not in the vocabulary");
    return token;
  }

  /// The tokens "<0x00>" to "<0xFF>", which stand for bytes.
  void byteTokens(Draft &d) {
    d.bytes.assign(256, kNone);
    for (unsigned b = 0; b < 256; ++b) {
      std::string name = "<0x" + llvm::toHex(llvm::ArrayRef<uint8_t>{uint8_t(b)}) + ">";
      if (uint32_t token = tokenOf(name); token != kNone) {
        d.bytes[b] = token;
        d.tokens[token].kind = TokenKind::Byte, d.tokens[token].inModel = false;
      }
    }
    d.info.flags |= kByteFallback;
  }

  void bpe(Draft &d, const Members &m, bool byteLevel) {
    d.info.kind = uint32_t(ModelKind::Bpe);
    vocabulary(d, m);
    for (const char *name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!m.text(name).empty()) m.refuse(llvm::Twine(name) + " is not supported");
    if (m.value("dropout") && m.value("dropout")->getAsNumber().value_or(0) != 0)
      m.refuse("dropout makes tokens depend on chance");
    if (std::string unknown = m.text("unk_token"); !unknown.empty()) d.info.unknown = required(m, unknown);
    if (m.flag("fuse_unk", false)) d.info.flags |= kFuseUnknown;
    if (m.flag("ignore_merges", false)) d.info.flags |= kWholeFirst;
    for (const llvm::json::Value &v : m.array("merges")) {
      llvm::StringRef left, right;
      if (auto text = v.getAsString()) {
        std::tie(left, right) = text->split(' ');
      } else if (auto *pair = v.getAsArray(); pair && pair->size() == 2) {
        left = (*pair)[0].getAsString().value_or(""), right = (*pair)[1].getAsString().value_or("");
      }
      if (left.empty() || right.empty()) return m.refuse("a merge is not two tokens");
      uint32_t result = required(m, (left + right).str());
      d.merges.push_back({required(m, left), required(m, right), result});
      if (fault) return;
    }
    if (m.flag("byte_fallback", false)) byteTokens(d);
    if (!byteLevel) return;
    d.info.flags |= kByteLevel;
    d.info.flags &= ~uint32_t(kByteFallback);
    d.bytes.assign(256, kNone);
    for (uint32_t i = 0; i < d.tokens.size(); ++i) {
      DraftToken &t = d.tokens[i];
      std::optional<std::string> bytes = fromByteLevel(t.bytes);
      t.inModel = t.inModel && bytes; // another character never arises
      if (bytes) t.bytes = *bytes;
      if (bytes && bytes->size() == 1 && t.inModel) d.bytes[uint8_t(t.bytes[0])] = i;
    }
  }

  void unigram(Draft &d, const Members &m) {
    d.info.kind = uint32_t(ModelKind::Unigram);
    d.info.flags |= kFuseUnknown;
    int64_t number = 0;
    for (const llvm::json::Value &v : m.array("vocab")) {
      const llvm::json::Array *pair = v.getAsArray();
      auto text = pair && pair->size() == 2 ? (*pair)[0].getAsString() : std::nullopt;
      auto score = pair && pair->size() == 2 ? (*pair)[1].getAsNumber() : std::nullopt;
      if (!text || !score) return m.refuse("a token is not a text and a score");
      bool isNew = !numbers.contains(*text);
      addToken(d, *text, number);
      if (fault) return;
      d.tokens[size_t(number)].score = *score;
      d.tokens[size_t(number)].inModel = isNew && !text->empty();
      ++number;
    }
    if (m.has("unk_id")) {
      int64_t unknown = m.integer("unk_id", 0);
      if (unknown < 0 || unknown >= number) return m.refuse("the unknown token is none of the vocabulary");
      d.info.unknown = uint32_t(unknown);
    }
    if (m.flag("byte_fallback", false)) byteTokens(d);
  }

  void wordPiece(Draft &d, const Members &m) {
    d.info.kind = uint32_t(ModelKind::WordPiece);
    vocabulary(d, m);
    d.info.unknown = required(m, m.text("unk_token", "[UNK]"));
    std::string prefix = m.text("continuing_subword_prefix", "##");
    d.info.continuing = prefix.empty() ? kNone : d.string(prefix);
    int64_t longest = m.integer("max_input_chars_per_word", 100);
    d.info.longest = uint32_t(std::clamp<int64_t>(longest, 0, int64_t(1) << 31));
  }

  void added(Draft &d) {
    bool strips = false, words = false;
    for (const llvm::json::Value &v : file.array("added_tokens")) {
      Members m(v.getAsObject(), "tokenizer.json.added_tokens", fault);
      if (!m) return file.refuse("an added token is no object");
      std::string text = m.text("content");
      int64_t number = m.integer("id", -1);
      bool special = m.flag("special", false);
      uint32_t flags = special ? uint32_t(kSpecial) : 0;
      if (m.flag("normalized", !special)) flags |= kNormalized;
      if (m.flag("lstrip", false)) flags |= kLeft;
      if (m.flag("rstrip", false)) flags |= kRight;
      if (m.flag("single_word", false)) flags |= kSingleWord;
      if (fault) return;
      if (text.empty()) continue;
      if (number < 0 || size_t(number) >= d.tokens.size() || d.tokens[size_t(number)].kind == TokenKind::Unused)
        addToken(d, text, number);
      if (fault) return;
      DraftToken &t = d.tokens[size_t(number)];
      t.bytes = text, numbers[text] = uint32_t(number);
      if (flags & kSpecial) t.kind = TokenKind::Special, t.inModel = false;
      d.added.push_back({uint32_t(number), flags, d.string(text)});
      strips |= (flags & (kLeft | kRight)) != 0, words |= (flags & kSingleWord) != 0;
    }
    if (strips) d.info.spaceSet = d.set(whiteSpace());
    if (words) d.info.wordSet = d.set(wordCharacters());
  }

  void around(Draft &d, const Members &m, int depth = 0) {
    if (!m) return;
    std::string type = m.text("type");
    if (type == "ByteLevel") return; // of offsets alone
    if (type == "Sequence" && depth < 8) {
      for (const llvm::json::Value &v : m.array("processors"))
        around(d, Members(v.getAsObject(), m.name(), fault), depth + 1);
      return;
    }
    if (!d.before.empty() || !d.after.empty()) return m.refuse("tokens are put around a text twice");
    if (type == "TemplateProcessing") {
      Members specials = m.member("special_tokens");
      bool behind = false;
      for (const llvm::json::Value &v : m.array("single")) {
        Members piece(v.getAsObject(), m.name(), fault), special = piece.member("SpecialToken");
        if (piece.has("Sequence")) {
          if (behind) m.refuse("a text stands twice in its template");
          behind = true;
          continue;
        }
        std::string name = special.text("id");
        for (const llvm::json::Value &id : specials.member(name).array("ids"))
          put(d, m, id.getAsInteger().value_or(-1), behind);
        if (!specials.has(name)) m.refuse("the template names the token \"" + name + "\", which has no number");
      }
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      for (bool behind : {false, true}) {
        llvm::ArrayRef<llvm::json::Value> pair = m.array(behind ? "sep" : "cls");
        put(d, m, pair.size() == 2 ? pair[1].getAsInteger().value_or(-1) : -1, behind);
      }
    } else {
      m.refuse("the kind \"" + type +
               "\" is not supported; supported are Sequence, ByteLevel, TemplateProcessing, BertProcessing, "
               "RobertaProcessing");
    }
  }

  void put(Draft &d, const Members &m, int64_t token, bool behind) {
    if (token < 0 || size_t(token) >= d.tokens.size())
      return m.refuse("a token that stands around a text is not in the vocabulary");
    (behind ? d.after : d.before).push_back(uint32_t(token));
  }

  Fault &fault;
  Members file;
  int64_t most = 0; // numbers of tokens are below
  llvm::StringMap<uint32_t> numbers;
};

llvm::Expected<llvm::json::Value> parse(llvm::StringRef text, const char *name) {
  if (isNestedDeeper(text, 64)) return llvm::createStringError(llvm::Twine(name) + " is nested more than 64 deep");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) return llvm::createStringError(llvm::Twine(name) + " is no JSON: " + llvm::toString(value.takeError()));
  if (!value->getAsObject()) return llvm::createStringError(llvm::Twine(name) + " is no JSON object");
  return value;
}

/// The text of a token in tokenizer_config.json: a text, or an object with its content.
std::string tokenText(const Members &config, llvm::StringRef name) {
  const llvm::json::Value *v = config.value(name);
  if (v && v->getAsObject()) return config.member(name).text("content");
  return config.text(name);
}

/// The template, or the one named "default" of several.
std::string templateOf(const Members &config) {
  const llvm::json::Value *v = config.value("chat_template");
  if (!v || !v->getAsArray()) return config.text("chat_template");
  std::string found;
  for (const llvm::json::Value &each : *v->getAsArray()) {
    Members m(each.getAsObject(), config.name(), config.faults());
    if (found.empty() || m.text("name") == "default") found = m.text("template");
  }
  return found;
}

} // namespace

llvm::Expected<std::string> tokenizerFromJson(llvm::StringRef tokenizer, llvm::StringRef config,
                                              llvm::StringRef chatTemplate, llvm::StringRef form) {
  llvm::Expected<llvm::json::Value> file = parse(tokenizer, "tokenizer.json");
  if (!file) return file.takeError();
  llvm::Expected<llvm::json::Value> settings = parse(config.empty() ? "{}" : config, "tokenizer_config.json");
  if (!settings) return settings.takeError();
  Fault fault;
  Draft draft;
  Reader reader(file->getAsObject(), fault);
  reader.run(draft);
  Members c(settings->getAsObject(), "tokenizer_config.json", fault);
  std::string bos = tokenText(c, "bos_token"), eos = tokenText(c, "eos_token");
  draft.info.begin = reader.tokenOf(bos), draft.info.end = reader.tokenOf(eos);
  draft.info.pad = reader.tokenOf(tokenText(c, "pad_token"));
  std::string jinja = chatTemplate.empty() ? templateOf(c) : chatTemplate.str();
  if (fault) return fault.take();
  if (llvm::Error error = setChat(draft, jinja, form, bos, eos)) return error;
  return draft.write();
}

} // namespace astra::import
