//===- RunTerms.cpp: a row of terms run by the evaluator -------------------===//
// Takes:    a row, built as a graph over arguments.
// Gives:    whether the matcher fires and both graphs have the same bytes, NaNs canonical.
// Keeps:    the values: every pair of edge values, then random bits of a fixed seed; in 16 bits every pattern of x.
#include "Matcher.h"
#include "Prove.h"
#include "Samples.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace astra;
using namespace astra::proofs;
using namespace astra::rules;

namespace {
struct Row {
  Context c;
  Builder b{c};
  const Rule &rule;
  DType type;
  Shape shape;
  std::vector<DType> args;
  std::map<std::pair<int, int>, UOpRef> names;
  std::map<unsigned, UOpRef> literals;

  Row(const Rule &r, DType t, int64_t n) : rule(r), type(t) { shape = c.internShape({b.idx(n)}); }

  UOpRef build(unsigned at, const TermNode *parent) {
    const Term &t = rule.left;
    const TermNode &n = t.nodes[at];
    auto splat = [&](UOpRef l) { return b.splat(l, shape); };
    bool truth = parent && parent->op == Op::Select && parent->arg[0] == at;
    bool exponent = parent && parent->op == Op::Scale2 && parent->arg[1] == at;
    DType own = truth ? DType::Bool : exponent ? DType::I32 : type;
    switch (n.kind) {
    case TermKind::Value:
    case TermKind::Condition: {
      UOpRef &u = names[{int(n.kind), n.number}];
      if (!u) {
        args.push_back(n.kind == TermKind::Condition ? DType::Bool : type);
        u = b.arg(int64_t(args.size()) - 1, args.back(), shape);
      }
      return u;
    }
    case TermKind::Literal: return splat(literals.at(n.number));
    case TermKind::Int: return splat(b.litInt(own, n.value));
    case TermKind::Real: return splat(b.lit(own, std::bit_cast<double>(n.value)));
    case TermKind::Ones: return splat(b.litInt(own, -1));
    case TermKind::Apply: {
      llvm::SmallVector<UOpRef, 3> src;
      for (unsigned k = 0; k < n.arity; ++k) src.push_back(build(n.arg[k], &n));
      return c.make(n.op, src);
    }
    default: return nullptr;
    }
  }
};

} // namespace

/// All rules at once on the left side of one: they must come to an end, at an equal graph.
std::string proofs::runTogether(const Rule &r) {
  for (DType t : {DType::F32, DType::I32, DType::U8, DType::Bool}) {
    if (!(typesOf(t) & r.soundness.types)) continue;
    for (uint64_t a : edges(t)) {
      Row row(r, t, 1024);
      row.literals = {{0, row.c.literal(t, a)}, {1, row.c.literal(t, edges(t)[1])}};
      UOpRef left = row.build(r.left.size - 1, nullptr);
      for (unsigned sets : {graphRules, unsigned(ExpandRules)}) {
        RewriteOptions options;
        auto right = rewrite(row.c, left, sets, options);
        if (!right) return llvm::toString(right.takeError());
        EvalInputs in;
        for (unsigned k = 0; k < row.args.size(); ++k) in.inputs.push_back(samples(row.args[k], k, 1024, false, 0));
        auto out = evalNodes({left, right->front()}, in);
        if (!out) return llvm::toString(out.takeError());
        if (firstDifference((*out)[0], (*out)[1]) >= 0) return std::string(info(t).text) + ": the results differ";
      }
      if (!r.left.binds({TermKind::Literal, Op::Const, 0, 0, {}, 0})) break;
    }
  }
  return "";
}

std::string proofs::runTerms(const Rule &r, bool everyHalf) {
  for (unsigned d = 0; d < numDTypes; ++d) {
    DType t = DType(d);
    if (!isArithmetic(t) || !(typesOf(t) & r.soundness.types)) continue;
    bool usesA = false, usesB = false;
    unsigned values = 0;
    for (unsigned i = 0; i < r.left.size; ++i) {
      const TermNode &n = r.left.nodes[i];
      usesA |= n.kind == TermKind::Literal && n.number == 0;
      usesB |= n.kind == TermKind::Literal && n.number == 1;
      if (n.kind == TermKind::Value) values = std::max<unsigned>(values, n.number + 1);
    }
    bool halves = bitWidth(t) == 16 && isFloat(t) && (everyHalf || values == 1);
    unsigned fired = 0;
    auto literals = edges(t);
    for (uint64_t a : usesA ? literals : std::vector<uint64_t>{0})
      for (uint64_t bb : usesB ? literals : std::vector<uint64_t>{0}) {
        unsigned rounds = halves && values > 1 ? 40 : 1;
        int64_t n = halves ? 65536 : usesA || usesB ? 512 : 8192;
        if (halves && (usesA && usesB)) n = 4096;
        Row row(r, t, n);
        row.literals = {{0, row.c.literal(t, a)}, {1, row.c.literal(t, bb)}};
        UOpRef left = row.build(r.left.size - 1, nullptr), right = applyRule(r, {row.c}, left);
        if (!right) {
          if (r.guard.size == 0) return std::string(info(t).text) + ": the row does not match its own left side";
          continue;
        }
        ++fired;
        if (right->dtype != left->dtype || right->shape != left->shape)
          return std::string(info(t).text) + ": type or shape changed";
        for (unsigned round = 0; round < rounds; ++round) {
          EvalInputs in;
          for (unsigned k = 0; k < row.args.size(); ++k) in.inputs.push_back(samples(row.args[k], k, n, halves, round));
          auto out = evalNodes({left, right}, in);
          if (!out) return std::string(info(t).text) + ": " + llvm::toString(out.takeError());
          if (int64_t at = firstDifference((*out)[0], (*out)[1]); at >= 0) {
            std::string inputs;
            for (const Tensor &x : in.inputs) inputs += " " + llvm::utohexstr(bitsAt(x, at));
            return std::string(info(t).text) + ": sides differ at inputs" + inputs + ", literals " +
                   llvm::utohexstr(a) + " " + llvm::utohexstr(bb);
          }
        }
      }
    if (!fired) return std::string(info(t).text) + ": the guard let no literal pass";
  }
  return "";
}
