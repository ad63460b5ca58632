//===- Fuzz.cpp: libFuzzer's view of weight files ---------------------------===//
// Takes:    bytes of libFuzzer: a .safetensors, a GGUF or a zip file; or, where they begin as one does, a pickle, which
//           is put into a zip archive with a storage.
// Gives:    what sanitizers and libFuzzer's limits see, and a crash where a promise is broken: a refusal is one line
//           that begins with the file's name; tensors have the bytes that their dims say; blocks come back from planes.
#include "Archive.h"
#include "astra/Compose/WeightBlocks.h"
#include "astra/Import/WeightFile.h"
#include <cstdlib>
#include <string>
#include <vector>

using namespace astra;

namespace {

void require(bool holds) {
  if (!holds) abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string zip;
  llvm::ArrayRef<uint8_t> bytes(data, size);
  if (size && data[0] == 0x80) {
    zip = test::archive({{"a/data.pkl", std::string(data, data + size)}, {"a/data/0", std::string(64, '\x11')}});
    bytes = llvm::ArrayRef(reinterpret_cast<const uint8_t *>(zip.data()), zip.size());
  }
  auto file = WeightFile::read(bytes, "x");
  if (!file) {
    std::string text = llvm::toString(file.takeError());
    require(llvm::StringRef(text).starts_with("x: ") && text.find('\n') == text.npos);
    return 0;
  }
  unsigned sum = 0; // of all bytes, which are there
  for (const WeightTensor &t : file->tensors()) {
    require(file->find(t.name) != nullptr && weightBytes(t.format, t.dims) == t.bytes.size());
    for (uint8_t b : t.bytes) sum += b;
    if (!info(t.format).isBlocked()) continue;
    auto again = compose::joinBlocks(t.format, t.dims, compose::splitBlocks(t.format, t.dims, t.bytes));
    require(bool(again) && llvm::ArrayRef(*again) == t.bytes);
  }
  for (auto &[key, v] : file->metadata()) require(file->value(key) != nullptr && v.type != nullptr);
  volatile unsigned kept = sum;
  (void)kept;
  return 0;
}
