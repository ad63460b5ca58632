//===- Reader.cpp: the strict reader of bundle files ----------------------===//
// Takes:    see Reader.h.
// Gives:    one status per kind of damage: not a bundle, truncated, newer, unknown feature, corrupt, malformed,
//           signature.
// Keeps:    reads no byte before its place is known to be inside the file.
// Does not: trust a length, an offset or a count.
#include "Reader.h"
#include "Sha256.h"

using namespace astra::rt;
using astra::fmt::SectionKind;

namespace {

using Number = unsigned long long;

Status checkHeader(const FileView &f, astra_diag *diag) {
  const fmt::Header &h = *f.header;
  if (f.bytes < sizeof(fmt::kMagic) || memcmp(h.magic, fmt::kMagic, sizeof(fmt::kMagic)) != 0)
    return fail(diag, ASTRA_NOT_A_BUNDLE,
                "the file does not begin as an Astra bundle does; give a file that astra-compile made");
  if (f.bytes < sizeof(fmt::Header))
    return fail(diag, ASTRA_TRUNCATED, "the file has %llu bytes, less than a header; fetch it again", Number(f.bytes));
  if (h.major != fmt::kMajor || h.minor > fmt::kMinor)
    return fail(diag, ASTRA_NEWER_FORMAT,
                "the bundle has format %u.%u; this library reads %u.0 to %u.%u: use a newer library", h.major, h.minor,
                fmt::kMajor, fmt::kMajor, fmt::kMinor);
  if (uint64_t unknown = h.features & ~fmt::kKnownFeatures)
    return fail(diag, ASTRA_UNKNOWN_FEATURE,
                "the bundle needs features %#llx, which this library does not have: use a newer library",
                Number(unknown));
  if (h.fileBytes != f.bytes)
    return fail(diag, ASTRA_TRUNCATED, "the file has %llu bytes and its header says %llu; fetch it again",
                Number(f.bytes), Number(h.fileBytes));
  if (h.sectionCount == 0 || h.sectionCount > fmt::kMaxSections)
    return malformed(diag, "the bundle has %u sections; 1 to %u are allowed", h.sectionCount, fmt::kMaxSections);
  uint64_t table = uint64_t(h.sectionCount) * sizeof(fmt::Section);
  if (sizeof(fmt::Header) + table > f.bytes)
    return fail(diag, ASTRA_TRUNCATED, "the file ends inside its section table; fetch it again");
  Sha256 hash;
  uint8_t digest[32];
  hash.update(&h, offsetof(fmt::Header, digest));
  hash.update(f.sections, table);
  hash.finish(digest);
  if (memcmp(digest, h.digest, 32) != 0)
    return fail(diag, ASTRA_CORRUPT,
                "the hash of the header and the section table is wrong; the file is damaged, fetch it again");
  return ASTRA_OK;
}

Status checkSections(FileView &f, astra_diag *diag) {
  uint64_t end = sizeof(fmt::Header) + uint64_t(f.header->sectionCount) * sizeof(fmt::Section);
  for (uint32_t i = 0; i < f.header->sectionCount; i++) {
    const fmt::Section &s = f.sections[i];
    SectionKind kind = static_cast<SectionKind>(s.kind);
    if (s.kind < uint32_t(SectionKind::Manifest) || s.kind > uint32_t(SectionKind::DeviceText))
      return malformed(diag, "section %u has the unknown kind %u", i, s.kind);
    if ((kind == SectionKind::Manifest) != (i == 0))
      return malformed(diag, "the manifest is not section 0, and section 0 alone");
    if (kind == SectionKind::Signature && i + 1 != f.header->sectionCount)
      return malformed(diag, "the signature is not the last section");
    if (s.reserved || s.reserved2) return malformed(diag, "section %u sets a reserved field", i);
    bool mapped = kind == SectionKind::Code || kind == SectionKind::Weights;
    uint64_t next;
    if (s.offset % (mapped ? fmt::kMapAlign : fmt::kAlign) || s.offset < end || !add(s.offset, s.bytes, next) ||
        next > f.bytes)
      return malformed(
          diag,
          "section %u is at byte %llu with %llu bytes: misaligned, over another one, or behind the end of the file", i,
          Number(s.offset), Number(s.bytes));
    for (uint64_t at = end; at < s.offset; at++)
      if (f.data[at]) return malformed(diag, "the gap before section %u is not zero at byte %llu", i, Number(at));
    end = next;
    if (kind == SectionKind::Weights) {
      if (f.weights) return malformed(diag, "there are two weights sections");
      f.weights = &s;
    }
  }
  if (end != f.bytes)
    return malformed(diag, "the last section ends at byte %llu of %llu", Number(end), Number(f.bytes));
  return ASTRA_OK;
}

/// The manifest's hash, and with `all` those of code and weights; a device checks the code that it loads.
Status checkHashes(const FileView &f, bool all, astra_diag *diag) {
  for (uint32_t i = 0; i < (all ? f.header->sectionCount : 1); i++)
    if (Status s = checkHash(f, i, diag)) return s;
  return ASTRA_OK;
}

Status checkSignature(const FileView &f, const uint8_t *publicKey, astra_verify_fn verify, astra_diag *diag) {
  const fmt::Section &s = f.sections[f.header->sectionCount - 1];
  if (!verify)
    return fail(
        diag, ASTRA_SIGNATURE,
        "no way to check a signature: give astra_runtime_options.verify, e.g. astra_verify_ed25519 of libastra_verify");
  if (!publicKey)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "a signature is demanded without public_key; give 32 bytes");
  if (static_cast<SectionKind>(s.kind) != SectionKind::Signature)
    return fail(diag, ASTRA_SIGNATURE, "the bundle is not signed");
  const uint8_t *data = f.section(f.header->sectionCount - 1);
  if (s.bytes != 96) return malformed(diag, "the signature section has %llu bytes; it must have 96", Number(s.bytes));
  if (memcmp(data, publicKey, 32) != 0)
    return fail(diag, ASTRA_SIGNATURE, "the bundle is signed with another key than the one demanded");
  if (verify(data + 32, f.data, sizeof(fmt::Header), publicKey) != 0)
    return fail(diag, ASTRA_SIGNATURE, "the signature does not fit the bundle; do not use it");
  return ASTRA_OK;
}

