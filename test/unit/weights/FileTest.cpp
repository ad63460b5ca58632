//===- FileTest.cpp: weight files, right and wrong ones ---------------------===//
// Keeps:    files are made here byte by byte. Every one that is cut short is refused with a sentence.
#include "astra/Import/WeightFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

namespace astra {
namespace {

/// Little-endian numbers and strings, one behind the other.
struct Writer {
  std::string out;
  template <class T> Writer &number(T v) {
    out.append(reinterpret_cast<const char *>(&v), sizeof(T));
    return *this;
  }
  Writer &text(const std::string &s) {
    number<uint64_t>(s.size());
    out += s;
    return *this;
  }
  Writer &key(const std::string &name, uint32_t type) { return text(name).number(type); }
  Writer &tensor(const std::string &name, std::vector<uint64_t> innermostFirst, uint32_t type, uint64_t at) {
    text(name).number<uint32_t>(uint32_t(innermostFirst.size()));
    for (uint64_t d : innermostFirst) number(d);
    return number(type).number(at);
  }
  Writer &zeros(size_t n) {
    out.resize(out.size() + n);
    return *this;
  }
  Writer &align(size_t to) {
    out.resize((out.size() + to - 1) / to * to);
    return *this;
  }
};

class Files : public testing::Test {
protected:
  llvm::SmallString<128> folder;
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("astra-weights", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  std::string path(const std::string &name) { return (folder + "/" + name).str(); }
  std::string write(const std::string &name, const std::string &bytes) {
    std::error_code e;
    llvm::raw_fd_ostream os(path(name), e);
    os << bytes;
    return path(name);
  }
  /// The sentence without the path of the folder.
  std::string refusal(const std::string &path) {
    auto file = WeightFile::open(path);
    if (file) return "no refusal";
    std::string text = llvm::toString(file.takeError());
    EXPECT_EQ(text.rfind(folder.str().str(), 0), 0u) << text;
    return text.substr(std::min(text.size(), folder.size() + 1));
  }
  std::string refusalOf(const std::string &bytes) { return refusal(write("x.gguf", bytes)); }
};

Writer gguf(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
  Writer w;
  w.out = "GGUF";
  w.number(version).number(tensors).number(keys);
  return w;
}

std::string goodGguf(uint32_t version) {
  Writer w = gguf(3, 9, version);
  w.key("general.architecture", 8).text("llama");
  w.key("general.alignment", 4).number<uint32_t>(64);
  w.key("a.f32", 6).number(0.5f);
  w.key("a.bool", 7).number<uint8_t>(1);
  w.key("a.negative", 5).number<int32_t>(-3);
  w.key("a.f64", 12).number(0.1);
  w.key("words", 9).number<uint32_t>(8).number<uint64_t>(2).text("a").text("");
  w.key("scores", 9).number<uint32_t>(6).number<uint64_t>(2).number(1.5f).number(-2.0f);
  w.key("kinds", 9).number<uint32_t>(5).number<uint64_t>(3).number(1).number(-2).number(3);
  w.tensor("second", {32, 2}, 3, 64).tensor("first", {3, 2}, 0, 0).tensor("last", {2}, 30, 128);
  w.align(64);
  size_t data = w.out.size();
  for (int i = 0; i < 6; ++i) w.number(float(i));
  w.out.resize(data + 64);
  for (int i = 0; i < 40; ++i) w.number(uint8_t(i));
  w.out.resize(data + 128);
  w.number<uint32_t>(0x3f803f80);
  return w.out;
}

TEST_F(Files, Gguf) {
  for (uint32_t version : {2u, 3u}) {
    auto file = WeightFile::open(write("x.gguf", goodGguf(version)));
    ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
    EXPECT_EQ(file->containerText(), "GGUF version " + std::to_string(version));
    ASSERT_EQ(file->tensors().size(), 3u);
    EXPECT_EQ(file->tensors()[0].name, "first");
    EXPECT_EQ(file->tensors()[0].dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(file->tensors()[0].bytes.size(), 24u);
    EXPECT_EQ(file->tensors()[1].format, WeightFormat::Q4_1);
    EXPECT_EQ(file->tensors()[1].bytes.size(), 40u);
    EXPECT_EQ(file->tensors()[1].bytes[39], 39);
    EXPECT_EQ(file->find("last")->format, WeightFormat::BF16);
    EXPECT_EQ(*file->string("general.architecture"), "llama");
    EXPECT_EQ(file->integer("general.alignment"), 64);
    EXPECT_EQ(file->integer("a.negative"), -3);
    EXPECT_EQ(file->integer("a.bool"), 1);
    EXPECT_STREQ(file->value("a.bool")->type, "bool");
    EXPECT_EQ(file->number("a.f32"), 0.5);
    EXPECT_EQ(file->number("a.f64"), 0.1);
    EXPECT_EQ(file->number("a.negative"), -3.0);
    EXPECT_EQ(*file->strings("words"), (std::vector<std::string>{"a", ""}));
    EXPECT_EQ(*file->numbers("scores"), (std::vector<double>{1.5, -2}));
    EXPECT_EQ(*file->integers("kinds"), (std::vector<int64_t>{1, -2, 3}));
    EXPECT_EQ(file->integers("words"), nullptr);
    EXPECT_EQ(file->string("none"), nullptr);
    auto none = file->get("none");
    EXPECT_EQ(llvm::toString(none.takeError()), path("x.gguf") + ": has no tensor 'none'");
  }
}

TEST_F(Files, GgufThatIsCutShort) {
  std::string whole = goodGguf(3);
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusalOf(whole.substr(0, n)), "no refusal") << n;
}

TEST_F(Files, GgufThatIsWrong) {
  EXPECT_EQ(refusalOf(gguf(0, 0, 1).out), "x.gguf: is a GGUF file of version 1, supported are 2 and 3");
  EXPECT_EQ(refusalOf(gguf(0, 0, 0x03000000).out),
            "x.gguf: is a GGUF file of a big-endian machine, which is not supported");
  EXPECT_EQ(refusalOf(gguf(0, 1).key("k", 13).out), "x.gguf: the value of 'k': is of type 13, which is not known");
  EXPECT_EQ(refusalOf(gguf(0, 1).key("k", 9).number<uint32_t>(9).number<uint64_t>(0).out),
            "x.gguf: the value of 'k': an array of arrays is not supported");
  EXPECT_EQ(refusalOf(gguf(0, 1).key("k", 9).number<uint32_t>(0).number(~uint64_t(0)).out),
            "x.gguf: the value of 'k': an array of 18446744073709551615 elements leaves the file");
  EXPECT_EQ(refusalOf(gguf(0, 2).key("k", 0).number<uint8_t>(0).key("k", 0).number<uint8_t>(0).out),
            "x.gguf: the key 'k' is there twice");
  EXPECT_EQ(refusalOf(gguf(0, 1).key("general.alignment", 4).number<uint32_t>(24).out),
            "x.gguf: general.alignment is no power of two of at most 2^20");
  EXPECT_EQ(refusalOf(gguf(~uint64_t(0), 0).out), "x.gguf: is truncated: its header leaves the file");
  EXPECT_EQ(refusalOf(gguf(2, 0).tensor("a", {256}, 16, 0).tensor("b", {1}, 77, 0).out),
            "x.gguf: has tensors of types that are not supported: IQ2_XXS, number 77");
  EXPECT_EQ(refusalOf(gguf(1, 0).tensor("a", {33}, 2, 0).out),
            "x.gguf: 'a' is of type Q4_0, whose blocks have 32 elements, and its rows have 33");
  EXPECT_EQ(refusalOf(gguf(1, 0).tensor("a", {uint64_t(1) << 40, uint64_t(1) << 40}, 0, 0).out),
            "x.gguf: the shape of 'a' does not fit its type, or is too large");
  EXPECT_EQ(refusalOf(gguf(1, 0).tensor("a", {~uint64_t(0)}, 0, 0).out), "x.gguf: an extent of 'a' is too large");
  EXPECT_EQ(refusalOf(gguf(1, 0).tensor("a", std::vector<uint64_t>(9, 1), 0, 0).out),
            "x.gguf: 'a' has 9 axes, at most 8 are known");
  EXPECT_EQ(refusalOf(gguf(1, 0).tensor("a", {1}, 0, 4).align(32).number(0.f).number(0.f).out),
            "x.gguf: 'a' begins at 4, which is no multiple of the alignment 32");
  EXPECT_EQ(refusalOf(gguf(2, 0).tensor("a", {9}, 0, 0).tensor("b", {9}, 0, 32).align(32).zeros(128).out),
            "x.gguf: 'b' overlaps the tensor before it");
  EXPECT_EQ(refusalOf(gguf(2, 0).tensor("a", {1}, 0, 0).tensor("a", {1}, 0, 32).align(32).zeros(128).out),
            "x.gguf: 'a' is there twice");
  EXPECT_EQ(refusalOf(gguf(1, 0).tensor("a\n", {4}, 0, 0).align(32).number(0.f).out),
            "x.gguf: 'a?' leaves the file, which is truncated or malformed: it needs 16 bytes at 0 of 4");
  EXPECT_EQ(refusalOf("plain text"),
            "x.gguf: is no weight file that is known: .safetensors, GGUF, or a zip file of PyTorch's torch.save");
  EXPECT_EQ(refusal(path("none")), "none: cannot be read: No such file or directory");
}

std::string safetensors(const std::string &header, size_t bytes) {
  Writer w;
  w.text(header);
  for (size_t i = 0; i < bytes; ++i) w.number(uint8_t(i));
  return w.out;
}
const std::string oneTensor =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";
std::string named(const std::string &name) {
  return safetensors(R"({")" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
}

TEST_F(Files, Safetensors) {
  auto file = WeightFile::open(write("x.safetensors", safetensors(oneTensor, 4)));
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  ASSERT_EQ(file->tensors().size(), 1u);
  EXPECT_EQ(file->find("a")->format, WeightFormat::F16);
  EXPECT_EQ(file->find("a")->bytes[3], 3);
  EXPECT_EQ(*file->string("format"), "pt");
  EXPECT_EQ(refusal(write("y", safetensors(oneTensor, 3))), "y: holds 3 bytes of data; its tensors need 4");
  std::string whole = safetensors(oneTensor, 4);
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusalOf(whole.substr(0, n)), "no refusal") << n;
}

TEST_F(Files, Folders) {
  EXPECT_EQ(refusal(folder.str().str()).find("has none of model.safetensors,"), 2u - 1); // "FOLDER: has none ..."
  write("m-1.safetensors", named("a"));
  write("m-2.safetensors", named("b"));
  write("model.safetensors.index.json",
        R"({"metadata":{"total_size":2},"weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors"}})");
  auto file = WeightFile::open(folder);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[1].name, "b");
  auto index = [&](const std::string &text) {
    write("model.safetensors.index.json", text);
    return refusal(folder.str().str());
  };
  EXPECT_EQ(index(R"({"weight_map":{"b":"m-1.safetensors","a":"m-1.safetensors"}})"),
            "model.safetensors.index.json: says that 'b' is in m-1.safetensors, which does not have it");
  EXPECT_EQ(index(R"({"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors"}})"),
            "model.safetensors.index.json: says that 'b' is in m-1.safetensors, which does not have it");
  EXPECT_EQ(index(R"({"weight_map":{"a":"../m-1.safetensors"}})"),
            "model.safetensors.index.json: 'a' is in no file of the folder");
  EXPECT_EQ(index("{}"), "model.safetensors.index.json: is not the index of a sharded model: it has no \"weight_map\"");
  EXPECT_EQ(index(std::string(100, '[')),
            "model.safetensors.index.json: is not the index of a sharded model: it is nested too deeply");
  EXPECT_EQ(index(R"({"weight_map":{"a":"none"}})"), "none: cannot be read: No such file or directory");
  llvm::sys::fs::remove(path("model.safetensors.index.json"));
  write("model.safetensors", named("c"));
  file = WeightFile::open(folder);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_TRUE(file->find("c"));
}

/// As transformers writes them: each shard repeats the metadata, of which the first is right.
TEST_F(Files, ShardsWithMetadata) {
  auto shard = [](const std::string &tensor, const std::string &more) {
    return safetensors(R"({"__metadata__":{"format":"pt")" + more + R"(},")" + tensor +
                           R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                       1);
  };
  write("m-1", shard("a", R"(,"of":"1")"));
  write("m-2", shard("b", R"(,"of":"2")"));
  write("m-3", shard("c", R"(,"more":"x")"));
  write("model.safetensors.index.json", R"({"weight_map":{"b":"m-2","a":"m-1","c":"m-3"}})");
  auto file = WeightFile::open(folder);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_EQ(file->tensors().size(), 3u);
  ASSERT_EQ(file->metadata().size(), 3u);
  EXPECT_EQ(*file->string("format"), "pt");
  EXPECT_EQ(*file->string("of"), "1");
  EXPECT_EQ(*file->string("more"), "x");
  write("m-2", safetensors(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                           1));
  EXPECT_NE(refusal(folder.str().str()), "no refusal");
  write("m-2", safetensors(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                           2));
  EXPECT_EQ(refusal(folder.str().str()), "m-2: 'a' is there twice");
}

} // namespace
} // namespace astra
