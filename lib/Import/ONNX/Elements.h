//===- Elements.h: inputs that are sequences or optional values ------------===//
// Takes:    a graph's declared inputs, what the user says of their elements (ImportOptions::elements).
// Gives:    the graph with an input for each element, "x.0", "x.1" ..., in the place of the input x; an optional value
//           that has a tensor is an input of its own name.
// Keeps:    the order of the inputs; what nobody says anything about, to be refused where inputs are declared.
#pragma once
#include "Failures.h"
#include <vector>

namespace astra::onnx {

namespace proto {
class Graph;
class Value;
} // namespace proto

/// An input that was replaced.
struct ByElements {
  std::string name;
  bool isList = false;            // else it is nothing
  std::vector<std::string> parts; // inputs that are its elements
};

std::vector<ByElements> inputsByElements(proto::Graph &graph, const ImportOptions &options, Failures &failures);

/// The sentence that asks for what is to be said of such an input; "" of any other.
std::string askForElements(const proto::Value &input);

} // namespace astra::onnx
