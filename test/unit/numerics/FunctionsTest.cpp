//===- FunctionsTest.cpp: the programs at the edges of their domains -------===//
#include "Reference.h"
#include "astra/Numerics/Threefry.h"
#include <gtest/gtest.h>
#include <string>

using namespace astra::numerics;

namespace {

template <class T> struct Edge {
  static std::vector<T> values() {
    using L = std::numeric_limits<T>;
    std::vector<T> v = {T(0),
                        L::denorm_min(),
                        L::denorm_min() * 3,
                        L::min() / 2,
                        std::nextafter(L::min(), T(0)),
                        L::min(),
                        L::epsilon() / 4,
                        L::epsilon() / 2,
                        L::epsilon(),
                        T(0.25),
                        T(0.34657359),
                        T(0.5),
                        T(0.5625),
                        T(0.70710678118654757),
                        T(0.785398163397448309),
                        std::nextafter(T(1), T(0)),
                        T(1),
                        std::nextafter(T(1), T(2)),
                        T(1.41421356237309514),
                        T(1.5707963267948966),
                        T(2),
                        T(2.5),
                        T(3),
                        T(6),
                        T(17),
                        T(37),
                        T(88.5),
                        T(89),
                        T(104),
                        T(127.5),
                        T(149),
                        T(150),
                        T(709),
                        T(710),
                        T(745),
                        T(746),
                        T(1023.5),
                        T(1074),
                        T(1075),
                        T(1 << 20),
                        std::ldexp(T(1.5), 60),
                        L::max() / 2,
                        L::max(),
                        L::infinity()};
    for (size_t i = v.size(); i-- > 0;) v.push_back(-v[i]);
    v.push_back(L::quiet_NaN());
    v.push_back(T(0x1.6ac5b262ca1ffp+849)); // of the f64 numbers, the nearest to a multiple of pi / 2 (infinite in f32)
    return v;
  }
};

template <class T, class Program, class Exact>
void checkEdges(const char *name, double limit, Program program, Exact exact) {
  for (T x : Edge<T>::values()) {
    T y = program(Host<T>(x)).v;
    EXPECT_LE(ulpError<T>(y, exact(Wide<T>(x))), limit) << name << "(" << x << ") gave " << y;
  }
}

TEST(Functions, EdgesOfOneArgument) {
#define FUNCTION(Name, program, arguments, ulp32, ulp64)                                                               \
  if constexpr (arguments == 1) {                                                                                      \
    auto run = [](auto... x) { return program(x...); };                                                                \
    auto exact = [](auto... x) { return wide::program(x...); };                                                        \
    checkEdges<float>(#program " f32", ulp32, run, exact);                                                             \
    checkEdges<double>(#program " f64", ulp64, run, exact);                                                            \
  }
#include "astra/Numerics/Functions.def"
#undef FUNCTION
}

template <class T> void checkPowEdges() {
  for (T x : Edge<T>::values())
    for (T y : Edge<T>::values()) {
      T z = pow(Host<T>(x), Host<T>(y)).v;
      EXPECT_LE(ulpError<T>(z, wide::pow(Wide<T>(x), Wide<T>(y))), 2) << "pow(" << x << ", " << y << ") gave " << z;
    }
}
TEST(Functions, EdgesOfPow) {
  checkPowEdges<float>();
  checkPowEdges<double>();
}

TEST(Functions, ExactValues) {
  for (int n = -149; n < 128; ++n) EXPECT_EQ(exp2(Host<float>(float(n))).v, std::ldexp(1.0f, n));
  for (int n = -1074; n < 1024; ++n) EXPECT_EQ(exp2(Host<double>(double(n))).v, std::ldexp(1.0, n));
  for (int n = -149; n < 128; ++n) EXPECT_EQ(log2(Host<float>(std::ldexp(1.0f, n))).v, float(n));
  EXPECT_EQ(exp(Host<float>(0.0f)).v, 1.0f);
  EXPECT_EQ(log(Host<double>(1.0)).v, 0.0);
  EXPECT_EQ(cos(Host<double>(0.0)).v, 1.0);
  EXPECT_EQ(sigmoid(Host<float>(0.0f)).v, 0.5f);
  EXPECT_EQ(erf(Host<float>(100.0f)).v, 1.0f);
  EXPECT_EQ(erf(Host<double>(100.0)).v, 1.0);
  EXPECT_EQ(tanh(Host<double>(-100.0)).v, -1.0);
  EXPECT_EQ(pow(Host<float>(3.0f), Host<float>(4.0f)).v, 81.0f);
}

// The known answers of the authors' Random123 library.
TEST(Threefry, KnownAnswers) {
  auto words = [](uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1) {
    Threefry<Host> t(k0, k1, c0, c1);
    return std::pair(t.x0.v, t.x1.v);
  };
  EXPECT_EQ(words(0, 0, 0, 0), std::pair(0x6b200159u, 0x99ba4efeu));
  EXPECT_EQ(words(~0u, ~0u, ~0u, ~0u), std::pair(0x1cb996fcu, 0xbb002be7u));
  EXPECT_EQ(words(0x13198a2eu, 0x03707344u, 0x243f6a88u, 0x85a308d3u), std::pair(0xc4923a9cu, 0x483df7a0u));
}

} // namespace
