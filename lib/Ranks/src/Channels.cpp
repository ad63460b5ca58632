//===- Channels.cpp: ranks of one machine, through shared memory ------------===//
// Takes:    a segment that all ranks of a job map, by a name or as threads of one process.
// Gives:    an engine. Each pair of ranks has a ring in each direction. A long message is not copied twice: its address
//           goes through the ring, and the receiver reads it where it is, if all ranks may read each other's memory.
// Keeps:    before each message stands how long it is. Who waits sleeps on a word of its own that others change, and
//           looks up now and then whether the others live.
// Does not: trust what is in the ring further than that: a length that differs is refused before anything is written.
#include "Ranks.h"
#include <atomic>
#include <errno.h>
#include <fcntl.h>
#include <new>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

using namespace astra::ranks;

namespace {

constexpr uint32_t kMostRanks = 256;
constexpr uint64_t kMagic = 0x31736b6e61727361;
constexpr uint64_t kDirect = 32768;             ///< bytes from which a message is read where it is
constexpr uint64_t kPiece = uint64_t(64) << 20; ///< of a message that is read so, so that those who wait see it move
constexpr int kFutexWait = 0, kFutexWake = 1;   ///< FUTEX_WAIT and FUTEX_WAKE of Linux, whose headers musl lacks
constexpr int kSpins = 2000, kYields = 50;

enum State : uint32_t { Absent, Present, Stopped, Left };

struct alignas(64) Seat {
  std::atomic<uint32_t> state, pid, bell, sleeping;
  uint64_t probe;                     ///< its own address: what the others try to read
  std::atomic<uint32_t> tried, reads; ///< whether it has tried, and could
};
struct alignas(64) Segment {
  uint64_t magic, bytes;
  uint32_t ranks, ring;
  std::atomic<uint32_t> ready;
  std::atomic<uint64_t> misfit; ///< (rank + 1) << 32 | ranks of who has no place here, so that all may say so
  Seat seats[kMostRanks];
};
/// From one rank to another.
struct Channel {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  std::atomic<uint64_t> taken; ///< messages that were read where they are
};
struct Frame {
  uint64_t bytes, address; ///< 0: the message follows in the ring
};

/// 4 KiB to 256 KiB, so that all rings together have about 16 MiB.
uint32_t ringFor(int32_t ranks) {
  uint32_t ring = 256 << 10;
  while (ring > 4096 && uint64_t(ring) * uint64_t(ranks) * uint64_t(ranks) > (16u << 20)) ring /= 2;
  return ring;
}
uint64_t channelBytes(uint32_t ring) { return (sizeof(Channel) + ring + 63) / 64 * 64; }
uint64_t segmentBytes(int32_t ranks) {
  return sizeof(Segment) + uint64_t(ranks) * uint64_t(ranks) * channelBytes(ringFor(ranks));
}

void pauseCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
void futexWait(std::atomic<uint32_t> &word, uint32_t value, int ms) {
  timespec t{ms / 1000, long(ms % 1000) * 1000000};
  syscall(SYS_futex, &word, kFutexWait, value, &t, nullptr, 0);
}
void futexWake(std::atomic<uint32_t> &word) { syscall(SYS_futex, &word, kFutexWake, 1 << 20, nullptr, nullptr, 0); }

/// Whether a process runs: neither gone nor dead and waiting to be asked for its exit code.
bool alive(uint32_t pid) {
  if (kill(pid_t(pid), 0) != 0 && errno == ESRCH) return false;
  char path[32], text[256];
  snprintf(path, sizeof(path), "/proc/%u/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;
  ssize_t n = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (n <= 0) return true;
  text[n] = 0;
  const char *name = strrchr(text, ')');
  return !name || (name[1] == ' ' && name[2] != 'Z' && name[2] != 'X');
}

struct Mapping {
  Segment *segment;
  std::atomic<int32_t> users;
  bool threads;
};

struct Queue {
  uint32_t next; ///< of the transfers of this peer: index in the list of the call
  uint64_t done; ///< bytes of it
  bool framed;
  Frame frame;
};

struct Shared {
  Mapping *mapping;
  Segment *segment;
  int32_t rank, ranks;
  bool direct;
  uint64_t sentDirect[kMostRanks];
  Queue out[kMostRanks], in[kMostRanks];

  Channel &channel(int32_t from, int32_t to) const {
    auto *base = reinterpret_cast<char *>(segment) + sizeof(Segment);
    return *reinterpret_cast<Channel *>(base + uint64_t(from * ranks + to) * channelBytes(segment->ring));
  }
  char *ringOf(Channel &c) const { return reinterpret_cast<char *>(&c) + sizeof(Channel); }

  void ring(int32_t peer) {
    Seat &s = segment->seats[peer];
    s.bell.fetch_add(1, std::memory_order_seq_cst);
    if (s.sleeping.load(std::memory_order_seq_cst)) futexWake(s.bell);
  }
  /// Into the ring from a place of the stream on, around its end.
  void put(Channel &c, uint64_t at, const void *data, uint64_t bytes) const {
    uint64_t size = segment->ring, from = at % size, first = bytes < size - from ? bytes : size - from;
    memcpy(ringOf(c) + from, data, first);
    memcpy(ringOf(c), static_cast<const char *>(data) + first, bytes - first);
  }
  void get(Channel &c, uint64_t at, void *data, uint64_t bytes) const {
    uint64_t size = segment->ring, from = at % size, first = bytes < size - from ? bytes : size - from;
    memcpy(data, ringOf(c) + from, first);
    memcpy(static_cast<char *>(data) + first, ringOf(c), bytes - first);
  }
  bool readThere(int32_t peer, void *to, uint64_t address, uint64_t bytes) const {
    if (mapping->threads) return memcpy(to, reinterpret_cast<void *>(address), bytes), true;
    auto *at = static_cast<char *>(to);
    while (bytes) {
      iovec local{at, bytes}, remote{reinterpret_cast<void *>(address), bytes};
      ssize_t n = process_vm_readv(pid_t(segment->seats[peer].pid.load()), &local, 1, &remote, 1, 0);
      if (n <= 0) return false;
      at += n, address += uint64_t(n), bytes -= uint64_t(n);
    }
    return true;
  }
};

/// The next transfer with a peer from `i` on.
uint32_t nextOf(const astra_transfer *list, uint32_t count, uint32_t i, int32_t peer) {
  while (i < count && list[i].peer != peer) ++i;
  return i;
}

/// Moves what can be moved to a peer; whether anything was.
bool pushTo(Shared &s, int32_t peer, const astra_transfer *sends, uint32_t count) {
  Queue &q = s.out[peer];
  Channel &c = s.channel(s.rank, peer);
  bool moved = false;
  while (q.next < count) {
    const astra_transfer &t = sends[q.next];
    uint64_t written = c.written.load(std::memory_order_relaxed);
    uint64_t room = s.segment->ring - (written - c.read.load(std::memory_order_acquire));
    if (!q.framed) {
      if (room < sizeof(Frame)) break;
      uint64_t left = t.bytes - q.done;
      q.frame = {left, 0};
      if (s.direct && left >= kDirect)
        q.frame = {left < kPiece ? left : kPiece, reinterpret_cast<uint64_t>(t.data) + q.done};
      s.put(c, written, &q.frame, sizeof(Frame));
      c.written.store(written + sizeof(Frame), std::memory_order_release);
      moved = true;
      if (q.frame.address)
        q.done += q.frame.bytes, ++s.sentDirect[peer];
      else
        q.framed = true;
    } else {
      uint64_t left = t.bytes - q.done, some = left < room ? left : room;
      if (left && !some) break;
      s.put(c, written, static_cast<const char *>(t.data) + q.done, some);
      c.written.store(written + some, std::memory_order_release);
      q.done += some;
      moved |= some > 0;
    }
    if (q.done == t.bytes && (q.framed || q.frame.address))
      q.framed = false, q.done = 0, q.next = nextOf(sends, count, q.next + 1, peer);
  }
  return moved;
}

/// Takes what has come from a peer. `status`: why it cannot be taken.
bool pullFrom(Shared &s, int32_t peer, const astra_transfer *receives, uint32_t count, Status *status,
              astra_diag *diag) {
  Queue &q = s.in[peer];
  Channel &c = s.channel(peer, s.rank);
  bool moved = false;
  while (q.next < count) {
    const astra_transfer &t = receives[q.next];
    uint64_t read = c.read.load(std::memory_order_relaxed);
    uint64_t there = c.written.load(std::memory_order_acquire) - read, left = t.bytes - q.done;
    if (!q.framed) {
      if (there < sizeof(Frame)) break;
      s.get(c, read, &q.frame, sizeof(Frame));
      bool fits = q.frame.address ? q.frame.bytes && q.frame.bytes <= left : q.frame.bytes == left;
      if (!fits || (q.frame.address && !s.direct)) {
        *status = fail(diag, ASTRA_PEER_DIFFERS, "rank %d sends %llu bytes where %llu are expected", peer,
                       static_cast<unsigned long long>(q.frame.bytes), static_cast<unsigned long long>(left));
        return moved;
      }
      c.read.store(read + sizeof(Frame), std::memory_order_release);
      moved = true;
      if (q.frame.address) {
        if (!s.readThere(peer, static_cast<char *>(t.data) + q.done, q.frame.address, q.frame.bytes)) {
          *status = fail(diag, ASTRA_PEER_LOST, "the memory of rank %d could not be read", peer);
          return moved;
        }
        q.done += q.frame.bytes;
        c.taken.fetch_add(1, std::memory_order_release);
      } else {
        q.framed = true;
      }
    } else {
      uint64_t some = left < there ? left : there;
      if (left && !some) break;
      s.get(c, read, static_cast<char *>(t.data) + q.done, some);
      c.read.store(read + some, std::memory_order_release);
      q.done += some;
      moved |= some > 0;
    }
    if (q.done == t.bytes && (q.framed || q.frame.address))
      q.framed = false, q.done = 0, q.next = nextOf(receives, count, q.next + 1, peer);
  }
  return moved;
}

/// A rank that has to do something and will not: why, or null.
const char *gone(Shared &s, int32_t peer) {
  Seat &seat = s.segment->seats[peer];
  switch (seat.state.load(std::memory_order_acquire)) {
  case Stopped: return "has failed";
  case Left: return "has ended";
  default: return s.mapping->threads || alive(seat.pid.load()) ? nullptr : "has died";
  }
}

Status exchange(void *self, const astra_transfer *sends, uint32_t numSends, const astra_transfer *receives,
                uint32_t numReceives, int32_t timeout, int32_t *peer, astra_diag *diag) {
  auto &s = *static_cast<Shared *>(self);
  for (int32_t p = 0; p < s.ranks; p++) {
    s.out[p] = {nextOf(sends, numSends, 0, p), 0, false, {}};
    s.in[p] = {nextOf(receives, numReceives, 0, p), 0, false, {}};
  }
  Seat &own = s.segment->seats[s.rank];
  uint64_t deadline = milliseconds() + uint64_t(timeout);
  int idle = 0;
  for (;;) {
    uint32_t bell = own.bell.load(std::memory_order_seq_cst);
    int32_t waitsFor = -1;
    bool moved = false;
    for (int32_t p = 0; p < s.ranks; p++) {
      if (p == s.rank) continue;
      Status status = ASTRA_OK;
      bool some = s.out[p].next < numSends && pushTo(s, p, sends, numSends);
      some |= s.in[p].next < numReceives && pullFrom(s, p, receives, numReceives, &status, diag);
      if (some) s.ring(p), moved = true;
      if (status) return *peer = p, status;
      bool busy = s.out[p].next < numSends || s.in[p].next < numReceives ||
                  s.channel(s.rank, p).taken.load(std::memory_order_acquire) != s.sentDirect[p];
      if (busy) waitsFor = p;
    }
    if (waitsFor < 0) return ASTRA_OK;
    if (moved) {
      idle = 0, deadline = milliseconds() + uint64_t(timeout);
      continue;
    }
    if (++idle < kSpins) {
      pauseCpu();
      continue;
    }
    if (idle < kSpins + kYields) {
      sched_yield();
      continue;
    }
    own.sleeping.store(1, std::memory_order_seq_cst);
    futexWait(own.bell, bell, 20);
    own.sleeping.store(0, std::memory_order_seq_cst);
    if (own.bell.load() != bell) continue;
    bool late = milliseconds() >= deadline;
    for (int32_t p = 0; p < s.ranks; p++) {
      bool busy = p != s.rank && (s.out[p].next < numSends || s.in[p].next < numReceives ||
                                  s.channel(s.rank, p).taken.load() != s.sentDirect[p]);
      const char *why = busy ? gone(s, p) : nullptr;
      // What a rank sent before it went is still taken.
      if (why && s.in[p].next < numReceives && s.channel(p, s.rank).written.load() != s.channel(p, s.rank).read.load())
        continue;
      if (why) return *peer = p, fail(diag, ASTRA_PEER_LOST, "rank %d %s", p, why);
      if (busy && late) return *peer = p, fail(diag, ASTRA_PEER_LOST, "rank %d has not moved for %d ms", p, timeout);
    }
  }
}

void setState(Shared &s, State state) {
  s.segment->seats[s.rank].state.store(state, std::memory_order_release);
  for (int32_t p = 0; p < s.ranks; p++)
    if (p != s.rank) s.ring(p);
}
void stop(void *self) { setState(*static_cast<Shared *>(self), Stopped); }

void unmap(Mapping *m) {
  if (m->users.fetch_sub(1) != 1) return;
  munmap(m->segment, m->segment->bytes);
  free(m);
}
void close(void *self) {
  auto *s = static_cast<Shared *>(self);
  if (s->segment->seats[s->rank].state.load() != Stopped) setState(*s, Left);
  unmap(s->mapping);
  free(s);
}

void layOut(Segment *g, int32_t ranks) {
  g->bytes = segmentBytes(ranks), g->ranks = uint32_t(ranks), g->ring = ringFor(ranks), g->magic = kMagic;
  g->ready.store(1, std::memory_order_release);
}

Shared *take(Mapping *m, int32_t rank, int32_t ranks) {
  auto *s = static_cast<Shared *>(calloc(1, sizeof(Shared)));
  if (!s) return nullptr;
  s->mapping = m, s->segment = m->segment, s->rank = rank, s->ranks = ranks;
  return s;
}
astra_engine engineOf(Shared *s) {
  const char *name = s->mapping->threads ? "threads" : "shm";
  return {sizeof(astra_engine), s, name, s->rank, s->ranks, exchange, stop, close, nullptr, nullptr};
}

//===- Joining a job by name ----------------------------------------------------===//

constexpr int kJoin = 30000;  ///< milliseconds that the first rank waits for the last: they begin at different times
constexpr int kLinger = 1000; ///< milliseconds for which others still learn that one has no place
constexpr int kUnheld = 10;   ///< looks at a file without a lock, a millisecond apart, until it is one that was left

void nap() {
  timespec t{0, 1000000};
  nanosleep(&t, nullptr);
}

/// Who makes a segment holds a lock on it until all have come: what has a name and no lock is of a job that has ended.
bool isHeld(int fd) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
bool hold(int fd) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/// Whether the name is still that of this file: another first rank may have taken it for one that was left.
bool isCalled(int fd, const char *name) {
  struct stat own, there;
  int other = shm_open(name, O_RDONLY, 0);
  bool same = other >= 0 && fstat(fd, &own) == 0 && fstat(other, &there) == 0 && own.st_ino == there.st_ino;
  if (other >= 0) ::close(other);
  return same;
}

uint64_t misfitOf(int32_t rank, int32_t ranks) { return uint64_t(rank + 1) << 32 | uint32_t(ranks); }
Status refuseMisfit(uint64_t misfit, int32_t theirs, astra_diag *diag) {
  int32_t rank = int32_t(misfit >> 32) - 1, ranks = int32_t(uint32_t(misfit));
  if (rank && ranks != theirs)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "rank %d is of %d ranks, and rank 0 of %d", rank, ranks, theirs);
  return fail(diag, ASTRA_INVALID_ARGUMENT,
              "two processes are rank %d, one of %d ranks and one of %d: each needs a number of its own", rank, theirs,
              ranks);
}

/// The segment of a job whose ranks come just now, or null. `held`: whether somebody makes one.
Segment *find(const char *name, bool *held) {
  *held = false;
  int fd = shm_open(name, O_RDWR, 0);
  if (fd < 0) return nullptr;
  struct stat st;
  void *at = MAP_FAILED;
  uint64_t bytes = 0;
  if (fstat(fd, &st) == 0 && st.st_uid == getuid() && (*held = isHeld(fd)) && uint64_t(st.st_size) >= sizeof(Segment)) {
    bytes = uint64_t(st.st_size);
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  if (at == MAP_FAILED) return nullptr;
  auto *g = static_cast<Segment *>(at);
  if (g->ready.load(std::memory_order_acquire) && g->magic == kMagic && g->bytes == bytes && g->ranks <= kMostRanks &&
      bytes == segmentBytes(int32_t(g->ranks)))
    return g;
  munmap(at, bytes);
  return nullptr;
}

/// Tells those who come just now who has no place among them.
Status tellMisfit(Segment *g, int32_t rank, int32_t ranks, astra_diag *diag) {
  uint64_t none = 0, own = misfitOf(rank, ranks);
  g->misfit.compare_exchange_strong(none, own);
  Status s = refuseMisfit(own, int32_t(g->ranks), diag);
  munmap(g, g->bytes);
  return s;
}

/// `lock`: the file, which is locked as long as it is open.
Status create(const char *name, int32_t ranks, Segment **out, int *lock, astra_diag *diag) {
  int fd = -1, unheld = 0;
  for (uint64_t deadline = milliseconds() + 1000;; nap()) {
    fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 && hold(fd) && isCalled(fd, name)) break;
    int why = errno;
    if (fd >= 0) ::close(fd);
    if (fd < 0 && (why != EEXIST || milliseconds() > deadline))
      return fail(diag, ASTRA_IO, "shared memory '%.100s' could not be made: %s", name, strerror(why));
    bool held;
    if (Segment *other = find(name, &held)) return tellMisfit(other, 0, ranks, diag);
    unheld = held ? 0 : unheld + 1;
    if (unheld > kUnheld) shm_unlink(name), unheld = 0; // of a job of this name that has not ended well
  }
  uint64_t bytes = segmentBytes(ranks);
  int error = posix_fallocate(fd, 0, off_t(bytes));
  void *at = error ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (!error && at == MAP_FAILED) error = errno;
  if (error) {
    shm_unlink(name);
    ::close(fd);
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no shared memory for %d ranks, which need %llu KiB of it: %s", ranks,
                static_cast<unsigned long long>(bytes >> 10), strerror(error));
  }
  *out = static_cast<Segment *>(at), *lock = fd;
  (*out)->seats[0].pid.store(uint32_t(getpid()));
  layOut(*out, ranks);
  return ASTRA_OK;
}

