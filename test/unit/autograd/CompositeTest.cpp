//===- CompositeTest.cpp: gradients of composites beside PyTorch -----------===//
// Takes:    composites.txt, which composites.py made with PyTorch in f64.
// Gives:    the check that gradients mean what people expect: 1e-12 of the greatest magnitude. The one place of this
//           folder where a tolerance between frameworks is right.
#include "Check.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <fstream>
#include <sstream>

using namespace astra;
using namespace astra::test;

namespace {
std::map<std::string, Array> numbers() {
  std::map<std::string, Array> out;
  std::ifstream file(ASTRA_SOURCE_DIR "/test/unit/autograd/composites.txt");
  for (std::string line, name; std::getline(file, line);) {
    std::istringstream words(line);
    words >> name;
    for (double v; words >> v;) out[name].push_back(v);
  }
  return out;
}
Array fixed(int64_t k, size_t count) {
  Array v;
  for (size_t i = 0; i < count; ++i) v.push_back(((i * 7919 + k * 104729 + 13) % 97) / 48.5 - 1);
  return v;
}
void expectClose(const Array &got, const Array &want, const std::string &name) {
  ASSERT_EQ(got.size(), want.size()) << name;
  double most = 1e-300;
  for (double v : want) most = std::max(most, std::fabs(v));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_LE(std::fabs(got[i] - want[i]), 1e-12 * most) << name << " element " << i;
}

struct Composite : testing::Test {
  Context c;
  Builder b{c};
  std::vector<UOpRef> x;
  std::vector<Tensor> at;

  void inputs(std::vector<std::vector<int64_t>> shapes) {
    x = arguments(b, shapes);
    for (auto [k, a] : llvm::enumerate(x)) at.push_back(given(k, a->shape));
  }
  Tensor given(int64_t k, Shape shape) {
    std::vector<int64_t> extents;
    for (UOpRef d : shape) extents.push_back(*d->constIndex());
    Tensor t{DType::F64, extents, {}};
    return tensorOf(extents, fixed(k, t.count()));
  }
  /// sum of y * fixed tensor k, which is argument k.
  UOpRef weighted(UOpRef y, int64_t k) {
    while (at.size() <= size_t(k)) at.push_back(tensorOf({}, {0})); // numbers that are not used
    at[k] = given(k, y->shape);
    return total(b.mul(y, b.arg(k, DType::F64, y->shape)));
  }
  UOpRef total(UOpRef y) {
    llvm::SmallVector<int64_t, 4> axes;
    for (unsigned i = 0; i < y->rank(); ++i) axes.push_back(i);
    return b.reduce(ReduceKind::Sum, y, axes);
  }
  UOpRef num(double v) { return b.lit(DType::F64, v); }
  UOpRef spread(UOpRef s, UOpRef like) { // of the last axis, or over it
    llvm::SmallVector<UOpRef, 4> shape(like->shape);
    shape.back() = c.index(1);
    return b.expand(b.reshape(s, shape), like->shape);
  }
  UOpRef last(ReduceKind kind, UOpRef v) { return b.reduce(kind, v, {int64_t(v->rank()) - 1}); }
  UOpRef softmax(UOpRef v) {
    UOpRef e = b.un(Op::Exp, b.sub(v, spread(last(ReduceKind::Max, v), v)));
    return b.div(e, spread(last(ReduceKind::Sum, e), v));
  }
  void check(const std::string &name, UOpRef loss) {
    auto want = numbers();
    expectClose(evaluate(loss, at)[0], want[name + ".loss"], name);
    auto got = gradient(b, loss, x, at);
    for (auto [i, g] : llvm::enumerate(got))
      expectClose(g, want[name + "." + std::to_string(i)], name + "." + std::to_string(i));
  }
};
AffineForm form(llvm::SmallVector<std::pair<int64_t, int64_t>, 2> terms, int64_t constant = 0, int64_t divisor = 1) {
  return {terms, constant, divisor};
}
AffineForm label(int64_t l) { return form({{l, 1}}); }
} // namespace

TEST_F(Composite, Convolution) { // as the importer builds it: labels n, g, o, oh, ow; kh, kw, i
  inputs({{2, 4, 7, 6}, {6, 2, 3, 3}, {6}});
  ContractSpec s;
  s.kept = 5, s.reduced = 3;
  s.a = {label(0), form({{1, 2}, {7, 1}}), form({{3, 2}, {5, 1}}, -1), form({{4, 2}, {6, 1}}, -1)};
  s.b = {form({{1, 3}, {2, 1}}), label(7), label(5), label(6)};
  llvm::SmallVector<UOpRef, 8> e;
  for (int64_t v : {2, 2, 3, 4, 3, 3, 3, 2}) e.push_back(b.idx(v));
  UOpRef y = b.reshape(b.contract(s, x[0], x[1], e), {e[0], b.idx(6), e[3], e[4]});
  y = b.add(y, b.expand(b.reshape(x[2], {b.idx(1), b.idx(6), b.idx(1), b.idx(1)}), y->shape));
  check("convolution", weighted(y, 3));
}

