//===- Npy.cpp: NumPy's .npy files -----------------------------------------===//
// Takes:    a path.
// Gives:    the array, or one sentence.
// Keeps:    magic, version, header length, descr, order, shape and size are checked before anything is trusted.
// Does not: understand structured, object or big-endian dtypes: it refuses them.
#include "Npy.h"
#include "OutputFile.h"
#include "astra/astra.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

using namespace astra::tool;
using std::string;
using std::string_view;

namespace {

constexpr struct {
  string_view descr; // without the byte order
  int32_t dtype;
} descrs[] = {{"b1", ASTRA_BOOL}, {"i1", ASTRA_I8},  {"i2", ASTRA_I16}, {"i4", ASTRA_I32},  {"i8", ASTRA_I64},
              {"u1", ASTRA_U8},   {"u2", ASTRA_U16}, {"u4", ASTRA_U32}, {"u8", ASTRA_U64},  {"f2", ASTRA_F16},
              {"f4", ASTRA_F32},  {"f8", ASTRA_F64}, {"c8", ASTRA_C64}, {"c16", ASTRA_C128}};

unsigned bitsOf(int32_t dtype) {
  for (auto &row : descrs)
    if (row.dtype == dtype) return unsigned(std::atoi(row.descr.data() + 1)) * 8;
  if (dtype == ASTRA_I2 || dtype == ASTRA_U2) return 2;
  if (dtype == ASTRA_I4 || dtype == ASTRA_U4 || dtype == ASTRA_F4E2M1) return 4;
  return dtype == ASTRA_BF16 ? 16 : 8;
}

/// Calls f(byte, shift, element) for every element of a sub-byte type: low bits first, rows padded to bytes.
template <class F> void eachPacked(const std::vector<int64_t> &shape, unsigned bits, F f) {
  uint64_t row = shape.empty() ? 1 : uint64_t(shape.back()), rowBytes = (row * bits + 7) / 8, count = 1;
  for (int64_t extent : shape) count *= uint64_t(extent);
  for (uint64_t i = 0; i < count; ++i) f(i / row * rowBytes + i % row * bits / 8, i % row * bits % 8, i);
}

/// What follows 'key': in the header's dictionary, up to the end of the value.
bool field(string_view header, string_view key, string_view &out) {
  size_t at = header.find("'" + string(key) + "':");
  if (at == header.npos) return false;
  header.remove_prefix(at + key.size() + 3);
  size_t begin = header.find_first_not_of(' ');
  if (begin == header.npos) return false;
  header.remove_prefix(begin);
  size_t end = header[0] == '(' ? header.find(')') : header.find_first_of(",}");
  if (end == header.npos) return false;
  out = header.substr(0, end);
  return true;
}

bool parseShape(string_view text, std::vector<int64_t> &shape) {
  if (!text.starts_with("(")) return false;
  text.remove_prefix(1);
  while (true) {
    while (text.starts_with(" ") || text.starts_with(",")) text.remove_prefix(1);
    if (text.empty()) return true;
    int64_t v = 0;
    size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
      if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, text[digits] - '0', &v)) return false;
      ++digits;
    }
    if (!digits || shape.size() == ASTRA_MAX_RANK) return false;
    shape.push_back(v);
    text.remove_prefix(digits);
  }
}

bool parseHeader(string_view header, Npy &out, uint64_t &bytes, string &error) {
  string_view descr, order, shape;
  if (!field(header, "descr", descr) || !field(header, "fortran_order", order) || !field(header, "shape", shape)) {
    error = "the header lacks descr, fortran_order or shape";
    return false;
  }
  string_view code = descr.size() > 3 ? descr.substr(2, descr.size() - 3) : "";
  char byteOrder = descr.size() > 3 ? descr[1] : 0;
  out.dtype = 0;
  for (auto &row : descrs)
    if (row.descr == code && byteOrder != '>') out.dtype = row.dtype;
  if (!out.dtype) {
    error = "the dtype " + string(descr) + " is not supported: save bool, integers, floats or complex, little-endian";
    return false;
  }
  out.fortranOrder = order == "True";
  out.shape.clear();
  if (!parseShape(shape, out.shape)) {
    error = "the shape " + string(shape) + " is not one of at most 16 axes";
    return false;
  }
  bytes = bitsOf(out.dtype) / 8;
  for (int64_t extent : out.shape)
    if (__builtin_mul_overflow(bytes, uint64_t(extent), &bytes)) {
      error = "the shape " + string(shape) + ") is too large";
      return false;
    }
  return true;
}

} // namespace

