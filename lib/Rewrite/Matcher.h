//===- Matcher.h: one rule at one node -------------------------------------===//
#pragma once
#include "astra/Rewrite/Rewrite.h"

namespace astra {

/// The node that replaces n by this rule; null where the rule does not apply. n's sources are rewritten.
UOpRef applyRule(const Rule &rule, RuleContext r, UOpRef n);

} // namespace astra
