//===- Copy.cpp: elements between any two strides -------------------------===//
// Takes:    two views of one shape and dtype on the host, or a view and row-major bytes.
// Gives:    their elements copied, conjugated where one of the two says so.
// Keeps:    bits: a conjugate is a flipped sign. Axes are fused, the innermost is that of the shortest steps written.
// Does not: test whether the two overlap.
#include "Tensor.h"

using namespace astra::rt;

namespace {

struct Axis {
  int64_t count, to, from; ///< steps in bytes
};

/// One run of elements along an axis; `flips` the sign of imaginary parts.
template <typename T> void copyRun(char *to, const char *from, const Axis &axis, bool flips) {
  constexpr uint64_t half = sizeof(T) / 2;
  if (axis.to == int64_t(sizeof(T)) && axis.from == axis.to && !flips) {
    memcpy(to, from, uint64_t(axis.count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < axis.count; i++, to += axis.to, from += axis.from) {
    T value;
    memcpy(&value, from, sizeof(T));
    if (flips)
      reinterpret_cast<unsigned char *>(&value)[2 * half - 1] ^= 0x80; // the last byte of a little-endian float
    memcpy(to, &value, sizeof(T));
  }
}

struct Wide {
  uint64_t low, high;
};

using Run = void (*)(char *, const char *, const Axis &, bool);
Run runOf(uint64_t size) {
  switch (size) {
  case 1: return copyRun<uint8_t>;
  case 2: return copyRun<uint16_t>;
  case 4: return copyRun<uint32_t>;
  case 8: return copyRun<uint64_t>;
  default: return copyRun<Wide>;
  }
}

uint64_t length(int64_t step) { return step < 0 ? -uint64_t(step) : uint64_t(step); }

/// What a tile of a transposition takes of the stack, at most.
constexpr int64_t kTileBytes = 16384;
/// Rows and columns of a block of tiles: pages that the processor has at hand, of both sides.
constexpr int64_t kBlock = 256;

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/// A plane whose sides walk along different axes, in tiles that go over the stack: each line of memory is read at once
/// and written at once, so that rows a power of two apart do not push each other out of the cache.
void transpose(char *to, const char *from, const Axis &outer, const Axis &inner, int64_t size, Run run, bool flips) {
  alignas(64) char tile[kTileBytes];
  int64_t side = size <= 4 ? 64 : 32;
  auto one = [&](int64_t r, int64_t c, int64_t rows, int64_t columns) {
    Axis read = {rows, columns * size, outer.from}, written = {columns, inner.to, size};
    for (int64_t j = 0; j < columns; j++)
      run(tile + j * size, from + r * outer.from + (c + j) * inner.from, read, flips);
    for (int64_t i = 0; i < rows; i++)
      run(to + (r + i) * outer.to + c * inner.to, tile + i * columns * size, written, false);
  };
  for (int64_t top = 0; top < outer.count; top += kBlock)
    for (int64_t left = 0; left < inner.count; left += kBlock) {
      int64_t bottom = least(outer.count, top + kBlock), right = least(inner.count, left + kBlock);
      for (int64_t r = top; r < bottom; r += side)
        for (int64_t c = left; c < right; c += side) one(r, c, least(side, bottom - r), least(side, right - c));
    }
}

/// A plane of neighbours in memory along `outer` that are to be neighbours along `inner`: squares whose sides are
/// lines, each read and written to its end, so that it does not matter which of them share a set of the cache (2048^2
/// doubles 13.2 ms through tiles, 6.4 so).
template <typename T> void transposeLines(char *to, const char *from, const Axis &outer, const Axis &inner) {
  constexpr int64_t size = sizeof(T), line = 64, side = line / size;
  auto square = [&](int64_t r, int64_t c, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++) {
      const char *source = from + c * inner.from + (r + i) * size;
      char *target = to + (r + i) * outer.to + c * size;
      for (int64_t j = 0; j < columns; j++) memcpy(target + j * size, source + j * inner.from, sizeof(T));
    }
  };
  for (int64_t r = 0; r < outer.count; r += side)
    for (int64_t c = 0; c < inner.count; c += side) {
      int64_t rows = least(side, outer.count - r), columns = least(side, inner.count - c);
      if (rows == side && columns == side)
        square(r, c, side, side); // known to the compiler
      else
        square(r, c, rows, columns);
    }
}

using Lines = void (*)(char *, const char *, const Axis &, const Axis &);
Lines linesOf(int64_t size) {
  switch (size) {
  case 1: return transposeLines<uint8_t>;
  case 2: return transposeLines<uint16_t>;
  case 4: return transposeLines<uint32_t>;
  case 8: return transposeLines<uint64_t>;
  default: return transposeLines<Wide>;
  }
}

/// The two innermost axes.
void copyPlane(char *to, const char *from, const Axis &outer, const Axis &inner, int64_t size, Run run, bool flips) {
  if (outer.from == size && inner.to == size && outer.count > 1 && !flips) return linesOf(size)(to, from, outer, inner);
  if (length(outer.from) < length(inner.from) && outer.count > 1)
    return transpose(to, from, outer, inner, size, run, flips);
  for (int64_t r = 0; r < outer.count; r++) run(to + r * outer.to, from + r * outer.from, inner, flips);
}

/// Axes of one element dropped, the longest step written first, neighbours that are one axis fused.
uint32_t arrange(Axis *axes, const View &shape, const int64_t *to, const int64_t *from, int64_t size) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < shape.rank; i++) {
    if (shape.shape[i] == 1) continue;
    Axis axis = {shape.shape[i], to[i] * size, from[i] * size};
    uint32_t k = count++;
    for (; k > 0 && length(axes[k - 1].to) < length(axis.to); k--) axes[k] = axes[k - 1];
    axes[k] = axis;
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    Axis &before = axes[kept ? kept - 1 : 0];
    if (kept && before.to == axes[i].count * axes[i].to && before.from == axes[i].count * axes[i].from)
      before = {before.count * axes[i].count, axes[i].to, axes[i].from};
    else
      axes[kept++] = axes[i];
  }
  return kept;
}

