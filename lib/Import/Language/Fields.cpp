//===- Fields.cpp: what both kinds of files share ---------------------------===//
// Takes:    fields of an untrusted file.
// Gives:    numbers in bounds, or a sentence.
#include "Fields.h"
#include <cmath>

using namespace astra::language;

int64_t Fields::integer(FieldName name, int64_t least, int64_t most, std::optional<int64_t> otherwise) {
  std::optional<double> value = number(name);
  if (!value && !otherwise) fail("'" + nameOf(name) + "' is missing");
  if (!value) return otherwise.value_or(least);
  if (*value == std::floor(*value) && *value >= double(least) && *value <= double(most)) return int64_t(*value);
  fail("'" + nameOf(name) + "' is " + llvm::Twine(std::to_string(*value)) + ", expected a whole number in " +
       llvm::Twine(least) + ".." + llvm::Twine(most));
  return least;
}

double Fields::real(FieldName name, double otherwise) {
  double value = number(name).value_or(otherwise);
  if (!std::isfinite(value)) fail("'" + nameOf(name) + "' is not finite");
  return value;
}
