//===- Compile.cpp: all kernels of a schedule for one target ---------------===//
// Takes:    a schedule and a target.
// Gives:    one image with every kernel, and what the manifest says of each.
// Keeps:    the order of kernels; bytes depend on the schedule and the target alone.
#include "astra/Codegen/Compile.h"
#include "Joint.h"
#include "Lowering.h"
#include "Scale.h"
#include "astra/Codegen/Accesses.h"
#include "astra/IR/Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <deque>

using namespace astra;

static llvm::Error check(const CompileOptions &options, const KernelSpec &spec, const Kernel &k, Stage stage) {
  if (!options.verify) return llvm::Error::success();
  if (auto e = verifyKernel(k.sink, stage))
    return llvm::createStringError(spec.name + ": " + llvm::toString(std::move(e)));
  return llvm::Error::success();
}

llvm::Expected<CompiledTarget> astra::compileKernels(Context &c, const Schedule &s, const Target &target,
                                                     const CompileOptions &options) {
  CompiledTarget out{&target, {}, {}, {}, {}};
  std::vector<LinearKernel> linear;
  std::vector<std::string> names;
  out.kernels.reserve(s.kernels.size());
  if (auto e = checkPlans(s.kernels, options.plans, checkPlan)) return e;
  if (auto e = verifyProgram(c, s, true, out.proved)) return e;
  auto planOf = [&](const KernelSpec &spec) {
    auto given = options.plans.find(spec.name);
    return given != options.plans.end() ? given->second : choosePlan(c, spec, target);
  };
  auto lower = [&](const KernelSpec &spec, const Plan &plan, const RowTile *tile) -> llvm::Expected<Kernel> {
    Kernel k = lowerKernel(c, spec, plan, tile);
    if (auto e = check(options, spec, k, Stage::Kernel)) return e;
    k = expandKernel(c, target.scalesInOne ? scaleInOne(c, k) : k);
    if (auto e = check(options, spec, k, Stage::Expanded)) return e;
    return k;
  };
  std::deque<Kernel> steps; // of joint kernels
  auto lowerTile = [&](const KernelSpec &spec, const Plan &plan,
                       const RowTile &tile) -> llvm::Expected<TileRegion::Step> {
    auto k = lower(spec, plan, &tile);
    if (!k) return k.takeError();
    steps.push_back(std::move(*k));
    auto l = linearize(c, steps.back());
    if (!l) return l.takeError();
    return TileRegion::Step{{}, &steps.back(), std::move(*l), {}};
  };
  for (const KernelSpec &spec : s.kernels) {
    Plan plan = planOf(spec);
    Kernel k = Lowering(c, spec, plan, nullptr).kernel(); // without code: tiles have a fused chain's
    Joint joint;
    if (!spec.followers.empty()) {
      std::vector<Plan> plans{plan};
      for (const Follower &f : spec.followers) plans.push_back(planOf(f.spec));
      auto j = joinRows(c, spec, plans, s.dims, lowerTile);
      if (!j) return j.takeError();
      joint = std::move(*j);
      LinearKernel whole{spec.name, &k, {}, std::move(joint.regions)};
      auto keep = [&](Kernel step) { return &steps.emplace_back(std::move(step)); };
      if (auto e = verifyRegions(c, whole, spec.known, keep, out.proved)) return e;
      joint.regions = std::move(whole.regions);
    } else {
      if (!spec.follows) {
        auto lowered = lower(spec, plan, nullptr);
        if (!lowered) return lowered.takeError();
        k = std::move(*lowered);
      }
      auto l = linearizeInside(c, k, spec.known, out.proved);
      if (!l) return l.takeError();
      joint = {std::move(*l), {}, itemCount(c, k.sink)};
    }
    // The dims that a tile's functions see lie behind their memory.
    uint64_t scratch =
        joint.linear.scratchBytes + (joint.regions.empty() ? 0 : llvm::alignTo(8 * (s.dims.size() + 1), 64));
    bool counts = options.image && spec.followers.empty() && !spec.follows && !spec.mostRows;
    auto cost = counts ? costOf(k, joint.linear, target, mostOf) : std::nullopt;
    out.kernels.push_back({std::move(k), joint.items, scratch, 0, cost});
    linear.push_back({spec.name, &out.kernels.back().kernel, std::move(joint.linear), std::move(joint.regions)});
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
