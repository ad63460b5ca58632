//===- Guard.h: LLVM's crashes and fatal errors as errors --------------------===//
// Takes:    work that calls clang or lld.
// Gives:    its end, or what it ended with where it would have ended the process.
// Keeps:    the handlers of signals as they were, once no work runs.
// Does not: free what crashed work held.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace astra::toolchain {

/// `who` begins the sentence. Any number of threads may be inside; work inside of work is not allowed.
llvm::Error guarded(llvm::StringRef who, llvm::function_ref<void()> work);

} // namespace astra::toolchain
