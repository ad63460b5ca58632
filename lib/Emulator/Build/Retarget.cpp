//===- Retarget.cpp: a GPU's module, rewritten for the host ----------------===//
// Takes:    LLVM IR with the intrinsics of nvvm or amdgcn.
// Gives:    the same computation over a Thread: special registers are its fields, shared memory is its block's, every
//           access to global and shared memory asks first, a barrier or an exchange between lanes suspends.
// Keeps:    all arithmetic as it is.
//
// A kernel that waits becomes a coroutine (LLVM's switched-resume form); one that never does is a plain function.
#include "Retarget.h"
#include "astra/Codegen/PtxCalls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <cstddef>

using namespace llvm;
using namespace astra::emulator;

namespace {

constexpr unsigned globalSpace = 1, sharedSpace = 3, privateSpace = 5;

/// Each with its place in the shared memory of a block.
using SharedArrays = std::vector<std::pair<GlobalVariable *, uint64_t>>;

class KernelRewrite {
public:
  KernelRewrite(Module &m, const SharedArrays &shared) : m(m), c(m.getContext()), shared(shared) {}
  Error run(Function *device);

private:
  Type *i32() { return Type::getInt32Ty(c); }
  Type *i64() { return Type::getInt64Ty(c); }
  PointerType *pointer(unsigned space = 0) { return PointerType::get(c, space); }
  /// A field of the Thread.
  Value *field(IRBuilder<> &b, size_t offset, Type *type) {
    return b.CreateLoad(type, b.CreateConstGEP1_64(b.getInt8Ty(), thread, offset));
  }
  void setField(IRBuilder<> &b, size_t offset, Value *v) {
    b.CreateStore(v, b.CreateConstGEP1_64(b.getInt8Ty(), thread, offset));
  }
  void makeArguments(IRBuilder<> &b, Function *device);
  uint64_t ownBytes() const;
  void moveArrays(IRBuilder<> &b);
  void askBeforeAccess();
  Error replaceCalls();
  void suspend(Instruction *before, Wait why, Value *word, Value *from);
  Value *fragment(IRBuilder<> &b, uint64_t i);
  /// What a warp does with words of all its lanes, from when they have given theirs: those of a lane are in
  /// `registers`.
  struct Fragments {
    IRBuilder<> b;
    Value *begin, *lane; // the warp's first thread, the lane's number in it
    FunctionCallee ask;
    Value *thread;
    Value *word(Value *lane, uint64_t i) {
      return b.CreateCall(ask, {thread, b.CreateAdd(begin, lane), b.getInt32(i)});
    }
  };
  Fragments giveFragments(CallInst *call, ArrayRef<Value *> registers, uint32_t warp);
  Value *matrices(CallInst *call);
  Value *mmaTile(CallInst *call);
  Value *mfmaTile(CallInst *call);
  Value *ptxCall(CallInst *call, StringRef name);
  Function *stepOfGroup(StringRef type);
  void beginCoroutine(IRBuilder<> &b);
  void splitAt(Instruction *before, bool last);

