//===- Run.h: compiles kernels and runs them on a target -------------------===//
#pragma once
#include "astra/Codegen/EmitC.h"
#include "astra/IR/Builder.h"
#include <gtest/gtest.h>

namespace astra::test {

struct Job {
  Kernel kernel;
  std::vector<std::vector<uint8_t>> buffers; // by slot; changed by the run
  std::vector<int64_t> dims;
  int parts = 1; // calls that the items are split into
};

/// What the evaluator gives for a job: its buffers afterwards, or a sentence.
std::string evaluate(Job &job, llvm::ArrayRef<UOpRef> dims);

/// Compiles all kernels as one image and runs each once; the buffers have the results. Null when it worked, else why
/// not. x86-64-v4 is run where the CPU has it, aarch64 under qemu-user.
std::string run(Context &c, std::vector<Job> &jobs, const Target &target, llvm::ArrayRef<UOpRef> dims);
/// The same source compiled by a compiler of the host as a shared library, with these flags.
std::string runCompiled(Context &c, std::vector<Job> &jobs, llvm::StringRef compiler, llvm::ArrayRef<std::string> flags,
                        llvm::ArrayRef<UOpRef> dims);
/// Whether this machine can run the target at all.
bool canRun(const Target &target);

template <class T> std::vector<uint8_t> bytesOf(const std::vector<T> &xs) {
  const auto *p = reinterpret_cast<const uint8_t *>(xs.data());
  return {p, p + xs.size() * sizeof(T)};
}
template <class T> std::vector<T> valuesOf(const std::vector<uint8_t> &bytes) {
  const T *p = reinterpret_cast<const T *>(bytes.data());
  return {p, p + bytes.size() / sizeof(T)};
}

} // namespace astra::test
