//===- Trees.cpp: ensembles of decision trees ------------------------------===//
// Takes:    nodes that may form no trees.
// Gives:    what Trees.h says.
#include "astra/Compose/Trees.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Scan.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

namespace {

constexpr int64_t mostNodes = 1 << 26, mostVotes = 1 << 28, mostUnrolled = 12;

/// The trees laid out so that the node for `no` follows the one for `yes`.
struct Layout {
  std::vector<int64_t> number; // of each node in the layout; -1: not reached
  std::vector<int64_t> node;   // the reverse
  std::vector<int64_t> roots;
  int64_t depth = 0;
};

std::optional<Layout> laidOut(Composer &b, const TreeEnsemble &e, int64_t features) {
  Layout l;
  int64_t count = e.nodes.size();
  if (count < 1 || count > mostNodes || e.roots.empty()) {
    b.fail("an ensemble of " + llvm::Twine(count) + " nodes and " + llvm::Twine(e.roots.size()) + " trees");
    return std::nullopt;
  }
  l.number.assign(count, -1);
  std::vector<int64_t> depths;
  auto place = [&](int64_t node, int64_t depth) {
    if (node < 0 || node >= count || l.number[node] >= 0) {
      b.fail("the nodes form no trees: node " + llvm::Twine(node) +
             (node < 0 || node >= count ? " does not exist" : " is reached twice"));
      return false;
    }
    l.number[node] = l.node.size();
    l.node.push_back(node);
    depths.push_back(depth);
    l.depth = std::max(l.depth, depth);
    return true;
  };
  for (int64_t root : e.roots) {
    l.roots.push_back(l.node.size());
    if (!place(root, 0)) return std::nullopt;
  }
  for (size_t i = 0; i < l.node.size(); ++i) {
    const TreeNode &n = e.nodes[l.node[i]];
    if (n.mode == TreeNode::Leaf) continue;
    if (n.feature < 0 || n.feature >= features) {
      b.fail("node " + llvm::Twine(l.node[i]) + " compares feature " + llvm::Twine(n.feature) + " of " +
             llvm::Twine(features));
      return std::nullopt;
    }
    if (!place(n.yes, depths[i] + 1) || !place(n.no, depths[i] + 1)) return std::nullopt;
  }
  for (int64_t i = 0; i < count; ++i)
    if (l.number[i] < 0 && e.nodes[i].mode != TreeNode::Leaf) {
      b.fail("the nodes form no trees: no root leads to node " + llvm::Twine(i));
      return std::nullopt;
    }
  return l;
}

/// A tensor of the type of x, [count].
UOpRef floatsLike(Composer &b, UOpRef x, llvm::ArrayRef<double> v, std::vector<int64_t> dims) {
  if (x->dtype == DType::F64) return numbersOf<double>(b, DType::F64, v, std::move(dims));
  std::vector<float> narrow(v.begin(), v.end());
  return numbersOf(b, narrow, std::move(dims));
}

/// What a step reads of each node.
struct Tables {
  UOpRef feature = nullptr, value = nullptr, yes = nullptr, inner = nullptr; // inner: 0 of a leaf, else 1
  UOpRef mode = nullptr, missing = nullptr;                                  // null: all nodes have one, or no
  TreeNode::Mode only = TreeNode::AtMost;
};

UOpRef holds(Composer &b, TreeNode::Mode mode, UOpRef x, UOpRef v) {
  switch (mode) {
  case TreeNode::AtMost: return b.bin(Op::Le, x, v);
  case TreeNode::Less: return b.bin(Op::Lt, x, v);
  case TreeNode::AtLeast: return b.bin(Op::Le, v, x);
  case TreeNode::Greater: return b.bin(Op::Lt, v, x);
  case TreeNode::Equal: return b.bin(Op::Eq, x, v);
  case TreeNode::NotEqual: return b.bin(Op::Ne, x, v);
  case TreeNode::Leaf: break;
  }
  return nullptr;
}

/// The next nodes [N, trees].
UOpRef step(Composer &b, const Tables &t, UOpRef x, UOpRef at) {
  auto read = [&](UOpRef table) { return b.make(Op::Gather, {table, at}, {0}); };
  UOpRef feature = b.make(Op::Pick, {x, read(t.feature)}, {1}), value = read(t.value), yes = nullptr;
  if (!t.mode) {
    yes = holds(b, t.only, feature, value);
  } else {
    UOpRef mode = read(t.mode);
    for (int64_t m = TreeNode::AtMost; m < TreeNode::Leaf; ++m) {
      UOpRef own = holds(b, TreeNode::Mode(m), feature, value);
      yes = yes ? b.select(b.bin(Op::Eq, mode, double(m)), own, yes) : own;
    }
  }
  if (t.missing) {
    UOpRef isMissing = b.bin(Op::And, b.bin(Op::Ne, feature, feature), b.bin(Op::Ne, read(t.missing), 0.0));
    yes = b.bin(Op::Or, yes, isMissing);
  }
  UOpRef other = b.select(yes, b.b.litInt(DType::I32, 0), read(t.inner));
  return b.bin(Op::Add, read(t.yes), other);
}

/// The trees as complete ones, whose levels are tables: the nodes below node i of a level are 2 i and 2 i + 1 of the
/// next. A leaf above the last level has itself below. No table of where to go is needed, and the first level is not
/// looked up.
struct Complete {
  std::vector<std::vector<int64_t>> levels; // nodes of the ensemble; the last: leaves alone
};

/// Null where that would make the tables several times as large, or nodes compare in several ways.
std::optional<Complete> completed(const TreeEnsemble &e, const Layout &l, bool isMixed) {
  constexpr int64_t mostDepth = 20, mostGrowth = 4;
  if (isMixed || l.depth > mostDepth || int64_t(e.roots.size()) << l.depth > mostGrowth * int64_t(l.node.size()))
    return std::nullopt;
  Complete out{{e.roots}};
  for (int64_t level = 0; level < l.depth; ++level) {
    std::vector<int64_t> below;
    for (int64_t i : out.levels.back()) {
      const TreeNode &n = e.nodes[i];
      bool isLeaf = n.mode == TreeNode::Leaf;
      below.push_back(isLeaf ? i : n.yes);
      below.push_back(isLeaf ? i : n.no);
    }
    out.levels.push_back(std::move(below));
  }
  return out;
}

/// Of each row and tree the place of its leaf in the last level.
UOpRef leafOfComplete(Composer &b, UOpRef x, const TreeEnsemble &e, const Complete &trees, TreeNode::Mode mode,
                      bool anyMissing) {
  int64_t count = e.roots.size();
  std::vector<UOpRef> dims{x->shape[0], b.idx(count)};
  UOpRef at = b.iota(DType::I32, dims, 1);
  for (const std::vector<int64_t> &level : llvm::ArrayRef(trees.levels).drop_back()) {
    std::vector<int32_t> feature;
    std::vector<double> value;
    std::vector<uint8_t> missing;
    for (int64_t i : level) {
      const TreeNode &n = e.nodes[i];
      bool isLeaf = n.mode == TreeNode::Leaf;
      feature.push_back(isLeaf ? 0 : int32_t(n.feature)), value.push_back(isLeaf ? 0 : n.value);
      missing.push_back(!isLeaf && n.missingGoes);
    }
    int64_t nodes = level.size();
    auto read = [&](UOpRef table) {
      return nodes == count ? b.broadcastTo(table, dims) : b.make(Op::Gather, {table, at}, {0});
    };
    UOpRef which = read(numbersOf<int32_t>(b, DType::I32, feature, {nodes}));
    UOpRef given = b.make(Op::Pick, {x, which}, {1});
    UOpRef yes = holds(b, mode, given, read(floatsLike(b, x, value, {nodes})));
    if (anyMissing) {
      UOpRef goes = b.bin(Op::Ne, read(numbersOf<uint8_t>(b, DType::U8, missing, {nodes})), 0.0);
      yes = b.bin(Op::Or, yes, b.bin(Op::And, b.bin(Op::Ne, given, given), goes));
    }
    UOpRef below = b.select(yes, b.b.litInt(DType::I32, 0), b.b.litInt(DType::I32, 1));
    at = b.bin(Op::Add, b.bin(Op::Add, at, at), below);
  }
  return at;
}

} // namespace

