//===- Node.h: one ONNX node while it is lowered ---------------------------===//
// Takes:    the protobuf node, the values of its inputs.
// Gives:    typed attributes, inputs, checked ways to build UOps from user input, and a place for the outputs.
// Keeps:    the first failure: later ones of the same node are dropped. After a failure every getter still gives a
//           harmless value, so a lowering tests failed() (or a null UOpRef) only before it computes with what it was
//           given.
// Does not: know ops (OpTable.cpp).
#pragma once
#include "Known.h"
#include "List.h"
#include "ModelFile.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Contract.h"
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
  Known known;
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

using Dims = llvm::SmallVector<UOpRef, 4>;
using Ints = llvm::SmallVector<int64_t, 4>;

class Node {
public:
  /// `lists`: the inputs that are sequences; empty, or as long as `inputs`, which have null there.
  Node(Lowering &lowering, const proto::Node &node, const Scope &scope, std::vector<UOpRef> inputs,
       std::vector<ListRef> lists = {});

  Builder &b;
  Context &c;
  int64_t opset; // of the default domain

  const std::string &opType() const;

  // ---- failure
  /// Records the sentence and gives null.
  UOpRef fail(const llvm::Twine &sentence);
  /// The same for what ONNX allows and Astra does not have: the tools' exit code tells the two apart.
  UOpRef unsupported(const llvm::Twine &sentence);
  /// A failure whose sentence is in the list of failures already.
  void failReported() { state = {"", false, true}; }
  bool isUnsupported() const { return state.beyond; }
  bool wasReported() const { return state.reported; }
  bool failed() const { return state.error.has_value(); }
  const std::string &failure() const { return *state.error; }
  /// For a lowering that tries another way.
  struct Failure {
    std::optional<std::string> error;
    bool beyond = false, reported = false;
  };
  Failure takeFailure() { return std::exchange(state, {}); }
  void setFailure(Failure f) { state = std::move(f); }

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
  const std::vector<UOpRef> *elements(UOpRef x) { return x ? shared.known.elements(x) : nullptr; }
  /// A scalar of any type that is an integer and known; else null.
  UOpRef knownInteger(UOpRef x) {
    const std::vector<UOpRef> *numbers = x ? shared.known.required(x) : nullptr;
    return numbers && numbers->size() == 1 ? numbers->front() : nullptr;
  }
  /// Whether knownDims gives its elements.
  bool isRequiredKnown(UOpRef x) { return shared.known.required(x) != nullptr; }
  /// The bytes of a parameter; null for any other node.
  const std::vector<uint8_t> *bytes(UOpRef param) const { return shared.bytes(param); }

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
  /// An attribute that may have one value only.
  void fixedAttr(llvm::StringRef name, int64_t value);
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
  llvm::ArrayRef<UOpRef> outputs() const { return results; }
  llvm::ArrayRef<ListRef> listOutputs() const { return listResults; }

  // ---- checked building, op by op like Builder: a refusal by the op's type rule is a failure; null after one, and
  // null when a source is null
  UOpRef make(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints = {}, DType dtype = DType::Void);
  UOpRef un(Op op, UOpRef x) { return make(op, {x}); }
  /// Both sources are broadcast to their common shape.
  UOpRef bin(Op op, UOpRef x, UOpRef y);
  /// y is a literal of x's dtype.
  UOpRef bin(Op op, UOpRef x, double y) { return bin(op, x, literal(x, y)); }
  /// The stream of the random generator (N13) for a node without a seed: 1 and up, in the order of the nodes.
  uint32_t nextRandomStream() { return ++shared.randomStreams; }
  /// Whether the entry for training is made; else null.
  Shared::Training *training() const { return shared.training.on ? &shared.training : nullptr; }
  /// The payload as a parameter named after this node's first output: one that is computed, or `Fixed`, as the model
  /// has it.
  UOpRef parameter(Payload payload, ParamKind kind = ParamKind::Constant);
  /// Scalars that a training would replace and that are settings of the op (Row) become literals.
  void readSettings(uint32_t settings);
  /// A scalar of like's dtype, rounded once.
  UOpRef literal(UOpRef like, double value);
  UOpRef select(UOpRef condition, UOpRef x, UOpRef y);
  UOpRef cast(UOpRef x, DType to, bool saturate = false);
  UOpRef iota(DType t, llvm::ArrayRef<UOpRef> dims, int64_t axis) { return make(Op::Iota, dims, {axis}, t); }
  UOpRef fromIndex(UOpRef index, DType t) { return make(Op::FromIndex, {index}, {}, t); }
  UOpRef reshape(UOpRef x, llvm::ArrayRef<UOpRef> dims);
  UOpRef permute(UOpRef x, llvm::ArrayRef<int64_t> perm);
  /// x under NumPy's rules for one operand: missing leading axes and axes of extent 1 are repeated.
  UOpRef broadcastTo(UOpRef x, llvm::ArrayRef<UOpRef> dims);
  UOpRef pad(UOpRef x, llvm::ArrayRef<UOpRef> lo, llvm::ArrayRef<UOpRef> hi, uint64_t bits);
  UOpRef shrink(UOpRef x, llvm::ArrayRef<UOpRef> begin, llvm::ArrayRef<UOpRef> size);
  /// x with zeros after its axis where bounds do not show that the axis has `length` elements, though it has: what is
  /// cut from it then fits.
  UOpRef withRoom(UOpRef x, int64_t axis, UOpRef length);
  UOpRef concat(llvm::ArrayRef<UOpRef> xs, int64_t axis);
  /// The axes stay, with extent 1. No axes: x.
  UOpRef reduce(ReduceKind kind, UOpRef x, llvm::ArrayRef<int64_t> axes, bool chain = false);
  UOpRef contract(const ContractSpec &spec, UOpRef x, UOpRef y, llvm::ArrayRef<UOpRef> extents);
  /// x without axes of extent 1 / with axes of extent 1 put in at these places of the result. Ascending, in range.
  UOpRef squeeze(UOpRef x, llvm::ArrayRef<int64_t> axes);
  UOpRef unsqueeze(UOpRef x, llvm::ArrayRef<int64_t> axes);
  /// x of rank 1 as [C, 1, ...]: it broadcasts along axis 1 of `rank` axes.
  UOpRef perChannel(UOpRef x, unsigned rank);

