//===- StandardOutput.h: what goes to standard output arrives -----------------===//
// For the tools that write through LLVM's streams, which end the process where a stream that failed is closed.
#pragma once
#include "Options.h"
#include "llvm/Support/raw_ostream.h"

namespace astra::tool {

/// `code`, or a sentence and Failure where standard output is full or closed.
inline int finished(const Program &program, int code) {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  if (!out.has_error()) return code;
  std::string why = out.error().message();
  out.clear_error();
  return complain(program, Failure, "standard output: " + why);
}

} // namespace astra::tool
