//===- Pipeline.cpp: from a model to a bundle -------------------------------===//
// Takes:    options that the command line has checked.
// Gives:    load, passes, schedule, code for each target, assembly, writing: in this order, in compile().
// Keeps:    each stage under its name: timed, printed and saved alike.
// Does not: decide anything: libraries do.
#include "Pipeline.h"
#include "Commit.h"
#include "GivenPlans.h"
#include "Npy.h"
#include "OutputFile.h"
#include "Passes.h"
#include "Weights.h"
#include "astra/Bundle/Assemble.h"
#include "astra/Codegen/EmitProgram.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Search/Search.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/Signals.h"
#include <chrono>

using namespace astra;
using namespace llvm;

namespace {

class Pipeline {
public:
  Pipeline(const PipelineOptions &options, tool::Progress &progress, Report &report)
      : o(options), progress(progress), done(report), given(options, [this](const Twine &text) { note(text); }) {}
  Error compile();

private:
  const PipelineOptions &o;
  unsigned segments = 1; // of training: nn::TrainingOptions
  tool::Progress &progress;
  Report &done;
  GivenPlans given;
  std::chrono::steady_clock::time_point started;

  void note(const Twine &text);
  void begin(const Twine &stage);
  void report(StringRef stage);
  void report(const AccessCount &proved);
  Error end(StringRef stage, StringRef extension, function_ref<std::string()> listing);
  Error write(StringRef path, bool durable, function_ref<Error(raw_ostream &)> content);
  Expected<Provenance> provenance() const;
  Error give(StringRef path, StringRef text);
  Expected<Module> load(const tool::Safetensors &weights);
  Error keepTaps(Module &m);
  Error search(const Module &m, const Schedule &s);
  Expected<int64_t> stepMemory(Module m, unsigned segments);
  Error boundMemory(const Module &m);
  Error emit(const Module &m, const Schedule &s, ArrayRef<CompiledTarget> code);
  Error emitGpu(Context &c, const Schedule &s);
  Error reportKernels(Context &c, const Schedule &s, const GpuTarget &target, const Plans &plans);
  Expected<GpuPart> compileFor(Context &c, const Schedule &s, const GpuTarget &target, bool host);
};

/// A line on stderr.
void Pipeline::note(const Twine &text) {
  progress.clear();
  errs() << "astra-compile: note: " << text << "\n";
  done.notes.push_back(text.str());
}

void Pipeline::begin(const Twine &stage) {
  progress(stage.str());
  started = std::chrono::steady_clock::now();
}

void Pipeline::report(StringRef stage) {
  std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - started;
  done.stages.push_back({stage.str(), time.count()});
  if (!o.timePasses) return;
  progress.clear();
  errs() << format("%-32s %10.3f ms\n", stage.str().c_str(), time.count());
}

/// What was proved of the stage's kernels, within its time.
void Pipeline::report(const AccessCount &proved) {
  std::string what =
      "  accesses proved: " + std::to_string(proved.accesses) + " of " + std::to_string(proved.kernels) + " kernels";
  if (proved.tested) what += ", " + std::to_string(proved.tested) + " tested at run time";
  errs() << format("%-32s %10.3f ms\n", what.c_str(), proved.milliseconds);
}

/// Time, listing and file of a stage that is done.
Error Pipeline::end(StringRef stage, StringRef extension, function_ref<std::string()> listing) {
  report(stage);
  bool print = is_contained(o.printAfter, stage) || is_contained(o.printAfter, stage.split(' ').first);
  if (!print && o.saveTemps.empty()) return Error::success();
  std::string text = listing();
  if (print) {
    progress.clear();
    errs() << "// after " << stage << "\n" << text;
  }
  if (o.saveTemps.empty()) return Error::success();
  std::string name = stage.str();
  for (char &c : name)
    if (!isAlnum(c) && c != '-' && c != '_') c = '.';
  SmallString<128> path(o.saveTemps);
  sys::path::append(path, name + extension);
  return give(path, text);
}

/// What `content` streams to a place, whole or not at all; on the disk before it has the name, if it is durable.
Error Pipeline::write(StringRef path, bool durable, function_ref<Error(raw_ostream &)> content) {
  tool::OutputFile file;
  std::string wrong;
  if (!file.open(path.str(), wrong)) return createStringError(wrong);
  if (!file.temporaryPath().empty()) sys::RemoveFileOnSignal(file.temporaryPath());
  scope_exit forget([name = file.temporaryPath()] { sys::DontRemoveFileOnSignal(name); });
  raw_fd_ostream out(file.descriptor(), /*shouldClose=*/false);
  Error failed = content(out);
  out.flush();
  if (out.has_error()) {
    failed = joinErrors(std::move(failed), createFileError(path, out.error()));
    out.clear_error();
  }
  if (failed) return failed;
  return file.keep(wrong, durable) ? Error::success() : createStringError(wrong);
}

Error Pipeline::give(StringRef path, StringRef text) {
  if (path == "-") {
    outs() << text;
    return Error::success();
  }
  return write(path, false, [&](raw_ostream &out) {
    out << text;
    return Error::success();
  });
}

/// What the bundle says of how it was made. The model's file is read once more, where it is a file that can be.
Expected<Provenance> Pipeline::provenance() const {
  if (!sys::fs::is_regular_file(o.model)) return Provenance{compilerCommit, {}, o.recorded};
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(o.model, /*IsText=*/false,
                                                                      /*RequiresNullTerminator=*/false);
  if (!file) return createFileError(o.model, file.getError());
  Digest digest = Weights::digest(arrayRefFromStringRef((*file)->getBuffer()));
  return Provenance{compilerCommit, {digest.begin(), digest.end()}, o.recorded};
}

//===- Stages ---------------------------------------------------------------===//

/// The files of --constant.
static Expected<std::vector<ConstantInput>> readConstants(ArrayRef<std::pair<std::string, std::string>> files) {
  std::vector<ConstantInput> constants;
  for (const auto &[name, path] : files) {
    tool::Npy array;
    std::string error;
    if (!tool::readNpy(path, array, error)) return createStringError(error);
    if (array.fortranOrder && array.shape.size() > 1)
      return createStringError(path + " is in Fortran order, expected C order");
    constants.push_back({name, DType(array.dtype + 1), std::move(array.shape), std::move(array.data)});
  }
  return constants;
}

/// `weights`: what will replace the model's, or nothing.
Expected<Module> Pipeline::load(const tool::Safetensors &weights) {
  if (sys::path::extension(o.model) == ".onnx") {
    Expected<std::vector<ConstantInput>> constants = readConstants(o.constants);
    if (!constants) return constants.takeError();
    ImportOptions options{o.dims, o.taps, std::move(*constants)};
    if (o.training) {
      options.training = true;
      options.prediction = o.training->output;
    }
    for (const auto &[name, array] : weights.tensors)
      if (array.shape.empty()) options.scalars.push_back(name);
    options.scalars.insert(options.scalars.end(), o.trainScalars.begin(), o.trainScalars.end());
    std::vector<std::string> notes;
    options.notes = &notes;
    Expected<Module> m = importONNX(o.model, options);
    for (const std::string &text : notes) note(text);
    for (const std::string &name : o.trainScalars)
      if (const Param *p = m ? m->param(name) : nullptr; m && (!p || p->value->rank()))
        return createStringError(
            "--train-scalars=%s: the model has no initializer of rank 0 of this name that it reads", name.c_str());
    return m;
  }
  if (!o.constants.empty())
    return createStringError("--constant is for the inputs of an ONNX model: write a param into " + o.model);
  if (!o.dims.empty())
    return createStringError(
        std::errc::invalid_argument,
        "--dim bounds the dynamic dims of an ONNX model; %s states its own: change \"dim %s\" there", o.model.c_str(),
        o.dims.front().name.c_str());
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(o.model);
  if (!text) return createFileError(o.model, text.getError());
  Expected<Module> m = parse((*text)->getBuffer(), o.model);
  if (m && !o.taps.empty())
    if (Error e = keepTaps(*m)) return std::move(e);
  return m;
}

/// Makes outputs of the `tap` nodes whose whole name the expression matches. They follow the entry's own outputs, by
/// name.
Error Pipeline::keepTaps(Module &m) {
  Regex wanted("^(" + o.taps + ")$");
  std::string wrong;
  if (!wanted.isValid(wrong))
    return createStringError(std::errc::invalid_argument, "--taps=%s: %s", o.taps.c_str(), wrong.c_str());
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
                           o.taps.c_str());
}

