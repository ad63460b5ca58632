//===- Weights.h: the weights section --------------------------------------===//
// Takes:    the stored bytes of params and first states.
// Gives:    a place for each; equal bytes get one place.
// Keeps:    every place at a multiple of 64 bytes; the order of first use; the bytes are shared, not copied.
// Does not: choose layouts or pack (Pack.h).
#pragma once
#include "astra/IR/Module.h"
#include "format/manifest_generated.h"
#include <array>

namespace astra {

using Digest = std::array<uint8_t, 32>;

class Weights {
public:
  /// SHA-256 of the bytes.
  static Digest digest(llvm::ArrayRef<uint8_t> data);
  /// The digest is that of the data.
  std::unique_ptr<fmt::PlaceT> add(Bytes data, const Digest &digest);
  uint64_t size() const { return bytes; }
  bool empty() const { return blobs.empty(); }
  /// Calls `give` with every byte of the section in order, padding included, in pieces.
  void forEachPiece(llvm::function_ref<void(llvm::ArrayRef<uint8_t>)> give) const;

private:
  struct Blob {
    Bytes data;
    uint64_t offset;
  };
  std::vector<Blob> blobs;
  std::map<std::pair<Digest, uint64_t>, size_t> byDigest;
  uint64_t bytes = 0;
};

} // namespace astra
