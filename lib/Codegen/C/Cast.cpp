//===- Cast.cpp: conversions of values in C --------------------------------===//
// Takes:    two dtypes and a number of lanes.
// Gives:    the C function that converts (N11, N12).
// Keeps:    one rounding. What is small (f16, bf16, the formats of 8 bits) is reached from f32 alone; f64 and wide
//           integers go through f32 rounded to odd, which keeps the direction of what was lost (Boldo and Melquiond,
//           "When double rounding is odd", 2005).
#include "Helpers.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::cemit;

// In the patterns `@` names the f32 side and `$` the small one (Helpers.cpp has the names); `half` is the compiler's
// own type of what $T has the bits of. Both ways are one instruction where F16C or AArch64 has it: it rounds by MXCSR
// or FPCR, to nearest even (N8), and a NaN's payload, which it keeps otherwise, is nobody's to see (N6).
namespace {

constexpr const char f16ToF32[] = // f16's bits as f32's are too small by 2^112; the product is exact, subnormals too
    "  half h;\n"
    "  __builtin_memcpy(&h, &a, sizeof h);\n"
    "  return $CVT(@T, h);\n"
    "#else\n"
    "  @U x = $CVT(@U, a);\n"
    "  @U m = (x & 0x7fffu) << 13;\n"
    "  @T v = @asT(m) * 0x1p112f;\n"
    "  @U r = $SEL(@U, m >= 0xf800000u, m | 0x7f800000u, @asU(v));\n"
    "  return @asT(r | ((x & 0x8000u) << 16));\n#endif";
constexpr const char bf16ToF32[] = "@U x = $CVT(@U, a);\n  return @asT(x << 16);";
constexpr const char f32ToF16[] = // to nearest even: in the f32 adder for subnormals, by carry for the others
    "  half h = $CVT(half, a);\n"
    "  $T r;\n"
    "  __builtin_memcpy(&r, &h, sizeof r);\n"
    "  return r;\n"
    "#else\n"
    "  @U x = @asU(a), m = x & 0x7fffffffu;\n"
    "  @U small = @asU(@asT(m) + 0.5f) - 0x3f000000u;\n"
    "  @U normal = (m + 0xfffu + ((m >> 13) & 1u) - 0x38000000u) >> 13;\n"
    "  @U r = $SEL(@U, m < 0x38800000u, small, normal);\n"
    "  r = $SEL(@U, m >= 0x477ff000u, $SPLAT(@U, 0x7c00u), r);\n"
    "  r = $SEL(@U, m > 0x7f800000u, $SPLAT(@U, 0x7e00u), r | ((x >> 16) & 0x8000u));\n"
    "  return $CVT($T, r);\n#endif";
constexpr const char f32ToBf16[] = "@U x = @asU(a);\n"
                                   "  @U r = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;\n"
                                   "  r = $SEL(@U, (x & 0x7fffffffu) > 0x7f800000u, $SPLAT(@U, 0x7fc0u), r);\n"
                                   "  return $CVT($T, r);";

} // namespace

std::string Helpers::smallToF32(DType t, unsigned lanes) {
  std::string table = std::string(info(t).text) + "_values";
  if (begin(table)) {
    functions += tableType() + ("u32 " + table) + "[256] = {"; // the bits
    for (unsigned i = 0; i < 256; ++i)
      functions += (i ? ", 0x" : "0x") + llvm::utohexstr(decodedSmall(t, i), true) + "u";
    functions += "};\n";
  }
  std::string s;
  for (unsigned i = 0; i < lanes; ++i)
    s += (i ? ", " : "") + ("f32_bits(" + table + "[a") + (lanes > 1 ? "[" + std::to_string(i) + "]" : "") + "])";
  return "return " + (lanes > 1 ? "(" + type(DType::F32, lanes) + "){" + s + "}" : s) + ";";
}

