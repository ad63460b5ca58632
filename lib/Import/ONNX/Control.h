//===- Control.h: what the lowerings of If, Loop and Scan share ------------===//
#pragma once
#include "Node.h"
#include "astra/Compose/Closure.h"
#include "astra/Compose/Scan.h"

namespace astra::onnx {

using compose::Closure;
using compose::roomFor;

/// A tensor of one element as a scalar; fails on another dtype or shape. `what` names it.
UOpRef controlScalar(Node &n, UOpRef x, DType t, const char *what);
/// ONNX's If (OpsIf.cpp).
void conditional(Node &n);
/// ONNX's Loop (OpsLoop.cpp).
void loop(Node &n);

} // namespace astra::onnx
