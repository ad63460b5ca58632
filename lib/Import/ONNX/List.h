//===- List.h: sequences of tensors -----------------------------------------===//
// Gives:    a value of ONNX's sequence types while it is imported: a list of UOps. No node of the IR is one. And what a
//           name stands for: a tensor, a list, or nothing.
// Keeps:    the number of elements is known, or they are the equal pieces of a tensor, whose number may be symbolic.
#pragma once
#include "astra/Compose/Composer.h"
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
ListRef listOf(std::vector<UOpRef> elements);

/// The elements; nothing, and a failure, where their number is not known (OpsList.cpp).
std::optional<std::vector<UOpRef>> elementsOf(compose::Composer &b, const List &list);

/// What a name stands for. An optional value that has an element is that element; one that has none is nothing, as an
/// input is that was left out.
struct Held {
  UOpRef tensor = nullptr;
  ListRef list = nullptr;
  bool isNothing() const { return !tensor && !list; }
};

} // namespace astra::onnx
