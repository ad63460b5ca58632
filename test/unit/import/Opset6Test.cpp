//===- Opset6Test.cpp: what opset 7 changed --------------------------------===//
// Takes:    nodes of opset 6.
// Gives:    the shape that the second operand is brought to, as the text of the module shows it; refusals.
// Does not: look at values: ONNX's cases of opset 6 do (test/onnx).
#include "ModelMaker.h"
#include "OpTable.h"

namespace astra::onnx {
namespace {

/// Add of two inputs; a negative `broadcast` leaves the attribute out, `axis` 99 too. The module's text, or the error.
std::string add(const char *x, const char *y, int broadcast, int axis = 99, const char *op = "Add") {
  ModelMaker m(6);
  m.input("x", x).input("y", y).output("z", x, std::string(op) == "Less" ? Boolean : Float).dim("n", 1, 9);
  proto::Node &n = m.node(op, {"x", "y"}, {"z"});
  if (broadcast >= 0) set(n, "broadcast", broadcast);
  if (axis != 99) set(n, "axis", axis);
  llvm::Expected<Module> module = m.import();
  if (!module) return m.result();
  return print(*module);
}

void expectPart(const std::string &text, const char *part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(Opset6, Alignment) {
  expectPart(add("n,3,4,5", "3,4", 1, 1), "reshape %y [1, 3, 4, 1]");
  expectPart(add("n,3,4,5", "3,4", 1, -3), "reshape %y [1, 3, 4, 1]");
  expectPart(add("n,3,4,5", "n", 1, 0), "reshape %y [n, 1, 1, 1]");
  expectPart(add("n,3,4,5", "4,5", 1), "reshape %y [1, 1, 4, 5]");
  expectPart(add("n,3,4,5", "1,1", 1, 0), "reshape %y [1, 1, 1, 1]");
  expectPart(add("n,3", "n,3", -1), "add %x, %y");
  expectPart(add("n,3", "n,3", 0, 99, "Less"), "lt %x, %y");
  expectPart(add("n,3", "3", 1, 99, "Mul"), "mul %x");
}

TEST(Opset6, Refusals) {
  expectPart(add("n,3", "3", -1), "opset 6 takes with attribute 'broadcast' 1 only");
  expectPart(add("n,3", "n,3", 0, 0), "opset 6 takes with attribute 'broadcast' 1 only");
  expectPart(add("n,3", "3,4", 1, 1), "operand 1 of rank 2 does not fit at axis 1 of rank 2");
  expectPart(add("n,3", "3", 1, -3), "does not fit at axis -3 of rank 2");
  expectPart(add("3", "n,3", 1), "operand 1 has a higher rank than operand 0");
  expectPart(add("n,3", "4", 1), "broadcast");
}

} // namespace
} // namespace astra::onnx
