//===- Convert.cpp: masks, bitcasts, lookups and masked memory in C --------===//
// Takes:    two dtypes and a number of lanes.
// Gives:    the C function that goes from one to the other, reads or writes under a mask.
// Does not: convert values (Cast.cpp).
#include "Helpers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::cemit;

/// A mask of another width: lanes are 0 or -1.
std::string Helpers::widthOf(unsigned from, unsigned to, unsigned lanes, const std::string &m) {
  return from == to || lanes == 1 ? m : convert(signedOf(to), lanes, m);
}

std::string Helpers::fromMask(DType to, unsigned lanes) {
  std::string name = typeName(to, lanes) + "_from_mask";
  if (!begin(name)) return name;
  unsigned bits = maskBits(to);
  std::string body = convert(isSmall(to) ? DType::F32 : to, lanes, "-m");
  if (isSmall(to)) body = cast(DType::F32, to, lanes, false) + "(" + body + ")";
  std::string M = mask(bits, lanes), T = type(to, lanes);
  define(T, name, M + " m", "return " + body + ";");
  return name;
}

std::string Helpers::toMask(DType from, unsigned lanes) {
  std::string name = "mask_from_" + typeName(from, lanes);
  if (!begin(name)) return name;
  std::string M = mask(maskBits(from), lanes), T = type(from, lanes);
  if (isSmall(from) && !isNarrow(from))
    define(M, name, T + " a", "return " + cast(from, DType::F32, lanes, false) + "(a) != 0;");
  else
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
  if (bitWidth(from) != bits || !(bits >= 32 && (width == 512 || (width == 256 && bits == 32)))) return "";
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
    functions += tableType() + memoryName(to) + " " + t + "[16] = {";
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
