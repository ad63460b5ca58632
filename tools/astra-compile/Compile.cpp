//===- Compile.cpp: from the files of a command line to a file --------------===//
// Takes:    options that the command line has checked.
// Gives:    the files that the pipeline takes, what it tells, and what it gives at its place.
// Keeps:    files appear whole or not at all.
#include "Compile.h"
#include "Commit.h"
#include "OutputFile.h"
#include "Quantize.h"
#include "astra/IR/Text.h"
#include "astra/Import/Language.h"
#include "astra/Import/Tokenizer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include <chrono>

using namespace astra;
using namespace llvm;

//===- Files ----------------------------------------------------------------===//

namespace {

using Content = function_ref<Error(raw_ostream &)>;

/// A file that is written whole beside its place, and comes there when it is kept; else nothing is left of it, after a
/// signal neither.
class Output {
public:
  Error fill(StringRef path, Content content) {
    std::string wrong;
    if (!file.open(path.str(), wrong)) return createStringError(wrong);
    temporary = file.temporaryPath();
    if (!temporary.empty()) sys::RemoveFileOnSignal(temporary);
    raw_fd_ostream out(file.descriptor(), /*shouldClose=*/false);
    Error failed = content(out);
    out.flush();
    if (out.has_error()) {
      failed = joinErrors(std::move(failed), createFileError(path, out.error()));
      out.clear_error();
    }
    return failed;
  }
  Error fill(StringRef path, StringRef text) {
    return fill(path, [&](raw_ostream &out) {
      out << text;
      return Error::success();
    });
  }
  /// On the disk before it has the name, if it is durable.
  Error keep(bool durable = false) {
    std::string wrong;
    return file.keep(wrong, durable) ? Error::success() : createStringError(wrong);
  }
  ~Output() {
    if (!temporary.empty()) sys::DontRemoveFileOnSignal(temporary);
  }

private:
  tool::OutputFile file;
  std::string temporary;
};

} // namespace

static Error give(StringRef path, StringRef text) {
  if (path == "-") {
    outs() << text;
    return Error::success();
  }
  Output file;
  if (Error e = file.fill(path, text)) return e;
  return file.keep();
}

/// A file of plans. Devices and pipes, which may have no end, are refused.
static Expected<NamedText> readText(const std::string &path) {
  constexpr uint64_t most = 64 << 20;
  sys::fs::file_status status;
  if (std::error_code e = sys::fs::status(path, status)) return createFileError(path, e);
  auto bad = [&](const Twine &why) { return createStringError(path + ": " + why); };
  if (!sys::fs::is_regular_file(status)) return bad("is no regular file");
  if (status.getSize() > most) return bad("has " + Twine(status.getSize()) + " bytes, more than 64 MiB");
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path);
  if (!file) return createFileError(path, file.getError());
  return NamedText{path, (*file)->getBuffer().str()};
}

/// The files of --plans and --tuning; that which a search is to write need not be there.
static Error readPlans(Job &job) {
  for (const std::string &path : job.tunings) {
    if (job.pipeline.searchSeconds && !sys::fs::exists(path)) continue;
    Expected<NamedText> file = readText(path);
    if (!file) return file.takeError();
    job.pipeline.tunings.push_back(std::move(*file));
  }
  if (job.plans.empty()) return Error::success();
  Expected<NamedText> file = readText(job.plans);
  if (!file) return file.takeError();
  job.pipeline.plans = std::move(*file);
  return Error::success();
}

/// The files of --asset.
static Error readAssets(Job &job) {
  for (const auto &[name, path] : job.assets) {
    std::vector<uint8_t> bytes;
    std::string wrong;
    if (!tool::readWhole(path, bytes, wrong)) return createStringError(wrong);
    job.pipeline.assets.push_back({name, std::make_shared<const std::vector<uint8_t>>(std::move(bytes))});
  }
  return Error::success();
}

