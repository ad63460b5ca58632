//===- Fold.cpp: sums over shards in the order of the mesh ------------------===//
// Takes:    values of the members of a group, or of parts of it that are folded already.
// Gives:    their fold by a tree that depends on the size of the group alone: neighbours are combined, what is left
//           over stays, until one is left. Each node is rounded to the dtype.
// Keeps:    which rank folds what decides nothing: a node has the same value wherever it is computed. NaNs are
//           canonical (numerics clause N6), a max or min is that of clause N9.
#include "Ranks.h"

using namespace astra::ranks;

namespace {

template <typename T> struct Words;
template <> struct Words<float> {
  using Bits = uint32_t;
  static constexpr Bits nan = 0x7fc00000;
};
template <> struct Words<double> {
  using Bits = uint64_t;
  static constexpr Bits nan = 0x7ff8000000000000;
};

template <typename T> T canonical(T v) { return v == v ? v : __builtin_bit_cast(T, Words<T>::nan); }
template <typename T> bool negative(T v) { return __builtin_signbit(v); }

/// One value by another, of floats.
template <Kind kind, typename T> T combine(T a, T b) {
  if constexpr (kind == Kind::Sum) return canonical(T(a + b));
  if constexpr (kind == Kind::Prod) return canonical(T(a * b));
  if (a != a || b != b) return __builtin_bit_cast(T, Words<T>::nan);
  if constexpr (kind == Kind::Max) return a > b || (a == b && !negative(a)) ? a : b;
  return a < b || (a == b && negative(a)) ? a : b;
}
/// Of integers.
template <Kind kind, typename T> T combineWhole(T a, T b) {
  using Wide = uint64_t;
  if constexpr (kind == Kind::Sum) return T(Wide(a) + Wide(b));
  if constexpr (kind == Kind::Prod) return T(Wide(a) * Wide(b));
  if constexpr (kind == Kind::Max) return a > b ? a : b;
  return a < b ? a : b;
}

template <Kind kind, typename T> void floats(void *out, const void *a, const void *b, uint64_t count) {
  auto *o = static_cast<T *>(out);
  auto *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
  for (uint64_t i = 0; i < count; i++) o[i] = combine<kind>(x[i], y[i]);
}
template <Kind kind, typename T> void wholes(void *out, const void *a, const void *b, uint64_t count) {
  auto *o = static_cast<T *>(out);
  auto *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
  for (uint64_t i = 0; i < count; i++) o[i] = combineWhole<kind>(x[i], y[i]);
}

float wideBF16(uint16_t v) { return __builtin_bit_cast(float, uint32_t(v) << 16); }
uint16_t narrowBF16(float v) {
  if (v != v) return 0x7fc0;
  uint32_t bits = __builtin_bit_cast(uint32_t, v);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float wideF16(uint16_t v) {
  uint32_t sign = uint32_t(v & 0x8000) << 16, exponent = (v >> 10) & 31, mantissa = v & 0x3ff;
  if (exponent == 0) { // 2^-24 times an integer: exact
    float small = float(mantissa) * 0x1p-24f;
    return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, small) | sign);
  }
  return __builtin_bit_cast(float, sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | mantissa << 13);
}
uint16_t narrowF16(float v) {
  uint32_t bits = __builtin_bit_cast(uint32_t, v), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00); // rounds to 2^16 or more
  if (magnitude < 0x38800000) {                                // subnormal: to a multiple of 2^-24, ties to even
    float scaled = __builtin_bit_cast(float, magnitude) + 0.5f;
    return uint16_t(sign | (__builtin_bit_cast(uint32_t, scaled) - 0x3f000000));
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return uint16_t(sign | ((rounded - 0x38000000) >> 13));
}
/// f16 and bf16: combined as f32, rounded once.
template <Kind kind, float (*wide)(uint16_t), uint16_t (*narrow)(float)>
void halves(void *out, const void *a, const void *b, uint64_t count) {
  auto *o = static_cast<uint16_t *>(out);
  auto *x = static_cast<const uint16_t *>(a), *y = static_cast<const uint16_t *>(b);
  for (uint64_t i = 0; i < count; i++) o[i] = narrow(combine<kind>(wide(x[i]), wide(y[i])));
}

template <Kind kind> CombineFn ofDType(int32_t dtype) {
  switch (dtype) {
  case ASTRA_I8: return wholes<kind, int8_t>;
  case ASTRA_I16: return wholes<kind, int16_t>;
  case ASTRA_I32: return wholes<kind, int32_t>;
  case ASTRA_I64: return wholes<kind, int64_t>;
  case ASTRA_U8: return wholes<kind, uint8_t>;
  case ASTRA_U16: return wholes<kind, uint16_t>;
  case ASTRA_U32: return wholes<kind, uint32_t>;
  case ASTRA_U64: return wholes<kind, uint64_t>;
  case ASTRA_F16: return halves<kind, wideF16, narrowF16>;
  case ASTRA_BF16: return halves<kind, wideBF16, narrowBF16>;
  case ASTRA_F32: return floats<kind, float>;
  case ASTRA_F64: return floats<kind, double>;
  default: return nullptr;
  }
}

