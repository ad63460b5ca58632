//===- Product.cpp: products of matrices and of stacks of them -------------===//
// Takes:    operands of a native type, as numpy.matmul takes them.
// Gives:    calls of matmul: a stack whose second operand is one matrix is one product; small ones go together; others
//           one after another. A transposed second operand is read as it lies.
// Keeps:    chain512 (N4), whatever the form.
#include "Ops.h"

namespace astra::ops {

namespace {

/// A matrix, or a stack of them, that is dense as it stands or with its last two axes exchanged.
struct Factor {
  View view; ///< dense
  bool turned = false;
};

Status ready(Work &w, const View &in, bool mayTurn, Temporary &packed, Factor &out) {
  View other = moved(in, in.ndim - 2, in.ndim - 1);
  if (!isDense(in) && mayTurn && isDense(other)) {
    out = {other, true};
    return ASTRA_OK;
  }
  return dense(w, in, packed, out.view);
}

/// [m, k] by [k, n], by parts of m and n where they are long.
Status plain(Work &w, const Factor &a, const Factor &b, int64_t m, int64_t k, int64_t n, const View &out) {
  const astra_entry *const *entries = w.ops->entries[rowOf("matmul")][out.dtype];
  int64_t mostM = mostOf('x'), mostN = mostOf('t');
  if (k > mostOf('y'))
    return fail(w.diag, ASTRA_UNSUPPORTED, "%s: a sum of %lld products; at most %lld are supported", w.name,
                static_cast<long long>(k), static_cast<long long>(mostOf('y')));
  View left = reshaped(a.view, {m, k}), right = b.turned ? reshaped(b.view, {n, k}) : reshaped(b.view, {k, n}),
       result = reshaped(out, {m, n});
  for (int64_t i = 0; i < m || i == 0; i += mostM)
    for (int64_t j = 0; j < n || j == 0; j += mostN) {
      int64_t rows = m - i < mostM ? m - i : mostM, columns = n - j < mostN ? n - j : mostN;
      const View in[] = {part(left, 0, i, rows), part(right, !b.turned, j, columns)};
      View to = part(part(result, 0, i, rows), 1, j, columns);
      if (Status s = w.launch(entries[b.turned ? form::Turned : form::Flat], in, 2, to)) return s;
    }
  return ASTRA_OK;
}

} // namespace

Status matmul(Work &w, const View &a, const View &b, const View &out) {
  // A vector is a row on the left and a column on the right.
  View left = a, right = b;
  if (a.ndim == 1)
    left.ndim = 2, left.shape[1] = a.shape[0], left.strides[1] = a.strides[0], left.shape[0] = 1, left.strides[0] = 0;
  if (b.ndim == 1) right.ndim = 2, right.shape[1] = 1, right.strides[1] = 0;
  int64_t m = left.shape[left.ndim - 2], k = left.shape[left.ndim - 1], n = right.shape[right.ndim - 1];
  int64_t batch = 1, batchA = 1, batchB = 1, shape[ASTRA_MAX_RANK];
  int32_t stackA = left.ndim - 2, stackB = right.ndim - 2, stack = stackA > stackB ? stackA : stackB;
  for (int32_t i = 0; i < stack; i++) {
    int64_t x = i < stack - stackA ? 1 : left.shape[i - (stack - stackA)],
            y = i < stack - stackB ? 1 : right.shape[i - (stack - stackB)];
    shape[i] = x == 1 ? y : x;
    batch *= shape[i], batchA *= x, batchB *= y;
  }
  bool isFloat = only(out.dtype) & kFloats;
  Temporary packedA, packedB, writtenA, writtenB;
  Factor x, y;
  if (batchB == 1 && batchA == batch && !(only(a.dtype) & kComplex)) { // one matrix: rows of all of them
    if (Status s = ready(w, right, isFloat, packedB, y)) return s;
    if (Status s = dense(w, left, packedA, x.view)) return s;
    return plain(w, x, y, batch * m, k, n, out);
  }
  if (batchA != batch) {
    shape[stack] = m, shape[stack + 1] = k;
    if (Status s = writtenA.init(w, left.dtype, stack + 2, shape)) return s;
    if (Status s = copy(w, expanded(left, stack + 2, shape), writtenA.view)) return s;
    left = writtenA.view;
  }
  if (batchB != batch) {
    shape[stack] = k, shape[stack + 1] = n;
    if (Status s = writtenB.init(w, right.dtype, stack + 2, shape)) return s;
    if (Status s = copy(w, expanded(right, stack + 2, shape), writtenB.view)) return s;
    right = writtenB.view;
  }
  if (Status s = dense(w, left, packedA, x.view)) return s;
  if (Status s = dense(w, right, packedB, y.view)) return s;
  View as = reshaped(x.view, {batch, m, k}), bs = reshaped(y.view, {batch, k, n});
  View results = reshaped(out, {batch, m, n});
  int64_t most = mostOf('e');
  bool together = isFloat && m <= mostOf('s') && n <= mostOf('h') && k <= mostOf('o');
  for (int64_t i = 0, count; i < batch || i == 0; i += count) {
    count = together ? (batch - i < most ? batch - i : most) : 1;
    if (count > batch - i) count = batch - i;
    const View in[] = {part(as, 0, i, count), part(bs, 0, i, count)};
    View to = part(results, 0, i, count);
    Status s = together ? w.launch(w.ops->entries[rowOf("matmul")][out.dtype][form::Stacked], in, 2, to)
                        : plain(w, {in[0]}, {in[1]}, count * m, k, n, to);
    if (s) return s;
    if (!count) break;
  }
  return ASTRA_OK;
}

Status random(Work &w, uint32_t row, const View &out) {
  Temporary key;
  const int64_t two = 2;
  if (Status s = key.init(w, ASTRA_U32, 1, &two)) return s;
  auto *words = static_cast<uint32_t *>(astra_buffer_data(key.view.buffer)); // new: no call uses it yet
  words[0] = w.op->seed, words[1] = w.op->sequence;
  const View in[] = {reshaped(part(key.view, 0, 0, 1), {}), reshaped(part(key.view, 0, 1, 1), {})};
  int64_t n = elements(out);
  return w.launch(w.ops->entries[row][out.dtype][0], in, 2, reshaped(out, {n}), n);
}

} // namespace astra::ops
