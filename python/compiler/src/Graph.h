//===- Graph.h: a graph that Python builds ----------------------------------===//
// Takes:    values and numbers from Python, checked by the Composer.
// Gives:    leaves, derivatives, batching, substitution, bodies of control ops, modules.
// Keeps:    all that is free in a graph are `param` nodes: leaves, placeholders of functions being traced. They become
//           arguments, states or parameters when a module or the body of a control op is made.
// Does not: hold data (but that of constants that composites computed), or know Python.
#pragma once
#include "astra/Compose/Composer.h"
#include <memory>
#include <unordered_map>

namespace astra::python {

/// What a node is replaced by.
using Replacement = std::unordered_map<UOpRef, UOpRef>;

/// Where nodes came from, and where those that replace them are to get it.
struct Inherit {
  const Origins *from = nullptr;
  Origins *to = nullptr;
};

/// `roots` in the context `c`, which may be their own or another one, each node of `with` replaced. Iterative, linear.
llvm::Expected<std::vector<UOpRef>> rebuild(Context &c, llvm::ArrayRef<UOpRef> roots, Replacement &with,
                                            Inherit origins = {});

class Graph final : public compose::Composer {
public:
  Graph() : Graph(std::make_shared<Context>()) {}
  explicit Graph(std::shared_ptr<Context> context, const compose::Hints *hints = nullptr)
      : Composer(*context, hints), context(std::move(context)) {}

  std::shared_ptr<Context> context;
  bool gradients = false; // composites are built in the form that is differentiated best
  bool wantsGradients() const override { return gradients; }

  /// A new `param` node. Its name is a number behind "%": unique in the graph.
  UOpRef leaf(DType t, llvm::ArrayRef<UOpRef> shape);
  /// A dim: the same node for one name; an error where its bounds are others.
  llvm::Expected<UOpRef> dim(llvm::StringRef name, int64_t lo, int64_t hi);

  /// The leaves that the roots reach, bodies of control ops too, in order of creation.
  std::vector<UOpRef> leavesOf(llvm::ArrayRef<UOpRef> roots) const;
  /// About how many element operations the roots take, at most 2^62: symbolic extents count at their upper bounds.
  int64_t workOf(llvm::ArrayRef<UOpRef> roots) const;

  /// For each root how many nodes the longest way to it has: what is deeper can be computed later.
  std::vector<int64_t> depthsOf(llvm::ArrayRef<UOpRef> roots) const;

  /// A body and what it closes over.
  struct Closed {
    UOpRef function = nullptr;    // its arguments: the placeholders, then what it closes over
    std::vector<UOpRef> captured; // values outside
  };
  /// The function of `placeholders` that gives `results`. What does not depend on a placeholder is computed outside
  /// where `hoist`; else only what there was before node number `mark`. `also`: closed over first, in this order.
  Closed close(llvm::ArrayRef<UOpRef> results, llvm::ArrayRef<UOpRef> placeholders, uint32_t mark, bool hoist,
               llvm::ArrayRef<UOpRef> also);

  /// Says that what was made since the last call came from this line of the user's.
  void place(llvm::StringRef file, int64_t line);
  /// The user's lines by node. Nodes that a transform made have those of what they came from.
  Origins &origins();

private:
  uint32_t leaves = 0;
  llvm::StringMap<UOpRef> dims;
  std::vector<std::string> places;                         // "file.py:12"
  llvm::StringMap<std::pair<int64_t, uint32_t>> lastPlace; // of a file: its line and number
  std::vector<uint32_t> placeOf;                           // by node: 1 + its number in places; 0: none
  uint32_t known = 0;                                      // nodes whose place is among the origins
  Origins lines;
};

} // namespace astra::python
