//===- EmitC.h: linear kernels as C, and C as a flat image -----------------===//
#pragma once
#include "astra/Codegen/Linear.h"
#include "astra/Codegen/Target.h"

namespace astra {

struct LinearKernel {
  std::string name; // the C function's
  const Kernel *kernel;
  Linear linear;
};

/// One translation unit with one function per kernel, kernel ABI 1. dims: the module's dim vector, in order (`dim[i]`
/// in C).
llvm::Expected<std::string> emitC(Context &c, llvm::ArrayRef<LinearKernel> kernels, const Target &target,
                                  llvm::ArrayRef<UOpRef> dims);

struct Image {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> offsets; // of each function's first instruction, in the order of `names`
};
/// Compiles with clang and links with lld to a flat image: position-independent, no relocation, no import, no writable
/// data. An error carries the tools' output. cacheFolder: where objects are kept for the next time; empty for none.
llvm::Expected<Image> buildImage(llvm::StringRef cSource, llvm::ArrayRef<std::string> names, const Target &target,
                                 unsigned jobs, llvm::StringRef cacheFolder = "");

/// The same of an object file that something else compiled.
llvm::Expected<Image> linkImage(llvm::StringRef object, llvm::ArrayRef<std::string> names, const Target &target);

/// The assembly that the same compiler gives for the same source, for reading.
llvm::Expected<std::string> assemblyText(llvm::StringRef cSource, const Target &target);

} // namespace astra
