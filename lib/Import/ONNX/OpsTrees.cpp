//===- OpsTrees.cpp: tree ensembles of ai.onnx.ml --------------------------===//
// Takes:    nodes whose trees are lists in attributes: by pairs of numbers (TreeEnsembleRegressor and -Classifier), or
//           inner nodes and leaves apart (TreeEnsemble).
// Gives:    the composite of Trees.h, what scores become, labels.
#include "MLAttributes.h"
#include "OpTable.h"
#include "astra/Compose/Trees.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>

namespace astra::onnx {

namespace {

using compose::ScoreTransform;
using compose::TreeEnsemble;
using compose::TreeFold;
using compose::TreeNode;

/// The numbers of a tensor of floats.
std::vector<double> tensorNumbers(Node &n, const char *name) {
  std::optional<compose::Payload> p = n.tensorAttr(name);
  std::vector<double> values;
  if (!p) return values;
  auto read = [&](auto zero) {
    using T = decltype(zero);
    values.resize(p->bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T v;
      std::memcpy(&v, p->bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = double(v);
    }
  };
  if (p->dtype == DType::F32)
    read(float());
  else if (p->dtype == DType::F64)
    read(double());
  else if (p->dtype == DType::U8)
    read(uint8_t());
  else
    n.unsupported(llvm::Twine("attribute '") + name + "' is of type " + info(p->dtype).text +
                  ", supported are f32, f64 and, of modes, u8");
  return values;
}

/// An attribute of floats, or the tensor of it that has more digits.
std::vector<double> precise(Node &n, const std::string &name) {
  std::string tensor = name + "_as_tensor";
  if (n.hasAttr(tensor)) return tensorNumbers(n, tensor.c_str());
  auto values = n.floatsAttr(name);
  return {values.begin(), values.end()};
}

TreeNode::Mode modeOf(Node &n, llvm::StringRef name) {
  constexpr std::pair<const char *, TreeNode::Mode> names[] = {
      {"BRANCH_LEQ", TreeNode::AtMost}, {"BRANCH_LT", TreeNode::Less},  {"BRANCH_GTE", TreeNode::AtLeast},
      {"BRANCH_GT", TreeNode::Greater}, {"BRANCH_EQ", TreeNode::Equal}, {"BRANCH_NEQ", TreeNode::NotEqual},
      {"LEAF", TreeNode::Leaf}};
  for (auto [text, mode] : names)
    if (name == text) return mode;
  n.fail("attribute 'nodes_modes' has '" + name + "', which is not one of ONNX's");
  return TreeNode::Leaf;
}

bool sameLength(Node &n, size_t found, size_t expected, const char *name) {
  if (found == expected) return true;
  n.fail(llvm::Twine("attribute '") + name + "' has " + llvm::Twine(found) + " elements, expected " +
         llvm::Twine(expected));
  return false;
}

/// Nodes that are named by a tree and a number in it.
struct Named {
  TreeEnsemble ensemble;
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> number;
};

std::optional<Named> namedNodes(Node &n) {
  Ints trees = n.intsAttr("nodes_treeids"), ids = n.intsAttr("nodes_nodeids"),
       features = n.intsAttr("nodes_featureids"), yes = n.intsAttr("nodes_truenodeids"),
       no = n.intsAttr("nodes_falsenodeids"), missing = n.intsAttr("nodes_missing_value_tracks_true");
  std::vector<std::string> modes = n.stringsAttr("nodes_modes");
  std::vector<double> values = precise(n, "nodes_values");
  n.ignoreAttr("nodes_hitrates"); // how often, in training
  n.ignoreAttr("nodes_hitrates_as_tensor");
  size_t count = ids.size();
  if (n.failed()) return std::nullopt;
  if (!sameLength(n, trees.size(), count, "nodes_treeids") || !sameLength(n, yes.size(), count, "nodes_truenodeids") ||
      !sameLength(n, features.size(), count, "nodes_featureids") ||
      !sameLength(n, no.size(), count, "nodes_falsenodeids") || !sameLength(n, modes.size(), count, "nodes_modes") ||
      !sameLength(n, values.size(), count, "nodes_values") ||
      (!missing.empty() && !sameLength(n, missing.size(), count, "nodes_missing_value_tracks_true")))
    return std::nullopt;
  Named named;
  constexpr int64_t most = int64_t(1) << 40; // keys of the table
  for (size_t i = 0; i < count; ++i) {
    if (trees[i] < 0 || ids[i] < 0 || trees[i] > most || ids[i] > most) {
      n.fail("node " + llvm::Twine(ids[i]) + " of tree " + llvm::Twine(trees[i]) + ": numbers are 0 to 2^40");
      return std::nullopt;
    }
    if (!named.number.try_emplace({trees[i], ids[i]}, int64_t(i)).second) {
      n.fail("node " + llvm::Twine(ids[i]) + " of tree " + llvm::Twine(trees[i]) + " is given twice");
      return std::nullopt;
    }
  }
  auto find = [&](int64_t tree, int64_t id) {
    auto it = tree < 0 || id < 0 || id > most ? named.number.end() : named.number.find({tree, id});
    return it == named.number.end() ? int64_t(-1) : it->second;
  };
  std::vector<bool> isChild(count, false);
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    node.mode = modeOf(n, modes[i]);
    if (node.mode != TreeNode::Leaf) {
      node.feature = features[i], node.value = values[i];
      node.yes = find(trees[i], yes[i]), node.no = find(trees[i], no[i]);
      node.missingGoes = !missing.empty() && missing[i] != 0;
      for (int64_t child : {node.yes, node.no})
        if (child >= 0) isChild[child] = true;
    }
    named.ensemble.nodes.push_back(node);
  }
  llvm::DenseMap<int64_t, bool> hasRoot;
  for (size_t i = 0; i < count; ++i)
    if (!isChild[i]) {
      if (!hasRoot.try_emplace(trees[i], true).second) {
        n.fail("tree " + llvm::Twine(trees[i]) + " has two nodes that no other one leads to");
        return std::nullopt;
      }
      named.ensemble.roots.push_back(int64_t(i));
    }
  if (named.ensemble.roots.empty() && !n.failed()) n.fail("no node is the root of a tree");
  return n.failed() ? std::nullopt : std::optional(std::move(named));
}

/// The votes of leaves, in attributes with this prefix, for targets or classes.
bool readVotes(Node &n, Named &named, const std::string &prefix) {
  Ints trees = n.intsAttr(prefix + "_treeids"), ids = n.intsAttr(prefix + "_nodeids"),
       targets = n.intsAttr(prefix + "_ids");
  std::vector<double> weights = precise(n, prefix + "_weights");
  if (n.failed() || !sameLength(n, trees.size(), ids.size(), (prefix + "_treeids").c_str()) ||
      !sameLength(n, targets.size(), ids.size(), (prefix + "_ids").c_str()) ||
      !sameLength(n, weights.size(), ids.size(), (prefix + "_weights").c_str()))
    return false;
  for (size_t i = 0; i < ids.size(); ++i) {
    auto it = trees[i] < 0 || ids[i] < 0 ? named.number.end() : named.number.find({trees[i], ids[i]});
    if (it == named.number.end()) {
      n.fail("node " + llvm::Twine(ids[i]) + " of tree " + llvm::Twine(trees[i]) + " has a vote and does not exist");
      return false;
    }
    named.ensemble.votes.push_back({it->second, targets[i], weights[i]});
  }
  return true;
}

TreeFold foldOf(Node &n, const std::string &name) {
  constexpr std::pair<const char *, TreeFold> names[] = {
      {"SUM", TreeFold::Sum}, {"AVERAGE", TreeFold::Mean}, {"MIN", TreeFold::Min}, {"MAX", TreeFold::Max}};
  for (auto [text, fold] : names)
    if (name == text) return fold;
  n.fail("attribute 'aggregate_function' is '" + name + "', which is not one of ONNX's");
  return TreeFold::Sum;
}

/// x in the type in which it is compared: f64 stays, all else is f32.
UOpRef comparable(Node &n) {
  UOpRef x = n.in(0);
  return !x || x->dtype == DType::F64 ? x : n.cast(x, DType::F32);
}

void regressor(Node &n) {
  TreeFold fold = foldOf(n, n.stringAttr("aggregate_function", "SUM"));
  ScoreTransform transform = scoreTransform(n, n.stringAttr("post_transform", "NONE"));
  std::vector<double> base = precise(n, "base_values");
  int64_t targets = n.intAttr("n_targets", 1);
  std::optional<Named> named = namedNodes(n);
  if (!named || !readVotes(n, *named, "target")) return;
  named->ensemble.targets = targets;
  UOpRef s = compose::plusBase(n, treeScores(n, comparable(n), named->ensemble, fold), base);
  if (targets == 1 && transform != ScoreTransform::Probit) transform = ScoreTransform::None; // as ONNX Runtime has it
  n.give(n.cast(transformed(n, s, transform), DType::F32));
}

/// Two classes are as ONNX Runtime has them.
void classifier(Node &n) {
  ScoreTransform transform = scoreTransform(n, n.stringAttr("post_transform", "NONE"));
  Ints labels = classLabels(n, "classlabels_int64s", "classlabels_strings");
  std::vector<double> base = precise(n, "base_values");
  std::optional<Named> named = namedNodes(n);
  if (!named || !readVotes(n, *named, "class")) return;
  named->ensemble.targets = labels.size();
  compose::Classified r = treeClasses(n, comparable(n), named->ensemble, base, labels, transform);
  n.give(r.label);
  if (n.wants(1)) n.give(1, n.cast(r.scores, DType::F32));
}

/// Inner nodes and leaves apart. A node that asks for a member of a set is a chain of comparisons with its members.
void treeEnsemble(Node &n) {
  constexpr TreeNode::Mode modes[] = {TreeNode::AtMost,  TreeNode::Less,  TreeNode::AtLeast,
                                      TreeNode::Greater, TreeNode::Equal, TreeNode::NotEqual};
  constexpr TreeFold folds[] = {TreeFold::Mean, TreeFold::Sum, TreeFold::Min, TreeFold::Max};
  constexpr ScoreTransform transforms[] = {ScoreTransform::None, ScoreTransform::Softmax, ScoreTransform::Logistic,
                                           ScoreTransform::SoftmaxZero, ScoreTransform::Probit};
  constexpr size_t member = std::size(modes);
  int64_t fold = n.intAttr("aggregate_function", 1), transform = n.intAttr("post_transform", 0);
  if (fold < 0 || fold > 3) n.fail("attribute 'aggregate_function' is " + llvm::Twine(fold) + ", expected 0 to 3");
  if (transform < 0 || transform > 4)
    n.fail("attribute 'post_transform' is " + llvm::Twine(transform) + ", expected 0 to 4");
  n.ignoreAttr("nodes_hitrates");
  Ints roots = n.intsAttr("tree_roots"), features = n.intsAttr("nodes_featureids"),
       yes = n.intsAttr("nodes_truenodeids"), no = n.intsAttr("nodes_falsenodeids"),
       yesLeaf = n.intsAttr("nodes_trueleafs"), noLeaf = n.intsAttr("nodes_falseleafs"),
       missing = n.intsAttr("nodes_missing_value_tracks_true"), targets = n.intsAttr("leaf_targetids");
  std::vector<double> values = tensorNumbers(n, "nodes_splits"), asked = tensorNumbers(n, "nodes_modes"),
                      weights = tensorNumbers(n, "leaf_weights"), members;
  if (n.hasAttr("membership_values")) members = tensorNumbers(n, "membership_values");
  size_t count = features.size(), leaves = targets.size(), next = 0;
  if (n.failed() || !sameLength(n, yes.size(), count, "nodes_truenodeids") ||
      !sameLength(n, no.size(), count, "nodes_falsenodeids") ||
      !sameLength(n, yesLeaf.size(), count, "nodes_trueleafs") ||
      !sameLength(n, noLeaf.size(), count, "nodes_falseleafs") ||
      !sameLength(n, values.size(), count, "nodes_splits") || !sameLength(n, asked.size(), count, "nodes_modes") ||
      !sameLength(n, weights.size(), leaves, "leaf_weights") ||
      (!missing.empty() && !sameLength(n, missing.size(), count, "nodes_missing_value_tracks_true")))
    return;
  TreeEnsemble e;
  e.targets = n.intAttr("n_targets", 1);
  e.nodes.resize(count);
  constexpr size_t mostNodes = 1 << 26;
  /// A leaf of its own for each edge that leads to it: trees may share leaves, and a tree of one leaf has both edges.
  auto child = [&](int64_t id, int64_t isLeaf) -> int64_t {
    size_t limit = isLeaf ? leaves : count;
    if (id < 0 || size_t(id) >= limit) return -1;
    if (!isLeaf) return id;
    e.nodes.push_back({});
    e.votes.push_back({int64_t(e.nodes.size()) - 1, targets[id], weights[id]});
    return int64_t(e.nodes.size()) - 1;
  };
  for (size_t i = 0; i < count && !n.failed(); ++i) {
    if (asked[i] > double(member))
      n.fail("attribute 'nodes_modes' has " + llvm::Twine(int64_t(asked[i])) + ", expected 0 to 6");
    bool inSet = asked[i] == double(member), goes = !missing.empty() && missing[i] != 0;
    std::vector<double> tests = {values[i]};
    if (inSet) {
      tests.clear();
      for (; next < members.size() && !std::isnan(members[next]); ++next) tests.push_back(members[next]);
      ++next;
      if (tests.empty()) n.unsupported("node " + llvm::Twine(i) + " asks for a member of an empty set");
    }
    size_t at = i;
    for (size_t k = 0; k < tests.size() && !n.failed(); ++k) {
      bool last = k + 1 == tests.size();
      if (e.nodes.size() + 3 > mostNodes) n.unsupported("trees of more than 2^26 nodes are not supported");
      if (k && yesLeaf[i] == 0) n.unsupported("a set of several members whose node leads to no leaf is not supported");
      int64_t yesNode = child(yes[i], yesLeaf[i]), noNode = last ? child(no[i], noLeaf[i]) : int64_t(e.nodes.size());
      if (!last) e.nodes.push_back({});
      TreeNode &node = e.nodes[at];
      node = {inSet ? TreeNode::Equal : modes[size_t(asked[i])], goes, features[i], tests[k], yesNode, noNode};
      at = size_t(noNode);
    }
  }
  for (int64_t root : roots) e.roots.push_back(root);
  if (n.failed()) return;
  for (int64_t &root : e.roots)
    if (root >= 0 && size_t(root) < count && yes[root] == no[root] && yesLeaf[root] && noLeaf[root]) {
      e.nodes[root].mode = TreeNode::Leaf; // a tree of one leaf
      e.votes.push_back({root, targets[yes[root]], weights[yes[root]]});
    }
  UOpRef x = n.in(0);
  UOpRef s = x ? treeScores(n, n.widen(x), e, folds[fold]) : nullptr;
  if (s) n.give(n.cast(transformed(n, s, transforms[transform]), x->dtype));
}

constexpr Types numbers = only(DType::F32) | only(DType::F64) | only(DType::I64) | only(DType::I32);
constexpr Types floats = only(DType::F16) | only(DType::F32) | only(DType::F64);

constexpr Row rows[] = {
    {"ai.onnx.ml::TreeEnsembleRegressor", 1, latest, 1, 1, regressor, numbers,
     "of one target PROBIT alone changes a score, as in ONNX Runtime"},
    {"ai.onnx.ml::TreeEnsembleClassifier", 1, latest, 1, 1, classifier, numbers,
     "labels are integers; with votes for both of two classes that of the greater score"},
    {"ai.onnx.ml::TreeEnsemble", 5, latest, 1, 1, treeEnsemble, floats,
     "a set of several members leads to a leaf; post_transform 1 is SOFTMAX and 2 LOGISTIC, as the specification "
     "numbers them (ONNX Runtime has the two the other way round)"},
};

} // namespace

llvm::ArrayRef<Row> treeRows() { return rows; }

} // namespace astra::onnx
