//===- Elementwise.cpp: broadcasting folded into a few forms ---------------===//
// Takes:    operands of a native type with any strides, which broadcast to the result's shape.
// Gives:    calls of one form: all of one shape; or a column or a row beside a matrix, of what is repeated along inner
//           axes or along outer ones. Anything else is written out first, and has one shape then.
// Keeps:    which axes an operand is repeated along is all that counts: neighbours that agree are one axis.
#include "Ops.h"

namespace astra::ops {

namespace {

/// Of three operands in bits: those that are not repeated along an axis.
struct Axis {
  int64_t extent;
  uint32_t present;
};

/// The axes of the result, fused. Axes of one element say nothing.
int32_t fuse(const View *in, uint32_t count, const View &out, Axis *axes) {
  int32_t kept = 0;
  for (int32_t i = 0; i < out.ndim; i++) {
    if (out.shape[i] == 1) continue;
    uint32_t present = 0;
    for (uint32_t k = 0; k < count; k++) {
      int32_t at = i - (out.ndim - in[k].ndim);
      if (at >= 0 && in[k].shape[at] == out.shape[i]) present |= 1u << k;
    }
    if (kept && axes[kept - 1].present == present)
      axes[kept - 1].extent *= out.shape[i];
    else
      axes[kept++] = {out.shape[i], present};
  }
  return kept;
}

/// A matrix [rows, columns] of which operand `small` is a row or a column: as many calls as the dims' limits want.
Status matrix(Work &w, const astra_entry *entry, const View *in, uint32_t count, uint32_t small, bool isRow,
              int64_t rows, int64_t columns, const View &out) {
  const int64_t mostRows = mostOf('p'), mostColumns = mostOf('q');
  bool isWhole = columns <= mostColumns;
  for (int64_t r = 0, height; r < rows || r == 0; r += height) {
    height = !isWhole ? 1 : rows - r < mostRows ? rows - r : mostRows;
    for (int64_t c = 0, width; c < columns || c == 0; c += width) {
      width = columns - c < mostColumns ? columns - c : mostColumns;
      View views[3];
      auto piece = [&](const View &v) { // row-major: whole rows, or a part of one
        View flat = part(reshaped(v, {rows * columns}), 0, r * columns + c, height * width);
        return reshaped(flat, {height, width});
      };
      for (uint32_t k = 0; k < count; k++)
        views[k] = k != small ? piece(in[k])
                   : isRow    ? part(reshaped(in[k], {columns}), 0, c, width)
                              : part(reshaped(in[k], {rows}), 0, r, height);
      if (Status s = w.launch(entry, views, count, piece(out))) return s;
      if (width == 0) break;
    }
    if (height == 0) break;
  }
  return ASTRA_OK;
}

} // namespace

Status elementwise(Work &w, uint32_t row, const View *in, uint32_t count, const View &out) {
  const Row &r = kRows[row];
  int32_t native = r.kind == Kind::Select ? in[1].dtype : in[0].dtype;
  const astra_entry *const *entries = w.ops->entries[row][native];
  View views[3];
  Temporary packed[3], written[3];
  for (uint32_t k = 0; k < count; k++)
    if (Status s = dense(w, in[k], packed[k], views[k])) return s;

  Axis axes[ASTRA_MAX_RANK];
  int32_t rank = fuse(views, count, out, axes);
  uint32_t all = (1u << count) - 1;
  // One operand that is repeated, along one axis (of a scalar: along the only one).
  if (count > 1 && (rank == 1 || rank == 2)) {
    uint32_t outer = rank == 2 ? axes[0].present : all, inner = axes[rank - 1].present;
    if (rank == 1) outer = all, inner = axes[0].present;
    bool isRow = inner == all;
    uint32_t missing = all & ~(isRow ? outer : inner), full = isRow ? inner : outer;
    int64_t rows = rank == 2 ? axes[0].extent : 1, columns = axes[rank - 1].extent;
    if (full == all && missing && !(missing & (missing - 1))) {
      uint32_t small = missing == 1 ? 0 : missing == 2 ? 1 : 2, form = 0;
      if (r.kind == Kind::Select)
        form = isRow || small == 0 ? form::Flat : small == 2 ? form::SelectRight : form::SelectLeft;
      else if (r.kind != Kind::Fma)
        form = small == 1 ? (isRow ? form::RightRow : form::RightColumn) : (isRow ? form::LeftRow : form::LeftColumn);
      bool commutes = r.kind == Kind::Commuting || r.kind == Kind::PlainCommuting; // but a complex product does not
      if (small == 0 && commutes && !(only(native) & kComplex)) {
        View first = views[0];
        views[0] = views[1], views[1] = first;
        small = 1, form = isRow ? form::RightRow : form::RightColumn;
      }
      if (form && form < kMostForms && entries[form])
        return matrix(w, entries[form], views, count, small, isRow, rows, columns, out);
    }
  }
  int64_t n = elements(out);
  for (uint32_t k = 0; k < count; k++) {
    if (elements(views[k]) != n) {
      if (Status s = written[k].init(w, views[k].dtype, out.ndim, out.shape)) return s;
      if (Status s = copy(w, expanded(views[k], out.ndim, out.shape), written[k].view)) return s;
      views[k] = written[k].view;
    }
    views[k] = reshaped(views[k], {n});
  }
  return w.launch(entries[form::Flat], views, count, reshaped(out, {n}));
}

} // namespace astra::ops
