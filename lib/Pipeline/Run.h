//===- Run.h: one compilation, as its stages see it -------------------------===//
// Gives:    what every stage needs: the options, and who is told what.
// Keeps:    each stage under its name: timed, reported and listed alike.
#pragma once
#include "GivenPlans.h"
#include "astra/Pipeline/Pipeline.h"
#include <chrono>

namespace astra {

class Run {
public:
  Run(const PipelineOptions &options, PipelineReport &report, const PipelineObserver &observer)
      : o(options), given(options, [this](const llvm::Twine &text) { note(text); }), report(report),
        observer(observer) {}

  const PipelineOptions &o;
  GivenPlans given;

  /// A stage, or a part of one, begins.
  void begin(const llvm::Twine &what) {
    progress(what.str());
    started = std::chrono::steady_clock::now();
  }
  /// What began last is the stage that is done now.
  llvm::Error end(llvm::StringRef stage, llvm::StringRef extension = "",
                  llvm::function_ref<std::string()> listing = nullptr, const AccessCount *proved = nullptr) {
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - started;
    report.stages.push_back({stage.str(), time.count()});
    if (!observer.ends) return llvm::Error::success();
    return observer.ends({report.stages.back(), listing, extension, proved});
  }
  void progress(const std::string &what) {
    if (observer.begins) observer.begins(what);
  }
  void note(const llvm::Twine &sentence) { tell(sentence, observer.note); }
  void warn(const llvm::Twine &sentence) { tell(sentence, observer.warning); }
  void detail(const std::string &line) {
    if (observer.detail) observer.detail(line);
  }

private:
  PipelineReport &report;
  const PipelineObserver &observer;
  std::chrono::steady_clock::time_point started;

  void tell(const llvm::Twine &sentence, const std::function<void(const std::string &)> &who) {
    report.notes.push_back(sentence.str());
    if (who) who(report.notes.back());
  }
};

/// Applies the standard passes to a module; what is wrong after one names it. run: told of each, or null.
llvm::Error runStandardPasses(Module &m, const PipelineOptions &options, Run *run);

/// The least number of segments whose training step fits into checkpointMemory: what is computed again costs time.
llvm::Expected<unsigned> segmentsWithin(Run &run, const Module &m);

/// Plans found by measuring, for the targets that this machine runs; they are in run.given then.
llvm::Error searchFor(Run &run, const Module &m, const Schedule &s);

/// The text of a stage on the way to a CPU.
llvm::Expected<Compilation> cpuText(const PipelineOptions &o, Context &c, const Module &m, const Schedule &s,
                                    llvm::ArrayRef<CompiledTarget> code);
/// The text of a stage on the way to a GPU.
llvm::Expected<Compilation> gpuText(Run &run, const Module &m, Context &c, const Schedule &s);
/// The plans of all kernels, as PipelineOptions::plans reads them.
std::string planList(llvm::ArrayRef<CompiledTarget> code, llvm::ArrayRef<GpuPart> gpus);

} // namespace astra
