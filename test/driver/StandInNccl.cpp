//===- StandInNccl.cpp: NCCL and RCCL without a GPU -------------------------===//
// Takes:    the calls that lib/Ranks/src/Nccl.cpp makes, with memory and queues of the stand-in driver. Of programs:
//           ASTRA_STAND_IN_NCCL_LOG=FILE gets a line a call, ASTRA_STAND_IN_NCCL_FAULT=call:n:error ("transfer": an
//           error of the background), ASTRA_STAND_IN_NCCL_RANK=r: of this rank alone, ASTRA_STAND_IN_NCCL_QUIET: nobody
//           is told that a rank is gone; ASTRA_STAND_IN_NCCL_STALL=n: the n-th group of a rank never ends.
// Gives:    what the documentation says of communicators that do not block: messages between processes or threads on
//           one machine, in the order of the queue.
// Keeps:    what a caller may not do is said on stderr and ends the process with code 70: a send outside of a group,
//           memory that is no device's, a device twice in a communicator, use of a communicator that is at work or
//           gone, a reduction.
// Does not: share a line with the engine. It says nothing of a real library.
#include "Faults.h"
#include "StandIn.h"
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

extern "C" int cuLaunchHostFunc(void *, void (*)(void *), void *);
extern "C" int hipLaunchHostFunc(void *, void (*)(void *), void *);

namespace {

enum { Success = 0, SystemError = 2, InternalError = 3, InvalidUsage = 5, RemoteError = 6, InProgress = 7 };

struct Id {
  char text[128];
};
struct Config {
  size_t size;
  uint32_t magic, version;
  int blocking;
};
struct Hello {
  int32_t rank, ranks, device;
};

struct Comm {
  int rank, ranks, device;
  std::string id;
  std::map<int, int> sockets; // by peer
  int listens = -1;
  std::thread joins;
  std::atomic<int> state{InProgress}, running{0}, polls{0};
  std::atomic<bool> aborted{false};
  int64_t groups = 0;
  ~Comm() {
    if (joins.joinable()) joins.join();
    for (auto [peer, socket] : sockets) close(socket);
    if (listens >= 0) close(listens);
  }
};

struct Message {
  std::shared_ptr<Comm> comm;
  void *stream;
  bool sends;
  char *data;
  uint64_t bytes;
  int peer;
};

std::mutex mutex; // of what follows
std::map<void *, std::shared_ptr<Comm>> comms;
astra::standin::Faults &faults() {
  static auto *f = [] {
    auto *made = new astra::standin::Faults;
    made->addFrom("ASTRA_STAND_IN_NCCL_FAULT");
    return made;
  }();
  return *f;
}
std::map<std::string, int64_t> calls;
thread_local int depth = 0;
thread_local std::vector<Message> grouped;

[[noreturn]] void wrong(const std::string &what) {
  fprintf(stderr, "stand-in NCCL: %s\n", what.c_str());
  _exit(70);
}

/// Notes a call; the error that a fault wants of it, or 0.
int note(const char *name, int rank, uint64_t bytes = 0, int peer = -1) {
  std::lock_guard lock(mutex);
  calls[name]++;
  if (const char *path = getenv("ASTRA_STAND_IN_NCCL_LOG")) {
    char line[200];
    int length =
        snprintf(line, sizeof(line), "%d %s %llu %d\n", rank, name, static_cast<unsigned long long>(bytes), peer);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, size_t(length)) != length) wrong("the log cannot be written");
    close(fd);
  }
  const char *only = getenv("ASTRA_STAND_IN_NCCL_RANK");
  return only && atoi(only) != rank ? 0 : faults().take(name);
}

std::shared_ptr<Comm> find(void *comm) {
  std::lock_guard lock(mutex);
  auto at = comms.find(comm);
  if (at == comms.end()) wrong("a communicator that is none, or has ended");
  return at->second;
}

sockaddr_un addressOf(const std::string &id, int rank, socklen_t &length) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s-%d", id.c_str(), rank);
  length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + size_t(n));
  return a;
}
void nap() { usleep(500); }

