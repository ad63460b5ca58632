//===- Network.h: a language model as a graph --------------------------------===//
// Takes:    a configuration and its weights.
// Gives:    hidden states and scores of new tokens, and what becomes of the caches.
// Keeps:    all architectures are one network, whose parts the configuration chooses.
#pragma once
#include "Tensors.h"
#include "astra/Compose/Decoder.h"
#include "astra/Import/Language.h"

namespace astra::language {

class Network {
public:
  Network(compose::Composer &b, const Config &c, Tensors &w, const LanguageOptions &o);

  /// New tokens of all sequences, and where they belong.
  struct Pass {
    UOpRef tokens = nullptr; // i32 [batch, rows], in 0..vocabulary where they count
    compose::CachePlace place;
    std::vector<StateUpdate> updates; // of the caches, when it has run
  };
  /// [batch * rows, width], before the last norm.
  UOpRef run(Pass &pass);
  /// The last norm, of rows; and the scores of all tokens behind it.
  UOpRef finalNorm(UOpRef x);
  UOpRef scores(UOpRef x);

  /// Each layer's keys and values, which are states.
  struct Layer {
    compose::RowCache keys, values;
  };
  std::vector<Layer> layers;
  std::vector<UOpRef> states() const;
  /// What becomes of the states of `old`.
  static void update(std::vector<StateUpdate> &updates, const compose::RowCache &old, const compose::RowCache &now);

private:
  compose::Composer &b;
  const Config &c;
  Tensors &w;
  const LanguageOptions &o;
  compose::RotaryTables tables, localTables;

  compose::RowCache cacheOf(const std::string &name);
  compose::RotaryTables tablesOf(const Rotation &rotation);
  UOpRef normed(UOpRef x, Role role, int64_t layer, int64_t width);
  UOpRef attention(UOpRef x, int64_t layer, Pass &pass);
  UOpRef byHeads(UOpRef x, int64_t heads, const Pass &pass);
  UOpRef rotated(UOpRef x, int64_t layer, const Pass &pass);
  UOpRef activated(UOpRef x);
  UOpRef feedForward(UOpRef x, int64_t layer, Role gate, Role up, Role down, int64_t hidden);
  UOpRef mixture(UOpRef x, int64_t layer);
};

} // namespace astra::language
