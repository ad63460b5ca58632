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

/// Whether the bytes of section `i` are those that the table vouches for (a signature's own are not hashed).
Status checkHash(const FileView &f, uint32_t i, astra_diag *diag);

/// Checks every rule of Format.h, the manifest and its hash, those of code and weights under ASTRA_VERIFY_ALL, the
/// signature if asked for.
Status readFile(FileView &out, const void *data, uint64_t bytes, uint32_t flags, const uint8_t *publicKey,
                astra_verify_fn verify, Heap &heap, astra_diag *diag);

} // namespace astra::rt
