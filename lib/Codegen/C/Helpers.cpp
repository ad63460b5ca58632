//===- Helpers.cpp: one row per op and class of types ----------------------===//
// Takes:    an op, a dtype and a number of lanes.
// Gives:    the C function that computes it (Helpers.h).
//
// The patterns of the rows are C with these names in them:
//   $T the type, $U and $I the unsigned and signed type of the same width and lanes, $UE, $IE and $E elements of $U,
//   $I, $T, $M the type of a mask, $W the type to compute wrapping integers in, $Z zero, $ONE one, $f the suffix of
//   libm names, $SIGN $ABS $INF $NAN bit patterns, $BITS the width, $EXP $MAN the exponent's bias and the mantissa's
//   bits, $SEL(T, m, a, b) a where m is true, $SPLAT(T, s), $CVT(T, x), $asU(x) and $asT(x) the same bits as another
//   type, $EACHn(f) a call of f for each lane, $CALL{op,dtype} the function of another op on as many lanes.
#include "Helpers.h"
#include "MetalPrelude.h"
#include "Prelude.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::cemit;

namespace {

// f32 f64, f16 bf16, signed, unsigned, scalar bool, vectors of bools as masks
enum Class : unsigned { F = 1, N = 2, S = 4, U = 8, B = 16, M = 32 };
enum Form { Body, Each, Expression }; // Each: written for scalars, called for each lane

unsigned classOf(DType t) { return t == DType::Bool ? B : isNarrow(t) ? N : isFloat(t) ? F : isUnsigned(t) ? U : S; }

struct Row {
  Op op;
  unsigned classes;
  Form form;
  const char *body;
};

// f16 and bf16 without a row: the f32 op on widened operands, rounded once (N12).
constexpr Row rows[] = {
    {Op::Neg, F, Body, "return -a;"},
    {Op::Neg, N, Body, "return ($T)(a ^ $SIGN);"},
    {Op::Neg, S | U, Body, "return ($T)(0 - ($W)a);"},
    {Op::Abs, F, Body, "return $asT($asU(a) & $ABS);"},
    {Op::Abs, N, Body, "return ($T)(a & $ABS);"},
    {Op::Abs, S, Body, "return $SEL($T, a < 0, ($T)(0 - ($W)a), a);"},
    {Op::Abs, U, Body, "return a;"},
    {Op::Sqrt, F, Body,
     "#if defined(__clang__)\n  return __builtin_elementwise_sqrt(a);\n#else\n"
     "  return $EACH1(__builtin_sqrt$f);\n#endif"},
    {Op::RoundEven, F, Body,
     "#if defined(ROUNDS_IN_ONE)\n  return __builtin_elementwise_roundeven(a);\n#else\n"
     "  $T big = $asT(($asU(a) & $SIGN) | $asU($SPLAT($T, $BIG)));\n"
     "  $T r = $asT(($asU((a + big) - big) & $ABS) | ($asU(a) & $SIGN));\n"
     "  return $SEL($T, $asT($asU(a) & $ABS) < $BIG, r, a);\n#endif"},
    {Op::Floor, F, Body,
     "#if defined(ROUNDS_IN_ONE)\n  return __builtin_elementwise_floor(a);\n#else\n"
     "  $T r = $CALL{roundeven,$E}(a);\n  return $SEL($T, r > a, r - $ONE, r);\n#endif"},
    {Op::Ceil, F, Body,
     "#if defined(ROUNDS_IN_ONE)\n  return __builtin_elementwise_ceil(a);\n#else\n"
     "  $T r = $CALL{roundeven,$E}(a);\n"
     "  return $SEL($T, r < a, $asT($asU(r + $ONE) | ($asU(a) & $SIGN)), r);\n#endif"},
    {Op::Trunc, F, Body,
     "#if defined(ROUNDS_IN_ONE)\n  return __builtin_elementwise_trunc(a);\n#else\n"
     "  $T r = $CALL{floor,$E}($asT($asU(a) & $ABS));\n  return $asT($asU(r) | ($asU(a) & $SIGN));\n#endif"},
    {Op::Not, S | U, Body, "return ($T)~a;"},
    {Op::Not, B, Body, "return !a;"},
    // Sums of neighbouring 1, 2 and 4 bits, then the sum of all bytes in the highest one.
    {Op::PopCount, S | U, Body,
     "$U m1 = $SPLAT($U, ($UE)0x5555555555555555), m2 = $SPLAT($U, ($UE)0x3333333333333333);\n"
     "  $U m4 = $SPLAT($U, ($UE)0x0f0f0f0f0f0f0f0f), ones = $SPLAT($U, ($UE)0x0101010101010101), x = ($U)a;\n"
     "  x = ($U)(x - (x >> 1 & m1));\n  x = ($U)((x & m2) + (x >> 2 & m2));\n  x = ($U)((x + (x >> 4)) & m4);\n"
     "  return ($T)(($U)(x * ones) >> ($BITS - 8));"},
    {Op::Add, F, Body, "return a + b;"},
    {Op::Add, S | U, Body, "return ($T)(($W)a + ($W)b);"},
    {Op::Sub, F, Body, "return a - b;"},
    {Op::Sub, S | U, Body, "return ($T)(($W)a - ($W)b);"},
    {Op::Mul, F, Body, "return a * b;"},
    {Op::Mul, S | U, Body, "return ($T)(($W)a * ($W)b);"},
    {Op::Div, F, Body, "return a / b;"},
    {Op::FloorDiv, S, Each,
     "if (b == 0) return 0;\n  if (b == -1) return ($T)(0 - ($W)a);\n"
     "  return ($T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));"},
    {Op::FloorDiv, U, Each, "return b == 0 ? 0 : a / b;"},
    {Op::Mod, S, Each,
     "if (b == 0) return a;\n  if (b == -1) return 0;\n  $T r = a % b;\n"
     "  return ($T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);"},
    {Op::Mod, U, Each, "return b == 0 ? a : a % b;"},
    {Op::TruncDiv, S, Each, "if (b == 0) return 0;\n  if (b == -1) return ($T)(0 - ($W)a);\n  return a / b;"},
    {Op::TruncDiv, U, Each, "return b == 0 ? 0 : a / b;"},
    {Op::Rem, S, Each, "if (b == 0) return a;\n  if (b == -1) return 0;\n  return a % b;"},
    {Op::Rem, U, Each, "return b == 0 ? a : a % b;"},
    // One instruction gives the greater of two that are no NaNs, +0 being greater than -0.
    {Op::Max, F, Body,
     "#if defined(RANGES_IN_ONE)\n"
     "  if (sizeof a % 64 == 0) {\n    $T m;\n    RANGE_$E(m, a, b, 5);\n"
     "    return $SEL($T, (a != a) | (b != b), a + b, m);\n  }\n#endif\n"
     "#if defined(__clang__)\n  return __builtin_elementwise_maximum(a, b);\n#else\n"
     "  $T equal = $asT($asU(a) & $asU(b));\n"
     "  return $SEL($T, a < b, b, $SEL($T, b < a, a, $SEL($T, a == b, equal, a + b)));\n#endif"},
    {Op::Min, F, Body,
     "#if defined(RANGES_IN_ONE)\n"
     "  if (sizeof a % 64 == 0) {\n    $T m;\n    RANGE_$E(m, a, b, 4);\n"
     "    return $SEL($T, (a != a) | (b != b), a + b, m);\n  }\n#endif\n"
     "#if defined(__clang__)\n  return __builtin_elementwise_minimum(a, b);\n#else\n"
     "  $T equal = $asT($asU(a) | $asU(b));\n"
     "  return $SEL($T, a < b, a, $SEL($T, b < a, b, $SEL($T, a == b, equal, a + b)));\n#endif"},
    {Op::Max, S | U, Body, "return $SEL($T, a < b, b, a);"},
    {Op::Min, S | U, Body, "return $SEL($T, b < a, b, a);"},
    {Op::Max, B, Body, "return a | b;"},
    {Op::Min, B, Body, "return a & b;"},
    {Op::And, S | U | B, Body, "return ($T)(a & b);"},
    {Op::Or, S | U | B, Body, "return ($T)(a | b);"},
    {Op::Xor, S | U | B, Body, "return ($T)(a ^ b);"},
    {Op::Shl, S | U, Body, "return $SEL($T, ($U)b < $BITS, ($T)(($W)a << (($W)b & ($BITS - 1))), $Z);"},
    {Op::Shr, U, Body, "return $SEL($T, b < $BITS, ($T)(a >> (b & ($BITS - 1))), $Z);"},
    {Op::Shr, S, Body, "return ($T)(a >> $SEL($T, ($U)b < $BITS, b, $SPLAT($T, $BITS - 1)));"},
    {Op::CopySign, F, Body,
     "$T sign = $SEL($T, b == b, b, $Z);\n  return $asT(($asU(a) & $ABS) | ($asU(sign) & $SIGN));"},
    {Op::CopySign, N, Body,
     "$T sign = $SEL($T, (b & $ABS) > $INF, $Z, b);\n  return ($T)((a & $ABS) | (sign & $SIGN));"},
    {Op::Fma, F, Body,
     "#if defined(__clang__)\n  return __builtin_elementwise_fma(a, b, c);\n#else\n"
     "  return $EACH3(__builtin_fma$f);\n#endif"},
    {Op::Dot4, S, Body,
     "#if defined(DOT4)\n  $T r;\n  DOT4(r, a, b, c);\n  return r;\n#else\n"
     "  $U x = ($U)a, y = ($U)b, sum = ($U)c;\n"
     "  sum += (x & 255) * ($U)(($I)(y << 24) >> 24);\n"
     "  sum += (x >> 8 & 255) * ($U)(($I)(y << 16) >> 24);\n"
     "  sum += (x >> 16 & 255) * ($U)(($I)(y << 8) >> 24);\n"
     "  return ($T)(sum + (x >> 24) * ($U)(($I)y >> 24));\n#endif"},
    // x * 2^n in three steps within the range of normal factors. All steps but the last are exact, or so small that
    // the factors still to come make the result zero.
    {Op::Scale2, F, Body,
     "#if defined(SCALES_IN_ONE)\n  $T n = $CVT($T, b), r;\n  SCALE_$E(r, a, n);\n  return r;\n#else\n"
     "  $I n = $CALL{max,$IE}($CALL{min,$IE}($CVT($I, b), $SPLAT($I, $NMAX)), $SPLAT($I, -$NMAX));\n"
     "  $I last = $CALL{max,$IE}($CALL{min,$IE}(n, $SPLAT($I, $EXP)), $SPLAT($I, 1 - $EXP));\n"
     "  n -= last;\n"
     "  $I middle = $CALL{max,$IE}($CALL{min,$IE}(n, $SPLAT($I, $EXP)), $SPLAT($I, 1 - $EXP));\n"
     "  n -= middle;\n"
     "  $T x = a * $asT(($U)(n + $EXP) << $MAN);\n"
     "  x = x * $asT(($U)(middle + $EXP) << $MAN);\n"
     "  return x * $asT(($U)(last + $EXP) << $MAN);\n#endif"},
    {Op::Select, F | N | S | U | B, Body, "return $SEL($T, a, b, c);"},
    {Op::Lt, B, Body, "return !a & b;"},
    {Op::Le, B, Body, "return !a | b;"},
    {Op::Lt, F | S | U, Body, "return ($M)(a < b);"},
    {Op::Le, F | S | U, Body, "return ($M)(a <= b);"},
    {Op::Eq, F | S | U | B, Body, "return ($M)(a == b);"},
    {Op::Ne, F | S | U | B, Body, "return ($M)(a != b);"},
    // Written where they stand; a and b are masks of one width.
    {Op::Not, M, Expression, "~a"},
    {Op::And, M, Expression, "a & b"},
    {Op::Or, M, Expression, "a | b"},
    {Op::Xor, M, Expression, "a ^ b"},
    {Op::Min, M, Expression, "a & b"},
    {Op::Max, M, Expression, "a | b"},
    {Op::Lt, M, Expression, "~a & b"},
    {Op::Le, M, Expression, "~a | b"},
    {Op::Eq, M, Expression, "~(a ^ b)"},
    {Op::Ne, M, Expression, "a ^ b"},
};

const Row *rowFor(Op op, DType t) {
  for (const Row &r : rows)
    if (r.op == op && (r.classes & classOf(t))) return &r;
  return nullptr;
}

std::string hex(uint64_t bits, unsigned width) {
  return "0x" + llvm::utohexstr(bits, true) + (width == 64 ? "ull" : "u");
}

} // namespace

