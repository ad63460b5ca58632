//===- Eval.h: the reference evaluator: the meaning of every op ------------===//
// Takes:    nodes, and values for their arguments, parameters, states and dims.
// Gives:    the bytes that every back end must give under astra-num/1.
// Keeps:    results that depend on the graph and the inputs alone: no thread, no address, no clock; the host computes
//           only what IEEE 754 fixes (binary32 and binary64 + - * / fma sqrt, contraction off), narrow types are
//           rounded with integers (EvalNumber.h).
// Does not: decompose functions (exp ...): that is the numerics stage; a hook may supply them. Not fast: an oracle.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace astra {

/// A dense value: row-major, little-endian elements; sub-byte elements packed low bits first along the last axis, rows
/// padded to bytes; a bool is a byte, 0 or 1.
struct Tensor {
  DType dtype = DType::Void;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  int64_t count() const;
  bool operator==(const Tensor &) const = default;
};
/// Bytes of a tensor as it stands in Tensor::bytes.
uint64_t tensorBytes(DType t, llvm::ArrayRef<int64_t> shape);
/// The same tensor in which every NaN is the canonical one of its type (N6).
void canonicalizeNaN(Tensor &t);

/// A function of the program: it reads the operands and fills the bytes of the results, which are zeros.
using ExternalFunction =
    std::function<llvm::Error(llvm::ArrayRef<Tensor> operands, llvm::MutableArrayRef<Tensor> results)>;

struct EvalOptions {
  /// Gives the value of a Function op (exp ...) from its sources. Without it such an op is refused.
  std::function<llvm::Expected<Tensor>(UOpRef node, llvm::ArrayRef<Tensor> sources)> function;
  /// Called for every `tap`, in a deterministic order.
  std::function<void(llvm::StringRef name, const Tensor &value)> tap;
  uint64_t maxTrips = uint64_t(1) << 32;                  // of one `while`; more is refused
  std::map<std::string, ExternalFunction> externals = {}; // what `external` calls, by name
  /// Gives what a collective gives one shard; evalEntry sets it for each.
  std::function<llvm::Expected<Tensor>(UOpRef node, const Tensor &source)> collective = {};
};

/// What free nodes stand for. Names are those of the module.
struct EvalInputs {
  std::vector<Tensor> inputs;           // by position: arg 0, arg 1, ...
  std::map<std::string, int64_t> dims;  // host scalars; dims that an input's shape binds need none
  std::map<std::string, Tensor> params; // replace the module's data
  std::map<std::string, Tensor> states; // replace the module's first values
};
struct EvalResult {
  std::vector<Tensor> outputs;          // in the entry's order, NaNs canonical
  std::map<std::string, Tensor> states; // every state of the module after the entry
};

/// Runs one entry. Refuses, with a sentence, inputs of another type, rank or extent than declared, dims outside their
/// bounds or not bound, equations that do not hold, and what a node refuses (an `extent` outside its bounds, a body
/// that does not keep its types). A module in the form PerShard is run by all of its shards, on whole tensors, which
/// are cut and joined as its shardings say; what is replicated must be equal in all shards (EvalMesh.cpp).
llvm::Expected<EvalResult> evalEntry(const Module &m, const Entry &e, const EvalInputs &in,
                                     const EvalOptions &options = {});

/// The part of a whole tensor that one shard has, and the whole of the parts of all shards, in their order; parts of
/// what is replicated must be equal. `what` is the tensor's name.
llvm::Expected<Tensor> shardOf(const Tensor &whole, const Mesh &mesh, const Sharding &s, int64_t shard,
                               const llvm::Twine &what);
llvm::Expected<Tensor> wholeOf(llvm::ArrayRef<const Tensor *> parts, const Mesh &mesh, const Sharding &s,
                               const llvm::Twine &what);

/// The values of `roots` (tensors), NaNs as they come. Dims are bound by the arguments that the roots reach, then by
/// in.dims.
llvm::Expected<std::vector<Tensor>> evalNodes(llvm::ArrayRef<UOpRef> roots, const EvalInputs &in,
                                              const EvalOptions &options = {});

/// Runs a kernel: a `sink` of stores (Codegen/Kernel.h), before or after expansion, on buffers whose slot i is
/// buffers[i], elements of the buffer's dtype one after another; several may be the same memory. dims are given by
/// name. Stores with the same open ranges share one loop: at each point all their values, then all their writes.
/// Refuses an index outside a buffer or a stage; what was written by then stays written.
llvm::Error evalKernel(UOpRef sink, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> buffers,
                       const std::map<std::string, int64_t> &dims);
inline llvm::Error evalKernel(UOpRef sink, llvm::MutableArrayRef<std::vector<uint8_t>> buffers,
                              const std::map<std::string, int64_t> &dims) {
  return evalKernel(sink, std::vector<llvm::MutableArrayRef<uint8_t>>(buffers.begin(), buffers.end()), dims);
}

/// One elementwise op (not a Function) on literals of the sources' dtypes: the literal of `result`, a NaN canonical.
/// Used to fold constants.
llvm::Expected<uint64_t> foldElementwise(Op op, llvm::ArrayRef<int64_t> ints, DType result,
                                         llvm::ArrayRef<std::pair<DType, uint64_t>> sources);

} // namespace astra
