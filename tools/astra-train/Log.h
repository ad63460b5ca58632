//===- Log.h: a run as CSV -----------------------------------------------------===//
// Takes:    rows of numbers, in the order of the run.
// Gives:    a file that grows; a place in it to go on from.
// Keeps:    numbers as the shortest text that gives them back; no time in it: equal runs give equal bytes.
// Does not: write anything if it was not opened.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace astra::tool {

class Log {
public:
  Log() = default;
  Log(const Log &) = delete;
  Log &operator=(const Log &) = delete;
  ~Log();
  /// A new file. Throws a Refusal, as all of these do.
  void begin(const std::string &path);
  /// The first `bytes` bytes of a file, whose checksum must be `sum`; what follows them is cut off.
  void resume(const std::string &path, uint64_t bytes, const std::string &sum);
  bool isOpen() const { return fd >= 0; }

  void add(double number); // a cell, as all of these
  void add(float number);
  void add(int64_t number);
  void add(const std::string &text);
  void skip() { cell(""); }
  void endRow();
  /// Hands what was added to the system, and waits for the disk if it is to last.
  void flush(bool durable = false);
  /// To be asked for after a flush.
  uint64_t bytes() const { return written; }
  std::string sum() const;

private:
  void cell(std::string_view text);
  int fd = -1;
  std::string name, pending;
  bool inRow = false;
  uint64_t written = 0, hash = 0;
};

} // namespace astra::tool