/// Plans found by measuring, for the targets that this machine runs; written to the file of --tuning.
Error Pipeline::search(const Module &m, const Schedule &s) {
  std::vector<const Target *> here;
  copy_if(o.targets, std::back_inserter(here), [](const Target *t) { return hostRuns(*t); });
  if (here.empty()) return createStringError("--search: this machine runs none of the targets");
  for (const Target *t : o.targets)
    if (!is_contained(here, t)) note("--search: " + Twine(t->name) + " is not searched: this machine does not run it");
  for (const auto &[gpu, host] : o.gpus)
    note("--search: " + Twine(gpu->name) + " is not searched: a search is for CPUs");
  if (Error e = give(o.tunings.front(), text(given.tuning))) return e; // before the time is spent
  for (const Target *t : here) {
    begin("search " + Twine(t->name));
    SearchOptions options{o.searchSeconds / here.size(), o.jobs, o.cache,
                          [&](const std::string &what) { progress(what); }};
    Expected<SearchReport> r = searchPlans(m, s, *t, options, given.tuning);
    if (!r) return r.takeError();
    report(std::string("search ") + t->name);
    if (o.timePasses)
      for (const FasterKernel &k : r->faster)
        errs() << format("search %s %s: %.4f ms, %.4f before: %s\n", t->name, k.name.c_str(), k.after * 1e3,
                         k.before * 1e3, k.plan.c_str());
    std::string skipped = r->skipped ? ", " + std::to_string(r->skipped) + " could not be timed" : "";
    std::string text;
    raw_string_ostream(text) << format("; their launches together take %.4g ms, %.4g before", r->after * 1e3,
                                       r->before * 1e3);
    note("--search: " + Twine(t->name) + ": " + Twine(r->plans) + " plans tried, " + Twine(r->faster.size()) + " of " +
         Twine(r->kernels) + " kernels are faster" + skipped + text);
  }
  return give(o.tunings.front(), text(given.tuning));
}

