//===- Validity.h: gates of loads and stores; literals ---------------------===//
#pragma once
#include "../Procedures.h"

namespace astra::rules {

// clang-format off
inline constexpr Rule validity[] = {
  {"load-gate",          {Op::Load}, loadGate, Anything, Proof::Points, "a load whose gate is true -> without it; false -> 0"},
  {"store-gate",         {Op::Store}, storeGate, Anything, Proof::Points, "a store whose gate is true -> without it"},
  {"sink-of-nothing",    {Op::Sink}, sinkOfNothing, Anything, Proof::Points, "a sink -> without the stores whose gate is false"},
  {"select-of-gated",    {Op::Select}, selectOfGated, Anything, Proof::Points, "select(p, load gated by p, 0) -> the load"},
};
inline constexpr Rule folding[] = {
  {"fold-literals",      {}, foldLiterals, Ordered, Proof::Points, "an elementwise op of literals -> the literal, by the evaluator"},
};
// clang-format on

} // namespace astra::rules
