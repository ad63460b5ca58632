//===- OpTable.cpp: look an ONNX op up -------------------------------------===//
// Takes:    the rows of the Ops*.cpp files.
// Gives:    the row of an op at an opset.
#include "OpTable.h"
#include "astra/Import/ONNX.h"
#include "llvm/ADT/StringMap.h"

namespace astra {
namespace onnx {

std::vector<Row> allRows() {
  std::vector<Row> rows;
  for (llvm::ArrayRef<Row> part : {
           arithmeticRows(),
           attentionRows(),
           controlRows(),
           determinantRows(),
           einsumRows(),
           elementwiseRows(),
           indexingRows(),
           lossRows(),
           networkRows(),
           nonMaxSuppressionRows(),
           normalizationRows(),
           opset1Rows(),
           opset6Rows(),
           tfIdfRows(),
           orderRows(),
           poolRows(),
           quantizationRows(),
           randomRows(),
           recurrentRows(),
           reductionRows(),
           resizeRows(),
           samplingRows(),
           selectionRows(),
           sequenceRows(),
           shapeRows(),
           signalRows(),
           listRows(),
           microsoftTransformerRows(),
           microsoftQuantizedRows(),
           microsoftRows(),
           mlRows(),
           treeRows(),
           trainingRows(),
       })
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

const Row *findRow(llvm::StringRef op, int64_t opset) {
  static const std::vector<Row> rows = allRows();
  static const llvm::StringMap<std::vector<const Row *>> byName = [] {
    llvm::StringMap<std::vector<const Row *>> map;
    for (const Row &row : rows) map[row.op].push_back(&row);
    return map;
  }();
  auto found = byName.find(op);
  if (found == byName.end()) return nullptr;
  for (const Row *row : found->second)
    if (row->since <= opset && opset <= row->until) return row;
  return nullptr;
}

std::string typesText(Types types) {
  if (types == anyType) return "any";
  std::string text;
  for (unsigned t = 0; t < numDTypes; ++t)
    if (types & only(DType(t))) text += (text.empty() ? "" : ", ") + std::string(info(DType(t)).text);
  return text;
}

} // namespace onnx

std::vector<ONNXRow> onnxRows() {
  std::vector<ONNXRow> result;
  for (const onnx::Row &row : onnx::allRows())
    result.push_back({row.op, row.since, row.until, onnx::typesText(row.types), row.remarks});
  return result;
}

} // namespace astra