Status checkContract(const fmt::Manifest &m, bool strict, astra_diag *diag) {
  bool isStrict = strcmp(m.numerics()->c_str(), "strict") == 0;
  bool isDevice = strcmp(m.numerics()->c_str(), "device") == 0 || strncmp(m.numerics()->c_str(), "device:", 7) == 0;
  if (strcmp(m.contract()->c_str(), "astra-num/1") != 0 || (!isStrict && !isDevice))
    return fail(diag, ASTRA_WRONG_CONTRACT,
                "the bundle keeps the numeric contract %.64s, %.64s; this library knows astra-num/1, strict and device",
                m.contract()->c_str(), m.numerics()->c_str());
  if (strict && !isStrict)
    return fail(diag, ASTRA_WRONG_CONTRACT,
                "the bundle was built with --numerics=%.64s and strict is demanded; compile it with --numerics=strict",
                m.numerics()->c_str());
  if (strict && m.functions())
    for (const fmt::HostFunction *f : *m.functions())
      if (!f->deterministic())
        return fail(diag, ASTRA_WRONG_CONTRACT,
                    "the bundle calls the function '%.64s', which is not declared deterministic, and strict is "
                    "demanded",
                    f->name()->c_str());
  return ASTRA_OK;
}

} // namespace

Status astra::rt::checkHash(const FileView &f, uint32_t i, astra_diag *diag) {
  const fmt::Section &s = f.sections[i];
  SectionKind kind = static_cast<SectionKind>(s.kind);
  if (kind == SectionKind::Signature || Sha256::matches(f.section(i), s.bytes, s.sha256)) return ASTRA_OK;
  return fail(diag, ASTRA_CORRUPT, "the hash of section %u (%s) is wrong; the file is damaged, fetch it again", i,
              kind == SectionKind::Manifest  ? "manifest"
              : kind == SectionKind::Weights ? "weights"
                                             : "code");
}

Status astra::rt::readFile(FileView &out, const void *data, uint64_t bytes, uint32_t flags, const uint8_t *publicKey,
                           astra_verify_fn verify, Heap &heap, astra_diag *diag) {
  FileView f = {};
  f.data = static_cast<const uint8_t *>(data), f.bytes = bytes;
  f.header = static_cast<const fmt::Header *>(data);
  f.sections = reinterpret_cast<const fmt::Section *>(f.data + sizeof(fmt::Header));
  if (Status s = checkHeader(f, diag)) return s;
  if (Status s = checkSections(f, diag)) return s;
  if (flags & ASTRA_VERIFY_SIGNATURE)
    if (Status s = checkSignature(f, publicKey, verify, diag)) return s;
  if (Status s = checkHashes(f, flags & ASTRA_VERIFY_ALL, diag)) return s;
  if (Status s =
          checkManifest(f.manifest, f.section(0), f.sections[0].bytes, f.sections, f.header->sectionCount, heap, diag))
    return s;
  if (Status s = checkContract(*f.manifest, flags & ASTRA_REQUIRE_STRICT, diag)) return s;
  out = f;
  return ASTRA_OK;
}
