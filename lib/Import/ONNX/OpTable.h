//===- OpTable.h: which ONNX ops are understood ----------------------------===//
// Gives:    one row per op and range of opsets in which its meaning is the same, and the lookup. The rows stand beside
//           their lowerings (Ops*.cpp).
// Keeps:    no two rows of an op overlap (a unit test visits them).
#pragma once
#include "Node.h"

namespace astra::onnx {

struct Row {
  const char *op;
  int since, until; // opsets, inclusive
  unsigned leastInputs, mostInputs;
  void (*lower)(Node &);
};
constexpr unsigned anyNumber = ~0u;
constexpr int latest = newestOpset;

llvm::ArrayRef<Row> elementwiseRows();
llvm::ArrayRef<Row> shapeRows();
llvm::ArrayRef<Row> indexingRows();
llvm::ArrayRef<Row> reductionRows();
llvm::ArrayRef<Row> networkRows();
llvm::ArrayRef<Row> quantizationRows();
llvm::ArrayRef<Row> lossRows();
llvm::ArrayRef<Row> resizeRows();
std::vector<Row> allRows();

/// The row of an op of the default domain at an opset; null when there is none.
const Row *findRow(llvm::StringRef op, int64_t opset);

// Lowerings that several files use.
/// exp(x - max) over its sum along the axes, which are neighbours.
UOpRef softmax(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes);
UOpRef logSoftmax(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes);
/// sum / N over the axes, which stay with extent 1. x is of a float type.
UOpRef mean(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes);
/// The attribute, a number of ONNX's, as a dtype; Void when it is absent or 0.
DType dtypeAttr(Node &n, llvm::StringRef name);
/// NumPy's matmul: batch axes broadcast, an operand of rank 1 is a row (left) or a column (right).
UOpRef product(Node &n, UOpRef a, UOpRef b);
/// The convolution of x with w by the node's attributes, no bias added.
UOpRef convolution(Node &n, UOpRef x, UOpRef w);

} // namespace astra::onnx
