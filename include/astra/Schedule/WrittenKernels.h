//===- WrittenKernels.h: parts of a graph as kernels of the kernel language ---===//
// Takes:    a module of the graph's stage, names of kernels.
// Gives:    a `custom` op for each part of the graph that computes what one of these kernels computes.
// Keeps:    bits: a row is two graphs of equal bits, and the first one stands for itself alone.
// Does not: look into the bodies of control ops; decide whether a kernel is faster.
#pragma once
#include "astra/IR/Module.h"

namespace astra {

/// A kernel of kernels-gen/kernels, as kernels-gen/kernels_table.py wrote it down.
struct WrittenKernel {
  const char *name;    // "layer-norm"
  const char *meaning; // what it computes, for people
  const char *text;    // a module: for each form of it the entry FORM, of ops, and the entry FORM.kernel
};
llvm::ArrayRef<WrittenKernel> writtenKernels();

/// How often a kernel stands for a part of a module.
struct KernelUse {
  const char *name;
  unsigned places;
};

/// Names of kernels from "all", or names with commas. A sentence, where one is none.
llvm::Expected<std::vector<std::string>> kernelNames(llvm::StringRef text);

/// Puts the kernels of these names where the module has what they compute. Of a part whose inner values something else
/// reads, whose sizes are beyond what the kernel takes, or depend on data, nothing is changed.
llvm::Expected<std::vector<KernelUse>> useKernels(Module &m, llvm::ArrayRef<std::string> names);

} // namespace astra
