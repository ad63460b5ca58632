//===- Base.cpp: sentences and UTF-8 --------------------------------------===//
// Takes:    see Base.h.
// Gives:    the formatting of sentences, the check and the repair of UTF-8.
// Keeps:    never writes behind what the caller's struct size allows.
// Does not: allocate, but in Buffers that it is given.
#include "Base.h"

#include <cstdarg>
#include <cstddef>
#include <cstdio>

using namespace astra::text;

static Status failWith(astra_diag *diag, Status status, const char *format, va_list args) {
  constexpr size_t textAt = offsetof(astra_diag, text);
  if (!diag || diag->size <= textAt) return status;
  size_t room = diag->size - textAt;
  diag->status = status;
  vsnprintf(diag->text, room < sizeof(diag->text) ? room : sizeof(diag->text), format, args);
  return status;
}

Status astra::text::fail(astra_diag *diag, Status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  failWith(diag, status, format, args);
  va_end(args);
  return status;
}

Status astra::text::malformed(astra_diag *diag, const char *format, ...) {
  va_list args;
  va_start(args, format);
  failWith(diag, ASTRA_MALFORMED, format, args);
  va_end(args);
  return ASTRA_MALFORMED;
}

/// The bytes of the character that begins here, 0 if none does; `cut` as in validUtf8; `part` is the longest begin of a
/// character, at least 1.
static uint32_t validAt(const uint8_t *at, size_t left, bool &cut, uint32_t &part) {
  cut = false, part = 1;
  uint8_t a = at[0];
  if (a < 0x80) return 1;
  uint32_t bytes = a >= 0xc2 && a <= 0xdf ? 2 : a >= 0xe0 && a <= 0xef ? 3 : a >= 0xf0 && a <= 0xf4 ? 4 : 0;
  if (!bytes) return 0;
  uint8_t least = a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80, most = a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf;
  for (uint32_t i = 1; i < bytes; i++, least = 0x80, most = 0xbf) {
    if (i == left) {
      cut = true;
      return 0;
    }
    if (at[i] < least || at[i] > most) return 0;
    part = i + 1;
  }
  return bytes;
}

size_t astra::text::validUtf8(Bytes text, bool &cut) {
  cut = false;
  size_t at = 0;
  while (at < text.size) {
    uint64_t eight;
    if (text.size - at >= 8 && (memcpy(&eight, text.data + at, 8), !(eight & 0x8080808080808080u))) {
      at += 8;
      continue;
    }
    uint32_t part, bytes = validAt(text.data + at, text.size - at, cut, part);
    if (!bytes) return at;
    at += bytes;
  }
  return at;
}

void astra::text::appendCharacter(Buffer<uint8_t> &out, uint32_t c) {
  if (c < 0x80) return out.push(uint8_t(c));
  if (c < 0x800) {
    out.push(uint8_t(0xc0 | c >> 6));
  } else if (c < 0x10000) {
    out.push(uint8_t(0xe0 | c >> 12));
    out.push(uint8_t(0x80 | (c >> 6 & 63)));
  } else {
    out.push(uint8_t(0xf0 | c >> 18));
    out.push(uint8_t(0x80 | (c >> 12 & 63)));
    out.push(uint8_t(0x80 | (c >> 6 & 63)));
  }
  out.push(uint8_t(0x80 | (c & 63)));
}

void astra::text::appendLossy(Buffer<uint8_t> &out, Bytes bytes) {
  while (bytes.size) {
    bool cut;
    size_t good = validUtf8(bytes, cut);
    out.append(bytes.part(0, good));
    if (good == bytes.size) return;
    uint32_t part;
    validAt(bytes.data + good, bytes.size - good, cut, part);
    appendCharacter(out, 0xfffd);
    bytes = bytes.part(good + part, bytes.size);
  }
}
