//===- Known.h: integer tensors known while importing ----------------------===//
// Takes:    nodes of the graph being built.
// Gives:    the elements of a small integer tensor as symbolic integers: shape arithmetic, folded. What follows from
//           constants alone is computed by the reference evaluator, whatever the ops (Settled.h).
// Keeps:    answers per node, so that a long chain of shape arithmetic costs linear time. Floats are followed as long
// as
//           they are exact fractions with a power of two below, or one quotient that is rounded to an integer next.
// Does not: change the graph.
// A model computes shapes with ordinary ops (Shape, Gather, Mul, Concat); the importer lowers them like any others, and
// where an op needs a shape it asks here.
#pragma once
#include "astra/IR/Module.h"
#include <functional>
#include <unordered_map>

namespace astra::onnx {

class Known {
public:
  using Elements = std::vector<UOpRef>;

  /// `data` gives the bytes of a parameter, or nothing.
  Known(Context &c, std::function<const std::vector<uint8_t> *(UOpRef param)> data) : c(c), data(std::move(data)) {}

  /// The elements of x in row-major order, 0 or 1 for bool. Nothing when x is not of an integer type or bool, its shape
  /// is not constant, it has more than 4096 elements, or an element depends on what is not known before the run. The
  /// pointer holds until the next call.
  const Elements *elements(UOpRef x);

  /// The same for a float type too, where every element is an integer.
  const Elements *numbers(UOpRef x);

  /// The single element of x, of a constant tensor with exactly one.
  std::optional<int64_t> constant(UOpRef x);

  /// Says what a scalar is: from now on it is known.
  void define(UOpRef x, UOpRef index) { memo[x->id] = Value{{index}}; }

private:
  /// The elements over a common divisor, a power of two; integers have 1. What was rounded has any divisor, and its
  /// floor is that of the fraction.
  struct Value {
    Elements elements;
    int64_t divisor = 1;
    bool rounded = false;
  };
  struct Sources;
  std::optional<Value> evaluate(UOpRef x);
  std::optional<Value> decode(DType t, const uint8_t *bytes, int64_t count);
  const Value *found(UOpRef x);

  Context &c;
  std::function<const std::vector<uint8_t> *(UOpRef)> data;
  std::unordered_map<uint32_t, std::optional<Value>> memo;
};

} // namespace astra::onnx
