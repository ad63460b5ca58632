//===- Measure.h: what quantization costs and gains, on data ----------------===//
// Takes:    the data of --calibrate: arrays for the inputs of a model, or text for a language model; the module before
//           and after.
// Gives:    ranges of activations; differences of outputs, agreement of classes, perplexity, time of a call.
#pragma once
#include "Compile.h"
#include "Runner.h"

namespace astra {

/// The calls of a file or folder, each with an array for every input of an entry, in its order.
struct Samples {
  std::string entry;
  std::vector<std::vector<tool::Npy>> calls;
  std::vector<int64_t> labels; // the right class of each row of the first output; empty: not known
};
/// A .npy file of integers.
llvm::Expected<std::vector<int64_t>> readLabels(const std::string &file);
/// FILE.npz: an array for each input. One that has more rows than an input takes along its first axis is cut, all
/// alike, into calls. A folder: its .npz files by name. At most `most` calls.
llvm::Expected<Samples> readSamples(const std::string &place, const Module &m, int64_t most);

/// Of each value, over all samples. `percentile`: how many of 100 elements the range holds; 100: all.
llvm::Expected<std::map<UOpRef, quantize::Range>> measureRanges(const Module &m, llvm::ArrayRef<UOpRef> values,
                                                                const Samples &samples, double percentile,
                                                                const PipelineOptions &like);

/// One figure of a model before and after.
struct Comparison {
  std::string what;
  double before = 0, after = 0;
  const char *unit = "";
};
struct Measured {
  std::vector<Comparison> figures;    // time of a call, perplexity
  std::vector<std::string> sentences; // about outputs
};
llvm::Expected<Measured> compareOutputs(const Module &before, const Module &after, const Samples &samples,
                                        const PipelineOptions &like);
/// Of a language model with the tokenizer that is an asset of `like`: at most `most` tokens of the text's begin.
llvm::Expected<Measured> comparePerplexity(const Module &before, const Module &after, const std::string &textFile,
                                           int64_t most, const PipelineOptions &like);

} // namespace astra
