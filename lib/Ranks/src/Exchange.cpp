//===- Exchange.cpp: rounds of a collective --------------------------------===//
// Takes:    what a collective sends to others and receives from them.
// Gives:    it done, or a sentence that says which rank is where.
// Keeps:    the first round to and from a peer carries a header: name and number of the collective, and its bytes.
//           After a failure the engine is stopped, so that the others do not wait for this rank.
// Does not: know what the bytes are.
#include "Ranks.h"
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

using namespace astra::ranks;

namespace {
constexpr uint64_t kMagic = 0x736b6e61722e7361; // "as.ranks"

/// Puts where this rank is before the engine's sentence.
void say(const astra_ranks *ranks, astra_diag *diag) {
  if (!diag || diag->size < sizeof(astra_diag)) return;
  char text[sizeof(diag->text)];
  snprintf(text, sizeof(text), "collective %llu, '%.120s', on rank %d: %.300s",
           static_cast<unsigned long long>(ranks->number), ranks->own.what, ranks->engine.rank, diag->text);
  memcpy(diag->text, text, sizeof(text));
}

struct Peer {
  int32_t rank;
  Header header;
};
void addPeers(List<Peer> &peers, List<astra_transfer> &transfers) {
  for (const astra_transfer &t : transfers) {
    bool known = false;
    for (const Peer &p : peers) known |= p.rank == t.peer;
    if (known) continue;
    Peer p;
    memset(static_cast<void *>(&p), 0, sizeof(p));
    p.rank = t.peer;
    peers.add(p);
  }
}

/// Null if the header is that of the collective at hand; else what differs.
Status compare(const astra_ranks *ranks, const Peer &peer, astra_diag *diag) {
  const Header &h = peer.header, &own = ranks->own;
  if (!h.magic) return ASTRA_OK; // has not come
  if (h.magic == kMagic && h.number == own.number && h.bytes == own.bytes && !memcmp(h.what, own.what, sizeof(h.what)))
    return ASTRA_OK;
  return fail(
      diag, ASTRA_PEER_DIFFERS,
      "rank %d is in collective %llu, '%.100s', of %llu bytes, and rank %d in collective %llu, '%.100s', of %llu "
      "bytes",
      ranks->engine.rank, static_cast<unsigned long long>(own.number), own.what,
      static_cast<unsigned long long>(own.bytes), peer.rank, static_cast<unsigned long long>(h.number), h.what,
      static_cast<unsigned long long>(h.bytes));
}
} // namespace

uint64_t astra::ranks::nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

Status astra::ranks::fail(astra_diag *diag, Status status, const char *format, ...) {
  if (!diag || diag->size < sizeof(astra_diag)) return status;
  diag->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(diag->text, sizeof(diag->text), format, args);
  va_end(args);
  return status;
}

Status astra::ranks::begin(astra_ranks *ranks, const char *what, uint64_t bytes, astra_diag *diag) {
  if (__atomic_exchange_n(&ranks->busy, 1, __ATOMIC_ACQUIRE))
    return fail(diag, ASTRA_BUSY,
                "another collective of this rank is running: calls of a mesh's bundle go one at a time");
  if (ranks->broken) {
    __atomic_store_n(&ranks->busy, 0, __ATOMIC_RELEASE);
    return fail(diag, ASTRA_PEER_LOST, "an earlier collective of rank %d has failed: free the ranks and start again",
                ranks->engine.rank);
  }
  ranks->begun = nanoseconds();
  ranks->fresh = true;
  Header &own = ranks->own;
  memset(&own, 0, sizeof(own));
  own.magic = kMagic, own.number = ++ranks->number, own.bytes = bytes;
  snprintf(own.what, sizeof(own.what), "%s", what);
  return ASTRA_OK;
}

void astra::ranks::end(astra_ranks *ranks) {
  ranks->counters.collectives += 1;
  ranks->counters.nanoseconds += nanoseconds() - ranks->begun;
  __atomic_store_n(&ranks->busy, 0, __ATOMIC_RELEASE);
}

Status astra::ranks::run(astra_ranks *ranks, Round &round, astra_diag *diag) {
  if (round.sends.failed || round.receives.failed)
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the messages of a collective");
  for (const astra_transfer &t : round.sends) ranks->counters.sent += t.bytes;
  for (const astra_transfer &t : round.receives) ranks->counters.received += t.bytes;
  const astra_engine &e = ranks->engine;
  int32_t at = -1;
  Status s = ASTRA_OK;
  bool isFirst = ranks->fresh;
  ranks->fresh = false;
  List<astra_transfer> sends, receives; // of the host
  List<Peer> peers;
  if (isFirst) addPeers(peers, round.sends), addPeers(peers, round.receives);
  for (Peer &p : peers) {
    sends.add({p.rank, &ranks->own, sizeof(Header)});
    receives.add({p.rank, &p.header, sizeof(Header)});
  }
  if (!round.gpu) {
    for (const astra_transfer &t : round.sends) sends.add(t);
    for (const astra_transfer &t : round.receives) receives.add(t);
  }
  if (peers.failed || sends.failed || receives.failed)
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the messages of a collective");
  if (sends.size() || receives.size())
    s = e.exchange(e.self, sends.data(), uint32_t(sends.size()), receives.data(), uint32_t(receives.size()),
                   ranks->timeout, &at, diag);
  for (const Peer &p : peers)
    if (Status differs = compare(ranks, p, diag)) {
      ranks->broken = true;
      e.stop(e.self);
      return differs;
    }
  if (!s && round.gpu && (isFirst || round.sends.size() || round.receives.size()))
    s = e.exchange_gpu(e.self, round.gpu, round.sends.data(), uint32_t(round.sends.size()), round.receives.data(),
                       uint32_t(round.receives.size()), ranks->timeout, &at, diag);
  return s ? broken(ranks, s, diag) : s;
}

Status astra::ranks::broken(astra_ranks *ranks, Status status, astra_diag *diag) {
  ranks->broken = true;
  say(ranks, diag);
  ranks->engine.stop(ranks->engine.self);
  return status;
}
