//===- Ranks.h: this process among the ranks of a job ----------------------===//
// Takes:    a module that is being made.
// Gives:    its functions `job_join`, `job_leave`, `job_barrier`, `job_gather`, `job_sum`, `job_counters`, `mesh`,
//           and the type `Mesh`, close to astra/ranks.h.
// Keeps:    one job a process. Collectives go one at a time, whatever thread or module they are of. When the process
//           has left, what was loaded for the job is refused.
#pragma once

#include "Handles.h"

namespace astra::python {

/// False with an exception.
bool addRanks(PyObject *module);

} // namespace astra::python
