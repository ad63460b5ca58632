//===- Composer.h: checked building, and what composites ask a front door --===//
// Takes:    a Context, values that come from a user and may be wrong in every way, what a front door provides.
// Gives:    one function per op as Builder has them, with NumPy's broadcasting, each of which refuses with a sentence
//           instead of stopping the program; checks of operands; the first failure.
// Keeps:    the first failure, later ones are dropped. After it every function gives null, or a harmless value where it
//           gives none of the graph: a composite tests failed(), or a value for null, only before it computes with it.
// Does not: read a model, or name a parameter (a front door derives from it: lib/Import/ONNX/Node.h).
#pragma once
#include "astra/Compose/Hints.h"
#include "astra/Compose/Known.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Module.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace astra::compose {

using Dims = llvm::SmallVector<UOpRef, 4>; // symbolic integers
using Ints = llvm::SmallVector<int64_t, 4>;

/// A dense tensor: row-major little-endian bytes.
struct Payload {
  DType dtype;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
};

class Composer {
public:
  /// Without `hints` a sentence ends with what was found and expected. They must live as long as the Composer.
  explicit Composer(Context &context, const Hints *hints = nullptr);
  Composer(const Composer &) = delete;
  virtual ~Composer();

  Builder b; // unchecked: for literals and leaves
  Context &c;
  const Hints &hints;

  // ---- what a front door may provide

  /// Whether derivatives will be taken of the graph: some composites then have a form with the same values whose
  /// derivative is finite, or takes less memory.
  virtual bool wantsGradients() const { return false; }
  /// A tensor that was computed while building, as a node: a parameter of kind Constant, or a literal where it has rank
  /// 0. By default it is named "constant.N" and kept in `params`. Null after a failure.
  virtual UOpRef constant(Payload payload);
  /// The bytes of a parameter, while they are known; null for any other node.
  virtual const std::vector<uint8_t> *bytes(UOpRef param) const;
  /// The elements of an integer tensor where they follow from constants and shapes, as symbolic integers (Known.h);
  /// else null. The pointer holds until the next call.
  virtual const std::vector<UOpRef> *elements(UOpRef x);
  /// The stream of the random generator (N13) for values without a seed: 1 and up.
  virtual uint32_t nextRandomStream() { return ++streams; }
  /// The number of an argument that stands for one of a function while its body is built (Closure.h), like no other;
  /// nothing when there are too many.
  virtual std::optional<int64_t> placeholder();

  /// What `constant` made by default, to be moved to a Module.
  std::vector<Param> params;

  // ---- failure

  /// Records the sentence and gives null.
  UOpRef fail(const llvm::Twine &sentence);
  /// The same for what has a meaning and is not supported: callers tell the two apart.
  UOpRef unsupported(const llvm::Twine &sentence);
  bool isUnsupported() const { return state.beyond; }
  bool failed() const { return state.error.has_value(); }
  const std::string &failure() const { return *state.error; }
  /// For a composite that tries another way.
  struct Failure {
    std::optional<std::string> error;
    bool beyond = false;
    bool reported = false; // the front door has told its user already
  };
  Failure takeFailure() { return std::exchange(state, {}); }
  void setFailure(Failure f) { state = std::move(f); }

  // ---- checked building, op by op like Builder: a refusal by the op's type rule is a failure; null after one, and
  // null when a source is null. What is made of literals alone is a literal.

