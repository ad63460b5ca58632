//===- Layout.cpp: addresses of elements -----------------------------------===//
#include "astra/Schedule/Layout.h"
#include "astra/Rewrite/Rewrite.h"

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
  return idxProduct(c, memoryExtents(c, l, shape));
}

UOpRef astra::address(Context &c, const Layout &l, Shape shape, llvm::ArrayRef<UOpRef> index) {
  UOpRef at = c.index(0);
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

std::string astra::text(const Layout &l) {
  if (l.isRowMajor()) return "row-major";
  std::string out;
  for (const MemoryDim &d : l.dims) {
    out += "[" + std::to_string(d.axis);
    if (d.div != 1) out += "/" + std::to_string(d.div);
    if (d.modulus) out += "%" + std::to_string(d.modulus);
    out += "]";
  }
  return out;
}
