//===- Check.cpp: derivatives against finite differences -------------------===//
#include "Check.h"
#include "astra/Autograd/Vmap.h"
#include "astra/Numerics/EvalFunctions.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>

using namespace astra;
using namespace astra::test;

Tensor test::tensorOf(std::vector<int64_t> shape, const Array &v) {
  Tensor t{DType::F64, std::move(shape), std::vector<uint8_t>(v.size() * 8)};
  if (!v.empty()) memcpy(t.bytes.data(), v.data(), t.bytes.size());
  return t;
}
Array test::valuesOf(const Tensor &t) {
  Array v(t.bytes.size() / 8);
  if (!v.empty()) memcpy(v.data(), t.bytes.data(), t.bytes.size());
  return v;
}
std::vector<Array> test::evaluate(llvm::ArrayRef<UOpRef> roots, llvm::ArrayRef<Tensor> x) {
  EvalOptions options;
  options.function = evalFunction;
  auto r = evalNodes(roots, {x.vec(), {}, {}, {}}, options);
  std::vector<Array> out(roots.size());
  if (!r) {
    ADD_FAILURE() << llvm::toString(r.takeError());
    return out;
  }
  for (size_t i = 0; i < r->size(); ++i) out[i] = valuesOf((*r)[i]);
  return out;
}
std::vector<UOpRef> test::arguments(Builder &b, const std::vector<std::vector<int64_t>> &shapes, int64_t first) {
  std::vector<UOpRef> out;
  for (const auto &shape : shapes) {
    llvm::SmallVector<UOpRef, 4> s;
    for (int64_t d : shape) s.push_back(b.idx(d));
    out.push_back(b.arg(first++, DType::F64, s));
  }
  return out;
}
std::vector<Array> test::gradient(Builder &b, UOpRef y, llvm::ArrayRef<UOpRef> wrt, llvm::ArrayRef<Tensor> x) {
  auto d = vjp(b.c, y, b.splat(b.lit(y->dtype, 1), y->shape), wrt);
  if (!d) {
    ADD_FAILURE() << llvm::toString(d.takeError());
    return std::vector<Array>(wrt.size());
  }
  return evaluate(d->derivatives, x);
}

namespace {
/// A fixed sequence in 0 .. 1.
struct Draw {
  uint64_t state;
  double operator()() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return double(state >> 11) * 0x1p-53;
  }
};
using Point = std::vector<Array>; // one array a source

double dot(const Point &a, const Point &b) {
  double s = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j) s += a[i][j] * b[i][j];
  return s;
}
double magnitude(const Point &a) {
  double m = 1;
  for (const Array &x : a)
    for (double v : x) m = std::max(m, std::fabs(v));
  return m;
}
double difference(const Point &got, const Point &want) {
  double m = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].size(), want[i].size());
    for (size_t j = 0; j < std::min(got[i].size(), want[i].size()); ++j) {
      double d = std::fabs(got[i][j] - want[i][j]);
      m = std::isnan(d) ? INFINITY : std::max(m, d);
    }
  }
  return m / magnitude(want);
}

class Checker {
public:
  explicit Checker(const Case &k) : k(k) {
    size_t n = k.shapes.size();
    x = arguments(b, k.shapes), v = arguments(b, k.shapes, n), w = arguments(b, k.shapes, 2 * n);
    y = k.build(b, x);
    u = b.arg(3 * n, DType::F64, y->shape);
    tangent = get(jvp(b.c, y, x, v));
    gradient = get(vjp(b.c, y, u, x));
    if (gradient.empty() || !k.twice) return;
    forwardReverse = get(jvp(b.c, gradient, x, w));
    reverseReverse = get(vjp(b.c, gradient, v, x));
    forwardForward = get(jvp(b.c, tangent, x, w));
  }

