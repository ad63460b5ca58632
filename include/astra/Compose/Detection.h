//===- Detection.h: boxes in images ----------------------------------------===//
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct BoxOperands {
  UOpRef boxes = nullptr;          // f32 [batch, n, 4]: two corners (y, x, y, x)
  UOpRef scores = nullptr;         // f32 [batch, class, n]
  UOpRef limit = nullptr;          // i64, one element: of boxes of a class; null: 0
  UOpRef overlap = nullptr;        // f32, one element: of two boxes over both together, above which one goes; null: 0
  UOpRef scoreThreshold = nullptr; // f32, one element: below it a box is none; null: there is none
  bool centred = false;            // boxes are (x, y, width, height) of their middles
};
/// The best boxes that overlap little: rows i64 (batch, class, box), batch by batch and class by class, in descending
/// order of score, the first of equal ones first. Their number is a data dim. A `while` whose trip chooses the best box
/// left in every batch and class at once and drops what overlaps it; then a `compact` of the chosen ones.
UOpRef nonMaxSuppression(Composer &b, const BoxOperands &operands);

} // namespace astra::compose