  UOpRef make(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints = {}, DType dtype = DType::Void);
  UOpRef un(Op op, UOpRef x) { return make(op, {x}); }
  /// Both sources are broadcast to their common shape.
  UOpRef bin(Op op, UOpRef x, UOpRef y);
  /// y is a literal of x's dtype.
  UOpRef bin(Op op, UOpRef x, double y) { return bin(op, x, literal(x, y)); }
  /// A scalar of like's dtype, rounded once; an integer type must hold it.
  UOpRef literal(UOpRef like, double value);
  UOpRef select(UOpRef condition, UOpRef x, UOpRef y);
  UOpRef cast(UOpRef x, DType to, bool saturate = false);
  UOpRef iota(DType t, llvm::ArrayRef<UOpRef> dims, int64_t axis) { return make(Op::Iota, dims, {axis}, t); }
  UOpRef fromIndex(UOpRef index, DType t) { return make(Op::FromIndex, {index}, {}, t); }
  /// A symbolic integer as a scalar: a literal when it is constant.
  UOpRef scalar(UOpRef index, DType t);
  UOpRef reshape(UOpRef x, llvm::ArrayRef<UOpRef> dims);
  UOpRef permute(UOpRef x, llvm::ArrayRef<int64_t> perm);
  UOpRef flip(UOpRef x, int64_t axis) { return make(Op::Flip, {x}, {axis}); }
  /// x under NumPy's rules for one operand: missing leading axes and axes of extent 1 are repeated.
  UOpRef broadcastTo(UOpRef x, llvm::ArrayRef<UOpRef> dims);
  UOpRef pad(UOpRef x, llvm::ArrayRef<UOpRef> lo, llvm::ArrayRef<UOpRef> hi, uint64_t bits);
  UOpRef shrink(UOpRef x, llvm::ArrayRef<UOpRef> begin, llvm::ArrayRef<UOpRef> size);
  /// Elements begin ... begin + size - 1 of an axis.
  UOpRef part(UOpRef x, int64_t axis, UOpRef begin, UOpRef size);
  UOpRef part(UOpRef x, int64_t axis, int64_t begin, int64_t size);
  /// Element `at` of an axis, which goes.
  UOpRef element(UOpRef x, int64_t axis, int64_t at);
  /// x with zeros after its axis where bounds do not show that the axis has `length` elements, though it has: what is
  /// cut from it then fits.
  UOpRef withRoom(UOpRef x, int64_t axis, UOpRef length);
  UOpRef concat(llvm::ArrayRef<UOpRef> xs, int64_t axis);
  /// The axes stay, with extent 1. No axes: x. Sums of floats are in the order lane64, or one after the other (N4).
  UOpRef reduce(ReduceKind kind, UOpRef x, llvm::ArrayRef<int64_t> axes, bool chain = false);
  UOpRef contract(const ContractSpec &spec, UOpRef x, UOpRef y, llvm::ArrayRef<UOpRef> extents);
  /// x without axes of extent 1 / with axes of extent 1 put in at these places of the result. Ascending, in range.
  UOpRef squeeze(UOpRef x, llvm::ArrayRef<int64_t> axes);
  UOpRef unsqueeze(UOpRef x, llvm::ArrayRef<int64_t> axes);
  /// x of rank 1 as [C, 1, ...]: it broadcasts along axis 1 of `rank` axes.
  UOpRef perChannel(UOpRef x, unsigned rank);
  /// Composites on f16 and bf16 compute in f32 and round once (N4): x widened. The way back is cast(result, x->dtype).
  UOpRef widen(UOpRef x) { return x && (x->dtype == DType::F16 || x->dtype == DType::BF16) ? cast(x, DType::F32) : x; }
  /// Both operands in the least type that both promote to (DType.h); a failure where there is none.
  std::pair<UOpRef, UOpRef> promoted(UOpRef x, UOpRef y);

  // ---- shapes

  UOpRef idx(int64_t value) { return c.index(value); }
  /// The common shape of all of them; fails when two extents differ and neither is 1, or are not known to be equal.
  Dims broadcastShape(llvm::ArrayRef<llvm::ArrayRef<UOpRef>> shapes);
  /// A negative axis counts from the back; fails outside [-rank, rank), and then gives 0.
  int64_t axis(int64_t value, int64_t rank);
  /// The same for a list: ascending, without duplicates.
  Ints axes(llvm::ArrayRef<int64_t> values, int64_t rank);
  /// Extents that should have been equal: a failure, or, where they may be, unsupported, with a hint.
  UOpRef failExtents(const llvm::Twine &sentence, llvm::ArrayRef<UOpRef> found, llvm::ArrayRef<UOpRef> expected);
  /// Whether two extents are one; a failure that names `what` when they differ or are not known to be equal.
  bool requireEqual(UOpRef x, UOpRef y, const llvm::Twine &what, const char *otherwise = " are not equal");
  /// Whether an extent is `least` or more for all values of the dims. Else the sentence is "WHAT EXTENT is WORDS", or,
  /// not supported where some values would do, "WHAT EXTENT may be WORDS" with a hint.
  bool requireLeast(UOpRef extent, int64_t least, const llvm::Twine &what, const llvm::Twine &words);
  /// The constant extent of an axis; not supported when it is symbolic, and then 1.
  int64_t constExtent(UOpRef x, unsigned axis, const char *what);
  /// Whether x is there and its rank is in range.
  bool requireRank(UOpRef x, unsigned least, unsigned most = 64);
  bool requireFloat(UOpRef x);

protected:
  Failure state;

private:
  UOpRef folded(UOpRef x);

  uint32_t streams = 0;
  int64_t placeholders = 0;
  std::unique_ptr<Known> known; // made when somebody asks
  llvm::StringMap<size_t> byName;
};

/// What a front door gives to its caller: the value, or the first failure as an error with its sentence
/// (std::errc::not_supported where it is not supported, else invalid_argument). The Composer can be used again.
llvm::Expected<UOpRef> composed(Composer &b, UOpRef value);

/// A label of a contract as an index (Contract.h), and index 0, of an axis of extent 1 that is repeated.
inline AffineForm label(int64_t l) { return {{{l, 1}}, 0, 1}; }
inline AffineForm first() { return {{}, 0, 1}; }

/// The axes from `begin` up to `end`.
Ints axesBetween(int64_t begin, int64_t end);
/// The symbolic integers that an extent is made of, sources first. An `extent` is a part; the tensor below it is none.
std::vector<UOpRef> indexParts(UOpRef extent);
/// Whether an extent follows from data: it is known when what counts it has run.
bool isDataDim(UOpRef extent);
/// "[batch, 3, 224]", for diagnostics.
std::string dimsText(llvm::ArrayRef<UOpRef> dims);

} // namespace astra::compose
