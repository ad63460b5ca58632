//===- GivenPlans.cpp: plans from outside -------------------------------------===//
#include "GivenPlans.h"
#include "astra/Pipeline/Pipeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace astra;
using namespace llvm;

/// Lines of "kernel: plan", and "target NAME", after which they are that target's alone; those before the first such
/// line are for every CPU, or, where they say threads, for every GPU. Empty lines and lines that begin with # are
/// skipped.
Error GivenPlans::readPlans() {
  if (!o.plans) return Error::success();
  SmallVector<StringRef> lines;
  StringRef(o.plans->text).split(lines, '\n');
  StringRef target;
  for (auto [i, line] : enumerate(lines)) {
    auto bad = [&, n = i + 1](const Twine &why) {
      return createStringError(std::make_error_code(std::errc::invalid_argument),
                               o.plans->name + ":" + Twine(n) + ": " + why);
    };
    line = line.trim();
    if (line.empty() || line.starts_with("#")) continue;
    if (line.consume_front("target ")) {
      target = line.trim();
      if (!targetNamed(target) && !gpuTargetNamed(target) && target != metalTarget().name)
        return bad("there is no target '" + target + "'");
      continue;
    }
    auto [kernel, text] = line.split(':');
    Expected<Plan> plan = parsePlan(text.trim());
    if (!plan) return bad(toString(plan.takeError()));
    if (target.empty() && (plan->threads ? o.gpus.empty() && !o.gpu : o.targets.empty()))
      return bad(plan->threads ? "a plan with threads is a GPU's, and no GPU is a target"
                               : "a plan without threads is a CPU's, and no CPU is a target");
    named.push_back({target.str(), kernel.trim().str(), std::move(*plan), i + 1});
  }
  return Error::success();
}

Error GivenPlans::read() {
  for (const NamedText &file : o.tunings)
    if (Error e = readTuning(file.text, file.name, tuning)) return e;
  return readPlans();
}

Expected<Plans> GivenPlans::find(ArrayRef<KernelSpec> kernels, StringRef target, bool gpu,
                                 function_ref<Error(const KernelSpec &, const Plan &)> check) const {
  Expected<Plans> out = tunedPlans(kernels, target, tuning, check);
  if (!out) return out.takeError();
  if (!o.tunings.empty())
    note("--tuning: " + Twine(out->size()) + " of " + Twine(kernels.size()) + " kernels of " + target +
         " have their plan from it");
  StringMap<const KernelSpec *> byName;
  for (const KernelSpec &k : kernels) byName[k.name] = &k;
  for (const Named &n : named) {
    if (n.target.empty() ? gpu != (n.plan.threads != 0) : n.target != target) continue;
    const KernelSpec *its = byName.lookup(n.kernel);
    if (Error e = checkPlans(its ? ArrayRef(*its) : ArrayRef<KernelSpec>(), {{n.kernel, n.plan}}, check))
      return createStringError(o.plans->name + ":" + Twine(n.line) + ": " + toString(std::move(e)));
    (*out)[n.kernel] = n.plan;
  }
  return out;
}

Expected<Plans> GivenPlans::forTarget(ArrayRef<KernelSpec> kernels, const Target &target) const {
  return find(kernels, target.name, false, checkPlan);
}
Expected<Plans> GivenPlans::forTarget(ArrayRef<KernelSpec> kernels, const GpuTarget &target) const {
  return find(kernels, target.name, true,
              [&](const KernelSpec &k, const Plan &p) { return checkGpuPlan(k, p, target); });
}
