//===- OpsArithmetic.cpp: remainders and powers --------------------------===//
#include "OpTable.h"
#include "astra/Compose/Arithmetic.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

void mod(Node &n) { n.give(remainder(n, n.in(0), n.in(1), n.intAttr("fmod", 0) != 0)); }
void power(Node &n) { n.give(power(n, n.in(0), n.in(1))); }

constexpr Row rows[] = {
    {"Mod", 10, latest, 2, 2, mod, realTypes},
    {"Pow", 7, latest, 2, 2, power, realTypes, "integers wrap; a negative exponent truncates", input(1)},
};

} // namespace

llvm::ArrayRef<Row> arithmeticRows() { return rows; }

} // namespace astra::onnx
