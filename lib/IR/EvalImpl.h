//===- EvalImpl.h: what the parts of the evaluator share -------------------===//
// Gives:    Call, one node with its sources evaluated; one function per family of ops; Evaluator, which walks graphs
//           and calls them.
// Keeps:    inside the evaluator a sub-byte element takes a byte of its own (pack and unpack at the border).
#pragma once
#include "EvalNumber.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace astra::eval {

using TensorPtr = std::shared_ptr<const Tensor>;
using Dims = llvm::SmallVector<int64_t, 6>;

inline unsigned elementBytes(DType t) { return std::max(byteSize(t), 1u); }
inline int64_t product(llvm::ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}
inline Dims rowMajor(llvm::ArrayRef<int64_t> shape) {
  Dims strides(shape.size());
  int64_t s = 1;
  for (size_t i = shape.size(); i-- > 0;) strides[i] = s, s *= shape[i];
  return strides;
}
/// Zeros of this type and shape.
Tensor zeros(DType t, llvm::ArrayRef<int64_t> shape);
Tensor packSubByte(const Tensor &t);
Tensor unpackSubByte(const Tensor &t);
/// Refuses a tensor whose bytes do not fit its type and shape.
llvm::Error checkBytes(const Tensor &t, const llvm::Twine &what);

/// evalEntry of a module in the form PerShard (EvalMesh.cpp).
llvm::Expected<EvalResult> evalShards(const Module &m, const Entry &e, const EvalInputs &in,
                                      const EvalOptions &options);

/// One node about to be evaluated: its tensor sources, the values of its index sources, the extents of its result.
struct Call {
  UOpRef node;
  llvm::ArrayRef<const Tensor *> in;
  llvm::ArrayRef<int64_t> indices;
  llvm::ArrayRef<int64_t> shape;

  const Tensor &x() const { return *in[0]; }
  DType type() const { return in.empty() ? node->dtype : in[0]->dtype; } // of the first source
  int64_t attr(unsigned i) const { return node->ints[i]; }
  Tensor result() const { return zeros(node->dtype, shape); }
  llvm::Error fail(const llvm::Twine &what) const {
    return llvm::createStringError(llvm::Twine(info(node->op).mnemonic) + ": " + what);
  }
};
using Result = llvm::Expected<Tensor>;

/// What an op that is neither control nor kernel level gives; symbolic integers as the sources of an elementwise op are
/// i64 scalars.
Result evalOp(const Call &c);
Result evalLeaf(const Call &c);        // const, iota, from_index
Result evalElementwise(const Call &c); // without functions
Result evalConversion(const Call &c);  // cast, bitcast, lookup16, scale2
bool computesComplex(const Call &c);   // whether the op is one of evalComplex's
Result evalComplex(const Call &c);     // arithmetic and conversions of complex numbers, and their parts
Result evalMovement(const Call &c);
Result evalReduce(const Call &c);
Result evalArgReduce(const Call &c);
Result evalCumulate(const Call &c);
Result evalContract(const Call &c);
Result evalIndexing(const Call &c); // gather, pick, scatter, slice_at, update_at, compact, random
Result evalArgSort(const Call &c);

/// c + the products of the bytes of a, unsigned, and of b, signed.
inline int32_t dot4(int32_t a, int32_t b, int32_t c) {
  uint32_t sum = c;
  for (unsigned k = 0; k < 32; k += 8) sum += uint32_t(int32_t(uint8_t(uint32_t(a) >> k)) * int8_t(uint32_t(b) >> k));
  return int32_t(sum);
}

/// Steps through a multi-index in row-major order, keeping offsets into several strided arrays.
class Odometer {
public:
  Odometer(llvm::ArrayRef<int64_t> extents) : index(extents.size()), extents(extents), left(product(extents)) {}
  bool done() const { return left <= 0; }
  /// Moves on; gives the outermost axis that changed (all inner ones are 0 again).
  void next() {
    --left;
    for (size_t i = extents.size(); i-- > 0;) {
      if (++index[i] < extents[i]) return;
      index[i] = 0;
    }
  }
  int64_t offset(llvm::ArrayRef<int64_t> strides) const {
    int64_t o = 0;
    for (size_t i = 0; i < index.size(); ++i) o += index[i] * strides[i];
    return o;
  }
  Dims index;

private:
  llvm::ArrayRef<int64_t> extents;
  int64_t left;
};

