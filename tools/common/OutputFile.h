//===- OutputFile.h: where a tool's output goes ----------------------------===//
// Takes:    a path that the user named.
// Gives:    a descriptor to write to, and the file in its place once everything is written; the bytes of a file.
// Keeps:    a file is complete or not there: it is written beside its place and renamed, with the permissions of the
//           file that it replaces. A symbolic link stays: what it names is replaced. A device, a fifo and a descriptor
//           of the process (/dev/stdout, /dev/fd/3) are written as they are.
// Does not: make folders, or, unless asked, wait for what was written to reach the disk.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace astra::tool {

class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  /// What was not kept is removed.
  ~OutputFile();

  /// False and a sentence in `error` if nothing can be written there: a folder, a missing one, no permission.
  bool open(const std::string &path, std::string &error);
  /// For writing; -1 before open. This object closes it.
  int descriptor() const { return fd; }
  /// The file that is written and renamed later; empty where the place itself is written.
  const std::string &temporaryPath() const { return temporary; }
  /// False and a sentence in `error` if not all of it could be written: a full disk.
  bool write(const void *bytes, size_t count, std::string &error);
  /// It will be `path`, a name in the same folder that is none of a device.
  void moveTo(const std::string &path) { named = place = path; }
  /// The output is whole: puts it in its place, with `durable` once it is on the disk. False and a sentence in `error`
  /// if that fails.
  bool keep(std::string &error, bool durable = false);

private:
  int fd = -1;
  std::string named, place, temporary;
};

/// The file that writing to `path` would make or replace: where links lead, also to what is not there yet.
std::string destination(const std::string &path);
/// All of a file's bytes. False and a sentence in `error` if it cannot be read.
bool readWhole(const std::string &path, std::vector<uint8_t> &out, std::string &error);
/// Writes all of `bytes` to `path`, or nothing.
bool writeWhole(const std::string &path, const void *bytes, size_t count, std::string &error);

} // namespace astra::tool
