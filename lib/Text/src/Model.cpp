//===- Model.cpp: BPE, unigram, WordPiece ---------------------------------===//
// Takes:    see Model.h.
// Gives:    BPE: Sennrich, Haddow, Birch 2016, the merge of the lowest rank first, of equal ones the leftmost. Unigram:
//           Kudo 2018, the path of the highest sum of scores. WordPiece: Schuster, Nakajima 2012, the longest token
//           from the left.
// Keeps:    ties are decided as the package `tokenizers` decides them.
// Does not: sample.
#include "Model.h"

using namespace astra::text;

namespace {
/// Up to so many symbols, looking through all of them beats a heap.
constexpr size_t kFew = 40;
} // namespace

void Model::encode(Bytes piece, Buffer<int32_t> &out) {
  switch (ModelKind(t.info.kind)) {
  case ModelKind::Bpe: return bpe(piece, out);
  case ModelKind::Unigram: return unigram(piece, out);
  case ModelKind::WordPiece: return wordPiece(piece, out);
  }
}

//===- BPE ----------------------------------------------------------------===//

bool Model::hasBytes(Bytes character) const {
  if (!(t.info.flags & kByteFallback)) return false;
  for (uint8_t b : character)
    if (t.bytes[b] == kNone) return false;
  return true;
}

void Model::addSymbol(uint32_t token) {
  uint32_t at = uint32_t(symbols.size());
  symbols.push({token, at + 1, at ? at - 1 : kNone, kNone});
}

uint32_t Model::rankOf(uint32_t at) const {
  uint32_t next = symbols[at].next;
  return next == kNone ? kNone : t.mergeOf(symbols[at].token, symbols[next].token);
}

/// A symbol and the next one become one.
void Model::join(uint32_t at) {
  Symbol &a = symbols[at];
  Symbol &b = symbols[a.next];
  a.token = t.merges[a.rank].result;
  b.token = kNone; // gone
  a.next = b.next;
  if (b.next != kNone) symbols[b.next].previous = at;
}

void Model::mergeFew() {
  for (uint32_t at = 0; at != kNone; at = symbols[at].next) symbols[at].rank = rankOf(at);
  for (;;) {
    uint32_t least = kNone, where = kNone;
    for (uint32_t at = 0; at != kNone; at = symbols[at].next)
      if (symbols[at].rank < least) least = symbols[at].rank, where = at;
    if (where == kNone) return;
    join(where);
    symbols[where].rank = rankOf(where);
    if (uint32_t before = symbols[where].previous; before != kNone) symbols[before].rank = rankOf(before);
  }
}

