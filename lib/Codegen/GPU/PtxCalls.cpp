//===- PtxCalls.cpp: instructions of PTX that LLVM has no form for ---------===//
// Takes:    calls of `ptx.NAME`.
// Gives:    inline PTX. What the instruction names as a register is one: sums are given and come back tied, so that no
//           copy of them stands between an instruction that is still at work and the wait for it.
// Keeps:    their order among each other and among accesses to memory.
#include "astra/Codegen/PtxCalls.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

using namespace astra::gpu;
using llvm::StringRef;
using llvm::Value;

namespace {
struct Text {
  std::string code, constraints;
};

/// "=f,=f,...,0,1,...", or a list of so many operands from `first` on.
std::string tied(unsigned count) {
  std::string s;
  for (unsigned i = 0; i < count; ++i) s += i ? ",=f" : "=f";
  for (unsigned i = 0; i < count; ++i) s += "," + std::to_string(i);
  return s;
}
std::string operands(unsigned first, unsigned count) {
  std::string s;
  for (unsigned i = 0; i < count; ++i) s += (i ? ", $" : "$") + std::to_string(first + i);
  return s;
}

struct Plain {
  const char *name, *code, *constraints;
};
constexpr Plain plain[] = {
    {ptxName::barrierInit, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r"},
    {ptxName::barrierFence, "fence.mbarrier_init.release.cluster;", ""},
    {ptxName::barrierExpect, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r"},
    {ptxName::barrierArrive, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r"},
    {ptxName::barrierWait,
     "{\n\t.reg .pred done;\nAGAIN_${:uid}:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n\t@done bra "
     "OVER_${:uid};\n\tbra AGAIN_${:uid};\nOVER_${:uid}:\n\t}",
     "r,r"},
    {ptxName::copyBox,
     "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];",
     "r,l,r,r,r"},
    {ptxName::proxyFence, "fence.proxy.async.shared::cta;", ""},
    {ptxName::commit, "wgmma.commit_group.sync.aligned;", ""},
};

/// Sums are the last arguments of a call.
Text textOf(StringRef name, const llvm::CallInst &call) {
  for (const Plain &p : plain)
    if (name == p.name) return {p.code, p.constraints};
  unsigned arguments = call.arg_size();
  if (name.starts_with(ptxName::fence)) return {"wgmma.fence.sync.aligned;", tied(arguments)};
  if (name.consume_front(ptxName::wait))
    return {"wgmma.wait_group.sync.aligned " + name.split('.').first.str() + ";", tied(arguments)};
  if (name.consume_front(ptxName::giveRegisters)) return {"setmaxnreg.dec.sync.aligned.u32 " + name.str() + ";", ""};
  if (name.consume_front(ptxName::takeRegisters)) return {"setmaxnreg.inc.sync.aligned.u32 " + name.str() + ";", ""};
  if (name.consume_front(ptxName::multiply)) {
    name = name.split('.').first;
    unsigned sums = arguments - 2;
    bool small = name == "bf16" || name == "f16"; // these may lie across, which is said of no others
    unsigned k = small ? 16 : name == "tf32" ? 8 : 32;
    std::string type = name.str();
    return {("wgmma.mma_async.sync.aligned.m64n" + llvm::Twine(2 * sums) + "k" + llvm::Twine(k) + ".f32." + type + "." +
             type + " {" + operands(0, sums) + "}, " + operands(2 * sums, 2) + ", 1, 1, 1" + (small ? ", 0, 0;" : ";"))
                .str(),
            tied(sums) + ",l,l"};
  }
  return {};
}

void replace(llvm::CallInst *call, StringRef name) {
  llvm::IRBuilder<> b(call);
  llvm::Type *i32 = b.getInt32Ty();
  auto inShared = [&](Value *p) {
    bool shared = p->getType()->isPointerTy() && p->getType()->getPointerAddressSpace() == 3;
    return shared ? b.CreatePtrToInt(p, i32) : p;
  };
  if (name == ptxName::descriptor) {
    Value *at = b.CreateLShr(b.CreateAnd(inShared(call->getArgOperand(0)), b.getInt32(0x3ffff)), 4);
    call->replaceAllUsesWith(b.CreateOr(b.CreateZExt(at, b.getInt64Ty()), b.getInt64(lineDescriptor)));
    call->eraseFromParent();
    return;
  }
  Text text = textOf(name, *call);
  assert(!text.code.empty() && "a name of ptxName");
  llvm::SmallVector<Value *, 16> in;
  for (Value *v : call->args()) in.push_back(inShared(v));
  if (name.starts_with(ptxName::multiply)) std::rotate(in.begin(), in.begin() + 2, in.end()); // tied ones first
  llvm::SmallVector<llvm::Type *, 16> types;
  for (Value *v : in) types.push_back(v->getType());
  text.constraints += text.constraints.empty() ? "~{memory}" : ",~{memory}";
  auto *type = llvm::FunctionType::get(call->getType(), types, false);
  auto *now = b.CreateCall(type, llvm::InlineAsm::get(type, text.code, text.constraints, true), in);
  now->addFnAttr(llvm::Attribute::Convergent);
  now->addFnAttr(llvm::Attribute::NoUnwind);
  call->replaceAllUsesWith(now);
  call->eraseFromParent();
}
} // namespace

void astra::gpu::writePtxCalls(llvm::Module &m) {
  for (llvm::Function &f : llvm::make_early_inc_range(m)) {
    if (!f.isDeclaration() || !f.getName().starts_with("ptx.")) continue;
    for (llvm::User *u : llvm::make_early_inc_range(f.users())) replace(llvm::cast<llvm::CallInst>(u), f.getName());
    f.eraseFromParent();
  }
}
