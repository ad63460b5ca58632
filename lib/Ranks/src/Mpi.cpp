//===- Mpi.cpp: an engine of messages by MPI --------------------------------===//
// Takes:    an MPI library, opened by name: Open MPI, MPICH, or one with the standard ABI (MPI 5.0, chapter 20).
// Gives:    an engine. Of MPI it uses messages of bytes, of MPI's arithmetic nothing.
// Keeps:    what the three families write differently in their headers stands in one table. Errors come back as codes.
// Does not: need an MPI header. A program that has called MPI_Init before keeps that, and calls MPI_Finalize itself.
#include "Ranks.h"
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

using namespace astra::ranks;

namespace {

/// What is a constant in one header and a symbol in another: handles are passed as words.
struct Family {
  const char *name, *in;                   ///< `in` is part of the library's own version text
  const char *world, *byte, *errorsReturn; ///< symbols; null: the numbers below
  uintptr_t worldNumber, byteNumber, errorsReturnNumber;
  int multiple; ///< MPI_THREAD_MULTIPLE
  bool wide;    ///< a request is a pointer, not an int
};
constexpr Family kFamilies[] = {
    {"Open MPI", "Open MPI", "ompi_mpi_comm_world", "ompi_mpi_byte", "ompi_mpi_errors_return", 0, 0, 0, 3, true},
    {"MPICH", "MPICH", nullptr, nullptr, nullptr, 0x44000000, 0x4c00010d, 0x54000001, 3, false},
};
constexpr Family kStandard = {"the standard ABI", "", nullptr, nullptr, nullptr, 0x101, 0x247, 0x143, 4096, true};

constexpr const char *kLibraries[] = {"libmpi.so.40", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0",
                                      "libmpi.so.12"};

union Request {
  uintptr_t wide;
  int narrow;
};

struct Mpi {
  void *library;
  Family family;
  uintptr_t world, byte;
  bool ours; ///< MPI was not initialized before
  bool stopped;
  char name[120];
  int (*initThread)(int *, char ***, int, int *);
  int (*initialized)(int *);
  int (*finalize)();
  int (*version)(char *, int *);
  int (*rank)(uintptr_t, int *);
  int (*size)(uintptr_t, int *);
  int (*dup)(uintptr_t, void *);
  int (*setErrors)(uintptr_t, uintptr_t);
  int (*send)(const void *, int, uintptr_t, int, int, uintptr_t, void *);
  int (*receive)(void *, int, uintptr_t, int, int, uintptr_t, void *);
  int (*test)(void *, int *, void *);
  int (*errorText)(int, char *, int *);
};

struct {
  const char *name;
  size_t at;
} constexpr kFunctions[] = {
    {"MPI_Init_thread", offsetof(Mpi, initThread)},
    {"MPI_Initialized", offsetof(Mpi, initialized)},
    {"MPI_Finalize", offsetof(Mpi, finalize)},
    {"MPI_Get_library_version", offsetof(Mpi, version)},
    {"MPI_Comm_rank", offsetof(Mpi, rank)},
    {"MPI_Comm_size", offsetof(Mpi, size)},
    {"MPI_Comm_dup", offsetof(Mpi, dup)},
    {"MPI_Comm_set_errhandler", offsetof(Mpi, setErrors)},
    {"MPI_Isend", offsetof(Mpi, send)},
    {"MPI_Irecv", offsetof(Mpi, receive)},
    {"MPI_Test", offsetof(Mpi, test)},
    {"MPI_Error_string", offsetof(Mpi, errorText)},
};

constexpr uint64_t kPiece = uint64_t(1) << 30; ///< a count of MPI is an int

Status failed(Mpi &m, const char *what, int code, astra_diag *diag) {
  char text[1024] = "";
  int length = 0;
  m.errorText(code, text, &length);
  return fail(diag, ASTRA_PEER_LOST, "%s: %s: %.300s", m.name, what, text);
}

Status exchange(void *self, const astra_transfer *sends, uint32_t numSends, const astra_transfer *receives,
                uint32_t numReceives, int32_t timeout, int32_t *peer, astra_diag *diag) {
  auto &m = *static_cast<Mpi *>(self);
  struct Pending {
    Request request;
    int32_t peer;
  };
  List<Pending> all;
  auto post = [&](const astra_transfer &t, bool out) -> Status {
    uint64_t at = 0;
    do {
      uint64_t some = t.bytes - at < kPiece ? t.bytes - at : kPiece;
      Pending p{{0}, t.peer};
      char *data = static_cast<char *>(t.data) + at;
      int code = out ? m.send(data, int(some), m.byte, t.peer, 0, m.world, &p.request)
                     : m.receive(data, int(some), m.byte, t.peer, 0, m.world, &p.request);
      if (code) return *peer = t.peer, failed(m, out ? "MPI_Isend" : "MPI_Irecv", code, diag);
      all.add(p);
      if (all.failed) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the messages");
      at += some;
    } while (at < t.bytes);
    return ASTRA_OK;
  };
  for (uint32_t i = 0; i < numReceives; i++)
    if (Status s = post(receives[i], false)) return s;
  for (uint32_t i = 0; i < numSends; i++)
    if (Status s = post(sends[i], true)) return s;

  uint64_t deadline = milliseconds() + uint64_t(timeout);
  alignas(16) char status[128]; // MPI_Status of any family
  for (size_t left = all.size(), idle = 0; left;) {
    bool moved = false;
    for (size_t i = 0; i < left;) {
      int done = 0;
      int code = m.test(&all[i].request, &done, status);
      if (code) return *peer = all[i].peer, failed(m, "MPI_Test", code, diag);
      if (!done) {
        ++i;
        continue;
      }
      all[i] = all[--left];
      moved = true;
    }
    if (moved)
      idle = 0, deadline = milliseconds() + uint64_t(timeout);
    else if (++idle % 64 == 0)
      sched_yield();
    if (idle && idle % 256 == 0 && milliseconds() > deadline)
      return *peer = all[0].peer, fail(diag, ASTRA_PEER_LOST, "rank %d has not moved for %d ms", all[0].peer, timeout);
  }
  return ASTRA_OK;
}

/// MPI has no word for this: the others see that this rank does not move any more.
void stop(void *self) { static_cast<Mpi *>(self)->stopped = true; }

/// After a failure MPI_Finalize would wait for whoever is lost: the launcher ends the job.
void close(void *self) {
  auto *m = static_cast<Mpi *>(self);
  if (m->ours && !m->stopped) m->finalize();
  free(m); // the library stays open: MPI cannot be initialized twice
}

#if defined(ASTRA_RT_NO_LOADER)
void *openLibrary(const char *, astra_diag *diag) {
  fail(diag, ASTRA_UNSUPPORTED, "this program is linked statically and opens no MPI library");
  return nullptr;
}
#else
void *openLibrary(const char *path, astra_diag *diag) {
  // RTLD_GLOBAL: Open MPI opens parts of itself, which look for its symbols.
  if (path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) fail(diag, ASTRA_IO, "no MPI library could be opened: %.300s", dlerror());
    return library;
  }
  // One that the program has already comes first; then the launcher's own.
  for (const char *name : kLibraries)
    if (void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD)) return library;
  bool openMpi = getenv("OMPI_COMM_WORLD_RANK");
  for (const char *name : kLibraries) {
    bool theirs = !strcmp(name, "libmpi.so.40");
    if (theirs != openMpi) continue;
    if (void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  fail(diag, ASTRA_IO, "there is no MPI library of the launcher's kind (%s); give the engine as mpi:PATH",
       openMpi ? "libmpi.so.40" : "libmpich.so.12, libmpi_abi.so.1");
  return nullptr;
}
#endif

bool findFamily(Mpi &m) {
  char text[8192 + 1] = "";
  int length = 0;
  m.version(text, &length);
  m.family = kStandard;
  // MPICH's library of the standard ABI says that it is MPICH: what tells it apart is what it has beside the functions.
  bool standard = dlsym(m.library, "MPI_Abi_get_version") && !dlsym(m.library, "ompi_mpi_comm_world") &&
                  !dlsym(m.library, "MPIR_Process_lock");
  Dl_info info;
  if (standard && dladdr(dlsym(m.library, "MPI_Init_thread"), &info) && info.dli_fname)
    standard = strstr(info.dli_fname, "_abi") != nullptr;
  if (!standard) {
    bool known = false;
    for (const Family &f : kFamilies)
      if (strstr(text, f.in)) m.family = f, known = true;
    if (!known) return false;
  }
  // The first line up to its first comma, with one space where there are several.
  char *to = text;
  for (const char *from = text; *from && *from != '\n' && *from != ',' && to - text < 60; from++) {
    bool space = *from == ' ' || *from == '\t';
    if (!space || (to > text && to[-1] != ' ')) *to++ = space ? ' ' : *from;
  }
  *to = 0;
  snprintf(m.name, sizeof(m.name), "mpi (%.60s%s)", text, standard ? ", standard ABI" : "");
  return true;
}

} // namespace

