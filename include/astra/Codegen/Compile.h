//===- Compile.h: all kernels of a schedule for one target -----------------===//
#pragma once
#include "astra/Codegen/Accesses.h"
#include "astra/Codegen/Cost.h"
#include "astra/Codegen/Plan.h"
#include "astra/Schedule/Program.h"

namespace astra {

struct CompiledKernel {
  Kernel kernel;        // expanded
  UOpRef items;         // work items of a launch, over dims
  uint64_t scratch = 0; // bytes per worker
  uint64_t offset = 0;  // of its first instruction in the image
  std::optional<KernelCost>
      cost; // at the upper bounds of all dims, if it is counted; of no fused chain, nor of few rows
};
struct CompiledTarget {
  const Target *target;
  std::vector<CompiledKernel> kernels; // in the order of Schedule::kernels
  std::string source;                  // the C that was compiled
  Image image;
  AccessCount proved; // that its kernels stay in their buffers
};

struct CompileOptions {
  unsigned jobs = 1;
  bool image = true;   // false: stop at the C source
  bool verify = false; // checks each kernel after lowering and after expansion
  std::string cache;   // a folder for objects that were compiled before; empty for none
  Plans plans;         // that replace the heuristic's choice
};

llvm::Expected<CompiledTarget> compileKernels(Context &c, const Schedule &s, const Target &target,
                                              const CompileOptions &options);

} // namespace astra
