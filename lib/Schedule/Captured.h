//===- Captured.h: weights that bodies of control ops read themselves ------===//
#pragma once
#include "astra/IR/UOp.h"

namespace astra {

/// Whether source `i` of a control op is a param, or a view of one that its bodies give to contracts alone, so that it
/// is in a body as anywhere else: without a buffer of its own, and laid out as the contract reads it best.
bool isReadInBody(UOpRef control, unsigned i);

} // namespace astra
