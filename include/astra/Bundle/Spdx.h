//===- Spdx.h: the dependency list of a bundle -----------------------------===//
#pragma once
#include "format/manifest_generated.h"
#include "llvm/ADT/StringRef.h"

namespace astra {

/// An SPDX 2.3 document, JSON with a final newline. `sha256Hex` names the bundle: the digest of its header.
std::string spdx(const fmt::ManifestT &manifest, llvm::StringRef sha256Hex);

} // namespace astra
