//===- OpsEinsum.cpp: Einstein sums ----------------------------------------===//
#include "Lowering.h"
#include "OpTable.h"
#include "astra/Compose/Einsum.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

void einsum(Node &n) {
  std::vector<UOpRef> operands;
  for (unsigned i = 0; i < n.numInputs(); ++i) operands.push_back(n.in(i));
  std::string cost;
  n.give(einsumAndCost(n, n.stringAttr("equation", ""), operands, cost));
  std::vector<std::string> *notes = n.lowering.options.notes;
  if (notes && !cost.empty() && !n.failed()) notes->push_back(n.scope.where + n.title() + ": " + cost);
}

constexpr Row rows[] = {
    {"Einsum", 12, latest, 1, anyNumber, einsum, realTypes,
     "behind the equation may stand the order of contraction, or a bound on memory (docs/python.md)"},
};

} // namespace

llvm::ArrayRef<Row> einsumRows() { return rows; }

} // namespace astra::onnx
