//===- Sha256.h: SHA-256 --------------------------------------------------===//
// Takes:    bytes, in any number of pieces.
// Gives:    the digest of FIPS 180-4.
// Keeps:    no allocation, no table beyond the standard's constants.
//           The bits of any machine; on x86-64 its SHA instructions where it has them.
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
  static void digest(const void *data, size_t bytes, uint8_t digest[32]);
  /// Whether the digest of `data` is the expected one.
  static bool matches(const void *data, size_t bytes, const uint8_t *expected);

private:
  void blocks(const uint8_t *data, size_t count);
  void block(const uint8_t *data);
  uint32_t state[8];
  uint8_t pending[64];
  uint64_t total = 0;
};

} // namespace astra::rt
