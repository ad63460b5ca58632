//===- IndexSets.h: whether strided views share memory --------------------===//
// Takes:    resolved views.
// Gives:    an exact answer about the sets of bytes that they touch, or that none was found within the bound on work.
// Keeps:    no memory; at most kMostSteps steps a question.
// Does not: look at what is in the memory.
#pragma once

#include "Tensor.h"
#include "astra/tensor.h"

namespace astra::rt {

enum class Meeting : uint8_t { No, Yes, Unknown };

inline constexpr uint32_t kMostSteps = ASTRA_PARTS_MOST_STEPS;

/// Whether two views touch a common byte.
Meeting meet(const View &a, const View &b);
/// Whether two indices of one view lead to the same element.
Meeting meetsItself(const View &v);

/// Refuses a view that cannot be written: one that holds an element twice. `what` is "output", "the view", ...
Status checkWritable(const View &v, const char *what, const char *name, astra_diag *diag);

} // namespace astra::rt
