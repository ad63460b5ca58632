//===- Machinery.h: LLVM's back ends, set up for strict code ---------------===//
#pragma once
#include "astra/Codegen/GPU.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Target/TargetMachine.h"

namespace astra::gpu {

llvm::Expected<std::unique_ptr<llvm::Module>> readBitcode(llvm::StringRef bitcode, llvm::LLVMContext &context);
/// The back end of a triple, fusing nothing.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> backEnd(llvm::StringRef triple, llvm::StringRef cpu,
                                                             llvm::StringRef features);
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> backEnd(const GpuTarget &target);
/// Gives the module the machine's triple and layout and runs LLVM's pipeline on it.
void optimize(llvm::Module &m, llvm::TargetMachine &machine, llvm::OptimizationLevel level);
llvm::Expected<std::string> emit(llvm::Module &m, llvm::TargetMachine &machine, llvm::CodeGenFileType type);

} // namespace astra::gpu
