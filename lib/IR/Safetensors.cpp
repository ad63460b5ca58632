//===- Safetensors.cpp: one tensor from a .safetensors file ----------------===//
// Takes:    untrusted names and an untrusted file.
// Gives:    a copy of the tensor's bytes, or a sentence.
#include "astra/IR/Safetensors.h"
#include "astra/Files/SafetensorsHeader.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace astra;
using llvm::StringRef;

static llvm::Expected<std::string> pathBeside(StringRef beside, StringRef file) {
  namespace fs = llvm::sys::fs;
  namespace path = llvm::sys::path;
  llvm::SmallString<128> folder(path::parent_path(beside)), wanted, realFolder, real;
  if (folder.empty()) folder = ".";
  wanted = folder;
  path::append(wanted, file);
  bool inside = !path::is_absolute(file) && llvm::none_of(llvm::make_range(path::begin(file), path::end(file)),
                                                          [](StringRef part) { return part == ".."; });
  if (inside) {
    if (auto e = fs::real_path(wanted, real))
      return llvm::createStringError("cannot open %s: %s", wanted.c_str(), e.message().c_str());
    if (auto e = fs::real_path(folder, realFolder))
      return llvm::createStringError("cannot open %s: %s", folder.c_str(), e.message().c_str());
    StringRef rest = real;
    inside = rest.consume_front(realFolder) && (realFolder == "/" || rest.starts_with("/"));
  }
  if (!inside) return llvm::createStringError("%s is not inside the folder of the text", file.str().c_str());
  return real.str().str();
}

llvm::Expected<Bytes> astra::readSafetensor(StringRef beside, StringRef file, StringRef tensor, DType dtype,
                                            llvm::ArrayRef<int64_t> shape) {
  static const std::pair<StringRef, DType> names[] = {
      {"BOOL", DType::Bool},     {"U8", DType::U8},     {"I8", DType::I8},
      {"U16", DType::U16},       {"I16", DType::I16},   {"U32", DType::U32},
      {"I32", DType::I32},       {"U64", DType::U64},   {"I64", DType::I64},
      {"F16", DType::F16},       {"BF16", DType::BF16}, {"F32", DType::F32},
      {"F64", DType::F64},       {"C64", DType::C64},   {"F8_E4M3", DType::F8E4M3FN},
      {"F8_E5M2", DType::F8E5M2}};
  auto path = pathBeside(beside, file);
  if (!path) return path.takeError();
  auto fail = [&](const llvm::Twine &what) { return llvm::createStringError(file + ": " + what); };
  auto buffer = llvm::MemoryBuffer::getFile(*path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return fail(buffer.getError().message());
  StringRef all = (*buffer)->getBuffer();
  uint64_t length = all.size() < 8 ? 0 : llvm::support::endian::read64le(all.data());
  if (all.size() < 8 || length > all.size() - 8) return fail("not a safetensors file: the header's length is wrong");
  StringRef json = all.substr(8, length), body = all.drop_front(8 + length);
  SafetensorsHeader header;
  std::string wrong;
  if (!readSafetensorsHeader({json.data(), json.size()}, body.size(), header, wrong)) return fail(wrong);
  auto entry = llvm::find_if(header.tensors, [&](const SafetensorsPlace &p) { return p.name == tensor; });
  if (entry == header.tensors.end()) return fail("no tensor is called " + tensor);
  StringRef type(entry->type.data(), entry->type.size());
  auto known = llvm::find_if(names, [&](auto &n) { return n.first == type; });
  if (known == std::end(names) || known->second != dtype)
    return fail(tensor + " is " + type + ", expected " + info(dtype).text);
  if (llvm::ArrayRef<int64_t>(entry->shape) != shape) return fail("the shape of " + tensor + " is another one");
  StringRef data = body.slice(entry->begin, entry->end);
  return std::make_shared<const std::vector<uint8_t>>(data.bytes_begin(), data.bytes_end());
}
