//===- Calls.h: calls of a bundle's entries, as bytes ----------------------===//
// A stream of 64-bit words; a text is its length and its bytes, padded to 8.
//   calls:    for each: entry; number of dims, each a name and a value; number of inputs, each a dtype, rank, extents,
//             data; number of outputs, each a dtype; number of states to read, each a name, dtype, rank, extents
//   results:  for each: a refusal (empty: none); unless refused, for each output its rank, extents, extents
//             of its bound, data at the bound; for each state its data
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace astra::test {

struct ByteWriter {
  std::string bytes;
  void word(int64_t v) { bytes.append(reinterpret_cast<const char *>(&v), 8); }
  void text(const void *data, size_t size) {
    word(int64_t(size));
    bytes.append(static_cast<const char *>(data), size);
    bytes.append(-size & 7, 0);
  }
  void text(const std::string &s) { text(s.data(), s.size()); }
};

struct ByteReader {
  const char *at, *end;
  explicit ByteReader(const std::string &s) : at(s.data()), end(s.data() + s.size()) {}
  bool done() const { return at >= end; }
  int64_t word() {
    int64_t v = 0;
    if (end - at >= 8) memcpy(&v, at, 8);
    at += 8;
    return v;
  }
  std::string text() {
    size_t size = word();
    std::string s = size <= size_t(end - at) ? std::string(at, size) : "";
    at += (size + 7) / 8 * 8;
    return s;
  }
};

/// Runs all calls, each in a session of its own. `level` as astra_device_options has it. Throws what opening refuses.
std::string serve(const std::string &bundle, const char *level, unsigned threads, const std::string &calls);

} // namespace astra::test
