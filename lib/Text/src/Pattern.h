//===- Pattern.h: patterns of characters ----------------------------------===//
// Takes:    a program of the tokenizer's code, and a text.
// Gives:    where it matches.
// Keeps:    a bound on its work: `steps` counts down, and a search that uses them up has failed.
// Does not: keep groups.
#pragma once

#include "Tokenizer.h"

namespace astra::text {

class Pattern {
public:
  /// `text` is a piece of valid UTF-8: it begins and ends where AtBegin and AtEnd match.
  Pattern(const astra_text &t, uint32_t program, Bytes text)
      : t(t), program(program), text(text), steps(1024 * uint64_t(text.size) + (1u << 16)) {}

  /// The first match at or behind `at` that has at least one character: [begin, end). False: there is none, or
  /// `exhausted`.
  bool find(size_t at, size_t &begin, size_t &end);
  bool exhausted() const { return !steps; }

private:
  static constexpr size_t kFailed = ~size_t(0);
  size_t match(uint32_t pc, size_t at);
  size_t run(uint32_t pc, size_t at);

  const astra_text &t;
  uint32_t program;
  Bytes text;
  uint64_t steps;
};

} // namespace astra::text
