//===- MatrixUnitTest.cpp: the models of matrix units beside others --------===//
// Takes:    test/matrix-units/rows.txt, which a model in Python of its own made, and, where it is there, what an H100
//           and an A100 gave: tensor-core-vectors.tar.xz in ../shared/data beside the project, or in
//           $ASTRA_SHARED/data.
// Gives:    equal bits in every row.
#include "astra/IR/MatrixUnits.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace astra;
using llvm::SmallVector;
using llvm::StringRef;
using Bits = SmallVector<uint32_t, 32>;

namespace {
uint32_t number(StringRef text, unsigned radix) {
  uint32_t v = 0;
  EXPECT_FALSE(text.getAsInteger(radix, v)) << text.str();
  return v;
}

Bits words(StringRef text) {
  Bits v;
  for (StringRef part : llvm::split(text, ',')) {
    auto [word, times] = part.split('*');
    v.append(times.empty() ? 1 : number(times, 10), number(word, 16));
  }
  return v;
}

std::string hexadecimal(uint32_t v) { return llvm::utohexstr(v, true, 8); }

TEST(MatrixUnits, RowsOfAnotherModel) {
  auto file = llvm::MemoryBuffer::getFile(ASTRA_MATRIX_ROWS);
  ASSERT_TRUE(bool(file));
  size_t rows = 0;
  std::map<StringRef, unsigned> each;
  for (StringRef line : llvm::split((*file)->getBuffer(), '\n')) {
    if (line.empty()) continue;
    SmallVector<StringRef, 6> f;
    line.split(f, ' ');
    ASSERT_EQ(f.size(), 6u);
    const MatrixUnit *u = matrixUnitNamed(f[0]);
    auto t = matrixInputsNamed(f[1], ',');
    ASSERT_TRUE(u && t && u->takes(*t)) << line.str();
    EXPECT_EQ(hexadecimal(matrixStep(*u, *t, number(f[2], 16), words(f[3]), words(f[4]))), f[5].str()) << line.str();
    ++rows, ++each[u->text];
  }
  EXPECT_EQ(each.size(), matrixUnits().size());
  EXPECT_GT(rows, 500u);
}

TEST(MatrixUnits, OperandsAreRounded) {
  EXPECT_EQ(matrixInput(MatrixInput::BF16, 0x1.01p0f), 1.0f); // a tie, to the even neighbour
  EXPECT_EQ(matrixInput(MatrixInput::BF16, 0x1.03p0f), 0x1.04p0f);
  EXPECT_EQ(matrixInput(MatrixInput::TF32, 0x1.007ffep0f), 0x1.004p0f);
  EXPECT_EQ(matrixInput(MatrixInput::F16, 0x1p-25f), 0.0f);
  EXPECT_EQ(matrixInput(MatrixInput::F16, 65520.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(matrixInput(MatrixInput::E5M2, 0x1p-16f), 0x1p-16f);
}

/// The archive unpacked into a folder that goes with this.
struct Unpacked {
  llvm::SmallString<128> folder;
  explicit Unpacked(const std::string &archive) {
    if (llvm::sys::fs::createUniqueDirectory("matrix-units", folder)) return;
    std::string command = "tar xJf '" + archive + "' -C '" + folder.str().str() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  ~Unpacked() { llvm::sys::fs::remove_directories(folder); }
  std::string text(const std::string &name) const {
    auto file = llvm::MemoryBuffer::getFile(folder + "/model_validation/" + name);
    EXPECT_TRUE(bool(file)) << name;
    return file ? (*file)->getBuffer().str() : "";
  }
};

TEST(MatrixUnits, RecordedOnHardware) {
  const char *shared = getenv("ASTRA_SHARED");
  std::string archive = std::string(shared ? shared : ASTRA_PROJECT "/../shared") + "/data/tensor-core-vectors.tar.xz";
  if (!llvm::sys::fs::exists(archive))
    GTEST_SKIP() << "skipped: there is no " << archive << ", which has what H100 and A100 gave";
  struct Recording {
    const char *gpu, *folder, *unit, *input;
    bool adds; // the fp8 ones were made with an addend of zero, whatever c says
  };
  constexpr Recording recordings[] = {
      {"H100", "bf16", "hopper16", "bf16", true},        {"H100", "fp16", "hopper16", "f16", true},
      {"H100", "tf32", "hopper8-tf32", "tf32", true},    {"H100", "E4M3", "hopper32-fp8", "f8e4m3fn", false},
      {"H100", "E5M2", "hopper32-fp8", "f8e5m2", false}, {"A100", "bf16", "ampere8", "bf16", true},
      {"A100", "fp16", "ampere8", "f16", true},          {"A100", "tf32", "ampere4-tf32", "tf32", true}};
  Unpacked files(archive);
  size_t rows = 0;
  for (const Recording &r : recordings) {
    std::string text[4];
    const char *letters = "abcd";
    for (int i = 0; i < 4; ++i)
      text[i] = files.text(std::string(r.gpu) + "/" + r.folder + "/" + letters[i] + "_" + r.gpu + "_" +
                           (i < 2 ? r.folder : "fp32") + ".txt");
    SmallVector<StringRef, 0> lines[4];
    for (int i = 0; i < 4; ++i) StringRef(text[i]).split(lines[i], '\n', -1, false);
    const MatrixUnit &u = *matrixUnitNamed(r.unit);
    size_t wrong = 0;
    for (size_t row = 0; row < lines[0].size(); ++row, ++rows) {
      Bits operands[2];
      for (int i = 0; i < 2; ++i) {
        SmallVector<StringRef, 32> parts;
        lines[i][row].split(parts, ' ', -1, false);
        for (StringRef p : parts) operands[i].push_back(number(p.trim(), 16));
      }
      uint32_t c = r.adds ? number(lines[2][row].trim(), 2) : 0;
      wrong +=
          matrixStep(u, *matrixInputsNamed(r.input), c, operands[0], operands[1]) != number(lines[3][row].trim(), 2);
    }
    EXPECT_EQ(wrong, 0u) << r.gpu << " " << r.folder;
  }
  EXPECT_EQ(rows, 40000u);
}
} // namespace
