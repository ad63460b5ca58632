//===- OpsNonMaxSuppression.cpp: the best boxes that overlap little ------===//
#include "OpTable.h"
#include "astra/Compose/Detection.h"

namespace astra::onnx {

namespace {

void nonMaxSuppression(Node &n) {
  auto optional = [&](unsigned i) { return n.has(i) ? n.in(i) : nullptr; };
  bool centred = n.intAttr("center_point_box", 0) != 0;
  n.give(nonMaxSuppression(n, {n.in(0), n.in(1), optional(2), optional(3), optional(4), centred}));
}

constexpr Row rows[] = {
    {"NonMaxSuppression", 10, latest, 2, 5, nonMaxSuppression, only(DType::F32),
     "the number of boxes is a dim whose value the run reports"},
};

} // namespace

llvm::ArrayRef<Row> nonMaxSuppressionRows() { return rows; }

} // namespace astra::onnx
