//===- Pipeline.cpp: from a module to a bundle ------------------------------===//
// Takes:    a module and options.
// Gives:    passes, schedule, code for each target, assembly: in this order, in compileModule().
// Does not: decide anything: libraries do.
#include "Run.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Pipeline/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Regex.h"

using namespace astra;
using namespace llvm;

/// Parameters have values, so their extents are constants.
static Error checkParams(const Module &m) {
  for (const Param &p : m.params)
    if (!all_of(p.value->shape, [](UOpRef extent) { return extent->isConst(); }))
      return createStringError("parameter '" + p.value->str + "' has the shape " +
                               typeText(p.value->dtype, p.value->shape) +
                               "; expected constant extents: what has others is an input or a state");
  return Error::success();
}

static Error addTraining(Run &run, Module &m) {
  nn::TrainingOptions training = *run.o.training;
  training.segments = 1;
  if (run.o.checkpointMemory) {
    Expected<unsigned> segments = segmentsWithin(run, m);
    if (!segments) return segments.takeError();
    training.segments = *segments;
  }
  run.begin("train");
  std::vector<std::string> notes;
  training.notes = &notes;
  if (run.o.pipeline && run.o.pipeline->interleaved) training.interleaved = run.o.pipeline;
  if (Error e = nn::addTraining(m, training)) return e;
  for (const std::string &text : notes) run.note(text);
  return run.end("train", ".uop", [&] { return print(m); });
}

/// The mesh and the shardings that are asked for.
static Error addShardings(const PipelineOptions &o, Module &m) {
  if (!o.mesh && o.shards.empty()) return Error::success();
  if (!o.mesh && m.mesh.isEmpty())
    return createStringError("--shard cuts tensors among the shards of a mesh: give --mesh=NAME=SIZE");
  return annotate(m, o.mesh ? *o.mesh : m.mesh, o.shards);
}

/// Layers in stages, of which gradients are taken then.
static Error addPipeline(const PipelineOptions &o, Module &m) {
  if (!o.pipeline) return Error::success();
  if (o.pipeline->interleaved && o.checkpointMemory)
    return createStringError("--pipeline: schedule=1f1b computes the layers of a stage again by itself, and "
                             "--checkpoint-memory has no part in that");
  if (o.mesh)
    if (Error e = annotate(m, *o.mesh, {})) return e;
  return pipelineLayers(m, *o.pipeline, o.training.has_value());
}

/// The program of one shard, without the numbers of weights, and which of its transfers are joined.
static Expected<Compilation> programOfShard(const PipelineOptions &o, Module &m) {
  if (m.mesh.isEmpty()) return createStringError("--emit=sharding: the module has no mesh: give --mesh=NAME=SIZE");
  PassOptions options;
  for (const char *name : {"grad", "spmd"})
    if (Error e = passNamed(name)->run(m, options)) return std::move(e);
  std::string text = print(m, {.data = false});
  if (Error e = stackShards(m)) return std::move(e);
  joinCollectives(m, o.bucket);
  return Compilation{{}, text + bucketList(m), {}};
}

Error astra::runStandardPasses(Module &m, const PipelineOptions &options, Run *run) {
  PassOptions passOptions;
  passOptions.rewrite.ruleLimit = options.ruleLimit;
  passOptions.bucket = options.bucket;
  passOptions.forGpus = options.gpu || !options.gpus.empty();
  passOptions.kernels = options.kernels;
  for (const Pass &p : passes()) {
    if (!p.standard) continue;
    if (run) run->begin(p.name);
    if (Error e = p.run(m, passOptions)) return e;
    if (!run) continue;
    if (options.verifyEach) {
      Error e = verify(m, m.stage);
      if (!e && p.check) e = p.check(m);
      if (e) return createStringError("after %s: %s", p.name, toString(std::move(e)).c_str());
    }
    if (Error e = run->end(p.name, ".uop", [&] { return print(m); })) return e;
    for (const KernelUse &k : std::exchange(passOptions.used, {}))
      run->note("--kernels: " + Twine(k.name) + " stands for " + Twine(k.places) +
                (k.places == 1 ? " part" : " parts") + " of the graph");
  }
  return Error::success();
}

static Error makeCache(const std::string &folder) {
  if (folder.empty()) return Error::success();
  if (std::error_code ec = sys::fs::create_directories(folder, true, sys::fs::owner_all))
    return createStringError("--cache=%s: cannot make this folder: %s", folder.c_str(), ec.message().c_str());
  if (!sys::fs::is_directory(folder))
    return createStringError("--cache=%s: this is a file, expected a folder", folder.c_str());
  return Error::success();
}

