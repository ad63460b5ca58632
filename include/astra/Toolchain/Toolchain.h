//===- Toolchain.h: clang and lld, in the process ---------------------------===//
// Takes:    C as text and flags of the clang driver; objects and arguments of ld.lld.
// Gives:    an object or assembly; a linked file. From memory to memory: no program is looked for or started.
// Keeps:    bytes a function of what is given and of the version that was linked in: headers, libraries and settings of
//           the machine are not seen. Several threads may compile at once; links follow one another, lld has global
//           state.
// Does not: end the process where clang or lld would end theirs: a fatal error, and a crash, is an error with what was
//           said. Where no memory is left, LLVM ends the process.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace astra::toolchain {

/// "Debian clang version 22.1.8 ..." as that clang says it.
std::string clangVersion();

/// clang with given flags, for one C file after another.
class CCompiler {
public:
  /// flags: as for the driver, with --target, and -c or -S as one of them. An error has the driver's text.
  static llvm::Expected<CCompiler> make(llvm::ArrayRef<std::string> flags);
  /// The object, or the assembly. The source includes nothing. An error has clang's text.
  llvm::Expected<std::string> compile(llvm::StringRef source) const;

private:
  explicit CCompiler(std::vector<std::string> arguments) : arguments(std::move(arguments)) {}
  std::vector<std::string> arguments; // of clang -cc1
};

struct LinkInput {
  std::string name; // of a file, without folders; what patterns of a linker script see
  llvm::StringRef bytes;
};

/// arguments: of ld.lld, without inputs and output. script: of the linker, or "". Inputs are linked in order. They lie
/// in a temporary folder while it runs: lld reads files. An error has lld's text.
llvm::Expected<std::string> link(llvm::ArrayRef<LinkInput> inputs, llvm::ArrayRef<std::string> arguments,
                                 llvm::StringRef script = "");

} // namespace astra::toolchain