TEST_F(Composite, TransposedConvolution) { // labels n, o, oh, ow; kh, kw, i
  inputs({{2, 4, 3, 3}, {4, 3, 3, 3}});
  ContractSpec s;
  s.kept = 4, s.reduced = 3;
  s.a = {label(0), label(6), form({{2, 1}, {4, -1}}, 1, 2), form({{3, 1}, {5, -1}}, 1, 2)};
  s.b = {label(6), label(1), label(4), label(5)};
  llvm::SmallVector<UOpRef, 8> e;
  for (int64_t v : {2, 3, 5, 5, 3, 3, 4}) e.push_back(b.idx(v));
  check("transposed", weighted(b.contract(s, x[0], x[1], e), 3));
}

TEST_F(Composite, Pooling) {
  inputs({{2, 3, 6, 6}});
  auto windows = [&](int64_t size) { return b.window(b.window(x[0], 2, size, 2, 1), 3, size, 2, 1); };
  UOpRef max = b.reduce(ReduceKind::Max, windows(3), {4, 5});
  UOpRef mean = b.div(b.reduce(ReduceKind::Sum, windows(2), {4, 5}, true), num(4));
  check("pooling", b.add(weighted(max, 3), weighted(mean, 4)));
}

TEST_F(Composite, Softmax) {
  inputs({{3, 5}});
  check("softmax", weighted(softmax(x[0]), 3));
}

TEST_F(Composite, CrossEntropy) {
  inputs({{3, 5}, {3, 5}});
  UOpRef z = b.sub(x[0], spread(last(ReduceKind::Max, x[0]), x[0]));
  UOpRef logp = b.sub(z, spread(b.un(Op::Log, last(ReduceKind::Sum, b.un(Op::Exp, z))), z));
  check("cross_entropy", b.div(b.un(Op::Neg, total(b.mul(softmax(x[1]), logp))), num(3)));
}

TEST_F(Composite, LayerNorm) {
  inputs({{4, 6}, {6}, {6}});
  auto mean = [&](UOpRef v) { return spread(b.div(last(ReduceKind::Sum, v), num(6)), v); };
  UOpRef d = b.sub(x[0], mean(x[0]));
  UOpRef y = b.div(d, b.un(Op::Sqrt, b.add(mean(b.mul(d, d)), num(1e-5))));
  y = b.add(b.mul(y, b.broadcastTo(x[1], y->shape)), b.broadcastTo(x[2], y->shape));
  check("layer_norm", weighted(y, 3));
}

// Scores and the softmax's sum under a domain, keys not beyond the query; the values' contract too.
TEST_F(Composite, CausalAttention) {
  inputs({{2, 4, 3}, {2, 4, 3}, {2, 4, 3}});
  llvm::SmallVector<UOpRef, 8> e;
  for (int64_t v : {2, 4, 4, 3}) e.push_back(b.idx(v));
  ContractSpec s; // h, q, k; d
  s.kept = 3, s.reduced = 1;
  s.a = {label(0), label(1), label(3)}, s.b = {label(0), label(2), label(3)};
  UOpRef scores = b.mul(b.contract(s, x[0], x[1], e), num(1 / std::sqrt(3.0)));
  AffineForm causal = form({{1, 1}, {2, -1}});
  auto reduce = [&](ReduceKind kind, ReduceOrder order, UOpRef v) {
    return b.reduce({kind, order, {2}, {causal}}, v, b.idx(0));
  };
  UOpRef exps = b.un(Op::Exp, b.sub(scores, spread(reduce(ReduceKind::Max, ReduceOrder::Exact, scores), scores)));
  UOpRef p = b.div(exps, spread(reduce(ReduceKind::Sum, ReduceOrder::Lane64, exps), exps));
  ContractSpec v; // h, q, d; k
  v.kept = 3, v.reduced = 1;
  v.a = {label(0), label(1), label(3)}, v.b = {label(0), label(3), label(2)};
  v.domain = {form({{1, 1}, {3, -1}})};
  check("attention", weighted(b.contract(v, p, x[2], {e[0], e[1], e[3], e[2]}, b.idx(0)), 3));
}

TEST_F(Composite, Activations) {
  inputs({{8}});
  UOpRef v = x[0], half = num(0.5);
  UOpRef gelu = b.mul(b.mul(v, half), b.add(b.un(Op::Erf, b.mul(v, num(std::sqrt(0.5)))), num(1)));
  UOpRef inner = b.mul(b.add(v, b.mul(b.mul(b.mul(v, v), v), num(0.044715))), num(std::sqrt(2 / M_PI)));
  UOpRef tanhGelu = b.mul(b.mul(v, half), b.add(b.un(Op::Tanh, inner), num(1)));
  UOpRef silu = b.mul(v, b.un(Op::Sigmoid, v)), softplus = b.un(Op::Log1p, b.un(Op::Exp, v));
  check("gelu", weighted(b.add(b.add(gelu, tanhGelu), b.add(silu, softplus)), 3));
}

TEST_F(Composite, SortAndRunningSums) {
  inputs({{3, 5}});
  UOpRef sorted = b.pick(x[0], b.argSort(x[0], 1, true), 1);
  UOpRef sums = b.cumulate(CumulateKind::Sum, x[0], 1), products = b.cumulate(CumulateKind::Prod, x[0], 1);
  check("sort", b.add(b.add(weighted(sorted, 3), weighted(sums, 4)), weighted(products, 5)));
}
