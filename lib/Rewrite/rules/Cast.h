//===- Cast.h: cast, bitcast, and what counts as an integer ----------------===//
#pragma once
#include "../Procedures.h"

namespace astra::rules {

// clang-format off
inline constexpr Rule casts[] = {
  {"cast-same",          {Op::Cast, Op::Bitcast}, castSame, Anything, Proof::Points, "a cast or bitcast to the type that x has -> x"},
  {"cast-of-cast",       {Op::Cast}, castOfCast, Anything, Proof::Points, "cast(cast(x)) -> cast(x), where the type between holds every value of x (and no float between saturates what would wrap), or all are integers and it is no narrower than the last"},
  {"bitcast-of-bitcast", {Op::Bitcast}, bitcastOfBitcast, Anything, Proof::Points, "bitcast(bitcast(x)) -> bitcast(x), where an integer type stands between (a float there would make its NaNs canonical)"},
  {"cast-of-iota",       {Op::Cast}, castOfIota, Numbers, Proof::Points, "cast of a 64-bit iota or from_index -> the iota or from_index of the type"},
  {"round-of-integer",   {Op::Floor, Op::Ceil, Op::Trunc, Op::RoundEven}, roundOfInteger, Floats, Proof::Points, "floor, ceil, trunc or roundeven of an integer cast to a float -> the cast"},
};
// clang-format on

} // namespace astra::rules