/// The bytes that a training step keeps its values in, at the bounds of its dims: states, inputs and outputs aside.
Expected<int64_t> Pipeline::stepMemory(Module m, unsigned segments) {
  nn::TrainingOptions training = *o.training;
  training.segments = segments;
  if (Error e = nn::addTraining(m, training)) return std::move(e);
  erase_if(m.entries, [](const Entry &e) { return e.name != "train_step"; });
  PassOptions options;
  options.rewrite.ruleLimit = o.ruleLimit;
  for (const Pass &p : passes())
    if (p.standard)
      if (Error e = p.run(m, options)) return std::move(e);
  Expected<Schedule> s = schedule(m, {o.fold, o.gpu || !o.gpus.empty()});
  if (!s) return s.takeError();
  int64_t bytes = 0;
  for (UOpRef slot : s->entries[0].routine.slots) bytes += int64_t(alignTo(uint64_t(slot->hi), 64));
  return bytes;
}

/// Chooses the least number of segments whose step fits into --checkpoint-memory: what is computed again costs time.
Error Pipeline::boundMemory(const Module &m) {
  constexpr unsigned counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  auto size = [](int64_t bytes) { return std::to_string((bytes + 1023) / 1024) + "K"; };
  int64_t least = INT64_MAX, plain = 0;
  for (unsigned n : counts) {
    begin("checkpoints, " + Twine(n) + " segments");
    Expected<int64_t> bytes = stepMemory(m, n);
    if (!bytes) return bytes.takeError();
    report("checkpoints, " + std::to_string(n) + " segments, " + size(*bytes));
    if (n == 1) plain = *bytes;
    least = std::min(least, *bytes);
    if (*bytes > o.checkpointMemory) continue;
    segments = n;
    progress.clear();
    if (n == 1)
      errs() << "astra-compile: note: --checkpoint-memory: train_step keeps its values in " << size(*bytes)
             << ", nothing is computed again\n";
    else
      errs() << "astra-compile: note: --checkpoint-memory: train_step keeps its values in " << size(*bytes)
             << " instead of " << size(plain) << ": " << n - 1 << " of " << n
             << " segments of the model are computed again\n";
    return Error::success();
  }
  return createStringError(
      std::errc::invalid_argument,
      "--checkpoint-memory: train_step cannot keep its values in %s; %s is the least that can be met, %s without "
      "recomputing anything (at the upper bounds of the dims: a smaller --dim needs less)",
      size(o.checkpointMemory).c_str(), size(least).c_str(), size(plain).c_str());
}

