//===- Layout.cpp: addresses of elements -----------------------------------===//
#include "astra/Schedule/Layout.h"
#include "astra/IR/Text.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

Layout Layout::rowMajor(unsigned rank) {
  Layout l;
  for (unsigned i = 0; i < rank; ++i) l.dims.push_back({int64_t(i)});
  return l;
}
Layout Layout::permuted(llvm::ArrayRef<int64_t> order) {
  Layout l;
  for (int64_t a : order) l.dims.push_back({a});
  return l;
}
bool Layout::isPermuted() const {
  for (const MemoryDim &d : dims)
    if (d.div != 1 || d.modulus) return false;
  return true;
}
bool Layout::isRowMajor() const { return *this == rowMajor(dims.size()); }

std::vector<UOpRef> astra::memoryExtents(Context &c, const Layout &l, Shape shape) {
  std::vector<UOpRef> out;
  for (const MemoryDim &d : l.dims)
    out.push_back(d.modulus ? c.index(d.modulus) : idxCeilDiv(c, shape[d.axis], c.index(d.div)));
  return out;
}

UOpRef astra::elementCount(Context &c, const Layout &l, Shape shape) {
  if (l.isStrided()) return l.span;
  return idxProduct(c, memoryExtents(c, l, shape));
}

UOpRef astra::address(Context &c, const Layout &l, Shape shape, llvm::ArrayRef<UOpRef> index) {
  UOpRef at = c.index(0);
  if (l.isStrided()) {
    for (auto [i, stride] : llvm::zip_equal(index, l.strides)) at = idxAdd(c, at, idxMul(c, i, stride));
    return simplifyIndex(c, at);
  }
  auto extents = memoryExtents(c, l, shape);
  for (size_t i = 0; i < l.dims.size(); ++i) {
    const MemoryDim &d = l.dims[i];
    UOpRef x = index[d.axis];
    if (d.div != 1) x = idxDiv(c, x, c.index(d.div));
    if (d.modulus) x = idxMod(c, x, c.index(d.modulus));
    at = idxAdd(c, idxMul(c, at, extents[i]), x);
  }
  return simplifyIndex(c, at);
}

/// Every `step`th of the elements from `from` on, together at `to`. An element is N bytes, known to the compiler.
template <size_t N> static void gather(uint8_t *to, const uint8_t *from, int64_t count, int64_t step) {
  for (int64_t i = 0; i < count; ++i) memcpy(to + i * N, from + i * step * N, N);
}

std::vector<uint8_t> astra::arrange(const Layout &l, llvm::ArrayRef<int64_t> shape, unsigned elementBytes,
                                    llvm::ArrayRef<uint8_t> rowMajor) {
  if (l.isRowMajor()) return rowMajor.vec(); // a scalar's as well, which has no innermost dim
  size_t rank = shape.size();
  std::vector<int64_t> extent, at(rank), strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  int64_t total = 1;
  for (const MemoryDim &d : l.dims) {
    extent.push_back(d.modulus ? d.modulus : (shape[d.axis] + d.div - 1) / d.div);
    total *= extent.back();
  }
  auto copy = elementBytes == 1   ? gather<1>
              : elementBytes == 2 ? gather<2>
              : elementBytes == 4 ? gather<4>
              : elementBytes == 8 ? gather<8>
                                  : gather<16>;
  assert(llvm::isPowerOf2_32(elementBytes) && elementBytes <= 16);
  std::vector<uint8_t> out(total * elementBytes);
  // The innermost memory dim by one loop, those around it by counting.
  const MemoryDim &inner = l.dims.back();
  int64_t row = extent.back(), step = inner.div * strides[inner.axis];
  size_t outer = l.dims.size() - 1;
  std::vector<int64_t> memory(outer);
  for (int64_t to = 0; to < total; to += row) {
    std::fill(at.begin(), at.end(), 0);
    for (size_t k = 0; k < outer; ++k) at[l.dims[k].axis] += memory[k] * l.dims[k].div;
    int64_t from = 0, count = std::min(row, llvm::divideCeilSigned(shape[inner.axis] - at[inner.axis], inner.div));
    for (size_t a = 0; a < rank; ++a) {
      if (at[a] >= shape[a]) count = 0;
      from += at[a] * strides[a];
    }
    if (count > 0 && step == 1)
      memcpy(&out[to * elementBytes], &rowMajor[from * elementBytes], count * elementBytes);
    else if (count > 0)
      copy(&out[to * elementBytes], &rowMajor[from * elementBytes], count, step);
    for (size_t k = outer; k-- > 0;) {
      if (++memory[k] < extent[k]) break;
      memory[k] = 0;
    }
  }
  return out;
}

std::string astra::text(const Layout &l) {
  if (l.isRowMajor()) return "row-major";
  std::string out;
  for (UOpRef stride : l.strides) out += (out.empty() ? "strides [" : ", ") + indexText(stride);
  if (l.isStrided()) return out + "]";
  for (const MemoryDim &d : l.dims) {
    out += "[" + std::to_string(d.axis);
    if (d.div != 1) out += "/" + std::to_string(d.div);
    if (d.modulus) out += "%" + std::to_string(d.modulus);
    out += "]";
  }
  return out;
}
