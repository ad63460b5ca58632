//===- Sha256Test.cpp: the runtime's SHA-256 --------------------------------===//
// Checks:   it gives what LLVM's gives, in any number of pieces, with the CPU's instructions and without.
#include "src/Sha256.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "gtest/gtest.h"
#include <random>

using namespace astra;

namespace {

std::array<uint8_t, 32> inPieces(llvm::ArrayRef<uint8_t> data, size_t piece) {
  rt::Sha256 hash;
  for (; !data.empty(); data = data.drop_front(std::min(piece, data.size())))
    hash.update(data.data(), std::min(piece, data.size()));
  std::array<uint8_t, 32> digest;
  hash.finish(digest.data());
  return digest;
}

TEST(Sha256, OfTheStandard) { // FIPS 180-2, appendix B.1
  EXPECT_EQ(llvm::toHex(inPieces(llvm::arrayRefFromStringRef("abc"), 3), true),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/// Pieces of 4096 bytes and more go by instructions, smaller ones do not.
TEST(Sha256, LikeLLVMs) {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(70000);
  for (uint8_t &b : bytes) b = uint8_t(random());
  for (size_t length : {0, 1, 55, 56, 63, 64, 65, 119, 120, 4095, 4096, 4097, 4160, 65536, 69999}) {
    llvm::ArrayRef<uint8_t> data = llvm::ArrayRef(bytes).take_front(length);
    for (size_t piece : {1, 63, 64, 1000, 4096, 5000, 70000})
      EXPECT_EQ(inPieces(data, piece), llvm::SHA256::hash(data)) << length << " bytes in pieces of " << piece;
  }
}

} // namespace
