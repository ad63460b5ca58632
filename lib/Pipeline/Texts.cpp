//===- Texts.cpp: a stage as text, in place of a bundle ---------------------===//
// Takes:    a schedule, and the code of its kernels.
// Gives:    plans, a tuning, costs, C, assembly; of a GPU plans, a tuning, costs,
//           accesses to memory, MLIR, LLVM IR, PTX or assembly, Metal's source.
#include "Run.h"
#include "astra/Codegen/Cost.h"
#include "astra/Codegen/EmitProgram.h"
#include "astra/Codegen/Lower.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Search/Occasions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

using namespace astra;
using namespace llvm;

std::string astra::planList(ArrayRef<CompiledTarget> code, ArrayRef<GpuPart> gpus) {
  std::string out;
  for (const CompiledTarget &t : code) {
    out += std::string("target ") + t.target->name + "\n";
    for (const CompiledKernel &k : t.kernels) out += k.kernel.name + ": " + text(k.kernel.plan) + "\n";
  }
  for (const GpuPart &g : gpus) {
    out += std::string("target ") + g.gpu.target->name + "\n";
    for (const Kernel &k : g.gpu.kernels) out += k.name + ": " + text(k.plan) + "\n";
  }
  return out;
}

/// The plans of all kernels of a target as a tuning has them.
static void addTo(Tuning &out, const Schedule &s, const char *target, function_ref<const Kernel &(size_t)> kernel) {
  for (auto [i, spec] : enumerate(s.kernels)) out[{contentHash(spec), target}] = {kernel(i).plan, ""};
}

/// How the warps of each kernel meet in memory, a line for each access; lines that are equal are one, with their
/// number.
static std::string accessList(ArrayRef<GpuKernel> kernels, const GpuTarget &target) {
  std::string out = std::string("target ") + target.name + "\n";
  for (const GpuKernel &k : kernels) {
    std::vector<std::pair<std::string, unsigned>> lines;
    for (const GpuAccess &a : gpuAccesses(k, target)) {
      std::string line = k.name + (a.write ? ": store to " : ": load from ");
      line += a.buffer < 0 ? "shared memory" : "buffer " + std::to_string(a.buffer);
      line += ", loops " + std::to_string(a.loops) + ", bytes " + std::to_string(a.bytes);
      if (a.buffer < 0)
        line += ", words in a bank " + std::to_string(a.conflict);
      else
        line += ", sectors " + std::to_string(a.sectors) +
                formatv(", of those needed {0:f2}, moved {1}", a.waste, a.moved).str();
      auto same = find_if(lines, [&](const auto &l) { return l.first == line; });
      if (same == lines.end()) same = lines.insert(same, {line, 0});
      ++same->second;
    }
    for (auto &[line, times] : lines) out += line + ", times " + std::to_string(times) + "\n";
  }
  return out;
}

namespace {
/// Costs of a target's kernels as text: each at dims at which an entry launches it.
class CostList {
public:
  CostList(const Module &m, const Schedule &s) : s(s), occasions(findOccasions(m, s)), os(text) {}

  void target(StringRef name, StringRef speeds) {
    os << "target " << name << ", speeds of " << speeds << "\n";
    all = 0;
  }
  /// The value of a dim at which kernel number `i` is launched.
  std::optional<int64_t> dim(size_t i, UOpRef n) const {
    size_t d = find(s.dims, n) - s.dims.begin();
    const auto &dims = occasions[i].dims;
    return d < dims.size() ? std::optional(dims[d]) : std::nullopt;
  }
  void begin(const Kernel &k) {
    if (isOpen) os << "  no sizes are known at which it is launched\n";
    os << k.name << ": " << ::text(k.plan) << "\n";
    isOpen = true;
  }
  /// What the kernel takes that has begun: all of it, the number of the term that bounds it, each term, how it is
  /// shared.
  void terms(size_t i, const Kernel &k, double total, size_t bound, ArrayRef<double> cycles,
             function_ref<const char *(size_t)> name, const Twine &shared = "") {
    const Occasion &at = occasions[i];
    os << formatv("  {0:f0} cycles by {1}", total, name(bound));
    const char *before = " where ";
    std::vector<UOpRef> used = topoSort(k.sink);
    for (auto [d, v] : zip(s.dims, at.dims))
      if (is_contained(used, d)) os << before << d->str.str() << " is " << v, before = ", ";
    os << formatv(", {0:f0} launches a call\n  ", at.launches);
    for (auto [n, v] : enumerate(cycles)) os << (n ? ", " : "") << name(n) << formatv(" {0:f0}", v);
    os << shared << "\n";
    all += total * at.launches, isOpen = false;
  }
  void end() {
    if (isOpen) os << "  no sizes are known at which it is launched\n";
    os << formatv("all launches: {0:f0} cycles\n", all);
    isOpen = false;
  }
  std::string take() { return std::move(text); }

private:
  const Schedule &s;
  std::vector<Occasion> occasions;
  std::string text;
  raw_string_ostream os;
  double all = 0;
  bool isOpen = false; // a kernel has begun and no terms came
};
} // namespace

