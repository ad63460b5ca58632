//===- KernelCache.h: kernels that tests have compiled before --------------===//
// Gives:    a folder for compileKernels and buildImage, "" where tests are to compile anew: scripts/test names it
//           (test/common/verdicts.py), and a program that is run by hand has none. Objects are found by all that they
//           are a function of, so what a test sees is the same.
#pragma once
#include <cstdlib>
#include <string>

namespace astra::test {

inline std::string kernelCache() {
  const char *folder = std::getenv("ASTRA_TEST_CACHE");
  return folder && *folder && !std::getenv("ASTRA_TEST_FRESH") ? std::string(folder) + "/objects" : "";
}

} // namespace astra::test