/// The tokenizer of a language model becomes the asset "tokenizer".
static Error addTokenizer(Job &job, const Module &m, std::vector<std::string> &notes) {
  for (const auto &[name, path] : job.assets)
    if (name == "tokenizer") return Error::success();
  if (job.tokenizer == "none") return Error::success();
  Expected<std::string> made = import::tokenizerOfModel(job.model, job.tokenizer, job.chatForm, m, notes);
  if (!made) return createStringError(toString(made.takeError()) + " (--tokenizer=none leaves the tokenizer out)");
  if (made->empty()) return Error::success();
  job.pipeline.assets.push_back(
      {"tokenizer", std::make_shared<const std::vector<uint8_t>>(made->begin(), made->end())});
  return Error::success();
}

/// What the bundle says of how it was made. The model's file is read once more, where it is a file that can be.
static Expected<Provenance> provenance(const Job &job) {
  if (!sys::fs::is_regular_file(job.model)) return Provenance{compilerCommit, {}, job.recorded};
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(job.model, /*IsText=*/false,
                                                                      /*RequiresNullTerminator=*/false);
  if (!file) return createFileError(job.model, file.getError());
  Digest digest = Weights::digest(arrayRefFromStringRef((*file)->getBuffer()));
  return Provenance{compilerCommit, {digest.begin(), digest.end()}, job.recorded};
}

//===- What the pipeline tells -----------------------------------------------===//

namespace {

/// Progress, times, listings and notes of stages.
class Teller {
public:
  Teller(const Job &job, tool::Progress &progress) : job(job), progress(progress) {}

  PipelineObserver observer() {
    PipelineObserver o;
    o.begins = [this](const std::string &what) { progress(what); };
    o.ends = [this](const StageResult &r) { return ends(r); };
    o.note = [this](const std::string &text) { say("astra-compile: note: " + text); };
    o.warning = [this](const std::string &text) { say("astra-compile: warning: " + text); };
    o.detail = [this](const std::string &line) {
      if (job.timePasses || job.pipeline.timeKernels) say(line);
    };
    return o;
  }
  void say(const Twine &line) {
    progress.clear();
    errs() << line << "\n";
  }

private:
  const Job &job;
  tool::Progress &progress;

  void time(StringRef what, double milliseconds) {
    progress.clear();
    errs() << format("%-32s %10.3f ms\n", what.str().c_str(), milliseconds);
  }

  /// Time, listing and file of a stage that is done.
  Error ends(const StageResult &r) {
    StringRef stage = r.stage.name;
    if (job.timePasses) time(stage, r.stage.milliseconds);
    bool print = is_contained(job.printAfter, stage) || is_contained(job.printAfter, stage.split(' ').first);
    if (r.listing && (print || !job.saveTemps.empty())) {
      std::string text = r.listing();
      if (print) say("// after " + stage + "\n" + StringRef(text).rtrim('\n'));
      if (Error e = save(stage, r.extension, text)) return e;
    }
    if (!job.timePasses || !r.proved) return Error::success();
    std::string what = "  accesses proved: " + std::to_string(r.proved->accesses) + " of " +
                       std::to_string(r.proved->kernels) + " kernels";
    if (r.proved->tested) what += ", " + std::to_string(r.proved->tested) + " tested at run time";
    time(what, r.proved->milliseconds);
    return Error::success();
  }

  /// Into the folder of --save-temps.
  Error save(StringRef stage, StringRef extension, StringRef text) {
    if (job.saveTemps.empty()) return Error::success();
    std::string name = stage.str();
    for (char &c : name)
      if (!isAlnum(c) && c != '-' && c != '_') c = '.';
    SmallString<128> path(job.saveTemps);
    sys::path::append(path, name + extension);
    return give(path, text);
  }
};

/// A stage of the tool itself, told as those of the pipeline are.
class OwnStage {
public:
  OwnStage(Report &report, const PipelineObserver &observer, const std::string &what)
      : report(report), observer(observer), started(std::chrono::steady_clock::now()) {
    observer.begins(what);
  }
  Error end(StringRef name, StringRef extension = "", function_ref<std::string()> listing = nullptr) {
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - started;
    report.pipeline.stages.push_back({name.str(), time.count()});
    return observer.ends({report.pipeline.stages.back(), listing, extension, nullptr});
  }

private:
  Report &report;
  const PipelineObserver &observer;
  std::chrono::steady_clock::time_point started;
};

} // namespace