  Module &m;
  LLVMContext &c;
  const SharedArrays &shared;
  Function *host = nullptr;
  Value *thread = nullptr, *handle = nullptr;
  Value *own = nullptr; // a coroutine's arrays
  BasicBlock *suspended = nullptr, *cleanup = nullptr;
  uint32_t sites = 0;
};

enum class Tile { None, Mma, Mfma };
/// The form of a warp's instruction of a matrix unit (astra::UnitInstruction) that is called.
Tile tileOf(const CallBase *call) {
  StringRef name = call->getCalledFunction() ? call->getCalledFunction()->getName() : "";
  return name.starts_with("llvm.nvvm.mma.")      ? Tile::Mma
         : name.starts_with("llvm.amdgcn.mfma.") ? Tile::Mfma
                                                 : Tile::None;
}

bool isLdmatrix(const CallBase *call) {
  return call->getCalledFunction() && call->getCalledFunction()->getName().starts_with("llvm.nvvm.ldmatrix.sync.");
}

bool waits(Function &f) {
  for (Instruction &i : instructions(f))
    if (auto *call = dyn_cast<CallBase>(&i)) switch (call->getIntrinsicID()) {
      case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
      case Intrinsic::amdgcn_s_barrier:
      case Intrinsic::nvvm_shfl_sync_bfly_i32:
      case Intrinsic::amdgcn_ds_bpermute:
      case Intrinsic::amdgcn_ds_swizzle:
      case Intrinsic::amdgcn_update_dpp: return true;
      default:
        StringRef name = call->getCalledFunction() ? call->getCalledFunction()->getName() : "";
        if (tileOf(call) != Tile::None || isLdmatrix(call) || name.starts_with("ptx.")) return true;
      }
  return false;
}

void KernelRewrite::makeArguments(IRBuilder<> &b, Function *device) {
  Value *arguments = host->getArg(1);
  for (Argument &a : device->args()) {
    Value *place = b.CreateLoad(pointer(), b.CreateConstGEP1_64(pointer(), arguments, a.getArgNo()));
    // A tensor map is where the argument is.
    a.replaceAllUsesWith(a.hasByValAttr() ? place : b.CreateLoad(a.getType(), place));
  }
}

/// Bytes of a thread's own arrays.
uint64_t KernelRewrite::ownBytes() const {
  uint64_t bytes = 0;
  for (Instruction &i : instructions(*host))
    if (auto *a = dyn_cast<AllocaInst>(&i))
      bytes = alignTo(bytes + a->getAllocationSize(m.getDataLayout())->getFixedValue(), 64);
  return bytes;
}

/// A thread's own arrays and the block's shared ones, where the host has them. A coroutine's lie behind its frame: LLVM
/// would keep in it what an array has across a wait, but not if each turn of a loop writes a part (it looks at arrays
/// as at values, which the next turn defines again).
void KernelRewrite::moveArrays(IRBuilder<> &b) {
  uint64_t offset = 0;
  for (Instruction &i : llvm::make_early_inc_range(instructions(*host))) {
    auto *a = dyn_cast<AllocaInst>(&i);
    if (!a || (!own && a->getAddressSpace() != privateSpace)) continue;
    Value *place = nullptr;
    if (own) {
      place = b.CreateConstGEP1_64(b.getInt8Ty(), own, offset);
      offset = alignTo(offset + a->getAllocationSize(m.getDataLayout())->getFixedValue(), 64);
    } else {
      auto *array = b.CreateAlloca(a->getAllocatedType(), 0, a->getArraySize());
      array->setAlignment(a->getAlign());
      place = array;
    }
    a->replaceAllUsesWith(b.CreateAddrSpaceCast(place, a->getType()));
    a->eraseFromParent();
  }
  Value *base = field(b, offsetof(Thread, shared), pointer());
  for (auto [global, offset] : shared) {
    Value *place = b.CreateAddrSpaceCast(b.CreateConstGEP1_64(b.getInt8Ty(), base, offset), global->getType());
    global->replaceUsesWithIf(place, [&](Use &u) {
      auto *user = dyn_cast<Instruction>(u.getUser());
      return user && user->getFunction() == host && user != place;
    });
  }
}

void KernelRewrite::askBeforeAccess() {
  for (Instruction &i : llvm::make_early_inc_range(instructions(*host))) {
    auto *load = dyn_cast<LoadInst>(&i);
    auto *store = dyn_cast<StoreInst>(&i);
    if (!load && !store) continue;
    unsigned operand = load ? LoadInst::getPointerOperandIndex() : StoreInst::getPointerOperandIndex();
    Value *place = i.getOperand(operand);
    unsigned space = place->getType()->getPointerAddressSpace();
    auto *object = dyn_cast<GlobalVariable>(getUnderlyingObject(place));
    if ((space != globalSpace && space != sharedSpace) || (object && object->isConstant())) continue;
    Type *type = load ? load->getType() : store->getValueOperand()->getType();
    Access kind = space == globalSpace ? load ? Access::GlobalRead : Access::GlobalWrite
                  : load               ? Access::SharedRead
                                       : Access::SharedWrite;
    IRBuilder<> b(&i);
    auto *signature = FunctionType::get(pointer(), {pointer(), pointer(), i64(), i32()}, false);
    Value *ask = field(b, offsetof(Thread, access), pointer());
    Value *answer = b.CreateCall(signature, ask,
                                 {thread, b.CreateAddrSpaceCast(place, pointer()),
                                  b.getInt64(m.getDataLayout().getTypeStoreSize(type)), b.getInt32(uint32_t(kind))});
    i.setOperand(operand, b.CreateAddrSpaceCast(answer, place->getType()));
  }
}

void KernelRewrite::beginCoroutine(IRBuilder<> &b) {
  Value *none = ConstantPointerNull::get(pointer());
  Value *id = b.CreateIntrinsic(Intrinsic::coro_id, {}, {b.getInt32(16), none, none, none});
  Value *size = b.CreateIntrinsic(Intrinsic::coro_size, {i64()}, {});
  auto *signature = FunctionType::get(pointer(), {pointer(), i64()}, false);
  Value *behind = b.CreateAnd(b.CreateAdd(size, b.getInt64(15)), b.getInt64(~uint64_t(15)));
  Value *frame = b.CreateCall(signature, field(b, offsetof(Thread, allocate), pointer()),
                              {thread, b.CreateAdd(behind, b.getInt64(ownBytes()))});
  handle = b.CreateIntrinsic(Intrinsic::coro_begin, {}, {id, frame});
  own = b.CreateGEP(b.getInt8Ty(), handle, behind);
  suspended = BasicBlock::Create(c, "suspended", host);
  IRBuilder<> s(suspended);
  s.CreateIntrinsic(Intrinsic::coro_end, {}, {handle, s.getFalse(), ConstantTokenNone::get(c)});
  s.CreateRet(handle);
  cleanup = BasicBlock::Create(c, "cleanup", host);
  IRBuilder<> e(cleanup);
  e.CreateIntrinsic(Intrinsic::coro_free, {}, {id, handle});
  e.CreateBr(suspended);
  host->setPresplitCoroutine();
}

/// A point at which the coroutine is left; what stands from `before` on is where it goes on.
void KernelRewrite::splitAt(Instruction *before, bool last) {
  IRBuilder<> b(before);
  Value *state = b.CreateIntrinsic(Intrinsic::coro_suspend, {}, {ConstantTokenNone::get(c), b.getInt1(last)});
  BasicBlock *here = before->getParent(), *after = here->splitBasicBlock(before->getIterator(), "after");
  here->getTerminator()->eraseFromParent();
  IRBuilder<> e(here);
  SwitchInst *to = e.CreateSwitch(state, suspended, 2);
  to->addCase(e.getInt8(0), after);
  to->addCase(e.getInt8(1), cleanup);
}

void KernelRewrite::suspend(Instruction *before, Wait why, Value *word, Value *from) {
  IRBuilder<> b(before);
  setField(b, offsetof(Thread, wait), b.getInt32(uint32_t(why)));
  setField(b, offsetof(Thread, site), b.getInt32(++sites));
  if (word) {
    Value *parity = b.CreateXor(field(b, offsetof(Thread, parity), i32()), b.getInt32(1));
    setField(b, offsetof(Thread, parity), parity);
    Value *words = b.CreateConstGEP1_64(b.getInt8Ty(), thread, offsetof(Thread, word));
    b.CreateStore(word, b.CreateGEP(i32(), words, parity));
    setField(b, offsetof(Thread, from), from);
  }
  splitAt(before, false);
}

/// Where word i of what the thread gives to its warp is, in this turn.
Value *KernelRewrite::fragment(IRBuilder<> &b, uint64_t i) {
  Value *all = b.CreateConstGEP1_64(b.getInt8Ty(), thread, offsetof(Thread, fragment));
  return b.CreateGEP(i32(), all,
                     b.CreateAdd(b.CreateMul(field(b, offsetof(Thread, parity), i32()), b.getInt32(8)), b.getInt32(i)));
}

/// Lanes give what is in their registers to a warp's instruction of a matrix unit (astra::UnitInstruction); each of
/// them then computes its sums by the function that is a step.
KernelRewrite::Fragments KernelRewrite::giveFragments(CallInst *call, ArrayRef<Value *> registers, uint32_t warp) {
  IRBuilder<> b(call);
  Value *number = field(b, offsetof(Thread, number), i32());
  Value *parity = b.CreateXor(field(b, offsetof(Thread, parity), i32()), b.getInt32(1));
  setField(b, offsetof(Thread, parity), parity);
  for (auto [i, x] : llvm::enumerate(registers)) b.CreateStore(x, fragment(b, i));
  setField(b, offsetof(Thread, from), number);
  setField(b, offsetof(Thread, wait), b.getInt32(uint32_t(Wait::Exchange)));
  setField(b, offsetof(Thread, site), b.getInt32(++sites));
  splitAt(call, false);
  IRBuilder<> after(call);
  number = field(after, offsetof(Thread, number), i32());
  auto *signature = FunctionType::get(i32(), {pointer(), i32(), i32()}, false);
  Value *ask = field(after, offsetof(Thread, fragmentOf), pointer()), *begin = after.CreateAnd(number, ~(warp - 1)),
        *lane = after.CreateAnd(number, warp - 1);
  return {IRBuilder<>(call), begin, lane, {signature, ask}, thread};
}

/// Each lane gives the place of a row of 16 bytes; of each matrix of eight rows a lane gets a word.
Value *KernelRewrite::matrices(CallInst *call) {
  auto *all = dyn_cast<StructType>(call->getType());
  IRBuilder<> before(call);
  auto *whose = FunctionType::get(i64(), {pointer(), pointer()}, false);
  Value *row = before.CreateCall(whose, field(before, offsetof(Thread, placeOf), pointer()),
                                 {thread, before.CreateAddrSpaceCast(call->getArgOperand(0), pointer())});
  Fragments given = giveFragments(call, {before.CreateTrunc(row, i32())}, 32);
  IRBuilder<> &b = given.b;
  auto *signature = FunctionType::get(pointer(), {pointer(), i32()}, false);
  Value *ask = field(b, offsetof(Thread, matrixRow), pointer()), *result = PoisonValue::get(call->getType());
  for (unsigned matrix = 0; matrix < (all ? all->getNumElements() : 1); ++matrix) {
    Value *from = given.word(b.CreateAdd(b.CreateLShr(given.lane, 2), b.getInt32(8 * matrix)), 0);
    Value *word = b.CreateLoad(i32(), b.CreateCall(signature, ask, {thread, from}));
    result = all ? b.CreateInsertValue(result, word, matrix) : word;
  }
  return result;
}

static Function *stepOf(Module &m, CallInst *call) {
  return m.getFunction(("unit." + call->getCalledFunction()->getName()).str());
}

Value *KernelRewrite::mmaTile(CallInst *call) {
  Function *step = stepOf(m, call);
  unsigned words = step->arg_size() / 2, fourths = words / 4, given = 3 * fourths;
  IRBuilder<> before(call);
  SmallVector<Value *, 8> registers;
  for (unsigned i = 0; i < given; ++i) registers.push_back(before.CreateBitCast(call->getArgOperand(i), i32()));
  Fragments all = giveFragments(call, registers, 32);
  IRBuilder<> &b = all.b;
  // Word w of what lanes 4 * point ... have: four lanes, then their next register.
  auto wordsOf = [&](Value *point, unsigned registers, unsigned step) {
    SmallVector<Value *, 8> out;
    for (unsigned w = 0; w < words; ++w)
      out.push_back(all.word(b.CreateAdd(b.CreateShl(point, 2), b.getInt32(w % 4)), registers + w / 4 * step));
    return out;
  };
  Value *row = b.CreateLShr(all.lane, 2), *pair = b.CreateShl(b.CreateAnd(all.lane, 3), 1);
  SmallVector<Value *, 8> rows[] = {wordsOf(row, 0, 2), wordsOf(row, 1, 2)};
  SmallVector<Value *, 8> columns[] = {wordsOf(pair, 2 * fourths, 1), wordsOf(b.CreateOr(pair, 1), 2 * fourths, 1)};
  Value *result = PoisonValue::get(call->getType());
  for (unsigned i = 0; i < 4; ++i) {
    SmallVector<Value *, 17> in(rows[i / 2].begin(), rows[i / 2].end());
    in.append(columns[i % 2].begin(), columns[i % 2].end());
    in.push_back(call->getArgOperand(given + i));
    result = b.CreateInsertValue(result, b.CreateCall(step, in), i);
  }
  return result;
}

/// Two words of the row and of the column whose number is the lane's lowest five bits; the other lane with these has
/// the other two.
Value *KernelRewrite::mfmaTile(CallInst *call) {
  Function *step = stepOf(m, call);
  IRBuilder<> before(call);
  SmallVector<Value *, 4> registers;
  for (unsigned operand : {0, 1}) {
    Value *both = before.CreateBitCast(call->getArgOperand(operand), FixedVectorType::get(i32(), 2));
    for (uint64_t w : {0, 1}) registers.push_back(before.CreateExtractElement(both, w));
  }
  Fragments all = giveFragments(call, registers, 64);
  IRBuilder<> &b = all.b;
  auto append = [&](SmallVectorImpl<Value *> &out, Value *point, unsigned operand) {
    for (unsigned w = 0; w < 4; ++w)
      out.push_back(all.word(b.CreateAdd(point, b.getInt32(w / 2 * 32)), operand * 2 + w % 2));
  };
  Value *column = b.CreateAnd(all.lane, 31), *half = b.CreateLShr(all.lane, 5), *sums = call->getArgOperand(2);
  for (unsigned r = 0; r < 16; ++r) {
    Value *row = b.CreateAdd(b.CreateShl(half, 2), b.getInt32(r / 4 * 8 + r % 4));
    SmallVector<Value *, 9> in;
    append(in, row, 0);
    append(in, column, 1);
    in.push_back(b.CreateExtractElement(sums, r));
    sums = b.CreateInsertElement(sums, b.CreateCall(step, in), r);
  }
  return sums;
}

/// The step of a sum that a warp group makes (Thread.h), around the function that is a step of the unit.
Function *KernelRewrite::stepOfGroup(StringRef type) {
  std::string name = ("group." + type).str();
  if (Function *made = m.getFunction(name)) return made;
  Function *step = m.getFunction(("unit.group." + type).str());
  Type *f32 = Type::getFloatTy(c);
  auto *f =
      Function::Create(FunctionType::get(f32, {pointer(), pointer(), f32}, false), Function::InternalLinkage, name, m);
  IRBuilder<> b(BasicBlock::Create(c, "entry", f));
  SmallVector<Value *, 17> in;
  for (unsigned side : {0, 1})
    for (unsigned w = 0; w < 8; ++w) in.push_back(b.CreateLoad(i32(), b.CreateConstGEP1_64(i32(), f->getArg(side), w)));
  in.push_back(f->getArg(2));
  b.CreateRet(b.CreateCall(step, in));
  return f;
}

/// What PtxCalls.h names.
Value *KernelRewrite::ptxCall(CallInst *call, StringRef name) {
  namespace is = astra::gpu::ptxName;
  IRBuilder<> b(call);
  Type *nothing = b.getVoidTy();
  auto at = [&](unsigned n) { return b.CreateAddrSpaceCast(call->getArgOperand(n), pointer()); };
  auto ask = [&](size_t hook, Type *result, ArrayRef<Value *> arguments) -> Value * {
    SmallVector<Value *, 6> in{thread};
    in.append(arguments.begin(), arguments.end());
    SmallVector<Type *, 6> types;
    for (Value *v : in) types.push_back(v->getType());
    return b.CreateCall(FunctionType::get(result, types, false), field(b, hook, pointer()), in);
  };
  auto place = [&](IRBuilder<> &b, unsigned i) {
    return b.CreateConstGEP1_64(b.getInt8Ty(), thread, offsetof(Thread, sums) + 4 * i);
  };
  auto giveSums = [&](unsigned first) {
    for (unsigned i = first; i < call->arg_size(); ++i) b.CreateStore(call->getArgOperand(i), place(b, i - first));
  };
  auto takeSums = [&](unsigned count) {
    IRBuilder<> after(call);
    Value *all = PoisonValue::get(call->getType());
    for (unsigned i = 0; i < count; ++i)
      all = after.CreateInsertValue(all, after.CreateLoad(after.getFloatTy(), place(after, i)), i);
    return all;
  };
  if (name == is::barrierInit)
    return ask(offsetof(Thread, barrierInit), nothing, {at(0), call->getArgOperand(1)}), nullptr;
  if (name == is::barrierFence) return ask(offsetof(Thread, barrierFence), nothing, {}), nullptr;
  if (name == is::barrierArrive || name == is::barrierExpect) {
    Value *bytes = call->arg_size() > 1 ? call->getArgOperand(1) : b.getInt32(0);
    return ask(offsetof(Thread, barrierArrive), nothing, {at(0), bytes}), nullptr;
  }
  if (name == is::barrierWait) {
    setField(b, offsetof(Thread, awaited), at(0));
    setField(b, offsetof(Thread, phaseParity), call->getArgOperand(1));
    suspend(call, Wait::Phase, nullptr, nullptr);
    return nullptr;
  }
  if (name == is::copyBox)
    return ask(offsetof(Thread, copyBox), nothing,
               {at(0), at(1), call->getArgOperand(2), call->getArgOperand(3), at(4)}),
           nullptr;
  if (name == is::proxyFence) return ask(offsetof(Thread, proxyFence), nothing, {}), nullptr;
  if (name.starts_with(is::fence)) {
    ask(offsetof(Thread, groupFence), nothing, {});
    Value *all = PoisonValue::get(call->getType());
    for (unsigned i = 0; i < call->arg_size(); ++i) all = b.CreateInsertValue(all, call->getArgOperand(i), i);
    return all;
  }
  if (name == is::commit) return ask(offsetof(Thread, commit), nothing, {}), nullptr;
  if (name == is::descriptor) {
    Value *from = b.CreateLShr(ask(offsetof(Thread, placeOf), i64(), {at(0)}), 4);
    return b.CreateOr(from, b.getInt64(astra::gpu::lineDescriptor));
  }
  if (name.consume_front(is::multiply)) {
    unsigned count = call->arg_size() - 2;
    giveSums(2);
    ask(offsetof(Thread, multiply), nothing,
        {b.getInt32(count), call->getArgOperand(0), call->getArgOperand(1), stepOfGroup(name.split('.').first)});
    return takeSums(count);
  }
  if (name.consume_front(is::wait)) { // lanes meet: what one says of the warp is so of all
    unsigned count = call->arg_size(), left = 0;
    name.split('.').first.getAsInteger(10, left);
    giveSums(0);
    ask(offsetof(Thread, awaitGroups), nothing, {b.getInt32(count), b.getInt32(left)});
    Value *own = field(b, offsetof(Thread, number), i32());
    suspend(call, Wait::Exchange, b.getInt32(0), own);
    return takeSums(count);
  }
  return nullptr; // registers that are given or taken
}

Error KernelRewrite::replaceCalls() {
  std::vector<CallInst *> calls;
  for (Instruction &i : instructions(*host))
    if (auto *call = dyn_cast<CallInst>(&i)) calls.push_back(call);
  for (CallInst *call : calls) {
    Function *callee = call->getCalledFunction();
    if (callee && callee->getName().starts_with("ptx.")) {
      if (Value *v = ptxCall(call, callee->getName())) call->replaceAllUsesWith(v);
      call->eraseFromParent();
      continue;
    }
    if (!callee || !callee->isIntrinsic()) continue;
    IRBuilder<> b(call);
    Value *result = nullptr;
    auto number = [&] { return field(b, offsetof(Thread, number), i32()); };
    auto exchange = [&](Value *word, Value *from) {
      suspend(call, Wait::Exchange, word, from);
      IRBuilder<> after(call);
      auto *signature = FunctionType::get(i32(), {pointer()}, false);
      return after.CreateCall(signature, field(after, offsetof(Thread, received), pointer()), {thread});
    };
    // The lane of the same warp with another number: `lane` counts within `of`, a power of two.
    auto within = [&](Value *lane, uint32_t of) {
      return b.CreateOr(b.CreateAnd(number(), b.getInt32(~(of - 1))), b.CreateAnd(lane, b.getInt32(of - 1)));
    };
    auto copies = [&](uint32_t bytes) {
      auto *type = FunctionType::get(b.getVoidTy(), {pointer(), pointer(), pointer(), i32(), i32()}, false);
      auto place = [&](unsigned n) { return b.CreateAddrSpaceCast(call->getArgOperand(n), pointer()); };
      Value *all = b.getInt32(bytes), *taken = call->arg_size() > 2 ? call->getArgOperand(2) : all;
      b.CreateCall(type, field(b, offsetof(Thread, copy), pointer()), {thread, place(0), place(1), all, taken});
    };
    switch (callee->getIntrinsicID()) {
    case Intrinsic::nvvm_read_ptx_sreg_tid_x:
    case Intrinsic::amdgcn_workitem_id_x: result = number(); break;
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    case Intrinsic::amdgcn_workgroup_id_x: result = field(b, offsetof(Thread, block), i32()); break;
    case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
    case Intrinsic::amdgcn_s_barrier: suspend(call, Wait::Barrier, nullptr, nullptr); break;
    case Intrinsic::nvvm_cp_async_ca_shared_global_4:
    case Intrinsic::nvvm_cp_async_ca_shared_global_4_s: copies(4); break;
    case Intrinsic::nvvm_cp_async_ca_shared_global_8:
    case Intrinsic::nvvm_cp_async_ca_shared_global_8_s: copies(8); break;
    case Intrinsic::nvvm_cp_async_ca_shared_global_16:
    case Intrinsic::nvvm_cp_async_ca_shared_global_16_s:
    case Intrinsic::nvvm_cp_async_cg_shared_global_16:
    case Intrinsic::nvvm_cp_async_cg_shared_global_16_s: copies(16); break;
    case Intrinsic::nvvm_cp_async_commit_group:
      b.CreateCall(FunctionType::get(b.getVoidTy(), {pointer()}, false),
                   field(b, offsetof(Thread, closeCopies), pointer()), {thread});
      break;
    case Intrinsic::nvvm_cp_async_wait_group:
      b.CreateCall(FunctionType::get(b.getVoidTy(), {pointer(), i32()}, false),
                   field(b, offsetof(Thread, awaitCopies), pointer()), {thread, call->getArgOperand(0)});
      break;
    case Intrinsic::nvvm_shfl_sync_bfly_i32:
      result = exchange(call->getArgOperand(1), b.CreateXor(number(), call->getArgOperand(2)));
      break;
    case Intrinsic::amdgcn_ds_bpermute:
      result = exchange(call->getArgOperand(1), within(b.CreateLShr(call->getArgOperand(0), 2), 64));
      break;
    case Intrinsic::amdgcn_ds_swizzle: { // and, or, xor masks of five bits each, within 32 lanes
      uint64_t p = cast<ConstantInt>(call->getArgOperand(1))->getZExtValue();
      Value *lane = b.CreateAnd(number(), b.getInt32(p & 31));
      lane = b.CreateXor(b.CreateOr(lane, b.getInt32(p >> 5 & 31)), b.getInt32(p >> 10 & 31));
      result = exchange(call->getArgOperand(0), within(lane, 32));
      break;
    }
    case Intrinsic::amdgcn_update_dpp: { // row_ror:n: from the lane n below, around a row of 16
      uint64_t control = cast<ConstantInt>(call->getArgOperand(2))->getZExtValue();
      if (control <= 0x120 || control >= 0x130) return createStringError("dpp control %llu has no host form", control);
      result = exchange(call->getArgOperand(1), within(b.CreateSub(number(), b.getInt32(control - 0x120)), 16));
      break;
    }
    default:
      if (isLdmatrix(call)) {
        result = matrices(call);
        break;
      }
      if (Tile tile = tileOf(call); tile != Tile::None) {
        result = tile == Tile::Mma ? mmaTile(call) : mfmaTile(call);
        break;
      }
      if (callee->getName().starts_with("llvm.nvvm.") || callee->getName().starts_with("llvm.amdgcn."))
        return createStringError(callee->getName() + " has no host form");
      continue;
    }
    if (result) call->replaceAllUsesWith(result);
    call->eraseFromParent();
  }
  return Error::success();
}

Error KernelRewrite::run(Function *device) {
  std::string name = device->getName().str();
  device->setName(name + ".device");
  auto *type = FunctionType::get(pointer(), {pointer(), pointer()}, false);
  host = Function::Create(type, Function::ExternalLinkage, name, m);
  host->splice(host->begin(), device);
  thread = host->getArg(0);
  bool coroutine = waits(*host);
  BasicBlock *old = &host->getEntryBlock(), *entry = BasicBlock::Create(c, "entry", host, old);
  IRBuilder<> b(entry);
  std::vector<ReturnInst *> returns;
  for (Instruction &i : instructions(*host))
    if (auto *r = dyn_cast<ReturnInst>(&i)) returns.push_back(r);
  makeArguments(b, device);
  if (coroutine) beginCoroutine(b);
  moveArrays(b);
  askBeforeAccess();
  b.CreateBr(old);
  if (Error e = replaceCalls()) return e;
  for (ReturnInst *r : returns) {
    IRBuilder<> end(r);
    if (coroutine) {
      setField(end, offsetof(Thread, wait), end.getInt32(uint32_t(Wait::None)));
      Instruction *never = end.CreateUnreachable();
      r->eraseFromParent();
      splitAt(never, true);
    } else {
      end.CreateRet(ConstantPointerNull::get(pointer()));
      r->eraseFromParent();
    }
  }
  device->eraseFromParent();
  return Error::success();
}

} // namespace

