//===- VerifyNode.cpp: rules for single nodes ------------------------------===//
// Takes:    one node.
// Gives:    the first rule of the stage's set that it breaks.
#include "VerifyNode.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

static constexpr unsigned graph = 1u << unsigned(Stage::Graph), numbers = 1u << unsigned(Stage::Numbers),
                          kernel = 1u << unsigned(Stage::Kernel), expanded = 1u << unsigned(Stage::Expanded);

static bool plainExtents(UOpRef n) { // dims and integers: known before anything has run
  for (UOpRef x : topoSort(n->src))
    if (x->op == Op::Extent || x->op == Op::Range || !x->isIndex()) return false;
  return true;
}
static bool inKernel(UOpRef n) {
  if (has(n->op, KernelLevel) || has(n->op, Elementwise) || n->isIndex()) return true;
  return n->op == Op::Const || n->op == Op::FromIndex;
}
static bool vectorAtMost(UOpRef n) { return n->rank() == 0 || (n->rank() == 1 && n->shape[0]->constIndex()); }

struct NodeRule {
  const char *name;
  unsigned stages; // bit set of 1 << Stage
  const char *sentence;
  bool (*holds)(UOpRef n);
};
static constexpr NodeRule rules[] = {
    {"graph-level", graph | numbers, "an op of kernels stands in a graph",
     [](UOpRef n) { return !has(n->op, KernelLevel); }},
    {"kernel-level", kernel | expanded, "an op of graphs stands in a kernel", inKernel},
    {"decomposed", numbers | kernel | expanded, "a function or random op is left after the numerics stage",
     [](UOpRef n) { return !has(n->op, Function) && n->op != Op::Random; }},
    // In a kernel the divisor may be the extent of a range that is empty where it is 0.
    {"divisor", graph | numbers, "the divisor of floordiv or mod may be 0 or negative",
     [](UOpRef n) { return !n->isIndex() || (n->op != Op::FloorDiv && n->op != Op::Mod) || n->src[1]->lo > 0; }},
    {"leaf-shape", graph | numbers, "the shape of an argument, parameter or state is not made of dims and integers",
     [](UOpRef n) { return (n->op != Op::Arg && n->op != Op::Param && n->op != Op::State) || plainExtents(n); }},
    {"lanes", kernel | expanded, "a value of a kernel is neither a scalar nor a vector of constant length",
     vectorAtMost},
    {"expanded", expanded, "a vector or unroll range is left after expansion",
     [](UOpRef n) {
       return n->op != Op::Range ||
              (n->ints[1] != int64_t(RangeKind::Vector) && n->ints[1] != int64_t(RangeKind::Unroll));
     }},
};

std::optional<std::string> verifier::brokenRule(UOpRef n, Stage stage) {
  for (const NodeRule &r : rules)
    if ((r.stages >> unsigned(stage) & 1) && !r.holds(n)) return std::string(r.name) + ": " + r.sentence;
  return std::nullopt;
}

std::string verifier::placeOf(UOpRef n, const Origins *origins) {
  std::string text = n->isIndex() ? indexText(n) : info(n->op).mnemonic;
  const Origin *from = origins ? origins->find(n) : nullptr;
  if (from && !from->names.empty()) text += " (" + from->names[0] + (from->count > 1 ? " and others" : "") + ")";
  return text;
}
