//===- WriterTest.cpp: bundle files -----------------------------------------===//
// Checks:   what the writer writes, the runtime's reader accepts; the bytes are a function of the parts; weights are
//           stored once; a signature covers every byte.
#include "astra/Bundle/Assemble.h"
#include "astra/Bundle/Reader.h"
#include "astra/Bundle/Spdx.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <fstream>

using namespace astra;

namespace {

/// A folder that goes away with the test.
struct Folder {
  llvm::SmallString<128> path;
  Folder() { llvm::cantFail(llvm::errorCodeToError(llvm::sys::fs::createUniqueDirectory("astra-bundle", path))); }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string file(llvm::StringRef name) const { return (path + "/" + name).str(); }
};

std::string contents(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "no file";
}
void store(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

llvm::Error writeTo(const std::string &path, BundleParts &parts, const std::optional<SigningKey> &key = std::nullopt) {
  std::error_code failed;
  llvm::raw_fd_ostream out(path, failed);
  return failed ? llvm::createFileError(path, failed) : writeBundle(parts, out, key);
}

/// One target whose image holds no kernel, one param of 1000 bytes, one entry that does nothing.
BundleParts sample() {
  BundleParts p;
  fmt::ManifestT &m = p.manifest;
  m.contract = "astra-num/1", m.numerics = "strict", m.module_ = "sample";
  m.toolchain = toolchain();
  auto zero = std::make_unique<fmt::ExprT>();
  zero->code.emplace_back(fmt::ExprCode::Const, 0);
  m.exprs.push_back(std::move(zero));
  auto target = std::make_unique<fmt::TargetT>();
  target->name = "cpu:x86-64-v3", target->arch = fmt::Arch::X86_64, target->features = {"avx2"};
  m.targets.push_back(std::move(target));
  for (const char *name : {"w", "same"}) {
    auto param = std::make_unique<fmt::ParamT>();
    param->name = name, param->dtype = fmt::DType::U8, param->shape = {1000}, param->layout = "row-major";
    param->stored_bytes = 1000;
    auto data = std::make_shared<std::vector<uint8_t>>(1000, 7);
    param->place = p.weights.add(data, Weights::digest(*data));
    m.params.push_back(std::move(param));
  }
  auto entry = std::make_unique<fmt::EntryT>();
  entry->name = "main";
  entry->routine = std::make_unique<fmt::RoutineT>();
  entry->routine->programs.push_back(std::make_unique<fmt::ProgramT>());
  m.entries.push_back(std::move(entry));
  p.images.push_back({std::vector<uint8_t>(100, 0xc3)});
  return p;
}

std::string refusal(const std::string &path, bool verifyAll = false) {
  auto file = BundleFile::open(path, verifyAll);
  return file ? "accepted" : llvm::toString(file.takeError());
}

const SigningKey key = {1, 2, 3};

TEST(Writer, TheReaderAcceptsIt) {
  Folder folder;
  BundleParts parts = sample();
  ASSERT_EQ(llvm::toString(writeTo(folder.file("a.astra"), parts)), "");
  auto file = BundleFile::open(folder.file("a.astra"), true);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  ASSERT_EQ(file->sections().size(), 3u);
  EXPECT_EQ(file->sections()[1].offset % fmt::kMapAlign, 0u);
  EXPECT_EQ(file->bytes(file->sections()[2]).size(), 1000u) << "equal weights are stored once";
  EXPECT_EQ(file->manifest.module_, "sample");
  EXPECT_EQ(file->manifest.params[0]->place->offset, file->manifest.params[1]->place->offset);
  EXPECT_TRUE(file->signer().empty());
}

TEST(Writer, BytesAreAFunctionOfTheParts) {
  Folder folder;
  for (const char *name : {"a", "b"}) {
    BundleParts parts = sample();
    ASSERT_EQ(llvm::toString(writeTo(folder.file(name), parts, key)), "");
  }
  EXPECT_EQ(contents(folder.file("a")), contents(folder.file("b")));
}

TEST(Writer, ASignatureCoversEveryByte) {
  Folder folder;
  BundleParts parts = sample();
  ASSERT_EQ(llvm::toString(writeTo(folder.file("a"), parts, key)), "");
  auto file = BundleFile::open(folder.file("a"), true);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  std::array<uint8_t, 32> expected = publicKey(key);
  EXPECT_EQ(file->signer(), llvm::ArrayRef<uint8_t>(expected));
  std::string bytes = contents(folder.file("a"));
  // Every byte that is there for a purpose: header, table, manifest, code, weights, signature; and one of the padding.
  std::vector<size_t> places{16, 40, 100};
  for (const fmt::Section &s : file->sections())
    places.insert(places.end(), {s.offset, s.offset + s.bytes / 2, s.offset + s.bytes - 1});
  places.push_back(file->sections()[1].offset - 1);
  for (size_t at : places) {
    std::string altered = bytes;
    altered[at] ^= 1;
    store(folder.file("b"), altered);
    EXPECT_NE(refusal(folder.file("b"), true), "accepted") << "byte " << at;
  }
}

TEST(Writer, WritesNothingThatTheRuntimeRefuses) {
  for (bool sign : {false, true}) {
    BundleParts parts = sample();
    parts.manifest.params[0]->shape.resize(fmt::kMaxRank + 1, 1);
    std::string bytes;
    llvm::raw_string_ostream out(bytes);
    EXPECT_EQ(llvm::toString(writeBundle(parts, out, sign ? std::optional(key) : std::nullopt)),
              "internal error: the runtime refuses what was compiled: param w has 17 axes; at most 16 are allowed");
    EXPECT_EQ(bytes, "");
  }
}

TEST(Reader, SentencesNameTheFile) {
  Folder folder;
  store(folder.file("empty"), "");
  store(folder.file("text"), std::string(100, 'x'));
  EXPECT_NE(refusal(folder.file("empty")).find("empty: "), std::string::npos);
  EXPECT_NE(refusal(folder.file("text")).find("text: "), std::string::npos);
  EXPECT_NE(refusal(folder.file("missing")).find("missing"), std::string::npos);
  EXPECT_NE(refusal(folder.path.str().str()).find("not a regular file"), std::string::npos);
}

TEST(SigningKeys, AreSixtyFourDigits) {
  Folder folder;
  store(folder.file("good"), std::string(62, '0') + "1F\n");
  store(folder.file("short"), "1234\n");
  store(folder.file("letters"), std::string(64, 'x'));
  EXPECT_TRUE(bool(readSigningKey(folder.file("good"))));
  for (const char *name : {"short", "letters", "missing"}) {
    auto k = readSigningKey(folder.file(name));
    ASSERT_FALSE(bool(k));
    EXPECT_NE(llvm::toString(k.takeError()).find(name), std::string::npos);
  }
  // RFC 8032, section 7.1, test 1
  SigningKey seed;
  std::string bytes = llvm::fromHex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  llvm::copy(bytes, seed.begin());
  EXPECT_EQ(llvm::toHex(publicKey(seed), true), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
}

TEST(SPDX, IsJSONWithEveryComponent) {
  BundleParts parts = sample();
  auto json = llvm::json::parse(spdx(parts.manifest, "00"));
  ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
  const llvm::json::Object &o = *json->getAsObject();
  EXPECT_EQ(o.getString("spdxVersion"), "SPDX-2.3");
  EXPECT_EQ(o.getArray("packages")->size(), parts.manifest.toolchain.size() + 1);
  const llvm::json::Object &astra = *(*o.getArray("packages"))[1].getAsObject();
  EXPECT_EQ(astra.getString("name"), "astra");
  EXPECT_EQ(astra.getString("licenseDeclared"), "Apache-2.0 WITH LLVM-exception");
  // A bundle holds the user's model: what its licence is, the user says.
  EXPECT_EQ((*o.getArray("packages"))[0].getAsObject()->getString("licenseDeclared"), "NOASSERTION");
}

} // namespace