/// The shared arrays that a kernel uses, one after another.
static SharedArrays sharedOf(Module &m, Function &f, uint64_t &bytes) {
  SharedArrays out;
  for (GlobalVariable &g : m.globals()) {
    auto uses = [&](User *u) { return isa<Instruction>(u) && cast<Instruction>(u)->getFunction() == &f; };
    if (g.getAddressSpace() != sharedSpace || llvm::none_of(g.users(), uses)) continue;
    bytes = alignTo(bytes, g.getAlign().valueOrOne());
    out.push_back({&g, bytes});
    bytes = alignTo(bytes + m.getDataLayout().getTypeAllocSize(g.getValueType()), 64);
  }
  return out;
}

Expected<StringMap<uint64_t>> astra::emulator::retarget(Module &m) {
  SmallVector<Constant *> constants;
  for (GlobalVariable &g : m.globals())
    if (g.getAddressSpace() == sharedSpace) constants.push_back(&g);
  convertUsersOfConstantsToInstructions(constants);
  std::vector<Function *> kernels;
  for (Function &f : m) // a step of a matrix unit is long, and called for each sum of a tile
    if (f.removeFnAttr(Attribute::AlwaysInline); !f.isDeclaration() && f.hasInternalLinkage())
      f.addFnAttr(Attribute::NoInline);
  for (Function &f : m)
    if (!f.isDeclaration() && !f.hasInternalLinkage()) kernels.push_back(&f);
  StringMap<uint64_t> bytes;
  for (Function *f : kernels) {
    SharedArrays shared = sharedOf(m, *f, bytes[f->getName()]);
    if (Error e = KernelRewrite(m, shared).run(f)) return std::move(e);
  }
  for (Constant *g : constants)
    if (g->use_empty()) cast<GlobalVariable>(g)->eraseFromParent();
  for (Function &f : llvm::make_early_inc_range(m))
    if (f.isDeclaration() && f.use_empty()) f.eraseFromParent();
  return bytes;
}
