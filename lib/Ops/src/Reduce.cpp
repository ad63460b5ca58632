//===- Reduce.cpp: folds of axes -------------------------------------------===//
// Takes:    operands of a native type, the axes that go.
// Gives:    calls of the forms [rows, n] and [outer, n, inner], and of a third where order counts.
// Keeps:    the contract's order (N4): the last group of neighbours among the axes of a sum of floats goes by lanes,
//           the others one after another over its results, outermost first. Where order does not count all go at once.
#include "Ops.h"

namespace astra::ops {

namespace {

/// [outer, n, inner], of dense views.
Status fold(Work &w, uint32_t row, View in, int64_t outer, int64_t n, int64_t inner, const View &out) {
  const astra_entry *const *entries = w.ops->entries[row][in.dtype];
  Temporary turned;
  if (inner != 1 && (n > mostOf('y') || !entries[form::Middle])) { // the axis goes last
    const int64_t shape[] = {outer, inner, n};
    if (Status s = turned.init(w, in.dtype, 3, shape)) return s;
    if (Status s = copy(w, moved(reshaped(in, {outer, n, inner}), 1, 2), turned.view)) return s;
    in = turned.view, outer *= inner, inner = 1;
  }
  if (n > mostOf(inner == 1 ? 'r' : 'y'))
    return fail(w.diag, ASTRA_UNSUPPORTED, "%s: an axis of %lld elements; at most %lld are supported", w.name,
                static_cast<long long>(n), static_cast<long long>(mostOf('r')));
  int64_t mostOuter = mostOf(inner == 1 ? 'o' : 'x'), mostInner = mostOf('z');
  View all = reshaped(in, {outer, n, inner}), result = reshaped(out, {outer, inner});
  for (int64_t o = 0; o < outer || o == 0; o += mostOuter)
    for (int64_t i = 0; i < inner || i == 0; i += mostInner) {
      int64_t height = outer - o < mostOuter ? outer - o : mostOuter,
              width = inner - i < mostInner ? inner - i : mostInner;
      View from = part(part(all, 0, o, height), 2, i, width), to = part(part(result, 0, o, height), 1, i, width);
      if (inner == 1) from = reshaped(from, {height, n}), to = reshaped(to, {height});
      if (Status s = w.launch(entries[inner == 1 ? form::Last : form::Middle], &from, 1, to)) return s;
    }
  return ASTRA_OK;
}

/// [n, kept], one after another.
Status chain(Work &w, uint32_t row, const View &in, int64_t n, int64_t kept, const View &out) {
  if (n > mostOf('c'))
    return fail(w.diag, ASTRA_UNSUPPORTED, "%s: outer axes of %lld elements; at most %lld are supported", w.name,
                static_cast<long long>(n), static_cast<long long>(mostOf('c')));
  View all = reshaped(in, {n, kept}), result = reshaped(out, {kept});
  int64_t most = mostOf('d');
  for (int64_t i = 0; i < kept || i == 0; i += most) {
    int64_t width = kept - i < most ? kept - i : most;
    View from = part(all, 1, i, width);
    if (Status s = w.launch(w.ops->entries[row][in.dtype][form::Chain], &from, 1, part(result, 0, i, width))) return s;
  }
  return ASTRA_OK;
}

/// Without the axes of a set.
void drop(View &v, uint32_t axes) {
  int32_t kept = 0;
  for (int32_t i = 0; i < v.ndim; i++)
    if (!(axes >> i & 1)) v.shape[kept] = v.shape[i], v.strides[kept++] = v.strides[i];
  v.ndim = kept;
}

/// The axes of a set to the front, in order.
View gathered(View v, uint32_t axes) {
  int32_t to = 0;
  for (int32_t i = 0; i < v.ndim; i++)
    if (axes >> i & 1) v = moved(v, i, to++);
  return v;
}

int64_t extentOf(const View &v, int32_t begin, int32_t end) {
  int64_t n = 1;
  for (int32_t i = begin; i < end; i++) n *= v.shape[i];
  return n;
}

} // namespace

Status reduce(Work &w, uint32_t row, const View &in, uint32_t axes, const View &out) {
  if (!axes) return copy(w, in, out);
  Temporary packed, lanes, turned;
  int32_t last = 31 - __builtin_clz(axes), first = last;
  while (first > 0 && axes >> (first - 1) & 1) first--;
  uint32_t group = (2u << last) - (1u << first);
  bool ordered = w.ops->entries[row][in.dtype][form::Chain];
  View v = in;
  if (axes != group && !ordered) { // all at once: those that go behind those that stay
    uint32_t stay = ((1u << in.ndim) - 1) & ~axes;
    v = gathered(in, stay);
    first = __builtin_popcount(stay), last = in.ndim - 1, group = axes;
  }
  View whole;
  if (Status s = dense(w, v, packed, whole)) return s;
  int64_t outer = extentOf(whole, 0, first), n = extentOf(whole, first, last + 1),
          inner = extentOf(whole, last + 1, whole.ndim);
  if (axes == group) return fold(w, row, whole, outer, n, inner, out);

  View left = whole;
  drop(left, group);
  uint32_t rest = axes & ~group; // before the group: their numbers stay
  if (Status s = lanes.init(w, in.dtype, left.ndim, left.shape)) return s;
  if (Status s = fold(w, row, whole, outer, n, inner, lanes.view)) return s;
  View front;
  if (Status s = dense(w, gathered(lanes.view, rest), turned, front)) return s;
  int32_t count = __builtin_popcount(rest);
  return chain(w, row, front, extentOf(front, 0, count), extentOf(front, count, front.ndim), out);
}

Status argReduce(Work &w, uint32_t row, const View &in, int32_t axis, const View &out) {
  Temporary packed;
  View whole;
  if (Status s = dense(w, in, packed, whole)) return s;
  return fold(w, row, whole, extentOf(whole, 0, axis), whole.shape[axis], extentOf(whole, axis + 1, whole.ndim), out);
}

} // namespace astra::ops