  Errors run() {
    Errors e;
    if (tangent.empty() || gradient.empty()) return e;
    std::vector<std::vector<Tensor>> points;
    Draw draw{1};
    for (char ch : k.name) draw.state = draw.state * 31 + uint8_t(ch);
    auto random = [&](double lo, double hi) {
      Point p;
      for (UOpRef a : x) {
        int64_t count = 1;
        for (UOpRef d : a->shape) count *= *d->constIndex();
        Array values(count);
        for (double &t : values) t = lo + (hi - lo) * draw();
        p.push_back(values);
      }
      return p;
    };
    for (size_t trial = 0; trial < 3 + k.special.size(); ++trial) {
      Point at = random(k.lo, k.hi);
      if (trial >= 3) {
        size_t next = 0;
        const Array &s = k.special[trial - 3];
        for (Array &values : at)
          for (double &t : values) t = s[next++ % s.size()];
      }
      Point dv = random(-1, 1), dw = random(-1, 1);
      points.push_back(point(at, dv, dw, draw, e));
    }
    std::vector<UOpRef> derivatives = gradient;
    llvm::append_range(derivatives, tangent);
    llvm::append_range(derivatives, forwardReverse);
    batch(derivatives, points);
    return e;
  }

private:
  const Case &k;
  Context c;
  Builder b{c};
  std::vector<UOpRef> x, v, w;
  UOpRef y, u;
  std::vector<UOpRef> tangent, gradient, forwardReverse, reverseReverse, forwardForward;

  std::vector<UOpRef> get(llvm::Expected<Derivatives> d) {
    if (d) return d->derivatives;
    ADD_FAILURE() << k.name << ": " << llvm::toString(d.takeError());
    return {};
  }
  std::vector<Tensor> inputs(const Point &at, const Point &dv, const Point &dw, const Array &du) {
    std::vector<Tensor> in;
    for (const Point *p : {&at, &dv, &dw})
      for (size_t i = 0; i < p->size(); ++i) in.push_back(tensorOf(k.shapes[i], (*p)[i]));
    std::vector<int64_t> shape;
    for (UOpRef d : y->shape) shape.push_back(*d->constIndex());
    in.push_back(tensorOf(shape, du));
    return in;
  }
  static Point moved(const Point &at, const Point &d, double h) {
    Point p = at;
    for (size_t i = 0; i < p.size(); ++i)
      for (size_t j = 0; j < p[i].size(); ++j) p[i][j] += h * d[i][j];
    return p;
  }
  /// The derivative of f along d by central differences, extrapolated once.
  template <class F> static Point differences(F f, const Point &at, const Point &d) {
    auto central = [&](double h) {
      Point hi = f(moved(at, d, h)), lo = f(moved(at, d, -h));
      for (size_t i = 0; i < hi.size(); ++i)
        for (size_t j = 0; j < hi[i].size(); ++j) hi[i][j] = (hi[i][j] - lo[i][j]) / (2 * h);
      return hi;
    };
    Point wide = central(1e-3), narrow = central(5e-4);
    for (size_t i = 0; i < wide.size(); ++i)
      for (size_t j = 0; j < wide[i].size(); ++j) narrow[i][j] = (4 * narrow[i][j] - wide[i][j]) / 3;
    return narrow;
  }
  void equal(double a, double b, double scale, const char *what) {
    EXPECT_LE(std::fabs(a - b), 1e-11 * std::max(1.0, scale)) << k.name << ": " << what << ": " << a << " and " << b;
  }

