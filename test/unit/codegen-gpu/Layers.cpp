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

std::string astra::test::one(const std::string &inputs, const std::string &output, const std::string &op) {
  return "entry @main(" + inputs + ") -> (%y : " + output + ") {\n%y = " + op + "\n}";
}

std::string astra::test::softmax(int64_t rows, const std::string &n) {
  std::string m = std::to_string(rows), all = "[" + m + ", " + n + "]";
  return "entry @main(%x : f32" + all + ") -> (%y : f32" + all + R"() {
    %v = reduce %x kind=max order=exact axes=[1]
    %v1 = reshape %v [)" +
         m + ", 1]\n%v2 = expand %v1 " + all + R"(
    %e = sub %x, %v2
    %f = exp %e
    %g = reduce %f kind=sum order=lane64 axes=[1]
    %g1 = reshape %g [)" +
         m + ", 1]\n%g2 = expand %g1 " + all + "\n%y = div %f, %g2\n}";
}

std::string astra::test::norm(int64_t rows, int64_t n, bool mean) {
  std::string m = std::to_string(rows), w = std::to_string(n), all = "[" + m + ", " + w + "]";
  std::string text = "entry @main(%x : f32" + all + ", %w : f32[" + w + "], %b : f32[" + w + "]) -> (%y : f32" + all +
                     ") {\n%n = const " + w + ".0 : f32\n%n1 = reshape %n [1]\n%n2 = expand %n1 [" + m + "]\n";
  if (mean)
    text += "%s = reduce %x kind=sum order=lane64 axes=[1]\n%m = div %s, %n2\n%m1 = reshape %m [" + m +
            ", 1]\n%m2 = expand %m1 " + all + "\n%d = sub %x, %m2\n";
  else
    text += "%d = detach %x\n";
  return text + "%q = mul %d, %d\n%t = reduce %q kind=sum order=lane64 axes=[1]\n%v = div %t, %n2\n%r = sqrt %v\n" +
         "%r1 = reshape %r [" + m + ", 1]\n%r2 = expand %r1 " + all + "\n%z = div %d, %r2\n%w1 = reshape %w [1, " + w +
         "]\n%w2 = expand %w1 " + all + "\n%zw = mul %z, %w2\n%b1 = reshape %b [1, " + w + "]\n%b2 = expand %b1 " +
         all + "\n%y = add %zw, %b2\n}";
}
