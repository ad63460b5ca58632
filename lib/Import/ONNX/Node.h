//===- Node.h: one ONNX node while it is lowered ---------------------------===//
// Takes:    the protobuf node, the values of its inputs.
// Gives:    typed attributes, inputs, what composites ask of a front door (Composer.h), and a place for the outputs.
// Keeps:    the first failure: later ones of the same node are dropped. After a failure every getter still gives a
//           harmless value, so a lowering tests failed() (or a null UOpRef) only before it computes with what it was
//           given.
// Does not: know ops (OpTable.cpp).
#pragma once
#include "../DimHints.h"
#include "List.h"
#include "ModelFile.h"
#include "astra/Compose/Composer.h"
#include "llvm/ADT/StringSet.h"

namespace astra::onnx {

namespace proto {
class Attribute;
class Graph;
class Node;
} // namespace proto

class Lowering;
struct Scope;

/// What the nodes of one import share.
struct Shared {
  Shared(Context &c, const ModelFile &file);
  Shared(const Shared &) = delete;
  Builder b;
  const ModelFile &file;
  compose::Known known;
  uint32_t randomStreams = 0; // taken by random nodes without a seed
  struct Training {
    bool on = false;
    UOpRef key = nullptr;                           // the state of random numbers, once a node has asked for it
    std::vector<std::pair<UOpRef, UOpRef>> running; // parameters, and what they become
    std::vector<UOpRef> counts;                     // of values that batch norms take the statistics of a channel from
  } training;                                       // of the second entry (ImportOptions)
  std::vector<Param> params; // of every initializer; those that nothing reads are dropped at the end
  llvm::StringSet<> scalars; // parameters of rank 0

  /// A parameter with these bytes; a literal when the payload is a scalar that is not kept. A name
  /// that is taken gets a suffix; what is no weight and has been made before, when the graph was lowered for inference,
  /// is that.
  llvm::Expected<UOpRef> constant(llvm::StringRef name, Payload payload, ParamKind kind, bool keepScalar = false);

  /// The bytes of a parameter made here; null for any other node.
  const std::vector<uint8_t> *bytes(UOpRef param) const;

private:
  std::map<std::string, size_t> byName;
  std::map<size_t, llvm::SmallVector<size_t, 1>> byContent; // of a hash of the name asked for and the bytes
  std::map<std::string, unsigned> suffixes; // the last that a name got: bodies of functions have theirs in every call
};

using compose::Dims;
using compose::dimsText;
using compose::indexParts;
using compose::Ints;
using compose::isDataDim;

class Node : public compose::Composer {
public:
  /// `lists`: the inputs that are sequences; empty, or as long as `inputs`, which have null there.
  Node(Lowering &lowering, const proto::Node &node, const Scope &scope, std::vector<UOpRef> inputs,
       std::vector<ListRef> lists = {});

  int64_t opset; // of the default domain

  const std::string &opType() const;

  /// A failure whose sentence is in the list of failures already.
  void failReported() { setFailure({"", false, true}); }
  bool wasReported() const { return state.reported; }

  /// "; if it is the same in every call, give --constant k=FILE.npy", for a value that follows from input k of the
  /// model and should be known; "" when it follows from none.
  std::string cause(UOpRef x) const;

  // ---- inputs: has(i) is false for an optional input that is absent
  unsigned numInputs() const { return inputs.size(); }
  bool has(unsigned i) const { return i < inputs.size() && inputs[i]; }
  /// For a row that another one finishes.
  void setInput(unsigned i, UOpRef x) { inputs[i] = x; }
  UOpRef in(unsigned i);
  bool isList(unsigned i) const { return i < lists.size() && lists[i]; }
  /// Whatever an input stands for; nothing, where it is left out.
  Held held(unsigned i) const { return {has(i) ? inputs[i] : nullptr, isList(i) ? lists[i] : nullptr}; }
  /// An input that must be a sequence; null, and a failure, where it is none.
  ListRef list(unsigned i);
  /// The elements of an input that must be known while importing (a shape, axes, ...), as symbolic integers or as
  /// constants. `what` names it in the failure.
  Dims knownDims(unsigned i, const char *what);
  Ints knownInts(unsigned i, const char *what);
  /// The bits of an input that is there, if it is a literal of one element.
  std::optional<uint64_t> knownBits(unsigned i) const;
  /// The bits of an input that must be a literal of one element; `otherwise` when it is absent.
  uint64_t literalBits(unsigned i, const char *what, uint64_t otherwise);
  /// The same as a number, of an integer or float type.
  double literalNumber(unsigned i, const char *what);
  const std::vector<UOpRef> *elements(UOpRef x) override { return x ? shared.known.elements(x) : nullptr; }
  /// A scalar of any type that is an integer and known; else null.
  UOpRef knownInteger(UOpRef x) {
    const std::vector<UOpRef> *numbers = x ? shared.known.required(x) : nullptr;
    return numbers && numbers->size() == 1 ? numbers->front() : nullptr;
  }
  /// Whether knownDims gives its elements.
  bool isRequiredKnown(UOpRef x) { return shared.known.required(x) != nullptr; }
  /// The bytes of a parameter; null for any other node.
  const std::vector<uint8_t> *bytes(UOpRef param) const override { return shared.bytes(param); }