  /// All points at once: vmap of the derivatives has the bits of the loop; the gradient of vmap is the loop's.
  void batch(const std::vector<UOpRef> &derivatives, const std::vector<std::vector<Tensor>> &points) {
    std::vector<UOpRef> leaves = x, all;
    for (auto *list : {&v, &w}) llvm::append_range(leaves, *list);
    leaves.push_back(u);
    std::vector<Tensor> in;
    UOpRef size = b.idx(points.size());
    for (size_t i = 0; i < leaves.size(); ++i) {
      llvm::SmallVector<UOpRef, 4> shape{size};
      llvm::append_range(shape, leaves[i]->shape);
      all.push_back(b.arg(i, DType::F64, shape));
      in.push_back(points[0][i]);
      in[i].shape.insert(in[i].shape.begin(), points.size());
      for (size_t p = 1; p < points.size(); ++p) llvm::append_range(in[i].bytes, points[p][i].bytes);
    }
    llvm::ArrayRef<UOpRef> before(leaves), now(all);
    std::vector<Array> loop;
    for (const auto &p : points) {
      std::vector<Array> one = evaluate(derivatives, p);
      loop.resize(one.size());
      for (size_t i = 0; i < one.size(); ++i) llvm::append_range(loop[i], one[i]);
    }
    auto many = vmap(c, derivatives, before, now, size);
    auto values = vmap(c, y, before.take_front(x.size()), now.take_front(x.size()), size);
    if (!isBatchable(k.row)) {
      EXPECT_FALSE(bool(many) || bool(values)) << k.name << ": vmap says that it has no row";
      llvm::consumeError(many.takeError()), llvm::consumeError(values.takeError());
      return;
    }
    if (!many || !values) {
      ADD_FAILURE() << k.name << ": " << llvm::toString(llvm::joinErrors(many.takeError(), values.takeError()));
      return;
    }
    std::vector<Array> got = evaluate(*many, in);
    for (size_t i = 0; i < loop.size(); ++i) {
      EXPECT_EQ(got[i].size(), loop[i].size()) << k.name;
      for (size_t j = 0; j < std::min(got[i].size(), loop[i].size()); ++j)
        EXPECT_TRUE(memcmp(&got[i][j], &loop[i][j], 8) == 0 || (std::isnan(got[i][j]) && std::isnan(loop[i][j])))
            << k.name << ": vmap of derivative " << i << ", element " << j << ": " << got[i][j] << " and "
            << loop[i][j];
    }
    std::vector<UOpRef> other = get(vjp(c, *values, now.back(), now.take_front(x.size())));
    if (other.empty()) return;
    got = evaluate(other, in);
    loop.resize(got.size());
    EXPECT_LE(difference(got, loop), 1e-13) << k.name << ": the gradient of vmap and the loop's";
  }

  /// Gives the values of the arguments.
  std::vector<Tensor> point(const Point &at, const Point &dv, const Point &dw, Draw &draw, Errors &e) {
    Array du;
    int64_t count = 1;
    for (UOpRef d : y->shape) count *= *d->constIndex();
    for (int64_t i = 0; i < count; ++i) du.push_back(2 * draw() - 1);
    auto in = inputs(at, dv, dw, du);
    auto of = [&](llvm::ArrayRef<UOpRef> roots) {
      return [&, roots](const Point &p) { return evaluate(roots, inputs(p, dv, dw, du)); };
    };
    Point t = evaluate(tangent, in), g = evaluate(gradient, in);
    double scale = magnitude(t) * magnitude({du}) * count;
    equal(dot(t, {du}), dot(g, dv), scale, "<u, y'> and <x', v>");
    if (k.smooth) {
      double error = difference(t, differences(of(y), at, dv));
      EXPECT_LE(error, 1e-8) << k.name << ": forward mode against differences";
      e.first = std::max(e.first, error);
    }
    if (!k.twice) return in;
    Point fr = evaluate(forwardReverse, in), rr = evaluate(reverseReverse, in), ff = evaluate(forwardForward, in);
    scale = std::max({magnitude(fr), magnitude(rr), magnitude(ff)}) * (count + fr.size() * 8);
    equal(dot(fr, dv), dot(rr, dw), scale, "forward over reverse and reverse over reverse");
    equal(dot(fr, dv), dot(ff, {du}), scale, "forward over reverse and forward over forward");
    if (k.smooth) {
      double error = difference(fr, differences(of(gradient), at, dw));
      EXPECT_LE(error, 1e-7) << k.name << ": second derivatives against differences";
      e.second = std::max(e.second, error);
    }
    return in;
  }
};
} // namespace

Errors test::check(const Case &c) { return Checker(c).run(); }

std::vector<Case> test::allCases() {
  std::vector<Case> all;
  for (auto *list : {elementwiseCases, structureCases, contractCases, indexingCases, controlCases, complexCases})
    llvm::append_range(all, list());
  return all;
}
