//===- Pipeline.h: from a model to a bundle ---------------------------------===//
// Takes:    what the command line says.
// Gives:    the bundle, or the text of the stage asked for.
// Keeps:    the order of stages in one place, as straight lines.
// Does not: parse options (Main.cpp).
#pragma once
#include "Progress.h"
#include "Report.h"
#include "astra/Codegen/GPU.h"
#include "astra/Import/ONNX.h"
#include "astra/NN/Training.h"
#include "astra/Schedule/Program.h"
#include "llvm/Support/Error.h"

namespace astra {

struct PipelineOptions {
  std::string model, output; // output: "-" is stdout, for --emit
  std::string emit;          // "", uop, schedule, plan, tuning, c, mlir, llvm, ptx, asm
  std::string saveTemps, cache, taps, plans, signingKey;
  std::vector<std::string> tunings; // files of --tuning; with searchSeconds one, which is written
  double searchSeconds = 0;         // --search; 0: none
  std::vector<std::string> printAfter;
  std::string name;                  // --name: what functions of --emit=c begin with
  std::vector<std::string> recorded; // options that the bundle names: those that its bytes depend on
  std::vector<const Target *> targets;
  const GpuTarget *gpu = nullptr;                       // in place of targets: a text is asked for
  std::vector<std::pair<const GpuTarget *, bool>> gpus; // beside targets; whether a host build is asked for
  std::string ptxas;                                    // where it is; "": there is none
  std::vector<DimBound> dims;
  std::vector<std::pair<std::string, std::string>> constants; // an ONNX model's inputs, and .npy files
  std::string weights;                                        // --weights
  std::vector<std::string> keptWeights;                       // patterns of --freeze: these need not be in the file
  std::vector<std::string> trainScalars;                      // initializers of rank 0 that are parameters
  FoldLevel fold = FoldLevel::Small;
  std::optional<nn::TrainingOptions> training; // --train
  int64_t checkpointMemory = 0;                // the most bytes of values that a step may keep; 0: no bound
  bool timePasses = false, timeKernels = false, verifyEach = false;
  int64_t ruleLimit = -1; // none
  unsigned jobs = 1;
};

/// Names of the stages that --print-after knows, in order.
std::vector<std::string> stageNames();

/// Fills the report, whatever happens.
llvm::Error runPipeline(const PipelineOptions &options, tool::Progress &progress, Report &report);

} // namespace astra
