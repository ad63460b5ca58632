//===- ComplexCases.cpp: cases of complex values ---------------------------===//
// Complex values are made of parts and end as parts: differences see the real numbers alone, so what is between must
// have the cotangents that Autograd.h says.
#include "Check.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::test;
using Sources = llvm::ArrayRef<UOpRef>;

namespace {
/// Both parts, one behind the other.
UOpRef parts(Builder &b, UOpRef z) { return b.concat({b.real(z), b.imag(z)}, 0); }
UOpRef func(Builder &b, std::vector<UOpRef> results, int64_t nargs) { return b.c.make(Op::Func, results, {nargs}); }

/// f of x[0] + x[1] i and x[2] + x[3] i.
std::function<UOpRef(Builder &, Sources)> ofTwo(UOpRef (*f)(Builder &, UOpRef, UOpRef)) {
  return [f](Builder &b, Sources x) { return parts(b, f(b, b.complex(x[0], x[1]), b.complex(x[2], x[3]))); };
}
std::function<UOpRef(Builder &, Sources)> ofOne(UOpRef (*f)(Builder &, UOpRef)) {
  return [f](Builder &b, Sources x) { return parts(b, f(b, b.complex(x[0], x[1]))); };
}

/// h = h * z[i] + w, from w.
UOpRef recurrence(Builder &b, UOpRef z, UOpRef w) {
  auto row = [&](int64_t i) { return b.arg(i, DType::C128, z->shape.drop_front()); };
  UOpRef next = b.add(b.mul(row(0), row(1)), row(2)), first = b.reshape(w, z->shape.drop_front());
  UOpRef scan = b.c.make(Op::Scan, {first, z, first, z->shape[0]}, {1, 1}, {}, DType::Void, {func(b, {next}, 3)});
  llvm::SmallVector<UOpRef, 4> src{scan};
  llvm::append_range(src, first->shape);
  return b.c.make(Op::Proj, src, {0}, {}, DType::C128);
}
/// if the sum of the real parts is below 0: z * w, else z / w.
UOpRef branch(Builder &b, UOpRef z, UOpRef w) {
  auto arg = [&](int64_t i) { return b.arg(i, DType::C128, z->shape); };
  UOpRef below = b.lt(b.reduce(ReduceKind::Sum, b.real(z), {0}), b.lit(DType::F64, 0));
  UOpRef cond = b.c.make(Op::Cond, {below, z, w}, {}, {}, DType::Void,
                         {func(b, {b.mul(arg(0), arg(1))}, 2), func(b, {b.div(arg(0), arg(1))}, 2)});
  return b.c.make(Op::Proj, {cond, z->shape[0]}, {0}, {}, DType::C128);
}
/// z, whose cotangent is that of a product with 2 - i: declared, with a conjugate.
UOpRef declared(Builder &b, UOpRef z) {
  UOpRef k = b.complex(b.lit(DType::F64, 2), b.lit(DType::F64, 1)); // the conjugate of 2 - i
  UOpRef g = b.arg(2, DType::C128, z->shape), factor = b.complex(b.lit(DType::F64, 2), b.lit(DType::F64, -1));
  return b.c.make(Op::WithGradient, {b.mul(z, factor), z}, {}, {}, DType::Void, {func(b, {b.mul(g, k)}, 3)});
}
} // namespace

