//===- Charsmap.cpp: a double array becomes rules --------------------------===//
// Takes:    see Charsmap.h. The trie is a double array (Aoe 1989) as the library Darts-clone has it: units of 32 bits
//           with a label, a flag that a value follows, and the offset of what goes on behind it.
// Gives:    rules in the order of the bytes that they look for.
// Keeps:    units may be shared by several words; a walk visits at most sixteen times as many as there are.
// Does not: build tries.
#include "Charsmap.h"

#include "llvm/Support/Endian.h"

namespace astra::import::text {

using namespace astra::text;

namespace {

constexpr size_t kLongest = 64; // bytes of what a rule looks for

class Walk {
public:
  Walk(llvm::StringRef trie, llvm::StringRef texts) : trie(trie), texts(texts), left(trie.size() / 4 * 16) {}

  llvm::Error run() {
    if (unitCount()) below(offsetOf(unit(0)));
    if (!why.empty()) return llvm::createStringError("the table of normalizations is malformed: " + why);
    return llvm::Error::success();
  }
  std::vector<std::pair<std::string, std::string>> rules;

private:
  size_t unitCount() const { return trie.size() / 4; }
  uint32_t unit(size_t i) const { return llvm::support::endian::read32le(trie.data() + 4 * i); }
  static uint32_t offsetOf(uint32_t u) { return (u >> 10) << ((u & 0x200) >> 6); }
  void refuse(const char *reason) {
    if (why.empty()) why = reason;
  }

  /// All words that go on from a place; at most kLongest calls deep.
  void below(uint32_t base) {
    for (uint32_t label = 1; label < 256 && why.empty(); ++label) {
      size_t at = base ^ label;
      if (at >= unitCount() || (unit(at) & 0x800000ff) != label) continue;
      if (!left--) return refuse("its words have too many bytes together");
      if (word.size() == kLongest) return refuse("it has a word of more than 64 bytes");
      word.push_back(char(label));
      uint32_t next = uint32_t(at) ^ offsetOf(unit(at));
      if (unit(at) & 0x100) {
        if (next >= unitCount()) return refuse("a value leaves its trie");
        rule(unit(next) & 0x7fffffff);
      }
      below(next);
      word.pop_back();
    }
  }

  void rule(size_t value) {
    size_t end = value < texts.size() ? texts.find('\0', value) : llvm::StringRef::npos;
    if (end == llvm::StringRef::npos) return refuse("a text leaves its texts");
    llvm::StringRef to = texts.slice(value, end);
    if (!characters(word) || !characters(to)) return refuse("it has a text that is no UTF-8");
    rules.push_back({word, to.str()});
  }

  llvm::StringRef trie, texts;
  size_t left;
  std::string word, why;
};

} // namespace

llvm::Error addCharsmap(Draft &draft, llvm::StringRef bytes, RewriteHow how) {
  if (bytes.empty()) return llvm::Error::success();
  size_t size = bytes.size() < 4 ? 0 : llvm::support::endian::read32le(bytes.data());
  if (!size || size % 4 || size > bytes.size() - 4)
    return llvm::createStringError("the table of normalizations is malformed: its trie leaves it");
  Walk walk(bytes.substr(4, size), bytes.substr(4 + size));
  if (llvm::Error e = walk.run()) return e;
  std::vector<Rule> rules;
  for (const auto &[from, to] : walk.rules) rules.push_back({draft.string(from), draft.string(to)});
  uint32_t sets = 0;
  if (how == RewriteHow::Clusters) sets = draft.needClusters();
  draft.normalizers.push_back({uint32_t(StepKind::Rewrite), draft.addRules(std::move(rules)), uint32_t(how), sets});
  return llvm::Error::success();
}

} // namespace astra::import::text
