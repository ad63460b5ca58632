//===- Layout.h: where a tensor's elements lie in its buffer ---------------===//
// A layout is a list of memory dims, outermost first; each takes the index of one axis, divided and reduced:
// (index[axis] floordiv div) mod modulus. Row-major is one memory dim per axis in order; channels-last puts axis 1 at
// the end; panels of 16 columns of a [k, n] matrix are (1, 16, 0), (0, 1, 0), (1, 1, 16), in text [n/16][k][n%16]. An
// axis that is blocked is padded to whole blocks: the padding is 0 and never read into a result.
// A caller's tensor may have any strides instead: the dims, one for each axis, are then the order in which kernels go
// through it.
#pragma once
#include "astra/IR/Index.h"
#include <string>
#include <vector>

namespace astra {

struct MemoryDim {
  int64_t axis;
  int64_t div = 1;
  int64_t modulus = 0; // 0: none
  bool operator==(const MemoryDim &) const = default;
};

struct Layout {
  std::vector<MemoryDim> dims;
  std::vector<UOpRef> strides = {}; // of each axis, in elements, not negative; empty: as the dims say
  UOpRef span = nullptr;            // of strides: elements from the first one in memory to the last, both counted
  static Layout rowMajor(unsigned rank);
  /// Axes in memory order, outermost first.
  static Layout permuted(llvm::ArrayRef<int64_t> order);
  bool isRowMajor() const;
  bool isPermuted() const; // no blocks
  bool isStrided() const { return !strides.empty(); }
  bool operator==(const Layout &) const = default;
};

/// The extents of the memory dims for a tensor of this shape.
std::vector<UOpRef> memoryExtents(Context &c, const Layout &l, Shape shape);
/// Elements that the buffer holds, padding included.
UOpRef elementCount(Context &c, const Layout &l, Shape shape);
/// The element's place in the buffer.
UOpRef address(Context &c, const Layout &l, Shape shape, llvm::ArrayRef<UOpRef> index);
/// A row-major tensor of constant shape rearranged as the layout says, padding 0: what a `prepare` routine computes,
/// done while compiling. elementBytes > 0.
std::vector<uint8_t> arrange(const Layout &l, llvm::ArrayRef<int64_t> shape, unsigned elementBytes,
                             llvm::ArrayRef<uint8_t> rowMajor);
/// "row-major" or e.g. "[1/16][0][1%16]".
std::string text(const Layout &l);

} // namespace astra
