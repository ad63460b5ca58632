//===- Order.cpp: the order in which nodes can be lowered -------------------===//
// Keeps:    an explicit stack over graphs inside of nodes. A name that a graph inside defines hides the one around.
#include "Order.h"
#include "onnx.pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <functional>
#include <queue>

namespace astra::onnx {

namespace {

/// A graph in an attribute, and the one that it stands in.
struct Inside {
  const proto::Graph *graph;
  int around; // -1: the node itself
  llvm::StringSet<> defined;
};

void addGraphs(const proto::Node &node, int around, std::vector<Inside> &graphs) {
  auto add = [&](const proto::Graph &graph) {
    Inside inside{&graph, around, {}};
    for (const proto::Value &input : graph.input()) inside.defined.insert(input.name());
    for (const proto::Tensor &tensor : graph.initializer()) inside.defined.insert(tensor.name());
    for (const proto::SparseTensor &sparse : graph.sparse_initializer()) inside.defined.insert(sparse.values().name());
    for (const proto::Node &n : graph.node())
      for (const std::string &output : n.output()) inside.defined.insert(output);
    graphs.push_back(std::move(inside));
  };
  for (const proto::Attribute &a : node.attribute()) {
    if (a.has_g()) add(a.g());
    for (const proto::Graph &graph : a.graphs()) add(graph);
  }
}

/// Calls read(name) for what the node reads, and what graphs inside of it read from around.
void forEachRead(const proto::Node &node, llvm::function_ref<void(const std::string &)> read) {
  for (const std::string &name : node.input()) read(name);
  std::vector<Inside> graphs;
  addGraphs(node, -1, graphs);
  for (size_t g = 0; g < graphs.size(); ++g) {
    auto readInside = [&](const std::string &name) {
      for (int at = int(g); at >= 0; at = graphs[at].around)
        if (graphs[at].defined.contains(name)) return;
      read(name);
    };
    const proto::Graph &graph = *graphs[g].graph;
    for (const proto::Node &n : graph.node()) {
      for (const std::string &name : n.input()) readInside(name);
      addGraphs(n, int(g), graphs);
    }
    for (const proto::Value &output : graph.output()) readInside(output.name());
  }
}

/// From a node that is left, along what it waits for, until one comes again.
std::vector<int> cycleAmong(const std::vector<std::vector<int>> &waitsFor, const std::vector<bool> &done) {
  std::vector<int> path, place(done.size(), -1);
  for (int at = int(std::find(done.begin(), done.end(), false) - done.begin()); place[at] < 0;) {
    place[at] = int(path.size());
    path.push_back(at);
    at = *std::find_if(waitsFor[at].begin(), waitsFor[at].end(), [&](int p) { return !done[p]; });
    if (place[at] >= 0) return {path.begin() + place[at], path.end()};
  }
  return {};
}

} // namespace

Order orderOf(const ProtoNodes &nodes, llvm::function_ref<bool(llvm::StringRef)> isKnown) {
  int count = nodes.size();
  llvm::StringMap<int> producer;
  for (int i = 0; i < count; ++i)
    for (const std::string &output : nodes[i].output())
      if (!output.empty()) producer.try_emplace(output, i);
  Order order;
  auto producerOf = [&](const std::string &name) {
    auto found = producer.find(name);
    return found == producer.end() || isKnown(name) ? -1 : found->second;
  };
  for (int i = 0; i < count && !order.moved; ++i)
    forEachRead(nodes[i], [&](const std::string &name) {
      auto found = producer.find(name);
      bool late = found != producer.end() && found->second >= i; // a look at what is known costs more
      if (late && !order.moved && !isKnown(name)) order.moved = {i, found->second};
    });
  if (!order.moved) {
    for (int i = 0; i < count; ++i) order.nodes.push_back(i);
    return order;
  }
  std::vector<std::vector<int>> waitsFor(count), readers(count);
  std::vector<int> missing(count, 0);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < count; ++i) {
    forEachRead(nodes[i], [&](const std::string &name) {
      if (int p = producerOf(name); p >= 0) {
        waitsFor[i].push_back(p);
        readers[p].push_back(i);
        ++missing[i];
      }
    });
    if (!missing[i]) ready.push(i);
  }
  std::vector<bool> done(count, false);
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    done[i] = true;
    order.nodes.push_back(i);
    for (int reader : readers[i])
      if (--missing[reader] == 0) ready.push(reader);
  }
  if (int(order.nodes.size()) < count) order.cycle = cycleAmong(waitsFor, done);
  return order;
}

std::string nodesText(const ProtoNodes &nodes, const std::vector<int> &numbers) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t k = 0; k < numbers.size() && k < most; ++k) {
    const proto::Node &node = nodes[numbers[k]];
    text += k == 0 ? "" : k + 1 == numbers.size() ? " and " : ", ";
    text += node.name().empty() ? "number " + std::to_string(numbers[k]) : "'" + node.name() + "'";
    text += " (" + node.op_type() + ")";
  }
  return numbers.size() > most ? text + " and " + std::to_string(numbers.size() - most) + " more" : text;
}

} // namespace astra::onnx
