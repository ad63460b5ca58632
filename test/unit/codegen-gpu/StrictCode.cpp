//===- StrictCode.cpp: what compiled code says of itself --------------------===//
#include "StrictCode.h"
#include "llvm/Object/ELFObjectFile.h"

using namespace astra::test;
using llvm::StringRef;

static std::unique_ptr<llvm::object::ObjectFile> elfOf(llvm::ArrayRef<uint8_t> file) {
  StringRef bytes(reinterpret_cast<const char *>(file.data()), file.size());
  return llvm::cantFail(llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "code")));
}

std::string astra::test::codeOf(llvm::ArrayRef<uint8_t> file) {
  std::string code;
  auto object = elfOf(file);
  for (const auto &section : object->sections())
    if (section.isText()) code += *section.getContents();
  return code;
}

/// A descriptor is the 64 bytes that describe a kernel to the hardware.
unsigned astra::test::strictDescriptors(llvm::ArrayRef<uint8_t> file) {
  auto object = elfOf(file);
  auto &elf = llvm::cast<llvm::object::ELF64LEObjectFile>(*object);
  unsigned seen = 0;
  for (const auto &symbol : elf.getDynamicSymbolIterators()) {
    StringRef name = llvm::cantFail(symbol.getName());
    if (!name.ends_with(".kd")) continue;
    auto section = llvm::cantFail(symbol.getSection());
    StringRef all = llvm::cantFail(section->getContents());
    uint64_t at = llvm::cantFail(symbol.getAddress()) - section->getAddress();
    uint32_t mode;
    memcpy(&mode, all.data() + at + 48, 4);
    EXPECT_EQ(mode >> 12 & 0xf, 0u) << name.str() << ": rounding";
    EXPECT_EQ(mode >> 16 & 0xf, 0xfu) << name.str() << ": denormals";
    ++seen;
  }
  return seen;
}
