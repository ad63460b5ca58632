//===- Launch.cpp: who started this process ---------------------------------===//
// Takes:    the environment.
// Gives:    rank, number of ranks and the name of the job, as the launcher has set them.
// Keeps:    one row a launcher; the first whose variables are there counts.
#include "Ranks.h"
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace astra::ranks;

namespace {
struct Row {
  const char *launcher, *rank, *ranks;
  const char *local;  ///< ranks of this machine; null: all
  const char *number; ///< of this one among them
  const char *key[2]; ///< what names the job; null: the launcher's process does, the parent of all ranks
  bool mpi;
};
constexpr Row kRows[] = {
    {"astra-launch", "ASTRA_RANK", "ASTRA_RANKS", nullptr, "ASTRA_RANK", {"ASTRA_JOB", nullptr}, false},
    {"Open MPI's mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     true},
    {"MPICH's mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", {nullptr, nullptr}, true},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", {"MASTER_PORT", "TORCHELASTIC_RUN_ID"}, false},
    {"srun",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_TASKS_PER_NODE",
     "SLURM_LOCALID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     false},
};

bool number(const char *text, int32_t *out) {
  char *end;
  long n = text ? strtol(text, &end, 10) : -1;
  if (!text || end == text || *end || n < 0 || n > 1 << 20) return false;
  return *out = int32_t(n), true;
}
} // namespace

/// astra-launch gives its ranks the end of a pipe, and closes the other end when one of them has failed.
bool astra::ranks::jobHasFailed() {
  int32_t fd;
  struct stat what;
  if (!number(getenv("ASTRA_JOB_FD"), &fd) || fstat(fd, &what) || !S_ISFIFO(what.st_mode)) return false;
  pollfd asked{fd, 0, 0};
  return poll(&asked, 1, 0) == 1 && asked.revents & POLLHUP;
}

Status astra::ranks::readLaunch(Launch *out, astra_diag *diag) {
  *out = {nullptr, 0, 1, 0, true, false, ""};
  for (const Row &row : kRows) {
    const char *rank = getenv(row.rank), *ranks = getenv(row.ranks), *local = row.local ? getenv(row.local) : nullptr;
    if (!rank && !ranks) continue;
    out->launcher = row.launcher;
    if (!number(rank, &out->rank) || !number(ranks, &out->ranks) || out->rank >= out->ranks)
      return fail(diag, ASTRA_INVALID_ARGUMENT, "%s: %s is '%.40s' and %s is '%.40s', which is no rank of a job",
                  row.launcher, row.rank, rank ? rank : "", row.ranks, ranks ? ranks : "");
    int32_t here;
    out->oneMachine = !row.local || (number(local, &here) && here == out->ranks);
    if (!number(getenv(row.number), &out->local)) out->local = out->oneMachine ? out->rank : -1;
    out->mpi = row.mpi;
    char parent[16];
    snprintf(parent, sizeof(parent), "%d", int(getppid()));
    const char *first = row.key[0] ? getenv(row.key[0]) : parent, *second = row.key[1] ? getenv(row.key[1]) : nullptr;
    nameJob(out->memory, first, second);
    return ASTRA_OK;
  }
  return ASTRA_OK;
}
