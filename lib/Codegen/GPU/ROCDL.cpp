//===- ROCDL.cpp: the operations of AMD's GPUs -----------------------------===//
#include "Machine.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace astra;
using namespace astra::gpu;

namespace {
class Rocdl final : public Machine {
public:
  Rocdl(Arith &a, unsigned warp) : Machine(a), warp(warp) {}
  void markKernel(mlir::LLVM::LLVMFuncOp f, unsigned threads) override {
    std::string n = std::to_string(threads);
    f->setAttr("rocdl.kernel", a.b.getUnitAttr());
    f->setAttr("rocdl.reqd_work_group_size", a.b.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
    f->setAttr("rocdl.flat_work_group_size", a.b.getStringAttr(n + "," + n));
  }
  V thread() override { return mlir::ROCDL::ThreadIdXOp::create(a.b, a.loc, a.i(32)); }
  V block() override { return mlir::ROCDL::BlockIdXOp::create(a.b, a.loc, a.i(32)); }
  void barrier() override { mlir::ROCDL::BarrierOp::create(a.b, a.loc); }
  // Within a row of 16 lanes a rotation is as good as an exchange once what lies further apart is equal; between rows,
  // and where a row has several folds, a swizzle exchanges; between halves of a wave of 64 only a permutation through
  // the address does.
  V folded(V word, unsigned distance, unsigned lanes) override {
    if (lanes < 16)
      return mlir::ROCDL::DsSwizzleOp::create(a.b, a.loc, a.i(32), word, a.integer(32, distance << 10 | 31));
    if (distance <= 8)
      return mlir::ROCDL::DPPUpdateOp::create(a.b, a.loc, a.i(32), word, word, 0x120 + distance, 0xf, 0xf, true);
    if (distance == 16) return mlir::ROCDL::DsSwizzleOp::create(a.b, a.loc, a.i(32), word, a.integer(32, 0x401f));
    V lane = a.band(thread(), warp - 1), other = a.bxor(lane, distance);
    return mlir::ROCDL::DsBpermuteOp::create(a.b, a.loc, a.i(32), a.shl(other, 2u), word);
  }
  unsigned privateSpace() const override { return 5; }
  unsigned constantSpace() const override { return 4; }

private:
  unsigned warp;
};
} // namespace

std::unique_ptr<Machine> astra::gpu::rocdlMachine(Arith &a, unsigned warp) { return std::make_unique<Rocdl>(a, warp); }
