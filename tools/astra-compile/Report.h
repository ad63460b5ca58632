//===- Report.h: what a compilation did, as JSON ----------------------------===//
// Takes:    what the pipeline notes as it goes.
// Gives:    one JSON object (--json).
// Keeps:    the order of the stages.
// Does not: decide what is worth noting.
#pragma once
#include "astra/Pipeline/Pipeline.h"
#include "astra/Quantize/Weights.h"

namespace astra {

struct Report {
  struct Code {
    std::string target;
    size_t bytes; // of its machine code, or of its text where it has no other
  };
  std::string model, output, error;
  PipelineReport pipeline;
  std::vector<Code> code;
  struct Figure {
    std::string what;
    double before, after;
    std::string unit;
  };
  std::vector<Figure> figures;              // of --calibrate
  std::vector<std::string> differences;     // of outputs
  std::vector<quantize::WeightRow> weights; // what --quantize made of each
  size_t kernels = 0;
  uint64_t bytes = 0; // of the bundle
};

void print(llvm::raw_ostream &out, const Report &report);

} // namespace astra
