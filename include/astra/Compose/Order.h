//===- Order.h: sorting, selection, running folds --------------------------===//
// Keeps:    a sort is stable, a NaN greatest, -0 below +0 (N9).
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

// ---- the first of an axis

struct FirstOfAxis {
  UOpRef values = nullptr, indices = nullptr; // indices: i64, along the axis
};
/// The k greatest or least elements along an axis, in order; k is a symbolic integer. `within`: k is no more than the
/// axis has, whatever bounds show. x is of a real type.
FirstOfAxis topK(Composer &b, UOpRef x, UOpRef k, int64_t axis, bool largest = true, bool within = false);
/// The same for a k that is data, a tensor of one integer: a data dim, within the axis, else the nearest number that
/// is.
FirstOfAxis topKOfData(Composer &b, UOpRef x, UOpRef k, int64_t axis, bool largest = true);

// ---- the order of an axis

struct SortKey {
  UOpRef of;
  bool descending = false;
};
/// The indices, i64, that sort an axis by keys of one shape, one or more: by the first one, what is equal there by the
/// next one ... Stable.
UOpRef orderBy(Composer &b, llvm::ArrayRef<SortKey> keys, int64_t axis);

// ---- running folds

struct CumulateOptions {
  bool exclusive = false; // of the elements before each, which begin with what changes nothing
  bool reverse = false;   // from the end
};
/// Running sums, products, maxima or minima along an axis, of x's type.
UOpRef cumulate(Composer &b, CumulateKind kind, UOpRef x, int64_t axis, const CumulateOptions &options);

/// Running maxima or minima along an axis, and where the last element that equals each stands.
FirstOfAxis runningExtreme(Composer &b, UOpRef x, int64_t axis, bool greatest);

// ---- results whose size the data decide: a dim bounded by what there is to choose from, its value reported by the run

/// Rows of x along axis 0 where the mask [n] is true, in their order; their number is a data dim.
UOpRef compact(Composer &b, UOpRef x, UOpRef mask);
/// Elements along the axis, or of x flattened, where the mask is true; a mask shorter than the axis leaves the rest
/// out. One that is known gives a constant extent.
UOpRef compress(Composer &b, UOpRef x, UOpRef mask, std::optional<int64_t> axis);
/// The coordinates, i64 [rank, count], of the elements that are not 0, row-major; of a scalar, [1, count].
UOpRef nonZero(Composer &b, UOpRef x);

struct Unique {
  UOpRef values = nullptr;
  UOpRef first = nullptr;  // i64: where each stands first in x
  UOpRef group = nullptr;  // of each row of x, the number of its value
  UOpRef counts = nullptr; // how often each stands in x
};
/// Elements along an axis, or of x flattened, that equal no earlier one: in ascending order (complex ones by their real
/// parts first), or that of x. A NaN equals a NaN, or nothing.
Unique unique(Composer &b, UOpRef x, std::optional<int64_t> axis, bool ascending = true, bool nansAreEqual = true);

/// An i64 for each element of integers or floats, ordered as the elements are (-0 below +0, NaNs equal and greatest):
/// an argsort of the keys is one of the elements.
UOpRef sortKey(Composer &b, UOpRef x);

/// A step of a bitonic merge. x is [2, m, 2, d]: keys and, behind them, places, of m pairs of halves. Of each two
/// elements at one place of either half the lesser one (the key first, then the place) goes to the first half.
UOpRef merged(Composer &b, UOpRef x);

// ---- search

/// For each value where in `sorted`, ascending [n], it belongs, i64: behind what is less, or, `right`, behind what is
/// not greater. Of sorted rows [.., n] each is for its own row of values [.., m]. A binary search of as many steps as n
/// has bits; a NaN is greatest.
UOpRef searchSorted(Composer &b, UOpRef sorted, UOpRef values, bool right);
/// Whether each element of x is in y, of one type: y sorted and searched. A NaN is in nothing.
UOpRef isIn(Composer &b, UOpRef x, UOpRef y);

} // namespace astra::compose
