//===- Convert.cpp: casts, bitcasts, lookups and masked memory in C --------===//
// Takes:    two dtypes and a number of lanes.
// Gives:    the C function that converts (N11, N12), reads or writes under a mask.
// Keeps:    one rounding: f64 and 64-bit integers go to f16 and bf16 through f32 rounded to odd, which keeps the
//           direction of what was lost (Boldo and Melquiond, "When double rounding is odd", 2005).
#include "Helpers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::cemit;

namespace {

constexpr const char f16ToF32[] = // f16's bits as f32's are too small by 2^112; the product is exact, subnormals too
    "#U x = $CVT(#U, a);\n"
    "  #U m = (x & 0x7fffu) << 13;\n"
    "  #T v = #asT(m) * 0x1p112f;\n"
    "  #U r = $SEL(#U, m >= 0xf800000u, m | 0x7f800000u, #asU(v));\n"
    "  return #asT(r | ((x & 0x8000u) << 16));";
constexpr const char bf16ToF32[] = "#U x = $CVT(#U, a);\n  return #asT(x << 16);";
constexpr const char f32ToF16[] = // to nearest even: in the f32 adder for subnormals, by carry for the others
    "#U x = #asU(a), m = x & 0x7fffffffu;\n"
    "  #U small = #asU(#asT(m) + 0.5f) - 0x3f000000u;\n"
    "  #U normal = (m + 0xfffu + ((m >> 13) & 1u) - 0x38000000u) >> 13;\n"
    "  #U r = $SEL(#U, m < 0x38800000u, small, normal);\n"
    "  r = $SEL(#U, m >= 0x477ff000u, $SPLAT(#U, 0x7c00u), r);\n"
    "  r = $SEL(#U, m > 0x7f800000u, $SPLAT(#U, 0x7e00u), r | ((x >> 16) & 0x8000u));\n"
    "  return $CVT($T, r);";
constexpr const char f32ToBf16[] = "#U x = #asU(a);\n"
                                   "  #U r = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;\n"
                                   "  r = $SEL(#U, (x & 0x7fffffffu) > 0x7f800000u, $SPLAT(#U, 0x7fc0u), r);\n"
                                   "  return $CVT($T, r);";

} // namespace

/// A mask of another width: lanes are 0 or -1.
std::string Helpers::widthOf(unsigned from, unsigned to, unsigned lanes, const std::string &m) {
  return from == to || lanes == 1 ? m : convert(signedOf(to), lanes, m);
}

