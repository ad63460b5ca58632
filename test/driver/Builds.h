//===- Builds.h: what the stand-in driver has of a bundle -----------------===//
// Gives:    the kernels of a target as the emulator launches them.
#pragma once
#include "TensorMap.h"
#include <map>
#include <string>
#include <vector>

namespace astra::standin {

struct Kernel {
  std::string name;
  const void *code;
  unsigned threads, group, warp;
  uint64_t shared;
  std::vector<bool> writes; // of its buffers
  uint32_t numbers;         // arguments behind them
  bool isDirect;
  unsigned granted = 0;               // shared memory that a launch may pass
  std::vector<EmulatedMap> maps = {}; // of so many lines as a launch says
};

/// The code of one target of a bundle, its text, and its host build.
struct Build {
  std::vector<uint8_t> code, text;
  void *image = nullptr;
  uint64_t imageBytes = 0;
  std::map<std::string, Kernel> kernels;
};

} // namespace astra::standin
