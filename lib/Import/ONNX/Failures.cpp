//===- Failures.cpp: sentences that a model earned --------------------------===//
// Keeps:    what a sentence asks for is the flags that it shows: those of its first remedy, so that no line to paste
//           says other than the sentence.
#include "Failures.h"
#include "../DimHints.h"
#include "ModelFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace astra::onnx {

namespace {

/// The word of a shell at the beginning of the text, which is cut off.
std::string takeWord(llvm::StringRef &text) {
  std::string word;
  bool quoted = false;
  for (; !text.empty() && (quoted || !llvm::isSpace(text.front())); text = text.drop_front())
    if (text.front() == '\'')
      quoted = !quoted;
    else if (quoted || text.front() != '\\')
      word += text.front();
  if (!word.empty() && llvm::StringRef(",;:").contains(word.back())) word.pop_back();
  return word;
}

/// "n=1..64", "n=8", "n=N" or "n=4*q".
std::optional<DimBound> boundOf(llvm::StringRef word) {
  auto [name, value] = word.split('=');
  auto [low, high] = value.split("..");
  if (name.empty() || value.empty()) return std::nullopt;
  DimBound bound{name.str(), 1, 0};
  if (value == "N") return bound;
  bool isRange = value.contains("..");
  if (low.getAsInteger(10, bound.lo) || (isRange ? high : low).getAsInteger(10, bound.hi)) {
    bound = {name.str(), 0, 0};
    bound.value = value.str();
  }
  return bound;
}

/// The flags of the first remedy that a sentence has.
std::vector<DimBound> flagsOf(llvm::StringRef text) {
  std::vector<DimBound> flags;
  for (size_t at; flags.empty() && (at = text.find("--dim ")) != text.npos;) {
    text = text.drop_front(at);
    while (text.consume_front("--dim ")) {
      if (auto bound = boundOf(takeWord(text))) flags.push_back(std::move(*bound));
      text.consume_front(" ");
    }
  }
  return flags;
}

DimBound *findDim(std::vector<DimBound> &dims, llvm::StringRef name) {
  auto it = llvm::find_if(dims, [&](const DimBound &b) { return b.name == name; });
  return it == dims.end() ? nullptr : &*it;
}

} // namespace

void Failures::keep(std::string text, bool asks) {
  if (sentences.size() == mostKept) return;
  std::vector<DimBound> flags = asks ? flagsOf(text) : std::vector<DimBound>();
  sentences.push_back({std::move(text), std::move(flags), ""});
}

void Failures::add(std::string text, bool unsupported) {
  (unsupported ? lacks : wrong) = true;
  keep(std::move(text), /*asks=*/true);
}

void Failures::addOfFlag(std::string text, bool asks) { keep(std::move(text), asks); }

void Failures::addUnused(const std::string &dim, std::string text) {
  if (sentences.size() < mostKept) sentences.push_back({std::move(text), {}, dim});
}

void Failures::addUnknownOp(const std::string &op, llvm::function_ref<std::string()> describe,
                            llvm::function_ref<std::string()> why) {
  lacks = true;
  if (unknownOps.size() == mostKept && !placeOfOp.count(op)) return;
  auto [place, isNew] = placeOfOp.try_emplace(op, unknownOps.size());
  if (isNew) unknownOps.push_back({describe(), why(), 0});
  ++unknownOps[place->second].nodes;
}

bool Failures::answer(std::vector<DimBound> &dims) const {
  bool changed = false;
  llvm::StringSet<> users; // names that have bounds
  for (const DimBound &d : dims) users.insert(d.name);
  llvm::StringSet<> answered; // two sentences may ask for other bounds: the second one again, after the first
  for (const Sentence &s : sentences)
    for (DimBound asked : s.asks) {
      if (!answered.insert(asked.name).second) continue;
      DimBound *given = findDim(dims, asked.name), *any = given ? given : findDim(dims, "*");
      if (asked.value.empty() && asked.lo > asked.hi) { // N: the most that it may be
        if (any && !any->value.empty()) continue;
        asked.lo = asked.hi = any ? any->hi : 64;
      }
      if (given && given->lo == asked.lo && given->hi == asked.hi && given->value == asked.value) continue;
      changed = true;
      std::optional<DimBound> moved; // what was given holds of the name that it is equal to
      bool isName = !asked.value.empty() &&
                    llvm::all_of(asked.value, [](char ch) { return llvm::isAlnum(ch) || ch == '_'; }) &&
                    !llvm::isDigit(asked.value[0]);
      if (given && given->value.empty() && isName && !users.contains(asked.value))
        moved = DimBound{asked.value, given->lo, given->hi};
      given ? void(*given = asked) : dims.push_back(asked);
      if (!moved) continue;
      answered.insert(moved->name);
      DimBound *other = findDim(dims, moved->name);
      other ? void(*other = *moved) : dims.push_back(*moved);
    }
  return changed;
}

bool Failures::dropUnused(std::vector<DimBound> &dims) const {
  if (empty() || !unknownOps.empty() || llvm::any_of(sentences, [](const Sentence &s) { return s.unused.empty(); }))
    return false;
  for (const Sentence &s : sentences) llvm::erase_if(dims, [&](const DimBound &b) { return b.name == s.unused; });
  return true;
}

void Failures::leaveOutUnused(std::vector<DimBound> &dims) const {
  for (const Sentence &s : sentences)
    if (!s.unused.empty()) llvm::erase_if(dims, [&](const DimBound &b) { return b.name == s.unused; });
}

void Failures::addQuestions(const Failures &later) {
  llvm::StringSet<> known;
  for (const Sentence &s : sentences) known.insert(s.text);
  for (const Sentence &s : later.sentences)
    if (!s.asks.empty() && !known.contains(s.text) && sentences.size() < mostKept) sentences.push_back(s);
}

llvm::Error Failures::error(const std::string &last) const {
  std::vector<std::string> lines;
  for (const auto &[first, why, nodes] : unknownOps)
    lines.push_back(first + ": this op is not supported" + why +
                    (nodes == 1 ? "" : " (" + std::to_string(nodes) + " nodes are of it)"));
  for (const Sentence &s : sentences) lines.push_back(s.text);
  if (lines.size() > mostPrinted) {
    size_t more = lines.size() - mostPrinted;
    lines.resize(mostPrinted);
    lines.push_back("and " + std::to_string(more) + (sentences.size() == mostKept ? " or more" : " more"));
  }
  if (!last.empty()) lines.push_back(last);
  std::errc code = lacks && !wrong ? std::errc::not_supported : std::errc::invalid_argument;
  return llvm::createStringError(std::make_error_code(code), llvm::join(lines, "\n"));
}

std::string flagsText(llvm::ArrayRef<DimBound> dims) {
  std::string text;
  for (const DimBound &b : dims) {
    std::string range = b.lo == b.hi ? std::to_string(b.lo) : std::to_string(b.lo) + ".." + std::to_string(b.hi);
    text += (text.empty() ? "--dim " : " --dim ") + shellWord(b.name + "=" + (b.value.empty() ? range : b.value));
  }
  return text;
}

} // namespace astra::onnx
