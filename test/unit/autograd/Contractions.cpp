//===- Contractions.cpp: cases of contract ---------------------------------===//
#include "Check.h"

using namespace astra;
using namespace astra::test;
using Sources = llvm::ArrayRef<UOpRef>;

namespace {
using Terms = llvm::SmallVector<std::pair<int64_t, int64_t>, 2>;
AffineForm form(Terms terms, int64_t constant = 0, int64_t divisor = 1) { return {terms, constant, divisor}; }
AffineForm label(int64_t l) { return form({{l, 1}}); }

/// A contract with constant extents.
Case contraction(std::string name, std::vector<std::vector<int64_t>> shapes, ContractSpec s,
                 std::vector<int64_t> extents, std::vector<int64_t> bounds = {}) {
  return {std::move(name), Op::Contract, std::move(shapes), [=](Builder &b, Sources x) {
            llvm::SmallVector<UOpRef, 8> e, d;
            for (int64_t v : extents) e.push_back(b.idx(v));
            for (int64_t v : bounds) d.push_back(b.idx(v));
            return b.contract(s, x[0], x[1], e, d);
          }};
}
ContractSpec spec(int64_t kept, int64_t reduced, llvm::SmallVector<AffineForm, 4> a, llvm::SmallVector<AffineForm, 4> b,
                  llvm::SmallVector<AffineForm, 1> domain = {}) {
  ContractSpec s;
  s.kept = kept, s.reduced = reduced, s.a = std::move(a), s.b = std::move(b), s.domain = std::move(domain);
  return s;
}
} // namespace