/// The segment that rank 0 makes, with a seat for this rank.
Status findSeat(const char *name, int32_t rank, int32_t ranks, Segment **out, astra_diag *diag) {
  for (uint64_t deadline = milliseconds() + kJoin;; nap()) {
    bool held;
    if (Segment *g = find(name, &held)) {
      uint32_t none = 0;
      if (int32_t(g->ranks) != ranks || !g->seats[rank].pid.compare_exchange_strong(none, uint32_t(getpid())))
        return tellMisfit(g, rank, ranks, diag);
      return *out = g, ASTRA_OK;
    }
    if (jobHasFailed())
      return fail(diag, ASTRA_PEER_LOST, "rank 0 has not come, and the launcher says that a rank has failed");
    if (milliseconds() > deadline)
      return fail(diag, ASTRA_PEER_LOST, "rank 0 of %d has not come within %d s", ranks, kJoin / 1000);
  }
}

/// Sits down, waits for all, and finds out whether all can read each other's memory.
Status join(Shared &s, astra_diag *diag) {
  Segment &g = *s.segment;
  Seat &own = g.seats[s.rank];
  own.pid.store(uint32_t(getpid()));
  own.probe = reinterpret_cast<uint64_t>(&s.mapping->segment);
  own.state.store(Present, std::memory_order_release);
  auto all = [&](auto there, const char *what) -> Status {
    uint64_t deadline = milliseconds() + kJoin;
    for (int32_t p = 0; p < s.ranks; p++)
      while (!there(g.seats[p])) {
        if (uint64_t misfit = g.misfit.load()) return refuseMisfit(misfit, s.ranks, diag);
        if (uint32_t pid = g.seats[p].pid.load(); pid && !alive(pid) && !there(g.seats[p]))
          return fail(diag, ASTRA_PEER_LOST, "rank %d has died", p);
        if (jobHasFailed() && !there(g.seats[p]))
          return fail(diag, ASTRA_PEER_LOST, "rank %d has not come, and the launcher says that a rank has failed", p);
        if (milliseconds() > deadline)
          return fail(diag, ASTRA_PEER_LOST, "rank %d of %d has not %s within %d s", p, s.ranks, what, kJoin / 1000);
        nap();
      }
    return ASTRA_OK;
  };
  if (Status st = all([](Seat &seat) { return seat.state.load(std::memory_order_acquire) != Absent; }, "come"))
    return st;
  bool reads = true;
  for (int32_t p = 0; p < s.ranks && reads; p++) {
    uint64_t word;
    reads = p == s.rank || s.readThere(p, &word, g.seats[p].probe, sizeof(word));
  }
  own.reads.store(reads), own.tried.store(1, std::memory_order_release);
  if (Status st = all([](Seat &seat) { return seat.tried.load(std::memory_order_acquire) != 0; }, "come")) return st;
  s.direct = true;
  for (int32_t p = 0; p < s.ranks; p++) s.direct &= g.seats[p].reads.load() != 0;
  return ASTRA_OK;
}

} // namespace

