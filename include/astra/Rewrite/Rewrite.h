//===- Rewrite.h: rewriting of graphs and of symbolic integers -------------===//
// Takes:    graphs at any stage; sets of rules.
// Gives:    equal graphs in which no rule of the sets fires.
// Keeps:    dtypes and shapes: no rule fires within an extent, so equal shapes stay equal nodes (only the tensor under
//           a data dim is rewritten, everywhere alike). Results independent of node ids. Time linear in the nodes
//           visited and the rules fired; no recursion.
// Does not: change bits. Every row of every set is proved (docs/rules.md).
#pragma once
#include "astra/IR/Index.h"
#include "astra/IR/Module.h"
#include "astra/Rewrite/Rule.h"
#include "llvm/Support/raw_ostream.h"

namespace astra {

/// Sets of rules, combined by |.
enum RuleSet : unsigned {
  AlgebraRules = 1,   // arithmetic of floats and integers
  LogicRules = 2,     // bitwise and boolean logic, comparisons
  SelectRules = 4,    // select
  CastRules = 8,      // cast and bitcast
  MovementRules = 16, // reshape, permute, expand, pad, shrink, flip
  IndexRules = 32,    // symbolic integers: div, mod, min, max, comparisons, by bounds
  ValidityRules = 64, // gates of loads and stores
  FoldRules = 128,    // elementwise ops on literals
  ExpandRules =
      256, // decompositions: integer ops that a target lacks in terms of others; loops with its opposites are excluded
};
/// What runs over a graph and over a kernel unless asked otherwise.
constexpr unsigned graphRules =
    AlgebraRules | LogicRules | SelectRules | CastRules | MovementRules | IndexRules | FoldRules;
constexpr unsigned kernelRules = graphRules | ValidityRules;

struct RewriteOptions {
  Level level = Level::Graph;
  uint64_t fuel = 1000;               // rules that may fire one inside another before rewriting is refused as endless
  int64_t ruleLimit = -1;             // rules that may fire at all, for bisection; -1: no limit
  llvm::raw_ostream *trace = nullptr; // one line per fired rule: its name, where it is written, before and after
  Origins *origins = nullptr;         // replacements inherit from what they replace
  uint64_t fired = 0; // counts the rules fired; carried from call to call, so that ruleLimit spans passes
};

/// The roots rewritten, in order; functions of control ops are rewritten too. An error names the rules that chase each
/// other when the fuel ends.
llvm::Expected<std::vector<UOpRef>> rewrite(Context &c, llvm::ArrayRef<UOpRef> roots, unsigned ruleSets,
                                            RewriteOptions &options);

/// An equal symbolic integer (or a bool over symbolic integers), by IndexRules. Memoised in the Context. Divisors are
/// taken to be positive, ranges to lie within their extents.
UOpRef simplifyIndex(Context &c, UOpRef x);

/// The least upper and greatest lower bound that the rules of Bounds.cpp prove, extents of ranges included; constants.
int64_t upperBound(Context &c, UOpRef x);
int64_t lowerBound(Context &c, UOpRef x);
inline bool provablyLess(Context &c, UOpRef a, UOpRef b) { return upperBound(c, idxSub(c, a, b)) < 0; }

/// The literal that every element of x is, as a `const` node; null if x is no such tensor.
UOpRef uniformLiteral(UOpRef x);

/// Every rule, set by set.
struct RuleGroup {
  const char *name;
  RuleSet set;
  llvm::ArrayRef<Rule> rules;
};
llvm::ArrayRef<RuleGroup> ruleGroups();
/// docs/rules.md.
std::string rulesMarkdown();
/// "x*y + x*z".
std::string termText(const rules::Term &t);

} // namespace astra
