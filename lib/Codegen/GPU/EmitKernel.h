//===- EmitKernel.h: one linear kernel as a function -----------------------===//
#pragma once
#include "Machine.h"
#include "Scalar.h"

namespace astra::gpu {

/// Appends the kernel's function to the module that the scalars are emitted into. Refuses with a sentence.
llvm::Expected<GpuLaunch> emitKernel(Context &c, Scalar &s, Machine &machine, mlir::ModuleOp module, const GpuKernel &k,
                                     llvm::ArrayRef<UOpRef> dims, const GpuTarget &target);

} // namespace astra::gpu
