//===- JobName.h: what the shared memory of a job is called ------------------===//
// Takes:    what the launcher calls the job, in one or two parts.
// Gives:    a name for shm_open, which jobs of other users do not have.
// Keeps:    ranks and astra-launch, which removes what a killed rank has left, make the same name of the same job.
#pragma once
#include <stdio.h>
#include <unistd.h>

namespace astra::ranks {

using JobName = char[128];

/// Parts may be null.
inline void nameJob(JobName &out, const char *first, const char *second) {
  snprintf(out, sizeof(out), "/astra-%u-%.40s-%.40s", unsigned(getuid()), first ? first : "", second ? second : "");
  for (char *c = out + 1; *c; c++)
    if (*c == '/') *c = '-';
}

} // namespace astra::ranks