const char *Helpers::onMasks(Op op) {
  for (const Row &r : rows)
    if (r.op == op && r.classes == M) return r.body;
  return nullptr;
}

std::string Helpers::type(DType t, unsigned lanes) {
  if (dialect == Dialect::Metal && t == DType::F64) refuse("f64 has no type in Metal");
  std::string name = typeName(t, lanes);
  if (info(t).cls == DTypeClass::Storage && begin(memoryName(t)))
    typedefs += "typedef u8 " + memoryName(t) + "; /* the bits */\n";
  if (lanes > 1 && begin(name))
    typedefs += "typedef VECTOR(" + memoryName(t) + ", " + std::to_string(lanes) + ") " + name + ";\n";
  return name;
}

std::string Helpers::unaligned(DType t, unsigned lanes) {
  std::string base = type(t == DType::Bool ? DType::U8 : t, lanes), name = base + "_at";
  if (begin(name))
    typedefs +=
        "typedef " + base + " " + name + " __attribute__((aligned(" + std::to_string(byteSize(t)) + "), may_alias));\n";
  return name;
}

/// Of Metal: what follows `#else` of every condition, which is what any machine has; Metal's names of functions; `l`
/// where C has `ll`.
std::string Helpers::spelled(std::string text) const {
  if (dialect == Dialect::C) return text;
  std::string out;
  bool kept = true;
  llvm::SmallVector<llvm::StringRef, 16> lines;
  llvm::StringRef(text).split(lines, '\n');
  for (llvm::StringRef line : lines) {
    if (line.starts_with("#if"))
      kept = false;
    else if (line.starts_with("#else") || line.starts_with("#endif"))
      kept = true;
    else if (kept)
      out += (out.empty() ? "" : "\n") + line.str();
  }
  const std::pair<llvm::StringRef, llvm::StringRef> names[] = {
      {"__builtin_sqrtf(", "precise::sqrt("}, {"__builtin_fmaf(", "fma("}, {"ull", "ul"}};
  for (auto [from, to] : names)
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size()))
      out.replace(at, from.size(), to);
  return out;
}