bool astra::tool::parseNpy(const std::vector<uint8_t> &file, Npy &out, string &error) {
  auto fail = [&](const string &text) {
    error = text;
    return false;
  };
  if (file.size() < 10 || std::memcmp(file.data(), "\x93NUMPY", 6) != 0) return fail("is not a .npy file");
  unsigned major = file[6];
  size_t lengthBytes = major == 1 ? 2 : 4, length = 0, begin = 8 + lengthBytes;
  if (major < 1 || major > 3) return fail("has .npy format " + std::to_string(major) + "; 1 to 3 are known");
  if (file.size() < begin) return fail("is truncated");
  for (size_t i = 0; i < lengthBytes; ++i) length |= size_t(file[8 + i]) << (8 * i);
  if (length > file.size() - begin) return fail("is truncated");
  uint64_t bytes = 0;
  if (!parseHeader({reinterpret_cast<const char *>(file.data()) + begin, length}, out, bytes, error)) return false;
  if (file.size() - begin - length != bytes)
    return fail("holds " + std::to_string(file.size() - begin - length) + " bytes of data; its shape needs " +
                std::to_string(bytes));
  out.data.assign(file.begin() + begin + length, file.end());
  return true;
}

bool astra::tool::readNpy(const string &path, Npy &out, string &error) {
  std::vector<uint8_t> file;
  if (!readWhole(path, file, error)) return false;
  if (parseNpy(file, out, error)) return true;
  error = path + ": " + error;
  return false;
}

bool astra::tool::adopt(Npy &a, int32_t dtype, string &error) {
  unsigned bits = bitsOf(dtype);
  bool byte = a.dtype == ASTRA_U8 || a.dtype == ASTRA_I8;
  if (bits >= 8) {
    bool unknown = dtype == ASTRA_BF16 || dtype >= ASTRA_F8E4M3FN;
    if (unknown && (a.dtype == ASTRA_U8 || a.dtype == ASTRA_U16) && bitsOf(a.dtype) == bits) a.dtype = dtype;
    return true;
  }
  if (!byte) return true;
  if (a.fortranOrder && a.shape.size() > 1) {
    error = "elements of less than a byte must be in C order";
    return false;
  }
  bool hasSign = a.dtype == ASTRA_I8 && (dtype == ASTRA_I2 || dtype == ASTRA_I4);
  int most = (1 << (bits - hasSign)) - 1, least = most - (1 << bits) + 1;
  std::vector<uint8_t> packed;
  bool fits = true;
  eachPacked(a.shape, bits, [&](uint64_t at, unsigned shift, uint64_t i) {
    int value = a.dtype == ASTRA_U8 ? a.data[i] : int8_t(a.data[i]);
    if (fits && (value < least || value > most)) {
      error = "element " + std::to_string(i) + " is " + std::to_string(value) + ", expected " + std::to_string(least) +
              ".." + std::to_string(most);
      fits = false;
    }
    packed.resize(std::max<size_t>(packed.size(), at + 1));
    packed[at] |= uint8_t((value & ((1 << bits) - 1)) << shift);
  });
  a.data = std::move(packed);
  a.dtype = dtype;
  a.fortranOrder = false;
  return fits;
}

Npy astra::tool::unpacked(Npy a) {
  unsigned bits = bitsOf(a.dtype);
  if (bits >= 8) return a;
  std::vector<uint8_t> codes;
  eachPacked(a.shape, bits, [&](uint64_t at, unsigned shift, uint64_t) {
    codes.push_back(uint8_t(a.data[at] >> shift & ((1 << bits) - 1)));
  });
  a.data = std::move(codes);
  a.dtype = ASTRA_U8;
  return a;
}

bool astra::tool::writeNpy(const string &path, const Npy &given, string &error) {
  Npy array = unpacked(given);
  unsigned bits = bitsOf(array.dtype);
  string descr = bits == 8 ? "|u1" : "<u2"; // what NumPy does not know, as integers
  for (auto &row : descrs)
    if (row.dtype == array.dtype) descr = (bits == 8 ? "|" : "<") + string(row.descr);
  string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < array.shape.size(); ++i)
    header += (i ? " " : "") + std::to_string(array.shape[i]) +
              (array.shape.size() == 1 || i + 1 < array.shape.size() ? "," : "");
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  string file = "\x93NUMPY";
  file += {1, 0, char(header.size() & 255), char(header.size() >> 8)};
  file += header;
  file.append(reinterpret_cast<const char *>(array.data.data()), array.data.size());
  return writeWhole(path, file.data(), file.size(), error);
}
