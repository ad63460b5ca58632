//===- Vmap.h: a graph over one axis more ----------------------------------===//
// Takes:    values of a graph, before or after differentiation, and the leaves that get a batch axis.
// Gives:    the same values for every element of the batch at once. What does not depend on the leaves stays as it is.
// Keeps:    bits: element i is what the graph gives for element i of the leaves, under astra-num/1, in every order of a
//           sum. Time linear in the graph; no recursion over it.
// Does not: batch what has another shape for each element: a data dim that depends on a leaf is refused. A `cond` whose
//           predicate is batched computes both branches, a `while` whose condition is runs until the last element is
//           done.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>

namespace astra {

/// `roots`, in which each of `leaves` is replaced by its counterpart in `batched`: of the same type, with an axis of
/// extent `size` in front. Every result has that axis in front. `size` is a constant or made of dims. An error names
/// the op that cannot be batched.
llvm::Expected<std::vector<UOpRef>> vmap(Context &c, llvm::ArrayRef<UOpRef> roots, llvm::ArrayRef<UOpRef> leaves,
                                         llvm::ArrayRef<UOpRef> batched, UOpRef size, const Origins *origins = nullptr);

/// What becomes of a collective where the batch is the shards themselves: from its source with the batch axis in front
/// (null of rank_index) its value, and whether that has the batch axis.
using CollectiveImage = std::function<std::pair<UOpRef, bool>(UOpRef n, UOpRef source)>;
/// `roots` for a batch of shards; `images` of those leaves that are given another value, `batched` or not. A result is
/// batched if its flag is set.
struct ShardsOf {
  std::vector<UOpRef> values;
  std::vector<bool> batched;
};
llvm::Expected<ShardsOf> vmapShards(Context &c, llvm::ArrayRef<UOpRef> roots, llvm::ArrayRef<UOpRef> leaves,
                                    llvm::ArrayRef<UOpRef> batched, UOpRef size, const CollectiveImage &collective,
                                    const Origins *origins);

/// An entry `name` that does what `e` does for a batch. `in` says for each input where the batch axis is (nothing: the
/// input is shared), `out` for each output. States cannot be updated with what depends on the batch.
llvm::Expected<Entry> vmapEntry(Module &m, const Entry &e, llvm::StringRef name, UOpRef size,
                                llvm::ArrayRef<std::optional<int64_t>> in, llvm::ArrayRef<int64_t> out);

/// Whether vmap has a row for an op with tensor sources.
bool isBatchable(Op op);

} // namespace astra
