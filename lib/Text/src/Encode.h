//===- Encode.h: a text becomes tokens ------------------------------------===//
// Takes:    text, and the parts of it in which names of special tokens are plain text.
// Gives:    tokens.
// Keeps:    the order: added tokens of the text as it stands, normalizing steps, added tokens of what arises, other
//           steps, the model.
// Does not: check UTF-8.
#pragma once

#include "Tokenizer.h"

namespace astra::text {

/// A part of a text: is it the tokenizer's own, with names of special tokens, or somebody's?
struct Part {
  size_t end;
  bool special;
};

/// `text` is valid UTF-8; the parts cover it, in order.
Status encode(const astra_text &t, Bytes text, View<Part> parts, Buffer<int32_t> &out, astra_diag *diag);

/// Copies what was made into the caller's memory, or says how much room it needs.
template <typename T, typename U>
Status give(const Buffer<T> &made, U *out, size_t capacity, size_t *size, const char *what, astra_diag *diag) {
  if (made.failed) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for %s", what);
  *size = made.size();
  if (made.size() > capacity || (made.size() && !out))
    return fail(diag, ASTRA_CAPACITY, "there are %zu %s, the room is for %zu", made.size(), what, capacity);
  if (made.size()) memcpy(out, made.view().data, made.size() * sizeof(T));
  return ASTRA_OK;
}

/// Refuses what is no UTF-8.
Status requireUtf8(Bytes text, const char *what, astra_diag *diag);

} // namespace astra::text
