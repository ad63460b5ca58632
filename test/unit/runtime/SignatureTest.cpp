//===- SignatureTest.cpp: signed bundles ----------------------------------===//
// Takes:    keys from fixed seeds.
// Gives:    acceptance of what is signed by the demanded key, refusal of everything else.
// Keeps:    one signature covers every byte of the file.
// Does not: test libsodium.
#include "Client.h"
#include "astra/verify.h"

#include <sodium.h>

using namespace astra;
using namespace astra::test;

namespace {

struct Key {
  explicit Key(uint8_t seedByte) {
    uint8_t seed[32];
    memset(seed, seedByte, sizeof(seed));
    crypto_sign_seed_keypair(pub, secret, seed);
  }
  uint8_t pub[32], secret[64];
};

Bytes sign(const fmt::Header &header) {
  Key key(1);
  Bytes out(key.pub, key.pub + 32);
  out.resize(96);
  crypto_sign_detached(&out[32], nullptr, reinterpret_cast<const uint8_t *>(&header), sizeof(header), key.secret);
  return out;
}

struct Signature : testing::Test {
  Signature() {
    astra_runtime_options o = ASTRA_INIT(astra_runtime_options);
    o.verify = astra_verify_ed25519;
    EXPECT_EQ(astra_runtime_init(runtime.out(), &o, nullptr), ASTRA_OK);
    ManifestMaker k = standardManifest();
    std::vector<RawSection> sections = {{fmt::SectionKind::Manifest, k.manifest()},
                                        {fmt::SectionKind::Code, k.x86.code},
                                        {fmt::SectionKind::Code, k.aarch64.code},
                                        {fmt::SectionKind::Weights, k.weights}};
    unsignedBundle = assemble(sections);
    sections.push_back({fmt::SectionKind::Signature, Bytes(96)});
    signedBundle = assemble(sections, 0, sign);
  }
  astra_status open(const Bytes &bytes, const uint8_t *key) {
    Aligned memory(bytes);
    astra_bundle_options o = ASTRA_INIT(astra_bundle_options);
    o.flags = ASTRA_VERIFY_SIGNATURE | ASTRA_VERIFY_ALL, o.public_key = key;
    astra_bundle *bundle = nullptr;
    diag = Diag();
    astra_status s = astra_bundle_init_memory(&bundle, runtime, memory.data, memory.size, &o, &diag);
    EXPECT_EQ(astra_bundle_free(&bundle), ASTRA_OK);
    return s;
  }
  Diag diag;
  Runtime runtime;
  Bytes signedBundle, unsignedBundle;
  Key right{1}, other{2};
};

TEST_F(Signature, IsDemandedAndFound) {
  EXPECT_OK(open(signedBundle, right.pub));
  EXPECT_FAIL(ASTRA_SIGNATURE, "another key", open(signedBundle, other.pub));
  EXPECT_FAIL(ASTRA_SIGNATURE, "not signed", open(unsignedBundle, right.pub));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "without public_key", open(signedBundle, nullptr));
}

TEST_F(Signature, CoversEveryByte) {
  for (size_t at = 0; at < signedBundle.size(); at += at < 1000 || at + 200 > signedBundle.size() ? 1 : 997) {
    Bytes b = signedBundle;
    b[at] ^= 1;
    EXPECT_NE(open(b, right.pub), ASTRA_OK) << "byte " << at;
  }
  // Somebody who makes the hashes right again cannot make the signature right.
  Bytes b = signedBundle;
  b[reinterpret_cast<const fmt::Section *>(b.data() + 64)[3].offset] ^= 1;
  rehash(b);
  EXPECT_FAIL(ASTRA_SIGNATURE, "does not fit the bundle", open(b, right.pub));
}

} // namespace