std::vector<Case> test::complexCases() {
  const std::vector<std::vector<int64_t>> one = {{4}, {4}}, two = {{4}, {4}, {4}, {4}}, matrix = {{2, 3}, {2, 3}};
  return {
      {"a complex number", Op::Complex, one, ofOne([](Builder &b, UOpRef z) { return b.mul(z, z); })},
      {"a complex number of one part",
       Op::Complex,
       {{3}},
       [](Builder &b, Sources x) { // the imaginary part carries nothing
         UOpRef z = b.complex(x[0], b.splat(b.lit(DType::F64, 0.5), x[0]->shape));
         return parts(b, b.mul(z, b.mul(z, z)));
       }},
      {"a real part", Op::Real, one,
       [](Builder &b, Sources x) {
         UOpRef z = b.complex(x[0], x[1]);
         return b.real(b.mul(z, b.mul(z, z)));
       }},
      {"an imaginary part", Op::Imag, one,
       [](Builder &b, Sources x) {
         UOpRef z = b.complex(x[0], x[1]);
         return b.imag(b.mul(z, b.mul(z, z)));
       }},
      {"complex neg", Op::Neg, one, ofOne([](Builder &b, UOpRef z) { return b.mul(b.un(Op::Neg, z), z); })},
      {"complex add", Op::Add, two, ofTwo([](Builder &b, UOpRef z, UOpRef w) { return b.mul(b.add(z, w), z); })},
      {"complex sub", Op::Sub, two, ofTwo([](Builder &b, UOpRef z, UOpRef w) { return b.mul(b.sub(z, w), w); })},
      {"complex mul", Op::Mul, two, ofTwo([](Builder &b, UOpRef z, UOpRef w) { return b.mul(z, w); })},
      {"complex div", Op::Div, two, ofTwo([](Builder &b, UOpRef z, UOpRef w) { return b.div(z, w); }), 1, 2},
      {"complex abs", Op::Abs, one, [](Builder &b, Sources x) { return b.un(Op::Abs, b.complex(x[0], x[1])); }, 0.5, 2},
      {"complex abs at 0",
       Op::Abs,
       one,
       [](Builder &b, Sources x) { return b.un(Op::Abs, b.complex(x[0], x[1])); },
       0.5,
       2,
       {{0}},
       false},
      {"complex select", Op::Select, two, ofTwo([](Builder &b, UOpRef z, UOpRef w) {
         return b.select(b.lt(b.real(z), b.real(w)), b.mul(z, w), b.mul(z, z));
       })},
      {"complex pad", Op::Pad, one, ofOne([](Builder &b, UOpRef z) {
         UOpRef longer = b.pad(z, {b.idx(1)}, {b.idx(2)}, 0x3ff8000000000000);
         return b.mul(longer, longer);
       })},
      {"complex expand", Op::Expand, {{1, 3}, {1, 3}}, ofOne([](Builder &b, UOpRef z) {
         UOpRef many = b.expand(z, {b.idx(2), b.idx(3)});
         return b.mul(many, many);
       })},
      {"complex window", Op::Window, {{7}, {7}}, ofOne([](Builder &b, UOpRef z) {
         UOpRef w = b.window(z, 0, 3, 2, 1);
         return b.mul(w, w);
       })},
      {"complex sum", Op::Reduce, matrix,
       ofOne([](Builder &b, UOpRef z) { return b.reduce(ReduceKind::Sum, b.mul(z, z), {1}); })},
      {"complex prod",
       Op::Reduce,
       matrix,
       ofOne([](Builder &b, UOpRef z) { return b.reduce(ReduceKind::Prod, z, {1}); }),
       -2,
       2,
       {{0.5, 1, 0, -1, 2, 0, 1, 0.5, 0, 1, 1, 0}}},
      {"complex cumsum", Op::Cumulate, matrix,
       ofOne([](Builder &b, UOpRef z) { return b.cumulate(CumulateKind::Sum, b.mul(z, z), 1); })},
      {"complex cumprod", Op::Cumulate, matrix,
       ofOne([](Builder &b, UOpRef z) { return b.cumulate(CumulateKind::Prod, z, 1); })},
      {"complex matmul",
       Op::Contract,
       {{2, 3}, {2, 3}, {3, 2}, {3, 2}},
       [](Builder &b, Sources x) { return parts(b, b.matmul(b.complex(x[0], x[1]), b.complex(x[2], x[3]))); }},
      {"complex gather", Op::Gather, one, ofOne([](Builder &b, UOpRef z) {
         UOpRef at =
             b.bin(Op::Rem, b.mul(b.iota(DType::I64, {b.idx(6)}, 0), b.litInt(DType::I64, 3)), b.litInt(DType::I64, 4));
         UOpRef y = b.gather(z, at, 0);
         return b.mul(y, y);
       })},
      {"complex scatter", Op::Scatter, two, ofTwo([](Builder &b, UOpRef z, UOpRef w) {
         UOpRef at =
             b.bin(Op::Rem, b.mul(b.iota(DType::I64, {b.idx(4)}, 0), b.litInt(DType::I64, 2)), b.litInt(DType::I64, 4));
         UOpRef y = b.scatter(ScatterKind::Add, z, at, w, 0);
         return b.mul(y, b.scatter(ScatterKind::Set, w, at, z, 0));
       })},
      {"complex cast",
       Op::Cast,
       {{3}, {3}},
       [](Builder &b, Sources x) { return parts(b, b.mul(b.cast(x[0], DType::C128), b.complex(x[0], x[1]))); }},
      {"complex scan", Op::Scan, {{3, 2}, {3, 2}, {1, 2}, {1, 2}}, ofTwo([](Builder &b, UOpRef z, UOpRef w) {
         return recurrence(b, z, w);
       })},
      {"complex cond", Op::Cond, two, ofTwo([](Builder &b, UOpRef z, UOpRef w) { return branch(b, z, w); }), 0.5, 2},
      {"a complex derivative that is declared", Op::WithGradient, one,
       ofOne([](Builder &b, UOpRef z) { return b.mul(declared(b, z), z); })},
  };
}
