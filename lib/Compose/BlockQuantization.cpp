//===- BlockQuantization.cpp: weights of few bits, scaled block by block ---===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what BlockQuantization.h says.
#include "astra/Compose/BlockQuantization.h"
#include "astra/Compose/Indexing.h"
#include "astra/IR/Index.h"
#include "llvm/Support/MathExtras.h"

namespace astra::compose {

namespace {

bool isPacked(DType t) { return info(t).cls == DTypeClass::Storage && !info(t).exponentBits; }

/// The integers in the bytes of the last axis, the lowest bits first: of a 2- or 4-bit type where the bytes are known,
/// else of u8.
/// `joinsLast`: the last two axes are one in the result, so that what is known lies in rows, which kernels unpack where
/// they multiply by them.
UOpRef unpacked(Composer &b, UOpRef x, int64_t bits, bool joinsLast = false) {
  if (!x) return x;
  if (joinsLast && x->rank() == 3 && (bits == 8 || !b.bytes(x)))
    x = b.reshape(x, {x->shape[0], idxMul(b.c, x->shape[1], x->shape[2])});
  if (!x || bits == 8) return x;
  int64_t each = 8 / bits;
  if (const std::vector<uint8_t> *bytes = b.bytes(x)) {
    std::vector<int64_t> dims;
    for (UOpRef d : x->shape) dims.push_back(d->constIndex().value_or(0));
    if (joinsLast && dims.size() == 3) dims = {dims[0], dims[1] * dims[2]};
    dims.back() *= each;
    return b.constant({bits == 4 ? DType::U4 : DType::U2, dims, *bytes});
  }
  Dims split(x->shape.begin(), x->shape.end()), joined = split;
  split.push_back(b.idx(each));
  joined.back() = idxMul(b.c, joined.back(), b.idx(each));
  UOpRef shift = b.bin(Op::Mul, b.iota(DType::U8, {b.idx(each)}, 0), double(bits));
  UOpRef parts = b.bin(Op::Shr, b.broadcastTo(b.unsqueeze(x, {int64_t(x->rank())}), split), shift);
  return b.reshape(b.bin(Op::And, parts, double((1 << bits) - 1)), joined);
}

/// A value for each block of an axis as one for each of the axis's elements, `extent` of them.
UOpRef eachOfBlock(Composer &b, UOpRef x, int64_t axis, int64_t block, UOpRef extent) {
  if (!x) return nullptr;
  Dims repeated(x->shape.begin(), x->shape.end()), joined = repeated;
  repeated.insert(repeated.begin() + axis + 1, b.idx(block));
  joined[axis] = idxMul(b.c, joined[axis], b.idx(block));
  UOpRef all = b.reshape(b.broadcastTo(b.unsqueeze(x, {axis + 1}), repeated), joined);
  return all ? b.part(all, axis, b.idx(0), extent) : nullptr;
}

UOpRef wide(Composer &b, UOpRef x) { return b.cast(x, DType::F32); }

/// (q - zero) * scale in f32; an integer zero point is taken off exactly.
UOpRef dequantized(Composer &b, UOpRef q, UOpRef zero, double otherwise, UOpRef scale) {
  if (!q || !scale) return nullptr;
  bool exact = !zero || !isFloat(zero->dtype);
  if (info(q->dtype).exponentBits) // a narrow float
    return b.bin(Op::Mul, wide(b, q), wide(b, scale));
  UOpRef x = b.cast(q, exact ? DType::I32 : DType::F32);
  if (zero)
    x = b.bin(Op::Sub, x, b.cast(zero, exact ? DType::I32 : DType::F32));
  else if (otherwise != 0)
    x = b.bin(Op::Sub, x, otherwise);
  return b.bin(Op::Mul, wide(b, x), wide(b, scale));
}

bool requireBits(Composer &b, int64_t bits) {
  if (bits == 2 || bits == 4 || bits == 8) return true;
  b.unsupported(b.hints.option("bits") + " is " + llvm::Twine(bits) + ", supported are 2, 4 and 8");
  return false;
}

bool requireBlock(Composer &b, int64_t block) {
  if (block >= 16 && block <= int64_t(1) << 32 && llvm::isPowerOf2_64(uint64_t(block))) return true;
  b.fail(b.hints.option("block_size") + " is " + llvm::Twine(block) + ", expected a power of two of 16 or more");
  return false;
}

/// x as [rows, columns], which it may have as one axis.
UOpRef asMatrix(Composer &b, UOpRef x, int64_t rows, int64_t columns, const char *what) {
  if (!x) return nullptr;
  Dims flat = {b.idx(rows * columns)}, matrix = {b.idx(rows), b.idx(columns)};
  if (x->shape == llvm::ArrayRef<UOpRef>(flat)) return b.reshape(x, matrix);
  if (x->shape == llvm::ArrayRef<UOpRef>(matrix)) return x;
  return b.failExtents(llvm::Twine(what) + " have the shape " + dimsText(x->shape) + ", expected " + dimsText(matrix) +
                           " or " + dimsText(flat),
                       x->shape, matrix);
}

} // namespace

UOpRef blockProduct(Composer &b, UOpRef given, const BlockQuantized &weights, UOpRef groups, UOpRef bias,
                    const BlockProductOptions &options) {
  constexpr int64_t most = int64_t(1) << 31;
  int64_t k = options.columns, n = options.rows, bits = options.bits, block = options.block;
  if (!b.requireFloat(given) || !b.requireRank(given, 1) || !requireBits(b, bits) || !requireBlock(b, block))
    return nullptr;
  if (k < 1 || n < 1 || k > most || n > most)
    return b.fail(b.hints.option("K") + " is " + llvm::Twine(k) + " and " + b.hints.option("N") + " is " +
                  llvm::Twine(n) + ", expected 1 to 2^31");
  int64_t blocks = llvm::divideCeil(k, block), bytes = block * bits / 8;
  if (!weights.value || !weights.scale || weights.value->dtype != DType::U8)
    return b.fail("the weights are not of type u8");
  if (!b.requireEqual(given->shape.back(), b.idx(k), "the input's last axis and K")) return nullptr;
  Dims packed = {b.idx(n), b.idx(blocks), b.idx(bytes)};
  if (weights.value->shape != llvm::ArrayRef<UOpRef>(packed) &&
      weights.value->shape != llvm::ArrayRef<UOpRef>({packed[0], b.idx(blocks * bytes)}))
    return b.failExtents("the weights have the shape " + dimsText(weights.value->shape) + ", expected " +
                             dimsText(packed),
                         weights.value->shape, packed);
  UOpRef columns = b.idx(k), rows = b.idx(n);
  UOpRef q = b.part(unpacked(b, weights.value, bits, true), 1, b.idx(0), columns);
  UOpRef scale = asMatrix(b, weights.scale, n, blocks, "the scales"), zero = nullptr;
  if (weights.zero && weights.zero->dtype == DType::U8)
    zero =
        b.part(unpacked(b, asMatrix(b, weights.zero, n, llvm::divideCeil(blocks * bits, 8), "the zero points"), bits),
               1, b.idx(0), b.idx(blocks));
  else if (weights.zero)
    zero = asMatrix(b, weights.zero, n, blocks, "the zero points");
  if (groups && !b.requireRank(groups, 1, 1)) return nullptr;
  auto spread = [&](UOpRef x) -> UOpRef {
    if (!x) return nullptr;
    if (!groups) return eachOfBlock(b, x, 1, block, columns);
    return gather(b, x, b.part(groups, 0, b.idx(0), columns), 1);
  };
  UOpRef w = dequantized(b, q, spread(zero), double(1 << (bits - 1)), spread(scale));
  UOpRef x = b.widen(given);
  if (!w || b.failed()) return nullptr;
  ContractSpec spec;
  spec.kept = x->rank();
  spec.reduced = 1;
  Dims extents(x->shape.begin(), x->shape.end());
  for (int64_t axis = 0; axis + 1 < x->rank(); ++axis) spec.a.push_back(label(axis));
  spec.a.push_back(label(spec.kept));
  spec.b = {label(spec.kept - 1), label(spec.kept)};
  extents.back() = rows;
  extents.push_back(columns);
  UOpRef y = b.contract(spec, x, b.cast(w, x->dtype), extents);
  if (bias && !b.requireRank(bias, 1, 1)) return nullptr;
  if (bias) y = b.bin(Op::Add, y, b.cast(bias, x->dtype));
  return b.cast(y, given->dtype);
}

UOpRef expertWeights(Composer &b, const BlockQuantized &weights, int64_t bits, int64_t block) {
  UOpRef w = weights.value, scale = weights.scale, zero = weights.zero;
  if (!w || !scale || w->dtype != DType::U8) return b.fail("the weights are not of type u8, with scales");
  if (!requireBits(b, bits) || !b.requireRank(w, 3, 3) || !b.requireRank(scale, 2, 3) || !b.requireFloat(scale))
    return nullptr;
  int64_t out = b.constExtent(w, 1, "the rows of the weights"),
          bytes = b.constExtent(w, 2, "the columns of the weights");
  if (b.failed()) return nullptr;
  bool whole = scale->rank() == 2;
  int64_t in = bytes * 8 / bits, blocks = 1;
  if (whole) {
    block = in;
    scale = b.unsqueeze(scale, {2});
  } else {
    if (!requireBlock(b, block)) return nullptr;
    blocks = llvm::divideCeil(in, block);
  }
  Dims scales = {w->shape[0], w->shape[1], b.idx(blocks)};
  if (scale->shape != llvm::ArrayRef<UOpRef>(scales))
    return b.failExtents("the scales have the shape " + dimsText(scale->shape) + ", expected " + dimsText(scales),
                         scale->shape, scales);
  if (zero) {
    Dims packed = {w->shape[0], b.idx(llvm::divideCeil((whole ? out : blocks) * bits, 8))};
    if (!whole) packed.insert(packed.begin() + 1, w->shape[1]);
    if (zero->dtype != DType::U8 || zero->shape != llvm::ArrayRef<UOpRef>(packed))
      return b.fail("the zero points have the shape " + dimsText(zero->shape) + ", expected u8 of " + dimsText(packed));
    zero = unpacked(b, zero, bits);
    zero = whole ? b.unsqueeze(b.part(zero, 1, 0, out), {2}) : b.part(zero, 2, 0, blocks);
  }
  auto spread = [&](UOpRef x) { return eachOfBlock(b, x, 2, block, b.idx(in)); };
  UOpRef q = unpacked(b, w, bits);
  return b.failed() ? nullptr : dequantized(b, q, spread(zero), double(1 << (bits - 1)), spread(scale));
}

UOpRef blockGather(Composer &b, const BlockQuantized &table, UOpRef index, const BlockGatherOptions &options) {
  UOpRef data = table.value, scale = table.scale, zero = table.zero;
  if (!data || !scale || !index || !b.requireRank(data, 1) || !b.requireRank(scale, data->rank(), data->rank()) ||
      !b.requireFloat(scale))
    return nullptr;
  bool isFloatTable = info(data->dtype).exponentBits, wholeAxis = isFloatTable && options.block == 0;
  int64_t rank = data->rank(), at = b.axis(options.gatherAxis, rank), along = b.axis(options.quantizeAxis, rank);
  if (b.failed() || (!wholeAxis && !requireBlock(b, options.block))) return nullptr;
  if (zero && isFloatTable) return b.fail("a table of narrow floats has no zero points");
  if (zero && (zero->dtype != data->dtype || zero->rank() != data->rank()))
    return b.fail("the zero points are not of the table's type and rank");
  double otherwise = 0;
  if (data->dtype == DType::U8) {
    if (!requireBits(b, options.bits)) return nullptr;
    if (at != 0 || (options.bits < 8 && along == at))
      return b.fail("a table of u8 is gathered along axis 0 and quantized along another one");
    if (options.bits < 8 && zero && along != rank - 1)
      return b.unsupported("packed zero points of a table that is quantized along axis " + llvm::Twine(along) +
                           " are not supported, the last one is");
    data = unpacked(b, data, options.bits);
    zero = unpacked(b, zero, options.bits);
    otherwise = double(1 << (options.bits - 1));
  } else if (!isFloatTable && !isPacked(data->dtype)) {
    return b.fail(llvm::Twine("the table is of type ") + info(data->dtype).text +
                  ", expected u8, a 4-bit integer or a narrow float");
  }
  if (!data || b.failed()) return nullptr;
  UOpRef extent = data->shape[along];
  int64_t block = options.block;
  if (!wholeAxis) {
    UOpRef blocks = idxCeilDiv(b.c, extent, b.idx(block));
    if (!b.requireEqual(scale->shape[along], blocks, "the blocks of the quantized axis")) return nullptr;
    if (zero) zero = b.part(zero, along, b.idx(0), blocks);
  }
  if (at == along && !wholeAxis) { // a scale for each element that is picked
    UOpRef picked = fromFront(b, b.cast(index, DType::I64), extent);
    UOpRef places = b.bin(Op::FloorDiv, picked, double(block));
    auto pick = [&](UOpRef x) { return x ? gather(b, x, places, at) : nullptr; };
    return b.cast(dequantized(b, gather(b, data, picked, at), pick(zero), otherwise, pick(scale)), scale->dtype);
  }
  auto pick = [&](UOpRef x) -> UOpRef {
    if (!x || x->shape[at]->constIndex() != 1 || data->shape[at]->constIndex() == 1)
      return x ? gather(b, x, index, at) : nullptr;
    Dims dims(x->shape.begin(), x->shape.end()); // one for all rows
    dims.erase(dims.begin() + at);
    dims.insert(dims.begin() + at, index->rank(), b.idx(1));
    return b.reshape(x, dims);
  };
  int64_t axis = along > at ? along + int64_t(index->rank()) - 1 : along;
  auto spread = [&](UOpRef x) { return x && !wholeAxis ? eachOfBlock(b, x, axis, block, extent) : x; };
  UOpRef y = dequantized(b, gather(b, data, index, at), spread(pick(zero)), otherwise, spread(pick(scale)));
  return b.cast(y, scale->dtype);
}

} // namespace astra::compose