std::string planList(ArrayRef<CompiledTarget> code, ArrayRef<GpuPart> gpus = {}) {
  std::string out;
  for (const CompiledTarget &t : code) {
    out += std::string("target ") + t.target->name + "\n";
    for (const CompiledKernel &k : t.kernels) out += k.kernel.name + ": " + k.kernel.plan + "\n";
  }
  for (const GpuPart &g : gpus) {
    out += std::string("target ") + g.gpu.target->name + "\n";
    for (const Kernel &k : g.gpu.kernels) out += k.name + ": " + k.plan + "\n";
  }
  return out;
}

/// The plans of all kernels of a target as a tuning has them.
void addTo(Tuning &out, const Schedule &s, const char *target, function_ref<const Kernel &(size_t)> kernel) {
  for (auto [i, spec] : enumerate(s.kernels))
    out[{contentHash(spec), target}] = {cantFail(parsePlan(kernel(i).plan)), ""};
}

Error Pipeline::emit(const Module &m, const Schedule &s, ArrayRef<CompiledTarget> code) {
  StringRef to = o.output.empty() ? "-" : StringRef(o.output);
  if (o.emit == "plan") return give(to, planList(code));
  if (o.emit == "tuning") {
    Tuning all;
    for (const CompiledTarget &t : code)
      addTo(all, s, t.target->name, [&](size_t i) -> const Kernel & { return t.kernels[i].kernel; });
    return give(to, text(all));
  }
  if (o.emit == "asm") {
    Expected<std::string> text = assemblyText(code.front().source, *code.front().target);
    if (!text) return text.takeError();
    return give(to, *text);
  }
  SmallString<128> header(to == "-" ? "model.h" : to);
  sys::path::replace_extension(header, ".h");
  Expected<CProgram> program = emitProgram(m, s, code.front(), sys::path::filename(header), o.name);
  if (!program) return program.takeError();
  if (to != "-" && (!sys::fs::exists(to) || sys::fs::is_regular_file(to)))
    if (Error e = give(header, program->header)) return e;
  return give(to, program->source);
}

/// The text of a stage on the way to a GPU.
Error Pipeline::emitGpu(Context &c, const Schedule &s) {
  StringRef to = o.output.empty() ? "-" : StringRef(o.output);
  begin(std::string("code ") + o.gpu->name + ", " + Twine(s.kernels.size()) + " kernels");
  Expected<Plans> plans = given.forTarget(s.kernels, *o.gpu);
  if (!plans) return plans.takeError();
  std::vector<Kernel> storage;
  Expected<std::vector<GpuKernel>> kernels = gpuKernels(c, s, *o.gpu, storage, *plans);
  if (!kernels) return kernels.takeError();
  if (o.emit == "plan") {
    std::string list = std::string("target ") + o.gpu->name + "\n";
    for (const Kernel &k : storage) list += k.name + ": " + k.plan + "\n";
    return give(to, list);
  }
  if (o.emit == "tuning") {
    Tuning all;
    addTo(all, s, o.gpu->name, [&](size_t i) -> const Kernel & { return storage[i]; });
    return give(to, text(all));
  }
  Expected<GpuModule> module = lowerGpu(c, *kernels, *o.gpu, s.dims, /*withText=*/o.emit == "mlir");
  if (!module) return module.takeError();
  if (o.emit == "mlir") return give(to, module->mlir);
  Expected<std::string> text = o.emit == "llvm" ? gpuOptimizedIR(*module) : gpuAssembly(*module);
  if (!text) return text.takeError();
  report(std::string("code ") + o.gpu->name);
  return give(to, *text);
}

/// How long each kernel takes, on stderr.
Error Pipeline::reportKernels(Context &c, const Schedule &s, const GpuTarget &target, const Plans &plans) {
  Expected<std::vector<GpuTime>> times = timeGpuKernels(c, s, target, o.ptxas, plans);
  if (!times) return times.takeError();
  progress.clear();
  const char *tool = target.flavour == GpuFlavour::CUDA ? "ptxas" : "ld.lld";
  for (const GpuTime &t : *times)
    errs() << format("code %s %s: plan %.1f ms, MLIR %.1f ms, LLVM %.1f ms, %s %.1f ms\n", target.name, t.name.c_str(),
                     t.plan, t.lower, t.backEnd, tool, t.tool);
  return Error::success();
}

