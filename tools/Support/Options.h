//===- Options.h: the command line of a tool, as a table --------------------===//
// Gives:    parsing, --help, --version and the man page (--man prints it) from one table of rows.
// Does not: use llvm::cl, whose names are shared with those that libLLVM registers.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <variant>
#include <vector>

namespace astra {

/// A place for the value: a flag, a text, a number, or a list (the option may come again; commas are kept).
using OptionTarget = std::variant<bool *, std::string *, uint64_t *, std::vector<std::string> *>;

struct Option {
  const char *name;  // "--entry" or "-o"
  const char *value; // "NAME"; "" for a flag
  OptionTarget to;
  const char *help;
};

struct Command {
  const char *name, *synopsis, *summary; // "astra-opt", "FILE.uop [OPTION...]", one sentence
  llvm::ArrayRef<Option> options;
  const char *notes; // printed after the options: exit codes, examples
};

/// Fills the targets and `positional`. `--name=value`, `--name value`, `-` is positional, nothing after `--` is an
/// option. For --help, --version and --man prints and gives false (the tool ends with 0). An error is one of usage.
llvm::Expected<bool> parseCommandLine(const Command &c, int argc, char **argv, std::vector<std::string> &positional);

std::string helpText(const Command &c);
std::string manPage(const Command &c);

} // namespace astra
