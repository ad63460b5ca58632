//===- LegalizeSubByte.cpp: sub-byte values at the border ------------------===//
// Takes:    casts of arguments, parameters and states of sub-byte types, casts to such a type under outputs and new
//           states: what the numerics stage leaves (lib/Numerics/SubByte.cpp).
// Gives:    arithmetic on the bytes that they lie in: low bits first along the last axis, rows padded to bytes with
//           zeros. Reading is a load, a shift and a mask inside the kernel that reads.
#include "Legalize.h"
#include "llvm/ADT/DenseSet.h"

using namespace astra;
using llvm::SmallVector;

static int64_t perByte(DType t) { return 8 / bitWidth(t); }

/// The shape in bytes.
static SmallVector<UOpRef, 6> packedShape(Context &c, Shape shape, DType t) {
  SmallVector<UOpRef, 6> bytes(shape);
  if (bytes.empty()) bytes.push_back(c.index(1));
  bytes.back() = idxCeilDiv(c, bytes.back(), c.index(perByte(t)));
  return bytes;
}

UOpRef astra::bytesOf(Context &c, UOpRef leaf) {
  return c.make(leaf->op, packedShape(c, leaf->shape, leaf->dtype), leaf->ints, leaf->str, DType::U8);
}

/// The codes of the elements of a tensor of type t, in the low bits of a byte each.
static UOpRef unpacked(Builder &b, UOpRef packed, DType t, Shape shape) {
  int64_t bits = bitWidth(t), per = perByte(t);
  auto bytes = packedShape(b.c, shape, t), one = bytes, parts = bytes, row = bytes;
  one.push_back(b.idx(1));
  parts.push_back(b.idx(per));
  row.back() = idxMul(b.c, row.back(), b.idx(per));
  UOpRef all = b.expand(b.reshape(packed, one), parts), place = b.iota(DType::U8, parts, int64_t(bytes.size()));
  UOpRef codes = all; // shifts by constants: machines lack those of bytes by different amounts
  for (int64_t k = 1; k < per; ++k)
    codes = b.select(b.eq(place, b.litInt(DType::U8, k)), b.bin(Op::Shr, all, b.litInt(DType::U8, k * bits)), codes);
  codes = b.reshape(b.bin(Op::And, codes, b.litInt(DType::U8, (1 << bits) - 1)), row);
  if (shape.empty()) return b.reshape(b.shrink(codes, {b.idx(0)}, {b.idx(1)}), {});
  SmallVector<UOpRef, 6> zero(row.size(), b.idx(0));
  return codes->shape == shape ? codes : b.shrink(codes, zero, shape);
}

/// The values of f4e2m1 in the order of their codes, as f32.
static SmallVector<uint64_t, 16> tableF4E2M1(Builder &b) {
  SmallVector<uint64_t, 16> table;
  for (double sign : {1.0, -1.0})
    for (double v : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0}) table.push_back(b.lit(DType::F32, sign * v)->ints[0]);
  return table;
}

static UOpRef read(Builder &b, UOpRef packed, DType t, Shape shape) {
  UOpRef codes = unpacked(b, packed, t, shape);
  switch (t) {
  case DType::F4E2M1: return b.lookup16(codes, DType::F32, tableF4E2M1(b));
  case DType::I2:
  case DType::I4: {
    UOpRef sign = b.litInt(DType::I8, 1 << (bitWidth(t) - 1));
    return b.sub(b.bin(Op::Xor, b.bitcast(codes, DType::I8), sign), sign);
  }
  default: return codes;
  }
}

