//===- TorchTest.cpp: files of torch.save, right and hostile ones -----------===//
// Keeps:    pickles are written here opcode by opcode, as torch.save writes them; test/weights/beside_torch.py compares
//           what PyTorch itself has written.
#include "Archive.h"
#include "astra/Import/WeightFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

namespace astra {
namespace {

std::string text(const std::string &s) {
  std::string out = "X";
  test::number(out, s.size(), 4);
  return out + s;
}
std::string ints(std::vector<int> numbers) {
  std::string out = "(";
  for (int n : numbers) out += {'K', char(n)};
  return out + "t";
}
std::string storage(const std::string &type, const std::string &key, int elements) {
  return "(" + text("storage") + "ctorch\n" + type + "\n" + text(key) + text("cpu") + "K" + char(elements) + "tQ";
}
std::string tensor(const std::string &storage, int offset, std::vector<int> dims, std::vector<int> strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K" + char(offset) + ints(std::move(dims)) +
         ints(std::move(strides)) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}
const std::string begin = "\x80\2", dict = "ccollections\nOrderedDict\n)R";

std::string fileOf(const std::string &pickle, size_t bytes = 24) {
  std::string data;
  for (size_t i = 0; i < bytes; ++i) data += char(i);
  return test::archive({{"model/data.pkl", pickle}, {"model/byteorder", "little"}, {"model/data/0", data}});
}

llvm::ArrayRef<uint8_t> view(const std::string &s) { return {reinterpret_cast<const uint8_t *>(s.data()), s.size()}; }

std::string refusal(const std::string &bytes) {
  auto file = WeightFile::read(view(bytes), "x.pt");
  return file ? "no refusal" : llvm::toString(file.takeError());
}
std::string refusalOf(const std::string &pickle) { return refusal(fileOf(begin + pickle)); }

TEST(Torch, StateDict) {
  std::string of = storage("HalfStorage", "0", 12);
  std::string bytes = fileOf(begin + dict + "(" + text("w") + tensor(of, 0, {4, 3}, {3, 1}) + text("t") +
                             tensor(of, 1, {3, 2}, {1, 3}) + text("s") + tensor(of, 11, {}, {}) + text("none") +
                             tensor(of, 0, {0, 3}, {3, 1}) + "u}" + text("_metadata") + "Nsb.");
  auto file = WeightFile::read(view(bytes), "x.pt");
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_EQ(file->containerText(), "PyTorch");
  ASSERT_EQ(file->tensors().size(), 4u);
  const WeightTensor *w = file->find("w");
  EXPECT_EQ(w->format, WeightFormat::F16);
  EXPECT_EQ(w->dims, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(w->bytes.size(), 24u);
  EXPECT_TRUE(w->bytes.data() > view(bytes).data() && w->bytes.end() < view(bytes).end()) << "a view of the file";
  EXPECT_EQ(file->find("t")->bytes.vec(), (std::vector<uint8_t>{2, 3, 8, 9, 4, 5, 10, 11, 6, 7, 12, 13}));
  EXPECT_EQ(file->find("s")->bytes.vec(), (std::vector<uint8_t>{22, 23}));
  EXPECT_EQ(file->find("none")->bytes.size(), 0u);
}

TEST(Torch, Checkpoint) {
  std::string bytes =
      fileOf(begin + "}(" + text("model") + "}" + text("w") + tensor(storage("ByteStorage", "0", 24), 0, {24}, {1}) +
             "s" + text("epoch") + "K\7" + text("steps") +
             "](M\1\2\x8a\2\xff\xff"
             "eu.");
  auto file = WeightFile::read(view(bytes), "x.pt");
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_TRUE(file->find("model.w"));
  EXPECT_EQ(file->integer("epoch"), 7);
  EXPECT_EQ(file->integer("steps.0"), 513);
  EXPECT_EQ(file->integer("steps.1"), -1);
}

/// Folders with pytorch_model.bin, or with its shards.
TEST(Torch, Folders) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("astra-torch", folder));
  auto write = [&](const std::string &name, const std::string &bytes) {
    std::error_code e;
    llvm::raw_fd_ostream(folder.str().str() + "/" + name, e) << bytes;
  };
  auto stateDict = [](const std::string &name) {
    return fileOf(begin + dict + "(" + text(name) + tensor(storage("FloatStorage", "0", 6), 0, {6}, {1}) + "u" +
                  text("step") + "K\7s.");
  };
  write("pytorch_model.bin", stateDict("whole"));
  auto file = WeightFile::open(folder);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_TRUE(file->find("whole"));
  write("p-1.bin", stateDict("a"));
  write("p-2.bin", stateDict("b"));
  write("pytorch_model.bin.index.json", R"({"metadata":{},"weight_map":{"a":"p-1.bin","b":"p-2.bin"}})");
  file = WeightFile::open(folder);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->containerText(), "PyTorch");
  EXPECT_EQ(file->find("b")->bytes[23], 23);
  EXPECT_EQ(file->integer("step"), 7);
  llvm::sys::fs::remove_directories(folder);
}

