//===- Inflate.cpp: DEFLATE (RFC 1951), unpacked -----------------------------===//
// Takes:    packed bytes from outside, and how many bytes they stand for.
// Gives:    those bytes.
// Keeps:    memory in proportion to what is given: nothing is written beyond the size.
#include "Zip.h"
#include <algorithm>
#include <array>

using namespace astra::tool;

namespace {

constexpr int kLongest = 15;

/// Canonical codes: how many there are of each length, and their symbols in order.
struct Codes {
  std::array<uint16_t, kLongest + 1> count{};
  std::array<uint16_t, 288> symbol{};

  /// False if there are more codes than fit.
  bool make(const uint8_t *lengths, int n) {
    count.fill(0);
    for (int i = 0; i < n; ++i) ++count[lengths[i]];
    count[0] = 0;
    std::array<uint16_t, kLongest + 2> place{};
    int left = 1;
    for (int length = 1; length <= kLongest; ++length) {
      left = 2 * left - count[length];
      if (left < 0) return false;
      place[length + 1] = uint16_t(place[length] + count[length]);
    }
    for (int i = 0; i < n; ++i)
      if (lengths[i]) symbol[place[lengths[i]]++] = uint16_t(i);
    return true;
  }
};

class Inflater {
public:
  Inflater(const uint8_t *data, size_t bytes, size_t size, std::vector<uint8_t> &out)
      : next(data), end(data + bytes), size(size), out(out) {}
  bool run() {
    out.clear();
    out.reserve(std::min<size_t>(size, size_t(end - next) * 4 + 64));
    bool last;
    do {
      last = bits(1);
      uint32_t kind = bits(2);
      if (broken || !(kind == 0 ? stored() : kind == 1 ? fixed() : kind == 2 && dynamic())) return false;
    } while (!last);
    return !broken && out.size() == size;
  }

private:
  const uint8_t *next, *end;
  size_t size;
  std::vector<uint8_t> &out;
  uint32_t held = 0;
  int holds = 0;
  bool broken = false;

  uint32_t bits(int n) {
    while (holds < n) {
      if (next == end) {
        broken = true;
        return 0;
      }
      held |= uint32_t(*next++) << holds;
      holds += 8;
    }
    uint32_t value = held & ((1u << n) - 1);
    held >>= n, holds -= n;
    return value;
  }
  /// 65535 where there is no code.
  unsigned decode(const Codes &codes) {
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kLongest && !broken; ++length) {
      code |= int(bits(1));
      int count = codes.count[length];
      if (code - first < count) return codes.symbol[size_t(index + code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    broken = true;
    return 65535;
  }
  bool stored() {
    held = 0, holds = 0; // the rest of a byte is skipped; whole ones are never held after a block's head
    if (end - next < 4) return false;
    size_t length = next[0] | size_t(next[1]) << 8, check = next[2] | size_t(next[3]) << 8;
    next += 4;
    if (check != (length ^ 0xffff) || size_t(end - next) < length || size - out.size() < length) return false;
    out.insert(out.end(), next, next + length);
    next += length;
    return true;
  }
  bool fixed() {
    std::array<uint8_t, 288> lengths;
    for (int i = 0; i < 288; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    std::array<uint8_t, 30> distances;
    distances.fill(5);
    Codes symbols, places;
    return symbols.make(lengths.data(), 288) && places.make(distances.data(), 30) && block(symbols, places);
  }
  bool dynamic() {
    static constexpr uint8_t sequence[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    int symbolCount = int(bits(5)) + 257, distanceCount = int(bits(5)) + 1, count = int(bits(4)) + 4;
    std::array<uint8_t, 320> lengths{};
    for (int i = 0; i < count; ++i) lengths[sequence[i]] = uint8_t(bits(3));
    Codes codes, symbols, distances;
    if (broken || symbolCount > 286 || distanceCount > 30 || !codes.make(lengths.data(), 19)) return false;
    lengths.fill(0);
    for (int i = 0; i < symbolCount + distanceCount;) {
      unsigned symbol = decode(codes);
      if (broken) return false;
      if (symbol < 16) {
        lengths[i++] = uint8_t(symbol);
        continue;
      }
      if (symbol == 16 && i == 0) return false;
      uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
      int repeat = symbol == 16 ? 3 + int(bits(2)) : symbol == 17 ? 3 + int(bits(3)) : 11 + int(bits(7));
      if (broken || i + repeat > symbolCount + distanceCount) return false;
      while (repeat--) lengths[i++] = value;
    }
    return symbols.make(lengths.data(), symbolCount) && distances.make(lengths.data() + symbolCount, distanceCount) &&
           block(symbols, distances);
  }
  bool block(const Codes &symbols, const Codes &places) {
    static constexpr uint16_t lengthBase[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                              31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static constexpr uint8_t lengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static constexpr uint16_t placeBase[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                             33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                             1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    while (true) {
      unsigned symbol = decode(symbols);
      if (broken || symbol > 285) return false;
      if (symbol == 256) return true;
      if (symbol < 256) {
        if (out.size() == size) return false;
        out.push_back(uint8_t(symbol));
        continue;
      }
      size_t length = lengthBase[symbol - 257] + bits(lengthBits[symbol - 257]);
      unsigned code = decode(places);
      if (broken || code > 29) return false;
      size_t back = placeBase[code] + bits(code < 4 ? 0 : int(code / 2 - 1));
      if (broken || back > out.size() || size - out.size() < length) return false;
      for (size_t from = out.size() - back; length--; ++from) out.push_back(out[from]); // may overlap what it writes
    }
  }
};

} // namespace

bool astra::tool::inflate(const uint8_t *data, size_t bytes, size_t size, std::vector<uint8_t> &out) {
  return Inflater(data, bytes, size, out).run();
}
