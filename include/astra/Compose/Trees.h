//===- Trees.h: ensembles of decision trees --------------------------------===//
// Takes:    features [N, F] and the nodes of trees, known while building, which may be wrong in every way.
// Gives:    for all trees at once as many steps as the deepest has, each a comparison and an index: code without a
//           branch. A leaf stays where it is; trees that are about complete are tables of their levels, in which it has
//           itself below.
// Keeps:    the sum over the trees in the order lane64 (N4).
#pragma once
#include "astra/Compose/Scores.h"

namespace astra::compose {

struct TreeNode {
  enum Mode : uint8_t { AtMost, Less, AtLeast, Greater, Equal, NotEqual, Leaf } mode = Leaf;
  bool missingGoes = false; // a NaN goes to `yes`
  int64_t feature = 0;
  double value = 0;          // what the feature is compared with
  int64_t yes = -1, no = -1; // numbers of nodes: where the comparison holds, and where not
};

struct TreeVote {
  int64_t leaf, target;
  double weight;
};

struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<TreeVote> votes; // a leaf may have several, of one target too
  int64_t targets = 1;
};

enum class TreeFold { Sum, Mean, Min, Max }; // the last two of the trees that vote for a target; 0 where none does

/// Scores [N, targets] of x [N, F], f32 or f64, in which thresholds and weights are rounded.
UOpRef treeScores(Composer &b, UOpRef x, const TreeEnsemble &ensemble, TreeFold fold);

/// Votes for classes, of which there are two or more: the label of the greatest sum with its base, and what the sums
/// become. Where all votes are for one of two classes, its sum says which: above 1/2 if no vote is negative, else above
/// 0; it becomes the scores of both.
Classified treeClasses(Composer &b, UOpRef x, const TreeEnsemble &ensemble, llvm::ArrayRef<double> base,
                       llvm::ArrayRef<int64_t> labels, ScoreTransform transform);

} // namespace astra::compose
