//===- Report.h: what a compilation did, as JSON ----------------------------===//
// Takes:    what the pipeline notes as it goes.
// Gives:    one JSON object (--json).
// Keeps:    the order of the stages.
// Does not: decide what is worth noting.
#pragma once
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace astra {

struct Report {
  struct Stage {
    std::string name;
    double milliseconds;
  };
  struct Code {
    std::string target;
    size_t bytes; // of its machine code, or of its text where it has no other
  };
  std::string model, output, error;
  std::vector<Stage> stages;
  std::vector<Code> code;
  std::vector<std::string> notes;
  size_t kernels = 0;
  uint64_t bytes = 0; // of the bundle
};

void print(llvm::raw_ostream &out, const Report &report);

} // namespace astra
