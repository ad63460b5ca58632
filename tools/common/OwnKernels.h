//===- OwnKernels.h: the option that names kernels of the compiler's own ------===//
// Takes:    what the option is called, where the names go.
// Gives:    a row of a tool's options.
#pragma once
#include "Options.h"
#include "astra/Schedule/WrittenKernels.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::tool {

inline Option ownKernels(const char *option, std::vector<std::string> &out) {
  std::vector<std::string> names;
  for (const WrittenKernel &k : writtenKernels()) names.push_back(k.name);
  return {option, "NAME[,NAME]",
          "kernels of the compiler's own that stand for the parts of the model that they compute: all, or of " +
              llvm::join(names, ", ") + ". Changes no bit of a result",
          [&out](std::string_view v) -> std::string {
            auto given = kernelNames(v);
            if (!given) return llvm::toString(given.takeError());
            out = std::move(*given);
            return "";
          }};
}

} // namespace astra::tool
