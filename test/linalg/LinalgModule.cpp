//===- LinalgModule.cpp: a module of one composite of linear algebra -------===//
// Takes:    FUNCTION TYPE SHAPE... [gradient], as `linalg-module cholesky f64 n,8,8`: the shape of each operand, in
//           which a letter is a dim in 1..1024.
// Gives:    on standard output a module in the text form whose entry @main has inputs x0, x1 ... and outputs y0, y1
//           ...; with `gradient` also @loss, the real part of the sum of its outputs times further inputs w0, w1 ...,
//           and the directive that asks for its gradient by x0, x1 ...
// Does not: compute; test/linalg/run.py compiles and runs what it prints.
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Fourier.h"
#include "astra/Compose/Linalg.h"
#include "astra/Compose/Matrix.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <cstdio>
#include <functional>

using namespace astra;
using namespace astra::compose;

namespace {

class Front : public Composer {
public:
  Front(Context &c, bool gradients) : Composer(c), gradients(gradients) {}
  bool wantsGradients() const override { return gradients; }
  bool gradients;
};

using Values = std::vector<UOpRef>;
using Composite = std::function<Values(Composer &, const Values &)>;

Values listOf(const LU &f) { return {f.packed, f.pivots, f.order, f.info}; }

const std::map<std::string, Composite> functions = {
    {"cholesky",
     [](Composer &b, const Values &x) {
       auto r = cholesky(b, x[0]);
       return Values{r.factor, r.info};
     }},
    {"cholesky_upper",
     [](Composer &b, const Values &x) {
       auto r = cholesky(b, x[0], true);
       return Values{r.factor, r.info};
     }},
    {"lu_factor", [](Composer &b, const Values &x) { return listOf(luFactor(b, x[0])); }},
    {"lu",
     [](Composer &b, const Values &x) {
       auto r = lu(b, x[0]);
       return Values{r.p, r.l, r.u, r.info};
     }},
    {"qr",
     [](Composer &b, const Values &x) {
       auto r = qr(b, x[0]);
       return Values{r.q, r.r};
     }},
    {"qr_complete",
     [](Composer &b, const Values &x) {
       auto r = qr(b, x[0], true);
       return Values{r.q, r.r};
     }},
    {"solve",
     [](Composer &b, const Values &x) {
       auto r = solve(b, x[0], x[1]);
       return Values{r.value, r.info};
     }},
    {"inverse",
     [](Composer &b, const Values &x) {
       auto r = inverse(b, x[0]);
       return Values{r.value, r.info};
     }},
    {"lu_solve",
     [](Composer &b, const Values &x) {
       LU f = luFactor(b, x[0]);
       return Values{luSolve(b, f.packed, f.order, x[1]), f.order,
                     orderOfPivots(b, f.pivots, *x[0]->shape.back()->constIndex())};
     }},
    {"cholesky_solve",
     [](Composer &b, const Values &x) {
       return Values{choleskySolve(b, cholesky(b, x[0]).factor, x[1]),
                     choleskySolve(b, cholesky(b, x[0], true).factor, x[1], true)};
     }},
    {"least_squares",
     [](Composer &b, const Values &x) {
       auto r = leastSquares(b, x[0], x[1]);
       return Values{r.value, r.residual, r.rank, r.singular};
     }},
    {"determinant", [](Composer &b, const Values &x) { return Values{determinant(b, x[0])}; }},
    {"slogdet",
     [](Composer &b, const Values &x) {
       auto r = logDeterminant(b, x[0]);
       return Values{r.sign, r.logarithm};
     }},
    {"power3", [](Composer &b, const Values &x) { return Values{matrixPower(b, x[0], 3)}; }},
    {"power-2", [](Composer &b, const Values &x) { return Values{matrixPower(b, x[0], -2)}; }},
    {"power0", [](Composer &b, const Values &x) { return Values{matrixPower(b, x[0], 0)}; }},
    {"expm", [](Composer &b, const Values &x) { return Values{matrixExp(b, x[0])}; }},
    {"eigh",
     [](Composer &b, const Values &x) {
       auto r = eigh(b, x[0]);
       return Values{r.values, r.vectors, r.info};
     }},
    {"eigh_upper",
     [](Composer &b, const Values &x) {
       auto r = eigh(b, x[0], true);
       return Values{r.values, r.vectors, r.info};
     }},
    {"eig",
     [](Composer &b, const Values &x) {
       auto r = eig(b, x[0]);
       return Values{r.values, r.vectors, r.info};
     }},
    {"eigvals",
     [](Composer &b, const Values &x) {
       auto r = eig(b, x[0], false);
       return Values{r.values, r.info};
     }},
    {"eigvalsh", [](Composer &b, const Values &x) { return Values{eigvalsh(b, x[0])}; }},
    {"svd",
     [](Composer &b, const Values &x) {
       auto r = svd(b, x[0]);
       return Values{r.u, r.s, r.vh, r.info};
     }},
    {"svd_full",
     [](Composer &b, const Values &x) {
       auto r = svd(b, x[0], true);
       return Values{r.u, r.s, r.vh, r.info};
     }},
    {"svdvals", [](Composer &b, const Values &x) { return Values{svdvals(b, x[0])}; }},
    {"pinv", [](Composer &b, const Values &x) { return Values{pinv(b, x[0])}; }},
    {"rank", [](Composer &b, const Values &x) { return Values{matrixRank(b, x[0])}; }},
    {"norms",
     [](Composer &b, const Values &x) {
       Values r;
       for (MatrixNorm k : {MatrixNorm::Frobenius, MatrixNorm::Nuclear, MatrixNorm::Spectral, MatrixNorm::LeastSingular,
                            MatrixNorm::One, MatrixNorm::LeastOne, MatrixNorm::Infinity, MatrixNorm::LeastInfinity})
         r.push_back(matrixNorm(b, x[0], k));
       return r;
     }},
    {"vector_norms",
     [](Composer &b, const Values &x) {
       Values r;
       for (double order : {2.0, 1.0, 0.0, 3.0, -1.0, double(INFINITY), -double(INFINITY)})
         r.push_back(vectorNorm(b, x[0], {-1}, order));
       return r;
     }},
    {"outer", [](Composer &b, const Values &x) { return Values{outer(b, x[0], x[1])}; }},
    {"vecdot", [](Composer &b, const Values &x) { return Values{vecdot(b, x[0], x[1])}; }},
    {"cross", [](Composer &b, const Values &x) { return Values{cross(b, x[0], x[1])}; }},
    {"tensordot", [](Composer &b, const Values &x) { return Values{tensordot(b, x[0], x[1], {1, 2}, {1, 0})}; }},
    {"kron", [](Composer &b, const Values &x) { return Values{kron(b, x[0], x[1])}; }},
    {"diagonal",
     [](Composer &b, const Values &x) {
       return Values{diagonal(b, x[0]), diagonal(b, x[0], 1), diagonal(b, x[0], -2)};
     }},
    {"fft",
     [](Composer &b, const Values &x) {
       Values r;
       for (FourierNorm n : {FourierNorm::Backward, FourierNorm::Forward, FourierNorm::Orthogonal}) {
         r.push_back(fft(b, x[0], {-1, nullptr, n}));
         r.push_back(ifft(b, x[0], {0, nullptr, n}));
       }
       r.push_back(fftn(b, x[0]));
       r.push_back(ifftn(b, x[0], {{}, {b.idx(5), b.idx(8)}}));
       r.push_back(irfft(b, x[0]));
       r.push_back(irfftn(b, x[0], {{}, {b.idx(6), b.idx(7)}, FourierNorm::Orthogonal}));
       r.push_back(hfft(b, x[0], {-1, nullptr, FourierNorm::Forward}));
       r.push_back(fftshift(b, x[0]));
       r.push_back(ifftshift(b, x[0], {-1}));
       return r;
     }},
    {"rfft",
     [](Composer &b, const Values &x) {
       UOpRef n = x[0]->shape.back();
       return Values{rfft(b, x[0]),
                     rfft(b, x[0], {-1, b.idx(3), FourierNorm::Orthogonal}),
                     rfftn(b, x[0]),
                     ihfft(b, x[0]),
                     fft(b, x[0]),
                     fftfreq(b, n, 0.5, x[0]->dtype),
                     rfftfreq(b, n, 0.5, x[0]->dtype)};
     }},
    {"trace", [](Composer &b, const Values &x) { return Values{trace(b, x[0]), trace(b, x[0], 1)}; }},
};

/// "solve_" with letters of TriangularOptions: r, u, t, i (unit).
std::optional<Composite> triangular(llvm::StringRef name) {
  if (!name.consume_front("triangular_")) return std::nullopt;
  TriangularOptions o{name.contains('r'), name.contains('u'), name.contains('t'), name.contains('i')};
  return [o](Composer &b, const Values &x) { return Values{triangularSolve(b, x[0], x[1], o)}; };
}

int refuse(const llvm::Twine &why) {
  std::fprintf(stderr, "linalg-module: %s\n", why.str().c_str());
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<llvm::StringRef> words(argv + 1, argv + argc);
  bool gradient = !words.empty() && words.back() == "gradient";
  if (gradient) words.pop_back();
  if (words.size() < 3) return refuse("expected FUNCTION TYPE SHAPE... [gradient]");
  auto named = functions.find(words[0].str());
  std::optional<Composite> function = triangular(words[0]);
  if (named != functions.end()) function = named->second;
  if (!function) return refuse("no function '" + words[0] + "'");
  std::optional<DType> type;
  for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128})
    if (words[1] == info(t).text) type = t;
  if (!type) return refuse("no type '" + words[1] + "'");

  Module m;
  m.name = "linalg";
  Front b(m.ctx(), gradient);
  Entry main;
  main.name = "main";
  Values x;
  for (llvm::StringRef text : llvm::ArrayRef(words).drop_front(2)) {
    Dims dims;
    llvm::SmallVector<llvm::StringRef> parts;
    if (text != "-") text.split(parts, ',');
    for (llvm::StringRef part : parts) {
      int64_t extent = 0;
      if (!part.getAsInteger(10, extent)) {
        dims.push_back(b.idx(extent));
        continue;
      }
      dims.push_back(b.b.dim(part, 1, 1024));
      if (!llvm::is_contained(m.dims, dims.back())) m.dims.push_back(dims.back());
    }
    x.push_back(b.b.arg(x.size(), *type, dims));
    main.inputs.push_back({"x" + std::to_string(x.size() - 1), x.back()});
  }
  Values y = (*function)(b, x);
  for (UOpRef v : y) {
    llvm::Expected<UOpRef> value = composed(b, v);
    if (!value) return refuse(llvm::toString(value.takeError()));
    main.outputs.push_back({"y" + std::to_string(main.outputs.size()), *value});
  }
  m.entries.push_back(main);
  if (gradient) {
    Entry loss;
    loss.name = "loss";
    loss.inputs = main.inputs;
    UOpRef sum = nullptr;
    for (UOpRef v : y) {
      if (!isFloat(v->dtype) && !isComplex(v->dtype)) continue;
      UOpRef w = b.b.arg(loss.inputs.size(), v->dtype, v->shape);
      loss.inputs.push_back({"w" + std::to_string(loss.inputs.size() - x.size()), w});
      Ints all = axesBetween(0, v->rank());
      UOpRef part = b.squeeze(b.reduce(ReduceKind::Sum, realPart(b, b.bin(Op::Mul, v, w)), all), all);
      sum = sum ? b.bin(Op::Add, sum, part) : part;
    }
    loss.outputs.push_back({"loss", sum});
    m.entries.push_back(loss);
    Directive d;
    d.transform = Transform::Grad;
    d.name = "gradient";
    d.of = "loss";
    for (const Value &v : main.inputs) d.wrt.push_back({false, v.name});
    m.directives.push_back(d);
  }
  m.params = std::move(b.params);
  if (llvm::Error e = verify(m, Stage::Graph)) return refuse(llvm::toString(std::move(e)));
  std::string text = print(m);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