void copy(char *to, const int64_t *toStrides, const char *from, const int64_t *fromStrides, const View &shape,
          bool flips) {
  int64_t size = shape.dtype->bits / 8;
  Axis axes[ASTRA_MAX_RANK + 2];
  axes[0] = axes[1] = {1, size, size};
  uint32_t count = arrange(axes + 1, shape, toStrides, fromStrides, size);
  // axes[0] is of one element, so that there are two at least. The last two become a plane: the last one, and of the
  // others that of the shortest steps read.
  uint32_t outer = count ? count - 1 : 0, nearest = outer;
  for (uint32_t i = 1; i < outer; i++)
    if (length(axes[i].from) < length(axes[nearest].from)) nearest = i;
  std::swap(axes[nearest], axes[outer]);
  Run run = runOf(uint64_t(size));
  int64_t index[ASTRA_MAX_RANK] = {};
  for (;;) {
    copyPlane(to, from, axes[outer], axes[outer + 1], size, run, flips);
    uint32_t i = outer;
    while (i-- > 0) {
      to += axes[i].to, from += axes[i].from;
      if (++index[i] < axes[i].count) break;
      to -= axes[i].to * axes[i].count, from -= axes[i].from * axes[i].count;
      index[i] = 0;
    }
    if (i == UINT32_MAX) return;
  }
}

} // namespace

View astra::rt::denseOf(const View &view, void *data) {
  View dense = view;
  dense.data = static_cast<char *>(data), dense.conjugate = false;
  int64_t step = 1;
  for (uint32_t i = view.rank; i-- > 0; step *= view.shape[i]) dense.strides[i] = step;
  return dense;
}

void astra::rt::copyElements(const View &to, const View &from) {
  if (to.bytes == 0) return;
  if (to.dense && from.dense)
    memcpy(to.data, from.data, to.bytes);
  else
    copy(to.data, to.strides, from.data, from.strides, to, to.conjugate != from.conjugate);
}

void astra::rt::gather(void *dense, const View &from) {
  if (from.bytes) copyElements(denseOf(from, dense), from);
}

void astra::rt::scatter(const View &to, const void *dense) {
  if (to.bytes) copyElements(to, denseOf(to, const_cast<void *>(dense)));
}
