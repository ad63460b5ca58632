//===- Reader.h: the file around the manifest -----------------------------===//
// Takes:    the bytes of a whole file.
// Gives:    a checked view: header, sections, manifest.
// Keeps:    no copy, no ownership.
// Does not: open or map files (Bundle.cpp).
#pragma once

#include "Manifest.h"

namespace astra::rt {

struct FileView {
  const uint8_t *data;
  uint64_t bytes;
  const fmt::Header *header;
  const fmt::Section *sections;
  const fmt::Section *weights; ///< null if there is no such section
  const fmt::Manifest *manifest;

  const uint8_t *section(uint32_t i) const { return data + sections[i].offset; }
};

/// Checks every rule of Format.h, the hashes, the signature if asked for, and the manifest.
Status readFile(FileView &out, const void *data, uint64_t bytes, uint32_t flags, const uint8_t *publicKey,
                astra_verify_fn verify, Heap &heap, astra_diag *diag);

} // namespace astra::rt
