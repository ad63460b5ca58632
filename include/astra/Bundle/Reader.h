//===- Reader.h: bundles for tools -----------------------------------------===//
// Takes:    a bundle file.
// Gives:    its header, section table, bytes and manifest as objects, after the runtime's own reader has accepted it.
// Keeps:    one set of rules: what the runtime refuses, tools refuse, with the same sentence.
// Does not: load code.
#pragma once
#include "format/Format.h"
#include "format/manifest_generated.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"

namespace astra {

/// Lets the runtime open a whole file's bytes, 64-byte aligned, and close them again. `flags` are those of
/// astra_bundle_options; with a `key` of 32 bytes the signature must be that key's. The error is `name` and the
/// runtime's sentence.
llvm::Error checkBundle(llvm::StringRef name, llvm::ArrayRef<char> data, uint32_t flags, const uint8_t *key);

class BundleFile {
public:
  /// Opens and checks header and manifest; with `verifyAll` also the hashes of code and weights. If it is signed, the
  /// signature must be right. An error is the runtime's sentence; its code is std::errc::not_supported when the file is
  /// newer than this reader.
  static llvm::Expected<BundleFile> open(llvm::StringRef path, bool verifyAll);

  const fmt::Header &header() const { return *reinterpret_cast<const fmt::Header *>(map.const_data()); }
  llvm::ArrayRef<fmt::Section> sections() const {
    return {reinterpret_cast<const fmt::Section *>(map.const_data() + sizeof(fmt::Header)), header().sectionCount};
  }
  llvm::ArrayRef<uint8_t> bytes(const fmt::Section &s) const {
    return {reinterpret_cast<const uint8_t *>(map.const_data()) + s.offset, size_t(s.bytes)};
  }
  /// The 32 bytes of the signer's public key; empty if the file is not signed.
  llvm::ArrayRef<uint8_t> signer() const;

  fmt::ManifestT manifest;

private:
  llvm::sys::fs::mapped_file_region map;
};

} // namespace astra
