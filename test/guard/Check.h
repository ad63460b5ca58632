//===- Check.h: a bundle's kernels, between guard pages --------------------===//
// Takes:    the file of a bundle, a CPU level that this machine has.
// Gives:    every entry called at the corners of its dims: with buffers that end at guard pages, with buffers that
//           begin at them, and as the runtime runs it; what kernels do outside of their buffers and where bytes differ.
// Keeps:    inputs are functions of the bundle and the corner; equal bytes.
// Does not: know what is right beyond that: other tests compare with the evaluator.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace astra::guard {

struct CheckOptions {
  uint64_t corners = 24;     ///< of an entry
  uint64_t cost = 600000000; ///< of an entry's corners together, in operations or bytes
  uint64_t launches = 2000;  ///< of a call; one with more is refused
  uint64_t seed = 1;
  bool params = true; ///< weights are replaced by random ones in the end, if they have at most 16 MiB
  bool verbose = false;
};

struct CheckResult {
  uint64_t modules = 0; ///< each on one level
  uint64_t entries = 0, corners = 0, launches = 0, refused = 0, tooLarge = 0;
  std::vector<std::string> findings; ///< sentences

  CheckResult &operator+=(const CheckResult &other);
  /// "guard pages: 2 modules x levels, 3 entries, 40 corners, ..., 0 findings".
  std::string summary() const;
  /// Adds what a summary counts; findings are not in it.
  void addCounts(const std::string &summary);
};

/// Levels of the bundle that this machine runs: "x86-64-v3".
std::vector<std::string> levelsOf(const std::string &path);

/// Throws std::runtime_error where the bundle does not open or has no code for the level.
CheckResult checkBundle(const std::string &path, const std::string &level, const CheckOptions &options);

} // namespace astra::guard
