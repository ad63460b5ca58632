//===- Known.h: integer tensors known while building ----------------------===//
// Takes:    nodes of the graph being built.
// Gives:    the elements of a small integer tensor as symbolic integers: shape arithmetic, folded.
// Keeps:    answers per node, so that a long chain of shape arithmetic costs linear time. Floats are followed as exact
//           fractions with a power of two below, or as one quotient that is rounded to an integer next.
// Does not: change the graph. A float parameter may be replaced or trained: what follows from one is looked at only for
//           an operand that must be known (a shape), and is then computed by the reference evaluator where this file
//           has no rule (Settled.h).
// A model computes shapes with ordinary ops (Shape, Gather, Mul, Concat); the importer lowers them like any others, and
// where an op needs a shape it asks here.
#pragma once
#include "astra/IR/Module.h"
#include <functional>
#include <unordered_map>

namespace astra::compose {

class Known {
public:
  using Elements = std::vector<UOpRef>;

  /// `data` gives the bytes of a parameter, or nothing.
  Known(Context &c, std::function<const std::vector<uint8_t> *(UOpRef param)> data) : c(c), data(std::move(data)) {}

  /// The elements of x in row-major order, 0 or 1 for bool. Nothing when x is not of an integer type or bool, its shape
  /// is not constant, it has more than 4096 elements, or an element depends on what is not known before the run. The
  /// pointer holds until the next call.
  const Elements *elements(UOpRef x);

  /// The same for an operand that must be known, of a float type too, where every element is an integer. How many
  /// elements of a mask are true is known as a data dim then, the one that NonZero and Compress have of that mask.
  const Elements *required(UOpRef x);

  /// Whether a count may be a data dim; unset: none may.
  std::function<bool(UOpRef)> mayBeCounted;

  /// Says what a scalar is: from now on it is known.
  void define(UOpRef x, UOpRef index) {
    for (auto &memo : memos) memo[x->id] = Value{{index}};
  }

private:
  /// The elements over a common divisor, a power of two; integers have 1. What was rounded has any divisor, and its
  /// floor is that of the fraction.
  struct Value {
    Elements elements;
    int64_t divisor = 1;
    bool rounded = false;
  };
  using Memo = std::unordered_map<uint32_t, std::optional<Value>>;
  const Elements *ask(UOpRef x, bool must);
  std::optional<Value> evaluate(UOpRef x, Memo &memo, bool must);
  std::optional<Value> countOfTrue(UOpRef x);
  std::optional<Value> decode(DType t, const uint8_t *bytes, int64_t count);

  Context &c;
  std::function<const std::vector<uint8_t> *(UOpRef)> data;
  Memo memos[2]; // the second: of what must be known
};

} // namespace astra::compose
