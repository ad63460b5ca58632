//===- Tokenizer.h: a checked tokenizer in memory -------------------------===//
// Takes:    the bytes of a tokenizer (format/Blob.h).
// Gives:    its sections as views, and the tables that are made when it is opened.
// Keeps:    whoever holds a Tokenizer may index every table by what stands in another one: opening checked it.
// Does not: change behind opening.
#pragma once

#include "../format/Blob.h"
#include "Base.h"

namespace astra::text {

/// Rows of bytes or records, one behind the other: row i ends at ends[i].
template <typename T> struct Rows {
  View<uint32_t> ends;
  View<T> all;
  size_t size() const { return ends.size; }
  View<T> operator[](size_t i) const { return all.part(i ? ends[i - 1] : 0, ends[i]); }
};

/// Tokens whose bytes begin with what was read so far: a part of Sorted. Reading narrows it byte by byte.
struct Prefix {
  uint32_t first, last, read;
};

/// Rows in the order of their bytes, of which some bytes were read, narrowed to those that go on with `byte`; false
/// when none does.
template <typename Row> bool narrowRows(Prefix &p, uint8_t byte, Row row) {
  // What ends here comes first; then the rows are in the order of their next byte.
  auto bound = [&](uint32_t first, uint32_t last, uint32_t least) {
    while (first < last) {
      uint32_t middle = first + (last - first) / 2;
      Bytes b = row(middle);
      if (b.size <= p.read || b[p.read] < least)
        first = middle + 1;
      else
        last = middle;
    }
    return first;
  };
  uint32_t first = bound(p.first, p.last, byte);
  if (first == p.last || row(first)[p.read] != byte) return false;
  p = {first, bound(first, p.last, byte + 1u), p.read + 1};
  return true;
}

} // namespace astra::text

struct astra_text {
  astra::text::Info info;
  astra::text::Rows<uint8_t> tokens, output, strings;
  astra::text::View<uint8_t> kinds;
  astra::text::View<uint32_t> sorted, bytes, code, before, after;
  astra::text::View<double> scores;
  astra::text::View<astra::text::Merge> merges;
  astra::text::View<astra::text::Added> added;
  astra::text::View<astra::text::Step> steps;
  astra::text::Rows<astra::text::Range> sets;
  astra::text::Rows<astra::text::MapEntry> maps;
  astra::text::Rows<astra::text::Rule> rules;
  astra::text::View<astra::text::Class> classes;
  astra::text::View<astra::text::Composition> compositions;
  astra::text::View<astra::text::Chat> chat;
  double unknownScore;

  astra::text::Buffer<uint32_t> firstByte;  ///< 257: where tokens that begin with a byte begin in `sorted`
  astra::text::Buffer<uint64_t> low;        ///< of each set: 1024 words, a bit for each character below U+10000
  astra::text::Buffer<uint32_t> mergeSlots; ///< numbers of merges, kNone is free; the size is a power of two
  astra::text::Buffer<uint32_t> addedOrder; ///< by the string's first byte, longer strings first
  astra::text::Buffer<uint32_t> ruleFirst;  ///< 257 a list: where rules for text with a first byte begin in it
  astra::text::Buffer<char> formName;       ///< of the form of conversations, zero behind it
  astra::text::Buffer<uint32_t> addedFirst; ///< 257: where those with a first byte begin in `addedOrder`

  bool in(uint32_t set, uint32_t character) const;
  /// The string of a character in a map, or kNone.
  uint32_t mapped(uint32_t map, uint32_t character) const;
  uint32_t classOf(uint32_t character) const;
  /// The rule of a list for the begin of a text, the shortest or the longest one, or null.
  const astra::text::Rule *ruleAt(uint32_t list, astra::text::Bytes text, bool longest) const;
  /// The number of the merge of two tokens, or kNone.
  uint32_t mergeOf(uint32_t left, uint32_t right) const;
  astra::text::Prefix anyToken() const { return {0, uint32_t(sorted.size), 0}; }
  /// Goes on with one byte; false when no token goes on so.
  bool narrow(astra::text::Prefix &prefix, uint8_t byte) const;
  /// The token that is what was read, or kNone.
  uint32_t tokenOf(const astra::text::Prefix &prefix) const;
  uint32_t find(astra::text::Bytes text) const;
  astra::text::Bytes outputOf(uint32_t token) const { return output.size() ? output[token] : tokens[token]; }
  bool isSpecial(uint32_t token) const { return kinds[token] == uint8_t(astra::text::TokenKind::Special); }
};