//===- The job ---------------------------------------------------------------===//

/// The text of --emit, and beside C its header: both files, or none.
static Error giveText(const Job &job, const Compilation &done) {
  StringRef to = job.output.empty() ? "-" : StringRef(job.output);
  bool withHeader = job.pipeline.emit == "c" && to != "-" && (!sys::fs::exists(to) || sys::fs::is_regular_file(to));
  if (!withHeader) return give(to, done.text);
  SmallString<128> place(to);
  sys::path::replace_extension(place, ".h");
  Output header, source;
  if (Error e = header.fill(place, done.header)) return e;
  if (Error e = source.fill(to, done.text)) return e;
  if (Error e = header.keep()) return e;
  return source.keep();
}

/// The bundle, on the disk.
static Error giveBundle(const Job &job, BundleParts &parts, const std::optional<SigningKey> &key, Report &report) {
  report.kernels = parts.manifest.kernels.size();
  for (auto [target, image] : zip_equal(parts.manifest.targets, parts.images))
    report.code.push_back({target->name, image.code.size()});
  Output file;
  if (Error e = file.fill(job.output, [&](raw_ostream &out) {
        uint64_t start = out.tell();
        Error e = writeBundle(parts, out, key);
        report.bytes = out.tell() - start;
        return e;
      }))
    return e;
  return file.keep(/*durable=*/true);
}

Error astra::runJob(Job &job, tool::Progress &progress, Report &report) {
  report.model = job.model, report.output = job.output;
  PipelineOptions &o = job.pipeline;
  Teller teller(job, progress);
  PipelineObserver observer = teller.observer();
  if (!job.saveTemps.empty())
    if (std::error_code e = sys::fs::create_directories(job.saveTemps)) return createFileError(job.saveTemps, e);
  if (Error e = readPlans(job)) return e;
  if (Error e = readAssets(job)) return e;
  if (o.searchSeconds) o.keepTuning = [&](const std::string &text) { return give(job.tunings.front(), text); };
  if (!job.output.empty() && job.output != "-") {
    SmallString<128> header(job.output);
    sys::path::replace_extension(header, ".h");
    o.header = sys::path::filename(header).str();
  }
  std::optional<SigningKey> key;
  if (!job.signingKey.empty()) {
    Expected<SigningKey> read = readSigningKey(job.signingKey);
    if (!read) return read.takeError();
    key = *read;
  }

  OwnStage load(report, observer, "load " + job.model);
  std::vector<std::string> notes;
  Expected<Module> m = loadModel(job, notes);
  if (m && o.emit.empty() && isLanguageModel(job.model))
    if (Error e = addTokenizer(job, *m, notes)) return e;
  for (const std::string &text : notes) observer.note(text), report.pipeline.notes.push_back(text);
  if (!m) return m.takeError();
  if (o.emit.empty()) {
    Expected<Provenance> made = provenance(job);
    if (!made) return made.takeError();
    o.made = std::move(*made);
  }
  if (Error e = load.end("load", ".uop", [&] { return print(*m); })) return e;

  if (job.asksQuantize) {
    OwnStage stage(report, observer, "quantize");
    std::vector<std::string> said;
    if (Error e = quantizeModel(job, *m, report, said)) return e;
    for (const std::string &text : said) observer.note(text), report.pipeline.notes.push_back(text);
    if (!job.quantizeReport.empty())
      if (Error e = give(job.quantizeReport, quantizeTable(report))) return e;
    if (Error e = stage.end("quantize", ".uop", [&] { return print(*m); })) return e;
  }

  Expected<Compilation> done = compileModule(std::move(*m), o, report.pipeline, observer);
  if (!done) return done.takeError();
  if (!done->bundle) return giveText(job, *done);
  OwnStage write(report, observer, "write");
  if (Error e = giveBundle(job, *done->bundle, key, report)) return e;
  return write.end("write");
}
