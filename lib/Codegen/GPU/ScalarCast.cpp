//===- ScalarCast.cpp: conversions of values in the llvm dialect -----------===//
// Takes:    two dtypes and a value.
// Gives:    the operations that convert it (N11, N12).
// Keeps:    one rounding. What is small (f16, bf16, the formats of 8 bits) is reached from f32 alone; f64 and wide
//           integers go through f32 rounded to odd, which keeps the direction of what was lost (Boldo and Melquiond,
//           "When double rounding is odd", 2005). No conversion is asked of a machine outside of the range in which all
//           machines agree.
#include "Scalar.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::gpu;

V Scalar::tableAt(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<uint64_t> bits, V index) {
  namespace L = mlir::LLVM;
  unsigned width = element.getIntOrFloatBitWidth();
  std::vector<uint64_t> key{width};
  key.insert(key.end(), bits.begin(), bits.end());
  auto [it, fresh] = tables.try_emplace(key, (name + "_" + llvm::Twine(tables.size())).str());
  auto array = L::LLVMArrayType::get(i(width), bits.size());
  auto pointer = L::LLVMPointerType::get(b.getContext(), constantSpace);
  if (fresh) {
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    llvm::SmallVector<llvm::APInt> values;
    for (uint64_t v : bits) values.emplace_back(width, v, false, true);
    auto tensor = mlir::RankedTensorType::get({int64_t(bits.size())}, i(width));
    L::GlobalOp::create(b, loc, array, /*isConstant=*/true, L::Linkage::Internal, it->second,
                        mlir::DenseElementsAttr::get(tensor, values), width / 8, constantSpace);
  }
  V base = L::AddressOfOp::create(b, loc, pointer, it->second);
  V x = L::LoadOp::create(b, loc, i(width), offset(base, i(width), zext(index, 64)), width / 8);
  return mlir::isa<mlir::FloatType>(element) ? asReal(x) : x;
}

V Scalar::lookup(DType to, llvm::ArrayRef<int64_t> table, V index) {
  std::vector<uint64_t> bits(table.begin(), table.end());
  if (table.size() != 16) return refuse("lookup16 has a table of " + std::to_string(table.size()) + " entries");
  V at = band(index, 15), x = tableAt("lookup", memoryType(to), bits, at);
  return to == DType::Bool ? trunc(x, 1) : x;
}

V Scalar::bitcast(DType from, DType to, V x) {
  if (isNarrow(from)) {
    uint64_t magnitude = (1ull << (bitWidth(from) - 1)) - 1;
    uint64_t inf = ((1ull << info(from).exponentBits) - 1) << info(from).mantissaBits;
    uint64_t quiet = inf | 1ull << (info(from).mantissaBits - 1);
    x = select(cmp(ICmp::ugt, band(x, magnitude), inf), like(x, quiet), x);
  } else if (isFloat(from)) {
    V nan = real(bitWidth(from), from == DType::F32 ? 0x7fc00000 : 0x7ff8000000000000);
    x = select(isNaN(x), nan, x);
  }
  if (from == DType::Bool) x = zext(x, 8);
  if (to == DType::Bool) return cmp(ICmp::ne, bits(x), 0);
  return mlir::isa<mlir::FloatType>(type(to)) ? asReal(x) : bits(x);
}

V Scalar::smallToF32(DType t, V x) {
  if (t == DType::BF16) return asReal(shl(zext(x, 32), 16u));
  if (t == DType::F16) { // f16's bits as f32's are too small by 2^112; the product is exact, subnormals too
    V wide = zext(x, 32), m = shl(band(wide, 0x7fff), 13u), v = fmul(asReal(m), power(32, 112));
    V r = select(cmp(ICmp::uge, m, 0xf800000), bor(m, 0x7f800000), bits(v));
    return asReal(bor(r, shl(band(wide, 0x8000), 16u)));
  }
  std::vector<uint64_t> values(256);
  for (unsigned code = 0; code < 256; ++code) values[code] = decodedSmall(t, code);
  return tableAt(info(t).text, f(32), values, x);
}

