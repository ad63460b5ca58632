//===- OpsRecurrent.cpp: RNN, GRU, LSTM ----------------------------------===//
// Takes:    nodes with a sequence, weights of one or two directions, initial states, lengths.
// Gives:    the composite of Recurrent.h.
#include "OpTable.h"
#include "RecurrentAttributes.h"
#include "astra/Compose/Recurrent.h"
#include "onnx.pb.h"

namespace astra::onnx {

compose::RecurrentOptions recurrentAttributes(Node &n) {
  using Direction = compose::RecurrentOptions::Direction;
  compose::RecurrentOptions options;
  std::string direction = n.stringAttr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    n.fail("attribute 'direction' is '" + direction + "', expected forward, reverse or bidirectional");
  options.direction = direction == "forward"   ? Direction::Forward
                      : direction == "reverse" ? Direction::Reverse
                                               : Direction::Bidirectional;
  options.clip = n.floatAttr("clip", INFINITY);
  if (n.hasAttr("hidden_size")) options.hiddenSize = n.intAttr("hidden_size", 0);
  options.activations = n.stringsAttr("activations");
  options.alphas = n.floatsAttr("activation_alpha");
  options.betas = n.floatsAttr("activation_beta");
  options.allSteps = n.wants(0);
  return options;
}

namespace {

using compose::RecurrentCell;

template <RecurrentCell cell> void recurrent(Node &n) {
  constexpr const char *variants[] = {nullptr, "linear_before_reset", "input_forget"};
  compose::RecurrentOptions options = recurrentAttributes(n);
  options.batchFirst = n.opset >= 14 && n.intAttr("layout", 0) != 0;
  if (n.opset < 7) n.ignoreAttr("output_sequence"); // whether output 0 is there says the same
  const char *name = variants[unsigned(cell)];
  (cell == RecurrentCell::GRU ? options.linearBeforeReset : options.inputForget) = name && n.intAttr(name, 0) != 0;
  auto optional = [&](unsigned i) { return n.has(i) ? n.in(i) : nullptr; };
  compose::RecurrentResult r = recurrent(
      n, cell, {n.in(0), n.in(1), n.in(2), optional(3), optional(4), optional(5), optional(6), optional(7)}, options);
  if (n.wants(0)) n.give(r.all);
  n.give(1, r.hidden);
  if (cell == RecurrentCell::LSTM) n.give(2, r.cell);
}

constexpr Row rows[] = {
    {"RNN", 1, latest, 3, 6, recurrent<RecurrentCell::RNN>, floatTypes,
     "clip bounds what every activation takes; past its end a sequence gives 0 and keeps its state"},
    {"GRU", 1, latest, 3, 6, recurrent<RecurrentCell::GRU>, floatTypes,
     "clip bounds what every activation takes; past its end a sequence gives 0 and keeps its state"},
    {"LSTM", 1, latest, 3, 8, recurrent<RecurrentCell::LSTM>, floatTypes,
     "clip bounds what every activation takes; past its end a sequence gives 0 and keeps its state"},
};

} // namespace

llvm::ArrayRef<Row> recurrentRows() { return rows; }

} // namespace astra::onnx