TEST(Torch, NothingIsCalled) {
  const std::string rest =
      ", which is not read: only tensors, numbers, strings, lists and dicts are (save a state_dict)";
  EXPECT_EQ(refusalOf("cos\nsystem\n(" + text("true") + "tR."), "x.pt: its pickle needs 'os.system'" + rest);
  EXPECT_EQ(refusalOf("c__builtin__\neval\n."), "x.pt: its pickle needs '__builtin__.eval'" + rest);
  EXPECT_EQ(refusalOf("\x8c\2os\x8c\6system\x93."), "x.pt: its pickle needs 'os.system'" + rest);
  EXPECT_EQ(refusalOf("ctorch\nQInt8Storage\n."), "x.pt: its pickle needs 'torch.QInt8Storage'" + rest);
  EXPECT_EQ(refusalOf("ctorch\nload\n."), "x.pt: its pickle needs 'torch.load'" + rest);
  EXPECT_EQ(refusalOf("i"), "x.pt: its pickle has the opcode 105, which torch.save does not write for tensors");
  EXPECT_EQ(refusalOf("ccollections\nOrderedDict\n(K\1tR."), "x.pt: its pickle is malformed");
  EXPECT_EQ(refusalOf("ctorch\nFloatStorage\n)R."), "x.pt: its pickle is malformed");
}

TEST(Torch, WrongFiles) {
  std::string of = storage("FloatStorage", "0", 6);
  EXPECT_EQ(refusalOf(tensor(of, 0, {7}, {1}) + "."), "x.pt: '' leaves its storage");
  EXPECT_EQ(refusalOf(tensor(of, 3, {2, 2}, {2, 1}) + "."), "x.pt: '' leaves its storage");
  EXPECT_EQ(refusalOf(tensor(of, 0, {100, 100}, {0, 0}) + "."), "x.pt: '' leaves its storage"); // more than it has
  EXPECT_EQ(refusalOf(tensor(storage("FloatStorage", "0", 7), 0, {1}, {1}) + "."),
            "x.pt: the storage '0' has 24 bytes, fewer than 7 elements of F32 take");
  EXPECT_EQ(refusalOf(tensor(storage("FloatStorage", "1", 6), 0, {1}, {1}) + "."), "x.pt: has no 'model/data/1'");
  EXPECT_EQ(refusalOf("]q\1h\1a."), "x.pt: '0' is a dict or list that is there twice, or contains itself");
  EXPECT_EQ(refusalOf("}" + text("a") + "]q\1(K\1es" + text("b") + "h\1s."),
            "x.pt: 'b' is a dict or list that is there twice, or contains itself");
  EXPECT_EQ(refusalOf("\x8a\x09\1\1\1\1\1\1\1\1\1."), "x.pt: its pickle has an integer of more than 64 bits");
  EXPECT_EQ(refusalOf("}(K\1u."), "x.pt: its pickle is malformed");
  EXPECT_EQ(refusalOf("K\1"), "x.pt: its pickle is truncated");
  EXPECT_EQ(refusalOf("X\xff\xff\xff\xff."), "x.pt: its pickle is truncated");
  EXPECT_EQ(refusalOf("h\5."), "x.pt: its pickle is malformed");
  EXPECT_EQ(refusalOf("Nr\xff\xff\xff\xff."), "no refusal");
  EXPECT_EQ(refusal(test::archive({{"a", "b"}})),
            "x.pt: is a zip archive without data.pkl: torch.save has not written it");
  EXPECT_EQ(refusal(test::archive({{"a/data.pkl", "N."}, {"a/byteorder", "big"}})),
            "x.pt: is of a big-endian machine, which is not supported");
  std::string old("\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  EXPECT_EQ(refusal(old), "x.pt: is of PyTorch before 1.6, which is not a zip file: load it in PyTorch, and torch.save "
                          "its state_dict");
  std::string whole = fileOf(begin + dict + text("w") + tensor(of, 0, {6}, {1}) + "s.");
  EXPECT_EQ(refusal(whole), "no refusal");
  for (size_t n = 1; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "no refusal") << n;
}

} // namespace
} // namespace astra