std::string Helpers::cast(DType from, DType to, unsigned lanes, bool saturate) {
  std::string name = std::string(typeName(to, lanes)) + "_from_" + info(from).text + (saturate ? "_sat" : "");
  if (!begin(name)) return name;
  std::string A = type(from, lanes), T = type(to, lanes), a = A + " a";
  auto via = [&](DType middle) {
    std::string first = cast(from, middle, lanes, false), second = cast(middle, to, lanes, false);
    define(T, name, a, "return " + second + "(" + first + "(a));");
  };
  // '#' names the f32 side of a pattern, '$' the narrow one.
  auto narrow = [&](llvm::StringRef pattern, DType t) {
    std::string p = expand(pattern, t, lanes);
    for (char &c : p)
      if (c == '#') c = '$';
    define(T, name, a, expand(p, DType::F32, lanes));
  };
  bool real = isFloat(from) && !isNarrow(from);
  if (from == DType::Bool && lanes == 1) {
    if (isNarrow(to))
      define(T, name, a, "return a ? " + literal(to, to == DType::F16 ? 0x3c00 : 0x3f80) + " : 0;");
    else
      define(T, name, a, "return (" + T + ")a;");
  } else if (to == DType::Bool && lanes == 1) {
    define(T, name, a, isNarrow(from) ? "return (a & 0x7fffu) != 0;" : "return a != 0;");
  } else if (!isArithmetic(from) || !isArithmetic(to) || from == DType::Bool || to == DType::Bool) {
    refuse(std::string("cast from ") + info(from).text + " to " + info(to).text + " has no C form");
  } else if (from == to) {
    define(T, name, a, "return a;");
  } else if (to == DType::F32 && isNarrow(from)) {
    narrow(from == DType::F16 ? f16ToF32 : bf16ToF32, from);
  } else if (from == DType::F32 && isNarrow(to)) {
    narrow(to == DType::F16 ? f32ToF16 : f32ToBf16, to);
  } else if (isNarrow(from)) {
    via(DType::F32);
  } else if (from == DType::F64 && isNarrow(to)) {
    std::string F = type(DType::F32, lanes), U = type(DType::U32, lanes), D = type(DType::F64, lanes);
    std::string second = cast(DType::F32, to, lanes, false), V = lanes > 1 ? "" : "1";
    std::string abs = op(Op::Abs, DType::F64, lanes), bits = lanes > 1 ? "AS(" + U + ", r)" : "bits_f32(r)";
    std::string back = lanes > 1 ? "AS(" + F + ", u)" : "f32_bits(u)";
    auto bit = [&](const std::string &m) { // 1 where m is true
      return lanes > 1 ? "AS(" + U + ", -" + convert(DType::I32, lanes, m) + ")" : "(u32)(" + m + ")";
    };
    define(T, name, a,
           F + " r = CVT" + V + "(" + F + ", a);\n  " + D + " d = CVT" + V + "(" + D + ", r);\n  " + U +
               " u = " + bits + " - " + bit(abs + "(d) > " + abs + "(a)") + ";\n  u |= " + bit("d != a") +
               ";\n  return " + second + "(" + back + ");");
  } else if (isInt(from) && isNarrow(to)) {
    if (bitWidth(from) < 32)
      via(DType::F32);
    else if (bitWidth(from) == 32)
      via(DType::F64);
    else { // beyond 2^52 the low bits are gathered in one, so that f64 is exact
      std::string second = cast(DType::F64, to, lanes, false);
      const char *negative = isSigned(from) ? "a < 0" : "a != a";
      define(T, name, a,
             expand(std::string("$U m = $SEL($U, ") + negative +
                        ", 0 - ($U)a, ($U)a);\n"
                        "  $U odd = (m | ((m & 0xfffull) + 0xfffull)) & ~($U)$SPLAT($U, 0xfffull);\n"
                        "  m = $SEL($U, m >= (1ull << 52), odd, m);\n",
                    from, lanes) +
                 "  " + type(DType::F64, lanes) + " d = " + convert(DType::F64, lanes, "m") + ";\n  return " + second +
                 "(" +
                 (isSigned(from) ? op(Op::Select, DType::F64, lanes) + "(" + negative + ", -d, d)" : std::string("d")) +
                 ");");
    }
  } else if (real && isInt(to)) {
    unsigned bits = bitWidth(to), width = bitWidth(from);
    bool s = isSigned(to);
    int top = int(bits) - s;
    std::string f = width == 32 ? "f" : "";
    std::string high = "0x1p" + std::to_string(top) + f, low = s ? "-" + high : "0.0" + f;
    auto limit = [&](uint64_t v) { return (lanes > 1 ? "SPLAT(" : "SPLAT1(") + T + ", " + literal(to, v) + ")"; };
    uint64_t most = bits == 64 ? ~0ull : (1ull << bits) - 1, maximum = s ? most >> 1 : most,
             minimum = s ? (most >> 1) + 1 : 0;
    std::string inside = "(a >= " + low + ") & (a < " + high + ")", M = mask(width, lanes),
                sel = op(Op::Select, to, lanes);
    auto masked = [&](const std::string &m) { return widthOf(width, bits, lanes, m); };
    define(T, name, a,
           M + " inside = " + inside + ";\n  " + T + " r = " +
               convert(to, lanes, op(Op::Select, from, lanes) + "(inside, a, " + expand("$Z", from, lanes) + ")") +
               ";\n  r = " + sel + "(" + masked("a >= " + high) + ", " + limit(maximum) + ", r);\n  return " + sel +
               "(" + masked("a < " + low) + ", " + limit(minimum) + ", r);");
  } else {
    define(T, name, a, "return " + convert(to, lanes, "a") + ";");
  }
  return name;
}

std::string Helpers::fromMask(DType to, unsigned lanes) {
  std::string name = typeName(to, lanes) + "_from_mask";
  if (!begin(name)) return name;
  unsigned bits = maskBits(to);
  std::string body = convert(isNarrow(to) ? DType::F32 : to, lanes, "-m");
  if (isNarrow(to)) body = cast(DType::F32, to, lanes, false) + "(" + body + ")";
  std::string M = mask(bits, lanes), T = type(to, lanes);
  define(T, name, M + " m", "return " + body + ";");
  return name;
}

std::string Helpers::toMask(DType from, unsigned lanes) {
  std::string name = "mask_from_" + typeName(from, lanes);
  if (!begin(name)) return name;
  std::string M = mask(maskBits(from), lanes), T = type(from, lanes);
  define(M, name, T + " a",
         isNarrow(from) ? "return " + convert(DType::I32, lanes, "(a & 0x7fffu) != 0") + ";"
                        : "return (" + M + ")(a != 0);");
  return name;
}

std::string Helpers::bitcast(DType from, DType to, unsigned lanes) {
  std::string name = typeName(to, lanes) + "_bits_of_" + info(from).text;
  if (!begin(name)) return name;
  std::string T = type(to, lanes), A = type(from, lanes), body;
  if (isNarrow(from))
    body = "(" + T + ")" + expand("$SEL($T, (a & $ABS) > $INF, $SPLAT($T, $NAN), a)", from, lanes);
  else if (from == to && isFloat(from))
    body = expand("$SEL($T, a == a, a, $asT($SPLAT($U, $NAN)))", from, lanes);
  else if (isFloat(from))
    body = "(" + T + ")" + expand("$SEL($U, a == a, $asU(a), $SPLAT($U, $NAN))", from, lanes);
  else if (isFloat(to) && !isNarrow(to) && lanes == 1)
    body = T + "_bits((u" + std::to_string(bitWidth(to)) + ")a)";
  else
    body = "(" + T + ")a";
  define(T, name, A + " a", "return " + body + ";");
  return name;
}