V Scalar::f32ToSmall(DType t, V a, bool saturate) {
  V x = bits(a), m = band(x, 0x7fffffff);
  auto word = [&](uint64_t v) { return integer(32, v); };
  V isNaN = cmp(ICmp::ugt, m, 0x7f800000);
  /// m with all below bit `drop` rounded away, to nearest even.
  auto rounding = [&](unsigned drop) { return add(add(m, (1u << (drop - 1)) - 1), band(lshr(m, drop), 1)); };
  if (t == DType::BF16) {
    V r = lshr(add(add(x, 0x7fff), band(lshr(x, 16u), 1)), 16u);
    return trunc(select(isNaN, word(0x7fc0), r), 16);
  }
  if (t == DType::F16) { // in the f32 adder for subnormals, by carry for the others
    V small = sub(bits(fadd(asReal(m), power(32, -1))), 0x3f000000);
    V normal = lshr(sub(rounding(13), 0x38000000), 13u);
    V r = select(cmp(ICmp::ult, m, 0x38800000), small, normal);
    r = select(cmp(ICmp::uge, m, 0x477ff000), word(0x7c00), r);
    return trunc(select(isNaN, word(0x7e00), bor(r, band(lshr(x, 16u), 0x8000))), 16);
  }
  if (t == DType::F8E8M0) { // powers of two alone
    V code = select(cmp(ICmp::ugt, m, 0x600000), word(1), word(0));
    V normal = lshr(add(add(m, 0x3fffff), band(lshr(m, 23u), 1)), 23u);
    code = select(cmp(ICmp::uge, m, 0x800000), normal, code);
    code = select(cmp(ICmp::uge, code, 0xff), word(saturate ? 0xfe : 0xff), code);
    code = select(isNaN, word(0xff), code);
    return trunc(select(cmp(ICmp::ugt, x, 0x80000000), word(0xff), code), 8);
  }
  const SmallFloat &f = smallFloat(t);
  int drop = 23 - f.mantissa, magic = 23 + 1 - f.bias - f.mantissa;
  V sign = band(lshr(x, 24u), 0x80);
  V small = sub(bits(fadd(asReal(m), power(32, magic))), uint64_t(magic + 127) << 23);
  V normal = sub(lshr(rounding(drop), unsigned(drop)), uint64_t(127 - f.bias) << f.mantissa);
  V code = select(cmp(ICmp::ult, m, uint64_t(128 - f.bias) << 23), small, normal);
  if (f.fnuz) sign = select(cmp(ICmp::eq, code, 0), word(0), sign);
  V over = word(saturate ? f.greatest : f.infinity ? f.greatest + 1 : f.nan);
  if (saturate || f.infinity) over = bor(over, sign);
  V r = select(cmp(ICmp::ugt, code, f.greatest), over, bor(code, sign));
  return trunc(select(isNaN, word(f.nan), r), 8);
}

V Scalar::widened(DType t, V x) { return smallToF32(t, x); }
V Scalar::rounded(DType t, V x, bool saturate) { return f32ToSmall(t, x, saturate); }

/// An f64 rounded to odd in f32, then to a small type.
V Scalar::f64ToSmall(DType to, V a, bool saturate) {
  V r = fnarrow(a), d = fext(r);
  V u = sub(bits(r), zext(cmp(FCmp::ogt, fabs(d), fabs(a)), 32));
  u = bor(u, zext(cmp(FCmp::une, d, a), 32));
  return f32ToSmall(to, asReal(u), saturate);
}

/// A 64-bit integer to a small type: beyond 2^52 the low bits are gathered in one, so that f64 is exact.
V Scalar::wideToSmall(DType from, DType to, V a, bool saturate) {
  V negative = isSigned(from) ? cmp(ICmp::slt, a, 0) : V();
  V m = negative ? select(negative, sub(like(a, 0), a), a) : a;
  V odd = band(bor(m, add(band(m, 0xfff), 0xfff)), ~0xfffull);
  m = select(cmp(ICmp::uge, m, 1ull << 52), odd, m);
  V d = fromUnsigned(m, 64);
  if (negative) d = select(negative, fneg(d), d);
  return f64ToSmall(to, d, saturate);
}

/// Truncates; outside the range the nearest, NaN 0. The limits are powers of two and so exact.
V Scalar::floatToInt(DType to, V a) {
  unsigned n = bitWidth(to), w = width(a);
  bool s = isSigned(to);
  V zero = real(w, 0), high = power(w, int(n) - s), low = s ? fneg(high) : zero;
  uint64_t most = ~0ull >> (64 - n);
  V inside = band(cmp(FCmp::oge, a, low), cmp(FCmp::olt, a, high));
  V safe = select(inside, a, zero), r = s ? toSigned(safe, n) : toUnsigned(safe, n);
  r = select(cmp(FCmp::oge, a, high), integer(n, s ? most >> 1 : most), r);
  return select(cmp(FCmp::olt, a, low), integer(n, s ? (most >> 1) + 1 : 0), r);
}

V Scalar::cast(DType from, DType to, V x, bool saturate) {
  if (!isSmall(to) || isNarrow(to)) saturate = false;
  auto known = [](DType t) { return isArithmetic(t) || isSmall(t); };
  bool toSmall = isSmall(to), fromSmall = isSmall(from);
  auto via = [&](DType middle) { return cast(middle, to, cast(from, middle, x, false), saturate); };
  if (!known(from) || !known(to))
    return refuse(std::string("cast from ") + info(from).text + " to " + info(to).text + " has no GPU form");
  if (from == to && isArithmetic(from)) return x; // of the others the NaNs become canonical
  if (from == DType::F32 && toSmall) return f32ToSmall(to, x, saturate);
  if (to == DType::F32 && fromSmall) return smallToF32(from, x);
  if (from == DType::F64 && toSmall) return f64ToSmall(to, x, saturate);
  if (to == DType::Bool && !fromSmall)
    return isFloat(from) ? cmp(FCmp::une, x, real(width(x), 0)) : cmp(ICmp::ne, x, 0);
  if (fromSmall || (toSmall && (from == DType::Bool || bitWidth(from) < 32))) return via(DType::F32);
  if (toSmall) return bitWidth(from) == 32 ? via(DType::F64) : wideToSmall(from, to, x, saturate);
  if (isFloat(from) && isInt(to)) return floatToInt(to, x);
  if (isFloat(from)) return to == DType::F64 ? fext(x) : fnarrow(x);
  if (isFloat(to)) return isSigned(from) ? fromSigned(x, bitWidth(to)) : fromUnsigned(x, bitWidth(to));
  return resize(x, bitWidth(to), isSigned(from));
}
