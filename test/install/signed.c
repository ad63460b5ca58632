/*===- signed.c: opens a bundle if a key has signed it ----------------------===
 * Takes:    a bundle's path, a public key as 64 hexadecimal digits.
 * Gives:    "signed", or the status of the refusal, on stdout.
 * Keeps:    astra.h, verify.h and the C library.
 * Does not: run the bundle.
 */
#include "astra/verify.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  astra_runtime *runtime = NULL;
  astra_bundle *bundle = NULL;
  astra_runtime_options hooks;
  astra_bundle_options options;
  astra_diag diag = {sizeof(astra_diag), 0, ""};
  astra_status status;
  uint8_t key[32];
  unsigned byte;
  int i;
  if (argc != 3 || strlen(argv[2]) != 64) {
    fprintf(stderr, "usage: signed BUNDLE KEY\n");
    return 2;
  }
  for (i = 0; i < 32; i++) {
    if (sscanf(argv[2] + 2 * i, "%2x", &byte) != 1) return 2;
    key[i] = (uint8_t)byte;
  }
  memset(&hooks, 0, sizeof(hooks));
  hooks.size = sizeof(hooks);
  hooks.verify = astra_verify_ed25519;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.flags = ASTRA_VERIFY_SIGNATURE | ASTRA_VERIFY_ALL;
  options.public_key = key;
  status = astra_runtime_init(&runtime, &hooks, &diag);
  if (status == ASTRA_OK) status = astra_bundle_init_file(&bundle, runtime, argv[1], &options, &diag);
  printf("%s\n", status == ASTRA_OK ? "signed" : astra_status_name(status));
  if (astra_bundle_free(&bundle) != ASTRA_OK || astra_runtime_free(&runtime) != ASTRA_OK) return 1;
  return 0;
}
