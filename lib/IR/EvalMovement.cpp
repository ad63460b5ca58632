//===- EvalMovement.cpp: reshape ... window, slice_at, update_at -----------===//
// Takes:    a source.
// Gives:    the same elements elsewhere; every one of these is one strided copy.
#include "EvalImpl.h"

using namespace astra;
using namespace astra::eval;

namespace {
struct View {
  int64_t base = 0;
  Dims strides; // in elements, of any sign
};
void copy(Tensor &out, const View &to, const Tensor &x, const View &from, llvm::ArrayRef<int64_t> shape) {
  unsigned w = elementBytes(x.dtype);
  for (Odometer o(shape); !o.done(); o.next())
    memcpy(&out.bytes[(to.base + o.offset(to.strides)) * w], &x.bytes[(from.base + o.offset(from.strides)) * w], w);
}
View whole(const Tensor &t) { return {0, rowMajor(t.shape)}; }

/// The view of an array of this shape that begins at `start`, each start clamped so that `size` stays inside.
View window(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> size, llvm::ArrayRef<const Tensor *> starts) {
  View v{0, rowMajor(shape)};
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t start = Native<int64_t>::load(starts[i]->bytes.data(), 0);
    v.base += std::max<int64_t>(0, std::min(start, shape[i] - size[i])) * v.strides[i];
  }
  return v;
}
} // namespace

Result eval::evalMovement(const Call &c) {
  const Tensor &x = c.x();
  Tensor out = c.result();
  View from = whole(x), to = whole(out);
  switch (c.node->op) {
  case Op::Permute: {
    Dims strides;
    for (int64_t axis : c.node->ints) strides.push_back(from.strides[axis]);
    from.strides = strides;
    break;
  }
  case Op::Expand:
    for (size_t i = 0; i < x.shape.size(); ++i)
      if (x.shape[i] == 1) from.strides[i] = 0;
    break;
  case Op::Pad:
  case Op::Place: {
    uint64_t fill = c.attr(0);
    unsigned w = elementBytes(x.dtype);
    for (int64_t i = 0, n = out.count(); i < n; ++i) memcpy(&out.bytes[i * w], &fill, std::min(w, 8u));
    for (size_t i = 0; i < x.shape.size(); ++i) to.base += c.indices[i] * to.strides[i];
    copy(out, to, x, from, x.shape);
    return out;
  }
  case Op::Shrink:
    for (size_t i = 0; i < x.shape.size(); ++i) from.base += c.indices[i] * from.strides[i];
    break;
  case Op::Flip:
    for (int64_t axis : c.node->ints) {
      from.base += (x.shape[axis] - 1) * from.strides[axis];
      from.strides[axis] = -from.strides[axis];
    }
    break;
  case Op::Window: {
    int64_t axis = c.attr(0), stride = c.attr(2), dilation = c.attr(3);
    from.strides.push_back(from.strides[axis] * dilation);
    from.strides[axis] *= stride;
    break;
  }
  case Op::SliceAt: from = window(x.shape, out.shape, c.in.drop_front()); break;
  case Op::UpdateAt:
    out.bytes = x.bytes;
    copy(out, window(x.shape, c.in[1]->shape, c.in.drop_front(2)), *c.in[1], whole(*c.in[1]), c.in[1]->shape);
    return out;
  default: out.bytes = x.bytes; return out; // reshape, detach, tap, words: the same bytes in the same order
  }
  copy(out, to, x, from, out.shape);
  return out;
}
