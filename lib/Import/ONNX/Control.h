//===- Control.h: what the lowerings of If, Loop and Scan share ------------===//
#pragma once
#include "Node.h"

namespace astra::onnx {

/// A tensor of one element as a scalar; fails on another dtype or shape. `what` names it.
UOpRef controlScalar(Node &n, UOpRef x, DType t, const char *what);
/// A control op; a refusal by its type rule is a failure.
UOpRef control(Node &n, Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, llvm::StringRef names,
               llvm::ArrayRef<UOpRef> fns);
/// Result number i of a control op.
UOpRef result(Node &n, UOpRef control, int64_t i, DType t, llvm::ArrayRef<UOpRef> shape);
/// ONNX's If (OpsIf.cpp).
void conditional(Node &n);
/// ONNX's Loop (OpsLoop.cpp).
void loop(Node &n);

} // namespace astra::onnx