std::vector<Case> test::contractCases() {
  std::vector<Case> cases = {
      {"matmul", Op::Contract, {{2, 3}, {3, 4}}, [](Builder &b, Sources x) { return b.matmul(x[0], x[1]); }},
      {"batched matmul",
       Op::Contract,
       {{2, 2, 3}, {2, 3, 2}},
       [](Builder &b, Sources x) { return b.matmul(x[0], x[1]); }},
      {"matmul with itself", Op::Contract, {{3, 3}}, [](Builder &b, Sources x) { return b.matmul(x[0], x[0]); }},
  };
  // labels of a convolution in one axis: n, o, oh; kh, i
  auto convolution = [&](std::string name, int64_t h, int64_t oh, int64_t kh, int64_t stride, int64_t dilation,
                         int64_t pad) {
    cases.push_back(contraction(
        "convolution, " + name, {{2, 2, h}, {3, 2, kh}},
        spec(3, 2, {label(0), label(4), form({{2, stride}, {3, dilation}}, -pad)}, {label(1), label(4), label(3)}),
        {2, 3, oh, kh, 2}));
  };
  convolution("plain", 5, 3, 3, 1, 1, 0);
  convolution("padded", 4, 4, 3, 1, 1, 1);
  convolution("stride 2", 7, 3, 3, 2, 1, 0);
  convolution("stride 2, an element left out", 6, 3, 2, 2, 1, 0);
  convolution("stride 3 beyond the kernel, padded", 7, 3, 2, 3, 1, 1);
  convolution("dilation 2", 7, 3, 3, 1, 2, 0);
  convolution("stride 2, dilation 3, padded", 8, 4, 3, 2, 3, 2);
  // transposed: out[oh] = sum x[(oh + pad - kh) / stride] w[kh]
  auto transposed = [&](std::string name, int64_t h, int64_t oh, int64_t kh, int64_t stride, int64_t dilation,
                        int64_t pad) {
    cases.push_back(
        contraction("transposed convolution, " + name, {{2, h}, {2, 3, kh}},
                    spec(2, 2, {label(3), form({{1, 1}, {2, -dilation}}, pad, stride)}, {label(3), label(0), label(2)}),
                    {3, oh, kh, 2}));
  };
  transposed("stride 1", 4, 6, 3, 1, 1, 0);
  transposed("stride 2", 3, 7, 3, 2, 1, 0);
  transposed("stride 3, dilation 2, padded", 3, 8, 3, 3, 2, 1);
  // groups: channels g*2 + i; labels g, o, oh; kh, i; and depthwise
  for (int64_t part : {2, 1})
    cases.push_back(contraction(part == 2 ? "grouped convolution" : "depthwise convolution",
                                {{3 * part, 5}, {6, part, 3}},
                                spec(3, 2, {form({{0, part}, {4, 1}}), form({{2, 1}, {3, 1}}, -1)},
                                     {form({{0, 2}, {1, 1}}), label(4), label(3)}),
                                {3, 2, 5, 3, part}));
  cases.push_back(contraction("outer product", {{2}, {3}}, spec(2, 0, {label(0)}, {label(1)}), {2, 3}));
  cases.push_back(contraction("dot product", {{3}, {3}}, spec(0, 1, {label(0)}, {label(0)}), {3}));
  cases.push_back(contraction("diagonal", {{3, 3}, {3}}, spec(1, 0, {label(0), label(0)}, {label(0)}), {3}));
  cases.push_back(contraction("trace of a product", {{3, 3}, {3, 3}},
                              spec(0, 2, {label(0), label(1)}, {label(1), label(0)}), {3, 3}));
  cases.push_back(contraction("a label of neither operand", {{3}, {3}}, spec(1, 1, {label(0)}, {label(0)}), {3, 4}));
  cases.push_back(contraction("a fixed row", {{3, 2}, {2}}, spec(1, 0, {form({}, 1), label(0)}, {label(0)}), {2}));
  cases.push_back(contraction("reversed", {{4}, {4}}, spec(1, 0, {form({{0, -1}}, 3)}, {label(0)}), {4}));
  cases.push_back(contraction("every second element", {{5}, {3}}, spec(1, 0, {form({{0, 2}})}, {label(0)}), {3}));
  cases.push_back(contraction("sums of three labels", {{9}, {3, 2}},
                              spec(1, 2, {form({{0, 2}, {1, 1}, {2, 3}}, -1)}, {label(1), label(2)}), {2, 3, 2}));
  cases.push_back(contraction("a sum of reduced labels", {{5}, {3, 2}},
                              spec(0, 2, {form({{0, 1}, {1, 2}})}, {label(0), label(1)}), {3, 2}));
  cases.push_back(contraction("a sum of labels, one of them nowhere else", {{6}, {3}},
                              spec(0, 2, {form({{0, 1}, {1, 2}})}, {label(0)}), {3, 2}));
  cases.push_back(contraction("twice the same sum", {{4, 4}, {3, 2}},
                              spec(1, 1, {form({{0, 1}, {1, 1}}), form({{0, 1}, {1, 1}})}, {label(0), label(1)}),
                              {3, 2}));
  cases.push_back(contraction("two sums of the same labels", {{4, 6}, {3, 2}},
                              spec(1, 1, {form({{0, 1}, {1, 1}}), form({{0, 2}, {1, -1}}, 1)}, {label(0), label(1)}),
                              {3, 2}));
  cases.push_back(
      contraction("a quotient of a kept label", {{3}, {6}}, spec(1, 0, {form({{0, 1}}, 0, 2)}, {label(0)}), {6}));
  cases.push_back(contraction("a strided label that both use", {{7}, {8}},
                              spec(1, 1, {form({{0, 2}, {1, 1}})}, {form({{0, 3}, {1, 1}})}), {3, 2}));
  // k <= q
  cases.push_back(contraction("causal", {{3, 3}, {3, 2}},
                              spec(2, 1, {label(0), label(2)}, {label(2), label(1)}, {form({{0, 1}, {2, -1}})}),
                              {3, 2, 3}, {0}));
  cases.push_back(contraction("a domain over a strided label", {{7}, {3}},
                              spec(1, 1, {form({{0, 2}, {1, 1}})}, {label(1)}, {form({{0, -1}, {1, 1}})}), {3, 3},
                              {1}));
  return cases;
}
