//===- Npy.cpp: NumPy's array files -----------------------------------------===//
#include "Support/Npy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using llvm::StringRef;

static constexpr std::pair<const char *, DType> descriptions[] = {
    {"|b1", DType::Bool}, {"|i1", DType::I8},  {"<i2", DType::I16}, {"<i4", DType::I32},  {"<i8", DType::I64},
    {"|u1", DType::U8},   {"<u2", DType::U16}, {"<u4", DType::U32}, {"<u8", DType::U64},  {"<f2", DType::F16},
    {"<f4", DType::F32},  {"<f8", DType::F64}, {"<c8", DType::C64}, {"<c16", DType::C128}};

/// The text after 'key': in the header's dictionary.
static StringRef valueOf(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "'").str());
  return at == StringRef::npos ? StringRef() : header.drop_front(at + key.size() + 2).ltrim(" :");
}

llvm::Expected<Tensor> astra::readNpy(StringRef path, DType expected) {
  auto fail = [&](const llvm::Twine &what) { return llvm::createStringError(path + ": " + what); };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return fail(buffer.getError().message());
  StringRef all = (*buffer)->getBuffer();
  if (!all.starts_with("\x93NUMPY") || all.size() < 12) return fail("not a .npy file");
  unsigned major = uint8_t(all[6]), fixed = major == 1 ? 10 : 12;
  if (major < 1 || major > 3) return fail("format version " + llvm::Twine(major) + ", expected 1, 2 or 3");
  size_t length =
      major == 1 ? llvm::support::endian::read16le(all.data() + 8) : llvm::support::endian::read32le(all.data() + 8);
  if (length > all.size() - fixed) return fail("the header is cut off");
  StringRef header = all.substr(fixed, length), body = all.drop_front(fixed + length);

  Tensor t;
  StringRef description = valueOf(header, "descr");
  if (!description.consume_front("'")) return fail("the type is not a simple one");
  description = description.take_until([](char ch) { return ch == '\''; });
  for (auto [text, type] : descriptions)
    if (description == text) t.dtype = type;
  unsigned rawBytes;
  if (StringRef raw = description; t.dtype == DType::Void && (raw.consume_front("|V") || raw.consume_front("<V")) &&
                                   !raw.getAsInteger(10, rawBytes) && rawBytes && rawBytes == byteSize(expected))
    t.dtype = expected;
  if (t.dtype == DType::Void) return fail("type " + description + " is not supported");
  if (!valueOf(header, "fortran_order").starts_with("False")) return fail("the array is not in C order");
  StringRef shape = valueOf(header, "shape");
  if (!shape.consume_front("(")) return fail("the header has no shape");
  llvm::SmallVector<StringRef, 6> extents;
  shape.take_until([](char ch) { return ch == ')'; }).split(extents, ',', -1, /*KeepEmpty=*/false);
  uint64_t bytes = byteSize(t.dtype);
  for (StringRef e : extents) {
    int64_t v;
    if (e.trim().empty()) continue;
    if (e.trim().getAsInteger(10, v) || v < 0 || __builtin_mul_overflow(bytes, uint64_t(v), &bytes))
      return fail("the shape is malformed");
    t.shape.push_back(v);
  }
  if (bytes != body.size())
    return fail("found " + llvm::Twine(body.size()) + " bytes of data, expected " + llvm::Twine(bytes));
  t.bytes.assign(body.bytes_begin(), body.bytes_end());
  return t;
}

llvm::Error astra::writeFile(StringRef path, StringRef bytes) {
  int fd;
  llvm::SmallString<128> temporary;
  if (auto e = llvm::sys::fs::createUniqueFile(path + ".%%%%%%", fd, temporary))
    return llvm::createStringError("cannot write " + path + ": " + e.message());
  llvm::raw_fd_ostream out(fd, /*shouldClose=*/true);
  out << bytes;
  out.close();
  std::error_code error = out.error();
  out.clear_error();
  if (!error) error = llvm::sys::fs::rename(temporary, path);
  if (!error) return llvm::Error::success();
  llvm::sys::fs::remove(temporary);
  return llvm::createStringError("cannot write " + path + ": " + error.message());
}

llvm::Error astra::writeNpy(StringRef path, const Tensor &t) {
  std::string description;
  for (auto [text, type] : descriptions)
    if (type == t.dtype) description = text;
  if (description.empty() && byteSize(t.dtype)) description = "|V" + std::to_string(byteSize(t.dtype));
  if (description.empty())
    return llvm::createStringError("%s has no .npy form: it is smaller than a byte", info(t.dtype).text);
  std::string shape;
  for (int64_t d : t.shape) shape += std::to_string(d) + ", ";
  if (t.shape.size() != 1 && !shape.empty()) shape.resize(shape.size() - 2);
  std::string header =
      "{'descr': '" + description + "', 'fortran_order': False, 'shape': (" + StringRef(shape).rtrim().str() + "), }";
  header.append(63 - (header.size() + 10) % 64, ' '); // the data begins at a multiple of 64
  header += '\n';
  std::string file = "\x93NUMPY";
  file += {'\1', '\0', char(header.size() & 255), char(header.size() >> 8)};
  file += header;
  file.append(reinterpret_cast<const char *>(t.bytes.data()), t.bytes.size());
  return writeFile(path, file);
}
