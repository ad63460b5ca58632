//===- Writer.cpp: writes a bundle file ------------------------------------===//
// Takes:    manifest, images, weights, perhaps a key.
// Gives:    header, section table, sections, in the places that Format.h describes.
// Keeps:    padding is zero; one pass to hash, one to write; the weights are never copied.
// Does not: recurse, or hold the file in memory.
#include "astra/Bundle/Writer.h"
#include "astra/Bundle/Reader.h"
#include "format/Format.h"
#include "src/Sha256.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <sodium.h>
#include <sys/mman.h>

using namespace astra;
using namespace llvm;

namespace {

/// What a reader must know to run these programs.
uint64_t featuresOf(const fmt::ManifestT &m) {
  uint64_t features = 0;
  for (const auto &p : m.params) {
    if (!p->place) features |= fmt::kFeatureHeldWeights;
    if (p->prepare != fmt::kNone) features |= fmt::kFeaturePrepare;
    if (p->derive != fmt::kNone) features |= fmt::kFeatureDerive;
  }
  if (!m.functions.empty()) features |= fmt::kFeatureExternal;
  for (const auto &t : m.targets)
    if (t->abi != fmt::kCpuKernelAbi) features |= fmt::kFeatureGpu;
  for (const auto &k : m.kernels)
    for (const auto &code : k->code) {
      bool copies = code->gpu && StringRef(code->plan).contains("; stages ");
      if (code->gpu && !code->gpu->maps.empty()) features |= fmt::kFeatureTensorMaps;
      if (copies || (code->gpu && code->gpu->shared > fmt::kMostStaticShared)) features |= fmt::kFeatureRings;
    }
  for (const auto &e : m.entries) {
    for (const auto &o : e->outputs)
      for (uint32_t x : o->shape)
        for (const fmt::ExprOp &op : m.exprs[x]->code)
          if (op.code() == fmt::ExprCode::Dim && m.dims[op.value()]->source == fmt::DimSource::Internal)
            features |= fmt::kFeatureDataDims;
    for (const auto &p : e->routine->programs)
      for (const fmt::InstrUnion &i : p->code)
        if (i.type == fmt::Instr::Wait)
          features |= fmt::kFeatureBeside;
        else if (i.type == fmt::Instr::While || i.type == fmt::Instr::Loop || i.type == fmt::Instr::Cond)
          features |= fmt::kFeatureControl;
  }
  return features;
}

template <typename Record> ArrayRef<uint8_t> bytesOf(const Record &r) {
  return {reinterpret_cast<const uint8_t *>(&r), sizeof r};
}
StringRef text(ArrayRef<uint8_t> bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

void derive(const SigningKey &seed, uint8_t *publicPart, uint8_t *secretPart) {
  [[maybe_unused]] int failed = sodium_init() < 0 || crypto_sign_seed_keypair(publicPart, secretPart, seed.data());
  assert(!failed && "libsodium could not start");
}

} // namespace

// Note [The runtime judges first]: the reader's rules are written once, in the runtime. A bundle that it refuses is a
// mistake of this compiler, and no file. It sees the file with all bytes but the weights, which it does not hash here:
// their pages are never touched.
static Error judge(const fmt::Header &header, ArrayRef<fmt::Section> table,
                   function_ref<void(size_t, function_ref<void(ArrayRef<uint8_t>)>)> content, const uint8_t *key) {
  size_t bytes = header.fileBytes;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return createStringError(errnoAsErrorCode(), "no address space for a bundle");
  auto *file = static_cast<uint8_t *>(memory), *next = file;
  auto put = [&](ArrayRef<uint8_t> piece) { next = llvm::copy(piece, next); };
  put(bytesOf(header));
  for (const fmt::Section &s : table) put(bytesOf(s));
  for (auto [i, s] : enumerate(table)) {
    next = file + s.offset;
    if (fmt::SectionKind(s.kind) != fmt::SectionKind::Weights) content(i, put);
  }
  Error refused = checkBundle("internal error: the runtime refuses what was compiled",
                              {static_cast<const char *>(memory), bytes}, 0, key);
  munmap(memory, bytes);
  return refused;
}

Error astra::addAssets(BundleParts &parts, std::vector<Asset> assets) {
  llvm::sort(assets, [](const Asset &a, const Asset &b) { return a.name < b.name; });
  for (size_t i = 0; i < assets.size(); ++i) {
    const std::string &name = assets[i].name;
    if (name.empty() || name.find('\0') != std::string::npos) return createStringError("an asset has no name");
    if (i && name == assets[i - 1].name) return createStringError("there are two assets named " + name);
    auto asset = std::make_unique<fmt::AssetT>();
    asset->name = name;
    asset->place = parts.weights.add(assets[i].bytes, Weights::digest(*assets[i].bytes));
    parts.manifest.assets.push_back(std::move(asset));
  }
  return Error::success();
}

Expected<SigningKey> astra::readSigningKey(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path);
  if (!file) return createFileError(path, file.getError());
  StringRef digits = (*file)->getBuffer().trim();
  std::string seed;
  if (digits.size() != 64 || !tryGetFromHex(digits, seed))
    return createStringError(std::errc::invalid_argument,
                             "%s: a signing key is 64 hexadecimal digits; this file holds %zu characters",
                             path.str().c_str(), digits.size());
  SigningKey key;
  llvm::copy(seed, key.begin());
  return key;
}

