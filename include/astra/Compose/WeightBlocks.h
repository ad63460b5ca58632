//===- WeightBlocks.h: weights in the formats of files, and what is made of them ----===//
// Takes:    a tensor's bytes in a format of WeightFormats.def.
// Gives:    the planes that it is stored as: dense parameters, one for each kind of number that a block has (codes,
//           their further bits, scales); the tensor's values, a product by it, rows of it, as graphs over the
//           planes.
// Keeps:    planes have the bits of the blocks, each once, and take their size (6-bit scales a byte): nothing is
//           unpacked in memory. Values are the formulas below in f32, every product and sum rounded once, scales
//           widened from f16 before, in the order of gguf-py; llama.cpp's dequantize_row_* without contraction
//           gives the same bits.
#pragma once
#include "astra/Compose/Composer.h"
#include "astra/Compose/WeightFormat.h"

namespace astra::compose {

// Q4_0: d*(q-8). Q5_0: d*(q-16). Q8_0: d*q. IQ4_NL, MXFP4: d*table[q]. Q4_1, Q5_1: d*q + m.
// Q2_K, Q4_K, Q5_K: (d*s)*q - (dmin*t). Q3_K: (d*(s-32))*(q-4). Q6_K: (d*s)*(q-32).

/// What a plane of a format holds.
struct WeightPlane {
  const char *suffix; // behind the tensor's name, as ".d"; "" of a dense format
  DType dtype;
  unsigned elements; // of the last axis that share an element of the plane; of ".h", 8 bits of neighbours in a byte
};
/// One plane of the tensor's own type for a dense format.
llvm::ArrayRef<WeightPlane> planesOf(WeightFormat format);

/// The planes of a tensor, in that order: its last axis is divided by `elements`. The bytes must be weightBytes(...).
std::vector<Payload> splitBlocks(WeightFormat format, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<uint8_t> bytes);
/// The way back: the bytes of the tensor, or a sentence where the planes do not have those types and dims, or bits that
/// blocks have no room for.
llvm::Expected<std::vector<uint8_t>> joinBlocks(WeightFormat format, llvm::ArrayRef<int64_t> dims,
                                                llvm::ArrayRef<Payload> planes);

/// A weight of a graph.
struct StoredWeight {
  WeightFormat format = WeightFormat::F32;
  Dims dims;
  llvm::SmallVector<UOpRef, 5> planes;
};

/// Parameters `name` + suffix for a tensor, put behind b.params; their kind is Weight for a dense float type, else
/// Fixed. No name may be there twice.
StoredWeight storeWeight(Composer &b, llvm::StringRef name, WeightFormat format, llvm::ArrayRef<int64_t> dims,
                         llvm::ArrayRef<uint8_t> bytes);

/// The values, in f32; of a dense format in its own type.
UOpRef weightValues(Composer &b, const StoredWeight &weight);
/// x [..., k] times the transposed weight [n, k]: [..., n], of x's type. The sum is one of f32 (chain512); of a weight
/// of f64 in f64. Kernels compute the values where they read them.
UOpRef weightProduct(Composer &b, UOpRef x, const StoredWeight &weight);
/// The same with activations of 8 bits ("i8 blocks"), another meaning: of each block of 32 elements of a row of x, m
/// its greatest magnitude, e = m / 127 and i = 1 / e (0 where e is 0); x' = x * i rounded to even, in -127..127. A
/// block's product with one of the weight is p, the sum of x' * q in i32, exact (q as the format's formula has it: q -
/// 8 and so on). y = sum of f32(p) * (e * d) over the blocks, and of formats with a minimum, + sum of (e * f32(sum of
/// x')) * m: both sums in f32 (chain512), e * d and e * f32(...) rounded once. Of formats whose scale is one of 32
/// elements: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL. Others are not supported.
/// The products of blocks get a buffer in i32, and words of the weight are put together in each call: today it takes 3
/// to 13 times the time of weightProduct (docs/weights.md).
UOpRef weightProductOfBytes(Composer &b, UOpRef x, const StoredWeight &weight);
/// Rows of a weight of rank 2 by an integer index of any rank: [index..., k], in f32, or the dense format's own type.
UOpRef weightRows(Composer &b, UOpRef index, const StoredWeight &weight);

} // namespace astra::compose
