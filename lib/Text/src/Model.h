//===- Model.h: a piece becomes tokens ------------------------------------===//
// Takes:    pieces of valid UTF-8, not empty.
// Gives:    their tokens.
// Keeps:    nothing from piece to piece but memory.
// Does not: cut text.
#pragma once

#include "Tokenizer.h"

namespace astra::text {

class Model {
public:
  explicit Model(const astra_text &t) : t(t) {}
  void encode(Bytes piece, Buffer<int32_t> &out);
  bool failed() const { return symbols.failed || heap.failed || best.failed || path.failed; }

private:
  struct Symbol {
    uint32_t token, next, previous; ///< kNone: none
    uint32_t rank;                  ///< of the merge with the next one, or kNone
  };
  struct Waiting {
    uint32_t rank, at;
  };
  struct Best {
    double score;
    uint32_t from, token; ///< from is kNone: not reached
  };

  void bpe(Bytes piece, Buffer<int32_t> &out);
  void unigram(Bytes piece, Buffer<int32_t> &out);
  void wordPiece(Bytes piece, Buffer<int32_t> &out);
  bool hasBytes(Bytes character) const;
  void addSymbol(uint32_t token);
  void mergeFew();
  void mergeMany();
  uint32_t rankOf(uint32_t at) const;
  void join(uint32_t at);

  const astra_text &t;
  Buffer<Symbol> symbols;
  Buffer<Waiting> heap;
  Buffer<Best> best;
  Buffer<uint32_t> path;
};

} // namespace astra::text
