//===- Places.h: outputs that are no inputs ---------------------------------===//
// Takes:    the paths that a command line names, each with its option.
// Gives:    a sentence where an output would replace what the same call reads, or two outputs are one file.
// Keeps:    files are compared, not names: links and ./x.npy are seen through. What is no file (a device, a pipe) is
//           written as it is and clashes with nothing.
#pragma once
#include <string>
#include <vector>

namespace astra::tool {

struct Place {
  std::string option, path; // "--log", "run.csv"; a place without an option: "the bundle"
};

/// The first output that is the file of an input, or of an output before it; "" if there is none. Empty paths are those
/// of options that were not given.
std::string overwritten(const std::vector<Place> &inputs, const std::vector<Place> &outputs);

} // namespace astra::tool
