//===- Log.cpp: a run as CSV ---------------------------------------------------===//
// Takes:    rows of numbers.
// Gives:    see Log.h.
#include "Log.h"
#include "Data.h"
#include "OutputFile.h"
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace astra::tool;
using std::string;

static constexpr size_t kPending = 1 << 16;

Log::~Log() {
  if (fd < 0) return;
  if (!pending.empty()) [[maybe_unused]]
    ssize_t n = ::write(fd, pending.data(), pending.size()); // the run has failed already
  close(fd);
}

void Log::begin(const string &path) {
  name = path;
  fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) throw Refusal{Failure, path + ": " + std::strerror(errno)};
  pending.reserve(kPending + 4096);
  hash = checksum("", 0);
}

void Log::resume(const string &path, uint64_t bytes, const string &expected) {
  std::vector<uint8_t> file;
  string error;
  if (!readWhole(path, file, error)) throw Refusal{Failure, error};
  if (file.size() < bytes || hexadecimal(checksum(file.data(), bytes)) != expected)
    throw Refusal{Failure, path + ": is not the log that the checkpoint was made with, or was changed since"};
  name = path;
  fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ftruncate(fd, off_t(bytes)) != 0 || lseek(fd, 0, SEEK_END) < 0)
    throw Refusal{Failure, path + ": " + std::strerror(errno)};
  pending.reserve(kPending + 4096);
  written = bytes;
  hash = checksum(file.data(), bytes);
}

void Log::cell(std::string_view text) {
  if (inRow) pending += ',';
  pending += text;
  inRow = true;
}

void Log::add(double number) {
  char text[64];
  cell({text, size_t(std::to_chars(text, text + sizeof text, number).ptr - text)});
}
void Log::add(float number) {
  char text[64];
  cell({text, size_t(std::to_chars(text, text + sizeof text, number).ptr - text)});
}
void Log::add(int64_t number) {
  char text[32];
  cell({text, size_t(std::to_chars(text, text + sizeof text, number).ptr - text)});
}
void Log::add(const string &text) {
  bool plain = text.find_first_of(",\"\r\n") == text.npos;
  string quoted = "\"";
  for (char c : text) quoted += c == '"' ? string("\"\"") : string(1, c);
  cell(plain ? text : quoted + "\"");
}

void Log::endRow() {
  pending += '\n';
  inRow = false;
  if (pending.size() >= kPending) flush();
}

void Log::flush(bool durable) {
  if (fd < 0) return;
  const char *next = pending.data();
  size_t count = pending.size();
  hash = checksum(next, count, hash);
  written += count;
  while (count) {
    ssize_t n = ::write(fd, next, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      pending.clear();
      throw Refusal{Failure, name + ": " + std::strerror(errno)};
    }
    next += n, count -= size_t(n);
  }
  pending.clear();
  if (durable) fsync(fd); // where there is no disk behind it, nothing is lost
}

string Log::sum() const { return hexadecimal(hash); }