static Expected<CompiledTarget> compileFor(Run &run, Context &c, const Schedule &s, const Target &target) {
  std::string stage = std::string("code ") + target.name;
  run.begin(stage + ", " + Twine(s.kernels.size()) + " kernels");
  CompileOptions options;
  options.jobs = run.o.jobs;
  options.cache = run.o.cache;
  options.image = run.o.emit.empty();
  options.verify = run.o.verifyEach;
  Expected<Plans> plans = run.given.forTarget(s.kernels, target);
  if (!plans) return plans.takeError();
  options.plans = std::move(*plans);
  Expected<CompiledTarget> code = compileKernels(c, s, target, options);
  if (!code) return code.takeError();
  if (Error e = run.end(stage, ".c", [&] { return code->source; }, &code->proved)) return std::move(e);
  return code;
}

/// How long each kernel takes to compile.
static Error timeKernels(Run &run, Context &c, const Schedule &s, const GpuTarget &target, const Plans &plans) {
  Expected<std::vector<GpuTime>> times = timeGpuKernels(c, s, target, run.o.ptxas, plans);
  if (!times) return times.takeError();
  const char *tool = target.flavour == GpuFlavour::CUDA ? "ptxas" : "ld.lld";
  for (const GpuTime &t : *times) {
    std::string line;
    raw_string_ostream(line) << format("code %s %s: plan %.1f ms, MLIR %.1f ms, LLVM %.1f ms, %s %.1f ms", target.name,
                                       t.name.c_str(), t.plan, t.lower, t.backEnd, tool, t.tool);
    run.detail(line);
  }
  return Error::success();
}

/// What of a GPU's code is not as one would wish is a warning.
static Expected<GpuPart> compileFor(Run &run, Context &c, const Schedule &s, const GpuTarget &target, bool host) {
  std::string stage = std::string("code ") + target.name;
  std::string what = stage + ", " + std::to_string(s.kernels.size()) + " kernels";
  Expected<Plans> plans = run.given.forTarget(s.kernels, target);
  if (!plans) return plans.takeError();
  if (run.o.timeKernels) {
    run.progress(what);
    if (Error e = timeKernels(run, c, s, target, *plans)) return std::move(e);
  }
  run.begin(what);
  Expected<CompiledGpu> gpu = compileGpu(c, s, target, run.o.ptxas, *plans);
  if (!gpu) return gpu.takeError();
  if (gpu->binary.code.empty())
    run.warn("there is no ptxas: " + Twine(target.name) + " is PTX alone in the bundle, and no cubin");
  for (const GpuUse &k : gpu->binary.kernels)
    if (k.spills)
      run.warn("kernel '" + k.name + "' spills " + Twine(k.spills) +
               (target.flavour == GpuFlavour::CUDA ? " bytes" : " registers") + " a thread on " + target.name);
  GpuPart out{std::move(*gpu)};
  auto listing = [&] {
    Expected<std::string> text = gpuAssembly(out.gpu.module);
    return text ? *text : toString(text.takeError());
  };
  if (Error e = run.end(stage, target.flavour == GpuFlavour::CUDA ? ".ptx" : ".s", listing, &out.gpu.proved))
    return std::move(e);
  if (!host) return out;
  stage = std::string("code emu:") + target.name;
  run.begin(stage);
  out.cpu = targetNamed("cpu:x86-64-v3"); // whatever this machine is: bytes do not depend on it
  Expected<HostBuild> build = buildHost(out.gpu.module, *out.cpu);
  if (!build) return build.takeError();
  out.host = std::move(*build);
  if (Error e = run.end(stage)) return std::move(e);
  return out;
}

