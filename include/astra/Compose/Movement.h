//===- Movement.h: padding, tiles, triangles and blocks --------------------===//
// Takes:    x of any type; amounts and extents are symbolic integers.
// Keeps:    the bits of what is moved.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// What stands around x: one value; its border; x mirrored at its border elements; x again.
enum class PadMode { Constant, Edge, Reflect, Wrap };
/// x with so many elements before and behind each axis; a negative amount cuts. Constant: of `value`, a scalar that may
/// be data, or of the bits of a literal where it is null.
UOpRef padAround(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> before, llvm::ArrayRef<UOpRef> after, PadMode mode,
                 uint64_t bits = 0, UOpRef value = nullptr);
/// x with so many elements of `value`, a scalar that may be data, between two neighbours of each axis.
UOpRef padBetween(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> between, UOpRef value);
/// The middle of each axis named, cut or padded with zeros to the extent given; an odd element more falls to the end.
UOpRef centreCropOrPad(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<UOpRef> extents);

/// x as a tensor of these extents in which its axis i is axis places[i]: other axes are new, and axes of extent 1 are
/// repeated.
UOpRef broadcastAlong(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> places, llvm::ArrayRef<UOpRef> dims);
/// x so many times along each axis.
UOpRef tile(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> repeats);
/// The extent of which `part` makes the elements of `total`: their quotient where it is exact whenever `part` is not 0;
/// null where that is not known.
UOpRef exactQuotient(Composer &b, llvm::ArrayRef<UOpRef> total, llvm::ArrayRef<UOpRef> part);
/// Pieces of these extents side by side along an axis, which they make up. Empty after a failure.
std::vector<UOpRef> pieces(Composer &b, UOpRef x, int64_t axis, llvm::ArrayRef<UOpRef> sizes);
/// `count` pieces of ceil(extent / count) along an axis, as long as there is something left. Empty after a failure.
std::vector<UOpRef> splitEvenly(Composer &b, UOpRef x, int64_t axis, int64_t count);

/// Elements of the last two axes on one side of a diagonal: column - row >= k (upper) or <= k; the rest 0. k is an i64
/// scalar, which may be data.
UOpRef triangle(Composer &b, UOpRef x, UOpRef k, bool upper);

/// The order of a block's rows and columns and the channels.
enum class BlockOrder { DepthColumnRow, ColumnRowDepth };
/// [N, C, H, W] with C = block^2 c to [N, c, H * block, W * block], and back.
UOpRef depthToSpace(Composer &b, UOpRef x, int64_t block, BlockOrder order);
UOpRef spaceToDepth(Composer &b, UOpRef x, int64_t block, BlockOrder order);

} // namespace astra::compose
