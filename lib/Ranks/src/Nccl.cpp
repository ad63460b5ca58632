//===- Nccl.cpp: an engine of GPUs' memory by NCCL or RCCL ------------------===//
// Takes:    the library, opened by name; an engine for the host's memory, by which the ranks meet.
// Gives:    an engine that moves memory of GPUs in the order of a queue, by sends and receives in groups: none of the
//           library's own collectives, and none of its arithmetic.
// Keeps:    the communicator does not block: what it does in the background is asked for within the timeout, and
//           ncclCommAbort ends it. A transfer stands between two marks in the queue: its time begins at the first.
// Does not: need a header of NCCL: names, numbers and the beginning of ncclConfig_t are those of its documentation.
#include "Ranks.h"
#include <dlfcn.h>
#include <new>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

using namespace astra::ranks;

namespace {

struct Family {
  const char *name, *title, *library, *driver, *maker;
};
constexpr Family kFamilies[] = {{"nccl", "NCCL", "libnccl.so.2", "cuda", "NVIDIA"},
                                {"rccl", "RCCL", "librccl.so.1", "hip", "AMD"}};

constexpr int kLeast = 21400; ///< 2.14: the first whose communicators do not block
enum : int { Success = 0, UnhandledError = 1, SystemError = 2, RemoteError = 6, InProgress = 7 };
constexpr int kUint8 = 1;
constexpr int kJoin = 30000;         ///< milliseconds that a communicator has to come to be
constexpr size_t kMostPending = 256; ///< transfers in the queue that nobody has waited for
constexpr uint32_t kMagic = 0xcafebeef;

struct Id {
  char bytes[128];
};
/// ncclConfig_t as of 2.14; what later versions have more, they set for themselves.
struct Config {
  size_t size;
  uint32_t magic, version;
  int blocking;
};

/// A transfer in the queue.
struct Pending {
  void *begin, *end; ///< marks
  int32_t peer;      ///< one of those that it is with
};

struct Calls {
  int (*version)(int *);
  int (*uniqueId)(Id *);
  int (*init)(void **, int, Id, int, Config *);
  int (*finalize)(void *);
  int (*destroy)(void *);
  int (*abort)(void *);
  int (*asyncError)(void *, int *);
  const char *(*errorText)(int);
  int (*groupStart)();
  int (*groupEnd)();
  int (*send)(const void *, size_t, int, int, void *, void *);
  int (*receive)(void *, size_t, int, int, void *, void *);
};
struct Nccl : Calls {
  astra_engine host;
  const Family *family;
  char name[160];
  void *comm;   ///< null before the first transfer, and after a failure
  bool stopped; ///< after one
  List<Pending> pending;
};

Nccl &of(void *self) { return *static_cast<Nccl *>(self); }

/// Longer and longer, so that who waits for long leaves the processor to others.
void pause(int turn) {
  if (turn < 200) return void(sched_yield());
  timespec t{0, turn < 2000 ? 20000 : 200000};
  nanosleep(&t, nullptr);
}

Status failed(const Nccl &n, const char *what, int code, astra_diag *diag) {
  bool ofPeer = code == RemoteError || code == SystemError || code == UnhandledError;
  return fail(diag, ofPeer ? ASTRA_PEER_LOST : ASTRA_DRIVER, "%s: %s: %.200s", n.name, what, n.errorText(code));
}

/// Waits for what the communicator does in the background; `code` is what the call gave.
Status finish(Nccl &n, const char *what, int code, int milli, astra_diag *diag) {
  uint64_t deadline = milliseconds() + uint64_t(milli);
  for (int turn = 0; code == InProgress; turn++) {
    if (int error = n.asyncError(n.comm, &code)) code = error;
    if (code != InProgress) break;
    if (milliseconds() > deadline)
      return fail(diag, ASTRA_PEER_LOST, "%s: %s has not ended for %d ms", n.name, what, milli);
    pause(turn);
  }
  return code ? failed(n, what, code, diag) : Status(ASTRA_OK);
}

/// A communicator of all ranks, for the device that is current on this thread.
Status join(Nccl &n, const astra_gpu_call *gpu, int32_t timeout, int32_t *peer, astra_diag *diag) {
  if (strcmp(gpu->driver, n.family->driver) != 0)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%s is for GPUs of %s, and the device is %s:%d: choose the engine %s",
                n.family->title, n.family->maker, gpu->driver, gpu->number,
                kFamilies[n.family == kFamilies ? 1 : 0].name);
  Id id;
  memset(&id, 0, sizeof(id));
  if (n.host.rank == 0)
    if (int code = n.uniqueId(&id)) return failed(n, "ncclGetUniqueId", code, diag);
  List<astra_transfer> sends, receives;
  for (int32_t r = 1; r < n.host.ranks && n.host.rank == 0; r++) sends.add({r, &id, sizeof(id)});
  if (n.host.rank) receives.add({0, &id, sizeof(id)});
  if (sends.failed || receives.failed) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the messages");
  if (n.host.ranks > 1)
    if (Status s = n.host.exchange(n.host.self, sends.data(), uint32_t(sends.size()), receives.data(),
                                   uint32_t(receives.size()), timeout, peer, diag))
      return s;
  Config config{sizeof(Config), kMagic, kLeast, 0};
  int code = n.init(&n.comm, n.host.ranks, id, n.host.rank, &config);
  return finish(n, "ncclCommInitRankConfig", code, kJoin, diag);
}

