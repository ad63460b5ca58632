//===- Fields.cpp: what both kinds of files share ---------------------------===//
// Takes:    fields of an untrusted file.
// Gives:    numbers in bounds, or a sentence.
#include "Fields.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace astra::language;

std::string astra::language::numberText(double x) {
  if (x == std::floor(x) && std::fabs(x) < 0x1p63) return std::to_string(int64_t(x));
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", x);
  return text;
}

int64_t Fields::integer(FieldName name, int64_t least, int64_t most, std::optional<int64_t> otherwise) {
  std::optional<double> value = number(name);
  if (!value && !otherwise) fail("'" + nameOf(name) + "' is missing");
  if (!value) return otherwise.value_or(least);
  if (*value == std::floor(*value) && *value >= double(least) && *value <= double(most)) return int64_t(*value);
  fail("'" + nameOf(name) + "' is " + numberText(*value) + ", expected a whole number in " + llvm::Twine(least) + ".." +
       llvm::Twine(most));
  return least;
}

double Fields::real(FieldName name, double otherwise) {
  double value = number(name).value_or(otherwise);
  if (!std::isfinite(value)) fail("'" + nameOf(name) + "' is not finite");
  return value;
}
