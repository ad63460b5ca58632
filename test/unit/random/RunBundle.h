//===- RunBundle.h: a bundle run through the C API -------------------------===//
// Takes:    a bundle file, a CPU level, a number of threads.
// Gives:    what its entries compute, in the evaluator's terms.
#pragma once
#include "astra/Codegen/Target.h"
#include "astra/IR/Eval.h"

struct astra_runtime;
struct astra_device;
struct astra_stream;
struct astra_bundle;
struct astra_loaded;

namespace astra::test {

/// The bundle of a module past the numerics stage, with code for one target, written to `path`.
llvm::Error writeBundleOf(Module &m, const Target &target, llvm::StringRef path);

class BundleRun {
public:
  /// The CPU's level is that of `target` ("cpu:x86-64-v3").
  static llvm::Expected<std::unique_ptr<BundleRun>> open(llvm::StringRef path, const Target &target, unsigned threads);
  ~BundleRun();
  llvm::Expected<EvalResult> run(const Module &m, const Entry &e, const EvalInputs &in);

private:
  BundleRun() = default;
  astra_runtime *runtime = nullptr;
  astra_device *device = nullptr;
  astra_stream *stream = nullptr;
  astra_bundle *bundle = nullptr;
  astra_loaded *loaded = nullptr;
};

} // namespace astra::test
