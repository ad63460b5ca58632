//===- Numa.cpp: nodes of memory ------------------------------------------===//
// Takes:    see Numa.h.
// Gives:    sets of numbers out of files such as "0-3,8"; mbind(2).
// Keeps:    a file that is no such list, or names more than 1023, is a sentence; nothing is guessed.
// Does not: need libnuma or hwloc.
#include "Numa.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace astra::rt;

namespace {

constexpr size_t kMostText = 4096; // a file of sysfs is a page at most
constexpr uint64_t kBind = 2;      // MPOL_BIND of linux/mempolicy.h

struct ListFile {
  char path[1024], text[kMostText];
  NumberSet numbers;
  bool isThere;

  /// A file that is not there is ASTRA_OK with isThere false.
  Status read(astra_diag *diag, const char *sysfs, const char *name) {
    const char *root = sysfs ? sysfs : "/sys";
    if (snprintf(path, sizeof(path), "%s/devices/system/%s", root, name) >= int(sizeof(path)))
      return fail(diag, ASTRA_INVALID_ARGUMENT, "the folder of nodes has a name of more than %zu bytes", sizeof(path));
    isThere = false, numbers = {};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      char words[100];
      if (errno == ENOENT) return ASTRA_OK;
      return fail(diag, ASTRA_IO, "%.300s cannot be opened (%s)", path, errorText(errno, words, sizeof(words)));
    }
    ssize_t n = ::read(file, text, sizeof(text) - 1);
    close(file);
    text[n < 0 ? 0 : n] = 0;
    isThere = true;
    if (n >= 0 && size_t(n) < sizeof(text) - 1 && parse()) return ASTRA_OK;
    return fail(diag, ASTRA_IO, "%.300s has '%.40s', which is no list of numbers below %u such as 0-3,8", path, text,
                NumberSet::kMost);
  }

private:
  /// Of "0-3,8"; an empty list is one too. Ends text at the end of the line.
  bool parse() {
    char *at = text;
    auto number = [&](uint32_t &out) {
      if (*at < '0' || *at > '9') return false;
      for (out = 0; *at >= '0' && *at <= '9'; at++)
        if ((out = out * 10 + uint32_t(*at - '0')) >= NumberSet::kMost) return false;
      return true;
    };
    while (*at && *at != '\n') {
      uint32_t first, last;
      if (at != text && *at++ != ',') return false;
      if (!number(first)) return false;
      last = first;
      if (*at == '-' && (at++, !number(last) || last < first)) return false;
      for (uint32_t i = first; i <= last; i++) numbers.add(i);
    }
    if (*at == '\n' && at[1]) return false;
    *at = 0;
    return true;
  }
};

/// The nodes with memory.
Status readNodes(ListFile &list, const char *sysfs, astra_diag *diag) {
  for (const char *name : {"node/has_memory", "node/online"}) {
    if (Status s = list.read(diag, sysfs, name)) return s;
    if (list.isThere) return ASTRA_OK;
  }
  return fail(diag, ASTRA_UNSUPPORTED, "this system knows of no NUMA nodes (there is no %.300s)", list.path);
}

} // namespace

astra_status astra_nodes(const char *sysfs, uint32_t *nodes, uint32_t *count, astra_diag *diag) {
  if (!count) return fail(diag, ASTRA_INVALID_ARGUMENT, "count is NULL; give the address of a number");
  ListFile list;
  if (Status s = readNodes(list, sysfs, diag)) return s;
  uint32_t there = 0, room = nodes ? *count : 0;
  for (uint32_t n = 0; n < NumberSet::kMost; n++) there += list.numbers.has(n);
  *count = there;
  if (there > room) return fail(diag, ASTRA_CAPACITY, "there are %u NUMA nodes and room for %u", there, room);
  for (uint32_t n = 0; n < NumberSet::kMost; n++)
    if (list.numbers.has(n)) *nodes++ = n;
  return ASTRA_OK;
}

Status astra::rt::checkNode(const char *sysfs, uint32_t node, astra_diag *diag) {
  ListFile list;
  if (Status s = readNodes(list, sysfs, diag)) return s;
  if (list.numbers.has(node)) return ASTRA_OK;
  return fail(diag, ASTRA_UNKNOWN_NAME, "there is no NUMA node %lld with memory; those of this machine are %.100s",
              node == UINT32_MAX ? -1LL : node, list.text); // as whoever gave -1 wrote it
}

Status astra::rt::cpusOfNode(const char *sysfs, uint32_t node, cpu_set_t &out, astra_diag *diag) {
  ListFile list;
  char name[40];
  snprintf(name, sizeof(name), "node/node%u/cpulist", node);
  if (Status s = list.read(diag, sysfs, name)) return s;
  if (!list.isThere)
    return fail(diag, ASTRA_UNKNOWN_NAME, "there is no NUMA node %u (there is no %.300s)", node, list.path);
  NumberSet cpus = list.numbers;
  if (Status s = list.read(diag, sysfs, "cpu/online")) return s;
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof(mine), &mine)) CPU_ZERO(&mine);
  CPU_ZERO(&out);
  for (uint32_t n = 0; n < CPU_SETSIZE; n++)
    if (cpus.has(n) && (!list.isThere || list.numbers.has(n)) && CPU_ISSET(n, &mine)) CPU_SET(n, &out);
  if (CPU_COUNT(&out)) return ASTRA_OK;
  return fail(diag, ASTRA_UNSUPPORTED, "NUMA node %u has no CPU that is online and that this process may use", node);
}

Status astra::rt::mapOnNode(uint32_t node, uint64_t bytes, void *&out, astra_diag *diag) {
  void *memory = mapPages(bytes);
  if (!memory) return ASTRA_OUT_OF_MEMORY;
  NumberSet only;
  only.add(node);
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE)), whole = (bytes + page - 1) / page * page;
  // The system looks at one bit less than it is told. Arguments are words: an int would leave half of one as it was.
  if (syscall(SYS_mbind, memory, whole, kBind, only.words, uint64_t(NumberSet::kMost + 1), uint64_t(0)) == 0) {
    out = memory;
    return ASTRA_OK;
  }
  char words[100];
  int error = errno;
  unmapNode(memory, bytes);
  return fail(diag, ASTRA_UNSUPPORTED, "the system refuses to bind memory to NUMA node %u (%s)", node,
              errorText(error, words, sizeof(words)));
}

void astra::rt::unmapNode(void *memory, uint64_t bytes) { unmapPages(memory, bytes); }
