//===- EmitProgram.h: entries as C, without a runtime ----------------------===//
// Takes:    a module, its schedule, the kernels' C source for one target.
// Gives:    one .c and one .h: a function per entry that runs its program over memory of the caller.
// Keeps:    kernels, launches and memory plan are the bundle's, so the bytes are the bundle's.
// Does not: use threads; that is what the runtime is for.
#pragma once
#include "astra/Codegen/Compile.h"

namespace astra {

struct CProgram {
  std::string source, header;
};

/// `headerName` is what the source includes; functions, and the guard of the header, begin with `prefix`, or with the
/// module's name if it is empty: two programs that are linked together need two. A param without data becomes an
/// argument. An error (std::errc::not_supported) when the weights are too large to be written as text.
llvm::Expected<CProgram> emitProgram(const Module &module, const Schedule &schedule, const CompiledTarget &code,
                                     llvm::StringRef headerName, llvm::StringRef prefix = {});

} // namespace astra