void Helpers::define(const std::string &result, const std::string &name, const std::string &params,
                     const std::string &given) {
  std::string body = spelled(given);
  bool indented = llvm::StringRef(body).starts_with("#") || llvm::StringRef(body).starts_with("  ");
  functions += "INLINE " + result + " " + name + "(" + params + ") {\n" + (indented ? "" : "  ") + body + "\n}\n";
}

std::string Helpers::exchange(DType t) {
  std::string T = type(t, 1), name = "exchange_" + T;
  if (!begin(name)) return name;
  std::string params = T + " a, ushort bits";
  unsigned width = t == DType::Bool ? 8 : bitWidth(t);
  if (width == 64)
    define(T, name, params,
           "u32 low = simd_shuffle_xor((u32)a, bits), high = simd_shuffle_xor((u32)((u64)a >> 32), bits);\n"
           "  return (" +
               T + ")((u64)high << 32 | low);");
  else if (width == 32)
    define(T, name, params, "return simd_shuffle_xor(a, bits);");
  else
    define(T, name, params, "return (" + T + ")simd_shuffle_xor((u32)a, bits);");
  return name;
}

std::string Helpers::each(llvm::StringRef f, DType result, unsigned lanes, unsigned operands) {
  auto call = [&](const std::string &at) {
    std::string s = f.str() + "(";
    for (unsigned i = 0; i < operands; ++i) s += (i ? ", " : "") + std::string(1, char('a' + i)) + at;
    return s + ")";
  };
  if (lanes == 1) return call("");
  std::string s = "(" + type(result, lanes) + "){";
  for (unsigned i = 0; i < lanes; ++i) s += (i ? ", " : "") + call("[" + std::to_string(i) + "]");
  return s + "}";
}