/// The machine's own permutations, for vectors of its width: they take the index modulo the table's 16 entries.
std::string Helpers::permutation(const std::string &table, DType from, DType to, unsigned lanes) {
  unsigned bits = bitWidth(to), width = bits * lanes;
  if (bitWidth(from) != bits || !(width == 512 || (width == 256 && bits == 32))) return "";
  DType element = signedOf(bits);
  std::string T = type(to, lanes), I = type(element, lanes), at = unaligned(element, lanes);
  auto part = [&](unsigned begin) { return "*(const " + at + " *)(" + table + " + " + std::to_string(begin) + ")"; };
  std::string low = part(0), high = part(lanes), two = bits == 32 ? "vpermi2vard" : "vpermi2varq";
  auto call = [&](const std::string &f, const std::string &args) {
    return "__builtin_ia32_" + f + std::to_string(width) + "(" + args + ")";
  };
  std::string s = "#if defined(__clang__) && defined(__AVX512VL__)\n  " + I + " i = AS(" + I + ", a);\n  return AS(" +
                  T + ", " + (lanes == 16 ? call("permvarsi", low + ", i") : call(two, low + ", i, " + high)) + ");\n";
  if (width == 256)
    s += "#elif defined(__clang__) && defined(__AVX2__)\n  " + I + " i = AS(" + I + ", a);\n  return AS(" + T +
         ", SEL(" + I + ", (i & 8) != 0, " + call("permvarsi", high + ", i") + ", " + call("permvarsi", low + ", i") +
         "));\n";
  return s + "#else\n  ";
}

std::string Helpers::lookup(DType from, DType to, llvm::ArrayRef<int64_t> table, unsigned lanes) {
  size_t number = 0;
  while (number < tables.size() && llvm::ArrayRef<int64_t>(tables[number]) != table) ++number;
  if (number == tables.size()) tables.emplace_back(table.begin(), table.end());
  std::string t = "table" + std::to_string(number) + "_" + info(to).text;
  if (begin(t)) {
    functions += "static const " + memoryName(to) + " " + t + "[16] = {";
    for (size_t i = 0; i < table.size(); ++i) functions += (i ? ", " : "") + literal(to, uint64_t(table[i]));
    functions += "};\n";
  }
  std::string name = t + "_at_" + typeName(from, lanes);
  if (!begin(name)) return name;
  std::string body;
  for (unsigned i = 0; i < lanes; ++i)
    body += (i ? ", " : "") + t + "[a" + (lanes > 1 ? "[" + std::to_string(i) + "]" : "") + " & 15]";
  std::string T = type(to, lanes), A = type(from, lanes);
  std::string fast = lanes > 1 ? permutation(t, from, to, lanes) : "";
  define(T, name, A + " a",
         fast + "return " + (lanes > 1 ? "(" + T + "){" + body + "}" : body) + ";" + (fast.empty() ? "" : "\n#endif"));
  return name;
}

std::string Helpers::maskedLoad(DType t, unsigned lanes) {
  DType m = t == DType::Bool ? DType::U8 : t;
  std::string name = "masked_load_" + typeName(m, lanes);
  if (!begin(name)) return name;
  std::string T = type(m, lanes), M = mask(bitWidth(m), lanes), one;
  for (unsigned i = 0; i < lanes; ++i) {
    std::string at = "[" + std::to_string(i) + "]";
    one += (i ? ", " : "") + ("m" + at) + " ? p" + at + " : 0";
  }
  std::string bools = "bx" + std::to_string(lanes);
  define(T, name, "const " + memoryName(m) + " *p, " + M + " m",
         "#if defined(__clang__)\n  typedef VECTOR(_Bool, " + std::to_string(lanes) + ") " + bools +
             ";\n  return __builtin_masked_load(CVT(" + bools + ", m), p, (" + T + "){0});\n#else\n  return (" + T +
             "){" + one + "};\n#endif");
  return name;
}

std::string Helpers::maskedStore(DType t, unsigned lanes) {
  DType m = t == DType::Bool ? DType::U8 : t;
  std::string name = "masked_store_" + typeName(m, lanes);
  if (!begin(name)) return name;
  std::string T = type(m, lanes), M = mask(bitWidth(m), lanes), one;
  for (unsigned i = 0; i < lanes; ++i) {
    std::string at = "[" + std::to_string(i) + "]";
    one += "  if (m" + at + ") p" + at + " = v" + at + ";\n";
  }
  std::string bools = "bx" + std::to_string(lanes);
  define("void", name, memoryName(m) + " *p, " + M + " m, " + T + " v",
         "#if defined(__clang__)\n  typedef VECTOR(_Bool, " + std::to_string(lanes) + ") " + bools +
             ";\n  __builtin_masked_store(CVT(" + bools + ", m), v, p);\n#else\n" + one + "#endif");
  return name;
}