UOpRef treeScores(Composer &b, UOpRef x, const TreeEnsemble &e, TreeFold fold) {
  if (!b.requireFloat(x) || !b.requireRank(x, 2, 2)) return nullptr;
  int64_t features = b.constExtent(x, 1, "the number of features");
  if (b.failed()) return nullptr;
  std::optional<Layout> l = laidOut(b, e, features);
  if (!l) return nullptr;
  int64_t count = l->node.size(), trees = l->roots.size();

  std::vector<int32_t> feature(count, 0), yes(count), inner(count, 0), leafOf(count, 0);
  std::vector<uint8_t> mode(count, 0), missing(count, 0);
  std::vector<double> value(count, 0);
  bool isMixed = false, anyMissing = false;
  std::optional<TreeNode::Mode> only;
  int64_t leaves = 0;
  for (int64_t i = 0; i < count; ++i) {
    const TreeNode &n = e.nodes[l->node[i]];
    yes[i] = int32_t(i);
    if (n.mode == TreeNode::Leaf) {
      leafOf[i] = int32_t(leaves++);
      continue;
    }
    feature[i] = int32_t(n.feature), value[i] = n.value, yes[i] = int32_t(l->number[n.yes]), inner[i] = 1;
    mode[i] = n.mode, missing[i] = n.missingGoes;
    anyMissing |= n.missingGoes;
    isMixed |= only && *only != n.mode;
    only = n.mode;
  }
  if (e.targets < 1 || e.targets > mostVotes || leaves > mostVotes / e.targets)
    return b.unsupported(llvm::Twine(leaves) + " leaves with " + llvm::Twine(e.targets) +
                         " targets are not supported: together at most 2^28");
  bool isExtreme = fold == TreeFold::Min || fold == TreeFold::Max;
  double infinity = std::numeric_limits<double>::infinity(), none = fold == TreeFold::Min ? infinity : -infinity;
  std::vector<double> weights(leaves * e.targets, isExtreme ? none : 0);
  for (const TreeVote &v : e.votes) {
    bool known = v.leaf >= 0 && v.leaf < int64_t(e.nodes.size()) && v.target >= 0 && v.target < e.targets;
    if (!known)
      return b.fail("a vote of node " + llvm::Twine(v.leaf) + " is for target " + llvm::Twine(v.target) + " of " +
                    llvm::Twine(e.targets));
    int64_t number = l->number[v.leaf];
    if (number < 0 || inner[number]) continue; // of no leaf of these trees
    double &w = weights[leafOf[number] * e.targets + v.target];
    w = !isExtreme ? w + v.weight : fold == TreeFold::Min ? std::min(w, v.weight) : std::max(w, v.weight);
  }

  auto words = [&](llvm::ArrayRef<int32_t> v) { return numbersOf<int32_t>(b, DType::I32, v, {int64_t(v.size())}); };
  auto bytes = [&](llvm::ArrayRef<uint8_t> v) { return numbersOf<uint8_t>(b, DType::U8, v, {int64_t(v.size())}); };
  UOpRef leaf = nullptr; // of each row and tree the number of its leaf's votes
  if (auto whole = completed(e, *l, isMixed)) {
    leaf = leafOfComplete(b, x, e, *whole, only.value_or(TreeNode::AtMost), anyMissing);
    std::vector<double> placed;
    for (int64_t node : whole->levels.back()) {
      auto from = weights.begin() + int64_t(leafOf[l->number[node]]) * e.targets;
      placed.insert(placed.end(), from, from + e.targets);
    }
    weights = std::move(placed);
  } else {
    std::vector<int32_t> roots(l->roots.begin(), l->roots.end());
    UOpRef at = b.broadcastTo(words(roots), {x->shape[0], b.idx(trees)});
    Tables t;
    if (l->depth > 0) {
      t.feature = words(feature), t.value = floatsLike(b, x, value, {count}), t.yes = words(yes),
      t.inner = words(inner);
      if (isMixed) t.mode = bytes(mode);
      if (anyMissing) t.missing = bytes(missing);
      t.only = only.value_or(TreeNode::AtMost);
    }
    if (l->depth <= mostUnrolled) {
      for (int64_t i = 0; i < l->depth; ++i) at = step(b, t, x, at);
    } else {
      ScanMaker scan(b, b.idx(l->depth));
      UOpRef now = scan.carry(at), rows = scan.close(x);
      for (UOpRef *table : {&t.feature, &t.value, &t.yes, &t.inner, &t.mode, &t.missing})
        if (*table) *table = scan.close(*table);
      at = scan.finish({step(b, t, rows, now)}, {})[0];
    }
    leaf = b.make(Op::Gather, {words(leafOf), at}, {0});
  }
  UOpRef table = floatsLike(b, x, weights, {int64_t(weights.size()) / e.targets, e.targets});
  UOpRef votes = b.make(Op::Gather, {table, leaf}, {0}); // [N, trees, targets]
  ReduceKind kind = fold == TreeFold::Min ? ReduceKind::Min : fold == TreeFold::Max ? ReduceKind::Max : ReduceKind::Sum;
  UOpRef y = b.squeeze(b.reduce(kind, votes, {1}), {1});
  if (isExtreme) return b.select(b.bin(Op::Eq, y, none), b.literal(y, 0), y);
  return fold == TreeFold::Mean ? b.bin(Op::Div, y, double(trees)) : y;
}

