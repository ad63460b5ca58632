//===- EmitC.h: linear kernels as C, and C as a flat image -----------------===//
#pragma once
#include "astra/Codegen/Linear.h"
#include "astra/Codegen/Target.h"

namespace astra {

/// Tiles of rows, for each of which functions run one after another (Joint.h).
struct TileRegion {
  struct Argument {
    bool local;      // in the worker's scratch memory
    uint64_t number; // of the kernel's buffer; or bytes into the scratch memory
  };
  struct Step {
    std::string name;
    const Kernel *kernel;
    Linear linear;
    std::vector<Argument> arguments;
  };
  UOpRef tile;  // a dim that only these functions know, behind the module's: the number of the tile in this region
  UOpRef tiles; // how many there are
  std::vector<Step> steps;
  uint64_t scratch = 0; // bytes into the scratch memory where theirs begins
};

struct LinearKernel {
  std::string name; // the C function's
  const Kernel *kernel;
  Linear linear;
  std::vector<TileRegion> regions = {}; // of one whose items are tiles of rows; what `call` instructions do. Their
                                        // dims, one more than the module's, lie behind linear.scratchBytes
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
