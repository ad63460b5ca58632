//===- Steps.cpp: a function for each kind of step ------------------------===//
// Takes:    see Steps.h.
// Gives:    tables of kinds; the sentence that refuses another one lists them.
// Keeps:    what the classes of the package `tokenizers` do, as its documentation and its results show.
// Does not: optimize.
#include "Steps.h"
#include "Charsmap.h"
#include "Patterns.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"

namespace astra::import::text {

using namespace astra::text;

namespace {

void step(std::vector<Step> &steps, StepKind kind, uint32_t a, uint32_t b = 0, uint32_t c = 0) {
  steps.push_back({uint32_t(kind), a, b, c});
}

/// A program that is one character of a set.
uint32_t setProgram(Draft &d, const CharSet &set) {
  uint32_t begin = uint32_t(d.code.size());
  d.code.push_back(uint32_t(Code::Set) | d.set(set) << 8);
  d.code.push_back(uint32_t(Code::Match));
  return begin;
}

void removeSet(Draft &d, const CharSet &set) {
  step(d.normalizers, StepKind::ReplacePattern, setProgram(d, set), d.string(""));
}

//===- Normalizers --------------------------------------------------------===//

void decompose(Draft &d, bool compatibility) {
  d.needClasses();
  step(d.normalizers, StepKind::Decompose, d.map(decompositions(compatibility)));
}
void compose(Draft &d) {
  d.needCompositions();
  step(d.normalizers, StepKind::Compose, 0);
}
void lowerCaseStep(Draft &d) { step(d.normalizers, StepKind::Map, d.map(lowerCases())); }

uint32_t patternOf(Draft &d, const Members &m) {
  Members pattern = m.member("pattern");
  llvm::Expected<uint32_t> program = pattern.has("String") ? llvm::Expected<uint32_t>(d.literal(pattern.text("String")))
                                                           : d.pattern(pattern.text("Regex"));
  if (program) return *program;
  m.refuse(llvm::toString(program.takeError()));
  return 0;
}

void replace(Draft &d, std::vector<Step> &steps, const Members &m) {
  Members pattern = m.member("pattern");
  std::string from = pattern.text("String");
  uint32_t to = d.string(m.text("content"));
  if (!pattern.has("String"))
    step(steps, StepKind::ReplacePattern, patternOf(d, m), to);
  else if (!from.empty())
    step(steps, StepKind::Replace, d.string(from), to);
}

void bertNormalizer(Draft &d, const Members &m) {
  bool lower = m.flag("lowercase", true);
  if (m.flag("clean_text", true)) {
    CharSet removed, kept;
    for (const char *name : {"Cc", "Cf", "Co"}) removed |= *category(name);
    kept.add('\t').add('\n').add('\r');
    removeSet(d, removed.remove(kept).add(0xfffd));
    CharMap entries;
    CharSet spaces = whiteSpace();
    for (Range r : spaces.ranges())
      for (uint32_t c = r.first; c <= r.last; ++c) entries[c] = " ";
    step(d.normalizers, StepKind::Map, d.map(entries));
  }
  if (m.flag("handle_chinese_chars", true)) {
    // The blocks that the normalizer of BERT lists.
    CharSet han;
    han.add(0x4e00, 0x9fff).add(0x3400, 0x4dbf).add(0x20000, 0x2a6df).add(0x2a700, 0x2b73f).add(0x2b740, 0x2b81f);
    han.add(0x2b920, 0x2ceaf).add(0xf900, 0xfaff).add(0x2f800, 0x2fa1f);
    step(d.normalizers, StepKind::Surround, d.set(han), d.string(" "));
  }
  if (m.flag("strip_accents", lower)) {
    decompose(d, false);
    removeSet(d, *category("Mn"));
  }
  if (lower) lowerCaseStep(d);
}

// NFKC with what the training of neural translation adds: the table of SentencePiece's nmt rule.
void nmt(Draft &d) {
  CharMap entries;
  auto all = [&](uint32_t first, uint32_t last, const char *to) {
    for (uint32_t c = first; c <= last; ++c) entries[c] = to;
  };
  all(1, 8, ""), all(0xb, 0xb, ""), all(0xe, 0x1f, ""), all(0x7f, 0x7f, ""), all(0x8f, 0x8f, ""), all(0x9f, 0x9f, "");
  all(9, 0xa, " "), all(0xc, 0xd, " "), all(0x1680, 0x1680, " "), all(0x200b, 0x200f, " "), all(0x2028, 0x2029, " ");
  all(0x2581, 0x2581, " "), all(0xfeff, 0xfeff, " "), all(0xfffd, 0xfffd, " ");
  step(d.normalizers, StepKind::Map, d.map(entries));
}

void strip(Draft &d, const Members &m) {
  uint32_t sides = (m.flag("strip_left", true) ? 1 : 0) | (m.flag("strip_right", true) ? 2 : 0);
  if (sides) step(d.normalizers, StepKind::Strip, d.set(whiteSpace()), sides);
}

void precompiled(Draft &d, const Members &m) {
  std::vector<char> bytes;
  llvm::Error error = llvm::decodeBase64(m.text("precompiled_charsmap"), bytes);
  if (!error) error = addCharsmap(d, {bytes.data(), bytes.size()}, RewriteHow::Clusters);
  if (error) m.refuse(llvm::toString(std::move(error)));
}

struct Kind {
  const char *name;
  void (*add)(Draft &, const Members &);
};

const Kind normalizers[] = {
    {"NFC", [](Draft &d, const Members &) { decompose(d, false), compose(d); }},
    {"NFD", [](Draft &d, const Members &) { decompose(d, false); }},
    {"NFKC", [](Draft &d, const Members &) { decompose(d, true), compose(d); }},
    {"NFKD", [](Draft &d, const Members &) { decompose(d, true); }},
    {"Lowercase", [](Draft &d, const Members &) { lowerCaseStep(d); }},
    {"StripAccents", [](Draft &d, const Members &) { removeSet(d, *category("M")); }},
    {"Strip", strip},
    {"Prepend",
     [](Draft &d, const Members &m) { step(d.normalizers, StepKind::Prepend, d.string(m.text("prepend"))); }},
    {"Replace", [](Draft &d, const Members &m) { replace(d, d.normalizers, m); }},
    {"BertNormalizer", bertNormalizer},
    {"Nmt", [](Draft &d, const Members &) { nmt(d); }},
    {"Precompiled", precompiled},
};

//===- Pre-tokenizers -----------------------------------------------------===//

void split(Draft &d, uint32_t program, SplitHow how, bool invert = false) {
  step(d.splitters, StepKind::Split, program, uint32_t(how), invert);
}

uint32_t known(Draft &d, llvm::StringRef regex) { return llvm::cantFail(d.pattern(regex)); }

SplitHow how(const Members &m, const char *otherwise) {
  static constexpr std::pair<const char *, SplitHow> names[] = {{"Removed", SplitHow::Removed},
                                                                {"Isolated", SplitHow::Isolated},
                                                                {"MergedWithPrevious", SplitHow::WithPrevious},
                                                                {"MergedWithNext", SplitHow::WithNext},
                                                                {"Contiguous", SplitHow::Contiguous}};
  std::string wanted = m.text("behavior", otherwise);
  for (auto [name, value] : names)
    if (wanted == name) return value;
  m.refuse("the behavior \"" + wanted + "\" is unknown");
  return SplitHow::Removed;
}

void byteLevel(Draft &d, const Members &m) {
  if (m.flag("add_prefix_space", true))
    step(d.splitters, StepKind::Prepend, d.string(" "), uint32_t(PrependWhere::UnlessThere));
  if (m.flag("use_regex", true)) split(d, known(d, gpt2Pattern), SplitHow::Isolated);
}

void metaspace(Draft &d, const Members &m) {
  std::string space = m.text("replacement", "\u2581"),
              scheme = m.text("prepend_scheme", m.flag("add_prefix_space", true) ? "always" : "never");
  step(d.splitters, StepKind::Replace, d.string(" "), d.string(space));
  if (scheme != "always" && scheme != "first" && scheme != "never")
    m.refuse("the prepend_scheme \"" + scheme + "\" is unknown");
  if (scheme != "never")
    step(d.splitters, StepKind::Prepend, d.string(space),
         uint32_t(scheme == "first" ? PrependWhere::FirstUnlessThere : PrependWhere::UnlessThere));
  if (m.flag("split", true)) split(d, d.literal(space), SplitHow::WithNext);
}

void bertPreTokenizer(Draft &d, const Members &) {
  split(d, setProgram(d, whiteSpace()), SplitHow::Removed);
  split(d, setProgram(d, punctuation()), SplitHow::Isolated);
}

const Kind preTokenizers[] = {
    {"ByteLevel", byteLevel},
    {"Metaspace", metaspace},
    {"BertPreTokenizer", bertPreTokenizer},
    {"Split",
     [](Draft &d, const Members &m) { split(d, patternOf(d, m), how(m, "Removed"), m.flag("invert", false)); }},
    {"Digits",
     [](Draft &d, const Members &m) {
       split(d, known(d, m.flag("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)"), SplitHow::Isolated);
     }},
    {"Punctuation", [](Draft &d, const Members &m) { split(d, setProgram(d, punctuation()), how(m, "Isolated")); }},
    {"WhitespaceSplit", [](Draft &d, const Members &) { split(d, setProgram(d, whiteSpace()), SplitHow::Removed); }},
    {"Whitespace",
     [](Draft &d, const Members &) {
       split(d, known(d, R"([\w\x{200c}\x{200d}]+|[^\w\s\x{200c}\x{200d}]+)"), SplitHow::Removed, true);
     }},
    {"CharDelimiterSplit",
     [](Draft &d, const Members &m) { split(d, d.literal(m.text("delimiter")), SplitHow::Removed); }},
};

/// The rows of a table that an object, or the members of a "Sequence", name.
void eachOf(const Members &m, const char *list, llvm::ArrayRef<Kind> table,
            llvm::function_ref<void(const Kind &, const Members &)> add, int depth = 0) {
  if (!m) return;
  std::string type = m.text("type");
  if (type == "Sequence") {
    if (depth > 8) return m.refuse("sequences are nested too deeply");
    for (const llvm::json::Value &v : m.array(list))
      eachOf(Members(v.getAsObject(), m.name(), m.faults()), list, table, add, depth + 1);
    return;
  }
  for (const Kind &kind : table)
    if (type == kind.name) return add(kind, m);
  m.refuse("the kind \"" + type + "\" is not supported; supported are Sequence, " +
           llvm::join(llvm::map_range(table, [](const Kind &k) { return llvm::StringRef(k.name); }), ", "));
}

//===- Decoders -----------------------------------------------------------===//

void mapOutputs(Draft &d, llvm::function_ref<void(DraftToken &)> change) {
  for (DraftToken &t : d.tokens) change(t);
}

std::string replaced(llvm::StringRef text, llvm::StringRef from, llvm::StringRef to) {
  std::string out;
  for (size_t at = 0; !from.empty();) {
    size_t found = text.find(from, at);
    out += text.slice(at, found).str();
    if (found == llvm::StringRef::npos) return out;
    out += to.str();
    at = found + from.size();
  }
  return text.str();
}

void metaspaceDecoder(Draft &d, const Members &m) {
  std::string space = m.text("replacement", "\u2581");
  mapOutputs(d, [&](DraftToken &t) { t.output = replaced(t.output, space, " "); });
  if (m.text("prepend_scheme", m.flag("add_prefix_space", true) ? "always" : "never") != "never")
    d.info.flags |= kDropSpace;
}

void replaceDecoder(Draft &d, const Members &m) {
  Members pattern = m.member("pattern");
  if (!pattern.has("String")) return m.refuse("a decoder replaces a pattern");
  std::string from = pattern.text("String"), to = m.text("content");
  mapOutputs(d, [&](DraftToken &t) { t.output = replaced(t.output, from, to); });
}

void stripDecoder(Draft &d, const Members &m) {
  if (m.text("content") != " " || m.integer("start", 0) > 1 || m.integer("stop", 0))
    return m.refuse("only one space at the begin can be left out");
  if (m.integer("start", 0)) d.info.flags |= kDropSpace;
}

void wordPieceDecoder(Draft &d, const Members &m) {
  std::string prefix = m.text("prefix", "##");
  bool cleanup = m.flag("cleanup", true);
  static constexpr std::pair<const char *, const char *> cleaned[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  mapOutputs(d, [&](DraftToken &t) {
    t.output = llvm::StringRef(t.output).starts_with(prefix) ? t.output.substr(prefix.size()) : " " + t.output;
    for (auto [from, to] : cleaned)
      if (cleanup) t.output = replaced(t.output, from, to);
  });
  d.info.flags |= kFirstVerbatim;
}

void byteFallbackDecoder(Draft &d, const Members &) {
  mapOutputs(d, [&](DraftToken &t) {
    if (t.kind == TokenKind::Byte) t.output = std::string(1, char(llvm::hexFromNibbles(t.bytes[3], t.bytes[4])));
  });
}

const Kind decoders[] = {
    {"ByteLevel", [](Draft &, const Members &) {}}, // a byte-level vocabulary is kept as bytes
    {"Metaspace", metaspaceDecoder},
    {"WordPiece", wordPieceDecoder},
    {"Replace", replaceDecoder},
    {"ByteFallback", byteFallbackDecoder},
    {"Fuse", [](Draft &, const Members &) {}}, // text is joined anyway
    {"Strip", stripDecoder},
};

} // namespace

void addNormalizer(Draft &draft, const Members &m) {
  eachOf(m, "normalizers", normalizers, [&](const Kind &kind, const Members &one) { kind.add(draft, one); });
}

void addPreTokenizer(Draft &draft, const Members &m, bool &isBytes) {
  eachOf(m, "pretokenizers", preTokenizers, [&](const Kind &kind, const Members &one) {
    if (isBytes) one.refuse("a step follows ByteLevel");
    isBytes |= kind.add == byteLevel;
    kind.add(draft, one);
  });
}

void setOutputs(Draft &draft, const Members &m) {
  for (DraftToken &t : draft.tokens) t.output = m ? t.bytes : " " + t.bytes; // without a decoder: words
  if (!m) draft.info.flags |= kFirstVerbatim;
  eachOf(m, "decoders", decoders, [&](const Kind &kind, const Members &one) { kind.add(draft, one); });
}

// GPT-2's table: printable characters of Latin 1 stand for themselves, the other bytes for U+0100 on, in order.
std::optional<std::string> fromByteLevel(llvm::StringRef token) {
  static const std::vector<int> table = [] {
    std::vector<int> byte(0x144, -1);
    int next = 0x100;
    for (int b = 0; b < 256; ++b) {
      bool own = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      byte[size_t(own ? b : next++)] = b;
    }
    return byte;
  }();
  std::string out;
  for (char32_t c : characters(token).value_or(U"\uffff")) {
    if (c >= table.size() || table[c] < 0) return std::nullopt;
    out += char(table[c]);
  }
  return out;
}

} // namespace astra::import::text