/// What each kernel takes of a core. The code of a fused chain is that of tiles: each of its kernels is counted whole,
/// as if it were launched by itself, but its items are those of the first.
static Expected<std::string> costList(Context &c, const Module &m, const Schedule &s, ArrayRef<CompiledTarget> code) {
  CostList list(m, s);
  for (const CompiledTarget &t : code) {
    list.target(t.target->name, speedsOf(*t.target).name);
    for (auto [spec, k, i] : zip_equal(s.kernels, t.kernels, llvm::seq(s.kernels.size()))) {
      bool isChained = spec.follows || !spec.followers.empty();
      Kernel whole = isChained ? expandKernel(c, lowerKernel(c, spec, k.kernel.plan)) : k.kernel;
      Expected<Linear> l = linearize(c, whole);
      if (!l) return l.takeError();
      auto dims = [&, i = i](UOpRef n) { return list.dim(i, n); };
      auto cost = costOf(whole, *l, *t.target, dims);
      if (cost && isChained) cost->items = idxEvaluate(k.items, dims).value_or(0);
      list.begin(whole);
      if (!cost) continue;
      unsigned cores = t.target->cores;
      std::string shared =
          spec.follows
              ? "; in the items of the chain's first kernel"
              : formatv("; items {0}, {1} cores imbalance {2:f2}", cost->items, cores, cost->imbalance(cores)).str();
      list.terms(
          i, whole, cost->total(), size_t(cost->bound()), cost->cycles,
          [](size_t n) { return costTermName(CostTerm(n)); }, shared);
    }
    list.end();
  }
  return list.take();
}

/// What each kernel takes of a GPU.
static Expected<std::string> costList(Context &c, const Module &m, const Schedule &s, ArrayRef<GpuKernel> kernels,
                                      const GpuTarget &target) {
  const GpuSpeeds *speeds = speedsOf(target);
  if (!speeds) {
    std::string known;
    for (const GpuSpeeds &g : allGpuSpeeds()) known += (known.empty() ? "" : ", ") + std::string(g.name);
    return createStringError(std::string("--emit=cost of ") + target.name +
                             ": MachineTable.def has no speeds of this GPU; it has those of " + known);
  }
  CostList list(m, s);
  list.target(target.name, speeds->title);
  for (auto [i, k] : enumerate(kernels)) {
    auto cost = costOf(c, k, target, *speeds, [&, i = i](UOpRef n) { return list.dim(i, n); });
    list.begin(*k.kernel);
    if (!cost) continue;
    const double *most = max_element(*cost);
    bool isInside = s.kernels[i].follows && *most == 0; // of what its chain's first kernel computes
    list.terms(
        i, *k.kernel, *most, most - cost->begin(), *cost, [](size_t n) { return gpuTermName(GpuTerm(n)); },
        isInside ? "; counted in the chain's first kernel" : "");
  }
  list.end();
  return list.take();
}

static Compilation asText(std::string text) { return {{}, std::move(text), {}}; }

Expected<Compilation> astra::cpuText(const PipelineOptions &o, Context &c, const Module &m, const Schedule &s,
                                     ArrayRef<CompiledTarget> code) {
  if (o.emit == "plan") return asText(planList(code, {}));
  if (o.emit == "cost") {
    Expected<std::string> list = costList(c, m, s, code);
    if (!list) return list.takeError();
    return asText(std::move(*list));
  }
  if (o.emit == "tuning") {
    Tuning all;
    for (const CompiledTarget &t : code)
      addTo(all, s, t.target->name, [&](size_t i) -> const Kernel & { return t.kernels[i].kernel; });
    return asText(text(all));
  }
  if (o.emit == "asm") {
    Expected<std::string> text = assemblyText(code.front().source, *code.front().target);
    if (!text) return text.takeError();
    return asText(std::move(*text));
  }
  Expected<CProgram> program = emitProgram(m, s, code.front(), o.header, o.name);
  if (!program) return program.takeError();
  return Compilation{{}, std::move(program->source), std::move(program->header)};
}

Expected<Compilation> astra::gpuText(Run &run, const Module &m, Context &c, const Schedule &s) {
  const PipelineOptions &o = run.o;
  std::string stage = std::string("code ") + o.gpu->name;
  run.begin(stage + ", " + Twine(s.kernels.size()) + " kernels");
  Expected<Plans> plans = run.given.forTarget(s.kernels, *o.gpu);
  if (!plans) return plans.takeError();
  std::vector<Kernel> storage;
  Expected<std::vector<GpuKernel>> kernels = gpuKernels(c, s, *o.gpu, storage, *plans);
  if (!kernels) return kernels.takeError();
  if (o.emit == "plan") {
    std::string list = std::string("target ") + o.gpu->name + "\n";
    for (const Kernel &k : storage) list += k.name + ": " + text(k.plan) + "\n";
    return asText(std::move(list));
  }
  if (o.emit == "accesses") return asText(accessList(*kernels, *o.gpu));
  if (o.emit == "cost") {
    Expected<std::string> list = costList(c, m, s, *kernels, *o.gpu);
    if (!list) return list.takeError();
    return asText(std::move(*list));
  }
  if (o.emit == "tuning") {
    Tuning all;
    addTo(all, s, o.gpu->name, [&](size_t i) -> const Kernel & { return storage[i]; });
    return asText(text(all));
  }
  if (o.emit == "metal") {
    Expected<MetalText> metal = emitMetal(c, *kernels, s.dims);
    if (!metal) return metal.takeError();
    if (Error e = run.end(stage)) return std::move(e);
    return asText(std::move(metal->source));
  }
  Expected<GpuModule> module = lowerGpu(c, *kernels, *o.gpu, s.dims, /*withText=*/o.emit == "mlir");
  if (!module) return module.takeError();
  if (o.emit == "mlir") return asText(std::move(module->mlir));
  Expected<std::string> text = o.emit == "llvm" ? gpuOptimizedIR(*module) : gpuAssembly(*module);
  if (!text) return text.takeError();
  if (Error e = run.end(stage)) return std::move(e);
  return asText(std::move(*text));
}
