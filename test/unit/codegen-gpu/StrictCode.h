//===- StrictCode.h: what compiled code says of itself ----------------------===//
#pragma once
#include "RunGpu.h"

namespace astra::test {

/// The bytes of the sections with code of a cubin or HSACO.
std::string codeOf(llvm::ArrayRef<uint8_t> file);

/// Expects every kernel descriptor of a HSACO to keep denormals and to round to nearest; how many there are.
unsigned strictDescriptors(llvm::ArrayRef<uint8_t> file);

} // namespace astra::test
