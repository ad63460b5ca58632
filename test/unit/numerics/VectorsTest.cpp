//===- VectorsTest.cpp: the f64 programs against values computed with mpmath ===//
// Takes:    vectors.txt, written by kernels-gen/function_vectors.py, which knows neither the programs nor libm.
#include "Reference.h"
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace astra::numerics;

namespace {

/// One line: program, arguments, and the exact value (whole + fraction) * 2^unit, or infinity.
struct Vector {
  std::string program;
  std::vector<double> arguments;
  bool infinite = false;
  int unit = 0;
  double whole = 0, fraction = 0;

  Vector(const std::string &line, unsigned count) {
    std::istringstream in(line);
    std::string field;
    in >> program;
    for (unsigned i = 0; i < count && in >> field; ++i) arguments.push_back(std::strtod(field.c_str(), nullptr));
    in >> field;
    infinite = field == "inf";
    if (infinite) return;
    unit = std::atoi(field.c_str());
    in >> whole >> fraction;
  }
  double error(double y) const {
    if (infinite) return y == infinity<double> ? 0 : infinity<double>;
    // In two steps: 2^-unit alone may be beyond the format.
    double scaled = std::ldexp(std::ldexp(y, -unit / 2), -unit + unit / 2);
    return std::fabs((scaled - whole) - fraction);
  }
};

template <unsigned arguments, class Program>
void check(const std::string &line, const char *name, double limit, Program program) {
  if (line.substr(0, line.find(' ')) != name) return;
  Vector v(line, arguments);
  ASSERT_EQ(v.arguments.size(), arguments) << line;
  double y;
  if constexpr (arguments == 1)
    y = program(Host<double>(v.arguments[0])).v;
  else
    y = program(Host<double>(v.arguments[0]), Host<double>(v.arguments[1])).v;
  EXPECT_LE(v.error(y), limit) << line << " gave " << y;
}

TEST(Vectors, F64) {
  std::ifstream in(ASTRA_FUNCTION_VECTORS);
  unsigned lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
#define FUNCTION(Name, program, arguments, ulp32, ulp64)                                                               \
  check<arguments>(line, #program, ulp64, [](auto... x) { return program(x...); });
#include "astra/Numerics/Functions.def"
#undef FUNCTION
  }
  EXPECT_GT(lines, 400u);
}

} // namespace