/// As f32ToF16, for any format; e8m0 has powers of two alone.
static std::string f32ToSmall(DType t, bool saturate) {
  if (t == DType::F8E8M0)
    return std::string("@U x = @asU(a), m = x & 0x7fffffffu;\n"
                       "  @U code = $SEL(@U, m >= 0x800000u, (m + 0x3fffffu + ((m >> 23) & 1u)) >> 23,\n"
                       "                 $SEL(@U, m > 0x600000u, $SPLAT(@U, 1u), $SPLAT(@U, 0u)));\n"
                       "  code = $SEL(@U, code >= 0xffu, $SPLAT(@U, ") +
           (saturate ? "0xfeu" : "0xffu") +
           "), code);\n"
           "  code = $SEL(@U, m > 0x7f800000u, $SPLAT(@U, 0xffu), code);\n"
           "  return $CVT($T, $SEL(@U, x > 0x80000000u, $SPLAT(@U, 0xffu), code));";
  const SmallFloat &f = smallFloat(t);
  auto hex = [](uint64_t v) { return "0x" + llvm::utohexstr(v, true) + "u"; };
  int drop = 23 - f.mantissa, magic = 23 + 1 - f.bias - f.mantissa;
  std::string over = hex(saturate ? f.greatest : f.infinity ? f.greatest + 1 : f.nan);
  bool overIsNaN = !saturate && !f.infinity;
  return "@U x = @asU(a), m = x & 0x7fffffffu, sign = (x >> 24) & 0x80u;\n"
         "  @U small = @asU(@asT(m) + 0x1p" +
         std::to_string(magic) + "f) - " + hex(uint64_t(magic + 127) << 23) + ";\n" + "  @U normal = ((m + " +
         hex((1u << (drop - 1)) - 1) + " + ((m >> " + std::to_string(drop) + ") & 1u)) >> " + std::to_string(drop) +
         ") - " + hex(uint64_t(127 - f.bias) << f.mantissa) + ";\n" + "  @U code = $SEL(@U, m < " +
         hex(uint64_t(128 - f.bias) << 23) + ", small, normal);\n" +
         (f.fnuz ? "  sign = $SEL(@U, code == 0u, $SPLAT(@U, 0u), sign);\n" : "") + "  @U r = $SEL(@U, code > " +
         hex(f.greatest) + ", $SPLAT(@U, " + over + ")" + (overIsNaN ? "" : " | sign") + ", code | sign);\n" +
         "  return $CVT($T, $SEL(@U, m > 0x7f800000u, $SPLAT(@U, " + hex(f.nan) + "), r));";
}

std::string Helpers::expandTwo(std::string pattern, DType small, unsigned lanes) {
  std::string p = expand(pattern, small, lanes);
  for (char &c : p)
    if (c == '@') c = '$';
  return expand(p, DType::F32, lanes);
}

/// An f64 rounded to odd in f32, then to a small type.
std::string Helpers::f64ToSmall(DType to, unsigned lanes, bool saturate) {
  std::string F = type(DType::F32, lanes), U = type(DType::U32, lanes), D = type(DType::F64, lanes);
  std::string second = cast(DType::F32, to, lanes, saturate), abs = op(Op::Abs, DType::F64, lanes);
  bool vector = lanes > 1;
  auto bit = [&](const std::string &m) { // 1 where m is true
    return vector ? "AS(" + U + ", -" + convert(DType::I32, lanes, m) + ")" : "(u32)(" + m + ")";
  };
  return F + " r = " + convert(DType::F32, lanes, "a") + ";\n  " + D + " d = " + convert(DType::F64, lanes, "r") +
         ";\n  " + U + " u = " + (vector ? "AS(" + U + ", r)" : "bits_f32(r)") + " - " +
         bit(abs + "(d) > " + abs + "(a)") + ";\n  u |= " + bit("d != a") + ";\n  return " + second + "(" +
         (vector ? "AS(" + F + ", u)" : "f32_bits(u)") + ");";
}

/// A 64-bit integer to a small type: beyond 2^52 the low bits are gathered in one, so that f64 is exact.
std::string Helpers::wideToSmall(DType from, DType to, unsigned lanes, bool saturate) {
  std::string second = cast(DType::F64, to, lanes, saturate), d = "d";
  const char *negative = isSigned(from) ? "a < 0" : "a != a";
  if (isSigned(from)) d = op(Op::Select, DType::F64, lanes) + "(" + negative + ", -d, d)";
  return expand(std::string("$U m = $SEL($U, ") + negative +
                    ", 0 - ($U)a, ($U)a);\n"
                    "  $U odd = (m | ((m & 0xfffull) + 0xfffull)) & ~($U)$SPLAT($U, 0xfffull);\n"
                    "  m = $SEL($U, m >= (1ull << 52), odd, m);\n",
                from, lanes) +
         "  " + type(DType::F64, lanes) + " d = " + convert(DType::F64, lanes, "m") + ";\n  return " + second + "(" +
         d + ");";
}

/// The same without f64: an integer of at most 24 bits is exact in f32, and of a longer one at least eleven and, as one
/// bit, whether there is anything below them. No small type has more than eleven where it does not overflow.
std::string Helpers::integerToSmall(DType from, DType to, bool saturate) {
  std::string second = cast(DType::F32, to, 1, saturate);
  std::string s = isSigned(from) ? "u64 m = a < 0 ? 0 - (u64)(i64)a : (u64)a;\n" : "u64 m = (u64)a;\n";
  return s +
         "  u32 low = m >> 52 ? 40 : m >> 38 ? 28 : m >> 24 ? 14 : 0;\n"
         "  u64 unit = (u64)1 << low;\n"
         "  m = (m & ~(unit - 1)) | ((m & (unit - 1)) != 0 ? unit : 0);\n"
         "  f32 r = (f32)m;\n  return " +
         second + "(" + (isSigned(from) ? "a < 0 ? -r : r" : "r") + ");";
}