std::string Helpers::convert(DType to, unsigned lanes, const std::string &x) {
  return (lanes > 1 ? "CVT(" : "CVT1(") + type(to, lanes) + ", " + x + ")";
}

std::string Helpers::expand(llvm::StringRef p, DType t, unsigned lanes) {
  unsigned bits = bitWidth(t);
  const DTypeInfo &d = info(t);
  bool real = classOf(t) == F, vector = lanes > 1, isBool = t == DType::Bool;
  std::string T = type(t, lanes), Ut = isBool ? "b1" : type(unsignedOf(bits), lanes),
              It = isBool ? "b1" : type(signedOf(bits), lanes), E = typeName(t, 1);
  uint64_t sign = 1ull << (bits - 1), inf = ((1ull << d.exponentBits) - 1) << d.mantissaBits;
  uint64_t quiet = d.mantissaBits ? 1ull << (d.mantissaBits - 1) : 0;
  int bias = d.exponentBits ? (1 << (d.exponentBits - 1)) - 1 : 0;
  const std::pair<const char *, std::string> names[] = {
      // a name before those it begins with
      {"SEL(", vector ? "SEL(" : "SEL1("},
      {"SPLAT(", vector ? "SPLAT(" : "SPLAT1("},
      {"CVT(", vector ? "CVT(" : "CVT1("},
      {"asU(", real && !vector ? "bits_" + E + "(" : "AS(" + Ut + ", "},
      {"asT(", real && !vector ? E + "_bits(" : "AS(" + T + ", "},
      {"SIGN", hex(sign, bits)},
      {"ABS", hex(sign - 1, bits)},
      {"INF", hex(inf, bits)},
      {"NAN", hex(inf | quiet, bits)},
      {"NMAX", bits == 32 ? "300" : "2200"},
      {"BITS", std::to_string(bits)},
      {"BIG", bits == 32 ? "0x1p23f" : "0x1p52"},
      {"EXP", std::to_string(bias)},
      {"MAN", std::to_string(d.mantissaBits)},
      {"ONE", bits == 32 ? "1.0f" : "1.0"},
      {"IE", typeName(signedOf(isBool ? 8 : bits), 1)},
      {"UE", typeName(unsignedOf(isBool ? 8 : bits), 1)},
      {"M", vector ? It : "b1"},
      {"T", T},
      {"E", E},
      {"U", Ut},
      {"I", It},
      {"W", vector      ? Ut
            : bits < 32 ? "u32"
                        : Ut},
      {"Z", vector ? "(" + T + "){0}" : "(" + T + ")0"},
      {"f", bits == 32 ? "f" : ""},
  };
  auto upTo = [&](char end) {
    llvm::StringRef s = p.take_until([&](char c) { return c == end; });
    p = p.drop_front(s.size() + 1);
    return s;
  };
  std::string out;
  while (true) {
    size_t at = p.find('$');
    out += p.take_front(at);
    if (at == llvm::StringRef::npos) return out;
    p = p.drop_front(at + 1);
    if (p.consume_front("CALL{")) {
      llvm::StringRef name = upTo(','), other = upTo('}');
      out += op(*opNamed(name), other == "$E" ? t : other == "$IE" ? signedOf(bits) : *dtypeNamed(other), lanes);
      continue;
    }
    if (p.consume_front("EACH")) {
      unsigned operands = p[0] - '0';
      p = p.drop_front(2);
      out += each(expand(upTo(')'), t, lanes), t, lanes, operands);
      continue;
    }
    const auto *found = llvm::find_if(names, [&](const auto &n) { return p.consume_front(n.first); });
    assert(found != std::end(names) && "a pattern names what there is not");
    out += found->second;
  }
}

