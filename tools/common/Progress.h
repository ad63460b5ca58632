//===- Progress.h: one line that says what is being done --------------------===//
// Gives:    on a terminal, a line on stderr that is overwritten; in a pipe, silence. NO_COLOR is respected.
// Does not: print results or errors.
#pragma once
#include <string_view>

namespace astra::tool {

class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress() { clear(); }
  void operator()(std::string_view what);
  /// Whether anybody sees it.
  bool isShown() const { return terminal; }
  /// Removes the line; call before printing anything else to the terminal.
  void clear();

private:
  bool shown = false, terminal, color;
};

} // namespace astra::tool
