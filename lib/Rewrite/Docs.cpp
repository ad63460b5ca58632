//===- Docs.cpp: rules as text ---------------------------------------------===//
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace astra;
using namespace astra::rules;

static const char *infix(Op op) {
  switch (op) {
  case Op::Add: return " + ";
  case Op::Sub: return " - ";
  case Op::Mul: return " * ";
  case Op::Div:
  case Op::FloorDiv: return " / ";
  case Op::Mod: return " % ";
  case Op::And: return " & ";
  case Op::Or: return " | ";
  case Op::Xor: return " ^ ";
  case Op::Shl: return " << ";
  case Op::Shr: return " >> ";
  case Op::Lt: return " < ";
  case Op::Le: return " <= ";
  case Op::Eq: return " == ";
  case Op::Ne: return " != ";
  default: return nullptr;
  }
}

static std::string realText(int64_t bits) {
  double v = std::bit_cast<double>(bits);
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  return v == 0 && std::signbit(v) ? "-0.0" : std::to_string(v);
}

std::string astra::termText(const Term &t) {
  // Behind the names of rules stand those of derivatives (Autograd/Formula.h): the result and the tangents.
  static constexpr const char *names[][8] = {{"x", "y", "z", "w", "f", "dx", "dy", "dz"}, {"p", "q", "r"}, {"a", "b"}};
  static constexpr const char *calls[] = {"log2", "reciprocal", "is_pow2", "has_reciprocal", "lo", "hi", "width"};
  std::array<std::string, Term::capacity> text;
  for (unsigned i = 0; i < t.size; ++i) { // postorder: arguments come first
    const TermNode &n = t.nodes[i];
    auto inner = [&](unsigned k) {
      const TermNode &a = t.nodes[n.arg[k]];
      bool parens = a.kind == TermKind::Apply && (infix(a.op) || a.op == Op::Neg || a.op == Op::Not);
      return parens ? "(" + text[n.arg[k]] + ")" : text[n.arg[k]];
    };
    switch (n.kind) {
    case TermKind::Value:
    case TermKind::Condition:
    case TermKind::Literal: text[i] = names[unsigned(n.kind)][n.number]; continue;
    case TermKind::Int: text[i] = std::to_string(n.value); continue;
    case TermKind::Real: text[i] = realText(n.value); continue;
    case TermKind::Ones: text[i] = "ones"; continue;
    default: break;
    }
    if (n.kind == TermKind::Apply && n.arity == 2 && infix(n.op)) {
      text[i] = inner(0) + infix(n.op) + inner(1);
    } else if (n.kind == TermKind::Apply && (n.op == Op::Neg || n.op == Op::Not)) {
      text[i] = (n.op == Op::Neg ? "-" : "~") + inner(0);
    } else {
      text[i] = n.kind == TermKind::Call ? calls[n.number] : info(n.op).mnemonic;
      for (unsigned k = 0; k < n.arity; ++k) text[i] += (k ? ", " : "(") + text[n.arg[k]];
      if (n.arity) text[i] += ")";
    }
  }
  return text[t.size - 1];
}

static std::string typesText(const Soundness &s) {
  static constexpr std::pair<unsigned, const char *> names[] = {{FloatTypes, "float"},       {SignedTypes, "signed"},
                                                                {UnsignedTypes, "unsigned"}, {BoolType, "bool"},
                                                                {IndexType, "index"},        {OtherTypes, "other"}};
  std::string out;
  for (auto [bit, name] : names)
    if (s.types & bit) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

static std::string cell(std::string s) { // a table's cell in Markdown
  std::string out;
  for (char ch : s) out += ch == '|' ? "\\|" : std::string(1, ch);
  return out;
}

std::string astra::rulesMarkdown() {
  static constexpr const char *domains[] = {"bits", "ring", "index"};
  static constexpr const char *proofs[] = {"terms", "lemmas", "points"};
  size_t total = 0;
  for (const RuleGroup &g : ruleGroups()) total += g.rules.size();
  std::string out =
      "# Rewrite rules\n\n<!-- generated from lib/Rewrite/rules by unit-rewrite; do not edit -->\n\n" +
      std::to_string(total) +
      " rules. Every one is proved or run exhaustively, as its last column says, whenever the tests run "
      "(`unit-proofs`):\n\n"
      "- `terms`: both sides and the guard are given to z3 as the row states them, for each type of the row: "
      "`ring` rules as polynomials over the integers, else as bit vectors of 8, 16, 32 and 64 bits; `index` rules "
      "over unbounded integers, divisions in Euclid's form, with proved facts about products where z3 needs them; "
      "float rules over all of f16, by z3 where it answers, else by the evaluator at every bit pattern of f16 and "
      "bf16 (of one operand, against edge and random values of the others, where there are several). Then every row "
      "is matched, built and run: by the evaluator at edge and random values of every type; an `index` row at every "
      "point of a box of values and literals. Rows changed by one step are refused wherever a run refutes them.\n"
      "- `lemmas`: the function itself is run on random symbolic integers at every point of small boxes; why it "
      "holds beyond them is an argument of which z3 proves each step, over unbounded integers.\n"
      "- `points`: the function is run at every type, shape and value up to a bound and compared with the "
      "evaluator.\n\n"
      "Domains: `bits` exact, up to the payload of a NaN; `ring` integers modulo 2^n; `index` mathematical integers, "
      "divisors positive.\n"
      "x y z are values, p q r bools, a b literals, `ones` has every bit set; `/` on integers rounds down.\n";
  for (const RuleGroup &g : ruleGroups()) {
    out += "\n## " + std::string(g.name) + " (" + std::to_string(g.rules.size()) +
           ")\n\n| rule | left | right | where | domain | types | proof |\n|---|---|---|---|---|---|---|\n";
    for (const Rule &r : g.rules) {
      out += "| " + std::string(r.name) + " | ";
      if (r.procedure)
        out += cell(r.meaning) + " | | | ";
      else
        out += "`" + cell(termText(r.left)) + "` | `" + cell(termText(r.right)) + "` | " +
               (r.guard.size ? "`" + cell(termText(r.guard)) + "`" : std::string()) + " | ";
      out += std::string(domains[unsigned(r.soundness.domain)]) + " | " + typesText(r.soundness) + " | " +
             proofs[unsigned(r.proof)] + " |\n";
    }
  }
  return out;
}
