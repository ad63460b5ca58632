//===- EinsumProduct.h: the contraction of two labelled operands -----------===//
// Takes:    two operands whose axes have labels, the labels that are kept.
// Gives:    one `contract`, or an elementwise product where nothing is summed.
// Keeps:    the bits of the plain contract over all labels, the reduced ones in ascending order: labels become one only
//           where chain512 adds the same numbers in the same order.
#pragma once
#include "EinsumText.h"

namespace astra::compose {

struct Labelled {
  EinsumLabels labels; // each once
  UOpRef value;
};
/// The axes of the result are `last`, or, where it is null, the kept labels in an order that needs little movement.
Labelled einsumProduct(Composer &b, const Labelled &x, const Labelled &y, const EinsumLabels &kept,
                       const EinsumLabels *last);
/// x with its axes in another order.
Labelled reordered(Composer &b, const Labelled &x, const EinsumLabels &order);

} // namespace astra::compose
