//===- RemoveBarrier.cpp: kernels that wait too little ----------------------===//
#include "RemoveBarrier.h"
#include "astra/Codegen/Machinery.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Constants.h"
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

/// The module with one fence spoiled: call number `which` of those that `change` changes; false when it has fewer.
/// change: whether the call is one; it changes it then, or erases it.
static bool spoil(GpuModule &m, unsigned which, llvm::function_ref<bool(llvm::CallInst &, bool really)> change) {
  llvm::LLVMContext context;
  auto module = llvm::cantFail(gpu::readBitcode(m.bitcode, context));
  for (llvm::Function &f : *module)
    for (llvm::Instruction &i : llvm::instructions(f)) {
      auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
      if (!call || !call->getCalledFunction() || !change(*call, false) || which--) continue;
      change(*call, true);
      m.bitcode.clear();
      llvm::raw_string_ostream out(m.bitcode);
      llvm::WriteBitcodeToFile(*module, out);
      return true;
    }
  return false;
}

unsigned astra::test::eachFenceSpoiled(GraphOnGpu &g, llvm::ArrayRef<int64_t> dims) {
  auto named = [](llvm::CallInst &c, llvm::StringRef part) { return c.getCalledFunction()->getName().contains(part); };
  auto erases = [&](llvm::StringRef part) {
    return [&named, part](llvm::CallInst &c, bool really) {
      if (!named(c, part)) return false;
      if (really) c.eraseFromParent();
      return true;
    };
  };
  std::function<bool(llvm::CallInst &, bool)> ways[] = {
      erases("barrier"),
      erases("wait.group"),
      erases("commit.group"),
      [&](llvm::CallInst &c, bool really) { // one group fewer is waited for
        if (!named(c, "wait.group")) return false;
        auto *left = llvm::cast<llvm::ConstantInt>(c.getArgOperand(0));
        if (really) c.setArgOperand(0, llvm::ConstantInt::get(left->getType(), left->getZExtValue() + 1));
        return true;
      },
      [&](llvm::CallInst &c, bool really) { // the wait comes behind the barrier
        auto *next = llvm::dyn_cast_or_null<llvm::CallInst>(c.getNextNode());
        if (!named(c, "wait.group") || !next || !named(*next, "barrier")) return false;
        if (really) c.moveAfter(next);
        return true;
      },
  };
  GpuModule whole = *g.module;
  unsigned spoiled = 0;
  for (auto [number, way] : llvm::enumerate(ways))
    for (unsigned which = 0;; ++which, ++spoiled) {
      GpuModule m = whole;
      if (!spoil(m, which, way)) break;
      g.use(std::move(m));
      EXPECT_EQ(g.wrong, "");
      std::string why = g.difference(dims, 1);
      bool noticed = llvm::StringRef(why).contains("of shared memory, which ") ||
                     llvm::StringRef(why).contains("asynchronous copy");
      EXPECT_TRUE(noticed) << "way " << number << ", call " << which << ": " << why << "\n" << g.plans();
    }
  g.use(std::move(whole));
  return spoiled;
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
