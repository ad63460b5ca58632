//===- Draft.cpp: the bytes of a tokenizer --------------------------------===//
// Takes:    see Draft.h.
// Gives:    the file's sections in the order of their numbers, each at a multiple of 8.
// Keeps:    nothing that depends on the order of a hash table.
// Does not: read anything.
#include "Draft.h"
#include "Regex.h"
#include "astra/Import/Tokenizer.h"

#include <algorithm>
#include <numeric>

namespace astra::import::text {

using namespace astra::text;

Draft::Draft() : info{} {
  for (uint32_t *role :
       {&info.unknown, &info.begin, &info.end, &info.turn, &info.pad, &info.continuing, &info.wordSet, &info.spaceSet})
    *role = kNone;
}

uint32_t Draft::string(llvm::StringRef text) {
  auto [it, isNew] = stringNumbers.try_emplace(text, uint32_t(strings.size()));
  if (isNew) strings.push_back(text.str());
  return it->second;
}

uint32_t Draft::set(const CharSet &given) {
  llvm::ArrayRef<Range> ranges = given.ranges();
  auto same = [&](const std::vector<Range> &other) {
    return std::equal(ranges.begin(), ranges.end(), other.begin(), other.end(),
                      [](Range a, Range b) { return a.first == b.first && a.last == b.last; });
  };
  auto it = std::find_if(sets.begin(), sets.end(), same);
  if (it == sets.end()) it = sets.insert(it, ranges.vec());
  return uint32_t(it - sets.begin());
}

uint32_t Draft::map(const CharMap &entries) {
  std::vector<MapEntry> rows;
  for (const auto &[character, to] : entries) rows.push_back({character, string(to)});
  auto same = [&](const std::vector<MapEntry> &other) {
    return std::equal(rows.begin(), rows.end(), other.begin(), other.end(),
                      [](MapEntry a, MapEntry b) { return a.character == b.character && a.string == b.string; });
  };
  auto it = std::find_if(maps.begin(), maps.end(), same);
  if (it == maps.end()) it = maps.insert(it, std::move(rows));
  return uint32_t(it - maps.begin());
}

llvm::Expected<uint32_t> Draft::pattern(llvm::StringRef regex) { return compilePattern(*this, regex); }

uint32_t Draft::literal(llvm::StringRef text) {
  uint32_t begin = uint32_t(code.size());
  std::optional<std::u32string> all = characters(text);
  for (char32_t c : all.value_or(U"")) code.push_back(uint32_t(Code::Set) | set(CharSet().add(c)) << 8);
  code.push_back(uint32_t(Code::Match));
  return begin;
}

void Draft::needClasses() { classes = combiningClasses(); }

void Draft::needCompositions() { composites = compositions(); }

uint32_t Draft::needClusters() {
  uint32_t first = uint32_t(sets.size()); // neighbours, whatever other sets there are
  for (const CharSet &set : clusterSets()) sets.push_back(set.ranges().vec());
  return first;
}

uint32_t Draft::addRules(std::vector<Rule> more) {
  rules.push_back(std::move(more));
  return uint32_t(rules.size() - 1);
}

namespace {

/// The file, section by section.
class Writer {
public:
  template <typename T> void section(SectionKind kind, const std::vector<T> &records) {
    if (!records.empty()) add(kind, {reinterpret_cast<const char *>(records.data()), records.size() * sizeof(T)});
  }
  template <typename Row, typename T = typename Row::value_type>
  void rows(SectionKind ends, SectionKind all, const std::vector<Row> &rows) {
    std::vector<uint32_t> at;
    std::vector<T> joined;
    for (const Row &row : rows) {
      joined.insert(joined.end(), row.begin(), row.end());
      at.push_back(uint32_t(joined.size()));
    }
    section(ends, at);
    section(all, joined);
  }
  std::string finish() {
    Header header = {};
    std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
    header.major = kMajor, header.minor = kMinor;
    header.sections = uint32_t(table.size());
    uint64_t base = sizeof(Header) + table.size() * sizeof(Section);
    header.bytes = base + body.size();
    std::string out(reinterpret_cast<const char *>(&header), sizeof(header));
    std::sort(table.begin(), table.end(), [](const Section &a, const Section &b) { return a.kind < b.kind; });
    for (Section &s : table) {
      s.offset += base;
      out.append(reinterpret_cast<const char *>(&s), sizeof(s));
    }
    return out + body;
  }

private:
  void add(SectionKind kind, llvm::StringRef bytes) {
    table.push_back({uint32_t(kind), 0, body.size(), bytes.size()});
    body.append(bytes.begin(), bytes.end());
    body.resize((body.size() + 7) / 8 * 8);
  }
  std::vector<Section> table;
  std::string body;
};
static_assert(sizeof(Header) % 8 == 0 && sizeof(Section) % 8 == 0);

} // namespace

llvm::Expected<std::string> Draft::write() const {
  auto tooMany = [](size_t count, const char *what, size_t most) {
    return llvm::createStringError("it has " + llvm::Twine(count) + " " + what + ", at most " + llvm::Twine(most) +
                                   " are supported");
  };
  if (tokens.empty()) return llvm::createStringError("it has no tokens");
  if (tokens.size() > kMaxTokens) return tooMany(tokens.size(), "tokens", kMaxTokens);
  if (merges.size() > kMaxMerges) return tooMany(merges.size(), "merges", kMaxMerges);
  if (added.size() > kMaxAdded) return tooMany(added.size(), "added tokens", kMaxAdded);
  if (normalizers.size() + splitters.size() > kMaxSteps)
    return tooMany(normalizers.size() + splitters.size(), "steps", kMaxSteps);
  if (sets.size() > kMaxSets) return tooMany(sets.size(), "sets of characters in its patterns", kMaxSets);
  if (code.size() > kMaxCode) return tooMany(code.size(), "words in the programs of its patterns", kMaxCode);
  for (const DraftToken &t : tokens)
    if (!(t.score >= -1e30 && t.score <= 1e30)) return llvm::createStringError("a token's score is no number");
  Info full = info;
  full.tokens = uint32_t(tokens.size());
  full.normalizers = uint32_t(normalizers.size());
  std::vector<std::string> bytes, output;
  std::vector<uint8_t> kinds;
  std::vector<uint32_t> sorted;
  std::vector<double> scores;
  for (const DraftToken &t : tokens) {
    if (t.inModel) sorted.push_back(uint32_t(bytes.size()));
    bytes.push_back(t.bytes), output.push_back(t.output);
    kinds.push_back(uint8_t(t.kind)), scores.push_back(t.score);
  }
  std::sort(sorted.begin(), sorted.end(),
            [&](uint32_t a, uint32_t b) { return llvm::StringRef(bytes[a]) < llvm::StringRef(bytes[b]); });
  std::vector<Step> steps = normalizers;
  steps.insert(steps.end(), splitters.begin(), splitters.end());
  Writer w;
  w.section(SectionKind::Info, std::vector<Info>{full});
  w.rows(SectionKind::TokenEnds, SectionKind::Tokens, bytes);
  w.section(SectionKind::TokenKinds, kinds);
  w.section(SectionKind::Sorted, sorted);
  if (full.kind == uint32_t(ModelKind::Unigram)) w.section(SectionKind::Scores, scores);
  w.section(SectionKind::Merges, merges);
  w.section(SectionKind::Bytes, this->bytes);
  if (output != bytes) w.rows(SectionKind::OutputEnds, SectionKind::Output, output);
  w.section(SectionKind::Added, added);
  w.rows(SectionKind::StringEnds, SectionKind::Strings, strings);
  w.section(SectionKind::Steps, steps);
  w.section(SectionKind::Code, code);
  w.rows(SectionKind::SetEnds, SectionKind::Ranges, sets);
  w.rows(SectionKind::MapEnds, SectionKind::MapEntries, maps);
  w.section(SectionKind::Classes, classes);
  w.section(SectionKind::Compositions, composites);
  w.section(SectionKind::Before, before);
  w.section(SectionKind::After, after);
  if (chat) w.section(SectionKind::Chat, std::vector<Chat>{*chat});
  w.rows(SectionKind::RuleEnds, SectionKind::Rules, rules);
  return w.finish();
}

} // namespace astra::import::text

astra::import::TokenNumbers astra::import::tokenNumbers(llvm::StringRef compiled) {
  using namespace astra::text;
  TokenNumbers out;
  Header header;
  if (compiled.size() < sizeof(header)) return out;
  memcpy(&header, compiled.data(), sizeof(header));
  for (size_t i = 0; i < header.sections && sizeof(header) + (i + 1) * sizeof(Section) <= compiled.size(); ++i) {
    Section s;
    memcpy(&s, compiled.data() + sizeof(header) + i * sizeof(s), sizeof(s));
    if (s.offset > compiled.size() || s.bytes > compiled.size() - s.offset) return {};
    if (SectionKind(s.kind) == SectionKind::Info && s.bytes == sizeof(Info)) {
      Info info;
      memcpy(&info, compiled.data() + s.offset, sizeof(info));
      out.count = info.tokens;
    }
    for (uint64_t at = 0; SectionKind(s.kind) == SectionKind::Sorted && at + 4 <= s.bytes; at += 4) {
      uint32_t token;
      memcpy(&token, compiled.data() + s.offset + at, sizeof(token));
      out.greatest = std::max<int64_t>(out.greatest, token);
    }
  }
  return out;
}
