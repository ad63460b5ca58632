//===- Movement.h: reshape, permute, expand, pad, shrink, flip, window -----===//
// Chains of one kind merge, what moves nothing goes, expand moves outward (what is under it is computed once).
#pragma once
#include "../Procedures.h"

namespace astra::rules {

// clang-format off
inline constexpr Rule movement[] = {
  {"reshape-of-reshape", {Op::Reshape}, reshapeOfReshape, Anything, Proof::Points, "reshape(reshape(x)) -> reshape(x)"},
  {"permute-of-permute", {Op::Permute}, permuteOfPermute, Anything, Proof::Points, "permute(permute(x)) -> permute(x)"},
  {"expand-of-expand",   {Op::Expand}, expandOfExpand, Anything, Proof::Points, "expand(expand(x)) -> expand(x)"},
  {"pad-of-pad",         {Op::Pad}, padOfPad, Anything, Proof::Points, "pad(pad(x)) -> pad(x), of one value"},
  {"shrink-of-shrink",   {Op::Shrink}, shrinkOfShrink, Anything, Proof::Points, "shrink(shrink(x)) -> shrink(x)"},
  {"flip-of-flip",       {Op::Flip}, flipOfFlip, Anything, Proof::Points, "flip(flip(x)) -> flip(x) of the axes that one of them reverses"},
  {"movement-of-nothing", {Op::Reshape, Op::Permute, Op::Expand, Op::Pad, Op::Shrink, Op::Flip}, movementOfNothing, Anything, Proof::Points,
                         "a movement op that moves nothing -> its source"},
  {"shrink-of-pad",      {Op::Shrink}, shrinkOfPad, Anything, Proof::Points, "shrink(pad(x)) -> shrink(x), where the window lies within x"},
  {"flip-of-ones",       {Op::Flip}, flipOfOnes, Anything, Proof::Points, "flip(x) -> flip(x) without the axes of extent 1"},
  {"expand-outward",     {Op::Permute, Op::Shrink, Op::Flip}, expandOutward, Anything, Proof::Points, "permute, shrink or flip of expand(x) -> expand(permute, shrink or flip of x)"},
  {"movement-of-splat",  {Op::Reshape, Op::Permute, Op::Expand, Op::Pad, Op::Shrink, Op::Flip, Op::Window}, movementOfSplat, Anything, Proof::Points,
                         "movement of a tensor of equal literals (pad: of its value) -> the literal expanded"},
  {"fold-of-one",        {Op::Reduce, Op::Cumulate}, foldOfOne, Ordered, Proof::Points, "reduce or cumulate along axes of extent 1 -> reshape"},
};
// clang-format on

} // namespace astra::rules
