//===- Writer.h: writes a bundle file --------------------------------------===//
// Takes:    a manifest, one code image per target of it, the weights, and a key when the bundle is to be signed.
// Gives:    the file's bytes, to a stream; or an error before the first byte.
// Keeps:    the bytes are a function of the arguments alone; the runtime's reader accepts them.
// Does not: open or rename files.
#pragma once
#include "astra/Bundle/Weights.h"
#include "format/Format.h"
#include <functional>
#include <optional>

namespace astra {

/// The code of a target; of a GPU perhaps with its text beside it.
struct TargetCode {
  std::vector<uint8_t> code;
  fmt::SectionKind kind = fmt::SectionKind::Code;
  std::vector<uint8_t> text = {};
};

struct BundleParts {
  fmt::ManifestT manifest;
  std::vector<TargetCode> images; // one per manifest.targets
  Weights weights;
};

/// A file that goes into the bundle as it is; programs ask for it by name.
struct Asset {
  std::string name;
  Bytes bytes;
};
/// Adds assets in the order of their names; an error names one that is there twice, or whose name is empty.
llvm::Error addAssets(BundleParts &parts, std::vector<Asset> assets);

/// The seed of an ed25519 key pair (RFC 8032): the secret.
using SigningKey = std::array<uint8_t, 32>;
/// Reads a key file: 64 hexadecimal digits. An error names the file and what it holds instead.
llvm::Expected<SigningKey> readSigningKey(llvm::StringRef path);
/// The public key that a caller of the runtime gives to ASTRA_VERIFY_SIGNATURE.
std::array<uint8_t, 32> publicKey(const SigningKey &key);

/// Writes `parts` to `out`, which may have no way back: a pipe. Fills in what the writer decides: the numbers of each
/// target's sections, the hash that links a host build to its GPU's code. Failures of the stream stay with the stream.
llvm::Error writeBundle(BundleParts &parts, llvm::raw_ostream &out,
                        const std::optional<SigningKey> &key = std::nullopt);

} // namespace astra
