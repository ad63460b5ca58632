//===- LowerGpu.cpp: kernels as a module, in MLIR and in LLVM IR -----------===//
// Takes:    linear kernels and a target.
// Gives:    one MLIR module, verified, and its translation.
// Keeps:    no fast-math flag anywhere: a module with one is refused here, whoever set it.
#include "EmitKernel.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using namespace astra::gpu;

static bool hasFastMath(llvm::Module &m) {
  for (llvm::Function &f : m)
    for (llvm::Instruction &i : llvm::instructions(f))
      if (auto *op = llvm::dyn_cast<llvm::FPMathOperator>(&i); op && op->getFastMathFlags().any()) return true;
  return false;
}

/// Bytes of the shared arrays that a kernel uses, one behind another where the launch gives them (BuildGpu.cpp).
static uint64_t sharedBytes(llvm::Module &m, const llvm::Function &kernel) {
  uint64_t bytes = 0;
  for (llvm::GlobalVariable &g : m.globals()) {
    if (g.getAddressSpace() != Machine::sharedSpace) continue;
    llvm::SmallVector<llvm::User *> users(g.users());
    bool used = false;
    while (!users.empty() && !used) {
      llvm::User *u = users.pop_back_val();
      if (auto *i = llvm::dyn_cast<llvm::Instruction>(u))
        used = i->getFunction() == &kernel;
      else
        users.append(u->user_begin(), u->user_end());
    }
    if (!used) continue;
    bytes = llvm::alignTo(bytes, g.getAlign().valueOrOne());
    bytes = llvm::alignTo(bytes + m.getDataLayout().getTypeAllocSize(g.getValueType()), 64);
  }
  return bytes;
}

llvm::Expected<GpuModule> astra::lowerGpu(Context &c, llvm::ArrayRef<GpuKernel> kernels, const GpuTarget &target,
                                          llvm::ArrayRef<UOpRef> dims, bool withText) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  bool cuda = target.flavour == GpuFlavour::CUDA;
  cuda ? mlir::registerNVVMDialectTranslation(registry) : mlir::registerROCDLDialectTranslation(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder, builder.getUnknownLoc());
  GpuModule out{&target, {}, {}, {}};
  Arith places(builder, builder.getUnknownLoc());
  auto machine = cuda ? nvvmMachine(places) : rocdlMachine(places, target.warp);
  Scalar scalars(builder, *module, machine->constantSpace());
  for (const GpuKernel &k : kernels) {
    auto launch = emitKernel(c, scalars, *machine, *module, k, dims, target);
    if (!launch) return launch.takeError();
    out.kernels.push_back(std::move(*launch));
  }
  std::string why;
  mlir::ScopedDiagnosticHandler listen(&context, [&](mlir::Diagnostic &d) { why += d.str() + "\n"; });
  if (mlir::failed(mlir::verify(*module))) return llvm::createStringError("the MLIR module is wrong: " + why);
  if (withText) {
    llvm::raw_string_ostream text(out.mlir);
    module->print(text);
  }
  llvm::LLVMContext llvmContext;
  auto translated = mlir::translateModuleToLLVMIR(*module, llvmContext, "astra");
  if (!translated) return llvm::createStringError("the MLIR module has no LLVM IR: " + why);
  if (hasFastMath(*translated)) return llvm::createStringError("an instruction carries a fast-math flag");
  for (GpuLaunch &k : out.kernels) {
    k.shared = sharedBytes(*translated, *translated->getFunction(k.name));
    if (auto e = checkLaunch(k, target)) return std::move(e);
  }
  llvm::raw_string_ostream bytes(out.bitcode);
  llvm::WriteBitcodeToFile(*translated, bytes);
  return out;
}
