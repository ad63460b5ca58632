//===- CostGpu.cpp: what a kernel takes of a GPU ----------------------------===//
// Takes:    a kernel bound to threads, values of the dims, the chip's row of MachineTable.def.
// Gives:    cycles of a launch, by what takes them: the kernel's instructions, counted for a thread and shared out to
//           the units of the chip, and what its accesses move (Accesses.cpp).
// Keeps:    a function of its arguments alone, as on CPUs (Cost.cpp).
// Does not: know what LLVM and ptxas make of the kernel, its registers and so how many warps a unit really has, what
//           addresses and launches take, L1, or a step of a matrix unit in primitives, which counts as one by the unit.
#include "Barriers.h"
#include "astra/Codegen/Cost.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace astra;
using namespace astra::gpu;

static const GpuSpeeds speeds[] = {
#define GPU_SPEEDS(name, title, units, fma, matrix, latency, l2, l2_speed, memory, source)                             \
  {name, title, units, fma, matrix, latency, l2 * 1024ull, l2_speed, memory, source},
#include "format/MachineTable.def"
};

llvm::ArrayRef<GpuSpeeds> astra::allGpuSpeeds() { return speeds; }

const GpuSpeeds *astra::speedsOf(const GpuTarget &t) {
  llvm::StringRef chip(t.chip);
  if (chip.starts_with("sm_")) chip.consume_back("a"); // the same chips
  auto at = llvm::find_if(speeds, [&](const GpuSpeeds &s) { return chip == s.name; });
  return at == std::end(speeds) ? nullptr : at;
}

const char *astra::gpuTermName(GpuTerm t) {
  static constexpr const char *names[numGpuTerms] = {"arithmetic",    "matrix units", "chains",
                                                     "shared memory", "L2",           "memory"};
  return names[size_t(t)];
}

namespace {
/// What the threads of a launch do together, in multiply-adds, and the longest chain of updates that one of them has.
class Work {
public:
  using Value = llvm::function_ref<std::optional<int64_t>(UOpRef)>;
  explicit Work(Value dims) : dims(dims) {}
  double arithmetic = 0, matrix = 0, chain = 0;

  /// `times`: that its items run, each by all threads of its group.
  void add(const GpuKernel &k, double times) {
    llvm::SmallVector<double> all{times * k.group}, own{1};
    llvm::DenseMap<UOpRef, double> updates;
    for (const Inst &i : k.linear.insts) {
      UOpRef x = i.uop;
      if (i.kind == InstKind::LoopBegin) {
        double trips = double(std::max<int64_t>(idxEvaluate(x->src[0], dims).value_or(x->src[0]->hi), 0));
        all.push_back(all.back() * trips);
        own.push_back(RangeKind(x->ints[1]) == RangeKind::Parallel ? own.back() : own.back() * trips);
      } else if (i.kind == InstKind::LoopEnd)
        all.pop_back(), own.pop_back();
      else if (i.kind == InstKind::AccUpdate) {
        auto combine = Combine(x->ints[0]);
        size_t each = valuesOf(combine), many = (x->ntensors - 1) / std::max<size_t>(each, 1);
        updates[x] += double(many) * own.back();
        if (const UnitStep *step = unitStepOf(combine))
          matrix += all.back() * double(many) * elements(x) * step->words * matrixInputsInWord(step->inputs) *
                    ofType(step->inputs);
        else
          arithmetic += all.back() * double(many) * elements(x);
      } else if (i.kind == InstKind::Define && !x->isIndex())
        arithmetic += all.back() * fmasOf(x) * elements(x->dtype == DType::Bool && !x->src.empty() ? x->src[0] : x);
    }
    double longest = 0;
    for (auto &[fold, n] : updates) longest = std::max(longest, n);
    if (times > 0) chain += longest;
  }

private:
  Value dims;
  /// Words of 32 bits of a value: f64 go at half the speed.
  static double elements(UOpRef x) {
    double lanes = x->rank() ? double(x->shape[0]->constIndex().value_or(1)) : 1;
    return lanes * (byteSize(x->dtype) > 4 ? 2 : 1);
  }
  /// What a product takes, in those of 16-bit inputs.
  static double ofType(const MatrixInputs &t) { return 2.0 / std::max(matrixInputsInWord(t), 1u); }
};
} // namespace

std::optional<GpuCost> astra::costOf(Context &c, const GpuKernel &k, const GpuTarget &t, const GpuSpeeds &s,
                                     llvm::function_ref<std::optional<int64_t>(UOpRef)> dims) {
  auto items = idxEvaluate(itemsOf(c, k), dims);
  if (!items) return std::nullopt;
  double held = 0; // of all buffers
  for (const KernelBuffer &b : k.kernel->buffers) {
    auto n = idxEvaluate(b.elements, dims);
    if (!n) return std::nullopt;
    held += double(*n) * byteSize(b.dtype);
  }
  Work work(dims);
  work.add(k, 1);
  for (const GpuKernel &step : k.steps) work.add(step, double(*items));
  double moved = 0, waves = 0;
  for (const GpuAccess &a : gpuAccesses(k, t, dims))
    moved += double(*items) * double(a.moved), waves += double(*items) * double(a.waves);

  GpuCost out{};
  double blocks = std::ceil(double(*items) * k.group / k.threads), // full ones take turns on the units
      rounds = std::ceil(blocks / s.units), together = double(t.parts * t.partWarps * t.warp) / k.threads,
         turns = std::ceil(blocks / (s.units * std::max(together, 1.0)));
  auto busiest = [&](double all) { return blocks > 0 ? all / blocks * rounds : 0; }; // of the busiest unit
  out[size_t(GpuTerm::Arithmetic)] = busiest(work.arithmetic) / s.fma;
  out[size_t(GpuTerm::Matrix)] = busiest(work.matrix) / s.matrix;
  out[size_t(GpuTerm::Chains)] = work.chain * s.latency * turns;
  out[size_t(GpuTerm::Shared)] = busiest(waves);
  out[size_t(GpuTerm::L2)] = moved / s.l2;
  out[size_t(GpuTerm::Memory)] = held > double(s.l2Bytes) ? std::min(held, moved) / s.memory : 0;
  return out;
}
