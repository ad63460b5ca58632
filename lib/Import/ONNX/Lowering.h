//===- Lowering.h: the nodes of a graph, and graphs inside of nodes --------===//
// Takes:    graphs of a parsed model: its own, those in attributes, the bodies of its functions.
// Gives:    the values of their names, as UOps; the sentences of what failed.
// Keeps:    nodes are lowered in the file's order where that is topological, as ONNX wants it, else sorted, with a note
//           (Order.h). A failure poisons what follows from it, so that one run reports the faults that are
//           independent. Graphs nest at most `deepest` deep, and functions and loops expand to at most 100,000 nodes
//           more than the graph has.
// Does not: know an op (Ops*.cpp), or the model's inputs and outputs (Importer.cpp).
#pragma once
#include "Failures.h"
#include "OpTable.h"
#include "Order.h"
#include "astra/Import/ONNX.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace astra::onnx {

namespace proto {
class Function;
class Graph;
class OperatorSet;
class Value;
} // namespace proto

/// What the nodes of one graph see.
struct Scope {
  const Scope *outer = nullptr;                                    // around a graph in an attribute; null elsewhere
  llvm::StringMap<UOpRef> values;                                  // null: its node failed, and was reported
  llvm::StringMap<ListRef> lists;                                  // what is a sequence
  llvm::StringSet<> absent;                                        // what is nothing (Held)
  const llvm::StringMap<const proto::Attribute *> *call = nullptr; // in a function: its attributes
  const llvm::StringMap<int64_t> *opsets = nullptr;                // by domain; the default one is ""
  std::string where;                                               // words before the description of a node
  unsigned depth = 0;
};

/// Arguments have numbers up to 65535: the lower half is for the model's inputs, the upper one for placeholders.
constexpr int64_t mostInputs = 32768;

class Lowering {
public:
  Lowering(Module &module, ModelFile &file, const ImportOptions &options);

  /// The parameters of a graph's initializers; `consumed` is told the number of each that was read.
  llvm::Error constants(const proto::Graph &graph, Scope &scope, llvm::function_ref<void(int)> consumed = nullptr);
  void nodes(const proto::Graph &graph, Scope &scope);
  /// Before the model's graph is lowered once more, as training sees it.
  void beginAgain() { lowered = 0, shared.randomStreams = 0; }
  /// Whether a training replaces an initializer: PyTorch's exporter says which are buffers.
  ParamKind kindOf(llvm::StringRef initializer) const;
  /// Whether an initializer of rank 0 of the model's own graph is a parameter: where a training may replace it, or a
  /// file of weights has it.
  bool keepsScalar(llvm::StringRef initializer) const;
  bool define(Scope &scope, const std::string &name, UOpRef value, llvm::StringRef what, ListRef list = nullptr);
  bool define(Scope &scope, const std::string &name, const Held &value, llvm::StringRef what);

  /// The outputs of a graph in an attribute with these values for its inputs; nothing after a failure, which is
  /// reported. `what` names the graph in sentences.
  std::optional<std::vector<UOpRef>> body(const proto::Graph &graph, llvm::ArrayRef<UOpRef> inputs, const Scope &outer,
                                          const llvm::Twine &what);
  /// The same of a graph that takes and gives whatever a name stands for.
  std::optional<std::vector<Held>> heldBody(const proto::Graph &graph, llvm::ArrayRef<Held> inputs, const Scope &outer,
                                            const llvm::Twine &what);

  /// What --dim says of a name; null when it says nothing. byAny: --dim '*=1..64' says it of any.
  const DimBound *bound(llvm::StringRef name, bool byAny = false);
  /// The values of names that these nodes of a graph, which follow from one another in this order, give or that are
  /// known around; null for one that failed. No failure is reported.
  std::vector<UOpRef> part(const proto::Graph &graph, llvm::ArrayRef<UOpRef> inputs, const Scope &outer,
                           llvm::ArrayRef<int> nodes, llvm::ArrayRef<std::string> names);

  /// An argument for a body that is being lowered, like no other; null when there are too many.
  std::optional<int64_t> placeholder();
  /// Whether a value follows from a placeholder: it is another one in every trip of a loop. Answers are kept.
  bool isOfBody(UOpRef x);

  Module &module;
  ModelFile &file;
  const ImportOptions &options;
  Shared shared;
  const DimFlags hints{*this};
  Scope top;
  llvm::StringMap<std::string> stated; // what the file says that its initializers are (torch.export's InputKind)
  Failures failures;
  llvm::StringSet<> boundsUsed;
  llvm::StringSet<> loopDims, loopFlags; // names of dims that loops carry, and of their flags

private:
  using Opsets = llvm::StringMap<int64_t>;
  std::string describe(const proto::Node &node, int index, const Scope &scope) const;
  void node(const proto::Node &node, int index, Scope &scope);
  void rowNode(const proto::Node &node, int index, Scope &scope, const Row &row);
  void call(const proto::Function &function, const proto::Node &node, int index, Scope &scope);
  /// The values of a node's inputs, null for those left out and for sequences.
  struct Inputs {
    std::vector<UOpRef> values;
    std::vector<ListRef> lists;
  };
  /// Nothing when one of them failed, or after a failure.
  std::optional<Inputs> inputs(const proto::Node &node, int index, const Scope &scope);
  void poison(const proto::Node &node, Scope &scope);
  /// The order of a graph's nodes, made once for each `graph`; a cycle is a failure, and poisons what is on it.
  const std::vector<int> &ordered(const void *graph, const ProtoNodes &nodes, Scope &scope);

  Opsets opsets;
  llvm::StringMap<const proto::Function *> functions; // by key
  llvm::StringMap<Opsets> functionOpsets;
  llvm::DenseMap<const void *, UOpRef> initializers; // by tensor
  std::map<const void *, Order> orders;              // by graph or function
  bool sorted = false;                               // some graph was, and a note says so
  unsigned lowered = 0;
  int64_t placeholders = 0;
  llvm::DenseMap<UOpRef, bool> ofBody;
};

} // namespace astra::onnx
