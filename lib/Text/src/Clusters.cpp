//===- Clusters.cpp: extended grapheme clusters -----------------------------===//
// Takes:    see Clusters.h.
// Gives:    a class for a character, and whether two classes stay together.
// Keeps:    the order of the rules in annex 29.
// Does not: allocate.
#include "Clusters.h"

using namespace astra::text;

namespace {

// The first five are the sets of a tokenizer, in this order.
enum Break : uint32_t { Control, Extend, Prepend, Spacing, Picture, Joiner, Flag, L, V, T, LV, LVT, Cr, Lf, Other };
static_assert(Picture + 1 == kClusterSets);

bool within(uint32_t c, uint32_t first, uint32_t last) { return c >= first && c <= last; }

Break breakOf(const astra_text &t, uint32_t sets, uint32_t c) {
  if (c < 0x7f) return c >= ' ' ? Other : c == '\r' ? Cr : c == '\n' ? Lf : Control;
  if (c == 0x200d) return Joiner;
  if (within(c, 0x1f1e6, 0x1f1ff)) return Flag;
  if (within(c, 0x1100, 0x115f) || within(c, 0xa960, 0xa97c)) return L;
  if (within(c, 0x1160, 0x11a7) || within(c, 0xd7b0, 0xd7c6)) return V;
  if (within(c, 0x11a8, 0x11ff) || within(c, 0xd7cb, 0xd7fb)) return T;
  if (within(c, 0xac00, 0xd7a3)) return (c - 0xac00) % 28 ? LVT : LV;
  for (uint32_t k = 0; k < kClusterSets; k++)
    if (t.in(sets + k, c)) return Break(k);
  return Other;
}

} // namespace

size_t astra::text::clusterEnd(const astra_text &t, uint32_t sets, Bytes text, size_t at) {
  Character c = characterAt(text.data + at);
  Break before = breakOf(t, sets, c.value);
  bool picture = before == Picture, odd = before == Flag; // a picture and extending characters; flags come in pairs
  for (at += c.bytes; at < text.size; at += c.bytes) {
    c = characterAt(text.data + at);
    Break now = breakOf(t, sets, c.value);
    bool together;
    if (before == Cr || before == Lf || before == Control || now == Cr || now == Lf || now == Control)
      together = before == Cr && now == Lf;
    else
      together = (before == L && (now == L || now == V || now == LV || now == LVT)) ||
                 ((before == LV || before == V) && (now == V || now == T)) ||
                 ((before == LVT || before == T) && now == T) || now == Extend || now == Joiner || now == Spacing ||
                 before == Prepend || (picture && before == Joiner && now == Picture) || (odd && now == Flag);
    if (!together) break;
    picture = now == Picture || (picture && (now == Extend || now == Joiner));
    odd = now == Flag && !(odd && before == Flag);
    before = now;
  }
  return at;
}
