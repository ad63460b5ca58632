//===- Machinery.cpp: LLVM's back ends, set up for strict code -------------===//
// Takes:    a module of LLVM IR.
// Gives:    the same, optimized; its assembly or object for a machine.
// Keeps:    AllowFPOpFusion is Strict: only llvm.fma becomes a fused instruction. Denormals are the default: kept.
#include "astra/Codegen/Machinery.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using namespace astra::gpu;

llvm::Expected<std::unique_ptr<llvm::Module>> gpu::readBitcode(llvm::StringRef bitcode, llvm::LLVMContext &context) {
  return llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, "astra"), context);
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> gpu::backEnd(llvm::StringRef triple, llvm::StringRef cpu,
                                                                  llvm::StringRef features) {
  static const bool ready = [] {
    LLVMInitializeNVPTXTargetInfo(), LLVMInitializeNVPTXTarget(), LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeAMDGPUTargetInfo(), LLVMInitializeAMDGPUTarget(), LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeX86TargetInfo(), LLVMInitializeX86Target(), LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo(), LLVMInitializeAArch64Target(), LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    return true;
  }();
  (void)ready;
  std::string error;
  llvm::Triple t(triple);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(t, error);
  if (!target) return llvm::createStringError("LLVM has no back end for " + triple + ": " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      t, cpu, features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> gpu::backEnd(const GpuTarget &target) {
  bool cuda = target.flavour == GpuFlavour::CUDA;
  return backEnd(cuda ? "nvptx64-nvidia-cuda" : "amdgcn-amd-amdhsa", target.chip, target.features);
}

void gpu::optimize(llvm::Module &m, llvm::TargetMachine &machine, llvm::OptimizationLevel level) {
  m.setTargetTriple(machine.getTargetTriple());
  m.setDataLayout(machine.createDataLayout());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(level).run(m, modules);
}

llvm::Expected<std::string> gpu::emit(llvm::Module &m, llvm::TargetMachine &machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type))
    return llvm::createStringError("LLVM's back end cannot write this kind of file");
  passes.run(m);
  return std::string(bytes.begin(), bytes.end());
}
