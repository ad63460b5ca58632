//===- IndexText.cpp: symbolic integers, types and names as text -----------===//
// Takes:    index expressions in normal form.
// Gives:    their text, as TextParse.cpp reads it.
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using NameOf = llvm::function_ref<std::string(UOpRef)>;

static const char *callee(Op op) {
  switch (op) {
  case Op::FloorDiv: return "floordiv";
  case Op::Mod: return "mod";
  case Op::Min: return "min";
  case Op::Max: return "max";
  default: return nullptr;
  }
}

static void printAtom(std::string &out, UOpRef x, NameOf nameOf) {
  if (std::string name = nameOf(x); !name.empty()) {
    out += name;
  } else if (const char *f = callee(x->op)) {
    out += f;
    out += '(';
    printIndex(out, x->src[0], nameOf);
    out += ", ";
    printIndex(out, x->src[1], nameOf);
    out += ')';
  } else if (x->op == Op::Dim)
    out += quoted(x->str);
  else
    out += "?"; // an extent or range that no statement names
}

void astra::printIndex(std::string &out, UOpRef x, NameOf nameOf) {
  llvm::SmallVector<UOpRef, 8> sum, product;
  auto named = [&](UOpRef n) { return n->op != Op::Dim && !nameOf(n).empty(); };
  for (; x->op == Op::Add && !named(x); x = x->src[0]) sum.push_back(x->src[1]);
  sum.push_back(x);
  bool first = true;
  for (UOpRef t : llvm::reverse(sum)) {
    int64_t k = 1;
    product.clear();
    if (t->op == Op::Mul && !named(t) && t->src[1]->isConst()) k = t->src[1]->ints[0], t = t->src[0];
    for (; t->op == Op::Mul && !named(t); t = t->src[0]) product.push_back(t->src[1]);
    if (auto value = t->constIndex())
      k = *value; // a constant is its own term, never a factor
    else
      product.push_back(t);
    out += first ? (k < 0 ? "-" : "") : (k < 0 ? " - " : " + ");
    uint64_t magnitude = k < 0 ? -uint64_t(k) : uint64_t(k);
    bool factor = false;
    for (UOpRef a : llvm::reverse(product)) {
      if (factor) out += '*';
      printAtom(out, a, nameOf);
      factor = true;
    }
    if (!factor || magnitude != 1) out += (factor ? "*" : "") + std::to_string(magnitude);
    first = false;
  }
}

std::string astra::indexText(UOpRef x) {
  std::string out;
  unsigned calls = 0;
  printIndex(out, x, [&](UOpRef n) -> std::string {
    if (n->op == Op::Dim) return quoted(n->str);
    if (n->op == Op::Range) return "r" + std::to_string(n->ints[0]);
    if (n->op == Op::Extent) return "extent(" + std::to_string(n->lo) + ".." + std::to_string(n->hi) + ")";
    return callee(n->op) && ++calls > 64 ? "..." : "";
  });
  return out;
}

std::string astra::typeText(DType t, Shape shape) {
  std::string out = info(t).text;
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "[") + indexText(shape[i]);
  return shape.empty() ? out : out + "]";
}

bool astra::isIdentifier(llvm::StringRef s) {
  if (s.empty() || llvm::isDigit(s[0])) return false;
  for (size_t i = 0; i < s.size(); ++i)
    if (!llvm::isAlnum(s[i]) && s[i] != '_' && !(s[i] == '.' && i && i + 1 < s.size() && s[i - 1] != '.')) return false;
  return true;
}

std::string astra::quoted(llvm::StringRef s) {
  if (isIdentifier(s) && s != "floordiv" && s != "mod" && s != "min" && s != "max") return s.str();
  std::string out = "\"";
  for (char ch : s)
    if (ch == '"' || ch == '\\')
      out += {'\\', ch};
    else if (uint8_t(ch) < 32 || ch == 127)
      out += {'\\', llvm::hexdigit(uint8_t(ch) >> 4, true), llvm::hexdigit(ch & 15, true)};
    else
      out += ch;
  return out + '"';
}
