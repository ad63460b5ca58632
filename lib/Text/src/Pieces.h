//===- Pieces.h: the steps of a tokenizer on pieces of text ----------------===//
// Takes:    valid UTF-8.
// Gives:    the pieces that the model turns into tokens, one by one.
// Keeps:    text stays valid UTF-8 after each step.
// Does not: look for added tokens.
#pragma once

#include "Tokenizer.h"

namespace astra::text {

struct Piece {
  uint32_t begin, end;
};

/// Pieces of one text, in order, apart.
struct Pieces {
  Buffer<uint8_t> text;
  Buffer<Piece> pieces;
  Buffer<uint8_t> nextText; ///< of the step that is running
  Buffer<Piece> nextPieces;

  void begin(Bytes whole) {
    text.clear(), pieces.clear();
    text.append(whole);
    pieces.push({0, uint32_t(whole.size)});
  }
  Bytes operator[](size_t i) const { return text.view().part(pieces[i].begin, pieces[i].end); }
  bool failed() const { return text.failed || pieces.failed || nextText.failed || nextPieces.failed; }
};

/// Runs the steps from .. to. `first`: the pieces are at the begin of the caller's text (PrependWhere).
Status runSteps(const astra_text &t, uint32_t from, uint32_t to, bool first, Pieces &pieces, astra_diag *diag);

} // namespace astra::text
