//===- Recipe.cpp: "adamw(lr=1e-3, weight_decay=0.01)" ---------------------===//
#include "astra/NN/Recipe.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>
#include <cmath>

using namespace astra::nn;
using llvm::StringRef;

template <class Rows> static std::string names(const Rows &rows) {
  std::string all;
  for (const auto &row : rows) all += (all.empty() ? "" : ", ") + std::string(row.name);
  return all.empty() ? "none" : all;
}

bool Bounds::hold(double v) const {
  return (aboveLeast ? v > least : v >= least) && (belowMost ? v < most : v <= most) && (!whole || v == std::floor(v));
}

std::string Bounds::text() const {
  if (isYesOrNo()) return "0 or 1";
  constexpr double beyondDouble = 0x1p53; // whole numbers end there: no bound that a reader should hear of
  bool low = std::isfinite(least) && least > -beyondDouble, high = std::isfinite(most) && most < beyondDouble;
  std::string out;
  llvm::raw_string_ostream s(out);
  s << (whole ? "a whole number" : "a number");
  if (low) s << (aboveLeast ? ", above " : ", at least ") << llvm::format("%.10g", least);
  if (high) s << (low ? " and " : ", ") << (belowMost ? "below " : "at most ") << llvm::format("%.10g", most);
  return out;
}

llvm::Expected<Recipe> Recipe::parse(StringRef text, llvm::ArrayRef<Signature> table, StringRef what) {
  auto fail = [&](const llvm::Twine &why) { return llvm::createStringError(what + " '" + text + "': " + why); };
  auto [name, rest] = text.trim().split('(');
  name = name.trim();
  const Signature *row = llvm::find_if(table, [&, n = name](const Signature &s) { return n == s.name; });
  if (row == table.end()) return fail("there is no " + what + " '" + name + "'; there are: " + names(table));
  Recipe r;
  r.row = row - table.begin();
  r.signature = row;
  for (const Parameter &p : row->parameters) r.values.push_back(p.value);
  r.isGiven.resize(r.values.size());
  if (text.contains('(') && !rest.consume_back(")")) return fail("expected ')' at the end");
  if (rest.contains('(') || rest.contains(')')) return fail("parentheses do not match");
  llvm::SmallVector<StringRef, 8> items;
  if (!rest.trim().empty()) rest.split(items, ',');
  for (StringRef item : items) {
    auto [key, value] = item.split('=');
    key = key.trim();
    value = value.trim();
    auto p = llvm::find_if(row->parameters, [&, k = key](const Parameter &q) { return k == q.name; });
    if (p == row->parameters.end())
      return fail("'" + key + "' is no parameter of " + name + "; there are: " + names(row->parameters));
    size_t i = p - row->parameters.begin();
    if (r.isGiven[i]) return fail("'" + key + "' is given twice");
    r.isGiven[i] = true;
    if (p->bounds.isYesOrNo() && (value == "true" || value == "false"))
      r.values[i] = value == "true";
    else if (value.getAsDouble(r.values[i]) || !std::isfinite(r.values[i]) || !p->bounds.hold(r.values[i]))
      return fail("'" + key + "' is '" + value + "', expected " + p->bounds.text());
  }
  for (const Relation &relation : row->relations)
    if (!relation.holds(r)) return fail(llvm::Twine("expected that ") + relation.text);
  return r;
}

static size_t place(const Signature *s, StringRef parameter) {
  auto p = llvm::find_if(s->parameters, [&](const Parameter &q) { return parameter == q.name; });
  assert(p != s->parameters.end() && "the row has no such parameter");
  return p - s->parameters.begin();
}
double Recipe::operator[](StringRef parameter) const { return values[place(signature, parameter)]; }
bool Recipe::given(StringRef parameter) const { return isGiven[place(signature, parameter)]; }
