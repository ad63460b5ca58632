//===- Driver.cpp: apply rules to a fixed point ----------------------------===//
// Takes:    graphs and symbolic integers; sets of rules.
// Gives:    equal ones in which no rule of the sets fires, or an error at the fuel limit that names the rules on the
//           cycle.
// Keeps:    types and shapes: no rule fires within an extent (equal extents stay one node), only the tensor under a
//           data dim is rewritten, everywhere alike. Output independent of node ids and addresses. Sources are
//           rewritten before their users, each node once, on an explicit stack: linear time, no recursion.
// Does not: choose rules (rules/).
#include "Matcher.h"
#include "Registry.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Path.h"

using namespace astra;
using llvm::SmallVector;

namespace {

/// The rules are proved for real types: they meet complex values as their parts, after the numerics stage.
bool involvesComplex(UOpRef n) {
  return isComplex(n->dtype) || llvm::any_of(n->tensors(), [](UOpRef s) { return isComplex(s->dtype); });
}

/// A sum or product of symbolic integers; its parts are the atoms of the polynomial.
bool isPolynomial(UOpRef n) { return n->isIndex() && (n->op == Op::Add || n->op == Op::Mul); }

/// Whether a node's index sources are values that rules may rewrite, not extents or ranges that say what the node is.
bool computesWithIndices(UOpRef n) {
  return n->op == Op::FromIndex || n->op == Op::Load || n->op == Op::Store || n->op == Op::At ||
         (has(n->op, Elementwise) && !n->isIndex());
}

void collectParts(UOpRef n, std::vector<UOpRef> &parts) {
  if (!isPolynomial(n)) {
    parts.insert(parts.end(), n->src.begin(), n->src.end());
    parts.insert(parts.end(), n->fns.begin(), n->fns.end());
    return;
  }
  size_t begin = parts.size();
  for (const IndexTerm &t : terms(n))
    for (UOpRef a : t.atoms)
      if (std::find(parts.begin() + begin, parts.end(), a) == parts.end()) parts.push_back(a);
}

UOpRef rebuildPolynomial(Context &c, UOpRef n, llvm::function_ref<UOpRef(UOpRef)> result) {
  UOpRef sum = c.index(0);
  for (const IndexTerm &t : terms(n)) {
    UOpRef product = c.index(t.coefficient);
    for (UOpRef a : t.atoms) product = idxMul(c, product, result(a));
    sum = idxAdd(c, sum, product);
  }
  return sum;
}

std::string describe(UOpRef n) {
  if (n->isIndex()) return indexText(n);
  std::string s = info(n->op).mnemonic;
  const char *separator = "(";
  for (UOpRef x : n->src) {
    s += separator + std::string(x->isIndex() ? indexText(x) : info(x->op).mnemonic);
    separator = ", ";
  }
  return s + (n->src.empty() ? " : " : ") : ") + typeText(n->dtype, n->shape);
}

/// Graph: rules fire on tensors and on what computes with indices. Index: on symbolic integers, which end at dims, data
/// dims and ranges.
enum class Over { Graph, Index };

class Driver {
public:
  Driver(Context &c, Over over, unsigned sets, RewriteOptions &options, std::vector<UOpRef> &memo)
      : c(c), over(over), sets(sets), options(options), memo(memo) {}

  llvm::Expected<UOpRef> run(UOpRef root) {
    if (UOpRef done = lookup(root)) return done;
    push(root, 0);
    while (!stack.empty())
      if (auto e = step()) {
        for (const Frame &f : stack) memo[f.node->id] = nullptr;
        stack.clear();
        parts.clear();
        return llvm::Expected<UOpRef>(std::move(e));
      }
    return lookup(root);
  }

private:
  struct Frame {
    UOpRef node;
    UOpRef rebuilt, replacement; // the node over rewritten sources; what a rule made of it
    const Rule *rule;
    size_t begin; // of its parts
    uint32_t next, fired;
  };
  Context &c;
  Over over;
  unsigned sets;
  RewriteOptions &options;
  std::vector<UOpRef> &memo; // by id: null, `active`, or the result
  std::vector<Frame> stack;
  std::vector<UOpRef> parts;     // of all frames
  std::vector<UOpRef> indexMemo; // of the symbolic integers that a graph computes with

  static inline const UOp activeMark{};
  static constexpr UOpRef active = &activeMark;

  UOpRef &entry(UOpRef n) {
    if (n->id >= memo.size()) memo.resize(std::max<size_t>(c.size(), n->id + 1));
    return memo[n->id];
  }
  UOpRef lookup(UOpRef n) {
    UOpRef m = n->id < memo.size() ? memo[n->id] : nullptr;
    return m == active ? nullptr : m;
  }
  void push(UOpRef n, uint32_t fired) {
    entry(n) = active;
    stack.push_back({n, nullptr, nullptr, nullptr, parts.size(), 0, fired});
    bool leaf = over == Over::Index && n->isIndex() && !has(n->op, Elementwise);
    if (!leaf) collectParts(n, parts);
  }

