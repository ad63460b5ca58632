//===- Options.h: the command line of every tool ---------------------------===//
// Takes:    one table per program: its options and what they mean.
// Gives:    the parser, --help, --version, the man page (--man) and completion of shells (--completion) from that
//           table.
// Keeps:    the standard library only, so that astra-run needs no LLVM.
// Does not: know any program.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace astra::tool {

/// What every tool exits with.
enum Exit : int { Ok = 0, Failure = 1, Usage = 2, Unsupported = 3, Mismatch = 4 };

struct Option {
  std::string_view name;  // "output"; a single letter for "-o"
  std::string_view value; // what --help calls the value, e.g. "FILE"; empty: a flag
  std::string help;
  /// Takes the value ("" for a flag); gives "" or what is wrong with it.
  std::function<std::string(std::string_view)> set;
  /// Values that a shell offers; several with commas where `value` is LIST. Others may be right too.
  std::vector<std::string> words = {};
};

struct Program {
  std::string_view name;
  std::string_view synopsis; // after the name: "MODEL -o FILE [options]"
  std::string_view summary;  // one sentence, no period
  std::string_view description;
  std::vector<Option> options;
  std::string_view examples; // lines of shell
  /// How the files end that stand without an option: ".onnx". A shell offers those, or all files if there is none.
  std::vector<std::string_view> operands = {};
  bool printsPages = true; // it has --man and --completion; else they are printed for it (tools/astra-pages)
};

/// Sets the options of `argv` and puts the rest into `positional`. Gives -1 to go on, or the exit code: 0 after
/// printing for --help, --version, --man or --completion, Usage after printing what is wrong. `--name=value`, `--name
/// value`, `-o value` and `-ovalue` are understood; `--` ends the options.
int parse(const Program &program, int argc, char **argv, std::vector<std::string> &positional);

/// The options that every program has beside those of its table. They put what is asked for into `page`.
std::vector<Option> commonOptions(const Program &program, std::string &page);

/// The man page, as roff.
std::string manPage(const Program &program);

/// The completion script of a shell: "bash", "zsh" or "fish"; "" if it is none of them.
std::string completion(const Program &program, std::string_view shell);

/// "--output", "-o": an option's name as it is given.
std::string dashed(std::string_view name);

/// Has a shell offer `words` as values of the option called `name`, which the table must have.
void offer(Program &program, std::string_view name, std::vector<std::string> words);

/// Prints "name: text" to stderr and gives `code`.
int complain(const Program &program, int code, std::string_view text);

// Common setters.
std::function<std::string(std::string_view)> text(std::string &out);
std::function<std::string(std::string_view)> flag(bool &out);
std::function<std::string(std::string_view)> number(int64_t &out, int64_t least, int64_t most);
std::function<std::string(std::string_view)> real(float &out, float least, float most);
std::function<std::string(std::string_view)> list(std::vector<std::string> &out); // one more each time
std::function<std::string(std::string_view)> commas(std::vector<std::string> &out);
/// "name=value", one more each time.
std::function<std::string(std::string_view)> pairs(std::vector<std::pair<std::string, std::string>> &out);

/// A decimal integer in least..most, all of `s`; false if it is not one.
bool parseInteger(std::string_view s, int64_t least, int64_t most, int64_t &out);

} // namespace astra::tool