/// The code of a GPU for a bundle. What is not as one would wish is a line on stderr.
Expected<GpuPart> Pipeline::compileFor(Context &c, const Schedule &s, const GpuTarget &target, bool host) {
  std::string stage = std::string("code ") + target.name;
  begin(stage + ", " + Twine(s.kernels.size()) + " kernels");
  Expected<Plans> plans = given.forTarget(s.kernels, target);
  if (!plans) return plans.takeError();
  if (o.timeKernels)
    if (Error e = reportKernels(c, s, target, *plans)) return std::move(e);
  started = std::chrono::steady_clock::now();
  Expected<CompiledGpu> gpu = compileGpu(c, s, target, o.ptxas, *plans);
  if (!gpu) return gpu.takeError();
  auto warn = [&](const Twine &what) {
    progress.clear();
    errs() << "astra-compile: warning: " << what << "\n";
    done.notes.push_back(what.str());
  };
  if (gpu->binary.code.empty())
    warn("there is no ptxas: " + Twine(target.name) + " is PTX alone in the bundle, and no cubin");
  for (const GpuUse &k : gpu->binary.kernels)
    if (k.spills)
      warn("kernel '" + k.name + "' spills " + Twine(k.spills) +
           (target.flavour == GpuFlavour::CUDA ? " bytes" : " registers") + " a thread on " + target.name);
  GpuPart out{std::move(*gpu)};
  if (Error e = end(stage, target.flavour == GpuFlavour::CUDA ? ".ptx" : ".s", [&] {
        Expected<std::string> text = gpuAssembly(out.gpu.module);
        return text ? *text : toString(text.takeError());
      }))
    return std::move(e);
  if (o.timePasses) report(out.gpu.proved);
  if (!host) return out;
  begin("code emu:" + Twine(target.name));
  out.cpu = targetNamed("cpu:x86-64-v3"); // whatever this machine is: bytes do not depend on it
  Expected<HostBuild> build = buildHost(out.gpu.module, *out.cpu);
  if (!build) return build.takeError();
  out.host = std::move(*build);
  report(std::string("code emu:") + target.name);
  return out;
}