/// Until the GPU is behind the transfer.
Status await(Nccl &n, const astra_gpu_call *gpu, const Pending &p, int32_t timeout, astra_diag *diag) {
  uint64_t deadline = 0; // from when the transfer has begun
  for (int turn = 0;; turn++) {
    Status s = gpu->reached(gpu, deadline ? p.end : p.begin);
    if (s == ASTRA_OK && deadline) return s;
    if (s == ASTRA_OK) {
      deadline = milliseconds() + uint64_t(timeout), turn = 0;
      continue;
    }
    if (s != ASTRA_NOT_READY) return fail(diag, s, "the GPU of rank %d is lost", n.host.rank);
    int code = Success;
    if (int error = n.asyncError(n.comm, &code)) code = error;
    if (code && code != InProgress) return failed(n, "a transfer", code, diag);
    if (deadline && milliseconds() > deadline)
      return fail(diag, ASTRA_PEER_LOST, "%s: a transfer with rank %d has not ended for %d ms", n.name, p.peer,
                  timeout);
    pause(turn);
  }
}

Status settleGpu(void *self, const astra_gpu_call *gpu, int32_t timeout, int32_t *peer, astra_diag *diag) {
  Nccl &n = of(self);
  Status s = ASTRA_OK;
  for (Pending &p : n.pending) {
    if (n.comm && (s = await(n, gpu, p, timeout, diag))) {
      *peer = p.peer;
      n.abort(n.comm); // so that the marks behind are reached, and the queue ends
      n.comm = nullptr, n.stopped = true;
    }
    gpu->unmark(gpu, p.begin), gpu->unmark(gpu, p.end);
  }
  n.pending.clear();
  return s;
}

Status group(Nccl &n, const astra_gpu_call *gpu, const astra_transfer *sends, uint32_t numSends,
             const astra_transfer *receives, uint32_t numReceives, int32_t timeout, int32_t *peer, astra_diag *diag) {
  const char *what = "ncclGroupStart";
  int code = n.groupStart();
  if (code) return failed(n, what, code, diag);
  auto good = [&](int given) { return given == Success || given == InProgress; };
  for (uint32_t i = 0; i < numReceives && good(code); i++) {
    const astra_transfer &t = receives[i];
    what = "ncclRecv", *peer = t.peer;
    code = n.receive(t.data, t.bytes, kUint8, t.peer, n.comm, gpu->queue);
  }
  for (uint32_t i = 0; i < numSends && good(code); i++) {
    const astra_transfer &t = sends[i];
    what = "ncclSend", *peer = t.peer;
    code = n.send(t.data, t.bytes, kUint8, t.peer, n.comm, gpu->queue);
  }
  int ended = n.groupEnd();
  if (!good(code)) return failed(n, what, code, diag);
  return finish(n, "ncclGroupEnd", ended, timeout, diag);
}

Status exchangeGpu(void *self, const astra_gpu_call *gpu, const astra_transfer *sends, uint32_t numSends,
                   const astra_transfer *receives, uint32_t numReceives, int32_t timeout, int32_t *peer,
                   astra_diag *diag) {
  Nccl &n = of(self);
  if (n.stopped) return fail(diag, ASTRA_PEER_LOST, "%s: the communicator has been ended", n.name);
  if (!n.comm)
    if (Status s = join(n, gpu, timeout, peer, diag)) return s;
  if (!numSends && !numReceives) return ASTRA_OK;
  if (n.pending.size() >= kMostPending)
    if (Status s = settleGpu(self, gpu, timeout, peer, diag)) return s;
  Pending p{nullptr, nullptr, numReceives ? receives[0].peer : sends[0].peer};
  if (Status s = gpu->mark(gpu, &p.begin, diag)) return s;
  Status s = group(n, gpu, sends, numSends, receives, numReceives, timeout, peer, diag);
  if (!s) s = gpu->mark(gpu, &p.end, diag);
  if (!s) n.pending.add(p);
  if (!s && n.pending.failed) s = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a transfer");
  if (s) {
    gpu->unmark(gpu, p.begin);
    if (p.end) gpu->unmark(gpu, p.end);
  }
  return s;
}

