//===- Registry.cpp: all rules, indexed by root op at compile time ---------===//
// Keeps:    the order of the rows within an op.
#include "Registry.h"
#include "rules/Algebra.h"
#include "rules/Cast.h"
#include "rules/Expand.h"
#include "rules/Index.h"
#include "rules/Logic.h"
#include "rules/Movement.h"
#include "rules/Select.h"
#include "rules/Validity.h"

using namespace astra;

namespace {
struct Group {
  const char *name;
  RuleSet set;
  const Rule *begin;
  size_t count;
};
template <size_t N> constexpr Group group(const char *name, RuleSet set, const Rule (&rows)[N]) {
  return {name, set, rows, N};
}

constexpr Group groups[] = {
    group("Literals", FoldRules, rules::folding),
    group("Algebra", AlgebraRules, rules::algebra),
    group("Logic", LogicRules, rules::logic),
    group("Select", SelectRules, rules::selection),
    group("Cast", CastRules, rules::casts),
    group("Movement", MovementRules, rules::movement),
    group("Index", IndexRules, rules::indices),
    group("Validity", ValidityRules, rules::validity),
    group("Decompositions", ExpandRules, rules::expansion),
};

constexpr unsigned Kernel = KernelLevel; // the trait by its name in the rows
constexpr unsigned traits[] = {
#define OP(Name, mnemonic, sources, groups, Type, attributes, traits, meaning) traits,
#include "astra/IR/Ops.def"
#undef OP
};

constexpr bool startsAt(const Rule &r, unsigned op) {
  for (unsigned i = 0; i < r.numRoots; ++i)
    if (unsigned(r.roots[i]) == op) return true;
  return r.numRoots == 0 && (traits[op] & Elementwise) && !(traits[op] & Function);
}

struct Count {
  unsigned total = 0;
  std::array<unsigned, numOps + 1> begin{};
};
constexpr Count countRoots() {
  Count c;
  for (unsigned op = 0; op < numOps; ++op) {
    c.begin[op] = c.total;
    for (const Group &g : groups)
      for (size_t i = 0; i < g.count; ++i) c.total += startsAt(g.begin[i], op);
  }
  c.begin[numOps] = c.total;
  return c;
}
constexpr Count roots = countRoots();

constexpr auto indexRules() {
  std::array<IndexedRule, roots.total> all{};
  unsigned at = 0;
  for (unsigned op = 0; op < numOps; ++op)
    for (const Group &g : groups)
      for (size_t i = 0; i < g.count; ++i)
        if (startsAt(g.begin[i], op)) all[at++] = {&g.begin[i], unsigned(g.set)};
  return all;
}
constexpr auto indexed = indexRules();
} // namespace

llvm::ArrayRef<IndexedRule> astra::rulesFor(Op op) {
  return llvm::ArrayRef(indexed).slice(roots.begin[unsigned(op)],
                                       roots.begin[unsigned(op) + 1] - roots.begin[unsigned(op)]);
}

llvm::ArrayRef<RuleGroup> astra::ruleGroups() {
  static const std::vector<RuleGroup> all = [] {
    std::vector<RuleGroup> v;
    for (const Group &g : groups) v.push_back({g.name, g.set, {g.begin, g.count}});
    return v;
  }();
  return all;
}
