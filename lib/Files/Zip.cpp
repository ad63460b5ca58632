//===- Zip.cpp: the members of a zip archive ---------------------------------===//
// Takes:    the bytes of an archive.
// Gives:    see Zip.h.
#include "astra/Files/Zip.h"
#include <algorithm>
#include <array>
#include <set>
#ifdef ASTRA_HAS_ZLIB
#include <zlib.h>
#endif

using namespace astra;
using std::string;

namespace {

/// Little-endian numbers at places that are checked.
struct View {
  std::span<const uint8_t> bytes;
  bool has(uint64_t at, uint64_t n) const { return at <= bytes.size() && bytes.size() - at >= n; }
  uint64_t number(uint64_t at, int n) const {
    uint64_t v = 0;
    for (int i = 0; i < n; ++i) v |= uint64_t(bytes[at + i]) << (8 * i);
    return v;
  }
};

uint32_t checksum(std::span<const uint8_t> data) {
  static const auto table = [] {
    std::array<uint32_t, 256> t;
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] & 1 ? t[i] >> 1 ^ 0xedb88320u : t[i] >> 1;
    }
    return t;
  }();
  uint32_t c = ~0u;
  for (uint8_t byte : data) c = table[(c ^ byte) & 255] ^ c >> 8;
  return ~c;
}

/// RFC 1951. False if the data is malformed or does not stand for exactly `size` bytes.
#ifdef ASTRA_HAS_ZLIB
constexpr bool kInflates = true;
bool unpack(const uint8_t *data, uint64_t bytes, uint64_t size, std::vector<uint8_t> &out) {
  constexpr uint64_t most = 1 << 30, ratio = 1032; // zlib counts in 32 bits; no stream grows by more
  if (size / ratio > bytes) return false;
  out.resize(size + 1); // one more, so that a stream that goes on is seen
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) return false;
  z.next_in = const_cast<uint8_t *>(data), z.next_out = out.data();
  uint64_t in = bytes, room = out.size();
  int status = Z_OK;
  while (status == Z_OK) {
    z.avail_in = uInt(std::min(in, most)), z.avail_out = uInt(std::min(room, most));
    uint64_t before = z.avail_in, roomBefore = z.avail_out;
    status = inflate(&z, Z_NO_FLUSH);
    in -= before - z.avail_in, room -= roomBefore - z.avail_out;
  }
  inflateEnd(&z);
  out.resize(size);
  return status == Z_STREAM_END && room == 1 && in == 0;
}
#else
constexpr bool kInflates = false;
bool unpack(const uint8_t *, uint64_t, uint64_t, std::vector<uint8_t> &) { return false; }
#endif

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;

/// Where the list of members begins, and how many there are.
bool findList(const View &v, uint64_t &at, uint64_t &count) {
  uint64_t size = v.bytes.size();
  if (size < 22) return false;
  uint64_t least = size - 22 > 65535 ? size - 22 - 65535 : 0, end = size - 22;
  while (v.number(end, 4) != kEnd) {
    if (end == least) return false;
    --end;
  }
  count = v.number(end + 10, 2), at = v.number(end + 16, 4);
  if (count != 0xffff && at != 0xffffffff) return true;
  if (end < 20 || v.number(end - 20, 4) != kLocator64) return false;
  uint64_t end64 = v.number(end - 12, 8);
  if (!v.has(end64, 56) || v.number(end64, 4) != kEnd64) return false;
  count = v.number(end64 + 32, 8), at = v.number(end64 + 48, 8);
  return true;
}

/// The 64-bit numbers that stand in the extra field for those that are all ones.
void wide(const View &v, uint64_t at, uint64_t bytes, std::initializer_list<uint64_t *> numbers) {
  while (bytes >= 4) {
    uint64_t id = v.number(at, 2), length = v.number(at + 2, 2);
    at += 4, bytes -= 4;
    if (length > bytes) return;
    if (id == 1) {
      for (uint64_t *n : numbers)
        if (*n == 0xffffffff && length >= 8) *n = v.number(at, 8), at += 8, length -= 8;
      return;
    }
    at += length, bytes -= length;
  }
}

} // namespace

bool astra::zipMembers(std::span<const uint8_t> archive, std::vector<ZipMember> &out, string &error) {
  View v{archive};
  uint64_t at = 0, count = 0;
  auto fail = [&](const char *text) {
    error = text;
    return false;
  };
  if (!findList(v, at, count)) return fail("is not a zip archive, or is truncated");
  std::set<string> names;
  for (uint64_t i = 0; i < count; ++i) {
    if (!v.has(at, 46) || v.number(at, 4) != kCentral) return fail("its list of members is malformed");
    uint64_t name = v.number(at + 28, 2), extra = v.number(at + 30, 2), comment = v.number(at + 32, 2);
    if (!v.has(at, 46 + name + extra + comment)) return fail("its list of members is malformed");
    ZipMember m;
    m.flags = uint16_t(v.number(at + 8, 2)), m.method = uint16_t(v.number(at + 10, 2));
    m.crc = uint32_t(v.number(at + 16, 4));
    m.packed = v.number(at + 20, 4), m.size = v.number(at + 24, 4), m.header = v.number(at + 42, 4);
    m.name.assign(reinterpret_cast<const char *>(archive.data()) + at + 46, name);
    wide(v, at + 46 + name, extra, {&m.size, &m.packed, &m.header});
    if (!names.insert(m.name).second) return fail("it has two members of one name");
    out.push_back(std::move(m));
    at += 46 + name + extra + comment;
  }
  return true;
}

/// The bytes of a member as the archive has them.
static bool packedBytes(std::span<const uint8_t> archive, const ZipMember &m, std::span<const uint8_t> &out,
                        string &error) {
  View v{archive};
  auto fail = [&](const string &text) {
    error = "its member '" + m.name + "' " + text;
    return false;
  };
  if (m.flags & 1) return fail("is encrypted, which is not supported");
  if (m.method != 0 && m.method != 8)
    return fail("is packed by method " + std::to_string(m.method) + "; stored (0) and deflated (8) are known");
  if (!v.has(m.header, 30) || v.number(m.header, 4) != kLocal) return fail("is not where the list says");
  uint64_t data = m.header + 30 + v.number(m.header + 26, 2) + v.number(m.header + 28, 2);
  if (!v.has(data, m.packed)) return fail("is truncated");
  if (m.method == 0 && m.packed != m.size) return fail("has two sizes");
  out = archive.subspan(data, m.packed);
  return true;
}

bool astra::stored(std::span<const uint8_t> archive, const ZipMember &m, std::span<const uint8_t> &out, string &error) {
  if (m.method == 0) return packedBytes(archive, m, out, error);
  error = "its member '" + m.name + "' is compressed";
  return false;
}

bool astra::unzip(std::span<const uint8_t> archive, const ZipMember &m, std::vector<uint8_t> &out, string &error) {
  std::span<const uint8_t> packed;
  auto fail = [&](const string &text) {
    error = "its member '" + m.name + "' " + text;
    return false;
  };
  if (!packedBytes(archive, m, packed, error)) return false;
  if (m.method == 0)
    out.assign(packed.begin(), packed.end());
  else if (!kInflates)
    return fail("is compressed, which this build cannot read (it has no zlib): save it without compression");
  else if (!unpack(packed.data(), m.packed, m.size, out))
    return fail("is malformed");
  return checksum(out) == m.crc || fail("does not have the checksum that the list says");
}
