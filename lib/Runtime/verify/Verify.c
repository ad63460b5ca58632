//===- Verify.c: ed25519 by libsodium -------------------------------------===//
// Takes:    see verify.h.
// Gives:    one function.
// Keeps:    C, so that nothing but libsodium and libc is linked.
// Does not: initialize random numbers; verifying needs none.
#include "astra/verify.h"

#include <sodium.h>

int astra_verify_ed25519(const uint8_t *signature, const uint8_t *message, size_t message_bytes,
                         const uint8_t *public_key) {
  return crypto_sign_verify_detached(signature, message, message_bytes, public_key);
}
