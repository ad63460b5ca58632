//===- Pipeline.h: from a module to a bundle --------------------------------===//
// Takes:    a module and options.
// Gives:    the parts of a bundle, which writeBundle streams, or the text of the stage asked for.
// Keeps:    the order of stages in one place, as straight lines (compileModule in Pipeline.cpp). The result is a
//           function of the module, the options and the toolchain; the observer has no part in it.
// Does not: read models, print, write files (but those of the cache, and of programs that it runs), or know a command
//           line. Several threads may compile at once, each its own module.
#pragma once
#include "astra/Bundle/Assemble.h"
#include "astra/Distribute/Distribute.h"
#include "astra/NN/Training.h"
#include "astra/Numerics/MatrixUnit.h"
#include "astra/Schedule/Program.h"

namespace astra {

/// A text and what diagnostics call it: the file that it came from.
struct NamedText {
  std::string name, text;
};

struct PipelineOptions {
  std::vector<const Target *> targets;
  std::vector<std::pair<const GpuTarget *, bool>> gpus; // beside targets; whether a host build is asked for
  std::string ptxas;                                    // where it is; "": there is none
  std::string cache;                                    // a folder for objects of CPU kernels; "": none
  unsigned jobs = 1;                                    // threads
  Provenance made;                                      // what the bundle says of how it came to be
  std::vector<Asset> assets;                            // files that go into the bundle

  std::string emit;               // "", sharding, uop, schedule, plan, tuning, accesses, c, mlir, llvm, ptx, asm, metal
  const GpuTarget *gpu = nullptr; // in place of targets and gpus: a text of this GPU is asked for
  std::string name;               // what functions of emitted C begin with; "": the module's name
  std::string header = "model.h"; // what emitted C includes
  /// Whether some GPU multiplies words of a matrix unit that lie along the sum.
  bool storesAlongSum() const {
    return (gpu && multipliesLines(*gpu)) ||
           llvm::any_of(gpus, [](const auto &g) { return multipliesLines(*g.first); });
  }

  FoldLevel fold = FoldLevel::Small;
  std::vector<std::string> kernels; // of the compiler's own that stand for parts of the graph (WrittenKernels.h)
  bool checks = false;              // what kernels of users assume is tested when they run
  bool strides = false;             // entries have a routine for tensors at any strides too
  UnitChoice numerics;              // adds products of floats (useMatrixUnit); no unit: as the module says
  std::optional<nn::TrainingOptions> training;
  std::optional<Mesh> mesh;      // none: that of the module, if it has one
  std::vector<ShardRule> shards; // of what training makes too
  std::optional<PipelineRule> pipeline;
  uint64_t bucket = usualBucket; // bytes of transfers that are joined; 0: none are
  bool overlap = true;           // transfers run beside kernels
  int64_t checkpointMemory = 0;  // the most bytes of values that a training step may keep; 0: no bound
  int64_t ruleLimit = -1;        // none
  bool verifyEach = false;       // checks the module after every pass, and every kernel

  std::optional<NamedText> plans; // by the names of kernels
  std::vector<NamedText> tunings; // by their content; a later one goes first
  double searchSeconds = 0;       // looks for faster plans by timing kernels on this machine; 0: no search
  /// Takes the tuning that a search began from, before its time is spent, and what it found.
  std::function<llvm::Error(const std::string &tuning)> keepTuning;

  bool timeKernels = false; // each GPU kernel is compiled once more, alone: how long is a detail for the observer
};

/// What was done, whether or not it came to an end.
struct PipelineReport {
  struct Stage {
    std::string name;
    double milliseconds;
  };
  std::vector<Stage> stages;
  std::vector<std::string> notes; // warnings too
};

/// A stage that is done.
struct StageResult {
  const PipelineReport::Stage &stage;
  llvm::function_ref<std::string()> listing; // its text, which takes time to make; null: it has none
  llvm::StringRef extension;                 // of a file with this text: ".uop"
  const AccessCount *proved;                 // of the accesses of its kernels; null: it has none
};

/// Who looks on: each function may be empty, and is called from the thread that compiles.
struct PipelineObserver {
  std::function<void(const std::string &what)> begins; // for a line of progress
  std::function<llvm::Error(const StageResult &)> ends;
  std::function<void(const std::string &sentence)> note, warning;
  std::function<void(const std::string &line)> detail; // times of kernels
};

struct Compilation {
  std::optional<BundleParts> bundle; // none where a text was asked for
  std::string text, header;          // the text; of C, the header that it includes
};

/// Names of the stages that an observer sees, in order; "code" is followed by a target's name there.
std::vector<std::string> stageNames();

/// Makes outputs of the `tap` nodes whose whole name the expression matches. They follow the entry's own outputs, by
/// name. An error where the expression is none, or matches nothing.
llvm::Error keepTaps(Module &m, const std::string &expression);

/// Fills the report, whatever happens. An error is one sentence or more; those of what is not supported have the code
/// std::errc::not_supported.
llvm::Expected<Compilation> compileModule(Module m, const PipelineOptions &options, PipelineReport &report,
                                          const PipelineObserver &observer = {});

} // namespace astra
