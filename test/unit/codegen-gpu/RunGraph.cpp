//===- RunGraph.cpp: a module's kernels in the emulator ----------------------===//
#include "RunGraph.h"
#include "Executed.h"
#include "RunSchedule.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"

using namespace astra;
using namespace astra::test;

Tensor astra::test::randomTensor(DType t, std::vector<int64_t> shape, uint64_t seed) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  Tensor x{t, shape, std::vector<uint8_t>(count * byteSize(t))};
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    double v = double(int64_t(seed >> 40) - (1 << 23)) * 0x1p-20;
    float f = float(v);
    uint64_t bits = seed >> 30;
    if (t == DType::F64) memcpy(&bits, &v, 8);
    if (t == DType::F32) memcpy(&bits, &f, 4);
    if (t == DType::F16) bits = (bits & 0x83ff) | 0x3800; // around 1
    if (t == DType::Bool) bits &= 1;
    memcpy(&x.bytes[i * byteSize(t)], &bits, byteSize(t));
  }
  return x;
}

GraphOnGpu::GraphOnGpu(llvm::StringRef text, const GpuTarget &target, bool build, std::function<void(Plan &)> change)
    : target(target) {
  if (auto e = make(text, build, change)) wrong = llvm::toString(std::move(e));
}

llvm::Error GraphOnGpu::make(llvm::StringRef text, bool build, const std::function<void(Plan &)> &change) {
  auto parsed = parse("module @m {\n" + text.str() + "\n}", "graph.uop");
  if (!parsed) return parsed.takeError();
  original = *parsed;
  lowered = *parsed;
  if (auto e = runNumerics(*lowered)) return e;
  RewriteOptions options;
  auto roots = rewrite(lowered->ctx(), lowered->roots(), graphRules, options);
  if (!roots) return roots.takeError();
  auto it = roots->begin();
  for (Value &v : lowered->entries[0].outputs) v.value = *it++;
  ScheduleOptions how;
  how.alongSum = multipliesLines(target);
  auto s = astra::schedule(*lowered, how);
  if (!s) return s.takeError();
  schedule = std::move(*s);
  if (!change) { // fused chains too
    auto all = gpuKernels(lowered->ctx(), *schedule, target, storage);
    if (!all) return all.takeError();
    kernels = std::move(*all);
  }
  if (change) {
    storage.resize(schedule->kernels.size());
    for (auto [spec, kernel] : llvm::zip(schedule->kernels, storage)) {
      Plan plan = chooseGpuPlan(lowered->ctx(), spec, target);
      change(plan);
      auto k = gpuKernel(lowered->ctx(), spec, plan, kernel);
      if (!k) return k.takeError();
      kernels.push_back(std::move(*k));
    }
  }
  if (!build) return llvm::Error::success();
  auto m = lowerGpu(lowered->ctx(), kernels, target, schedule->dims);
  if (!m) return m.takeError();
  use(std::move(*m));
  return llvm::Error::success();
}

void GraphOnGpu::use(GpuModule m) {
  module = std::move(m);
  auto e = Emulator::build(*module);
  if (e)
    emulator.emplace(std::move(*e));
  else
    wrong = llvm::toString(e.takeError());
}

int64_t astra::test::longestFold(const GpuKernel &k) {
  bool product = false;
  int64_t longest = 0;
  for (UOpRef x : topoSort({k.kernel->sink})) {
    if (x->op != Op::Fold) continue;
    product |= Combine(x->ints[0]) == Combine::Fma;
    int64_t n = 1;
    for (UOpRef r : x->indices()) n *= std::clamp<int64_t>(r->src[0]->hi, 1, 1 << 20);
    longest = std::max(longest, n);
  }
  return product ? 0 : longest;
}

std::string GraphOnGpu::plans() const {
  std::string all;
  for (const Kernel &k : storage) all += k.name + ": " + text(k.plan) + "\n";
  return all;
}

std::string GraphOnGpu::difference(llvm::ArrayRef<int64_t> dims, uint64_t seed) {
  const Entry &entry = original->entries[0];
  EvalInputs in;
  for (const Value &v : entry.inputs) {
    std::vector<int64_t> shape;
    for (UOpRef e : v.value->shape) {
      auto n = idxEvaluate(e, [&](UOpRef d) -> std::optional<int64_t> {
        for (size_t i = 0; i < dims.size(); ++i)
          if (schedule->dims[i] == d) return dims[i];
        return std::nullopt;
      });
      if (!n) return "an input's shape is not known";
      shape.push_back(*n);
    }
    in.inputs.push_back(randomTensor(v.value->dtype, shape, seed * 1000 + in.inputs.size()));
  }
  EvalOptions options;
  options.function = evalFunction;
  auto want = evalEntry(*original, entry, in, options);
  if (!want) return llvm::toString(want.takeError());
  EmulatedRun run{seed, 0};
  uint64_t launches = 0;
  ScheduleRun scheduled(*lowered, *schedule, *targetNamed("cpu:x86-64-v3"), true);
  scheduled.execute = [&](uint32_t k, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> views,
                          llvm::ArrayRef<int64_t> values, int64_t items) {
    std::vector<EmulatedBuffer> buffers;
    for (size_t i = 0; i < views.size(); ++i) buffers.push_back({views[i], storage[k].buffers[i].write});
    ++launches;
    if (UOpRef tiles = kernels[k].tiles) // of rows, of a fused chain
      items = idxEvaluate(tiles, [&](UOpRef d) -> std::optional<int64_t> {
                for (size_t i = 0; i < values.size(); ++i)
                  if (schedule->dims[i] == d) return values[i];
                return std::nullopt;
              }).value_or(0);
    return emulator->launch(k, buffers, values, items, run);
  };
  scheduled.useKernels(storage);
  auto got = scheduled.run(0, in);
  threads += run.threads;
  noteExecuted(target, executed ? 0 : kernels.size(), launches, run.threads);
  executed = true;
  if (!got) return llvm::toString(got.takeError());
  for (size_t i = 0; i < want->outputs.size(); ++i)
    if (got->outputs[i] != want->outputs[i]) return "output " + std::to_string(i) + " differs";
  return "";
}