std::string Helpers::op(Op o, DType t, unsigned lanes) {
  if (t == DType::Index) t = DType::I64;
  const OpInfo &d = info(o);
  std::string name = std::string(d.mnemonic) + "_" + typeName(t, lanes);
  if (!begin(name)) return name;
  bool compare = o == Op::Lt || o == Op::Le || o == Op::Eq || o == Op::Ne;
  std::string T = type(t, lanes), result = compare ? mask(maskBits(t), lanes) : T, params = T + " a";
  if (o == Op::Scale2)
    params += ", " + type(DType::I32, lanes) + " b";
  else if (o == Op::Select)
    params = mask(bitWidth(t), lanes) + " a, " + T + " b, " + T + " c";
  else
    for (int i = 1; i < d.sources; ++i) params += ", " + T + " " + std::string(1, char('a' + i));
  const Row *row = rowFor(o, t);
  if (row && row->form == Each && lanes > 1) {
    define(result, name, params, "return " + each(op(o, t, 1), t, lanes, d.sources) + ";");
  } else if (row) {
    define(result, name, params, expand(row->body, t, lanes));
  } else if (isNarrow(t)) {
    std::string widen = cast(t, DType::F32, lanes, false), call = op(o, DType::F32, lanes) + "(";
    for (int i = 0; i < d.sources; ++i) {
      std::string x(1, char('a' + i));
      call += (i ? ", " : "") + (o == Op::Scale2 && i == 1 ? x : widen + "(" + x + ")");
    }
    call += ")";
    if (!compare) call = cast(DType::F32, t, lanes, false) + "(" + call + ")";
    define(result, name, params, "return " + call + ";");
  } else {
    refuse(std::string(d.mnemonic) + " on " + info(t).text + " has no C form");
  }
  return name;
}