Status exchange(void *self, const astra_transfer *sends, uint32_t numSends, const astra_transfer *receives,
                uint32_t numReceives, int32_t timeout, int32_t *peer, astra_diag *diag) {
  astra_engine &host = of(self).host;
  return host.exchange(host.self, sends, numSends, receives, numReceives, timeout, peer, diag);
}

void stop(void *self) {
  Nccl &n = of(self);
  if (n.comm) n.abort(n.comm);
  n.comm = nullptr, n.stopped = true;
  n.host.stop(n.host.self);
}

void close(void *self) {
  Nccl &n = of(self);
  if (n.comm) {
    constexpr int kEnd = 5000; // milliseconds for the others to come to this too
    Status s = finish(n, "ncclCommFinalize", n.finalize(n.comm), kEnd, nullptr);
    s ? n.abort(n.comm) : n.destroy(n.comm);
  }
  n.host.close(n.host.self);
  n.~Nccl();
  free(&n);
}

const Family *familyOf(const char *text) {
  for (const Family &f : kFamilies) {
    size_t length = strlen(f.name);
    if (!strncmp(text, f.name, length) && (!text[length] || text[length] == ':')) return &f;
  }
  return nullptr;
}

#if defined(ASTRA_RT_NO_LOADER)
Status openLibrary(Nccl &, const char *, astra_diag *diag) {
  return fail(diag, ASTRA_UNSUPPORTED, "this program is linked statically and opens no library of GPUs' transfers");
}
#else
struct {
  const char *name;
  size_t at;
} constexpr kFunctions[] = {
    {"ncclGetVersion", offsetof(Calls, version)}, // first: it says whether the others can be there
    {"ncclGetUniqueId", offsetof(Calls, uniqueId)},
    {"ncclCommInitRankConfig", offsetof(Calls, init)},
    {"ncclCommFinalize", offsetof(Calls, finalize)},
    {"ncclCommDestroy", offsetof(Calls, destroy)},
    {"ncclCommAbort", offsetof(Calls, abort)},
    {"ncclCommGetAsyncError", offsetof(Calls, asyncError)},
    {"ncclGetErrorString", offsetof(Calls, errorText)},
    {"ncclGroupStart", offsetof(Calls, groupStart)},
    {"ncclGroupEnd", offsetof(Calls, groupEnd)},
    {"ncclSend", offsetof(Calls, send)},
    {"ncclRecv", offsetof(Calls, receive)},
};

/// Fills the table; what is opened stays so, since it has threads of its own.
Status openLibrary(Nccl &n, const char *path, astra_diag *diag) {
  const Family &f = *n.family;
  void *library = dlopen(path ? path : f.library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *why = dlerror();
    return fail(diag, ASTRA_UNSUPPORTED, "%s cannot be opened (%.300s); install it, or give its file as %s:PATH",
                f.title, why ? why : f.library, f.name);
  }
  for (auto &row : kFunctions) {
    void *function = dlsym(library, row.name);
    if (!function)
      return fail(diag, ASTRA_UNSUPPORTED, "the library of %s lacks %s; version 2.14 or newer is needed", f.title,
                  row.name);
    memcpy(reinterpret_cast<char *>(static_cast<Calls *>(&n)) + row.at, &function, sizeof(function));
    if (row.at != offsetof(Calls, version)) continue;
    int version = 0, code = n.version(&version);
    int major = version >= 10000 ? version / 10000 : version / 1000;
    int minor = version >= 10000 ? version % 10000 / 100 : version % 1000 / 100;
    if (code || version < kLeast)
      return fail(diag, ASTRA_UNSUPPORTED, "%s is of version %d.%d.%d, and 2.14 or newer is needed", f.title, major,
                  minor, version % 100);
    snprintf(n.name, sizeof(n.name), "%s %d.%d.%d, %.100s", f.name, major, minor, version % 100, n.host.name);
  }
  return ASTRA_OK;
}
#endif

} // namespace

bool astra::ranks::isNccl(const char *text) { return familyOf(text); }

Status astra::ranks::openNccl(astra_engine *out, const char *text, const astra_engine &host, astra_diag *diag) {
  void *memory = malloc(sizeof(Nccl));
  auto *n = memory ? new (memory) Nccl{} : nullptr;
  Status s = n ? ASTRA_OK : fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the engine");
  if (!s) {
    n->host = host, n->family = familyOf(text);
    const char *path = strchr(text, ':');
    s = openLibrary(*n, path ? path + 1 : nullptr, diag);
  }
  if (s) {
    host.close(host.self);
    if (n) n->~Nccl();
    free(memory);
    return s;
  }
  *out = {sizeof(astra_engine), n, n->name, host.rank, host.ranks, exchange, stop, close, exchangeGpu, settleGpu};
  return ASTRA_OK;
}
