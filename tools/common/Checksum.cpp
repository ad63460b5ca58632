//===- Checksum.cpp: whether bytes have changed -------------------------------===//
// Gives:    see Checksum.h.
#include "Checksum.h"

using std::string;

uint64_t astra::tool::checksum(const void *data, uint64_t bytes, uint64_t before) {
  const auto *p = static_cast<const uint8_t *>(data);
  for (uint64_t i = 0; i < bytes; ++i) before = (before ^ p[i]) * 0x100000001b3;
  return before;
}

string astra::tool::hexadecimal(uint64_t v) {
  string out(16, '0');
  for (size_t i = 16; i--; v >>= 4) out[i] = "0123456789abcdef"[v & 15];
  return out;
}
