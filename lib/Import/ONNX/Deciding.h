//===- Deciding.h: what would make a condition known -----------------------===//
// Takes:    the condition of an If that is not known while importing.
// Gives:    the flags under which it is: bounds of a dim, or an input as a constant.
// Keeps:    a bound is tried before it is said. The work is bounded, whatever the condition follows from.
#pragma once
#include "Node.h"

namespace astra::onnx {

/// "; it is known with --dim k=1 or --dim k=2..4", "; if it is the same in every call, give --constant sr=FILE.npy"; ""
/// where no flag would decide it.
std::string decidingHint(Node &n, UOpRef condition);

} // namespace astra::onnx