Status astra::ranks::openShared(astra_engine *out, int32_t rank, int32_t ranks, const char *name, astra_diag *diag) {
  if (ranks > int32_t(kMostRanks))
    return fail(diag, ASTRA_UNSUPPORTED, "%d ranks are more than the %u of one machine", ranks, kMostRanks);
  auto *m = static_cast<Mapping *>(calloc(1, sizeof(Mapping)));
  if (!m) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the ranks");
  m->users.store(1);
  int lock = -1;
  if (Status s = rank ? findSeat(name, rank, ranks, &m->segment, diag) : create(name, ranks, &m->segment, &lock, diag))
    return free(m), s;
  Shared *s = take(m, rank, ranks);
  Status joined = s ? join(*s, diag) : fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the ranks");
  if (rank == 0) { // whoever was to come has come
    for (uint64_t end = milliseconds() + kLinger; m->segment->misfit.load() && milliseconds() < end;) nap();
    shm_unlink(name), ::close(lock);
  }
  if (!s) return unmap(m), joined;
  if (joined) return close(s), joined;
  *out = engineOf(s);
  return ASTRA_OK;
}

Status astra::ranks::openThreads(astra_engine *out, int32_t ranks, astra_diag *diag) {
  if (ranks > int32_t(kMostRanks))
    return fail(diag, ASTRA_UNSUPPORTED, "%d ranks are more than the %u of one machine", ranks, kMostRanks);
  auto *m = static_cast<Mapping *>(calloc(1, sizeof(Mapping)));
  void *at = mmap(nullptr, segmentBytes(ranks), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!m || at == MAP_FAILED) {
    if (at != MAP_FAILED) munmap(at, segmentBytes(ranks));
    return free(m), fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for %d ranks", ranks);
  }
  m->segment = static_cast<Segment *>(at), m->threads = true;
  m->users.store(ranks);
  layOut(m->segment, ranks);
  for (int32_t r = 0; r < ranks; r++) {
    Shared *s = take(m, r, ranks);
    if (!s) {
      for (int32_t k = 0; k < r; k++) close(out[k].self);
      for (int32_t k = r; k < ranks; k++) unmap(m);
      return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for %d ranks", ranks);
    }
    s->direct = true;
    m->segment->seats[r].state.store(Present);
    m->segment->seats[r].pid.store(uint32_t(getpid()));
    out[r] = engineOf(s);
  }
  return ASTRA_OK;
}
