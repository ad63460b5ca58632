//===- Known.h: integer tensors known while importing ----------------------===//
// Takes:    nodes of the graph being built.
// Gives:    the elements of a small integer tensor as symbolic integers: shape arithmetic, folded.
// Keeps:    answers per node, so that a long chain of shape arithmetic costs linear time.
// Does not: change the graph; look into float arithmetic.
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

  /// The single element of x, of a constant tensor with exactly one.
  std::optional<int64_t> constant(UOpRef x);

  /// Says what a scalar is: from now on it is known.
  void define(UOpRef x, UOpRef index) { memo[x->id] = Elements{index}; }

private:
  std::optional<Elements> evaluate(UOpRef x);
  const Elements *found(UOpRef x) const;

  Context &c;
  std::function<const std::vector<uint8_t> *(UOpRef)> data;
  std::unordered_map<uint32_t, std::optional<Elements>> memo;
};

} // namespace astra::onnx
