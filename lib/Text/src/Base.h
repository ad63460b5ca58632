//===- Base.h: status, growing arrays, views, characters ------------------===//
// Takes:    malloc.
// Gives:    what every other file of the library is written with; libstdc++ is used for headers only.
// Keeps:    no global state, no exception. A Buffer that could not grow says so once, at the end.
// Does not: know tokenizers.
#pragma once

#include "astra/text.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace astra::text {

using Status = astra_status;

/// Fills `diag` (may be null) with the sentence and gives `status`.
[[gnu::cold, gnu::format(printf, 3, 4)]] Status fail(astra_diag *diag, Status status, const char *format, ...);
/// The same with ASTRA_MALFORMED, for the many rules of the format.
[[gnu::cold, gnu::format(printf, 2, 3)]] Status malformed(astra_diag *diag, const char *format, ...);

/// Elements of somebody else's memory.
template <typename T> struct View {
  const T *data = nullptr;
  size_t size = 0;
  const T &operator[](size_t i) const { return data[i]; }
  const T *begin() const { return data; }
  const T *end() const { return data + size; }
  View part(size_t from, size_t to) const { return {data + from, to - from}; }
};
using Bytes = View<uint8_t>;

inline bool equal(Bytes a, Bytes b) { return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size)); }

/// A growing array of plain elements. When memory is short, `failed` is set, and what is added is lost.
template <typename T> class Buffer {
public:
  Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { free(items); }

  bool reserve(size_t count) {
    if (count <= room) return true;
    size_t want = count < 2 * room ? 2 * room : count < 16 ? 16 : count;
    void *grown = count > kMost / sizeof(T) ? nullptr : realloc(items, want * sizeof(T));
    if (!grown) return !(failed = true);
    items = static_cast<T *>(grown), room = want;
    return true;
  }
  void push(T item) {
    if (reserve(length + 1)) items[length++] = item;
  }
  void append(View<T> more) {
    if (!more.size || !reserve(length + more.size)) return;
    memcpy(items + length, more.data, more.size * sizeof(T));
    length += more.size;
  }
  /// `count` elements, the new ones with all bytes `fill`.
  void resize(size_t count, int fill = 0) {
    if (!reserve(count)) return;
    if (count > length) memset(static_cast<void *>(items + length), fill, (count - length) * sizeof(T));
    length = count;
  }
  void clear() { length = 0; }
  void swap(Buffer &other) {
    auto exchange = [](auto &a, auto &b) {
      auto c = a;
      a = b, b = c;
    };
    exchange(items, other.items), exchange(length, other.length), exchange(room, other.room);
    exchange(failed, other.failed);
  }
  size_t size() const { return length; }
  T *data() { return items; }
  T &operator[](size_t i) { return items[i]; }
  const T &operator[](size_t i) const { return items[i]; }
  View<T> view() const { return {items, length}; }
  bool failed = false;

private:
  static constexpr size_t kMost = size_t(1) << 33; // bytes
  T *items = nullptr;
  size_t length = 0, room = 0;
};

/// A character of valid UTF-8 and the bytes that it has.
struct Character {
  uint32_t value;
  uint32_t bytes;
};
inline Character characterAt(const uint8_t *at) {
  uint32_t a = at[0];
  if (a < 0x80) return {a, 1};
  if (a < 0xe0) return {(a & 31) << 6 | (at[1] & 63u), 2};
  if (a < 0xf0) return {(a & 15) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u), 3};
  return {(a & 7) << 18 | (at[1] & 63u) << 12 | (at[2] & 63u) << 6 | (at[3] & 63u), 4};
}
inline uint32_t lengthAt(const uint8_t *at) { return *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4; }

/// How many bytes of `text` are UTF-8 (Unicode's table 3-7: no surrogates, no longer forms) from its begin; `cut` is
/// true if what follows is the begin of a character that the end of the text cuts off.
size_t validUtf8(Bytes text, bool &cut);

void appendCharacter(Buffer<uint8_t> &out, uint32_t value);

/// Bytes to UTF-8: what is none becomes U+FFFD, once for the longest part that could have begun a character (Unicode's
/// "substitution of maximal subparts").
void appendLossy(Buffer<uint8_t> &out, Bytes bytes);

} // namespace astra::text