// With r the rounded reciprocal of b and l what it lacks, a * r + a * l is within an ulp of the quotient, and one step
// of Newton's on it rounds correctly (P. Markstein, Computation of elementary functions on the IBM RISC System/6000,
// IBM J. Res. Dev. 34, 1990, theorem 8) where no intermediate result underflows or overflows: |a| of [2^-60, 2^60] or
// +0, b of [2^-40, 2^40]. Where a lane has another a, or b is another one, all are divided, and NaNs become canonical.
std::string Helpers::quotient(unsigned lanes) {
  std::string T = type(DType::F32, lanes), name = "quotient_" + T;
  if (begin(name))
    define(T, name, T + " a, " + T + " b",
           expand("#if defined(SOME)\n"
                  "  const u32 least = 2u * 0x21800000u, most = 2u * 0x5d800000u;\n"
                  "  f32 s = b[0], r = 1.0f / s, l = __builtin_fmaf(-s, r, 1.0f) * r;\n"
                  "  if (s >= 0x1p-40f && s <= 0x1p40f) {\n"
                  "    $I bad = ($I)(($asU(a) + $asU(a)) - least > most - least) & ($I)($asU(a) != 0);\n"
                  "    $T rs = $SPLAT($T, r), q = $CALL{fma,$E}(a, rs, a * $SPLAT($T, l));\n"
                  "    q = $CALL{fma,$E}($CALL{fma,$E}(-b, q, a), rs, q);\n"
                  "    if (!SOME(bad)) return q;\n"
                  "  }\n"
                  "#endif\n"
                  "  a /= b;\n"
                  "  return SEL($T, a == a, a, $SPLAT($T, __builtin_nanf(\"\")));",
                  DType::F32, lanes));
  return name;
}

std::string Helpers::literal(DType t, uint64_t bits) {
  bool metal = dialect == Dialect::Metal;
  std::string wide = metal ? "l" : "ll";
  switch (t) {
  case DType::Bool: return bits ? "1" : "0";
  case DType::F16:
  case DType::BF16: return hex(bits, 16);
  case DType::F32:
  case DType::F64: {
    bool single = t == DType::F32;
    llvm::APFloat v(single ? llvm::APFloat::IEEEsingle() : llvm::APFloat::IEEEdouble(),
                    llvm::APInt(single ? 32 : 64, bits));
    if (metal && !v.isFinite()) return "f32_bits(" + hex(v.isNaN() ? 0x7fc00000 : bits, 32) + ")";
    std::string builtin = v.isNaN() ? "__builtin_nan" : "__builtin_inf"; // which NaN is not promised (N6)
    if (!v.isFinite())
      return (v.isNegative() && !v.isNaN() ? "(-" : "(") + builtin + (single ? "f(" : "(") +
             (v.isNaN() ? "\"\"))" : "))");
    char text[64];
    v.convertToHexString(text, 0, false, llvm::APFloat::rmNearestTiesToEven);
    std::string s = std::string(text) + (single ? "f" : "");
    return s[0] == '-' ? "(" + s + ")" : s;
  }
  case DType::Index:
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64: {
    int64_t v = int64_t(bits << (64 - bitWidth(t))) >> (64 - bitWidth(t));
    if (v == INT64_MIN) return "(-9223372036854775807" + wide + " - 1)";
    if (v == INT32_MIN) return "(-2147483647 - 1)";
    std::string s = std::to_string(v) + (v > INT32_MAX || v < INT32_MIN ? wide : "");
    return v < 0 ? "(" + s + ")" : s;
  }
  case DType::U64: return std::to_string(bits) + "u" + wide;
  default: return std::to_string(bits) + "u";
  }
}

std::string Helpers::text() const {
  return std::string(dialect == Dialect::Metal ? metalPrelude : prelude) + typedefs + functions;
}
