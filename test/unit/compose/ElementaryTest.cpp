//===- ElementaryTest.cpp: real and complex functions, search -----------------===//
// Keeps:    expected numbers were worked out with NumPy, in f64.
#include "astra/Compose/Elementary.h"
#include "Compose.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Special.h"

namespace astra::compose {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class Elementary : public testing::Test {
protected:
  UOpRef f32(std::vector<double> numbers) { return tensor(b, {int64_t(numbers.size())}, numbers); }
  UOpRef f64(std::vector<double> numbers) { return tensor(b, {int64_t(numbers.size())}, numbers, DType::F64); }
  UOpRef z(std::vector<double> re, std::vector<double> im) { return b.make(Op::Complex, {f64(re), f64(im)}); }

  /// Real parts, then imaginary ones.
  void expectComplex(UOpRef w, std::vector<double> re, std::vector<double> im) {
    expectValues(b, b.un(Op::Real, w), {int64_t(re.size())}, re);
    expectValues(b, b.un(Op::Imag, w), {int64_t(im.size())}, im);
  }
  UOpRef of(const char *name, UOpRef w) { return findComplexFunction(name)->apply(b, w); }

  Context c;
  Composer b{c};
};

TEST_F(Elementary, RealFunctions) {
  EXPECT_EQ(valuesOf(b, log10(b, f32({1, 1000, 1e-3, 0}))), (std::vector<double>{0, 3, float(-3), -infinity}));
  expectValues(b, log10(b, f64({1e10, 2})), {2}, {10, 0.30102999566398120});
  expectValues(b, arcTangent2(b, f32({1, 1, -1, 0}), f32({1, -1, -1, -1})), {4},
               {0.78539816339, 2.35619449019, -2.35619449019, 3.14159265359});
  expectValues(b, arcTangent2(b, f64({infinity, 0}), f64({-infinity, 0})), {2}, {2.35619449019, 0});
  EXPECT_EQ(valuesOf(b, hypotenuse(b, f32({3, 3e38, infinity}), f32({4, 0, NAN}))),
            (std::vector<double>{5, float(3e38), infinity}));
  expectValues(b, logAddExp(b, f32({0, 1000, infinity}), f32({0, 1000, infinity})), {3},
               {M_LN2, 1000 + M_LN2, infinity});
  EXPECT_EQ(valuesOf(b, nextAfter(b, f64({1, 0, -1}), f64({2, -1, -2}))),
            (std::vector<double>{std::nextafter(1.0, 2.0), -4.9406564584124654e-324, std::nextafter(-1.0, -2.0)}));
  expectRefusal(b, hypotenuse(b, f32({1}), f64({1})), "operands of types f32 and f64");
}

TEST_F(Elementary, FloorQuotientsAreThoseOfTheExactQuotient) {
  // 1 / 0.1 rounds to 10, and 0.1 is a little more than a tenth.
  EXPECT_EQ(valuesOf(b, floorQuotient(b, f64({1, -1, 7.5, 5, -5}), f64({0.1, 0.1, 2.5, -infinity, infinity}))),
            (std::vector<double>{9, -10, 3, -1, -1}));
}

TEST_F(Elementary, ComplexFunctions) {
  UOpRef w = z({1, -2}, {2, 0.5});
  expectComplex(of("exp", w), {-1.13120438, 0.11876788}, {2.47172667, 0.06488319});
  expectComplex(of("log", w), {0.80471896, 0.72345949}, {1.10714872, 2.89661399});
  expectComplex(of("sqrt", w), {1.27201965, 0.17543206}, {0.78615138, 1.42505312});
  expectComplex(of("asin", w), {0.42707859, -1.29304207}, {1.52857092, 1.36180090});
  expectComplex(of("acosh", w), {1.52857092, 1.36180090}, {1.14371774, 2.86383840});
  expectComplex(of("atanh", w), {0.17328680, -0.50037000}, {1.17809725, 1.42154686});
  expectComplex(of("tanh", w), {1.16673626, -0.97994085}, {-0.24345820, 0.03021599});
  expectComplex(complexPower(b, w, w), {-0.22251716, 0.03641805}, {0.10070913, 0.04159719});
  expectComplex(of("rsqrt", w), {0.56886448, 0.08509705}, {-0.35157758, -0.69125230});
  expectComplex(of("sigmoid", w), {1.02141536, 0.10915585}, {0.40343871, 0.05166470});
  // far on the left it is 0, on the right 1, and beside the pole at i pi its digits are there
  expectComplex(of("sigmoid", z({-1000, 1000, -infinity, infinity}, {1, 1, 2, infinity})), {0, 1, 0, 1}, {0, 0, 0, 0});
  std::vector<double> pole = valuesOf(b, b.un(Op::Imag, of("sigmoid", z({0}, {3.14159}))));
  EXPECT_NEAR(pole.at(0), std::tan(3.14159 / 2) / 2, 1e-9 * pole.at(0));
  expectComplex(conjugate(b, w), {1, -2}, {-2, -0.5});
  UOpRef real = f32({1});
  EXPECT_EQ(conjugate(b, real), real);
}

TEST_F(Elementary, Classes) {
  UOpRef x = f32({1, infinity, -infinity, NAN});
  expectValues(b, isNaN(b, x), {4}, {0, 0, 0, 1});
  expectValues(b, isFinite(b, x), {4}, {1, 0, 0, 0});
  expectValues(b, isInfinite(b, x), {4}, {0, 1, 1, 0});
  expectValues(b, isInfinite(b, x, true, false), {4}, {0, 1, 0, 0});
  expectValues(b, isInfinite(b, x, false, false), {4}, {0, 0, 0, 0});
  expectValues(b, isNaN(b, b.cast(x, DType::F8E5M2)), {4}, {0, 0, 0, 1}); // which is stored, and not computed with
}

TEST_F(Elementary, PowersOfTwo) {
  UOpRef x = f32({1, 1.25, 1.5, 0.75, 1e-40, 0});
  auto expect = [&](PowerRounding r, std::vector<double> values) {
    expectValues(b, b.cast(powersOfTwo(b, x, r, true), DType::F64), {6}, std::move(values));
  };
  expect(PowerRounding::Up, {1, 2, 2, 1, 0x1p-127, 0x1p-127});
  expect(PowerRounding::Down, {1, 1, 1, 0.5, 0x1p-127, 0x1p-127});
  expect(PowerRounding::Nearest, {1, 1, 2, 1, 0x1p-127, 0x1p-127});
  std::vector<double> bare = valuesOf(b, powersOfTwo(b, x, PowerRounding::Up, false));
  EXPECT_TRUE(bare.at(1) == 2 && std::isnan(bare.at(4)) && std::isnan(bare.at(5)));
}

TEST_F(Elementary, Search) {
  UOpRef sorted = f32({1, 2, 2, 3, NAN}), values = f32({0, 2, 9, NAN});
  EXPECT_EQ(valuesOf(b, searchSorted(b, sorted, values, false)), (std::vector<double>{0, 1, 4, 4}));
  EXPECT_EQ(valuesOf(b, searchSorted(b, sorted, values, true)), (std::vector<double>{0, 3, 4, 5}));
  EXPECT_EQ(valuesOf(b, isIn(b, values, sorted)), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(valuesOf(b, isIn(b, values, f32({}))), (std::vector<double>{0, 0, 0, 0}));
}

TEST_F(Elementary, Variance) {
  expectValues(b, variance(b, f32({1, 2, 4, 9}), {0}, 0, false), {}, {9.5});
  expectValues(b, variance(b, f32({1, 2, 4, 9}), {0}, 1, true), {1}, {12.6666667});
  expectValues(b, variance(b, z({1, -1}, {1, -1}), {0}, 0, false), {}, {2});
}

} // namespace
} // namespace astra::compose
