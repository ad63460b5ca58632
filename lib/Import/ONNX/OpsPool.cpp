//===- OpsPool.cpp: pooling ------------------------------------------------===//
// Takes:    pools over a window and over whole images; MaxUnpool.
// Gives:    the composites of Pooling.h.
#include "OpTable.h"
#include "WindowAttributes.h"
#include "astra/Compose/Pooling.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

compose::PoolOptions poolAttributes(Node &n) { return {windowAttributes(n), n.intAttr("ceil_mode", 0) != 0, false}; }

void maxPool(Node &n) {
  compose::PoolOptions options = poolAttributes(n);
  bool columnMajor = n.intAttr("storage_order", 0) != 0;
  if (!n.wants(1)) return n.give(maxPool(n, n.in(0), options));
  compose::MaxPoolResult found = maxPoolWithIndices(n, n.in(0), options, columnMajor);
  n.give(found.values);
  n.give(1, found.indices);
}

void maxUnpool(Node &n) {
  Dims shape = n.has(2) ? n.knownDims(2, "the output's shape") : Dims();
  n.give(maxUnpool(n, n.in(0), n.in(1), shape, windowAttributes(n)));
}

void averagePool(Node &n) {
  compose::PoolOptions options = poolAttributes(n);
  options.padsCount = n.intAttr("count_include_pad", 0) != 0;
  n.give(averagePool(n, n.in(0), options));
}

/// A whole number from opset 2 on.
double readP(Node &n) { return n.opset < 2 ? n.floatAttr("p", 2) : double(n.intAttr("p", 2)); }

void lpPool(Node &n) { n.give(lpPool(n, n.in(0), readP(n), poolAttributes(n))); }
void globalAveragePool(Node &n) { n.give(globalAveragePool(n, n.in(0))); }
void globalMaxPool(Node &n) { n.give(globalMaxPool(n, n.in(0))); }
void globalLpPool(Node &n) { n.give(globalLpPool(n, n.in(0), readP(n))); }

constexpr Row rows[] = {
    {"MaxPool", 1, latest, 1, 1, maxPool, realTypes},
    {"AveragePool", 7, latest, 1, 1, averagePool, floatTypes},
    {"LpPool", 1, latest, 1, 1, lpPool, floatTypes},
    {"GlobalAveragePool", 1, latest, 1, 1, globalAveragePool, floatTypes},
    {"GlobalMaxPool", 1, latest, 1, 1, globalMaxPool, realTypes},
    {"GlobalLpPool", 1, latest, 1, 1, globalLpPool, floatTypes},
    {"MaxUnpool", 9, latest, 2, 3, maxUnpool, anyType, "an index outside of its own channel is dropped"},
};

} // namespace

llvm::ArrayRef<Row> poolRows() { return rows; }

} // namespace astra::onnx
