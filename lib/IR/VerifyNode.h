//===- VerifyNode.h: rules for single nodes --------------------------------===//
#pragma once
#include "astra/IR/Verify.h"

namespace astra::verifier {

/// The name and sentence of the first rule of `stage` that n breaks, or nothing.
std::optional<std::string> brokenRule(UOpRef n, Stage stage);

/// "add (line 12)": the op and where it came from.
std::string placeOf(UOpRef n, const Origins *origins);

} // namespace astra::verifier
