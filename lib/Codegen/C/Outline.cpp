//===- Outline.cpp: repeated elementwise code as functions ------------------===//
// Takes:    a kernel's instructions in order.
// Gives:    what of them is one function of one vector that a region of the kernel computes of many, as the epilogue of
//           a register tile does: an activation of each of its vectors. A compiler reads such a function once in place
//           of dozens of copies, which were most of its time.
// Keeps:    each op and its operands, so every bit. A function has at least `leastOps` ops and, in some region, more
//           calls than loops have copies: inner loops keep their constants in registers.
// Does not: outline functions of several values, of bools, or of vectors that are not one register.
//
// Note [Trees of one value]
// A node whose operands other than literals all follow from one value, and from nothing else, belongs to the tree of
// that value, its root; any other node is a root. The tree is one function when a single value of it is used outside.
// Two functions are the same when their ops are, operand by operand: each node gets the number of its structure.
#include "Outline.h"
#include "Helpers.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace astra;
using namespace astra::cemit;

namespace {

constexpr size_t leastOps = 16;
constexpr unsigned mostCopies = 8; // of a loop that is unrolled

struct Tree {
  std::vector<UOpRef> nodes; // in order, without the root
  std::vector<UOpRef> results;
};

class Outliner {
public:
  Outliner(llvm::ArrayRef<Inst> insts, llvm::function_ref<unsigned(UOpRef)> regionOf, unsigned vectorBytes)
      : insts(insts), regionOf(regionOf), vectorBytes(vectorBytes) {}

  Outlines run() {
    for (const Inst &i : insts)
      if (i.kind == InstKind::Define) place(i.uop);
    for (const Inst &i : insts) findResults(i);
    return choose();
  }

private:
  UOpRef rootOf(UOpRef x) const {
    auto it = roots.find(x);
    return it == roots.end() ? x : it->second;
  }
  void place(UOpRef x);
  void findResults(const Inst &i);
  void use(UOpRef x, UOpRef root);
  unsigned numberOf(UOpRef x, UOpRef root);
  bool fills(UOpRef x) const { return x->dtype != DType::Bool && lanesOf(x) * byteSize(x->dtype) == vectorBytes; }
  Outlines choose();

  llvm::ArrayRef<Inst> insts;
  llvm::function_ref<unsigned(UOpRef)> regionOf;
  unsigned vectorBytes;
  llvm::DenseMap<UOpRef, UOpRef> roots; // of nodes of trees
  std::vector<UOpRef> order;            // roots of trees
  llvm::DenseMap<UOpRef, Tree> trees;
  llvm::DenseMap<UOpRef, unsigned> numbers; // of structures
  std::map<std::vector<int64_t>, unsigned> structures;
};

/// A node of a tree, or a root.
void Outliner::place(UOpRef x) {
  if (!x->rank() || x->isIndex() || !has(x->op, Elementwise) || has(x->op, Function)) return;
  UOpRef root = nullptr;
  for (UOpRef s : x->src) {
    if (isLiteral(s)) continue;
    if (s->isIndex() || !s->rank()) return;
    UOpRef from = regionOf(s) == regionOf(x) ? rootOf(s) : s;
    if (root && root != from) return;
    root = from;
  }
  if (!root || !fills(root)) return;
  roots[x] = root;
  Tree &tree = trees[root];
  if (tree.nodes.empty()) order.push_back(root);
  tree.nodes.push_back(x);
}

/// `x` is used by a node of the tree of `root`, or, where that is null, by what is of no tree.
void Outliner::use(UOpRef x, UOpRef root) {
  auto it = roots.find(x);
  if (it == roots.end() || it->second == root) return;
  std::vector<UOpRef> &results = trees[it->second].results;
  if (!llvm::is_contained(results, x)) results.push_back(x);
}

void Outliner::findResults(const Inst &i) {
  UOpRef root = i.kind == InstKind::Define ? roots.lookup(i.uop) : nullptr;
  for (UOpRef s : i.uop->src) use(s, root);
  if (i.kind == InstKind::StageFill)
    for (UOpRef fold : i.uop->tensors()) use(fold->src[0], nullptr);
}

/// The number of what x is of its tree's root; equal numbers are equal ops.
unsigned Outliner::numberOf(UOpRef x, UOpRef root) {
  if (x == root) return 0;
  if (auto it = numbers.find(x); it != numbers.end()) return it->second;
  std::vector<int64_t> key;
  if (isLiteral(x)) {
    UOpRef scalar = x->op == Op::Splat ? x->src[0] : x;
    key = {-1, int64_t(x->dtype), int64_t(lanesOf(x)), scalar->ints[0]};
  } else {
    key = {int64_t(x->op), int64_t(x->dtype), int64_t(lanesOf(x)), int64_t(x->ints.size())};
    key.insert(key.end(), x->ints.begin(), x->ints.end());
    for (UOpRef s : x->src) key.push_back(numberOf(s, root)); // nodes before it have theirs
  }
  return numbers[x] = structures.try_emplace(std::move(key), structures.size() + 1).first->second;
}

Outlines Outliner::choose() {
  struct Group {
    std::vector<UOpRef> roots;
    std::map<unsigned, unsigned> inRegion;
    unsigned most = 0;
  };
  std::map<std::pair<int64_t, unsigned>, Group> groups; // by the type of the root and the structure of the result
  std::vector<Group *> found;
  for (UOpRef root : order) {
    Tree &tree = trees[root];
    if (tree.nodes.size() < leastOps || tree.results.size() != 1 || !fills(tree.results[0])) continue;
    for (UOpRef x : tree.nodes) numberOf(x, root);
    std::pair<int64_t, unsigned> key{int64_t(root->dtype), numbers[tree.results[0]]};
    auto [it, isNew] = groups.try_emplace(key);
    if (isNew) found.push_back(&it->second);
    it->second.roots.push_back(root);
    it->second.most = std::max(it->second.most, ++it->second.inRegion[regionOf(tree.results[0])]);
  }
  Outlines out;
  for (const Group *group : found) {
    if (group->most <= mostCopies) continue;
    for (UOpRef root : group->roots) {
      const Tree &tree = trees[root];
      for (UOpRef x : tree.nodes) out.isInternal[x] = true;
      out.calls[tree.results[0]] = {unsigned(out.functions.size()), root};
    }
    const Tree &first = trees[group->roots[0]];
    Outlined function{group->roots[0], {}};
    for (UOpRef x : first.nodes)
      if (x != first.results[0]) function.body.push_back(x);
    function.body.push_back(first.results[0]);
    out.functions.push_back(std::move(function));
  }
  return out;
}

} // namespace

bool cemit::isLiteral(UOpRef x) { return x->op == Op::Const || (x->op == Op::Splat && x->src[0]->op == Op::Const); }

Outlines cemit::outline(llvm::ArrayRef<Inst> insts, llvm::function_ref<unsigned(UOpRef)> regionOf,
                        unsigned vectorBytes) {
  return Outliner(insts, regionOf, vectorBytes).run();
}
