//===- Sha256.h: SHA-256 --------------------------------------------------===//
// Takes:    bytes, in any number of pieces.
// Gives:    the digest of FIPS 180-4.
// Keeps:    no allocation, no table beyond the standard's constants.
// Does not: use special instructions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace astra::rt {

class Sha256 {
public:
  Sha256();
  void update(const void *data, size_t bytes);
  /// Ends the message; the object is not used after it.
  void finish(uint8_t digest[32]);
  /// Whether the digest of `data` is `digest`.
  static bool matches(const void *data, size_t bytes, const uint8_t *digest);

private:
  void block(const uint8_t *data);
  uint32_t state[8];
  uint8_t pending[64];
  uint64_t total = 0;
};

} // namespace astra::rt
