//===- EinsumText.cpp: what the text of an einsum says of its operands -----===//
// Takes:    a text, which may be wrong in every way, and the shapes of operands.
// Gives:    numbered labels with their extents, the contraction, its path as text.
#include "EinsumText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <limits>
#include <map>

namespace astra::compose {

namespace {

/// A label as it is written, and what stands for a place of the ellipsis, counted from its end.
using Character = uint32_t;
constexpr Character ellipsis = 0x110000;

std::string utf8(Character c) {
  char bytes[4], *end = bytes;
  return llvm::ConvertCodePointToUTF8(c, end) ? std::string(bytes, end) : std::string();
}

/// The characters of a UTF-8 text; nothing where it is none.
std::optional<std::vector<Character>> charactersOf(llvm::StringRef text) {
  std::vector<llvm::UTF32> out(text.size() + 1);
  auto *from = reinterpret_cast<const llvm::UTF8 *>(text.data());
  llvm::UTF32 *to = out.data();
  if (llvm::ConvertUTF8toUTF32(&from, from + text.size(), &to, to + out.size(), llvm::strictConversion) !=
      llvm::conversionOK)
    return std::nullopt;
  out.resize(to - out.data());
  return std::vector<Character>(out.begin(), out.end());
}

/// "ab...c": the labels before the ellipsis, whether there is one, the labels after it.
struct Term {
  std::vector<Character> before, after;
  bool open = false;
  size_t labels() const { return before.size() + after.size(); }
};

std::optional<Term> parseTerm(Composer &b, llvm::StringRef text) {
  auto [before, after] = text.split("...");
  std::optional<std::vector<Character>> first = charactersOf(before), last = charactersOf(after);
  auto areLabels = [](auto &s) {
    return s && llvm::all_of(*s, [](Character c) { return c > 127 || llvm::isAlpha(c); });
  };
  if (areLabels(first) && areLabels(last)) return Term{*first, *last, before.size() != text.size()};
  b.fail("the part '" + text + "' of the equation is not letters with one ellipsis at most");
  return std::nullopt;
}

std::vector<Character> axesOf(const Term &term, size_t places) {
  std::vector<Character> axes(term.before);
  for (size_t i = places; term.open && i-- > 0;) axes.push_back(ellipsis + i);
  axes.insert(axes.end(), term.after.begin(), term.after.end());
  return axes;
}

/// The result's term where the equation has none: the ellipsis, then labels that occur once, in order.
Term implicitResult(llvm::ArrayRef<Term> operands) {
  Term result;
  std::map<Character, unsigned> count;
  for (const Term &t : operands) {
    result.open |= t.open;
    for (auto *part : {&t.before, &t.after})
      for (Character c : *part) ++count[c];
  }
  for (auto [c, n] : count)
    if (n == 1) result.after.push_back(c);
  return result;
}

/// "[(0, 1), (0, 2)]"; a comma may stand behind the last of a list, as in Python.
std::optional<std::vector<PathStep>> parsePath(Composer &b, llvm::StringRef text) {
  llvm::StringRef s = text;
  auto eat = [&](llvm::StringRef word) {
    s = s.ltrim();
    return s.consume_front(word);
  };
  auto list = [&](llvm::StringRef open, llvm::StringRef close, auto element) {
    if (!eat(open)) return false;
    for (bool more = true; !eat(close); more = eat(","))
      if (!more || !element()) return false;
    return true;
  };
  std::vector<PathStep> steps;
  bool isPath = list("[", "]", [&] {
    PathStep &step = steps.emplace_back();
    return list("(", ")", [&] {
      unsigned at = 0;
      s = s.ltrim();
      if (s.consumeInteger(10, at)) return false;
      step.push_back(at);
      return true;
    });
  });
  if (!isPath || !s.trim().empty()) {
    b.fail("the path '" + text + "' is not written as [(0, 1), (0, 2)]");
    return std::nullopt;
  }
  for (PathStep &step : steps) llvm::sort(step);
  return steps;
}

/// What stands behind the equation.
struct Words {
  std::string equation;
  std::optional<llvm::StringRef> path, slices, memory;
};
std::optional<Words> splitWords(Composer &b, llvm::StringRef text) {
  Words words;
  std::vector<std::pair<size_t, int>> places;
  static constexpr const char *keys[] = {"path=", "slices=", "memory="};
  for (int k = 0; k < 3; ++k) {
    size_t at = text.find((llvm::Twine(" ") + keys[k]).str());
    if (at != llvm::StringRef::npos) places.push_back({at, k});
  }
  llvm::sort(places);
  for (auto [i, place] : llvm::enumerate(places)) {
    size_t begin = place.first + 1 + llvm::StringRef(keys[place.second]).size();
    llvm::StringRef value = text.slice(begin, i + 1 < places.size() ? places[i + 1].first : text.size()).trim();
    (place.second == 0 ? words.path : place.second == 1 ? words.slices : words.memory) = value;
  }
  words.equation = text.take_front(places.empty() ? text.size() : places[0].first).str();
  llvm::erase(words.equation, ' ');
  if (words.memory && (words.path || words.slices)) {
    b.fail("an einsum takes a path and slices, or a bound on memory for which they are chosen");
    return std::nullopt;
  }
  if (words.slices && !words.path) {
    b.fail("slices of an einsum need the path that they are for");
    return std::nullopt;
  }
  return words;
}

/// The operands without what is done to each alone.
Contraction contractionOf(const EinsumText &e, llvm::ArrayRef<Dims> shapes) {
  Contraction c;
  for (UOpRef extent : e.extents) {
    int64_t most = int64_t(1) << 31;
    c.extents.push_back(std::clamp<int64_t>(extent->constIndex().value_or(extent->hi), 1, most));
  }
  std::vector<unsigned> holders(e.extents.size());
  for (size_t i = 0; i < e.operands.size(); ++i) {
    llvm::SmallVector<unsigned, 6> labels;
    for (auto [axis, l] : llvm::enumerate(e.operands[i]))
      if (shapes[i][axis] == e.extents[l] && !llvm::is_contained(labels, l)) labels.push_back(l), ++holders[l];
    c.operands.push_back(std::move(labels));
  }
  for (auto &o : c.operands)
    llvm::erase_if(o, [&](unsigned l) { return holders[l] == 1 && !llvm::is_contained(e.result, l); });
  c.result.assign(e.result.begin(), e.result.end());
  return c;
}

} // namespace

std::optional<EinsumText> readEinsum(Composer &b, llvm::StringRef text, llvm::ArrayRef<Dims> shapes) {
  std::optional<Words> words = splitWords(b, text);
  if (!words) return std::nullopt;
  llvm::StringRef equation = words->equation;
  size_t arrow = equation.find("->");
  llvm::SmallVector<llvm::StringRef, 4> parts;
  equation.take_front(arrow).split(parts, ',');
  if (parts.size() != shapes.size())
    b.fail("the equation has " + llvm::Twine(parts.size()) + " operands, and " + llvm::Twine(shapes.size()) +
           " are given");
  std::vector<Term> terms;
  for (llvm::StringRef part : parts)
    if (std::optional<Term> term = b.failed() ? std::nullopt : parseTerm(b, part)) terms.push_back(*term);
  if (b.failed()) return std::nullopt;
  std::optional<Term> last =
      arrow == llvm::StringRef::npos ? implicitResult(terms) : parseTerm(b, equation.drop_front(arrow + 2));
  if (!last) return std::nullopt;

  EinsumText e;
  std::map<Character, unsigned> numbers;
  size_t places = 0; // of the longest ellipsis
  for (size_t i = 0; i < terms.size(); ++i) {
    size_t labels = terms[i].labels(), rank = shapes[i].size();
    if (terms[i].open ? rank < labels : rank != labels) {
      b.fail("operand " + llvm::Twine(i) + " has " + llvm::Twine(rank) + " axes, the part '" + parts[i] +
             "' of the equation names " + llvm::Twine(labels));
      return std::nullopt;
    }
    places = std::max(places, rank - labels);
    e.operands.emplace_back();
    for (auto [c, extent] : llvm::zip(axesOf(terms[i], rank - labels), shapes[i])) {
      auto [at, isNew] = numbers.try_emplace(c, numbers.size());
      unsigned l = at->second;
      if (isNew) {
        e.names.push_back(c >= ellipsis ? "" : utf8(c));
        e.extents.push_back(b.idx(1));
      }
      if (extent->constIndex() != 1) {
        std::string what = c >= ellipsis ? "the ellipsis" : "axis '" + utf8(c) + "'";
        if (e.extents[l]->constIndex() == 1)
          e.extents[l] = extent;
        else if (!b.requireEqual(e.extents[l], extent, what))
          return std::nullopt;
      }
      e.operands.back().push_back(l);
    }
    for (size_t axis = 0; axis < rank; ++axis) // a diagonal is of equal axes
      for (size_t other = 0; other < axis; ++other)
        if (e.operands[i][axis] == e.operands[i][other] &&
            !b.requireEqual(shapes[i][other], shapes[i][axis], "a diagonal"))
          return std::nullopt;
  }
  if (places && !last->open) b.fail("the operands of the equation have an ellipsis, its result has none");
  for (Character c : axesOf(*last, places)) {
    auto at = numbers.find(c);
    if (at == numbers.end()) {
      b.fail("axis '" + utf8(c) + "' of the result is in no operand");
      return std::nullopt;
    }
    if (llvm::is_contained(e.result, at->second)) b.fail("the result of the equation names an axis twice");
    e.result.push_back(at->second);
  }
  if (b.failed()) return std::nullopt;
  e.equation = equation.str();
  if (arrow == llvm::StringRef::npos) {
    e.equation += last->open ? "->..." : "->";
    for (Character c : last->after) e.equation += utf8(c);
  }
  e.contraction = contractionOf(e, shapes);

  if (words->path) {
    e.path = parsePath(b, *words->path);
    if (!e.path) return std::nullopt;
    std::string wrong = checkPath(*e.path, terms.size());
    if (!wrong.empty()) {
      b.fail(wrong);
      return std::nullopt;
    }
  }
  for (Character c :
       words->slices ? charactersOf(*words->slices).value_or(std::vector<Character>{' '}) : std::vector<Character>()) {
    auto at = numbers.find(c);
    if (at == numbers.end() || !e.extents[at->second]->isConst() || llvm::is_contained(e.slices, at->second)) {
      b.fail("the slices '" + *words->slices + "' are not labels of the equation, each once and of a known extent");
      return std::nullopt;
    }
    e.slices.push_back(at->second);
  }
  if (words->memory) {
    uint64_t n = 0;
    if (words->memory->getAsInteger(10, n) || !n) {
      b.fail("the bound on memory '" + *words->memory + "' is not a number of elements");
      return std::nullopt;
    }
    e.memory = n;
  }
  return e;
}

std::optional<ContractionPath> pathOf(Composer &b, const EinsumText &e) {
  if (e.path) return ContractionPath{*e.path, {e.slices.begin(), e.slices.end()}};
  // Labels of an ellipsis or of symbolic extents cannot be named as slices.
  std::optional<ContractionPath> path = choosePath(e.contraction, e.memory);
  if (!path)
    b.fail("no order of contraction keeps the intermediates of the einsum within " + costText(*e.memory) + " elements");
  else if (llvm::any_of(path->slices, [&](unsigned l) { return e.names[l].empty() || !e.extents[l]->isConst(); }))
    b.fail("to keep the intermediates of the einsum within " + costText(*e.memory) +
           " elements an axis would be sliced that has no name or no known extent");
  return b.failed() ? std::nullopt : path;
}

std::optional<EinsumPlan> einsumPlan(Composer &b, llvm::StringRef text, llvm::ArrayRef<Dims> shapes) {
  std::optional<EinsumText> e = readEinsum(b, text, shapes);
  std::optional<ContractionPath> path = e ? pathOf(b, *e) : std::nullopt;
  if (!path) return std::nullopt;
  EinsumPlan plan;
  plan.path = *path;
  plan.cost = costOf(e->contraction, *path);
  plan.text = e->equation + " path=[";
  for (auto [i, step] : llvm::enumerate(path->steps)) {
    plan.text += i ? ", (" : "(";
    for (auto [k, at] : llvm::enumerate(step)) plan.text += (k ? ", " : "") + std::to_string(at);
    plan.text += step.size() == 1 ? ",)" : ")";
  }
  plan.text += "]";
  for (unsigned l : path->slices) plan.slices.push_back(e->names[l]);
  if (!plan.slices.empty()) plan.text += " slices=" + llvm::join(plan.slices, "");
  plan.naive = 1;
  for (unsigned l = 0; l < e->extents.size(); ++l)
    plan.naive = costProduct(plan.naive, Cost(e->contraction.extents[l]));
  // The steps as equations.
  auto labelsText = [&](const auto &labels) {
    std::string s;
    for (unsigned l : labels) s += e->names[l].empty() ? "." : e->names[l];
    return s;
  };
  std::vector<std::string> left;
  for (const auto &o : e->contraction.operands) left.push_back(labelsText(o));
  for (auto [step, cost] : llvm::zip(path->steps, plan.cost.steps)) {
    std::vector<std::string> terms;
    for (unsigned at : step) terms.push_back(left[at]);
    std::string given = labelsText(cost.labels);
    plan.steps.push_back(llvm::join(terms, ",") + "->" + given);
    for (unsigned at : llvm::reverse(step)) left.erase(left.begin() + at);
    left.push_back(given);
  }
  return plan;
}

} // namespace astra::compose
