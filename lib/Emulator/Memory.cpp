//===- Memory.cpp: what threads may touch, and who touched it --------------===//
#include "Memory.h"
#include <algorithm>
#include <cstring>

using namespace astra;
using namespace astra::emulator;

Launch::Launch(const std::string &kernel, std::span<const EmulatedBuffer> buffers, uint64_t size)
    : kernel(kernel), shared(size), sharedBytes(size) {
  for (const EmulatedBuffer &b : buffers) {
    ranges.push_back({b, {}});
    if (b.write) ranges.back().bytes.resize(b.bytes.size());
  }
}

void Launch::attach(Thread &t) {
  t.self = this;
  t.shared = shared.data();
  t.access = [](Thread *x, uint8_t *place, uint64_t bytes, Access kind) {
    return static_cast<Launch *>(x->self)->access(*x, place, bytes, kind);
  };
  t.copy = [](Thread *x, uint8_t *to, uint8_t *from, uint32_t bytes, uint32_t taken) {
    static_cast<Launch *>(x->self)->beginCopy(*x, to, from, bytes, taken);
  };
  t.closeCopies = [](Thread *x) { static_cast<Launch *>(x->self)->copies[x->number].emplace_back(); };
  t.awaitCopies = [](Thread *x, uint32_t left) { static_cast<Launch *>(x->self)->awaitCopies(*x, left); };
  t.matrixRow = [](Thread *x, uint32_t row) {
    auto &launch = *static_cast<Launch *>(x->self);
    if (row % 16) launch.fault(*x, "reads a row of a matrix that begins at no multiple of 16 bytes");
    return launch.access(*x, launch.shared.data() + row + 4 * (x->number % 4), 4, Access::SharedRead);
  };
  if (copies.size() <= t.number) copies.resize(t.number + 1);
  copies[t.number].assign(1, {});
  attachGroups(t);
}

void Launch::beginBlock() {
  ++phase;
  sharedBytes.assign(sharedBytes.size(), {});
  barriers.clear(), boxes.clear(), arrivals.clear(), group.clear();
}

bool Launch::fault(const Thread &t, const std::string &what) {
  if (first.empty())
    first = "kernel '" + kernel + "': thread " + std::to_string(t.number) + " of block " + std::to_string(t.block) +
            " " + what;
  return false;
}

uint8_t *Launch::access(const Thread &t, uint8_t *place, uint64_t bytes, Access kind) {
  bool write = kind == Access::GlobalWrite || kind == Access::SharedWrite;
  bool inShared = kind == Access::SharedRead || kind == Access::SharedWrite;
  if (failed()) return nowhere;
  return (inShared ? sharedMemory(t, place, bytes, write) : global(t, place, bytes, write)) ? place : nowhere;
}

bool Launch::global(const Thread &t, uint8_t *place, uint64_t bytes, bool write) {
  const char *verb = write ? "writes " : "reads ";
  for (size_t i = 0; i < ranges.size(); ++i) {
    Range &r = ranges[i];
    uint8_t *begin = r.buffer.bytes.data();
    if (place < begin || place + bytes > begin + r.buffer.bytes.size()) continue;
    if (write && !r.buffer.write) return fault(t, "writes to buffer " + std::to_string(i) + ", which is read-only");
    if (!r.buffer.write) return true;
    uint32_t me = t.block * 1024 + t.number + 1;
    for (uint64_t b = place - begin; b < uint64_t(place - begin) + bytes; ++b) {
      Byte &at = r.bytes[b];
      bool clash = (at.writer != nobody && at.writer != me) || (write && at.reader != nobody && at.reader != me);
      if (clash)
        return fault(t, std::string(verb) + "byte " + std::to_string(b) + " of buffer " + std::to_string(i) +
                            ", which another thread " + (at.writer != nobody ? "wrote" : "read"));
      if (write)
        at.writer = me;
      else
        at.reader = at.reader == nobody || at.reader == me ? me : many;
    }
    return true;
  }
  return fault(t, std::string(verb) + std::to_string(bytes) + " bytes outside of the buffers");
}

void Launch::beginCopy(const Thread &t, uint8_t *to, uint8_t *from, uint32_t bytes, uint32_t taken) {
  if (failed()) return;
  auto aligned = [&](uint8_t *p) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; };
  if (taken > bytes || !aligned(from) || (to - shared.data()) % bytes) {
    fault(t, "copies " + std::to_string(bytes) + " bytes from or to a place that is no multiple of that");
    return;
  }
  if ((taken && !global(t, from, taken, false)) || !sharedMemory(t, to, bytes, true)) return;
  for (uint64_t b = to - shared.data(); b < uint64_t(to - shared.data()) + bytes; ++b)
    sharedBytes[b].copier = t.number + 1;
  copies[t.number].back().push_back({to, from, bytes, taken});
}

void Launch::awaitCopies(const Thread &t, uint32_t left) {
  Groups &groups = copies[t.number];
  for (; !failed() && groups.size() > size_t(left) + 1; groups.pop_front())
    for (const Copy &c : groups.front()) {
      std::memcpy(c.to, c.from, c.taken);
      std::memset(c.to + c.taken, 0, c.bytes - c.taken);
      for (uint64_t b = c.to - shared.data(); b < uint64_t(c.to - shared.data()) + c.bytes; ++b)
        sharedBytes[b].copier = nobody, sharedBytes[b].writer = t.number + 1, sharedBytes[b].writtenIn = phase;
    }
}

bool Launch::mayEnd(const Thread &t) {
  bool all = std::ranges::all_of(copies[t.number], [](const auto &group) { return group.empty(); });
  if (group[t.number] && !group[t.number]->sums.empty())
    return fault(t, "ends, and its warp group still makes sums that nobody waited for");
  return all || fault(t, "ends, and an asynchronous copy that it began is on its way");
}

bool Launch::sharedMemory(const Thread &t, uint8_t *place, uint64_t bytes, bool write) {
  const char *verb = write ? "writes " : "reads ";
  if (place < shared.data() || place + bytes > shared.data() + shared.size())
    return fault(t, std::string(verb) + std::to_string(bytes) + " bytes outside of shared memory");
  uint32_t me = t.number + 1;
  for (uint64_t b = place - shared.data(); b < uint64_t(place - shared.data()) + bytes; ++b) {
    SharedByte &at = sharedBytes[b];
    if (at.copier != nobody)
      return fault(t, std::string(verb) + "byte " + std::to_string(b) +
                          " of shared memory, to which an asynchronous copy of thread " +
                          std::to_string(at.copier - 1) + " is on its way");
    if (!write && at.writer == nobody)
      return fault(t, "reads byte " + std::to_string(b) + " of shared memory, which no thread of its block wrote");
    if (write && at.groupReaders)
      return fault(t, std::string(verb) + "byte " + std::to_string(b) + " of shared memory, which a warp group reads");
    bool wrote = at.writer != nobody && at.writtenIn == phase && at.writer != me;
    bool read = at.reader != nobody && at.readIn == phase && at.reader != me;
    if (wrote || (write && read))
      return fault(t, std::string(verb) + "byte " + std::to_string(b) + " of shared memory, which another thread " +
                          (wrote ? "wrote" : "read") + " with no barrier between");
    if (write) {
      at.writer = me, at.writtenIn = phase, at.box = 0, at.fences = group[t.number] ? group[t.number]->proxyFences : 0;
    } else {
      at.reader = at.readIn != phase || at.reader == nobody || at.reader == me ? me : many;
      at.readIn = phase;
    }
  }
  return true;
}