/// Element i of a tensor of indices, i32 or i64.
inline int64_t indexAt(const Tensor &t, int64_t i) {
  return t.dtype == DType::I32 ? Native<int32_t>::load(t.bytes.data(), i) : Native<int64_t>::load(t.bytes.data(), i);
}

/// Calls f(offset in x, position in the index tensor) for every index inside x, in ascending order of positions.
template <class F> void along(const Tensor &x, const Tensor &index, int64_t axis, F f) {
  Dims strides = rowMajor(x.shape);
  int64_t position = 0;
  for (Odometer o(index.shape); !o.done(); o.next(), ++position) {
    int64_t at = indexAt(index, position);
    if (at >= 0 && at < x.shape[axis]) f(o.offset(strides) + (at - o.index[axis]) * strides[axis], position);
  }
}

/// Values of dims by name, and of every symbolic integer met so far.
class Scope {
public:
  llvm::StringMap<int64_t> dims;
  /// The scope of a function called here: the same dims, nothing else.
  Scope inner() const {
    Scope s;
    s.dims = dims;
    return s;
  }
  void setExtent(UOpRef extent, int64_t v) { known[extent] = v; }
  /// Binds a dim; refuses a value outside its bounds or another than it has.
  llvm::Error bind(UOpRef dim, int64_t value, const llvm::Twine &where);
  llvm::Expected<int64_t> value(UOpRef index);
  llvm::Expected<Dims> values(llvm::ArrayRef<UOpRef> indices);

private:
  llvm::DenseMap<UOpRef, int64_t> known;
};

/// The nodes that some roots need, sources first, and how often each is read.
struct Plan {
  std::vector<UOpRef> order; // tensors, control ops and extents
  llvm::DenseMap<UOpRef, uint32_t> at;
  std::vector<uint32_t> uses;
  std::vector<UOpRef> roots;
};

class Evaluator {
public:
  Evaluator(const EvalOptions &options, const EvalInputs &given, const Module *module)
      : options(options), given(given), module(module) {}

  using Values = llvm::SmallVector<TensorPtr, 4>;
  /// The roots' values in a scope; binds the dims of the arguments that the plan reaches.
  llvm::Expected<Values> run(UOpRef key, llvm::ArrayRef<UOpRef> roots, Scope &scope, llvm::ArrayRef<TensorPtr> args);
  /// Checks an argument, parameter or state against its node: binds bare dims first, then those that a multiple gives.
  static llvm::Error bindShape(UOpRef node, const Tensor &t, Scope &scope, const llvm::Twine &what);
  static llvm::Error bindMultiples(UOpRef node, const Tensor &t, Scope &scope, const llvm::Twine &what);
  static llvm::Error checkShape(UOpRef node, const Tensor &t, Scope &scope, const llvm::Twine &what);
  llvm::Expected<TensorPtr> stored(UOpRef node, Scope &scope); // a parameter or state

private:
  const Plan &planOf(UOpRef key, llvm::ArrayRef<UOpRef> roots);
  llvm::Expected<Values> evalNode(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> args, llvm::ArrayRef<TensorPtr> in);
  llvm::Expected<Values> call(UOpRef func, Scope scope, llvm::ArrayRef<TensorPtr> args);
  llvm::Expected<Values> evalCond(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in);
  llvm::Expected<Values> evalWhile(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in);
  llvm::Expected<Values> evalScan(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in);
  llvm::Expected<Values> evalCustom(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in);   // EvalCustom.cpp
  llvm::Expected<Values> evalExternal(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in); // EvalExternal.cpp

  const EvalOptions &options;
  const EvalInputs &given;
  const Module *module;
  std::map<UOpRef, std::unique_ptr<Plan>> plans; // looked up, never iterated
  std::map<std::string, TensorPtr> storedByName;
  unsigned depth = 0; // of functions in functions
};

} // namespace astra::eval
