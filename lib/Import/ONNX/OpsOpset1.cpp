//===- OpsOpset1.cpp: what opset 6 changed ---------------------------------===//
// Takes:    nodes of opsets 1 to 5 whose form opset 6 made anew.
// Gives:    the same node as opset 6 says it: what told a runtime which inputs it may overwrite is ignored, defaults
//           that were others are filled in; the row of that opset lowers it.
// Does not: compute, or treat ops whose operands broadcast (OpsOpset6.cpp).
#include "OpTable.h"

namespace astra::onnx {

namespace {

void asOpset6(Node &n) {
  n.ignoreAttr("consumed_inputs");
  findRow(n.opType(), 6)->lower(n);
}

constexpr Row rows[] = {
    {"Abs", 1, 5, 1, 1, asOpset6, floatTypes},         {"Ceil", 1, 5, 1, 1, asOpset6, floatTypes},
    {"Clip", 1, 5, 1, 1, asOpset6, floatTypes},        {"Elu", 1, 5, 1, 1, asOpset6, floatTypes},
    {"Exp", 1, 5, 1, 1, asOpset6, floatTypes},         {"Floor", 1, 5, 1, 1, asOpset6, floatTypes},
    {"HardSigmoid", 1, 5, 1, 1, asOpset6, floatTypes}, {"InstanceNormalization", 1, 5, 3, 3, asOpset6, floatTypes},
    {"LeakyRelu", 1, 5, 1, 1, asOpset6, floatTypes},   {"Log", 1, 5, 1, 1, asOpset6, floatTypes},
    {"Max", 1, 5, 1, anyNumber, asOpset6, floatTypes}, {"Mean", 1, 5, 1, anyNumber, asOpset6, floatTypes},
    {"Min", 1, 5, 1, anyNumber, asOpset6, floatTypes}, {"Neg", 1, 5, 1, 1, asOpset6, floatTypes},
    {"Reciprocal", 1, 5, 1, 1, asOpset6, floatTypes},  {"Relu", 1, 5, 1, 1, asOpset6, floatTypes},
    {"Selu", 1, 5, 1, 1, asOpset6, floatTypes},        {"Sigmoid", 1, 5, 1, 1, asOpset6, floatTypes},
    {"Sqrt", 1, 5, 1, 1, asOpset6, floatTypes},        {"Sum", 1, 5, 1, anyNumber, asOpset6, floatTypes},
    {"Tanh", 1, 5, 1, 1, asOpset6, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> opset1Rows() { return rows; }

} // namespace astra::onnx
