//===- Scale.h: exponentials on machines that scale in one instruction -----===//
#pragma once
#include "astra/Codegen/Kernel.h"

namespace astra {

/// The kernel with `scale2` in place of the steps by which f32's program of exp (Functions.h) scales: the same values
/// with fewer instructions where `scale2` is one of them (Target::scalesInOne). Before expansion.
Kernel scaleInOne(Context &c, const Kernel &k);

} // namespace astra
