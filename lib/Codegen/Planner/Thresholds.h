//===- Thresholds.h: the rows of Thresholds.def -----------------------------===//
#pragma once
#include "astra/Codegen/Target.h"
#include <type_traits>

namespace astra {

namespace threshold {
#define THRESHOLD(name, value, unit, why)                                                                              \
  static_assert(unit[0] && why[0]);                                                                                    \
  inline constexpr std::conditional_t<std::is_integral_v<decltype(value)>, int64_t, double> name = value;
#include "Thresholds.def"
} // namespace threshold

/// So many eighths of a core's L2.
inline uint64_t partOfL2(const Executor &t, int64_t eighths) { return t.l2Bytes * eighths / 8; }

} // namespace astra
