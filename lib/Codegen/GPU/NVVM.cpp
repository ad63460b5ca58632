//===- NVVM.cpp: the operations of NVIDIA's GPUs ---------------------------===//
#include "Machine.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace astra;
using namespace astra::gpu;

namespace {
class Nvvm final : public Machine {
public:
  using Machine::Machine;
  void markKernel(mlir::LLVM::LLVMFuncOp f, unsigned threads) override {
    f->setAttr("nvvm.kernel", a.b.getUnitAttr());
    f->setAttr("nvvm.reqntid", a.b.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  }
  V thread() override { return mlir::NVVM::ThreadIdXOp::create(a.b, a.loc, a.i(32)); }
  V block() override { return mlir::NVVM::BlockIdXOp::create(a.b, a.loc, a.i(32)); }
  void barrier() override { mlir::NVVM::Barrier0Op::create(a.b, a.loc); }
  V folded(V word, unsigned distance, unsigned) override {
    return mlir::NVVM::ShflOp::create(a.b, a.loc, a.i(32), a.integer(32, ~0ull), word, a.integer(32, distance),
                                      a.integer(32, 31), mlir::NVVM::ShflKind::bfly, mlir::UnitAttr());
  }
  void copyAsync(V to, V from, unsigned bytes, V taken) override {
    using Cache = mlir::NVVM::LoadCacheModifierKind; // only 16 bytes pass the first cache by
    mlir::NVVM::CpAsyncOp::create(a.b, a.loc, to, from, bytes, bytes == 16 ? Cache::CG : Cache::CA, taken);
  }
  void closeCopies() override { mlir::NVVM::CpAsyncCommitGroupOp::create(a.b, a.loc); }
  void awaitCopies(unsigned left) override { mlir::NVVM::CpAsyncWaitGroupOp::create(a.b, a.loc, left); }
  unsigned privateSpace() const override { return 0; }
  unsigned constantSpace() const override { return globalSpace; } // lanes read different entries
};
} // namespace

std::unique_ptr<Machine> astra::gpu::nvvmMachine(Arith &a) { return std::make_unique<Nvvm>(a); }
