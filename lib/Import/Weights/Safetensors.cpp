//===- Safetensors.cpp: tensors of a .safetensors file ----------------------===//
// Takes:    see Readers.h.
// Gives:    see Readers.h.
#include "Readers.h"
#include "astra/Files/SafetensorsHeader.h"
#include "llvm/Support/Endian.h"

using namespace astra;

llvm::Error astra::readSafetensors(llvm::ArrayRef<uint8_t> file, WeightFile &out) {
  if (file.size() < 8) return refused("is not a .safetensors file: it has no header");
  uint64_t length = llvm::support::endian::read64le(file.data());
  if (length > file.size() - 8)
    return refused("is not a .safetensors file, or is truncated: its header leaves the file");
  SafetensorsHeader header;
  std::string wrong;
  llvm::ArrayRef<uint8_t> data = file.drop_front(8 + length);
  if (!readSafetensorsHeader({reinterpret_cast<const char *>(file.data()) + 8, size_t(length)}, data.size(), header,
                             wrong))
    return refused(wrong);
  for (SafetensorsPlace &p : header.tensors) {
    auto format = weightFormatNamed({p.type.data(), p.type.size()});
    if (!format) return refused(shown(p.name) + " is of type " + std::string(p.type) + ", which is not supported");
    if (auto e = addTensor(out, {std::move(p.name), *format, std::move(p.shape), data.slice(p.begin, p.end - p.begin)}))
      return e;
  }
  for (auto &[key, text] : header.metadata)
    if (auto e = addValue(out, key, {"string", text})) return e;
  return llvm::Error::success();
}
