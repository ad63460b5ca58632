//===- Pattern.cpp: a backtracking matcher --------------------------------===//
// Takes:    see Pattern.h.
// Gives:    the meaning of Code (format/Blob.h).
// Keeps:    programs run forward, so recursion is at most as deep as a program is long.
// Does not: allocate.
#include "Pattern.h"

using namespace astra::text;

/// A run, and what follows it: the longest run for which the rest matches.
size_t Pattern::run(uint32_t pc, size_t at) {
  uint32_t set = t.code[pc] >> 8, least = t.code[pc + 1], most = t.code[pc + 2], count = 0;
  bool hold = (t.code[pc] & 255) == uint32_t(Code::Hold);
  size_t end = at, shortest = least ? kFailed : at;
  while (count < most && end < text.size) {
    Character c = characterAt(text.data + end);
    if (!t.in(set, c.value)) break;
    end += c.bytes;
    if (++count == least) shortest = end;
    if (!--steps) return kFailed;
  }
  if (count < least) return kFailed;
  for (;;) {
    size_t whole = match(pc + 3, end);
    if (whole != kFailed || hold || end == shortest || !steps) return whole;
    do end--;
    while ((text.data[end] & 0xc0) == 0x80);
  }
}

size_t Pattern::match(uint32_t pc, size_t at) {
  for (;;) {
    if (!steps || !--steps) return kFailed;
    uint32_t word = t.code[pc], argument = word >> 8;
    switch (Code(word & 255)) {
    case Code::Match: return at;
    case Code::Set: {
      if (at == text.size) return kFailed;
      Character c = characterAt(text.data + at);
      if (!t.in(argument, c.value)) return kFailed;
      at += c.bytes, pc++;
      break;
    }
    case Code::Run:
    case Code::Hold: return run(pc, at);
    case Code::Either: {
      size_t end = match(pc + 1, at);
      if (end != kFailed) return end;
      pc += argument;
      break;
    }
    case Code::Jump: pc += argument; break;
    case Code::Ahead:
    case Code::NotAhead: {
      bool found = match(pc + 1, at) != kFailed;
      if (found != (Code(word & 255) == Code::Ahead)) return kFailed;
      pc += argument;
      break;
    }
    case Code::AtBegin:
      if (at) return kFailed;
      pc++;
      break;
    case Code::AtEnd:
      if (at != text.size) return kFailed;
      pc++;
      break;
    }
  }
}

bool Pattern::find(size_t at, size_t &begin, size_t &end) {
  for (; at < text.size; at += lengthAt(text.data + at)) {
    size_t found = match(program, at);
    if (!steps) return false;
    if (found == kFailed || found == at) continue;
    begin = at, end = found;
    return true;
  }
  return false;
}
