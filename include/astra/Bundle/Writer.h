//===- Writer.h: writes a bundle file --------------------------------------===//
// Takes:    a manifest, one code image per target of it, the weights, and a key when the bundle is to be signed.
// Gives:    the file, complete or not at all: it is written beside its place and renamed.
// Keeps:    the bytes are a function of the arguments alone.
// Does not: check the manifest's meaning (the runtime's reader does when a tool opens the file).
#pragma once
#include "astra/Bundle/Weights.h"
#include <functional>
#include <optional>

namespace astra {

struct BundleParts {
  fmt::ManifestT manifest;
  std::vector<std::vector<uint8_t>> images; // one per manifest.targets
  Weights weights;
};

/// The seed of an ed25519 key pair (RFC 8032): the secret.
using SigningKey = std::array<uint8_t, 32>;
/// Reads a key file: 64 hexadecimal digits. An error names the file and what it holds instead.
llvm::Expected<SigningKey> readSigningKey(llvm::StringRef path);
/// The public key that a caller of the runtime gives to ASTRA_VERIFY_SIGNATURE.
std::array<uint8_t, 32> publicKey(const SigningKey &key);

/// Writes `parts` to `path`. Fills in what the writer decides: each target's section number.
llvm::Error writeBundle(BundleParts &parts, llvm::StringRef path, const std::optional<SigningKey> &key = std::nullopt);

/// Writes what `write` streams to `path`, or nothing: a temporary file in the same folder, then a rename.
llvm::Error writeFile(llvm::StringRef path, llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write);

} // namespace astra
