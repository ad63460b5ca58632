//===- Numbers.cpp: the numbers of constants -------------------------------===//
// Takes:    what stands between dense< and >: numbers in brackets, one number for all, or bytes in hexadecimal digits.
// Gives:    row-major bytes, or the end of a sentence.
// Keeps:    decimal numbers are rounded once; what is written as bits keeps them.
#include "Text.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

namespace astra::stablehlo {

namespace {

llvm::Error wrong(const llvm::Twine &sentence) { return llvm::createStringError(sentence); }

/// One scalar behind another: "1", "-1.5e3", "0x7FC00000", "true". Appends its little-endian bytes.
llvm::Error appendNumber(std::vector<uint8_t> &out, llvm::StringRef text, DType t) {
  auto put = [&](uint64_t bits) {
    for (unsigned i = 0; i < byteSize(t); ++i) out.push_back(uint8_t(bits >> (8 * i)));
    return llvm::Error::success();
  };
  if (text == "true" || text == "false") {
    if (t != DType::Bool) return wrong("the number '" + text + "' in a tensor of another type than i1");
    return put(text == "true");
  }
  bool isInteger = isInt(t) || t == DType::Bool;
  if (isInteger) {
    int64_t value = 0;
    uint64_t large = 0;
    if (text.getAsInteger(0, value)) {
      if (text.getAsInteger(0, large)) return wrong("'" + text + "' is not an integer");
      if (!isUnsigned(t)) return wrong("the integer " + text + " does not fit " + info(t).text);
      return put(large);
    }
    unsigned bits = t == DType::Bool ? 1 : bitWidth(t);
    bool fits = isUnsigned(t) || t == DType::Bool
                    ? value >= 0 && (bits == 64 || uint64_t(value) >> bits == 0)
                    : bits == 64 || (value >= -(int64_t(1) << (bits - 1)) && value < int64_t(1) << (bits - 1));
    if (!fits) return wrong("the integer " + text + " does not fit " + info(t).text);
    return put(uint64_t(value));
  }
  if (text.starts_with("0x") || text.starts_with("0X")) {
    uint64_t bits = 0;
    if (text.getAsInteger(0, bits)) return wrong("'" + text + "' is not a number");
    if (bitWidth(t) < 64 && bits >> bitWidth(t)) return wrong("the bits " + text + " do not fit " + info(t).text);
    return put(bits);
  }
  const llvm::fltSemantics *semantics = isFloat(t)               ? &semanticsOf(t)
                                        : t == DType::F8E4M3FN   ? &llvm::APFloat::Float8E4M3FN()
                                        : t == DType::F8E5M2     ? &llvm::APFloat::Float8E5M2()
                                        : t == DType::F8E4M3FNUZ ? &llvm::APFloat::Float8E4M3FNUZ()
                                        : t == DType::F8E5M2FNUZ ? &llvm::APFloat::Float8E5M2FNUZ()
                                        : t == DType::F8E8M0     ? &llvm::APFloat::Float8E8M0FNU()
                                                                 : nullptr;
  if (!semantics) return wrong(llvm::Twine("numbers of type ") + info(t).text + " are not supported in a constant");
  llvm::APFloat value(*semantics);
  llvm::Expected<llvm::APFloat::opStatus> status = value.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
  if (!status) {
    llvm::consumeError(status.takeError());
    return wrong("'" + text + "' is not a number");
  }
  return put(value.bitcastToAPInt().getZExtValue());
}

} // namespace

std::optional<int64_t> elementCount(const Type &t) {
  constexpr int64_t most = int64_t(1) << 40;
  int64_t count = 1;
  for (int64_t d : t.dims) {
    if (d == dynamic || (d && count > most / d)) return std::nullopt;
    count *= d;
  }
  return count;
}

llvm::Expected<std::vector<uint8_t>> denseBytes(const Attribute &a) {
  const Type &type = a.type;
  if (a.kind != Attribute::Kind::Dense || type.kind != Type::Kind::Tensor || type.dtype == DType::Void)
    return wrong("the constant has the element type '" + type.text + "', which is not supported");
  std::optional<int64_t> elements = elementCount(type);
  if (!elements) return wrong("the constant has a dynamic extent, or more than 2^40 elements");
  int64_t count = *elements;
  DType t = type.dtype, part = partOf(t);
  if (isSubByte(t)) return wrong("constants of types below 8 bits are not supported");
  size_t size = byteSize(t);
  std::vector<uint8_t> out;
  llvm::StringRef text = a.text.trim();
  if (text.consume_front("\"")) { // the bytes, in hexadecimal digits; of i1 a bit each
    text.consume_back("\"");
    if (!text.consume_front("0x") || text.size() % 2) return wrong("a constant in quotes is no hexadecimal number");
    out.reserve(text.size() / 2);
    for (size_t i = 0; i < text.size(); i += 2) {
      if (!llvm::isHexDigit(text[i]) || !llvm::isHexDigit(text[i + 1]))
        return wrong("a constant in quotes is no hexadecimal number");
      out.push_back(llvm::hexFromNibbles(text[i], text[i + 1]));
    }
    if (t == DType::Bool) {
      std::vector<uint8_t> bits = std::exchange(out, {});
      bool splat = bits.size() == 1 && (bits[0] == 0xff || (bits[0] == 0 && count > 8));
      if (splat) return std::vector<uint8_t>(1, bits[0] & 1);
      if (int64_t(bits.size()) != (count + 7) / 8)
        return wrong("the constant has " + llvm::Twine(bits.size()) + " bytes for " + llvm::Twine(count) + " bits");
      for (int64_t i = 0; i < count; ++i) out.push_back(bits[size_t(i / 8)] >> (i % 8) & 1);
      return out;
    }
  } else {
    size_t at = 0;
    auto token = [&]() -> llvm::StringRef {
      size_t begin = at;
      while (at < text.size() && !llvm::StringRef(" \n\t\r,[]()").contains(text[at])) ++at;
      return text.slice(begin, at);
    };
    bool imaginary = false;
    while (at < text.size()) {
      char c = text[at];
      if (c == '(' || c == ')') {
        if (!isComplex(t) || (c == '(') == imaginary) return wrong("a parenthesis in a constant that is not complex");
        imaginary = c == '(';
      }
      if (llvm::StringRef(" \n\t\r,[]()").contains(c)) {
        ++at;
        continue;
      }
      llvm::StringRef number = token();
      if (int64_t(out.size()) >= count * int64_t(size) && count > 0)
        return wrong("the constant has more numbers than elements");
      if (llvm::Error e = appendNumber(out, number, part)) return std::move(e);
    }
  }
  if (out.size() == size && count > 1) return out; // one for all
  if (out.size() != size_t(count) * size)
    return wrong("the constant has " + llvm::Twine(out.size()) + " bytes, its type needs " +
                 llvm::Twine(size_t(count) * size));
  return out;
}

} // namespace astra::stablehlo
