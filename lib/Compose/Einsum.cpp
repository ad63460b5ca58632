//===- Einsum.cpp: Einstein sums -------------------------------------------===//
// Takes:    an equation over named axes, which may be wrong in every way, and operands.
// Gives:    one `contract` for each pair of operands, from the left.
#include "astra/Compose/Einsum.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <array>
#include <map>

namespace astra::compose {

namespace {

/// An axis: a letter, or a place of the ellipsis counted from its end.
using Label = int;
constexpr Label ellipsis = 256; // ellipsis + i: place i from the end
using Labels = llvm::SmallVector<Label, 6>;

struct Operand {
  Labels labels;
  UOpRef value;
};

/// "ab...c": the letters before the ellipsis, whether there is one, the letters after it.
struct Term {
  std::string before, after;
  bool open = false;
};

std::optional<Term> parseTerm(Composer &b, llvm::StringRef text) {
  auto [before, after] = text.split("...");
  Term term{before.str(), after.str(), before.size() != text.size()};
  auto letters = [](llvm::StringRef s) { return llvm::all_of(s, [](char c) { return llvm::isAlpha(c); }); };
  if (letters(before) && letters(after)) return term;
  b.fail("the part '" + text + "' of the equation is not letters with one ellipsis at most");
  return std::nullopt;
}

Labels labelsOf(const Term &term, unsigned places) {
  Labels labels(term.before.begin(), term.before.end());
  if (term.open)
    for (unsigned i = places; i-- > 0;) labels.push_back(ellipsis + i);
  labels.append(term.after.begin(), term.after.end());
  return labels;
}

/// The elements whose indices along two axes are equal, for every label that occurs twice.
Operand diagonals(Composer &b, Operand x) {
  for (size_t i = 0; i < x.labels.size() && x.value; ++i)
    for (size_t k = x.labels.size(); k-- > i + 1 && x.value;) {
      if (x.labels[i] != x.labels[k]) continue;
      b.requireEqual(x.value->shape[i], x.value->shape[k], "a diagonal");
      Dims one(x.value->shape.begin(), x.value->shape.end());
      one[k] = b.idx(1);
      x.value = b.squeeze(b.make(Op::Pick, {x.value, b.iota(DType::I64, one, i)}, {int64_t(k)}), {int64_t(k)});
      x.labels.erase(x.labels.begin() + k);
    }
  return x;
}

/// One operand for the kept labels, in their order.
UOpRef summed(Composer &b, const Operand &x, const Labels &kept) {
  Ints folded, perm;
  Labels rest;
  for (auto [i, label] : llvm::enumerate(x.labels))
    if (llvm::is_contained(kept, label))
      rest.push_back(label);
    else
      folded.push_back(i);
  for (Label label : kept) perm.push_back(llvm::find(rest, label) - rest.begin());
  return b.permute(b.squeeze(b.reduce(ReduceKind::Sum, x.value, folded), folded), perm);
}

/// The contraction of two operands for the kept labels; an axis of extent 1 is repeated where the other's is not 1.
UOpRef contracted(Composer &b, const Operand &x, const Operand &y, const Labels &kept) {
  Labels all = kept;
  for (const Operand *o : {&x, &y})
    for (Label label : o->labels)
      if (!llvm::is_contained(all, label)) all.push_back(label);
  Dims extents(all.size(), b.idx(1));
  for (const Operand *o : {&x, &y})
    for (auto [label, extent] : llvm::zip(o->labels, o->value->shape)) {
      UOpRef &known = extents[llvm::find(all, label) - all.begin()];
      Dims common = b.broadcastShape({{known}, {extent}});
      known = common[0];
    }
  ContractSpec spec;
  spec.kept = kept.size();
  spec.reduced = all.size() - kept.size();
  auto forms = [&](const Operand &o, llvm::SmallVectorImpl<AffineForm> &to) {
    for (auto [label, extent] : llvm::zip(o.labels, o.value->shape)) {
      int64_t at = llvm::find(all, label) - all.begin();
      to.push_back(extent == extents[at] ? AffineForm{{{at, 1}}, 0, 1} : AffineForm{{}, 0, 1});
    }
  };
  forms(x, spec.a);
  forms(y, spec.b);
  return b.contract(spec, x.value, y.value, extents);
}

/// The result's term where the equation has none: the ellipsis, then letters that occur once in alphabetical order.
Term implicitResult(llvm::ArrayRef<Term> operands) {
  Term result;
  std::array<unsigned, 128> count = {};
  for (const Term &t : operands) {
    result.open |= t.open;
    for (char c : t.before + t.after) ++count[uint8_t(c)];
  }
  for (unsigned c = 0; c < count.size(); ++c)
    if (count[c] == 1) result.after += char(c);
  return result;
}

} // namespace

UOpRef einsum(Composer &b, llvm::StringRef given, llvm::ArrayRef<UOpRef> values) {
  std::string equation = given.str();
  llvm::erase(equation, ' ');
  size_t arrow = equation.find("->");
  llvm::SmallVector<llvm::StringRef, 4> parts;
  llvm::StringRef(equation).take_front(arrow).split(parts, ',');
  if (parts.size() != values.size())
    b.fail("the equation has " + llvm::Twine(parts.size()) + " operands, the node " + llvm::Twine(values.size()));
  std::vector<Term> terms;
  for (llvm::StringRef part : parts)
    if (std::optional<Term> term = b.failed() ? std::nullopt : parseTerm(b, part)) terms.push_back(*term);
  if (b.failed()) return nullptr;
  std::optional<Term> last = arrow == std::string::npos ? implicitResult(terms)
                                                        : parseTerm(b, llvm::StringRef(equation).drop_front(arrow + 2));
  if (!last) return nullptr;

  unsigned places = 0; // of the longest ellipsis
  std::vector<Operand> operands;
  for (unsigned i = 0; i < terms.size(); ++i) {
    UOpRef x = values[i];
    unsigned letters = terms[i].before.size() + terms[i].after.size();
    if (!b.requireRank(x, letters, terms[i].open ? 64 : letters)) return nullptr;
    places = std::max<unsigned>(places, x->rank() - letters);
    operands.push_back(diagonals(b, {labelsOf(terms[i], x->rank() - letters), x}));
  }
  std::map<Label, size_t> lastUse; // the last operand that has it
  for (size_t i = 0; i < operands.size(); ++i)
    for (Label label : operands[i].labels) lastUse[label] = i;
  Labels result = labelsOf(*last, places);
  if (places && !last->open) b.fail("the operands of the equation have an ellipsis, its result has none");
  for (size_t i = 0; i < result.size(); ++i) {
    bool twice = llvm::is_contained(llvm::ArrayRef<Label>(result).take_front(i), result[i]);
    if (twice) b.fail("the result of the equation names an axis twice");
    if (!lastUse.count(result[i])) b.fail("axis '" + llvm::Twine(char(result[i])) + "' of the result is in no operand");
  }
  if (b.failed()) return nullptr;

  Operand all = operands[0];
  for (size_t i = 1; i < operands.size() && all.value; ++i) {
    Labels kept = result;
    if (i + 1 < operands.size()) { // what the result or a later operand has
      kept.clear();
      auto needed = [&](Label label) { return lastUse[label] > i || llvm::is_contained(result, label); };
      for (const Operand *o : {&all, &operands[i]})
        for (Label label : o->labels)
          if (needed(label) && !llvm::is_contained(kept, label)) kept.push_back(label);
    }
    all = {kept, contracted(b, all, operands[i], kept)};
  }
  return all.value && operands.size() == 1 ? summed(b, all, result) : all.value;
}

} // namespace astra::compose
