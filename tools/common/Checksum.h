//===- Checksum.h: whether bytes have changed ---------------------------------===//
// Takes:    bytes, in one piece or several.
// Gives:    FNV-1a (Fowler, Noll, Vo) of 64 bits, as a number or as 16 digits.
// Does not: tell that nobody wanted them to change.
#pragma once
#include <cstdint>
#include <string>

namespace astra::tool {

/// `before` is the checksum of what comes before these bytes.
uint64_t checksum(const void *data, uint64_t bytes, uint64_t before = 0xcbf29ce484222325);
std::string hexadecimal(uint64_t v);

} // namespace astra::tool
