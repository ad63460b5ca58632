//===- GpuTarget.cpp: the GPUs, one row each -------------------------------===//
#include "astra/Codegen/GPU.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

static constexpr uint64_t KiB = 1024;
static const GpuTarget rows[] = {
    // name, flavour, chip, features, warp, threads, shared memory; parts, warps, registers, how many at once, shared
    // memory, a block's part of it; asynchronous copies, warp groups
    {"cuda:sm_75", GpuFlavour::CUDA, "sm_75", "+ptx80", 32, 1024, 48 * KiB, 4, 8, 512, 8, 64 * KiB, 0},
    {"cuda:sm_80", GpuFlavour::CUDA, "sm_80", "+ptx80", 32, 1024, 48 * KiB, 4, 16, 512, 8, 164 * KiB, KiB, true},
    {"cuda:sm_86", GpuFlavour::CUDA, "sm_86", "+ptx80", 32, 1024, 48 * KiB, 4, 12, 512, 8, 100 * KiB, KiB, true},
    {"cuda:sm_89", GpuFlavour::CUDA, "sm_89", "+ptx80", 32, 1024, 48 * KiB, 4, 12, 512, 8, 100 * KiB, KiB, true},
    {"cuda:sm_90", GpuFlavour::CUDA, "sm_90", "+ptx80", 32, 1024, 48 * KiB, 4, 16, 512, 8, 228 * KiB, KiB, true},
    {"cuda:sm_90a", GpuFlavour::CUDA, "sm_90a", "+ptx80", 32, 1024, 48 * KiB, 4, 16, 512, 8, 228 * KiB, KiB, true,
     true},
    {"cuda:sm_100", GpuFlavour::CUDA, "sm_100", "+ptx86", 32, 1024, 48 * KiB, 4, 16, 512, 8, 228 * KiB, KiB, true},
    {"cuda:sm_120", GpuFlavour::CUDA, "sm_120", "+ptx87", 32, 1024, 48 * KiB, 4, 12, 512, 8, 100 * KiB, KiB, true},
    {"hip:gfx90a", GpuFlavour::HIP, "gfx90a", "", 64, 1024, 64 * KiB, 4, 8, 512, 8, 64 * KiB, 0},
    {"hip:gfx942", GpuFlavour::HIP, "gfx942", "", 64, 1024, 64 * KiB, 4, 8, 512, 8, 64 * KiB, 0},
    {"hip:gfx1100", GpuFlavour::HIP, "gfx1100", "", 32, 1024, 64 * KiB, 2, 16, 1536, 24, 64 * KiB, 0},
};

// What a core of an Apple GPU has is not published: its figures are for the planner, which changes no bit.
static const GpuTarget metal = {"metal", GpuFlavour::Metal, "", "", 32, 1024, 32 * KiB, 4, 24, 416, 8, 60 * KiB, 0};
/// mma.sync on chips on which outputs were recorded that the unit's row gives, MFMA where its source says so
/// (numerics.md, N4.8).
static constexpr UnitInstruction instructions[] = {
    {"hopper16", "bf16", "sm_90", "llvm.nvvm.mma.m16n8k16.row.col.bf16", UnitInstruction::Mma},
    {"hopper16", "f16", "sm_90", "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", UnitInstruction::Mma},
    {"hopper8-tf32", "tf32", "sm_90", "llvm.nvvm.mma.m16n8k8.row.col.tf32", UnitInstruction::Mma},
    {"ampere8", "bf16", "sm_80", "llvm.nvvm.mma.m16n8k8.row.col.bf16", UnitInstruction::Mma},
    {"ampere8", "f16", "sm_80", "llvm.nvvm.mma.m16n8k8.row.col.f32.f32", UnitInstruction::Mma},
    {"ampere4-tf32", "tf32", "sm_80", "llvm.nvvm.mma.m16n8k4.row.col.tf32", UnitInstruction::Mma},
    {"cdna3-8", "bf16", "gfx942", "llvm.amdgcn.mfma.f32.32x32x8bf16.1k", UnitInstruction::Mfma},
    {"cdna3-8", "f16", "gfx942", "llvm.amdgcn.mfma.f32.32x32x8f16", UnitInstruction::Mfma},
    {"cdna2", "bf16", "gfx90a", "llvm.amdgcn.mfma.f32.32x32x8bf16.1k", UnitInstruction::Mfma},
    {"cdna2", "f16", "gfx90a", "llvm.amdgcn.mfma.f32.32x32x8f16", UnitInstruction::Mfma},
};

const UnitInstruction *astra::unitInstruction(const GpuTarget &target, const UnitStep &step) {
  llvm::StringRef chip(target.chip);
  if (chip.starts_with("sm_")) chip.consume_back("a"); // what that one has besides is no mma.sync
  for (const UnitInstruction &i : instructions)
    if (llvm::StringRef(step.unit->text) == i.unit && textOf(step.inputs) == i.input && chip == i.chip) return &i;
  return nullptr;
}

bool astra::multipliesLines(const GpuTarget &target) {
  return target.warpGroups || llvm::any_of(instructions, [&](const UnitInstruction &i) {
           return i.form == UnitInstruction::Mma && llvm::StringRef(target.chip) == i.chip;
         });
}

llvm::StringRef astra::warpGroupType(const GpuTarget &target, const UnitStep &step) {
  if (!target.warpGroups || !llvm::StringRef(step.unit->text).starts_with("hopper")) return "";
  if (step.inputs.a != step.inputs.b) return "";
  switch (step.inputs.a) {
  case MatrixInput::BF16: return "bf16";
  case MatrixInput::F16: return "f16";
  case MatrixInput::TF32: return "tf32";
  case MatrixInput::E4M3: return "e4m3";
  case MatrixInput::E5M2: return "e5m2";
  }
  return "";
}

llvm::ArrayRef<GpuTarget> astra::allGpuTargets() { return rows; }
const GpuTarget &astra::metalTarget() { return metal; }

const GpuTarget *astra::gpuTargetNamed(llvm::StringRef name) {
  for (const GpuTarget &t : rows)
    if (name == t.name) return &t;
  return nullptr;
}

uint64_t astra::mostShared(const GpuTarget &t) {
  return t.flavour == GpuFlavour::CUDA ? t.unitShared - t.blockShared : t.sharedBytes;
}

unsigned astra::gpuOccupancy(const GpuTarget &t, unsigned threads, unsigned registers, uint64_t shared) {
  unsigned warps = llvm::divideCeil(threads, t.warp), most = t.parts * t.partWarps;
  unsigned each = llvm::alignTo(std::max(registers, 1u), t.registersAtOnce);
  unsigned held = t.parts * std::min(t.partWarps, t.laneRegisters / each), blocks = held / warps;
  if (shared + t.blockShared) blocks = std::min<uint64_t>(blocks, t.unitShared / (shared + t.blockShared));
  return blocks * warps * 100 / most;
}