std::array<uint8_t, 32> astra::publicKey(const SigningKey &key) {
  std::array<uint8_t, crypto_sign_PUBLICKEYBYTES> out;
  uint8_t secret[crypto_sign_SECRETKEYBYTES];
  derive(key, out.data(), secret);
  sodium_memzero(secret, sizeof secret);
  return out;
}

Error astra::writeBundle(BundleParts &parts, raw_ostream &out, const std::optional<SigningKey> &key) {
  fmt::ManifestT &m = parts.manifest;
  assert(parts.images.size() == m.targets.size() && "one image per target");
  uint32_t number = 0;
  for (auto [target, image] : zip_equal(m.targets, parts.images)) {
    target->section = ++number;
    if (!image.text.empty()) target->gpu->text = ++number;
    if (target->gpu && target->gpu->of != fmt::kNone) {
      auto &code = parts.images[target->gpu->of].code;
      target->gpu->of_sha256.resize(32);
      rt::Sha256::digest(code.data(), code.size(), target->gpu->of_sha256.data());
    }
  }

  flatbuffers::FlatBufferBuilder builder(1 << 16);
  fmt::FinishManifestBuffer(builder, fmt::Manifest::Pack(builder, &m));

  // A section is whatever streams its bytes.
  using Give = function_ref<void(ArrayRef<uint8_t>)>;
  std::vector<fmt::Section> table;
  std::vector<std::function<void(Give)>> contents;
  uint64_t end = 0;
  auto addSection = [&](fmt::SectionKind kind, uint64_t bytes, std::function<void(Give)> content) {
    fmt::Section s = {};
    s.kind = uint32_t(kind);
    s.bytes = bytes;
    if (kind != fmt::SectionKind::Signature) {
      rt::Sha256 hash;
      content([&](ArrayRef<uint8_t> piece) { hash.update(piece.data(), piece.size()); });
      hash.finish(s.sha256);
    }
    table.push_back(s);
    contents.push_back(std::move(content));
  };
  auto addBlock = [&](fmt::SectionKind kind, ArrayRef<uint8_t> block) {
    addSection(kind, block.size(), [block](Give give) { give(block); });
  };
  uint8_t signature[crypto_sign_PUBLICKEYBYTES + crypto_sign_BYTES] = {};
  addBlock(fmt::SectionKind::Manifest, {builder.GetBufferPointer(), builder.GetSize()});
  for (const TargetCode &image : parts.images) {
    addBlock(image.kind, image.code);
    if (!image.text.empty()) addBlock(fmt::SectionKind::DeviceText, image.text);
  }
  if (!parts.weights.empty())
    addSection(fmt::SectionKind::Weights, parts.weights.size(), [&](Give give) { parts.weights.forEachPiece(give); });
  if (key) addBlock(fmt::SectionKind::Signature, signature);

  end = sizeof(fmt::Header) + table.size() * sizeof(fmt::Section);
  for (fmt::Section &s : table) {
    auto kind = fmt::SectionKind(s.kind);
    bool mapped = kind == fmt::SectionKind::Code || kind == fmt::SectionKind::Weights;
    s.offset = alignTo(end, mapped ? fmt::kMapAlign : fmt::kAlign);
    end = s.offset + s.bytes;
  }

  fmt::Header header = {};
  llvm::copy(fmt::kMagic, header.magic);
  header.major = fmt::kMajor;
  header.minor = fmt::kMinor;
  header.sectionCount = table.size();
  header.features = featuresOf(m);
  header.fileBytes = end;
  rt::Sha256 hash;
  hash.update(&header, offsetof(fmt::Header, digest));
  for (const fmt::Section &s : table) hash.update(&s, sizeof s);
  hash.finish(header.digest);
  if (key) {
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    derive(*key, signature, secret);
    crypto_sign_detached(signature + crypto_sign_PUBLICKEYBYTES, nullptr, bytesOf(header).data(), sizeof header,
                         secret);
    sodium_memzero(secret, sizeof secret);
  }

  // See Note [The runtime judges first].
  if (Error e = judge(header, table, [&](size_t i, Give give) { contents[i](give); }, key ? signature : nullptr))
    return e;
  const uint64_t start = out.tell();
  out << text(bytesOf(header));
  for (const fmt::Section &s : table) out << text(bytesOf(s));
  for (auto [s, content] : zip_equal(table, contents)) {
    out.write_zeros(s.offset - (out.tell() - start));
    content([&](ArrayRef<uint8_t> piece) { out << text(piece); });
  }
  return Error::success();
}