Expected<Compilation> astra::compileModule(Module m, const PipelineOptions &o, PipelineReport &report,
                                           const PipelineObserver &observer) {
  Run run(o, report, observer);
  if (Error e = run.given.read()) return std::move(e);
  if (Error e = verify(m, m.stage)) return std::move(e);
  if (Error e = checkParams(m)) return std::move(e);
  if (Error e = addPipeline(o, m)) return std::move(e);
  if (o.strides && (o.gpu || !o.gpus.empty()))
    return createStringError(std::errc::not_supported,
                             "--strides=any is for CPUs: in the memory of a GPU tensors are row-major");
  if (o.strides && o.emit == "c")
    return createStringError(std::errc::not_supported,
                             "--strides=any is for bundles: emitted C takes row-major tensors");
  if (o.training)
    if (Error e = addTraining(run, m)) return std::move(e);
  if (Error e = addShardings(o, m)) return std::move(e);
  if (o.emit == "sharding") return programOfShard(o, m);
  if (const MatrixUnit *unit = o.numerics.unit) {
    UnitUse use = useMatrixUnit(m, o.numerics);
    run.note("numerics: " + Twine(use.named) + " sums of products are added as " + unit->text + " does, " +
             Twine(use.strict) + " stay strict");
  }
  Provenance made = o.made;
  made.numerics = numericsOf(m, o.numerics.unit);
  if (Error e = runStandardPasses(m, o, &run)) return std::move(e);
  if (o.emit == "uop") return Compilation{{}, print(m), {}};

  run.begin("schedule");
  Expected<Schedule> s =
      schedule(m, {o.fold, o.gpu || !o.gpus.empty(), o.checks, o.storesAlongSum(), o.overlap, o.strides});
  if (!s) return s.takeError();
  if (Error e = run.end("schedule", ".txt", [&] { return print(*s); })) return std::move(e);
  if (o.emit == "schedule") return Compilation{{}, print(*s), {}};
  if (o.gpu) return gpuText(run, m, m.ctx(), *s);

  if (Error e = makeCache(o.cache)) return std::move(e);
  if (o.searchSeconds)
    if (Error e = searchFor(run, m, *s)) return std::move(e);
  std::vector<CompiledTarget> code;
  for (const Target *target : o.targets) {
    Expected<CompiledTarget> compiled = compileFor(run, m.ctx(), *s, *target);
    if (!compiled) return compiled.takeError();
    if (target->level && o.emit.empty()) {
      auto of = find_if(code, [&](const CompiledTarget &c) { return c.target == target->level; });
      if (of != code.end() && of->image.bytes == compiled->image.bytes) {
        run.note(Twine(target->name) + " would have the kernels of " + target->level->name + " and is left out");
        continue;
      }
      run.note(Twine(target->name) + " adds " + Twine(compiled->image.bytes.size()) + " bytes of code");
    }
    code.push_back(std::move(*compiled));
  }
  std::vector<GpuPart> gpus;
  for (auto [target, host] : o.gpus) {
    Expected<GpuPart> part = compileFor(run, m.ctx(), *s, *target, host);
    if (!part) return part.takeError();
    gpus.push_back(std::move(*part));
  }
  run.begin("plan");
  if (Error e = run.end("plan", ".txt", [&] { return planList(code, gpus); })) return std::move(e);
  if (!o.emit.empty()) return cpuText(o, m.ctx(), m, *s, code);

  run.begin("assemble");
  Expected<BundleParts> parts = assemble(m, *s, std::move(code), std::move(gpus), o.jobs, std::move(made));
  if (!parts) return parts.takeError();
  std::vector<Asset> assets = o.assets;
  if (std::string record = meshRecord(m); !record.empty())
    assets.push_back({meshAsset, std::make_shared<const std::vector<uint8_t>>(record.begin(), record.end())});
  if (Error e = addAssets(*parts, std::move(assets))) return std::move(e);
  if (Error e = run.end("assemble")) return std::move(e);
  return Compilation{std::move(*parts), {}, {}};
}

std::vector<std::string> astra::stageNames() {
  std::vector<std::string> out{"load", "quantize", "train"};
  for (const Pass &p : passes())
    if (p.standard) out.push_back(p.name);
  out.insert(out.end(), {"schedule", "plan", "code"});
  return out;
}

Error astra::keepTaps(Module &m, const std::string &expression) {
  Regex wanted("^(" + expression + ")$");
  std::string wrong;
  if (!wanted.isValid(wrong))
    return createStringError(std::errc::invalid_argument, "--taps=%s: %s", expression.c_str(), wrong.c_str());
  bool any = false;
  for (Entry &e : m.entries) {
    StringSet<> taken;
    std::vector<UOpRef> roots;
    for (const Value &v : e.outputs) taken.insert(v.name), roots.push_back(v.value);
    for (const StateUpdate &u : e.updates) roots.push_back(u.value);
    std::map<std::string, UOpRef> found;
    for (UOpRef x : topoSort(roots))
      if (x->is(Op::Tap) && wanted.match(x->str)) found.emplace(x->str.str(), x);
    for (auto &[name, x] : found) {
      any = true;
      std::string unique = name;
      while (!taken.insert(unique).second) unique += "_tap";
      e.outputs.push_back({unique, x});
    }
  }
  if (any) return Error::success();
  return createStringError(std::errc::invalid_argument, "--taps=%s matches no named value of the model",
                           expression.c_str());
}
