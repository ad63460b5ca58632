//===- HostValue.h: the primitives of clause N1 on plain numbers -----------===//
// Takes:    float, double, 32- and 64-bit integers, bool.
// Gives:    Host<T>, with which the programs of Functions.h compute at once: for tests, measurements and evaluators.
// Keeps:    each operation rounds once to nearest even and integers wrap. Compile with contraction off.
// Does not: make NaNs canonical (clause N6 leaves their bits open inside a program).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace astra::numerics {

template <class T> struct Host {
  T v;
  Host(T v) : v(v) {}

  friend Host operator+(Host a, Host b) {
    return wrap([](auto x, auto y) { return x + y; }, a, b);
  }
  friend Host operator-(Host a, Host b) {
    return wrap([](auto x, auto y) { return x - y; }, a, b);
  }
  friend Host operator*(Host a, Host b) {
    return wrap([](auto x, auto y) { return x * y; }, a, b);
  }
  friend Host operator/(Host a, Host b) { return Host(a.v / b.v); }
  friend Host operator-(Host a) {
    if constexpr (std::is_floating_point_v<T>)
      return Host(-a.v);
    else
      return Host(0) - a;
  }
  friend Host operator&(Host a, Host b) { return Host(T(a.v & b.v)); }
  friend Host operator|(Host a, Host b) { return Host(T(a.v | b.v)); }
  friend Host operator^(Host a, Host b) { return Host(T(a.v ^ b.v)); }
  friend Host operator!(Host a) { return Host(!a.v); }
  friend Host operator<<(Host a, Host b) { return Host(T(a.v << b.v)); }
  friend Host operator>>(Host a, Host b) { return Host(T(a.v >> b.v)); }
  friend Host<bool> operator<(Host a, Host b) { return Host<bool>(a.v < b.v); }
  friend Host<bool> operator==(Host a, Host b) { return Host<bool>(a.v == b.v); }
  friend Host fma(Host a, Host b, Host c) { return Host(std::fma(a.v, b.v, c.v)); }
  friend Host sqrt(Host a) { return Host(std::sqrt(a.v)); }
  friend Host abs(Host a) { return Host(std::fabs(a.v)); }
  friend Host trunc(Host a) { return Host(std::trunc(a.v)); }
  friend Host copysign(Host a, Host b) { return Host(std::copysign(a.v, b.v)); }
  friend Host select(Host<bool> c, Host a, Host b) { return c.v ? a : b; }

private:
  template <class F> static Host wrap(F f, Host a, Host b) {
    if constexpr (std::is_floating_point_v<T>)
      return Host(f(a.v, b.v));
    else
      return Host(T(f(std::make_unsigned_t<T>(a.v), std::make_unsigned_t<T>(b.v))));
  }
};

template <class T> Host<T> select(Host<bool> c, T a, T b) { return Host<T>(c.v ? a : b); }
template <class To, class T> Host<To> bitcast(Host<T> a) { return Host<To>(std::bit_cast<To>(a.v)); }
template <class To, class T> Host<To> convert(Host<T> a) { return Host<To>(To(a.v)); }
template <class E, class T> Host<E> lookup16(const E (&table)[16], Host<T> index) {
  return Host<E>(table[index.v & 15]);
}

} // namespace astra::numerics
