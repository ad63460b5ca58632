//===- List.h: sequences of tensors -----------------------------------------===//
// Gives:    a value of ONNX's sequence types while it is imported: a list of UOps. No node of the IR is one.
// Keeps:    the number of elements is known, or they are the equal pieces of a tensor, whose number may be symbolic.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <vector>

namespace astra::onnx {

struct List {
  std::vector<UOpRef> elements;

  /// Pieces of x along an axis, made when somebody takes them.
  struct Pieces {
    UOpRef x = nullptr;
    int64_t axis = 0;
    llvm::SmallVector<UOpRef, 4> sizes; // of each, where equal is null
    UOpRef equal = nullptr;             // of all but the last, which may have less
    bool squeezed = false;              // without the axis, of extent 1
  };
  std::optional<Pieces> pieces; // in place of elements
};

using ListRef = std::shared_ptr<const List>;

} // namespace astra::onnx
