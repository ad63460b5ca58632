//===- Fields.cpp: the attribute column of Ops.def, and literals -----------===//
// Takes:    rows of Ops.def; literals from untrusted text.
// Gives:    fields, text of literals, bits of literals.
#include "astra/IR/Fields.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/StringExtras.h"
#include <array>
#include <charconv>

using namespace astra;
using llvm::StringRef;

static Field readField(StringRef text) {
  Field f;
  auto [form, absent] = text.split('=');
  if (!absent.empty()) f.absent = std::stoll(absent.str());
  f.name = form.take_while([](char ch) { return llvm::isAlnum(ch); });
  StringRef mark = form.drop_front(f.name.size());
  if (mark.consume_front("{")) {
    mark.drop_back().split(f.values, ',');
    f.kind = FieldKind::Enumeration;
    return f;
  }
  static const std::pair<StringRef, FieldKind> marks[] = {{"", FieldKind::Integer},  {"*", FieldKind::Rest},
                                                          {"#", FieldKind::Literal}, {"#*", FieldKind::Literals},
                                                          {"$", FieldKind::String},  {"@", FieldKind::Dtype}};
  for (auto [m, kind] : marks)
    if (m == mark) f.kind = kind;
  return f;
}

llvm::ArrayRef<Field> astra::fields(Op op) {
  static const auto table = [] {
    std::array<std::vector<Field>, numOps> t;
    for (unsigned i = 0; i < numOps; ++i) {
      llvm::SmallVector<StringRef, 6> words;
      StringRef(info(Op(i)).attributes).split(words, ' ', -1, false);
      for (StringRef w : words) t[i].push_back(readField(w));
    }
    return t;
  }();
  return table[unsigned(op)];
}

static uint64_t canonicalNaN(DType t) {
  unsigned m = info(t).mantissaBits;
  return ((1ull << (info(t).exponentBits + 1)) - 1) << (m - 1);
}

template <class F> static std::string shortest(F v) { // enough digits to give v back, no more
  char buffer[64];
  std::string s(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string astra::literalText(DType t, uint64_t bits) {
  t = partOf(t);
  if (t == DType::Bool) return bits ? "true" : "false";
  if (isUnsigned(t)) return std::to_string(bits);
  unsigned w = bitWidth(t);
  if (isSigned(t)) return std::to_string(int64_t(bits << (64 - w)) >> (64 - w));
  if (isFloat(t)) {
    llvm::APFloat v(semanticsOf(t), llvm::APInt(w, bits));
    if (v.isInfinity()) return v.isNegative() ? "-inf" : "inf";
    if (v.isNaN() && bits == canonicalNaN(t)) return "nan";
    if (!v.isNaN() && t == DType::F64) return shortest(v.convertToDouble());
    if (!v.isNaN()) {
      bool inexact;
      v.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      return shortest(v.convertToFloat());
    }
  }
  return "0x" + llvm::utohexstr(bits, /*LowerCase=*/true);
}

llvm::Expected<uint64_t> astra::literalBits(DType type, StringRef text) {
  DType t = partOf(type);
  auto fail = [&](const char *what) {
    return llvm::createStringError("%s is not a literal of %s: %s", text.str().c_str(), info(type).text, what);
  };
  unsigned w = std::min(bitWidth(t), 64u);
  if (StringRef hex = text; hex.consume_front("0x")) {
    uint64_t bits;
    if (hex.getAsInteger(16, bits) || (w < 64 && bits >> w)) return fail("the bits do not fit");
    return bits;
  }
  if (t == DType::Bool) {
    if (text == "true" || text == "false") return text == "true";
    return fail("expected true or false");
  }
  if (isFloat(t)) {
    StringRef magnitude = text;
    bool negative = magnitude.consume_front("-");
    uint64_t sign = uint64_t(negative) << (w - 1);
    if (magnitude == "inf") return sign | ((1ull << info(t).exponentBits) - 1) << info(t).mantissaBits;
    if (text == "nan") return canonicalNaN(t);
    llvm::APFloat v(semanticsOf(t));
    auto status = v.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return fail("expected a number");
    }
    if (*status & llvm::APFloat::opOverflow) return fail("too large (write inf or -inf)");
    return v.bitcastToAPInt().getZExtValue();
  }
  if (isUnsigned(t)) {
    uint64_t v;
    if (text.getAsInteger(10, v) || (w < 64 && v >> w)) return fail("expected an integer that fits");
    return v;
  }
  if (isSigned(t)) {
    int64_t v;
    if (text.getAsInteger(10, v) || (w < 64 && (v < -(1ll << (w - 1)) || v >= (1ll << (w - 1)))))
      return fail("expected an integer that fits");
    return w < 64 ? uint64_t(v) & ((1ull << w) - 1) : uint64_t(v);
  }
  return fail("expected hexadecimal bits (0x...)");
}
