//===- Move.cpp: elements at places, and in order --------------------------===//
// Takes:    operands of a native type; places as i64.
// Gives:    take, pick, scatter as [outer, axis, inner]; argsort as rows of keys, which are i64 for every type: short
//           rows by one kernel, long ones by blocks of it that are merged, two at a time.
// Keeps:    an axis that is longer than the forms allow is refused; what lies outside of it goes by parts.
#include "Ops.h"

namespace astra::ops {

namespace {

/// The extents before an axis, of it, and behind it.
struct Around {
  int64_t outer = 1, n, inner = 1;
  Around(const View &v, int32_t axis) : n(v.shape[axis]) {
    for (int32_t i = 0; i < axis; i++) outer *= v.shape[i];
    for (int32_t i = axis + 1; i < v.ndim; i++) inner *= v.shape[i];
  }
};

Status tooLong(Work &w, int64_t n, int64_t most) {
  return fail(w.diag, ASTRA_UNSUPPORTED, "%s: an axis of %lld elements; at most %lld are supported", w.name,
              static_cast<long long>(n), static_cast<long long>(most));
}

/// Calls with parts of the outer and the inner extents, which all operands of [outer, *, inner] share.
Status parted(Work &w, const astra_entry *entry, const View *in, uint32_t count, uint32_t whole, int64_t outer,
              int64_t inner, const View &out) {
  int64_t mostOuter = mostOf('x'), mostInner = mostOf('z');
  for (int64_t o = 0; o < outer || o == 0; o += mostOuter)
    for (int64_t i = 0; i < inner || i == 0; i += mostInner) {
      int64_t height = outer - o < mostOuter ? outer - o : mostOuter,
              width = inner - i < mostInner ? inner - i : mostInner;
      auto piece = [&](const View &v) { return part(part(v, 0, o, height), 2, i, width); };
      View views[3];
      for (uint32_t k = 0; k < count; k++) views[k] = whole >> k & 1 ? in[k] : piece(in[k]);
      if (Status s = w.launch(entry, views, count, piece(out))) return s;
    }
  return ASTRA_OK;
}

} // namespace

Status take(Work &w, const View &in, const View &places, int32_t axis, const View &out) {
  const astra_entry *const *entries = w.ops->entries[rowOf("take")][in.dtype];
  Temporary packed, packedPlaces;
  View views[2];
  if (Status s = dense(w, in, packed, views[0])) return s;
  if (Status s = dense(w, places, packedPlaces, views[1])) return s;
  Around a(in, axis);
  int64_t count = elements(places);
  views[1] = reshaped(views[1], {count});
  if (a.outer == 1 && a.n <= mostOf('r') && a.inner <= mostOf('j') && count <= mostOf('k')) {
    views[0] = reshaped(views[0], {a.n, a.inner});
    return w.launch(entries[form::TakeRows], views, 2, reshaped(out, {count, a.inner}));
  }
  if (a.n > mostOf('y')) return tooLong(w, a.n, mostOf('y'));
  if (count > mostOf('w')) return tooLong(w, count, mostOf('w'));
  views[0] = reshaped(views[0], {a.outer, a.n, a.inner});
  return parted(w, entries[form::TakeMiddle], views, 2, 2, a.outer, a.inner, reshaped(out, {a.outer, count, a.inner}));
}

/// Dense operands as [outer, axis, inner].
static Status threefold(Work &w, const View *const *in, uint32_t count, int32_t axis, Temporary *packed, View *views) {
  for (uint32_t k = 0; k < count; k++) {
    if (Status s = dense(w, *in[k], packed[k], views[k])) return s;
    Around a(*in[k], axis);
    if (a.n > mostOf('y')) return tooLong(w, a.n, mostOf('y'));
    views[k] = reshaped(views[k], {a.outer, a.n, a.inner});
  }
  return ASTRA_OK;
}

Status pick(Work &w, const View &in, const View &places, int32_t axis, const View &out) {
  Temporary packed[2];
  View views[2];
  const View *all[] = {&in, &places};
  if (Status s = threefold(w, all, 2, axis, packed, views)) return s;
  Around a(in, axis);
  return parted(w, w.ops->entries[rowOf("pick")][in.dtype][0], views, 2, 0, a.outer, a.inner,
                reshaped(out, {a.outer, places.shape[axis], a.inner}));
}

Status scatter(Work &w, uint32_t row, const View &in, const View &places, const View &updates, int32_t axis,
               const View &out) {
  Temporary packed[3];
  View views[3];
  const View *all[] = {&in, &places, &updates};
  if (Status s = threefold(w, all, 3, axis, packed, views)) return s;
  Around a(in, axis);
  return parted(w, w.ops->entries[row][in.dtype][0], views, 3, 0, a.outer, a.inner,
                reshaped(out, {a.outer, a.n, a.inner}));
}

//===- Sorting -------------------------------------------------------------===//

static constexpr int64_t kBlock = mostOf('2'); // of the longest rows of `order`

Status sortKeys(Work &w, const View &in, bool descending, const View &out) {
  constexpr uint32_t row = rowOf("sort_key");
  int32_t native = nativeType(kRows[row], in.dtype);
  int64_t n = elements(in);
  Temporary wide, turned;
  View source = in, keys = out;
  if (descending)
    if (Status s = turned.init(w, ASTRA_I64, 1, &n)) return s;
  if (descending) keys = turned.view;
  if (only(in.dtype) & kInts & ~kU64) {
    if (Status s = cast(w, in, keys)) return s;
  } else {
    if (native != in.dtype) {
      if (Status s = wide.init(w, native, in.ndim, in.shape)) return s;
      if (Status s = cast(w, in, wide.view)) return s;
      source = wide.view;
    }
    View from = reshaped(source, {n});
    if (Status s = w.launch(w.ops->entries[row][native][0], &from, 1, reshaped(keys, {n}))) return s;
  }
  if (!descending) return ASTRA_OK;
  View from = reshaped(keys, {n});
  return w.launch(w.ops->entries[rowOf("bit_not")][ASTRA_I64][0], &from, 1, reshaped(out, {n}));
}

namespace {

Status shortRows(Work &w, const View &keys, int64_t rows, int64_t n, const View &out) {
  uint32_t form = n > mostOf('1');
  int64_t most = mostOf('q');
  View all = reshaped(keys, {rows, n}), places = reshaped(out, {rows, n});
  for (int64_t r = 0; r < rows || r == 0; r += most) {
    int64_t height = rows - r < most ? rows - r : most;
    View from = part(all, 0, r, height);
    if (Status s = w.launch(w.ops->entries[rowOf("order")][ASTRA_I64][form], &from, 1, part(places, 0, r, height)))
      return s;
  }
  return ASTRA_OK;
}

/// Keys and places, [2, rows, size]: blocks that kernels put in order, then merges of two blocks (K. Batcher).
Status blocksOfRows(Work &w, const View &keys, int64_t rows, int64_t n, int64_t size, const View &out) {
  int64_t all = rows * size, blocks = all / kBlock;
  const int64_t stacked[] = {2, rows, size}, wholeShape[] = {1, rows, size};
  Temporary first, second, order, filling;
  for (Temporary *t : {&first, &second})
    if (Status s = t->init(w, ASTRA_I64, 3, stacked)) return s;
  if (Status s = order.init(w, ASTRA_I64, 3, wholeShape)) return s;
  // Behind each row what is greater than all: the greatest key, and a place behind the row.
  if (Status s = filling.init(w, ASTRA_I64, 1, &size)) return s;
  auto *places = static_cast<int64_t *>(astra_buffer_data(filling.view.buffer)); // new: no call uses it yet
  for (int64_t i = 0; i < size; i++) places[i] = i;
  View keyHalf = part(first.view, 0, 0, 1), placeHalf = part(first.view, 0, 1, 1);
  if (Status s = copy(w, expanded(filling.view, 3, wholeShape), placeHalf)) return s;
  if (Status s = copy(w, reshaped(keys, {1, rows, n}), part(keyHalf, 2, 0, n))) return s;
  if (n < size) {
    Temporary last;
    const int64_t one = 1, rest[] = {1, rows, size - n};
    if (Status s = last.init(w, ASTRA_I64, 1, &one)) return s;
    *static_cast<int64_t *>(astra_buffer_data(last.view.buffer)) = INT64_MAX;
    if (Status s = copy(w, expanded(last.view, 3, rest), part(keyHalf, 2, n, size - n))) return s;
  }
  // Blocks: the order of their keys, by which keys and places are picked.
  if (Status s = shortRows(w, keyHalf, blocks, kBlock, order.view)) return s;
  View blockOrder = reshaped(order.view, {blocks, kBlock});
  for (int64_t half = 0; half < 2; half++)
    if (Status s = pick(w, retyped(reshaped(part(first.view, 0, half, 1), {blocks, kBlock}), ASTRA_U64), blockOrder, 1,
                        retyped(reshaped(part(second.view, 0, half, 1), {blocks, kBlock}), ASTRA_U64)))
      return s;
  // Merges: the second block backwards, behind the first: what is in it rises, then falls.
  View from = second.view, to = first.view;
  auto exchange = [&] {
    View done = from;
    from = to, to = done;
  };
  const astra_entry *entry = w.ops->entries[rowOf("merge")][ASTRA_I64][0];
  for (int64_t sorted = kBlock; sorted < size; sorted *= 2) {
    const int64_t pairs[] = {2, all / (2 * sorted), 2, sorted};
    View source = reshaped(from, 4, pairs), target = reshaped(to, 4, pairs);
    if (Status s = copy(w, part(source, 2, 0, 1), part(target, 2, 0, 1))) return s;
    View backwards = part(source, 2, 1, 1);
    backwards.byte_offset += uint64_t(sorted - 1) * sizeof(int64_t), backwards.strides[3] = -1;
    if (Status s = copy(w, backwards, part(target, 2, 1, 1))) return s;
    exchange();
    int64_t distance = sorted;
    auto halve = [&](int64_t pairsOf, int64_t length) {
      const int64_t halves[] = {2, pairsOf, 2, length};
      View in = reshaped(from, 4, halves);
      Status s = w.launch(entry, &in, 1, reshaped(to, 4, halves));
      exchange();
      return s;
    };
    for (; distance >= kBlock; distance /= 2)
      if (Status s = halve(all / (2 * distance), distance)) return s;
    // Elements of a block meet each other now: side by side they are far apart, so that a kernel has long rows.
    if (Status s = copy(w, moved(reshaped(from, {2, blocks, kBlock}), 1, 2), reshaped(to, {2, kBlock, blocks})))
      return s;
    exchange();
    for (; distance; distance /= 2)
      if (Status s = halve(kBlock / (2 * distance), distance * blocks)) return s;
    if (Status s = copy(w, moved(reshaped(from, {2, kBlock, blocks}), 1, 2), reshaped(to, {2, blocks, kBlock})))
      return s;
    exchange();
  }
  return copy(w, part(part(from, 0, 1, 1), 2, 0, n), reshaped(out, {1, rows, n}));
}

Status longRows(Work &w, const View &keys, int64_t rows, int64_t n, const View &out) {
  int64_t size = kBlock;
  while (size < n) size *= 2;
  if (size > mostOf('p')) return tooLong(w, n, mostOf('p'));
  int64_t most = 2 * mostOf('p') / size; // the last step of a merge is on pairs
  View all = reshaped(keys, {rows, n}), places = reshaped(out, {rows, n});
  for (int64_t r = 0; r < rows; r += most) {
    int64_t height = rows - r < most ? rows - r : most;
    if (Status s = blocksOfRows(w, part(all, 0, r, height), height, n, size, part(places, 0, r, height))) return s;
  }
  return ASTRA_OK;
}

} // namespace

Status argSort(Work &w, const View &in, int32_t axis, bool descending, const View &out) {
  Temporary packed, keys, places;
  View lines = moved(in, axis, in.ndim - 1), rows;
  if (Status s = dense(w, lines, packed, rows)) return s;
  if (Status s = keys.init(w, ASTRA_I64, rows.ndim, rows.shape)) return s;
  if (Status s = sortKeys(w, rows, descending, keys.view)) return s;
  View result = moved(out, axis, in.ndim - 1), target = result;
  if (!isDense(result)) {
    if (Status s = places.init(w, ASTRA_I64, rows.ndim, rows.shape)) return s;
    target = places.view;
  }
  Around a(rows, rows.ndim - 1);
  if (Status s = (a.n <= kBlock ? shortRows : longRows)(w, keys.view, a.outer, a.n, target)) return s;
  return isDense(result) ? ASTRA_OK : copy(w, target, result);
}

} // namespace astra::ops
