//===- Compile.cpp: all kernels of a schedule for one target ---------------===//
// Takes:    a schedule and a target.
// Gives:    one image with every kernel, and what the manifest says of each.
// Keeps:    the order of kernels; bytes depend on the schedule and the target alone.
#include "astra/Codegen/Compile.h"
#include "Scale.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Verify.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

static llvm::Error check(const CompileOptions &options, const KernelSpec &spec, const Kernel &k, Stage stage) {
  if (!options.verify) return llvm::Error::success();
  if (auto e = verifyKernel(k.sink, stage))
    return llvm::createStringError(spec.name + ": " + llvm::toString(std::move(e)));
  return llvm::Error::success();
}

llvm::Expected<CompiledTarget> astra::compileKernels(Context &c, const Schedule &s, const Target &target,
                                                     const CompileOptions &options) {
  CompiledTarget out{&target, {}, {}, {}};
  std::vector<LinearKernel> linear;
  std::vector<std::string> names;
  out.kernels.reserve(s.kernels.size());
  if (auto e = checkPlans(s.kernels, options.plans, checkPlan)) return e;
  for (const KernelSpec &spec : s.kernels) {
    auto given = options.plans.find(spec.name);
    Plan plan = given != options.plans.end() ? given->second : choosePlan(c, spec, target);
    Kernel k = lowerKernel(c, spec, plan);
    if (auto e = check(options, spec, k, Stage::Kernel)) return e;
    k = expandKernel(c, target.scalesInOne ? scaleInOne(c, k) : k);
    if (auto e = check(options, spec, k, Stage::Expanded)) return e;
    auto l = linearize(c, k);
    if (!l) return l.takeError();
    UOpRef items = itemCount(c, k.sink);
    out.kernels.push_back({std::move(k), items, l->scratchBytes, 0});
    linear.push_back({spec.name, &out.kernels.back().kernel, std::move(*l)});
    names.push_back(spec.name);
  }
  auto source = emitC(c, linear, target, s.dims);
  if (!source) return source.takeError();
  out.source = std::move(*source);
  if (!options.image) return out;
  auto image = buildImage(out.source, names, target, options.jobs, options.cache);
  if (!image) return image.takeError();
  out.image = std::move(*image);
  for (size_t i = 0; i < names.size(); ++i) out.kernels[i].offset = out.image.offsets[i];
  return out;
}