/// Truncates; outside the range the nearest, NaN 0. The limits are powers of two and so exact, or the least and the
/// greatest where the float has all of them.
std::string Helpers::floatToInt(DType from, DType to, unsigned lanes) {
  unsigned bits = bitWidth(to), width = bitWidth(from);
  bool s = isSigned(to);
  if (bits <= info(from).mantissaBits) {
    int64_t most = (int64_t(1) << (bits - s)) - 1;
    auto limit = [](int64_t v) { return "$SPLAT($T, ($E)" + std::to_string(v) + ")"; };
    std::string high = limit(most), low = limit(s ? -most - 1 : 0);
    return expand("$T x = $SEL($T, a == a, a, $Z);\n  x = $SEL($T, x < " + high + ", x, " + high +
                      ");\n  x = $SEL($T, x > " + low + ", x, " + low + ");\n",
                  from, lanes) +
           "  return " + convert(to, lanes, "x") + ";";
  }
  std::string f = width == 32 ? "f" : "", high = "0x1p" + std::to_string(int(bits) - s) + f,
              low = s ? "-" + high : "0.0" + f, T = type(to, lanes), sel = op(Op::Select, to, lanes);
  auto limit = [&](uint64_t v) { return (lanes > 1 ? "SPLAT(" : "SPLAT1(") + T + ", " + literal(to, v) + ")"; };
  auto masked = [&](const std::string &m) { return widthOf(width, bits, lanes, m); };
  uint64_t most = bits == 64 ? ~0ull : (1ull << bits) - 1;
  std::string safe = op(Op::Select, from, lanes) + "(inside, a, " + expand("$Z", from, lanes) + ")";
  return mask(width, lanes) + " inside = (a >= " + low + ") & (a < " + high + ");\n  " + T +
         " r = " + convert(to, lanes, safe) + ";\n  r = " + sel + "(" + masked("a >= " + high) + ", " +
         limit(s ? most >> 1 : most) + ", r);\n  return " + sel + "(" + masked("a < " + low) + ", " +
         limit(s ? (most >> 1) + 1 : 0) + ", r);";
}

std::string Helpers::cast(DType from, DType to, unsigned lanes, bool saturate) {
  if (!isSmall(to) || isNarrow(to)) saturate = false;
  std::string name = typeName(to, lanes) + "_from_" + info(from).text + (saturate ? "_sat" : "");
  if (!begin(name)) return name;
  std::string T = type(to, lanes);
  auto via = [&](DType middle) {
    std::string first = cast(from, middle, lanes, false), second = cast(middle, to, lanes, saturate);
    return "return " + second + "(" + first + "(a));";
  };
  auto known = [](DType t) { return isArithmetic(t) || isSmall(t); };
  bool bools = from == DType::Bool || to == DType::Bool, toSmall = isSmall(to), fromSmall = isSmall(from);
  std::string body, half = "#if defined(HALVES_IN_ONE)\n  typedef " +
                           (lanes > 1 ? "VECTOR(_Float16, " + std::to_string(lanes) + ")" : "_Float16") + " half;\n";
  if (!known(from) || !known(to) || (bools && lanes > 1))
    refuse(std::string("cast from ") + info(from).text + " to " + info(to).text + " has no C form");
  else if (from == to && isArithmetic(from)) // of the others the NaNs become canonical
    body = "return a;";
  else if (from == DType::F32 && isNarrow(to))
    body = to == DType::F16 ? half + expandTwo(f32ToF16, to, lanes) : expandTwo(f32ToBf16, to, lanes);
  else if (from == DType::F32 && toSmall)
    body = expandTwo(f32ToSmall(to, saturate), to, lanes);
  else if (to == DType::F32 && isNarrow(from))
    body = from == DType::F16 ? half + expandTwo(f16ToF32, from, lanes) : expandTwo(bf16ToF32, from, lanes);
  else if (to == DType::F32 && fromSmall)
    body = smallToF32(from, lanes);
  else if (dialect == Dialect::Metal && toSmall && isInt(from) && bitWidth(from) >= 32)
    body = integerToSmall(from, to, saturate);
  else if (from == DType::F64 && toSmall)
    body = f64ToSmall(to, lanes, saturate);
  else if (fromSmall || (toSmall && (from == DType::Bool || bitWidth(from) < 32)))
    body = via(DType::F32);
  else if (toSmall)
    body = bitWidth(from) == 32 ? via(DType::F64) : wideToSmall(from, to, lanes, saturate);
  else if (to == DType::Bool)
    body = "return a != 0;";
  else if (isFloat(from) && isInt(to))
    body = floatToInt(from, to, lanes);
  else
    body = "return " + convert(to, lanes, "a") + ";";
  std::string A = type(from, lanes);
  define(T, name, A + " a", body);
  return name;
}