void Model::mergeMany() {
  heap.clear();
  auto above = [](Waiting a, Waiting b) { return a.rank < b.rank || (a.rank == b.rank && a.at < b.at); };
  auto push = [&](uint32_t at) {
    uint32_t rank = symbols[at].rank = rankOf(at);
    if (rank == kNone) return;
    heap.push({rank, at});
    for (size_t i = heap.size() - 1; i && above(heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2) {
      Waiting w = heap[i];
      heap[i] = heap[(i - 1) / 2], heap[(i - 1) / 2] = w;
    }
  };
  auto pop = [&] {
    Waiting top = heap[0], last = heap[heap.size() - 1];
    heap.resize(heap.size() - 1);
    size_t i = 0, n = heap.size();
    for (size_t child; n && (child = 2 * i + 1) < n; i = child) {
      if (child + 1 < n && above(heap[child + 1], heap[child])) child++;
      if (!above(heap[child], last)) break;
      heap[i] = heap[child];
    }
    if (n) heap[i] = last;
    return top;
  };
  for (uint32_t at = 0; at != kNone; at = symbols[at].next) push(at);
  while (heap.size() && !heap.failed) {
    Waiting w = pop();
    // A symbol that is gone, or that has merged since, has another entry or none.
    if (symbols[w.at].token == kNone || symbols[w.at].rank != w.rank) continue;
    join(w.at);
    push(w.at);
    if (uint32_t before = symbols[w.at].previous; before != kNone) push(before);
  }
}

void Model::bpe(Bytes piece, Buffer<int32_t> &out) {
  uint32_t flags = t.info.flags;
  if (flags & kWholeFirst)
    if (uint32_t token = t.find(piece); token != kNone) return out.push(int32_t(token));
  symbols.clear();
  bool afterUnknown = false;
  for (size_t at = 0; at < piece.size;) {
    size_t bytes = flags & kByteLevel ? 1 : lengthAt(piece.data + at);
    Bytes character = piece.part(at, at + bytes);
    at += bytes;
    uint32_t token = flags & kByteLevel ? t.bytes[character[0]] : t.find(character);
    if (token != kNone) {
      addSymbol(token);
    } else if (hasBytes(character)) {
      for (uint8_t b : character) addSymbol(t.bytes[b]);
    } else if (t.info.unknown != kNone) {
      if (!afterUnknown || !(flags & kFuseUnknown)) addSymbol(t.info.unknown);
      afterUnknown = true;
      continue;
    }
    afterUnknown = false;
  }
  if (!symbols.size() || symbols.failed) return;
  symbols[symbols.size() - 1].next = kNone;
  if (symbols.size() > kFew)
    mergeMany();
  else if (symbols.size() > 1)
    mergeFew();
  for (uint32_t at = 0; at != kNone; at = symbols[at].next) out.push(int32_t(symbols[at].token));
}

//===- Unigram ------------------------------------------------------------===//

void Model::unigram(Bytes piece, Buffer<int32_t> &out) {
  best.clear();
  best.resize(piece.size + 1, 0xff);
  if (best.failed) return;
  best[0] = {0, 0, kNone};
  auto reach = [&](size_t from, size_t to, double score, uint32_t token) {
    double sum = best[from].score + score;
    if (best[to].from == kNone || sum > best[to].score) best[to] = {sum, uint32_t(from), token};
  };
  for (size_t at = 0; at < piece.size;) {
    size_t bytes = lengthAt(piece.data + at);
    bool single = false;
    Prefix p = t.anyToken();
    for (size_t end = at; end < piece.size && t.narrow(p, piece[end]);) {
      end++;
      uint32_t token = t.tokenOf(p);
      if (token == kNone) continue;
      reach(at, end, t.scores[token], token);
      single |= end == at + bytes;
    }
    if (!single) reach(at, at + bytes, t.unknownScore, kNone);
    at += bytes;
  }
  path.clear();
  for (size_t at = piece.size; at; at = best[at].from) path.push(uint32_t(at));
  for (size_t i = path.size(), from = 0; i-- && !path.failed;) {
    size_t to = path[i];
    if (best[to].token != kNone) {
      out.push(int32_t(best[to].token));
    } else {
      // Neighbouring unknown characters are one.
      while (i && t.info.flags & kFuseUnknown && best[path[i - 1]].token == kNone) to = path[--i];
      Bytes unknown = piece.part(from, to);
      if (hasBytes(unknown))
        for (uint8_t b : unknown) out.push(int32_t(t.bytes[b]));
      else if (t.info.unknown != kNone)
        out.push(int32_t(t.info.unknown));
    }
    from = to;
  }
}

//===- WordPiece ----------------------------------------------------------===//

void Model::wordPiece(Bytes piece, Buffer<int32_t> &out) {
  size_t characters = 0, begin = out.size();
  for (size_t at = 0; at < piece.size; at += lengthAt(piece.data + at)) characters++;
  Bytes continuing = t.info.continuing == kNone ? Bytes{} : t.strings[t.info.continuing];
  bool known = characters <= t.info.longest;
  for (size_t at = 0; known && at < piece.size;) {
    Prefix p = t.anyToken();
    bool open = true;
    for (size_t i = 0; at && open && i < continuing.size; i++) open = t.narrow(p, continuing[i]);
    uint32_t longest = kNone;
    size_t end = at;
    for (size_t k = at; open && k < piece.size && t.narrow(p, piece[k]); k++)
      if (uint32_t token = t.tokenOf(p); token != kNone) longest = token, end = k + 1;
    known = longest != kNone;
    if (known) out.push(int32_t(longest));
    at = end;
  }
  if (known) return;
  out.resize(begin);
  if (t.info.unknown != kNone) out.push(int32_t(t.info.unknown));
}