  /// A symbolic integer that is computed with, by the index rules; its trace and count are the graph's.
  UOpRef simplified(UOpRef x) {
    RewriteOptions inner = options;
    inner.fuel = RewriteOptions().fuel;
    inner.origins = nullptr;
    auto done = Driver(c, Over::Index, sets & IndexRules, inner, indexMemo).run(x);
    if (!done) llvm::report_fatal_error(llvm::Twine("internal error: ") + llvm::toString(done.takeError()));
    options.fired = inner.fired;
    return *done;
  }

  UOpRef rebuild(UOpRef n) {
    auto result = [&](UOpRef p) { return lookup(p); };
    llvm::ArrayRef<UOpRef> mine = llvm::ArrayRef(parts).drop_front(stack.back().begin);
    bool simplifies = over == Over::Graph && computesWithIndices(n) && !n->indices().empty();
    if (!simplifies && llvm::all_of(mine, [&](UOpRef p) { return result(p) == p; })) return n;
    if (isPolynomial(n)) return rebuildPolynomial(c, n, result);
    SmallVector<UOpRef, 8> src(n->src), fns(n->fns);
    for (UOpRef &s : src) s = simplifies && s->isIndex() ? simplified(result(s)) : result(s);
    for (UOpRef &f : fns) f = result(f);
    if (n->src == llvm::ArrayRef(src) && n->fns == llvm::ArrayRef(fns)) return n;
    return c.make(n->op, src, n->ints, n->str, n->dtype, fns);
  }

  llvm::Error endless(UOpRef n) {
    std::string names;
    bool on = n == nullptr;
    size_t from = n ? 0 : stack.size() - std::min<size_t>(stack.size(), 8);
    for (size_t i = from; i < stack.size(); ++i) {
      on |= stack[i].node == n;
      if (on && stack[i].rule) names += (names.empty() ? "" : ", ") + std::string(stack[i].rule->name);
    }
    return llvm::createStringError(
        "rewriting does not end: the rules " + names + " chase each other" +
        (n ? " at " + describe(n) : " (fuel of " + std::to_string(options.fuel) + " is used up)"));
  }

  llvm::Error require(UOpRef n, uint32_t fired) {
    if (entry(n) == active) return endless(n);
    push(n, fired);
    return llvm::Error::success();
  }

  void finish(UOpRef result) {
    Frame &f = stack.back();
    entry(f.node) = result;
    entry(f.rebuilt) = result;
    entry(result) = result;
    if (options.origins && result != f.node) options.origins->inherit(result, f.node);
    parts.resize(f.begin);
    stack.pop_back();
  }

  llvm::Error step() {
    Frame &f = stack.back();
    if (f.replacement) {
      finish(lookup(f.replacement));
      return llvm::Error::success();
    }
    while (f.begin + f.next < parts.size()) {
      UOpRef p = parts[f.begin + f.next++];
      if (!lookup(p)) return require(p, f.fired);
    }
    f.rebuilt = rebuild(f.node);
    if (f.rebuilt != f.node)
      if (UOpRef known = lookup(f.rebuilt)) {
        finish(known);
        return llvm::Error::success();
      }
    UOpRef made = over == Over::Graph && f.rebuilt->isIndex() ? nullptr : fire(f.rebuilt, f.rule);
    if (!made) {
      finish(f.rebuilt);
      return llvm::Error::success();
    }
    if (f.fired >= options.fuel) return endless(nullptr);
    f.replacement = made;
    return lookup(made) ? llvm::Error::success() : require(made, f.fired + 1);
  }

  UOpRef fire(UOpRef n, const Rule *&by) {
    if (options.ruleLimit >= 0 && options.fired >= uint64_t(options.ruleLimit)) return nullptr;
    if (involvesComplex(n)) return nullptr;
    for (const IndexedRule &row : rulesFor(n->op)) {
      if (!(row.set & sets)) continue;
      UOpRef made = applyRule(*row.rule, {c, options.level}, n);
      if (!made || made == n) continue;
      assert(made->dtype == n->dtype && made->shape == n->shape && "a rule keeps type and shape");
      ++options.fired;
      by = row.rule;
      if (options.trace)
        *options.trace << options.fired << ": " << row.rule->name << " ("
                       << llvm::sys::path::filename(row.rule->where.file_name()) << ':' << row.rule->where.line()
                       << "): " << describe(n) << " -> " << describe(made) << '\n';
      return made;
    }
    return nullptr;
  }
};
} // namespace

llvm::Expected<std::vector<UOpRef>> astra::rewrite(Context &c, llvm::ArrayRef<UOpRef> roots, unsigned sets,
                                                   RewriteOptions &options) {
  std::vector<UOpRef> memo, results;
  Driver driver(c, Over::Graph, sets, options, memo);
  for (UOpRef r : roots) {
    auto done = driver.run(r);
    if (!done) return done.takeError();
    results.push_back(*done);
  }
  return results;
}

UOpRef astra::simplifyIndex(Context &c, UOpRef x) {
  RewriteOptions options;
  auto done = Driver(c, Over::Index, IndexRules, options, c.simplified).run(x);
  if (!done) llvm::report_fatal_error(llvm::Twine("internal error: ") + llvm::toString(done.takeError()));
  return *done;
}
