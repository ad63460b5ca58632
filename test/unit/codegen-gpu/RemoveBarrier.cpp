//===- RemoveBarrier.cpp: kernels that wait too little ----------------------===//
#include "RemoveBarrier.h"
#include "astra/Codegen/Machinery.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using namespace astra::test;

/// The module without the barrier that is number `which` of its barriers; false when it has fewer.
static bool removeBarrier(GpuModule &m, unsigned which) {
  llvm::LLVMContext context;
  auto module = llvm::cantFail(gpu::readBitcode(m.bitcode, context));
  for (llvm::Function &f : *module)
    for (llvm::Instruction &i : llvm::instructions(f)) {
      auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
      llvm::StringRef name = call && call->getCalledFunction() ? call->getCalledFunction()->getName() : "";
      if (!name.contains("barrier") || which--) continue;
      call->eraseFromParent();
      m.bitcode.clear();
      llvm::raw_string_ostream out(m.bitcode);
      llvm::WriteBitcodeToFile(*module, out);
      return true;
    }
  return false;
}

unsigned astra::test::eachBarrierRemoved(GraphOnGpu &g, llvm::ArrayRef<int64_t> dims) {
  GpuModule whole = *g.module;
  unsigned removed = 0;
  for (;; ++removed) {
    GpuModule m = whole;
    if (!removeBarrier(m, removed)) return removed;
    g.use(std::move(m));
    EXPECT_EQ(g.wrong, "");
    std::string why = g.difference(dims, 1);
    EXPECT_NE(why.find("of shared memory, which "), std::string::npos) << "barrier " << removed << ": " << why << "\n"
                                                                       << g.plans();
  }
}
