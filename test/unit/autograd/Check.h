//===- Check.h: derivatives against finite differences ---------------------===//
// Takes:    a function of f64 tensors as a graph, points.
// Gives:    the check that every case of this folder goes through, at each point: forward mode against differences of
//           the evaluator's values, <x', v> = <u, y'> between the modes, and second derivatives the same way: the
//           gradient's differences, forward over reverse against reverse over reverse and forward over forward; and
//           for all points at once, that vmap of the derivatives has the bits of a loop over them, and that the
//           gradient of vmap agrees with that loop.
// Keeps:    points, directions and cotangents are functions of the case's name.
#pragma once
#include "astra/Autograd/Autograd.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace astra::test {

using Array = std::vector<double>;

struct Case {
  std::string name;
  Op row; // the row under test
  std::vector<std::vector<int64_t>> shapes;
  std::function<UOpRef(Builder &b, llvm::ArrayRef<UOpRef> x)> build;
  double lo = -2, hi = 2;          // elements are drawn from here
  std::vector<Array> special = {}; // points: a value for each source, repeated over its elements, in their order
  bool smooth = true;              // false: no differences, the modes against each other alone
  bool twice = true;               // whether second derivatives are right there
};

/// What one case measured: the greatest difference, relative to the greatest magnitude in the tensors compared or 1.
struct Errors {
  double first = 0, second = 0;
};
Errors check(const Case &c);

std::vector<Case> elementwiseCases(), structureCases(), contractCases(), indexingCases(), controlCases(),
    complexCases();
std::vector<Case> allCases();

Tensor tensorOf(std::vector<int64_t> shape, const Array &v);
Array valuesOf(const Tensor &t);
/// The values of f64 nodes; arguments are x[0], x[1], ...
std::vector<Array> evaluate(llvm::ArrayRef<UOpRef> roots, llvm::ArrayRef<Tensor> x);
/// f64 arguments number `first`, `first + 1` ... of these shapes.
std::vector<UOpRef> arguments(Builder &b, const std::vector<std::vector<int64_t>> &shapes, int64_t first = 0);

/// The gradient of sum(y * cotangent) (ones where it is empty) for small hand-made checks.
std::vector<Array> gradient(Builder &b, UOpRef y, llvm::ArrayRef<UOpRef> wrt, llvm::ArrayRef<Tensor> x);

} // namespace astra::test
