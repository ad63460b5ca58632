/*===- verify.h: signatures of bundles --------------------------------------===
 * Takes:    nothing.
 * Gives:    libastra_verify's implementation of astra_verify_fn, for astra_runtime_options.verify.
 * Keeps:    a library of its own, so that the runtime needs no cryptography; it uses libsodium.
 * Does not: sign (astra-compile does), or hold keys.
 */
#ifndef ASTRA_VERIFY_H
#define ASTRA_VERIFY_H

#include "astra/astra.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RFC 8032, ed25519: 0 if `signature` (64 bytes) is right for `message` under `public_key` (32 bytes), else not 0. */
ASTRA_API int astra_verify_ed25519(const uint8_t *signature, const uint8_t *message, size_t message_bytes,
                                   const uint8_t *public_key);

#ifdef __cplusplus
}
#endif
#endif