Error Pipeline::compile() {
  StringRef to = o.output.empty() ? "-" : StringRef(o.output);
  if (!o.saveTemps.empty())
    if (std::error_code e = sys::fs::create_directories(o.saveTemps)) return createFileError(o.saveTemps, e);
  if (Error e = given.read()) return e;
  std::optional<SigningKey> key;
  if (!o.signingKey.empty()) {
    Expected<SigningKey> read = readSigningKey(o.signingKey);
    if (!read) return read.takeError();
    key = *read;
  }

  begin("load " + Twine(o.model));
  tool::Safetensors weights;
  if (std::string wrong; !o.weights.empty() && !tool::readSafetensors(o.weights, weights, wrong))
    return createStringError(wrong);
  Expected<Module> loaded = load(weights);
  if (!loaded) return loaded.takeError();
  Module &m = *loaded;
  if (!o.weights.empty()) {
    Expected<std::string> said = setWeights(m, o.weights, weights, o.keptWeights);
    if (!said) return said.takeError();
    if (!said->empty()) note(*said);
  }
  auto moduleText = [&] { return print(m); };
  if (Error e = end("load", ".uop", moduleText)) return e;

  if (Error e = verify(m, m.stage)) return e;
  for (const Param &p : m.params)
    if (!all_of(p.value->shape, [](UOpRef extent) { return extent->isConst(); }))
      return createStringError("parameter '" + p.value->str + "' has the shape " +
                               typeText(p.value->dtype, p.value->shape) +
                               "; expected constant extents: what has others is an input or a state");
  if (o.training) {
    if (o.checkpointMemory)
      if (Error e = boundMemory(m)) return e;
    begin("train");
    nn::TrainingOptions training = *o.training;
    training.segments = segments;
    std::vector<std::string> notes;
    training.notes = &notes;
    if (Error e = nn::addTraining(m, training)) return e;
    for (const std::string &text : notes) note(text);
    if (Error e = end("train", ".uop", moduleText)) return e;
  }
  PassOptions passOptions;
  passOptions.rewrite.ruleLimit = o.ruleLimit;
  for (const Pass &p : passes()) {
    if (!p.standard) continue;
    begin(p.name);
    if (Error e = p.run(m, passOptions)) return e;
    if (o.verifyEach) {
      Error e = verify(m, m.stage);
      if (!e && p.check) e = p.check(m);
      if (e) return createStringError("after %s: %s", p.name, toString(std::move(e)).c_str());
    }
    if (Error e = end(p.name, ".uop", moduleText)) return e;
  }
  if (o.emit == "uop") return give(to, print(m));

  begin("schedule");
  Expected<Schedule> s = schedule(m, {o.fold, o.gpu || !o.gpus.empty()});
  if (!s) return s.takeError();
  if (Error e = end("schedule", ".txt", [&] { return print(*s); })) return e;
  if (o.emit == "schedule") return give(to, print(*s));

  if (o.gpu) return emitGpu(m.ctx(), *s);
  if (std::error_code ec =
          o.cache.empty() ? std::error_code() : sys::fs::create_directories(o.cache, true, sys::fs::owner_all))
    return createStringError("--cache=%s: cannot make this folder: %s", o.cache.c_str(), ec.message().c_str());
  if (!o.cache.empty() && !sys::fs::is_directory(o.cache))
    return createStringError("--cache=%s: this is a file, expected a folder", o.cache.c_str());
  if (o.searchSeconds)
    if (Error e = search(m, *s)) return e;
  std::vector<CompiledTarget> code;
  for (const Target *target : o.targets) {
    std::string stage = std::string("code ") + target->name;
    begin(stage + ", " + Twine(s->kernels.size()) + " kernels");
    CompileOptions options;
    options.jobs = o.jobs;
    options.cache = o.cache;
    options.image = o.emit.empty();
    Expected<Plans> plans = given.forTarget(s->kernels, *target);
    if (!plans) return plans.takeError();
    options.plans = std::move(*plans);
    options.verify = o.verifyEach;
    Expected<CompiledTarget> compiled = compileKernels(m.ctx(), *s, *target, options);
    if (!compiled) return compiled.takeError();
    code.push_back(std::move(*compiled));
    if (Error e = end(stage, ".c", [&] { return code.back().source; })) return e;
    if (o.timePasses) report(code.back().proved);
  }
  std::vector<GpuPart> gpus;
  for (auto [target, host] : o.gpus) {
    Expected<GpuPart> part = compileFor(m.ctx(), *s, *target, host);
    if (!part) return part.takeError();
    gpus.push_back(std::move(*part));
  }
  if (!o.saveTemps.empty() || is_contained(o.printAfter, "plan")) {
    begin("plan");
    if (Error e = end("plan", ".txt", [&] { return planList(code, gpus); })) return e;
  }
  if (!o.emit.empty()) return emit(m, *s, code);

  begin("write");
  Expected<Provenance> made = provenance();
  if (!made) return made.takeError();
  Expected<BundleParts> parts = assemble(m, *s, std::move(code), std::move(gpus), o.jobs, std::move(*made));
  if (!parts) return parts.takeError();
  done.kernels = parts->manifest.kernels.size();
  for (auto [target, image] : zip_equal(parts->manifest.targets, parts->images))
    done.code.push_back({target->name, image.code.size()});
  auto content = [&](raw_ostream &out) {
    uint64_t start = out.tell();
    Error e = writeBundle(*parts, out, key);
    done.bytes = out.tell() - start;
    return e;
  };
  if (Error e = write(o.output, true, content)) return e;
  report("write");
  return Error::success();
}

} // namespace

std::vector<std::string> astra::stageNames() {
  std::vector<std::string> out{"load", "train"};
  for (const Pass &p : passes())
    if (p.standard) out.push_back(p.name);
  out.insert(out.end(), {"schedule", "plan", "code"});
  return out;
}

Error astra::runPipeline(const PipelineOptions &options, tool::Progress &progress, Report &report) {
  report.model = options.model, report.output = options.output;
  return Pipeline(options, progress, report).compile();
}