/// Whether `bytes` went through, unless the communicator is aborted meanwhile or the other end is gone.
bool whole(Comm &c, int socket, void *data, size_t bytes, bool sends) {
  auto *at = static_cast<char *>(data);
  while (bytes && !c.aborted) {
    ssize_t n = sends ? send(socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(socket, at, bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (n < 0) {
      nap();
      continue;
    }
    at += n, bytes -= size_t(n);
  }
  return !c.aborted;
}

/// Each rank calls those below it, and is called by those above.
void join(Comm &c) {
  auto greet = [&](int socket) {
    Hello own{c.rank, c.ranks, c.device}, other{};
    if (!whole(c, socket, &own, sizeof(own), true) || !whole(c, socket, &other, sizeof(other), false)) return false;
    if (other.ranks != c.ranks) wrong("ranks of different numbers of ranks");
    if (other.device == c.device) wrong("two ranks have the device " + std::to_string(c.device));
    c.sockets[other.rank] = socket;
    return true;
  };
  for (int peer = 0; peer < c.rank && !c.aborted; ++peer) {
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length;
    sockaddr_un a = addressOf(c.id, peer, length);
    while (!c.aborted && connect(s, reinterpret_cast<sockaddr *>(&a), length) != 0) nap();
    if (!greet(s)) break;
  }
  for (int more = c.rank + 1; more < c.ranks && !c.aborted; ++more) {
    int s = -1;
    while (!c.aborted && (s = accept4(c.listens, nullptr, nullptr, SOCK_CLOEXEC)) < 0) nap();
    if (s < 0 || !greet(s)) break;
  }
  int expected = InProgress;
  c.state.compare_exchange_strong(expected, int(c.sockets.size()) == c.ranks - 1 ? Success : RemoteError);
}

/// A group of messages in a queue.
struct Group {
  std::shared_ptr<Comm> comm;
  std::vector<Message> messages;
  bool stalls;
};

void runGroup(void *arg) {
  std::unique_ptr<Group> g(static_cast<Group *>(arg));
  Comm &c = *g->comm;
  struct Flow {
    std::vector<Message *> messages;
    size_t next = 0;
    uint64_t header = 0, headerDone = 0, done = 0; // of messages[next]
  };
  std::map<std::pair<int, bool>, Flow> flows;
  for (Message &m : g->messages) flows[{m.peer, m.sends}].messages.push_back(&m);
  bool quiet = getenv("ASTRA_STAND_IN_NCCL_QUIET"), stuck = g->stalls;
  size_t left = g->messages.size();
  while ((left || stuck) && !c.aborted) { // what is stuck stays in the queue until it is aborted, as a kernel does
    bool moved = false;
    for (auto &[way, f] : flows) {
      if (stuck || f.next == f.messages.size()) continue;
      Message &m = *f.messages[f.next];
      bool inHeader = f.headerDone < sizeof(f.header);
      if (way.second) f.header = m.bytes;
      char *at = inHeader ? reinterpret_cast<char *>(&f.header) + f.headerDone : m.data + f.done;
      size_t bytes = inHeader ? sizeof(f.header) - f.headerDone : m.bytes - f.done;
      ssize_t n = way.second ? send(c.sockets[m.peer], at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                             : recv(c.sockets[m.peer], at, bytes, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0 && bytes) {
        stuck = true;
        if (!quiet) c.state = RemoteError;
        continue;
      }
      moved = true;
      (inHeader ? f.headerDone : f.done) += uint64_t(n);
      if (f.headerDone == sizeof(f.header) && f.header != m.bytes) wrong("messages of different sizes meet");
      if (f.headerDone == sizeof(f.header) && f.done == m.bytes) ++f.next, --left, f.headerDone = f.done = 0;
    }
    if (!moved) nap();
  }
  c.running--;
}

int message(const char *name, bool sends, const void *data, size_t count, int type, int peer, void *comm,
            void *stream) {
  auto c = find(comm);
  if (int error = note(name, c->rank, count, peer)) return error;
  if (!depth) wrong(std::string(name) + " outside of a group");
  if (type != 1) wrong(std::string(name) + " of something else than bytes");
  if (peer < 0 || peer >= c->ranks || peer == c->rank) wrong(std::string(name) + " with no other rank");
  if (c->polls || c->state == InProgress) wrong(std::string(name) + " while the communicator is at work");
  if (standInDevice() != c->device) wrong(std::string(name) + " where another device is current");
  void *place = standInPlace(data, count);
  if (!place) wrong(std::string(name) + " of memory that is no device's");
  grouped.push_back({c, stream, sends, static_cast<char *>(place), count, peer});
  return Success;
}

} // namespace

// NOLINTBEGIN: the names are theirs.
extern "C" {
int ncclGetVersion(int *out) {
  note("ncclGetVersion", -1);
  return *out = 22809, Success;
}
const char *ncclGetErrorString(int code) {
  return code == RemoteError ? "remote process exited or there was a network error" : code ? "some error" : "no error";
}
int ncclGetUniqueId(Id *out) {
  if (int error = note("ncclGetUniqueId", 0)) return error;
  memset(out, 0, sizeof(*out));
  static std::atomic<int> number{0};
  snprintf(out->text, sizeof(out->text), "astra-nccl-%d-%d", int(getpid()), number++);
  return Success;
}
int ncclCommInitRankConfig(void **out, int ranks, Id id, int rank, Config *config) {
  if (int error = note("ncclCommInitRankConfig", rank)) return error;
  if (config->magic != 0xcafebeef || config->blocking != 0 || config->version < 21400) wrong("a config that is none");
  if (standInDevice() < 0) wrong("no device is current where a communicator begins");
  auto c = std::make_shared<Comm>();
  c->rank = rank, c->ranks = ranks, c->id = id.text, c->device = standInDevice();
  socklen_t length;
  sockaddr_un a = addressOf(c->id, rank, length);
  c->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(c->listens, reinterpret_cast<sockaddr *>(&a), length) || listen(c->listens, 64)) return SystemError;
  c->joins = std::thread([raw = c.get()] { join(*raw); });
  std::lock_guard lock(mutex);
  comms[ *out = c.get()] = c;
  return InProgress;
}
int ncclCommGetAsyncError(void *comm, int *out) {
  auto c = find(comm);
  if (c->polls) {
    c->polls--;
    return *out = InProgress, Success;
  }
  return *out = c->state, Success;
}
int ncclGroupStart() {
  if (int error = note("ncclGroupStart", -1)) return error;
  if (depth++) wrong("a group in a group");
  return Success;
}
int ncclGroupEnd() {
  if (!depth) wrong("the end of no group");
  --depth;
  std::vector<Message> messages = std::move(grouped);
  grouped.clear();
  if (int error = note("ncclGroupEnd", messages.empty() ? -1 : messages[0].comm->rank)) return error;
  if (messages.empty()) return Success;
  auto c = messages[0].comm;
  void *stream = messages[0].stream;
  for (const Message &m : messages)
    if (m.comm != c || m.stream != stream) wrong("a group of several communicators or queues");
  const char *stall = getenv("ASTRA_STAND_IN_NCCL_STALL"), *only = getenv("ASTRA_STAND_IN_NCCL_RANK");
  bool stalls = stall && (!only || atoi(only) == c->rank) && atoll(stall) == c->groups;
  if (int error = note("transfer", c->rank)) c->state = error, stalls = true;
  c->groups++, c->running++, c->polls = 2;
  auto *g = new Group{c, std::move(messages), stalls};
  if ((c->device < 4 ? cuLaunchHostFunc : hipLaunchHostFunc)(stream, runGroup, g) != 0) wrong("a queue that is none");
  return InProgress;
}
int ncclSend(const void *data, size_t count, int type, int peer, void *comm, void *stream) {
  return message("ncclSend", true, data, count, type, peer, comm, stream);
}
int ncclRecv(void *data, size_t count, int type, int peer, void *comm, void *stream) {
  return message("ncclRecv", false, data, count, type, peer, comm, stream);
}
int ncclCommFinalize(void *comm) {
  auto c = find(comm);
  if (int error = note("ncclCommFinalize", c->rank)) return error;
  if (c->running) wrong("the end of a communicator that is at work");
  c->polls = 1;
  return InProgress;
}
int ncclCommDestroy(void *comm) {
  auto c = find(comm);
  if (int error = note("ncclCommDestroy", c->rank)) return error;
  std::lock_guard lock(mutex);
  comms.erase(comm);
  return Success;
}
int ncclCommAbort(void *comm) {
  auto c = find(comm);
  note("ncclCommAbort", c->rank);
  c->aborted = true;
  std::lock_guard lock(mutex);
  comms.erase(comm);
  return Success;
}
#define REDUCES(name)                                                                                                  \
  int name() { wrong(#name " is arithmetic"); }
REDUCES(ncclAllReduce)
REDUCES(ncclReduce)
REDUCES(ncclReduceScatter)
REDUCES(ncclRedOpCreatePreMulSum)
/// Calls of a function so far in this process.
int64_t standInNcclCalls(const char *name) {
  std::lock_guard lock(mutex);
  return calls[name];
}
/// The n-th call of a function from now on fails.
void standInNcclFail(const char *name, int64_t n, int error) {
  std::lock_guard lock(mutex);
  faults().add(name, n, error);
}
}
// NOLINTEND
