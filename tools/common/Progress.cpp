//===- Progress.cpp: one line that says what is being done ------------------===//
#include "Progress.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace astra::tool;

Progress::Progress(bool quiet) {
  const char *noColor = std::getenv("NO_COLOR");
  terminal = !quiet && isatty(2);
  color = !noColor || !*noColor;
}

void Progress::operator()(std::string_view what) {
  if (!terminal) return;
  std::fprintf(stderr, color ? "\r\x1b[K\x1b[2m%.*s\x1b[0m" : "\r%-78.*s", int(what.size()), what.data());
  std::fflush(stderr);
  shown = true;
}

void Progress::clear() {
  if (shown) std::fprintf(stderr, color ? "\r\x1b[K" : "\r%78s\r", "");
  shown = false;
}
