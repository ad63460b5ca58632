//===- OpsDeterminant.cpp: Det -------------------------------------------===//
#include "OpTable.h"
#include "astra/Compose/Matrix.h"

namespace astra::onnx {

namespace {

void determinant(Node &n) { n.give(determinant(n, n.in(0))); }

constexpr Row rows[] = {{"Det", 11, latest, 1, 1, determinant, floatTypes, "matrices up to 4096 x 4096"}};

} // namespace

llvm::ArrayRef<Row> determinantRows() { return rows; }

} // namespace astra::onnx