  // ---- shapes
  /// The common shape of all of them; fails when two extents differ and neither is 1, or are not known to be equal.
  Dims broadcastShape(llvm::ArrayRef<llvm::ArrayRef<UOpRef>> shapes);
  /// A negative axis counts from the back; fails outside [-rank, rank), and then gives 0.
  int64_t axis(int64_t value, int64_t rank);
  /// The same for a list: ascending, without duplicates.
  Ints axes(llvm::ArrayRef<int64_t> values, int64_t rank);
  /// Whether two extents are one; a failure that begins with `what` when they differ or are not known to be equal.
  /// Extents that should have been equal: a failure, or, where they may be, unsupported, with the flag that says so.
  UOpRef failExtents(const llvm::Twine &sentence, llvm::ArrayRef<UOpRef> found, llvm::ArrayRef<UOpRef> expected);
  bool requireEqual(UOpRef x, UOpRef y, const llvm::Twine &what, const char *otherwise = " are not equal");
  /// Whether an extent is `least` or more for all values of the dims. Else the sentence is "WHAT EXTENT is WORDS", or,
  /// not supported where some values would do, "WHAT EXTENT may be WORDS" with the bounds of a dim between which it is.
  bool requireLeast(UOpRef extent, int64_t least, const llvm::Twine &what, const llvm::Twine &words);
  /// The constant extent of an axis; not supported when it is symbolic, and then 1.
  int64_t constExtent(UOpRef x, unsigned axis, const char *what);
  /// Whether x is there and its rank is in range.
  bool requireRank(UOpRef x, unsigned least, unsigned most = 64);
  bool requireFloat(UOpRef x);

  /// Composites on f16 and bf16 compute in f32 and round once (N4): x widened. The way back is cast(result,
  /// in(0)->dtype).
  UOpRef widen(UOpRef x) { return x && (x->dtype == DType::F16 || x->dtype == DType::BF16) ? cast(x, DType::F32) : x; }

private:
  UOpRef folded(UOpRef x);
  const proto::Attribute *find(llvm::StringRef name, bool read);
  const proto::Attribute *attribute(llvm::StringRef name) { return find(name, true); }

  Shared &shared;
  const proto::Node &node;
  std::vector<UOpRef> inputs, results;
  std::vector<ListRef> lists, listResults; // null: no sequence
  std::vector<bool> attributesRead;
  Failure state;
};

/// "; give --dim h=3..64", the widest bounds of one dim within its own between which the extent is `least` or more; ""
/// where bounds of one dim do not say so.
std::string boundHint(Context &c, UOpRef extent, int64_t least);
std::string signHint(UOpRef extent);

/// "; fix h and w with --dim h=N --dim w=N", for what holds for some values of the dims; "" where there are none.
std::string fixHint(llvm::ArrayRef<UOpRef> extents);
/// How to say that two extents are equal.
std::string equalHint(Lowering &lowering, UOpRef x, UOpRef y);
/// Two hints as one sentence; either may be "".
std::string orElse(const std::string &hint, const std::string &other);
/// The symbolic integers that an extent is made of, sources first. An `extent` is a part; the tensor below it is none.
std::vector<UOpRef> indexParts(UOpRef extent);
/// Whether an extent follows from data: it is known when what counts it has run.
bool isDataDim(UOpRef extent);
/// "[batch, 3, 224]", for diagnostics.
std::string dimsText(llvm::ArrayRef<UOpRef> dims);

} // namespace astra::onnx
