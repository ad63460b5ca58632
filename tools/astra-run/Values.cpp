//===- Values.cpp: elements of arrays as numbers ----------------------------===//
#include "Values.h"
#include "JsonText.h"
#include "astra/astra.h"
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>

using namespace astra::tool;
using std::string;

namespace {

constexpr size_t mostShown = 8;

double ofHalf(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double v = exponent == 31 ? (fraction ? NAN : INFINITY)
             : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                            : std::ldexp(fraction, -24);
  return bits >> 15 ? -v : v;
}

/// The dtype of the numbers that an array's bytes are: of a complex one its parts.
int32_t numbersOf(int32_t dtype) { return dtype == ASTRA_C64 ? ASTRA_F32 : dtype == ASTRA_C128 ? ASTRA_F64 : dtype; }

/// Whether valueAt reads them.
bool isReadable(int32_t dtype) { return numbersOf(dtype) <= ASTRA_F64; }

double valueAt(const Npy &a, size_t i) {
  auto read = [&](auto v) {
    std::memcpy(&v, a.data.data() + i * sizeof v, sizeof v);
    return v;
  };
  switch (numbersOf(a.dtype)) {
  case ASTRA_F32: return read(float());
  case ASTRA_F64: return read(double());
  case ASTRA_F16: return ofHalf(read(uint16_t()));
  case ASTRA_BF16: {
    uint32_t bits = uint32_t(read(uint16_t())) << 16;
    float v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  case ASTRA_I8: return read(int8_t());
  case ASTRA_I16: return read(int16_t());
  case ASTRA_I32: return read(int32_t());
  case ASTRA_I64: return double(read(int64_t()));
  case ASTRA_U16: return read(uint16_t());
  case ASTRA_U32: return read(uint32_t());
  case ASTRA_U64: return double(read(uint64_t()));
  default: return read(uint8_t());
  }
}

size_t countOf(const Npy &a) {
  return isReadable(a.dtype) ? a.data.size() / (astra_dtype_bits(numbersOf(a.dtype)) / 8) : 0;
}

bool isNear(double found, double expected, double tolerance) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return true;
  return std::isfinite(found) && std::isfinite(expected) &&
         std::fabs(found - expected) <= tolerance * (1 + std::fabs(expected));
}

string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

} // namespace

string astra::tool::shortText(const char *name, const Npy &given) {
  Npy a = unpacked(given);
  string out = string(name) + ": " + astra_dtype_name(given.dtype) + "[";
  for (size_t i = 0; i < a.shape.size(); ++i) out += (i ? ", " : "") + std::to_string(a.shape[i]);
  out += "]";
  size_t count = countOf(a);
  for (size_t i = 0; i < std::min(count, mostShown); ++i) out += " " + number(valueAt(a, i));
  return out + (count > mostShown ? " ..." : "");
}

string astra::tool::shortJson(const char *name, const Npy &given) {
  Npy a = unpacked(given);
  string out =
      "{\"name\": " + quoted(name) + ", \"dtype\": " + quoted(astra_dtype_name(given.dtype)) + ", \"shape\": [";
  for (size_t i = 0; i < a.shape.size(); ++i) out += (i ? ", " : "") + std::to_string(a.shape[i]);
  out += "]";
  if (isReadable(a.dtype)) {
    out += ", \"values\": [";
    for (size_t i = 0; i < std::min(countOf(a), mostShown); ++i) out += (i ? ", " : "") + jsonNumber(valueAt(a, i));
    out += "]";
  }
  return out + "}";
}

std::optional<string> astra::tool::difference(const Npy &found, const Npy &expected, const string &file,
                                              std::optional<double> tolerance) {
  Npy x = unpacked(found), y = unpacked(expected);
  if (found.dtype != expected.dtype || x.shape != y.shape) return " and " + file + " differ in dtype or shape";
  size_t first = std::mismatch(x.data.begin(), x.data.end(), y.data.begin(), y.data.end()).first - x.data.begin();
  if (first == x.data.size()) return std::nullopt;
  if (!tolerance || !isReadable(found.dtype))
    return " differs from " + file + ", first at element " + std::to_string(first * 8 / astra_dtype_bits(x.dtype));
  size_t parts = numbersOf(x.dtype) == x.dtype ? 1 : 2, far = 0, at = 0;
  for (size_t i = countOf(x); i-- > 0;)
    if (!isNear(valueAt(x, i), valueAt(y, i), *tolerance)) ++far, at = i;
  if (!far) return std::nullopt;
  return " differs from " + file + " by more than the tolerance at " + std::to_string(far) + " of " +
         std::to_string(countOf(x)) + " numbers, first at element " + std::to_string(at / parts) + ": " +
         number(valueAt(x, at)) + ", expected " + number(valueAt(y, at));
}