/// Parts of a group, and room for the nodes above them: of each level the left one and the right one.
/// combine(to, a, b, count) makes a node; leaf(data, to, count) gives where a part is read, or copies it to `to`.
template <typename Combine, typename Leaf> struct Tree {
  const Part *parts;
  size_t numParts;
  uint32_t bytes;
  char *room;
  uint64_t run; ///< elements of one node in it
  Combine combine;
  Leaf leaf;

  /// The value of lo ... hi - 1 at elements from ... from + count - 1, in `to` or where it is already.
  const char *value(int64_t lo, int64_t hi, int32_t level, uint64_t from, uint64_t count, char *to) {
    for (size_t i = 0; i < numParts; i++)
      if (parts[i].lo == lo && parts[i].hi == hi) return leaf(parts[i].data + from * bytes, to, count);
    int64_t left = 1;
    while (2 * left < hi - lo) left *= 2;
    char *below = room + uint64_t(2 * level) * run * bytes;
    const char *a = value(lo, lo + left, level + 1, from, count, below);
    const char *b = value(lo + left, hi, level + 1, from, count, below + run * bytes);
    combine(to, a, b, count);
    return to;
  }
};
template <typename C, typename L> Tree(const Part *, size_t, uint32_t, char *, uint64_t, C, L) -> Tree<C, L>;

int32_t levelsOf(int64_t members) {
  int32_t levels = 1;
  for (int64_t size = 1; size < members; size *= 2) ++levels;
  return levels;
}

constexpr uint64_t kGpuRun = 8 << 20; ///< bytes of a node that one kernel makes
constexpr uint64_t kGpuAlign = 16;    ///< where vectors of kernels begin

} // namespace

CombineFn astra::ranks::combineOf(Kind kind, int32_t dtype) {
  switch (kind) {
  case Kind::Sum: return ofDType<Kind::Sum>(dtype);
  case Kind::Prod: return ofDType<Kind::Prod>(dtype);
  case Kind::Max: return ofDType<Kind::Max>(dtype);
  case Kind::Min: return ofDType<Kind::Min>(dtype);
  }
  return nullptr;
}

int64_t astra::ranks::nodeEnd(int64_t lo, int64_t hi, int64_t group) {
  int64_t end = lo;
  for (int64_t size = 1; lo % size == 0 && size < 2 * group; size *= 2) {
    int64_t next = lo + size < group ? lo + size : group;
    if (next > hi) break;
    end = next;
  }
  return end;
}

bool astra::ranks::fold(void *out, const Part *parts, size_t numParts, int64_t lo, int64_t hi, uint64_t count,
                        uint32_t bytes, CombineFn combine) {
  constexpr uint64_t kRun = 8192; // bytes of a node at a time: the tree of a run stays in the nearest cache
  auto *room = static_cast<char *>(malloc(2 * uint64_t(levelsOf(hi - lo)) * kRun));
  if (!room) return false;
  Tree tree{
      parts, numParts, bytes, room, kRun / bytes, combine, [](const char *data, char *, uint64_t) { return data; }};
  for (uint64_t from = 0; from < count; from += tree.run) {
    uint64_t some = count - from < tree.run ? count - from : tree.run;
    char *to = static_cast<char *>(out) + from * bytes;
    const char *value = tree.value(lo, hi, 0, from, some, to);
    if (value != to) memcpy(to, value, some * bytes);
  }
  free(room);
  return true;
}

uint64_t astra::ranks::foldRun(uint64_t bytes) {
  uint64_t whole = (bytes + 255) / 256 * 256;
  return whole < kGpuRun ? whole : kGpuRun;
}
uint64_t astra::ranks::foldRoom(int64_t members, uint64_t bytes) {
  return (2 * uint64_t(levelsOf(members)) + 1) * foldRun(bytes);
}

Status astra::ranks::foldOnGpu(const astra_gpu_call *gpu, const char *entry, void *out, const Part *parts,
                               size_t numParts, int64_t lo, int64_t hi, uint64_t count, uint32_t bytes, char *room,
                               uint64_t run, astra_diag *diag) {
  auto isAligned = [](const void *p) { return reinterpret_cast<uintptr_t>(p) % kGpuAlign == 0; };
  Status status = ASTRA_OK;
  auto copy = [&](void *to, const void *from, uint64_t n) {
    if (!status) status = gpu->copy(gpu, to, from, n * bytes, diag);
  };
  auto combine = [&](void *to, const void *a, const void *b, uint64_t n) {
    void *vectors[] = {const_cast<void *>(a), const_cast<void *>(b), to};
    if (!status) status = gpu->run(gpu, entry, vectors, 3, int64_t(n), diag);
  };
  auto leaf = [&](const char *data, char *to, uint64_t n) -> const char * {
    if (isAligned(data)) return data;
    return copy(to, data, n), to;
  };
  Tree tree{parts, numParts, bytes, room + run, run / bytes, combine, leaf};
  for (uint64_t from = 0; from < count && !status; from += tree.run) {
    uint64_t some = count - from < tree.run ? count - from : tree.run;
    char *to = static_cast<char *>(out) + from * bytes, *made = isAligned(to) ? to : room;
    const char *value = tree.value(lo, hi, 0, from, some, made);
    if (value != to) copy(to, value, some);
  }
  return status;
}
