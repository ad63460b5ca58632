//===- Order.h: the order in which nodes can be lowered ---------------------===//
// Takes:    the nodes of a graph or a function, in the file's order.
// Gives:    an order in which each follows what it reads, its graphs inside included; a cycle where there is one.
// Keeps:    the file's order where that is topological; else, of the nodes that are ready, the file's first goes first.
//           Time is that of a sort, and linear where nothing is moved.
// Does not: lower nodes (Lowering.cpp), or find names that nothing defines.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace google::protobuf {
template <class Element> class RepeatedPtrField;
}

namespace astra::onnx {

namespace proto {
class Node;
}

using ProtoNodes = google::protobuf::RepeatedPtrField<proto::Node>;

struct Order {
  std::vector<int> nodes; // their numbers; those of a cycle, and what follows from them, are left out
  std::vector<int> cycle; // each of these reads a value of the next, the last of the first
  /// A node and a later one whose value it reads.
  std::optional<std::pair<int, int>> moved;
};

/// `isKnown` tells the names that nodes may read without a node that gives them: inputs, initializers, what is around.
Order orderOf(const ProtoNodes &nodes, llvm::function_ref<bool(llvm::StringRef)> isKnown);

/// "'a' (Add), 'b' (Mul) and 3 more": the nodes with these numbers.
std::string nodesText(const ProtoNodes &nodes, const std::vector<int> &numbers);

} // namespace astra::onnx
