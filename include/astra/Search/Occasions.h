//===- Occasions.h: at which extents a kernel is launched, and how often ----===//
// Takes:    a schedule.
// Gives:    for each kernel values of the dims at which an entry launches it, and how many launches a call makes.
// Keeps:    equations between dims hold, a variant is launched where its guard says so.
// Does not: run anything: what data decides is made up.
#pragma once
#include "astra/IR/Module.h"
#include "astra/Schedule/Program.h"

namespace astra {

struct Occasion {
  std::vector<int64_t> dims; // of Schedule::dims, in their order
  double launches = 0;       // of one call of each entry; 0: none was found, and dims is empty
};

/// One for each kernel of the schedule. Dims are at the geometric middle of their bounds (of 0..n that of 1..n), for
/// kernels that are not launched there at their upper bounds, then the lower ones, then between. A loop's body is
/// counted as often as the loop says, that of a while loop and each side of a condition once; routines that prepare
/// parameters are not counted.
std::vector<Occasion> findOccasions(const Module &m, const Schedule &s);

} // namespace astra
