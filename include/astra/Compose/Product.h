//===- Product.h: products of matrices -------------------------------------===//
// Gives:    one `contract` each, the sum along the axis that both have (N4).
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// NumPy's matmul of x [batch..., m, k] and y [batch..., k, n]: [batch..., m, n]. Batch axes broadcast; an operand of
/// rank 1 is a row (x) or a column (y), and the result lacks its axis. Both are of one number type.
/// With a diagonal, a symbolic integer, no element of x beyond it takes part: of row i those of columns up to i +
/// diagonal. Refuses: an operand of rank 0, x of rank 1 with a diagonal, extents k that differ.
UOpRef product(Composer &b, UOpRef x, UOpRef y, UOpRef diagonal = nullptr);

/// Axes by their numbers: pairs that go together, one of each operand, and pairs that are summed.
struct GeneralProductAxes {
  llvm::SmallVector<int64_t, 4> batchX, batchY, sumX, sumY;
};
/// The product along any axes: [batch..., the rest of x..., the rest of y...]. Sums go in the order of sumX.
UOpRef generalProduct(Composer &b, UOpRef x, UOpRef y, const GeneralProductAxes &axes);

struct AffineProductOptions {
  bool transposeX = false, transposeY = false; // only other index lists: nothing is moved
  UOpRef alpha = nullptr, beta = nullptr;      // scalars of the operands' type; null: 1
};

/// alpha x y + beta z of operands as `product` takes them and z, which broadcasts to x y, or null for none.
UOpRef affineProduct(Composer &b, UOpRef x, UOpRef y, UOpRef z, const AffineProductOptions &options);

/// How the operand of a fused product lies: [batch..., rows, columns], of rank 2 or more.
struct OperandLayout {
  bool transposed = false;  // [batch..., columns, rows]
  bool batchBehind = false; // the rows, or what stands in their place, come before the batch: [rows, batch..., columns]
};
/// alpha x y of operands so laid out, as `product` multiplies them.
UOpRef fusedProduct(Composer &b, UOpRef x, const OperandLayout &layoutX, UOpRef y, const OperandLayout &layoutY,
                    double alpha);

/// The distances of the rows of x [m, k] from those of y [n, k], or their squares: [m, n], of a float type.
UOpRef distances(Composer &b, UOpRef x, UOpRef y, bool squares);

} // namespace astra::compose
