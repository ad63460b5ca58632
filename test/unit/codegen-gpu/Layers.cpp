//===- Layers.cpp: layers of networks as text -----------------------------------===//
#include "Layers.h"

using namespace astra::test;

std::string astra::test::convolution(const Layer &l) {
  auto [size, stride, in, out, kernel, added] = l;
  std::string shape = "[b, " + n(size) + ", " + n(size) + ", " + n(out) + "]", wide = n((size - 1) * stride + kernel),
              by = stride == 1 ? "" : n(stride) + "*";
  auto spread = [&, out = out](const char *to, const char *from) {
    return "%" + std::string(to) + "1 = reshape %" + from + " [1, 1, 1, " + n(out) + "]\n%" + to + " = expand %" + to +
           "1 " + shape + "\n";
  };
  return "dim b in 1..8\nentry @main(%x : f32[b, " + wide + ", " + wide + ", " + n(in) + "], %w : f32[" + n(kernel) +
         ", " + n(kernel) + ", " + n(in) + ", " + n(out) + "], %p : f32[" + n(out) + "], %q : f32[" + n(out) + "]" +
         (added ? ", %r : f32" + shape : "") + ") -> (%y : f32" + shape + ") {\n%0 = contract %x[n, " + by + "h + r, " +
         by + "v + s, c], %w[r, s, c, o] -> [n, h: " + n(size) + ", v: " + n(size) + ", o] sum [r, s, c]\n" +
         spread("a", "p") + spread("d", "q") + "%2 = mul %0, %a\n%3 = add %2, %d\n" +
         (added ? "%4 = add %3, %r\n" : "%4 = detach %3\n") +
         "%5 = const 0.0 : f32\n%6 = reshape %5 [1, 1, 1, 1]\n%7 = expand %6 " + shape +
         "\n%8 = lt %4, %7\n%y = select %8, %7, %4\n}";
}
