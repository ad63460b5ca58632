//===- Ops.h: operations beside the evaluator ------------------------------===//
// Takes:    the bundle of the build tree.
// Gives:    tensors of random elements, hostile ones among them, views of them with any strides; what the reference
//           evaluator makes of the same operation as a graph with the operands' own shapes.
// Keeps:    everything follows from the seed.
#pragma once
#include "../../../lib/Ops/src/Table.h"
#include "astra/Compose/Composer.h"
#include "astra/IR/Eval.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/ops.h"
#include <gtest/gtest.h>
#include <random>

namespace astra::test {

using Extents = std::vector<int64_t>;
using Random = std::mt19937_64;

DType typeOf(int32_t dtype);

/// Memory and a view into it.
struct Strided {
  std::vector<uint8_t> memory;
  astra_view view = ASTRA_INIT(astra_view);
};

/// Any bits that are legal for the type, and often the numbers at which kernels go wrong.
std::vector<uint8_t> elementsOf(Random &random, int32_t dtype, int64_t count);
/// A view of random elements with these extents: dense, or, `strided`, with axes in any order, gaps, backwards.
Strided tensorOf(Random &random, int32_t dtype, const Extents &shape, bool strided);
/// Its elements in row-major order.
Tensor denseOf(const astra_view &view);
Extents shapeOf(const astra_view &view);
Extents randomShape(Random &random, int rank, int64_t most);

class Ops : public testing::Test {
protected:
  explicit Ops(uint32_t threads = 1);
  /// Calls an operation into new memory, or, `into`, into a strided result of this shape, and gives its elements.
  Tensor call(const astra_op &op, const Strided *into = nullptr);

  ~Ops();

  astra_runtime *runtime = nullptr;
  astra_device *device = nullptr;
  astra_stream *stream = nullptr;
  astra_ops *library = nullptr;
  astra_diag diag = ASTRA_INIT(astra_diag);
};

/// The value of a graph over arguments of these tensors.
using Graph = std::function<UOpRef(compose::Composer &, llvm::ArrayRef<UOpRef>)>;
Tensor expected(const std::vector<Tensor> &inputs, const Graph &graph);

} // namespace astra::test
