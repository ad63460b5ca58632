//===- Open.cpp: ranks from beginning to end --------------------------------===//
// Takes:    options, the environment.
// Gives:    the handle with its engine; what a program asks of it.
// Keeps:    a launcher and an engine that do not fit are refused before anything moves.
#include "Ranks.h"
#include <new>
#include <stddef.h>
#include <stdio.h>

using namespace astra::ranks;

namespace {

Status nothing(void *, const astra_transfer *, uint32_t, const astra_transfer *, uint32_t, int32_t, int32_t *,
               astra_diag *diag) {
  return fail(diag, ASTRA_INVALID_ARGUMENT, "there is no other rank");
}
void ignore(void *) {}
constexpr astra_engine kAlone = {
    sizeof(astra_engine), nullptr, "alone", 0, 1, nothing, ignore, ignore, nullptr, nullptr};

Status make(astra_ranks **out, const astra_engine &engine, int32_t timeout, astra_diag *diag) {
  void *memory = malloc(sizeof(astra_ranks));
  if (!memory) {
    engine.close(engine.self);
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the ranks");
  }
  auto *r = new (memory) astra_ranks{};
  r->engine = engine;
  r->timeout = timeout;
  r->counters.size = sizeof(astra_ranks_counters);
  *out = r;
  return ASTRA_OK;
}

bool checkOptions(const astra_ranks_options *options, astra_ranks_options *own, Status *status, astra_diag *diag) {
  memset(static_cast<void *>(own), 0, sizeof(*own));
  if (options && options->size > sizeof(*own)) {
    *status = fail(diag, ASTRA_NEWER_CLIENT, "the program is newer than this libastra_ranks");
    return false;
  }
  if (options) memcpy(static_cast<void *>(own), options, options->size);
  if (own->timeout < 0) {
    *status = fail(diag, ASTRA_INVALID_ARGUMENT, "the timeout is negative");
    return false;
  }
  if (own->timeout) return true;
  own->timeout = 5000;
  const char *text = getenv("ASTRA_RANKS_TIMEOUT");
  if (!text) return true;
  char *end;
  long seconds = strtol(text, &end, 10);
  if (end == text || *end || seconds < 1 || seconds > 86400) {
    *status = fail(diag, ASTRA_INVALID_ARGUMENT,
                   "ASTRA_RANKS_TIMEOUT is '%.40s', which is no number of seconds in 1 to 86400", text);
    return false;
  }
  own->timeout = int32_t(seconds) * 1000;
  return true;
}

Status openNamed(astra_engine *engine, const char *name, const Launch &launch, astra_diag *diag);

Status openEngine(astra_engine *engine, const astra_ranks_options &o, astra_diag *diag) {
  if (o.table) {
    const astra_engine &t = *o.table;
    constexpr size_t kLeast = offsetof(astra_engine, exchange_gpu);
    memset(static_cast<void *>(engine), 0, sizeof(*engine));
    if (t.size >= kLeast) memcpy(static_cast<void *>(engine), &t, t.size < sizeof(t) ? t.size : sizeof(t));
    if (t.size < kLeast || !t.exchange || !t.stop || !t.close || t.ranks < 1 || t.rank < 0 || t.rank >= t.ranks ||
        !engine->exchange_gpu != !engine->settle_gpu)
      return fail(diag, ASTRA_INVALID_ARGUMENT,
                  "the engine's table lacks a function, or its rank is none of its ranks");
    return ASTRA_OK;
  }
  Launch launch;
  if (Status s = readLaunch(&launch, diag)) return s;
  const char *name = o.engine ? o.engine : getenv("ASTRA_ENGINE");
  const char *fitting = launch.mpi ? "mpi" : launch.ranks > 1 ? "shm" : "alone";
  if (!name || !isNccl(name)) return openNamed(engine, name ? name : fitting, launch, diag);
  astra_engine host;
  if (Status s = openNamed(&host, fitting, launch, diag)) return s;
  return openNccl(engine, name, host, diag);
}

Status openNamed(astra_engine *engine, const char *name, const Launch &launch, astra_diag *diag) {
  if (!strcmp(name, "alone")) {
    if (launch.ranks > 1)
      return fail(diag, ASTRA_INVALID_ARGUMENT, "%s started %d ranks, and the engine 'alone' is for one",
                  launch.launcher, launch.ranks);
    return *engine = kAlone, ASTRA_OK;
  }
  if (!strcmp(name, "shm")) {
    if (launch.ranks > 1 && !launch.oneMachine)
      return fail(diag, ASTRA_INVALID_ARGUMENT,
                  "%s started ranks on several machines, which share no memory: use an engine of MPI", launch.launcher);
    if (launch.ranks == 1) return *engine = kAlone, ASTRA_OK;
    return openShared(engine, launch.rank, launch.ranks, launch.memory, diag);
  }
  if (!strncmp(name, "mpi", 3) && (!name[3] || name[3] == ':')) {
    Status s = openMpi(engine, name[3] ? name + 4 : getenv("ASTRA_MPI"), diag);
    if (!s && launch.launcher && engine->ranks != launch.ranks) {
      fail(diag, ASTRA_INVALID_ARGUMENT,
           "%s started %d ranks, and %s sees %d: the launcher must be of the same library", launch.launcher,
           launch.ranks, engine->name, engine->ranks);
      engine->close(engine->self);
      return ASTRA_INVALID_ARGUMENT;
    }
    return s;
  }
  return fail(diag, ASTRA_UNKNOWN_NAME,
              "there is no engine '%.60s'; there are shm, mpi, nccl and rccl, and mpi:PATH, nccl:PATH, rccl:PATH",
              name);
}

} // namespace