Status astra::ranks::openMpi(astra_engine *out, const char *path, astra_diag *diag) {
  void *library = openLibrary(path, diag);
  if (!library) return diag ? diag->status : Status(ASTRA_IO);
  auto *m = static_cast<Mpi *>(calloc(1, sizeof(Mpi)));
  if (!m) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the engine");
  m->library = library;
  for (auto &row : kFunctions) {
    void *function = dlsym(library, row.name);
    if (!function) return free(m), fail(diag, ASTRA_UNSUPPORTED, "the MPI library lacks %s: it is too old", row.name);
    memcpy(reinterpret_cast<char *>(m) + row.at, &function, sizeof(function));
  }
  if (!findFamily(*m))
    return free(m), fail(diag, ASTRA_UNSUPPORTED,
                         "the MPI library is of no family that is known: Open MPI, MPICH, the "
                         "standard ABI");
  int before = 0, provided = 0;
  m->initialized(&before);
  m->ours = !before;
  if (m->ours && m->initThread(nullptr, nullptr, m->family.multiple, &provided))
    return free(m), fail(diag, ASTRA_IO, "MPI_Init_thread failed");
  auto handle = [&](const char *symbol, uintptr_t number) {
    return symbol ? reinterpret_cast<uintptr_t>(dlsym(library, symbol)) : number;
  };
  uintptr_t world = handle(m->family.world, m->family.worldNumber);
  uintptr_t errors = handle(m->family.errorsReturn, m->family.errorsReturnNumber);
  m->byte = handle(m->family.byte, m->family.byteNumber);
  Request own{0};
  int rank = 0, size = 0;
  bool good = world && errors && m->byte && !m->setErrors(world, errors) && !m->dup(world, &own);
  m->world = m->family.wide ? own.wide : uintptr_t(unsigned(own.narrow));
  good = good && !m->setErrors(m->world, errors) && !m->rank(m->world, &rank) && !m->size(m->world, &size);
  if (!good) {
    fail(diag, ASTRA_IO, "%s refuses to begin", m->name);
    return free(m), ASTRA_IO;
  }
  *out = {sizeof(astra_engine), m, m->name, rank, size, exchange, stop, close, nullptr, nullptr};
  return ASTRA_OK;
}
