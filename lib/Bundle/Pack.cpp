//===- Pack.cpp: a param's bytes in its stored layout ----------------------===//
// Takes:    row-major bytes, a layout.
// Gives:    the packed bytes, memory dim by memory dim, as address() in Layout.cpp places them.
// Keeps:    zeros where a block sticks out of the tensor.
// Does not: run kernels.
#include "astra/Bundle/Pack.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace astra;

uint64_t astra::denseBytes(llvm::ArrayRef<int64_t> shape, DType dtype) {
  uint64_t rows = 1, row = 1;
  for (int64_t extent : shape) rows *= row, row = extent;
  return rows * llvm::divideCeil(row * bitWidth(dtype), 8);
}

Bytes astra::pack(Bytes data, const Layout &layout, llvm::ArrayRef<int64_t> shape, DType dtype) {
  if (layout.isRowMajor()) return data;
  assert(byteSize(dtype) && data->size() == denseBytes(shape, dtype));
  size_t rank = layout.dims.size(), size = byteSize(dtype);
  llvm::SmallVector<int64_t, 8> strides(shape.size(), 1), extents, at(rank, 0);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  uint64_t count = 1;
  for (const MemoryDim &d : layout.dims) {
    extents.push_back(d.modulus ? d.modulus : llvm::divideCeil(shape[d.axis], d.div));
    count *= extents.back();
  }
  auto out = std::make_shared<std::vector<uint8_t>>(count * size);
  llvm::SmallVector<int64_t, 8> index(shape.size());
  for (uint64_t element = 0; element < count; ++element) {
    llvm::fill(index, 0);
    for (size_t i = 0; i < rank; ++i) index[layout.dims[i].axis] += at[i] * layout.dims[i].div;
    bool inside = true;
    int64_t from = 0;
    for (size_t a = 0; a < shape.size(); ++a) {
      inside &= index[a] < shape[a];
      from += index[a] * strides[a];
    }
    if (inside) std::memcpy(out->data() + element * size, data->data() + from * size, size);
    for (size_t i = rank; i-- && ++at[i] == extents[i];) at[i] = 0;
  }
  return out;
}
