//===- Check.cpp: import a model as astra-compile does, and verify ----------===//
// Takes:    bytes.
// Gives:    the first broken promise, if any.
// Keeps:    no file: the importer reads through a descriptor of memory.
// Does not: compile or evaluate.
#include "Check.h"
#include "astra/IR/Verify.h"
#include "astra/Import/ONNX.h"
#include "astra/Numerics/Numerics.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <climits>
#include <sys/mman.h>
#include <unistd.h>

namespace astra::fuzz {

namespace {

/// A file without a name, under /proc.
class MemoryFile {
public:
  MemoryFile() : descriptor(memfd_create("astra-fuzz", MFD_CLOEXEC)) {}
  ~MemoryFile() { close(descriptor); }
  bool set(llvm::StringRef bytes) {
    return ftruncate(descriptor, 0) == 0 && pwrite(descriptor, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size());
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

private:
  int descriptor;
};

/// Bounds for the dims that the inputs leave open. Every third is fixed, as --dim NAME=N does.
std::vector<DimBound> boundsOf(const onnx::proto::Model &model) {
  std::vector<DimBound> bounds;
  for (const onnx::proto::Value &input : model.graph().input())
    for (int axis = 0; axis < input.type().tensor().shape().dim_size(); ++axis) {
      const onnx::proto::Type::Dim &dim = input.type().tensor().shape().dim(axis);
      if (dim.has_value() && dim.value() >= 0) continue;
      std::string name = dim.has_name() && !dim.name().empty() ? dim.name() : input.name() + "_" + std::to_string(axis);
      if (llvm::any_of(bounds, [&](const DimBound &b) { return b.name == name; })) continue;
      int64_t least = int64_t(bounds.size() % 3);
      bounds.push_back({name, least, least == 2 ? 2 : 9});
    }
  return bounds;
}

} // namespace

std::string brokenPromise(llvm::StringRef bytes) {
  static MemoryFile file;
  if (bytes.size() > INT_MAX || !file.set(bytes)) return "";
  onnx::proto::Model model;
  ImportOptions options;
  if (model.ParseFromArray(bytes.data(), int(bytes.size()))) options.dims = boundsOf(model);
  if (bytes.size() % 4 == 0) options.taps = ".*";
  llvm::Expected<Module> module = importONNX(file.path(), options);
  if (!module) return llvm::toString(module.takeError()).empty() ? "a refusal without a sentence" : "";
  if (llvm::Error e = verify(*module, Stage::Graph)) return "imported: " + llvm::toString(std::move(e));
  if (llvm::Error e = runNumerics(*module)) return "numerics: " + llvm::toString(std::move(e));
  if (llvm::Error e = verifyNumerics(*module)) return "after numerics: " + llvm::toString(std::move(e));
  return "";
}

} // namespace astra::fuzz
