//===- Mixture.cpp: a mixture of experts as fused operators have it ---------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what Mixture.h says.
#include "astra/Compose/Mixture.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include <cmath>

namespace astra::compose {

namespace {

/// What the experts of a row count for, [rows, experts]: the softmax of the scores where they are among the chosen, the
/// first of equals; else 0.
UOpRef routingWeights(Composer &b, UOpRef scores, const RoutingOptions &options) {
  if (!b.requireRank(scores, 2, 2)) return nullptr;
  UOpRef share = softmax(b, scores, {1});
  share = b.select(b.bin(Op::Lt, ranksOf(b, share), double(options.chosen)), share, b.literal(share, 0));
  return options.normalized ? b.bin(Op::Div, share, b.reduce(ReduceKind::Sum, share, {1})) : share;
}

/// The sum over experts of weights [rows, experts] times y [experts, rows, width].
UOpRef weighted(Composer &b, UOpRef weights, UOpRef y) {
  if (!b.requireRank(weights, 2, 2) || !b.requireRank(y, 3, 3)) return nullptr;
  ContractSpec spec;
  spec.kept = 2;
  spec.reduced = 1;
  spec.a = {label(0), label(2)};
  spec.b = {label(2), label(0), label(1)};
  return b.contract(spec, weights, y, {y->shape[1], y->shape[2], y->shape[0]});
}

/// x [rows, in] or [experts, rows, in] through a layer: [experts, rows, out].
UOpRef through(Composer &b, UOpRef x, const ExpertLayer &layer, UOpRef experts) {
  if (!x || !b.requireRank(layer.weights, 3, 3)) return nullptr;
  UOpRef w = b.cast(layer.weights, x->dtype), out = w->shape[1], in = w->shape[2];
  bool each = x->rank() == 3;
  if (!b.requireEqual(w->shape[0], experts, "the experts of the weights and of the scores") ||
      !b.requireEqual(x->shape.back(), in, "the last axis of what experts are given and of their weights"))
    return nullptr;
  ContractSpec spec;
  spec.kept = 3;
  spec.reduced = 1;
  spec.a = {label(1), label(3)};
  if (each) spec.a.insert(spec.a.begin(), label(0));
  spec.b = {label(0), label(2), label(3)};
  UOpRef y = b.contract(spec, x, w, {experts, x->shape[each], out, in});
  if (!layer.bias) return y;
  if (!b.requireRank(layer.bias, 2, 2) || !b.requireEqual(layer.bias->shape[0], experts, "the experts of the bias") ||
      !b.requireEqual(layer.bias->shape[1], out, "the bias and the rows of its weights"))
    return nullptr;
  return b.bin(Op::Add, y, b.cast(b.unsqueeze(layer.bias, {1}), x->dtype));
}

/// The two factors of SwiGLU.
std::pair<UOpRef, UOpRef> factors(Composer &b, UOpRef y, UOpRef other, MixtureOptions::Halves halves) {
  if (!y || halves == MixtureOptions::Apart) return {y, other};
  int64_t size = b.constExtent(y, 2, "the rows of the first layer");
  if (b.failed()) return {};
  if (size % 2 || other) {
    b.fail(other ? "the gate and the other factor are in one layer, and a second one is given"
                 : "the rows of the first layer, a gate's and another factor's, are odd: " + std::to_string(size));
    return {};
  }
  if (halves == MixtureOptions::OneBehindTheOther) return {b.part(y, 2, 0, size / 2), b.part(y, 2, size / 2, size / 2)};
  UOpRef pairs = b.reshape(y, {y->shape[0], y->shape[1], b.idx(size / 2), b.idx(2)});
  return {b.element(pairs, 3, 0), b.element(pairs, 3, 1)};
}

UOpRef activated(Composer &b, UOpRef y, UOpRef other, const MixtureOptions &options) {
  if (!y) return nullptr;
  if (options.activation == MixtureOptions::SwiGLU) {
    auto [gate, factor] = factors(b, y, other, options.halves);
    if (!gate || !factor)
      return b.failed() ? nullptr : b.fail("SwiGLU needs a gate and another factor: one more layer, or halves of one");
    if (std::isfinite(options.limit)) {
      gate = b.bin(Op::Min, gate, options.limit);
      factor = b.bin(Op::Max, b.bin(Op::Min, factor, options.limit), -options.limit);
    }
    return b.bin(Op::Mul, swish(b, gate, options.alpha), b.bin(Op::Add, factor, options.beta));
  }
  UOpRef z = y;
  if (options.activation == MixtureOptions::Relu) z = b.bin(Op::Max, y, 0.0);
  if (options.activation == MixtureOptions::Gelu) z = gelu(b, y, /*approximate=*/true);
  if (options.activation == MixtureOptions::Silu) z = swish(b, y, 1);
  return other ? b.bin(Op::Mul, z, other) : z;
}

} // namespace

UOpRef mixture(Composer &b, const MixtureOperands &o, const MixtureOptions &options) {
  if (!b.requireFloat(o.x) || !b.requireRank(o.x, 2, 3) || !b.requireFloat(o.scores) || !b.requireRank(o.scores, 2, 2))
    return nullptr;
  UOpRef width = o.x->shape.back(), experts = o.scores->shape[1], rows = b.idx(1);
  for (UOpRef extent : o.x->shape.drop_back()) rows = idxMul(b.c, rows, extent);
  if (!b.requireEqual(rows, o.scores->shape[0], "the rows of the input and of the scores")) return nullptr;
  if (options.routing.chosen < 1 || options.routing.chosen > experts->lo)
    return b.fail(llvm::Twine(options.routing.chosen) +
                  " experts of a token are not within 1 and the number of experts");
  UOpRef x = b.reshape(b.widen(o.x), {rows, width});
  RoutingOptions routing = options.routing;
  if (o.shares) routing.normalized = false;
  UOpRef weights = routingWeights(b, b.widen(o.scores), routing);
  if (!weights) return nullptr;
  if (o.shares) {
    if (!b.requireFloat(o.shares) || !b.requireRank(o.shares, 2, 2)) return nullptr;
    weights = b.select(b.bin(Op::Lt, b.literal(weights, 0), weights), b.widen(o.shares), b.literal(weights, 0));
    if (options.routing.normalized) weights = b.bin(Op::Div, weights, b.reduce(ReduceKind::Sum, weights, {1}));
    if (!weights) return nullptr;
  }
  weights = b.cast(weights, x->dtype);
  UOpRef other = o.gated.weights ? through(b, x, o.gated, experts) : nullptr;
  UOpRef y = activated(b, through(b, x, o.first, experts), other, options);
  y = through(b, y, o.second, experts);
  if (!y || b.failed()) return nullptr;
  UOpRef counts = b.unsqueeze(b.bin(Op::Ne, b.permute(weights, {1, 0}), b.literal(weights, 0)), {2});
  y = weighted(b, weights, b.select(counts, y, b.literal(y, 0)));
  if (!y || !b.requireEqual(y->shape[1], width, "the rows of the second layer and the width")) return nullptr;
  return b.cast(b.reshape(y, o.x->shape), o.x->dtype);
}

} // namespace astra::compose