  // ---- attributes: each is read by the lowering that understands it; one that nobody read is a failure
  bool hasAttr(llvm::StringRef name) { return find(name, false); }
  int64_t intAttr(llvm::StringRef name, int64_t otherwise);
  double floatAttr(llvm::StringRef name, double otherwise);
  std::string stringAttr(llvm::StringRef name, llvm::StringRef otherwise);
  Ints intsAttr(llvm::StringRef name, llvm::ArrayRef<int64_t> otherwise = {});
  llvm::SmallVector<float, 4> floatsAttr(llvm::StringRef name);
  std::vector<std::string> stringsAttr(llvm::StringRef name);
  std::optional<Payload> tensorAttr(llvm::StringRef name); // dense or sparse
  /// The graph in an attribute; null, and a failure, when there is none.
  const proto::Graph *graphAttr(llvm::StringRef name);
  /// An attribute whose value cannot matter.
  void ignoreAttr(llvm::StringRef name) { attribute(name); }
  void checkAttributes();

  // ---- graphs inside of the node (OpsControl.cpp)
  Lowering &lowering;
  const Scope &scope;
  /// "Loop 'decode'", to begin a sentence about a graph inside.
  std::string title() const;
  std::string name() const;

  // ---- outputs
  bool wants(unsigned i) const;
  unsigned numOutputs() const;
  void give(UOpRef value) { give(0, value); }
  /// Null is a failure.
  void give(unsigned i, UOpRef value);
  void give(unsigned i, ListRef list);
  void give(unsigned i, const Held &value);
  Held output(unsigned i) const { return {results[i], listResults[i]}; }
  /// Whether an output was given, be it nothing.
  bool isGiven(unsigned i) const { return given[i]; }

  // ---- what composites ask for
  uint32_t nextRandomStream() override { return ++shared.randomStreams; } // in the order of the nodes
  bool wantsGradients() const override { return shared.training.on; }
  std::optional<int64_t> placeholder() override;
  UOpRef constant(Payload payload) override { return parameter(std::move(payload)); }
  /// Whether the entry for training is made; else null.
  Shared::Training *training() const { return shared.training.on ? &shared.training : nullptr; }
  /// The payload as a parameter named after this node's first output: one that is computed, or `Fixed`, as the model
  /// has it.
  UOpRef parameter(Payload payload, ParamKind kind = ParamKind::Constant);
  /// Scalars that a training would replace and that are settings of the op (Row) become literals.
  void readSettings(uint32_t settings);

private:
  const proto::Attribute *find(llvm::StringRef name, bool read);
  const proto::Attribute *attribute(llvm::StringRef name) { return find(name, true); }

  Shared &shared;
  const proto::Node &node;
  std::vector<UOpRef> inputs, results;
  std::vector<ListRef> lists, listResults; // null: no sequence
  std::vector<bool> attributesRead, given;
};

/// The hints of a command line: flags.
class DimFlags : public compose::Hints {
public:
  explicit DimFlags(Lowering &lowering) : lowering(lowering) {}
  std::string bound(UOpRef extent, int64_t least) const override;
  std::string sign(UOpRef extent) const override;
  std::string fix(llvm::ArrayRef<UOpRef> extents) const override;
  std::string equal(UOpRef x, UOpRef y) const override;
  std::string multiple(llvm::ArrayRef<UOpRef> extents,
                       llvm::function_ref<bool(compose::WithMultiples)> holds) const override;
  std::string means() const override { return " with --dim"; }
  std::string option(llvm::StringRef name) const override { return ("attribute '" + name + "'").str(); }

private:
  Lowering &lowering;
};

/// How to say that two extents are equal.
std::string equalHint(Lowering &lowering, UOpRef x, UOpRef y);
/// Two hints as one sentence; either may be "".
inline std::string orElse(const std::string &hint, const std::string &other) {
  return compose::Hints::orElse(hint, other);
}

} // namespace astra::onnx
