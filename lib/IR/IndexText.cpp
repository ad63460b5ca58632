//===- IndexText.cpp: symbolic integers and types as text ------------------===//
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"

using namespace astra;

static void print(std::string &out, UOpRef x, int depth);

static void printAtom(std::string &out, UOpRef x, int depth) {
  static const std::pair<Op, const char *> calls[] = {
      {Op::FloorDiv, "floordiv"}, {Op::Mod, "mod"}, {Op::Min, "min"}, {Op::Max, "max"}};
  if (depth > 64) {
    out += "...";
    return;
  }
  for (auto [op, name] : calls)
    if (x->op == op) {
      out += name;
      out += '(';
      print(out, x->src[0], depth + 1);
      out += ", ";
      print(out, x->src[1], depth + 1);
      out += ')';
      return;
    }
  if (x->op == Op::Dim)
    out += x->str;
  else if (x->op == Op::Range)
    out += "r" + std::to_string(x->ints[0]);
  else
    out += std::string(info(x->op).mnemonic) + "#" + std::to_string(x->id);
}

static void print(std::string &out, UOpRef x, int depth) {
  bool first = true;
  for (const IndexTerm &t : terms(x)) {
    int64_t k = t.coefficient;
    if (!first) out += k < 0 ? " - " : " + ";
    if (first && k < 0) out += '-';
    uint64_t magnitude = k < 0 ? -uint64_t(k) : uint64_t(k);
    bool factor = false;
    for (UOpRef a : t.atoms) {
      if (factor) out += '*';
      printAtom(out, a, depth);
      factor = true;
    }
    if (!factor || magnitude != 1) out += (factor ? "*" : "") + std::to_string(magnitude);
    first = false;
  }
}

std::string astra::indexText(UOpRef x) {
  std::string out;
  print(out, x, 0);
  return out;
}

std::string astra::typeText(DType t, Shape shape) {
  std::string out = info(t).text;
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "[") + indexText(shape[i]);
  return shape.empty() ? out : out + "]";
}
