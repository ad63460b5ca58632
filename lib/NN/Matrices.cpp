//===- Matrices.cpp: what initializers draw beside plain distributions -----===//
#include "Matrices.h"
#include "Elements.h"

using namespace astra;
using namespace astra::nn;

UOpRef nn::inverseErf(Builder &b, UOpRef x) {
  constexpr double near[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                             -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  constexpr double far[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                            -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  auto polynomial = [&](llvm::ArrayRef<double> coefficients, UOpRef at) {
    UOpRef sum = b.splat(num(b, x, coefficients[0]), x->shape);
    for (double k : coefficients.drop_front()) sum = b.add(b.mul(sum, at), num(b, x, k));
    return sum;
  };
  UOpRef one = num(b, x, 1);
  UOpRef w = b.un(Op::Neg, b.un(Op::Log, b.mul(b.sub(one, x), b.add(x, one))));
  UOpRef p = b.select(b.lt(w, num(b, x, 5)), polynomial(near, b.sub(w, num(b, x, 2.5))),
                      polynomial(far, b.sub(b.un(Op::Sqrt, w), num(b, x, 3))));
  return b.mul(p, x);
}

UOpRef nn::orthonormalRows(Builder &b, UOpRef a) {
  UOpRef p = a->shape[0], q = a->shape[1], one = b.idx(1);
  UOpRef done = b.arg(0, a->dtype, a->shape), row = b.arg(1, a->dtype, {q}), j = b.arg(2, DType::I64, {});
  UOpRef v = b.reshape(row, {one, q});
  for (int time = 0; time < 2; ++time) {
    UOpRef along = b.matmul(v, b.permute(done, {1, 0})); // rows that are not there yet are zeros
    v = b.sub(v, b.matmul(along, done));
  }
  UOpRef length = b.un(Op::Sqrt, sumOf(b, b.mul(v, v)));
  UOpRef next = b.updateAt(done, b.div(v, length), {j, b.litInt(DType::I64, 0)});
  UOpRef body = b.c.make(Op::Func, {next}, {3});
  UOpRef zeros = b.splat(num(b, a, 0), a->shape);
  UOpRef scan = b.c.make(Op::Scan, {zeros, a, b.iota(DType::I64, {p}, 0), p}, {1, 2}, {}, DType::Void, {body});
  return b.c.make(Op::Proj, {scan, p, q}, {0}, {}, a->dtype);
}