Classified treeClasses(Composer &b, UOpRef x, const TreeEnsemble &e, llvm::ArrayRef<double> given,
                       llvm::ArrayRef<int64_t> labels, ScoreTransform transform) {
  bool anySecond = llvm::any_of(e.votes, [](auto &v) { return v.target == 1; }),
       anyFirst = llvm::any_of(e.votes, [](auto &v) { return v.target == 0; }),
       positive = llvm::all_of(e.votes, [](auto &v) { return v.weight >= 0; });
  if (e.targets == 1) b.unsupported("one class alone is not supported");
  UOpRef s = treeScores(b, x, e, TreeFold::Sum);
  if (b.failed()) return {};
  bool single = e.targets == 2 && !(anyFirst && anySecond);
  int64_t voted = anySecond ? 1 : 0;
  double threshold = positive ? 0.5 : 0;
  llvm::SmallVector<double, 4> base(given);
  if (!single || base.size() == 2) {
    if (single) base[1 - voted] = 0; // of a class without a vote
    s = plusBase(b, s, base);
    return {single ? signLabel(b, b.part(s, 1, voted, 1), threshold, labels) : bestLabel(b, s, labels),
            transformed(b, s, transform)};
  }
  s = plusBase(b, b.part(s, 1, voted, 1), base);
  return {signLabel(b, s, threshold, labels), bothClasses(b, s, !positive, transform)};
}

} // namespace astra::compose