/// The code of an f32 that is a number of f4e2m1: from 1 up the exponent and one bit of the fraction count the codes.
static UOpRef codeF4E2M1(Builder &b, UOpRef x) {
  auto u32 = [&](int64_t v) { return b.litInt(DType::U32, v); };
  UOpRef bits = b.bitcast(x, DType::U32), magnitude = b.bin(Op::And, bits, u32(0x7fffffff));
  UOpRef counted = b.sub(b.bin(Op::Shr, magnitude, u32(22)), u32(252));
  UOpRef small = b.cast(b.lt(u32(0), magnitude), DType::U32),
         sign = b.bin(Op::Shl, b.bin(Op::Shr, bits, u32(31)), u32(3));
  UOpRef code = b.select(b.lt(magnitude, u32(0x3f800000)), small, counted);
  return b.cast(b.bin(Op::Or, code, sign), DType::U8);
}

static UOpRef packed(Builder &b, UOpRef value, DType t) {
  int64_t bits = bitWidth(t), per = perByte(t);
  UOpRef codes = t == DType::F4E2M1 ? codeF4E2M1(b, value)
                                    : b.bin(Op::And, b.cast(value, DType::U8), b.litInt(DType::U8, (1 << bits) - 1));
  if (codes->rank() == 0) codes = b.reshape(codes, {b.idx(1)});
  auto bytes = packedShape(b.c, value->shape, t), parts = bytes;
  UOpRef whole = idxMul(b.c, bytes.back(), b.idx(per)), missing = idxSub(b.c, whole, codes->shape.back());
  SmallVector<UOpRef, 6> zero(bytes.size(), b.idx(0)), end = zero;
  end.back() = missing;
  if (missing->constIndex() != 0) codes = b.pad(codes, zero, end);
  parts.push_back(b.idx(per));
  codes = b.reshape(codes, parts);
  UOpRef result = nullptr;
  for (int64_t k = 0; k < per; ++k) {
    SmallVector<UOpRef, 6> begin(parts.size(), b.idx(0)), size = parts;
    begin.back() = b.idx(k);
    size.back() = b.idx(1);
    UOpRef part = b.bin(Op::Shl, b.reshape(b.shrink(codes, begin, size), bytes), b.litInt(DType::U8, k * bits));
    result = result ? b.bin(Op::Or, result, part) : part;
  }
  return result;
}

UOpRef astra::legalizeCast(Builder &b, UOpRef r) {
  UOpRef x = r->src[0];
  if (isSubByte(r->dtype)) return packed(b, x, r->dtype);
  return isSubByte(x->dtype) ? b.cast(read(b, bytesOf(b.c, x), x->dtype, x->shape), r->dtype, r->ints[0]) : r;
}

/// A parameter of bytes that x is made of, by few nodes; null: there is none.
static UOpRef bytesBehind(UOpRef x) {
  constexpr size_t most = 40;
  SmallVector<UOpRef, 16> stack{x};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    UOpRef n = stack.pop_back_val();
    if (n->isIndex() || !seen.insert(n).second) continue;
    if (n->op == Op::Param) return n->dtype == DType::U8 ? n : nullptr;
    if (seen.size() > most || !(has(n->op, Elementwise) || has(n->op, Movement) || has(n->op, Leaf))) return nullptr;
    stack.append(n->tensors().begin(), n->tensors().end());
  }
  return nullptr;
}

/// Of rows that are gathered from packed values the bytes are gathered, and those rows unpacked: not the whole table.
UOpRef astra::legalizeGather(Builder &b, UOpRef r) {
  UOpRef table = r->src[0], index = r->src[1], values = table->op == Op::Cast ? table->src[0] : table;
  int64_t axis = r->ints[0];
  if (axis + 1 >= int64_t(table->rank())) return r;
  UOpRef bytes = bytesBehind(values);
  for (DType t : {DType::U4, DType::I4, DType::U2, DType::I2, DType::F4E2M1}) {
    if (!bytes || bytes->shape != Shape(packedShape(b.c, values->shape, t)) ||
        read(b, bytes, t, values->shape) != values)
      continue; // an index outside reads 0, whose bits are 0 in each of these types
    UOpRef y = read(b, b.gather(bytes, index, axis), t, r->shape);
    return values == table ? y : b.cast(y, table->dtype, table->ints[0]);
  }
  return r;
}
