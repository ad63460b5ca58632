//===- Thresholds.h: names of Thresholds.def --------------------------------===//
#pragma once
#include <cstdint>

namespace astra::threshold {
#define THRESHOLD(name, value, unit, why) inline constexpr int64_t name = value;
#include "Thresholds.def"
} // namespace astra::threshold