Status astra_ranks_init(astra_ranks **out, const astra_ranks_options *options, astra_diag *diag) {
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL");
  *out = nullptr;
  astra_ranks_options o;
  Status status;
  if (!checkOptions(options, &o, &status, diag)) return status;
  astra_engine engine;
  if (Status s = openEngine(&engine, o, diag)) return s;
  return make(out, engine, o.timeout, diag);
}

Status astra_ranks_init_threads(astra_ranks **out, int32_t ranks, const astra_ranks_options *options,
                                astra_diag *diag) {
  if (!out || ranks < 1) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL, or there are no ranks");
  memset(static_cast<void *>(out), 0, sizeof(*out) * size_t(ranks));
  astra_ranks_options o;
  Status status;
  if (!checkOptions(options, &o, &status, diag)) return status;
  List<astra_engine> engines;
  if (!engines.resize(size_t(ranks))) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for %d ranks", ranks);
  if (Status s = openThreads(engines.data(), ranks, diag)) return s;
  for (int32_t r = 0; r < ranks; r++)
    if (Status s = make(&out[r], engines[size_t(r)], o.timeout, diag)) {
      for (int32_t k = r + 1; k < ranks; k++) engines[size_t(k)].close(engines[size_t(k)].self);
      for (int32_t k = 0; k < r; k++) astra_ranks_free(&out[k]);
      return s;
    }
  return ASTRA_OK;
}

void astra_ranks_free(astra_ranks **ranks) {
  if (!ranks || !*ranks) return;
  astra_ranks *r = *ranks;
  r->engine.close(r->engine.self);
  r->~astra_ranks();
  free(r);
  *ranks = nullptr;
}

int32_t astra_ranks_rank(const astra_ranks *ranks) { return ranks ? ranks->engine.rank : -1; }
int32_t astra_ranks_size(const astra_ranks *ranks) { return ranks ? ranks->engine.ranks : -1; }
int32_t astra_ranks_local_rank(void) {
  Launch launch;
  return readLaunch(&launch, nullptr) ? -1 : launch.local;
}
const char *astra_ranks_engine(const astra_ranks *ranks) { return ranks ? ranks->engine.name : nullptr; }

Status astra_ranks_gather(astra_ranks *ranks, const void *data, uint64_t bytes, void *all, astra_diag *diag) {
  if (!ranks || (bytes && (!data || !all))) return fail(diag, ASTRA_INVALID_ARGUMENT, "an argument is NULL");
  if (Status s = begin(ranks, "gather of the program", bytes, diag)) return s;
  Round round;
  int32_t me = ranks->engine.rank;
  for (int32_t peer = 0; peer < ranks->engine.ranks; peer++) {
    char *to = static_cast<char *>(all) + uint64_t(peer) * bytes;
    if (peer == me) {
      if (bytes) memmove(to, data, bytes);
      continue;
    }
    round.sends.add({peer, const_cast<void *>(data), bytes});
    round.receives.add({peer, to, bytes});
  }
  Status s = run(ranks, round, diag);
  end(ranks);
  return s;
}

Status astra_ranks_barrier(astra_ranks *ranks, astra_diag *diag) {
  return astra_ranks_gather(ranks, nullptr, 0, nullptr, diag);
}

Status astra_ranks_get_counters(const astra_ranks *ranks, astra_ranks_counters *out) {
  if (!ranks || !out || out->size < sizeof(astra_ranks_counters)) return ASTRA_INVALID_ARGUMENT;
  size_t size = out->size;
  *out = ranks->counters;
  out->size = size;
  return ASTRA_OK;
}
