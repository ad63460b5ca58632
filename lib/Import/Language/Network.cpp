//===- Network.cpp: a language model as a graph -------------------------------===//
// Takes:    a configuration whose numbers are in bounds; tensors that may be missing or of other shapes.
// Gives:    what Network.h says.
#include "Network.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Sequence.h"
#include "astra/IR/Index.h"
#include <cmath>

using namespace astra;
using namespace astra::language;

Network::Network(compose::Composer &b, const Config &c, Tensors &w, const LanguageOptions &o) : b(b), c(c), w(w), o(o) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    std::string number = std::to_string(layer);
    layers.push_back({cacheOf("keys." + number), cacheOf("values." + number)});
  }
  if (c.architecture->has(Positions)) return;
  tables = tablesOf(c.rotation);
  if (c.hasLocalRotation) localTables = tablesOf(c.localRotation);
}

compose::RowCache Network::cacheOf(const std::string &name) {
  UOpRef batch = b.idx(o.batch), heads = b.idx(c.keyHeads);
  compose::RowCache cache{b.b.state(name, o.cache, {batch, heads, b.idx(o.context * c.headSize)}), nullptr};
  if (o.cache == DType::I8) cache.scales = b.b.state(name + ".scales", DType::F32, {batch, heads, b.idx(o.context)});
  return cache;
}

std::vector<UOpRef> Network::states() const {
  std::vector<UOpRef> all;
  for (const Layer &layer : layers)
    for (const compose::RowCache *cache : {&layer.keys, &layer.values}) {
      all.push_back(cache->elements);
      if (cache->scales) all.push_back(cache->scales);
    }
  return all;
}

void Network::update(std::vector<StateUpdate> &updates, const compose::RowCache &old, const compose::RowCache &now) {
  updates.push_back({old.elements->str.str(), now.elements});
  if (old.scales) updates.push_back({old.scales->str.str(), now.scales});
}

compose::RotaryTables Network::tablesOf(const Rotation &rotation) {
  double factor = 1;
  std::vector<float> frequencies = rotation.frequencies(c.headSize, o.context, c.positions, factor);
  return compose::rotaryTables(b, frequencies, o.context, factor);
}

UOpRef Network::normed(UOpRef x, Role role, int64_t layer, int64_t width) {
  compose::LayerNormalizationOptions options{-1, c.epsilon, DType::F32};
  if (c.architecture->norm == Norm::Plain) return compose::layerNormalization(b, x, nullptr, nullptr, options).value;
  UOpRef scale = w.vector(role, layer, width);
  if (c.architecture->has(FromZero) && !c.gguf) scale = b.bin(Op::Add, scale, 1);
  if (c.architecture->norm == Norm::RMS) return compose::rmsNormalization(b, x, scale, options).value;
  return compose::layerNormalization(b, x, scale, w.vector(role, layer, width, "bias"), options).value;
}

UOpRef Network::finalNorm(UOpRef x) { return normed(x, Role::FinalNorm, 0, c.width); }

UOpRef Network::scores(UOpRef x) {
  bool ownHead = w.has(Role::Head) && !w.isCopy(Role::Head, Role::Embedding);
  UOpRef y = w.product(x, ownHead ? Role::Head : Role::Embedding, 0, c.vocabulary);
  if (c.finalSoftcap > 0) y = b.bin(Op::Mul, b.un(Op::Tanh, b.bin(Op::Div, y, c.finalSoftcap)), c.finalSoftcap);
  return y;
}

UOpRef Network::run(Pass &pass) {
  UOpRef rows = idxMul(b.c, pass.place.batch, pass.place.rows);
  UOpRef x = w.rows(Role::Embedding, b.reshape(b.cast(pass.tokens, DType::I64), {rows}), c.vocabulary, c.width);
  if (c.architecture->has(ScaledEmbedding)) x = b.bin(Op::Mul, x, std::sqrt(double(c.width)));
  if (c.architecture->has(Positions))
    x = b.bin(Op::Add, x, w.rows(Role::PositionTable, b.reshape(pass.place.positions, {rows}), c.positions, c.width));
  bool before = c.architecture->places != Places::After, after = c.architecture->places != Places::Before;
  for (int64_t layer = 0; layer < c.layers && !b.failed(); ++layer) {
    UOpRef y = before ? normed(x, Role::AttentionNorm, layer, c.width) : x;
    y = attention(y, layer, pass);
    if (after) y = normed(y, Role::AfterAttentionNorm, layer, c.width);
    x = b.bin(Op::Add, x, y);
    y = before ? normed(x, Role::FeedForwardNorm, layer, c.width) : x;
    y = c.routed[size_t(layer)] ? mixture(y, layer) : feedForward(y, layer, Role::Gate, Role::Up, Role::Down, c.hidden);
    if (after) y = normed(y, Role::AfterFeedForwardNorm, layer, c.width);
    x = b.bin(Op::Add, x, y);
  }
  return b.failed() ? nullptr : x;
}

/// [rows of all, heads * size] as [batch, heads, rows, size].
UOpRef Network::byHeads(UOpRef x, int64_t heads, const Pass &pass) {
  const compose::CachePlace &p = pass.place;
  return b.permute(b.reshape(x, {p.batch, p.rows, b.idx(heads), b.idx(c.headSize)}), {0, 2, 1, 3});
}

