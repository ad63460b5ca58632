//===- Retarget.h: a GPU's module, rewritten for the host ------------------===//
#pragma once
#include "../Thread.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace astra::emulator {

/// Rewrites every kernel in place (Thread.h). The module must have the host's triple and layout already. Fails on a
/// call that has no host form. Gives the bytes of shared memory that a block of each kernel takes, by its name.
llvm::Expected<llvm::StringMap<uint64_t>> retarget(llvm::Module &m);

} // namespace astra::emulator
