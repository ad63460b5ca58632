//===- Weights.cpp: the weights section ------------------------------------===//
// Takes:    the stored bytes of params and first states.
// Gives:    places, and the section piece by piece.
// Keeps:    alignment and order; nothing is copied.
// Does not: write files (Writer.cpp).
#include "astra/Bundle/Weights.h"
#include "format/Format.h"
#include "src/Sha256.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

Digest Weights::digest(llvm::ArrayRef<uint8_t> data) {
  Digest digest;
  rt::Sha256::digest(data.data(), data.size(), digest.data());
  return digest;
}

std::unique_ptr<fmt::PlaceT> Weights::add(Bytes data, const Digest &digest) {
  auto [it, isNew] = byDigest.try_emplace({digest, data->size()}, blobs.size());
  if (isNew) {
    uint64_t offset = llvm::alignTo(bytes, fmt::kAlign);
    bytes = offset + data->size();
    blobs.push_back({std::move(data), offset});
  }
  const Blob &blob = blobs[it->second];
  auto place = std::make_unique<fmt::PlaceT>();
  place->offset = blob.offset;
  place->length = blob.data->size();
  place->sha256.assign(digest.begin(), digest.end());
  return place;
}

void Weights::forEachPiece(llvm::function_ref<void(llvm::ArrayRef<uint8_t>)> give) const {
  static constexpr uint8_t zeros[fmt::kAlign] = {};
  uint64_t at = 0;
  for (const Blob &blob : blobs) {
    give({zeros, size_t(blob.offset - at)});
    give(*blob.data);
    at = blob.offset + blob.data->size();
  }
}