UOpRef Network::rotated(UOpRef x, int64_t layer, const Pass &pass) {
  if (c.architecture->has(Positions)) return x;
  const compose::RotaryTables &t = c.hasLocalRotation && c.windows[size_t(layer)] >= 0 ? localTables : tables;
  if (!t.cosines || !t.sines) return nullptr;
  compose::RotaryOptions options;
  options.interleaved = c.gguf && c.architecture->has(PairsInGGUF);
  options.columns = 2 * b.constExtent(t.cosines, 1, "the frequencies");
  return compose::rotaryEmbedding(b, x, t.cosines, t.sines, pass.place.positions, options);
}

UOpRef Network::attention(UOpRef x, int64_t layer, Pass &pass) {
  int64_t queries = c.heads * c.headSize, keys = c.keyHeads * c.headSize;
  bool columns = c.architecture->has(Columns) && !c.gguf;
  UOpRef q, k, v;
  if (w.has(Role::Joined, layer)) {
    UOpRef all = w.product(x, Role::Joined, layer, queries + 2 * keys, columns);
    q = b.part(all, 1, 0, queries), k = b.part(all, 1, queries, keys), v = b.part(all, 1, queries + keys, keys);
  } else {
    q = w.product(x, Role::Query, layer, queries, columns);
    k = w.product(x, Role::Key, layer, keys, columns);
    v = w.product(x, Role::Value, layer, keys, columns);
  }
  if (c.clip > 0)
    for (UOpRef *y : {&q, &k, &v})
      if (*y) *y = compose::clampBetween(b, *y, b.literal(*y, -c.clip), b.literal(*y, c.clip));
  if (c.architecture->headNorm == HeadNorm::Row) {
    q = normed(q, Role::QueryNorm, layer, queries);
    k = normed(k, Role::KeyNorm, layer, keys);
  }
  q = byHeads(q, c.heads, pass), k = byHeads(k, c.keyHeads, pass), v = byHeads(v, c.keyHeads, pass);
  if (c.architecture->headNorm == HeadNorm::Head) {
    q = normed(q, Role::QueryNorm, layer, c.headSize);
    k = normed(k, Role::KeyNorm, layer, c.headSize);
  }
  if (b.failed()) return nullptr;
  const Layer &old = layers[size_t(layer)];
  compose::RowCache newKeys = compose::withKeys(b, old.keys, rotated(k, layer, pass), pass.place),
                    newValues = compose::withValues(b, old.values, v, pass.place);
  update(pass.updates, old.keys, newKeys);
  update(pass.updates, old.values, newValues);
  compose::CacheAttentionOptions options;
  options.scale = c.scaleByLayer ? c.scale / double(layer + 1) : c.scale;
  options.softcap = c.softcap;
  options.window = c.windows[size_t(layer)];
  UOpRef y = compose::cacheAttention(b, rotated(q, layer, pass), newKeys, newValues, pass.place, options);
  return w.product(y, Role::Output, layer, c.width, columns);
}

UOpRef Network::activated(UOpRef x) {
  switch (c.activation) {
  case Activation::Silu: return compose::swish(b, x);
  case Activation::Gelu: return compose::gelu(b, x);
  case Activation::GeluTanh: return compose::gelu(b, x, true);
  case Activation::Relu: return b.bin(Op::Max, x, 0.0);
  }
  return nullptr;
}

UOpRef Network::feedForward(UOpRef x, int64_t layer, Role gate, Role up, Role down, int64_t hidden) {
  bool columns = c.architecture->has(Columns) && !c.gguf, gated = c.architecture->feedForward == FeedForward::Gated;
  UOpRef y;
  if (gated && !w.has(gate, layer) && w.rowsOf(up, layer, columns) == 2 * hidden) {
    UOpRef both = w.product(x, up, layer, 2 * hidden, columns);
    y = b.bin(Op::Mul, activated(b.part(both, 1, 0, hidden)), b.part(both, 1, hidden, hidden));
  } else if (gated) {
    y = activated(w.product(x, gate, layer, hidden, columns));
    y = b.bin(Op::Mul, y, w.product(x, up, layer, hidden, columns));
  } else {
    y = activated(w.product(x, up, layer, hidden, columns));
  }
  return w.product(y, down, layer, c.width, columns);
}

UOpRef Network::mixture(UOpRef x, int64_t layer) {
  compose::Routes routes =
      compose::routes(b, w.product(x, Role::Router, layer, c.experts), {c.chosen, c.normalizedRoutes});
  UOpRef y = compose::mixedExperts(b, x, routes, [&](UOpRef rows, int64_t expert) {
    UOpRef inner = activated(w.expertProduct(rows, Role::ExpertGate, layer, expert, c.expertHidden));
    inner = b.bin(Op::Mul, inner, w.expertProduct(rows, Role::ExpertUp, layer, expert, c.expertHidden));
    return w.expertProduct(inner, Role::ExpertDown, layer, expert, c.width);
  });
  if (!c.sharedHidden) return y;
  UOpRef shared = feedForward(x, layer, Role::SharedGate, Role::SharedUp, Role::SharedDown, c.sharedHidden);
  UOpRef share = b.un(Op::Sigmoid, w.product(x, Role::SharedRouter, layer, 1));
  return b.bin(Op::Add, y, b.bin(Op::Mul, share, shared));
}
