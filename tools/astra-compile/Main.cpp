//===- astra-compile: a model becomes a bundle ------------------------------===//
// Takes:    a model (.uop, .onnx, .mlir) and a command line.
// Gives:    a bundle with code for every target asked for, or the text of a stage.
// Keeps:    output complete or not at all; exit codes as every tool has them.
// Does not: hold the stages (lib/Pipeline).
#include "Compile.h"
#include "MeshOptions.h"
#include "OwnKernels.h"
#include "Places.h"
#include "StandardOutput.h"
#include "Targets.h"
#include "astra/Import/Tokenizer.h"
#include "astra/NN/Initializer.h"
#include "astra/NN/Loss.h"
#include "astra/NN/LossScale.h"
#include "astra/NN/Metric.h"
#include "astra/NN/Optimizer.h"
#include "astra/Search/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <csignal>
#include <map>

using namespace astra;
using namespace astra::tool;

namespace {

/// One of the words, separated by | in `choices`.
std::function<std::string(std::string_view)> word(std::string &out, std::string choices) {
  return [&out, choices](std::string_view v) -> std::string {
    llvm::SmallVector<llvm::StringRef> list;
    llvm::StringRef(choices).split(list, '|');
    if (!llvm::is_contained(list, llvm::StringRef(v))) return "'" + std::string(v) + "' is not one of " + choices;
    out = v;
    return "";
  };
}

/// An option that only a language model has.
std::function<std::string(std::string_view)> ofLanguage(Job &j, std::function<std::string(std::string_view)> set) {
  return [&j, set = std::move(set)](std::string_view v) -> std::string {
    j.asksLanguage = true;
    return set(v);
  };
}

std::function<std::string(std::string_view)> cacheType(DType &out) {
  return [&out](std::string_view v) -> std::string {
    std::optional<DType> t = dtypeNamed(v);
    if (!t || (*t != DType::F32 && *t != DType::F16 && *t != DType::I8))
      return "'" + std::string(v) + "' is not one of f32, f16, i8";
    out = *t;
    return "";
  };
}

std::function<std::string(std::string_view)> level(FoldLevel &out) {
  return [&out](std::string_view v) -> std::string {
    static constexpr llvm::StringLiteral names[] = {"none", "small", "all"}; // in the order of FoldLevel
    auto *name = llvm::find(names, llvm::StringRef(v));
    if (name == std::end(names)) return "'" + std::string(v) + "' is not one of none, small, all";
    out = FoldLevel(name - names);
    return "";
  };
}

/// "batch=1..64", "batch=8" or "total=past + 1"; "*=1..64" for all others.
std::string addDim(std::vector<DimBound> &out, std::string_view v) {
  auto [name, range] = llvm::StringRef(v).split('=');
  auto [low, high] = range.split("..");
  DimBound d{name.str(), 0, 0};
  if (!range.contains("..")) high = low;
  if (int64_t number; !name.empty() && name != "*" && !range.contains("..") && !range.trim().empty() &&
                      range.trim().getAsInteger(10, number))
    d.value = range.trim().str();
  else if (name.empty() || !parseInteger(low, 0, INT64_MAX, d.lo) || !parseInteger(high, d.lo, INT64_MAX, d.hi))
    return "'" + std::string(v) + "' is not NAME=LO..HI, NAME=N or NAME=EXPRESSION, for example batch=1..64";
  if (llvm::any_of(out, [&](const DimBound &x) { return x.name == d.name; })) return "'" + d.name + "' is given twice";
  out.push_back(std::move(d));
  return "";
}

/// A row of a table, by name.
std::function<std::string(std::string_view)> recipe(std::optional<nn::Recipe> &out,
                                                    llvm::Expected<nn::Recipe> (*parse)(llvm::StringRef)) {
  return [&out, parse](std::string_view v) -> std::string {
    llvm::Expected<nn::Recipe> r = parse(v);
    if (!r) return llvm::toString(r.takeError());
    out = std::move(*r);
    return "";
  };
}

/// One more of them.
std::string addMetric(std::vector<nn::Recipe> &out, std::string_view v) {
  llvm::Expected<nn::Recipe> r = nn::parseMetric(v);
  if (!r) return llvm::toString(r.takeError());
  if (llvm::any_of(out, [&](const nn::Recipe &x) { return nn::nameOf(x) == nn::nameOf(*r); }))
    return nn::nameOf(*r) + " is given twice";
  out.push_back(std::move(*r));
  return "";
}

/// "features.*=kaiming_uniform(a=1)".
std::string addInit(std::vector<nn::Initialization> &out, std::string_view v) {
  auto [pattern, text] = llvm::StringRef(v).split('=');
  if (pattern.empty() || text.empty())
    return "'" + std::string(v) + "' is not PATTERN=RECIPE, for example *.weight=kaiming_uniform(a=1)";
  llvm::Expected<nn::Recipe> r = nn::parseInitializer(text);
  if (!r) return llvm::toString(r.takeError());
  out.push_back({pattern.str(), std::move(*r)});
  return "";
}

/// The names of recipes.
std::vector<std::string> wordsOf(llvm::ArrayRef<nn::Signature> table) {
  std::vector<std::string> out;
  for (const nn::Signature &s : table) out.push_back(std::string(s.name));
  return out;
}

/// "mse, l1 ...": what --help says there is.
std::string namesOf(llvm::ArrayRef<nn::Signature> table) { return llvm::join(wordsOf(table), ", "); }

/// "int8 (8 bits, ...), q8_0 (...)".
std::string quantizeNames() {
  std::vector<std::string> out;
  for (const quantize::Scheme &s : quantize::schemes()) out.push_back(std::string(s.text) + " (" + s.meaning + ")");
  return llvm::join(out, "; ");
}

/// Those of a family, "cuda:", or all.
std::string gpuNames(llvm::StringRef family = "") {
  std::vector<std::string> names;
  for (const GpuTarget &t : allGpuTargets())
    if (llvm::StringRef(t.name).starts_with(family)) names.push_back(t.name);
  return llvm::join(names, ", ");
}

/// Machines that have a name in this program's language.
constexpr llvm::StringLiteral families[] = {"cuda:", "hip:", "emu:"};

/// Options that the bundle does not name: its bytes do not depend on them, or it says otherwise what they decide (its
/// targets, the plan of each kernel, who signed it).
constexpr llvm::StringLiteral unrecorded[] = {"o",
                                              "target",
                                              "ptxas",
                                              "emit",
                                              "name",
                                              "plans",
                                              "tuning",
                                              "search",
                                              "sign",
                                              "quiet",
                                              "j",
                                              "cache",
                                              "save-temps",
                                              "json",
                                              "quantize-report",
                                              "calibrate-labels",
                                              "print-after",
                                              "verify-each",
                                              "time-passes",
                                              "time-kernels"};
/// Options of files, of which the folder is left out: "state=FILE" and "FILE".
constexpr llvm::StringLiteral ofFiles[] = {"asset", "calibrate", "constant", "tokenizer", "weights"};

struct CommandLine {
  Job job;
  std::vector<std::string> targets, tune;
  std::string numerics = "strict", ptxas, qdq, strides;
  int64_t jobs = llvm::hardware_concurrency().compute_thread_count();
  bool quiet = false, json = false;
  bool train = false;
  int64_t search = 0;
  std::optional<nn::Recipe> loss, optimizer, schedule, lossScale;
  std::vector<nn::Recipe> metrics;
  std::vector<nn::Initialization> init;
  std::string clipNorm, output, checkpointMemory;
  std::vector<std::string> frozen;
  std::string unsupported; // what is asked for rightly and not there yet
};

/// Has the bundle name the option, if it is given and matters.
void record(Job &job, Option &option) {
  if (llvm::is_contained(unrecorded, llvm::StringRef(option.name))) return;
  option.set = [&job, set = option.set, name = option.name](std::string_view v) {
    std::string wrong = set(v);
    llvm::StringRef value = v;
    std::string text = ("--" + llvm::StringRef(name)).str();
    if (llvm::is_contained(ofFiles, llvm::StringRef(name))) {
      auto [key, path] = value.contains('=') ? value.split('=') : std::pair(llvm::StringRef(), value);
      text += "=" + (key.empty() ? "" : key.str() + "=") + llvm::sys::path::filename(path).str();
    } else if (!value.empty()) {
      text += "=" + value.str();
    }
    if (wrong.empty()) job.recorded.push_back(std::move(text));
    return wrong;
  };
}

Program describe(CommandLine &c) {
  Job &j = c.job;
  PipelineOptions &o = j.pipeline;
  Program p;
  p.name = "astra-compile";
  p.synopsis = "MODEL -o FILE.astra [options]";
  p.summary = "compile a model into a bundle";
  p.description =
      "Compiles a model (.uop text, .onnx, StableHLO as .mlir; a language model: .gguf, or a folder that transformers "
      "saved) ahead of time into one file with machine code for every target. "
      "The bundle gives the same bits on each of them. Its bytes are a function of the model, the options and "
      "the compiler alone.";
  p.options = {
      {"o", "FILE", "the bundle; with --emit, the text (stdout if not given)", text(j.output)},
      {"target", "LIST",
       "targets, with commas between them: " + targetNames() +
           " (all CPUs but that with a + if not given), or native: the best of those that this machine runs; GPUs: " +
           gpuNames() +
           "; emu: before a GPU that is given too adds the host build of its kernels, for astra-run --emulate",
       commas(c.targets)},
      {"tune", "LIST",
       "kinds of CPU cores, with commas between them: " + llvm::join(coreWords(), ", ") +
           ": adds to the bundle the kernels of the best target that each runs, planned for its caches. "
           "They are taken where a CPU has such cores; the bits are the same, the size is printed",
       commas(c.tune)},
      {"ptxas", "FILE",
       "NVIDIA's assembler, which makes cubins; that of PATH or of /usr/local/cuda/bin if not given. With none the "
       "bundle carries PTX alone",
       text(c.ptxas)},
      {"dim", "NAME=LO..HI",
       "bounds of a dynamic dim of an ONNX or StableHLO model, NAME=N to fix it, or NAME=EXPRESSION where it follows "
       "from others, as total='past + 1'; once for each. '*=LO..HI' is for every dim of an input that has none of its "
       "own",
       [&j](std::string_view v) { return addDim(j.dims, v); }},
      {"constant", "NAME=FILE.npy",
       "an input of an ONNX or StableHLO model that has this value for good; once for each", pairs(j.constants)},
      {"elements", "NAME=LIST",
       "elements of an ONNX model's input that is a sequence or an optional value: their shapes, as x='[2,3],[n,3]', "
       "their number where the model declares the shape, or none where an optional value is missing; they become "
       "inputs x.0, x.1 ...; once for each",
       pairs(j.elements)},
      {"qdq", "FORM",
       "what products between DequantizeLinear and QuantizeLinear of an ONNX model are: integers, the default, exact "
       "and scaled once; floats, as the nodes say one by one. Results differ by "
       "roundings: a quantized value may be the next one",
       word(c.qdq, "integers|floats")},
      {"fold", "LEVEL",
       "what is computed from weights alone while compiling: small, the default, what makes the bundle little larger; "
       "none; all, so that 8-bit weights too are stored as what they are multiplied as. Weights can be replaced after "
       "any",
       level(o.fold)},
      {"strides", "KIND",
       "tensors that calls take without a copy: row-major, the default; any: at any strides too; a larger bundle, of "
       "CPUs",
       word(c.strides, "row-major|any")},
      {"check", "",
       "has kernels that users wrote test what they assume and assert, and integers that they compute places from, "
       "when they run; a call in which a test fails is refused with the line and the program. Slower",
       flag(o.checks)},
      {"numerics", "CONTRACT",
       "the numeric contract: strict, or device:UNIT, sums of products as a matrix unit adds them: of " +
           matrixUnitNames() + "; device:UNIT:TYPE rounds operands of f32 to this type",
       text(c.numerics)},
      {"taps", "REGEX", "keeps the named values that the expression matches as extra outputs; changes no bit",
       text(j.taps)},
      {"train", "", "adds the entries train_step, eval and init: the parameters become states that a step replaces",
       flag(c.train)},
      {"loss", "RECIPE", "with --train: NAME or NAME(PARAMETER=NUMBER, ...), of " + namesOf(nn::losses()),
       recipe(c.loss, nn::parseLoss)},
      {"optimizer", "RECIPE", "with --train: of " + namesOf(nn::optimizers()) + "; adamw if not given",
       recipe(c.optimizer, nn::parseOptimizer)},
      {"schedule", "RECIPE", "with --train: of " + namesOf(nn::schedules()) + "; constant if not given",
       recipe(c.schedule, nn::parseSchedule)},
      {"loss-scale", "RECIPE",
       "with --train: gradients are of the loss times a number, which is divided out behind them: of " +
           namesOf(nn::lossScales()) + "; none if not given",
       recipe(c.lossScale, nn::parseLossScale)},
      {"init", "PATTERN=RECIPE",
       "with --train: how the entry init draws the parameters that the pattern matches from a seed; once for each, the "
       "first that matches a parameter is taken: of " +
           namesOf(nn::initializers()) + "; '*=default' if not given",
       [&c](std::string_view v) { return addInit(c.init, v); }},
      {"metric", "RECIPE",
       "with --train: what eval says beside the loss, once for each: of " + namesOf(nn::metrics()) +
           "; accuracy if not given and the loss is of classes",
       [&c](std::string_view v) { return addMetric(c.metrics, v); }},
      {"clip-norm", "NUMBER", "with --train: the greatest norm of all gradients together", text(c.clipNorm)},
      {"checkpoint-memory", "SIZE",
       "with --train: bytes, as 512M (K, M, G are powers of 1024), that a step may keep its values in, beside states, "
       "inputs and outputs, at the upper bounds of the dims; what does not fit is computed again in the backward "
       "sweep. Changes no bit",
       text(c.checkpointMemory)},
      {"freeze", "LIST",
       "with --train: patterns of parameters that stay as they are, as features.*; with --weights: those that the file "
       "need not have",
       commas(c.frozen)},
      {"context", "N",
       "of a language model: tokens that a sequence may have; what the model is made for if not given, at most 4096",
       ofLanguage(j, number(j.language.context, 1, 1 << 24))},
      {"batch", "N", "of a language model: sequences that go together, 1 if not given",
       ofLanguage(j, number(j.language.batch, 1, 4096))},
      {"chunk", "N", "of a language model: tokens of a sequence that a call takes at most, 128 if not given",
       ofLanguage(j, number(j.language.chunk, 1, 1 << 16))},
      {"tokenizer", "FILE",
       "of a language model: its tokenizer goes into the bundle; the file beside the model if not given, none: no "
       "tokenizer",
       ofLanguage(j, text(j.tokenizer))},
      {"chat-form", "NAME",
       "of a language model: the form of conversations, if the tokenizer's template is not known: " +
           import::chatForms() + ", none",
       ofLanguage(j, text(j.chatForm))},
      {"cache-type", "TYPE", "of a language model: how keys and values are kept, f32 (if not given), f16 or i8",
       ofLanguage(j, cacheType(j.language.cache))},
      {"train-scalars", "LIST",
       "with --train: initializers of rank 0 that are parameters, as logit_scale; else they are constants, unless the "
       "file calls them parameters",
       commas(j.trainScalars)},
      {"predict", "NAME", "with --train: the output that the loss is about; the first if not given", text(c.output)},
      {"weights", "FILE",
       "replaces the model's weights by the tensors of the same names: of a .safetensors file, as astra-train writes "
       "it, a .gguf file, a file of PyTorch's torch.save (.pt, .pth, .bin), or a folder with model.safetensors, "
       "pytorch_model.bin or their shards",
       text(j.weights)},
      {"quantize", "[PATTERN=]FORMAT",
       "stores weights in few bits: matrices of f32, f16 or bf16 that products read, and tables of embeddings. FORMAT "
       "is for all of them, PATTERN=FORMAT for those whose names match, as 'lm_head*=q8_0'; PATTERN=float leaves them. "
       "Once for each, the first pattern that matches is taken. Formats: " +
           quantizeNames() + ". Rows that are not whole blocks take a format of smaller blocks",
       [&j](std::string_view v) {
         j.asksQuantize = true;
         return quantize::addRule(j.quantize, v);
       }},
      {"quantize-activations", "WHEN",
       "multiplies bytes by bytes: activations become 8 bits where products read them, dynamic by the range of each "
       "row "
       "when it runs, static by ranges that --calibrate measures. Of int8 weights (which are taken if --quantize does "
       "not say others), dynamic of q8_0 to q4_1 too",
       [&j](std::string_view v) -> std::string {
         if (v != "dynamic" && v != "static") return "'" + std::string(v) + "' is not one of dynamic, static";
         j.asksQuantize = true;
         j.quantize.activations = v == "static" ? quantize::Activations::Static : quantize::Activations::Dynamic;
         return "";
       }},
      {"calibrate", "DATA",
       "with --quantize: runs the model on this machine before and after and says how outputs, perplexity and time "
       "change. A .npz file with an array for each input (.npy where there is one), cut into calls where it has more "
       "rows than the model takes; a folder of .npz files; for a language model a file of text",
       text(j.calibrate)},
      {"calibrate-labels", "FILE",
       "with --calibrate: integers, a .npy file, the right class of each row of the first output; says accuracy before "
       "and after",
       text(j.labels)},
      {"calibrate-range", "RANGE",
       "with --quantize-activations=static: minmax, if not given, or how many of 100 elements a range holds, as 99.9",
       [&j](std::string_view v) -> std::string {
         if (v == "minmax") return j.percentile = 100, "";
         if (llvm::StringRef(v).getAsDouble(j.percentile) || !(j.percentile >= 50 && j.percentile <= 100))
           return "'" + std::string(v) + "' is not minmax or a number in 50..100";
         return "";
       }},
      {"calibrate-most", "N", "with --calibrate: calls, 1000 if not given, or tokens, 4096 if not given",
       number(j.calibrateMost, 1, 1 << 30)},
      {"quantize-report", "FILE",
       "with --quantize: a table of every weight, its bytes before and after and its error, and what --calibrate "
       "measures, to a file, or - for stdout",
       text(j.quantizeReport)},
      {"asset", "NAME=FILE",
       "puts a file into the bundle, which programs ask for by the name: a tokenizer, names of classes; may be given "
       "again",
       pairs(j.assets)},
      {"emit", "STAGE",
       "gives a stage instead of a bundle: sharding (the program of one shard), uop, schedule, plan, tuning (plans as "
       "--tuning reads them), cost (cycles that each kernel takes of a core or a GPU, by what takes them), c or asm "
       "(of the "
       "first target). c with -o model.c "
       "writes model.h too: the entries as C functions that need no runtime. Of one GPU (--target of " +
           gpuNames() +
           "): plan, tuning, cost, accesses (sectors and banks of memory that a warp meets), mlir, llvm, ptx, or asm, "
           "which "
           "of "
           "cuda is PTX too. Of --target=metal: metal (source in the Metal Shading Language), plan, tuning, accesses",
       word(o.emit, "sharding|uop|schedule|plan|tuning|cost|accesses|c|mlir|llvm|ptx|asm|metal")},
      {"name", "NAME",
       "what the functions of --emit=c begin with, as NAME_main, so that several programs can be linked together; the "
       "module's name if not given, which is 'module' for ONNX and StableHLO",
       [&o](std::string_view v) -> std::string {
         bool fits = !v.empty() && !llvm::isDigit(v[0]) &&
                     llvm::all_of(v, [](char ch) { return llvm::isAlnum(ch) || ch == '_'; });
         if (!fits) return "'" + std::string(v) + "' is not a name of C: letters, digits and _, no digit first";
         o.name = v;
         return "";
       }},
      {"plans", "FILE",
       "plans for kernels instead of the chosen ones, as --emit=plan prints: lines of 'kernel: plan', those after a "
       "line 'target NAME' for that target alone",
       text(j.plans)},
      ownKernels("kernels", o.kernels),
      {"tuning", "FILE",
       "plans for kernels by what they compute, as --search writes them: kernels that the file does not have are "
       "planned as without it. Changes no bit of a result; may be given several times, a later file's plan goes first",
       list(j.tunings)},
      {"search", "SECONDS",
       "looks for faster plans by timing kernels on this machine, for the CPU targets that it runs, and keeps them in "
       "the file of --tuning, which is made if need be and keeps what it has of other kernels and targets",
       number(c.search, 1, 1000000)},
      {"sign", "KEYFILE", "signs the bundle with ed25519; the file holds the 32-byte seed as 64 hexadecimal digits",
       text(j.signingKey)},
      {"j", "N", "compiles on N threads; one for each core if not given. The bytes do not depend on it",
       number(c.jobs, 1, 1024)},
      {"cache", "DIR",
       "keeps the machine code of CPU kernels in a folder, made if need be, and takes what is there from it. The bytes "
       "do not depend on it",
       text(o.cache)},
      {"save-temps", "DIR", "writes the result of every stage into a folder", text(j.saveTemps)},
      {"print-after", "STAGE", "prints a stage to stderr; several with commas: " + llvm::join(stageNames(), ", "),
       commas(j.printAfter)},
      {"verify-each", "", "checks the rules of the graph after every pass, and of every kernel", flag(o.verifyEach)},
      {"rule-limit", "N", "applies at most N rewrite rules, to find the one that matters",
       number(o.ruleLimit, 0, INT64_MAX)},
      {"time-passes", "", "prints the time of each stage to stderr", flag(j.timePasses)},
      {"time-kernels", "",
       "prints to stderr how long each kernel of each GPU takes to compile alone; it is compiled once more for that",
       flag(o.timeKernels)},
      {"quiet", "", "shows no progress on a terminal", flag(c.quiet)},
      {"json", "",
       "prints what was done to stdout as JSON: stages with their times, targets, sizes, notes, and the error if there "
       "is one",
       flag(c.json)},
  };
  llvm::append_range(p.options, meshOptions(o));
  offer(p, "emit",
        {"sharding", "uop", "schedule", "plan", "tuning", "cost", "accesses", "c", "mlir", "llvm", "ptx", "asm",
         "metal"});
  offer(p, "target", targetWords());
  offer(p, "tune", coreWords());
  offer(p, "qdq", {"integers", "floats"});
  offer(p, "fold", {"none", "small", "all"});
  std::vector<std::string> contracts{"strict"};
  for (const MatrixUnit &u : matrixUnits()) contracts.push_back(std::string("device:") + u.text);
  offer(p, "numerics", contracts);
  offer(p, "loss", wordsOf(nn::losses()));
  offer(p, "optimizer", wordsOf(nn::optimizers()));
  offer(p, "schedule", wordsOf(nn::schedules()));
  offer(p, "init", wordsOf(nn::initializers()));
  offer(p, "metric", wordsOf(nn::metrics()));
  offer(p, "quantize-activations", {"dynamic", "static"});
  offer(p, "print-after", stageNames());
  p.operands = {".uop", ".onnx", ".mlir", ".gguf", "/"};
  for (Option &option : p.options) record(j, option);
  p.examples = "  astra-compile affine.uop -o affine.astra --target=cpu:x86-64-v3,cpu:aarch64\n"
               "  astra-compile digits.onnx -o digits.astra --dim batch=1..64\n"
               "  astra-compile classify.mlir -o classify.astra --dim batch=1..8\n"
               "  astra-compile affine.uop --emit=c --target=cpu:x86-64-v4\n"
               "  astra-compile affine.uop -o affine.astra --target=cpu:x86-64-v3,cuda:sm_90,emu:cuda:sm_90\n"
               "  astra-compile digits.onnx -o digits.astra --dim batch=1..64 --search=60 --tuning=digits.tuning\n"
               "  astra-compile digits.onnx -o digits.astra --dim batch=1..64 --train --loss=cross_entropy \\\n"
               "      --optimizer='adamw(lr=1e-3)' --schedule='cosine(steps=2000, warmup=100)' --clip-norm=1\n"
               "  astra-compile digits.onnx -o trained.astra --dim batch=1..64 --weights weights.safetensors\n";
  return p;
}

/// A GPU whose text is asked for: what is wrong with that, or "".
std::string takeText(CommandLine &c, const GpuTarget &gpu) {
  Job &j = c.job;
  PipelineOptions &o = j.pipeline;
  if (c.targets.size() > 1) return "--emit of a GPU takes one target";
  bool metal = gpu.flavour == GpuFlavour::Metal;
  if (metal && o.emit != "metal" && o.emit != "plan" && o.emit != "tuning" && o.emit != "accesses")
    return "--emit=" + o.emit + " is not of metal, of which there are plan, tuning, accesses and metal";
  if (!metal && o.emit == "metal") return std::string("--emit=metal is of --target=metal, not of ") + gpu.name;
  if (o.emit == "c")
    return std::string("--emit=c is of CPUs; of ") + gpu.name +
           " there are plan, tuning, cost, accesses, mlir, llvm, ptx and asm";
  if (o.emit == "ptx" && gpu.flavour != GpuFlavour::CUDA)
    return std::string("--emit=ptx is of cuda; of ") + gpu.name +
           " there are plan, tuning, cost, accesses, mlir, llvm and asm";
  o.gpu = &gpu;
  return "";
}

/// A GPU, or the host build of its kernels: what is wrong with the name, or "".
std::string takeGpu(CommandLine &c, llvm::StringRef name) {
  Job &j = c.job;
  PipelineOptions &o = j.pipeline;
  llvm::StringRef of = name;
  bool host = of.consume_front("emu:");
  const GpuTarget *gpu = gpuTargetNamed(of);
  if (!gpu) {
    c.unsupported = ("--target=" + name + " is not supported; GPUs are " + gpuNames() +
                     (host ? ", each with emu: before it too" : ""))
                        .str();
    return "";
  }
  if (!o.emit.empty() && host)
    return ("--emit shows no " + name + ", which is built from what " + of + " shows with --emit=mlir").str();
  if (!o.emit.empty()) return takeText(c, *gpu);
  auto it = llvm::find_if(o.gpus, [&](const auto &x) { return x.first == gpu; });
  if (!host && it != o.gpus.end()) return ("target " + name + " is given twice").str();
  if (!host) {
    o.gpus.push_back({gpu, llvm::is_contained(c.targets, "emu:" + name.str())});
    if (llvm::count(c.targets, "emu:" + name.str()) > 1) return ("target emu:" + name + " is given twice").str();
  } else if (!llvm::is_contained(c.targets, of)) {
    return (name + " is the host build of the kernels of " + of + " and is linked to its code: name " + of + " too")
        .str();
  }
  return "";
}

/// Where ptxas is: found, given, or "" for none. An error is a sentence.
std::string findPtxas(CommandLine &c) {
  Job &j = c.job;
  PipelineOptions &o = j.pipeline;
  if (c.ptxas.empty())
    o.ptxas = ptxasPath();
  else if (c.ptxas != "none" && !llvm::sys::fs::can_execute(c.ptxas))
    return "--ptxas: '" + c.ptxas + "' is no program";
  else if (c.ptxas != "none")
    o.ptxas = c.ptxas;
  return "";
}

/// "512M"; false where it is no size.
bool parseSize(llvm::StringRef text, int64_t &out) {
  unsigned shift = 0;
  if (text.consume_back("K"))
    shift = 10;
  else if (text.consume_back("M"))
    shift = 20;
  else if (text.consume_back("G"))
    shift = 30;
  if (!parseInteger(text, 1, INT64_MAX >> shift, out)) return false;
  out <<= shift;
  return true;
}

/// What is wrong with --search, or "".
std::string checkSearch(CommandLine &c) {
  Job &j = c.job;
  PipelineOptions &o = j.pipeline;
  o.searchSeconds = double(c.search);
  if (!c.search) return "";
  if (j.tunings.size() != 1) return "--search writes one file: give --tuning=FILE once";
  if (j.tunings[0] == "-") return "--search writes the file of --tuning: a name, not standard output";
  if (o.emit == "uop" || o.emit == "schedule" || o.emit == "sharding")
    return "--search is for kernels, which --emit=" + o.emit + " has none of";
  if (!j.plans.empty()) return "--search and --plans: a kernel's plan is found or given";
  if (o.targets.empty()) return "--search is for CPUs, and no CPU is a target";
  return "";
}

/// What is wrong with the command line as a whole, or "".
std::string check(CommandLine &c, const std::vector<std::string> &models) {
  Job &j = c.job;
  PipelineOptions &o = j.pipeline;
  if (models.size() != 1) return models.empty() ? "no model is given" : "more than one model is given";
  j.model = models[0];
  llvm::StringRef model = j.model;
  bool language = isLanguageModel(model);
  if (!language && !model.ends_with(".uop") && !model.ends_with(".onnx") && !model.ends_with(".mlir"))
    return j.model + ": a model is a .uop, .onnx, .mlir or .gguf file, or a folder with config.json";
  if (!language && j.asksLanguage)
    return "--context, --batch, --chunk, --tokenizer, --chat-form and --cache-type are for a language model, which " +
           j.model + " is not";
  j.qdqFloats = c.qdq == "floats", o.strides = c.strides == "any";
  if (c.numerics == "device")
    c.unsupported =
        "--numerics=device without a matrix unit is not supported; strict is, and device:UNIT of " + matrixUnitNames();
  else if (auto numerics = numericsNamed(c.numerics))
    o.numerics = *numerics;
  else
    return "--numerics: " + llvm::toString(numerics.takeError());
  bool asksTraining = c.loss || c.optimizer || c.schedule || c.lossScale || !c.metrics.empty() || !c.init.empty() ||
                      !c.clipNorm.empty() || !c.output.empty() || !c.checkpointMemory.empty() ||
                      (!c.frozen.empty() && j.weights.empty());
  j.keptWeights = c.frozen;
  if (asksTraining && !c.train) return "a loss, an optimizer and what goes with them need --train";
  if (c.train) {
    if (!c.loss) return "--train needs a loss: --loss=NAME, of " + namesOf(nn::losses());
    nn::TrainingOptions t{*c.loss, {}, {}, 0, c.frozen, c.output, c.init, c.metrics};
    t.optimizer = c.optimizer ? *c.optimizer : llvm::cantFail(nn::parseOptimizer("adamw"));
    t.schedule = c.schedule ? *c.schedule : llvm::cantFail(nn::parseSchedule("constant"));
    if (c.lossScale) t.lossScale = *c.lossScale;
    if (!c.clipNorm.empty() &&
        (llvm::StringRef(c.clipNorm).getAsDouble(t.clipNorm) || !std::isfinite(t.clipNorm) || t.clipNorm <= 0))
      return "--clip-norm: '" + c.clipNorm + "' is not a number above 0";
    if (!c.checkpointMemory.empty() && !parseSize(c.checkpointMemory, o.checkpointMemory))
      return "--checkpoint-memory: '" + c.checkpointMemory + "' is no number of bytes above 0, as 512M";
    o.training = std::move(t);
  }
  if (c.train && j.asksQuantize) return "--quantize and --train: what is trained are floats; quantize what it gives";
  if ((!j.quantizeReport.empty() || !j.calibrate.empty()) && !j.asksQuantize)
    return "--quantize-report and --calibrate are of --quantize";
  bool measures = j.quantize.activations == quantize::Activations::Static;
  if (measures && j.calibrate.empty())
    return "--quantize-activations=static takes ranges from data: give --calibrate=FILE.npz";
  if (!j.labels.empty() && (j.calibrate.empty() || language)) return "--calibrate-labels is of --calibrate with arrays";
  if (j.quantize.activations != quantize::Activations::Float && !j.quantize.otherwise && j.quantize.rules.empty())
    j.quantize.otherwise = quantize::schemeNamed("int8");
  if (j.output.empty() && o.emit.empty()) return "where to? give -o FILE.astra";
  if (j.output == "-" && o.emit.empty()) return "a bundle is not written to stdout: give -o FILE.astra";
  if (c.targets.empty())
    for (const Target &t : allTargets())
      if (!t.onRequest) o.targets.push_back(&t);
  for (const std::string &given : c.targets) {
    bool native = given == "native";
    const Target *t = native ? nativeTarget() : targetNamed(given);
    std::string name = native ? (t ? t->name : "") : given;
    if (name.empty()) return "--target=native: this machine runs none of " + targetNames();
    if (name == "cuda" || name == "hip") return "--target=" + name + " needs a GPU's name: " + gpuNames(name + ":");
    if (llvm::any_of(families, [&](llvm::StringRef f) { return llvm::StringRef(name).starts_with(f); })) {
      if (std::string wrong = takeGpu(c, name); !wrong.empty() || !c.unsupported.empty()) return wrong;
      continue;
    }
    if (name == metalTarget().name) {
      if (o.emit.empty())
        return "--target=metal gives a text alone, with --emit=metal, plan, tuning or accesses: bundles have no code "
               "for "
               "Metal, and the runtime has no device of it";
      if (std::string wrong = takeText(c, metalTarget()); !wrong.empty()) return wrong;
      continue;
    }
    if (!t) return "there is no target '" + name + "'; targets are " + targetNames();
    if (llvm::is_contained(o.targets, t)) return "target " + name + " is given twice";
    o.targets.push_back(t);
  }
  if (std::string wrong = addTuned(o, c.tune); !wrong.empty()) return wrong;
  if (!o.gpu && (o.emit == "mlir" || o.emit == "llvm" || o.emit == "ptx" || o.emit == "accesses"))
    return "--emit=" + o.emit + " needs the target of a GPU: --target=NAME, of " + gpuNames();
  if (!o.gpu && o.emit == "metal") return "--emit=metal needs --target=metal";
  if (std::string wrong = findPtxas(c); !wrong.empty()) return wrong;
  for (const std::string &stage : j.printAfter)
    if (!llvm::is_contained(stageNames(), stage))
      return "there is no stage '" + stage + "'; stages are " + llvm::join(stageNames(), ", ");
  if (std::string wrong = checkSearch(c); !wrong.empty()) return wrong;
  std::multimap<std::string, std::string> byName; // those of one name as they were given
  for (std::string &text : j.recorded) byName.emplace(llvm::StringRef(text).split('=').first.str(), std::move(text));
  j.recorded.clear();
  if (!measures) byName.erase("--calibrate"), byName.erase("--calibrate-most"); // bytes depend on ranges alone
  for (auto &[name, text] : byName) j.recorded.push_back(std::move(text));
  if (j.quantizeReport == "-" && (c.json || (!o.emit.empty() && (j.output.empty() || j.output == "-"))))
    return "--quantize-report and what else is printed both go to stdout: give --quantize-report=FILE";
  if (!o.name.empty() && o.emit != "c") return "--name is of --emit=c, whose functions it names";
  if (!j.assets.empty() && !o.emit.empty()) return "--asset is of bundles, --emit gives a text";
  if (c.json && !o.emit.empty() && (j.output.empty() || j.output == "-"))
    return "--json and the text of --emit both go to stdout: give -o FILE";
  o.jobs = unsigned(c.jobs);
  std::vector<Place> inputs{
      {"the model", j.model}, {"--weights", j.weights}, {"--plans", j.plans}, {"--sign", j.signingKey}};
  inputs.push_back({"--calibrate", j.calibrate});
  inputs.push_back({"--calibrate-labels", j.labels});
  for (const auto &[name, path] : j.assets) inputs.push_back({"--asset " + name, path});
  for (const auto &[name, path] : j.constants) inputs.push_back({"--constant " + name, path});
  std::vector<Place> outputs;
  for (const std::string &path : j.tunings) (c.search ? outputs : inputs).push_back({"--tuning", path});
  if (j.output != "-") outputs.push_back({"-o", j.output});
  if (j.quantizeReport != "-") outputs.push_back({"--quantize-report", j.quantizeReport});
  return overwritten(inputs, outputs);
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  CommandLine c;
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond the limit of sizes is an error of the write, with a sentence
  Program program = describe(c);
  std::vector<std::string> models;
  if (int code = parse(program, argc, argv, models); code >= 0) return code;
  if (std::string wrong = check(c, models); !wrong.empty())
    return complain(program, Usage, wrong + " (see astra-compile --help)");
  if (!c.unsupported.empty()) return complain(program, Unsupported, c.unsupported);

  Progress progress(c.quiet);
  Report report;
  llvm::Error failed = runJob(c.job, progress, report);
  progress.clear();
  int code = Ok;
  llvm::handleAllErrors(std::move(failed), [&](const llvm::ErrorInfoBase &e) {
    int worst = e.convertToErrorCode() == std::errc::not_supported ? Unsupported : Failure;
    std::string text = report.error = e.message();
    // A diagnostic with its place in a file stands alone.
    code = text.find(": error: ") != text.npos ? (llvm::errs() << text << "\n", worst) : complain(program, worst, text);
  });
  if (c.json) print(llvm::outs(), report);
  return finished(program, code);
}
