//===- OpsSelection.cpp: results whose size the data decide ----------------===//
// Takes:    nodes that keep the elements that a mask or an equality names.
// Gives:    `compact` UOps over a data dim: bounded by what there is to choose from, its value reported by the run.
// Keeps:    the order of the input, or ascending order by a stable sort.
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

UOpRef compact(Node &n, UOpRef x, UOpRef mask) {
  if (!x || !mask || n.failed()) return nullptr;
  UOpRef count = n.reshape(n.reduce(ReduceKind::Sum, n.cast(mask, DType::I64), {0}), {});
  return n.make(Op::Compact, {x, mask, n.make(Op::Extent, {count}, {0, mask->shape[0]->hi})});
}

namespace {

/// The permutation that brings an axis to the front; and back.
Ints toFront(int64_t axis, int64_t rank, bool back) {
  Ints perm = {axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) perm.push_back(i);
  if (!back) return perm;
  Ints inverse(rank);
  for (auto [to, from] : llvm::enumerate(perm)) inverse[from] = to;
  return inverse;
}

/// x with the attribute's axis in front, or flattened; the axis, or nothing.
std::optional<int64_t> axisFirst(Node &n, UOpRef &x) {
  if (!n.hasAttr("axis")) {
    x = n.reshape(x, {idxProduct(n.c, x->shape)});
    return std::nullopt;
  }
  int64_t axis = n.axis(n.intAttr("axis", 0), x->rank());
  if (!n.failed()) x = n.permute(x, toFront(axis, x->rank(), false));
  return axis;
}

/// A mask shorter than the axis leaves the rest out. One that is known while importing gives a constant extent.
void compress(Node &n) {
  UOpRef x = n.in(0), mask = n.in(1);
  if (!n.requireRank(x, 1) || !n.requireRank(mask, 1, 1)) return;
  std::optional<int64_t> axis = axisFirst(n, x);
  if (n.failed()) return;
  const std::vector<UOpRef> *known = n.elements(mask);
  if (known && llvm::all_of(*known, [](UOpRef v) { return v->constIndex().has_value(); })) {
    Payload chosen{DType::I64, {0}, {}};
    for (auto [i, keep] : llvm::enumerate(*known))
      if (int64_t at = i; keep->constIndex() != 0) {
        const auto *bytes = reinterpret_cast<const uint8_t *>(&at);
        chosen.bytes.insert(chosen.bytes.end(), bytes, bytes + 8);
        ++chosen.dims[0];
      }
    if (int64_t(known->size()) > x->shape[0]->lo)
      n.fail("the condition has " + llvm::Twine(known->size()) + " elements, the axis " + dimsText(x->shape[0]));
    x = n.failed() ? nullptr : n.make(Op::Gather, {x, n.parameter(std::move(chosen))}, {0});
  } else {
    Dims size(x->shape.begin(), x->shape.end());
    size[0] = mask->shape[0];
    x = compact(n, n.shrink(x, Dims(x->rank(), n.c.index(0)), size), mask);
  }
  n.give(x && axis ? n.permute(x, toFront(*axis, x->rank(), true)) : x);
}

/// The coordinates of the elements that are not 0: one row for each axis (of a scalar: one).
void nonZero(Node &n) {
  UOpRef x = n.in(0);
  if (!x) return;
  if (x->rank() == 0) x = n.unsqueeze(x, {0});
  UOpRef mask = x->dtype == DType::Bool ? x : n.bin(Op::Ne, x, 0.0), count = idxProduct(n.c, x->shape);
  if (n.failed()) return;
  UOpRef flat = compact(n, n.iota(DType::I64, {count}, 0), n.reshape(mask, {count}));
  llvm::SmallVector<UOpRef, 4> rows(x->rank());
  for (unsigned i = x->rank(); i-- > 0 && flat;) {
    UOpRef extent = n.fromIndex(x->shape[i], DType::I64);
    rows[i] = n.unsqueeze(i ? n.bin(Op::Mod, flat, extent) : flat, {0});
    if (i) flat = n.bin(Op::FloorDiv, flat, extent);
  }
  if (!n.failed()) n.give(n.concat(rows, 0));
}

// ---- unique

UOpRef sorted(Node &n, UOpRef x) { return n.make(Op::ArgSort, {x}, {0, /*descending=*/0}); }

/// Rows [n, m] in lexicographic order: stable sorts by each column, the last column first.
UOpRef orderOfRows(Node &n, UOpRef rows) {
  if (!rows || n.failed()) return nullptr;
  UOpRef height = rows->shape[0], width = rows->shape[1];
  if (width->constIndex() == 1) return sorted(n, n.reshape(rows, {height}));
  for (UOpRef extent : {height, width})
    if (isDataDim(extent))
      return n.unsupported("unique rows of " + dimsText(rows->shape) +
                           ", whose number depends on data, are not supported");
  UOpRef columns = n.make(Op::Flip, {n.permute(rows, {1, 0})}, {0}), all = n.iota(DType::I64, {height}, 0);
  UOpRef order = n.b.arg(0, DType::I64, {height}), column = n.b.arg(1, rows->dtype, {height});
  UOpRef next = n.make(Op::Gather, {order, sorted(n, n.make(Op::Gather, {column, order}, {0}))}, {0});
  if (!next || !columns || !all) return nullptr;
  UOpRef body = n.c.make(Op::Func, {next}, {2});
  UOpRef scan = n.c.make(Op::Scan, {all, columns, width}, {1, 1}, {}, DType::Void, {body});
  return n.make(Op::Proj, {scan, height}, {0}, DType::I64);
}

/// Elements along axis 0 (rows, or numbers) that equal no earlier one. Equal: as numbers, and a NaN equals a NaN.
void unique(Node &n) {
  UOpRef x = n.in(0);
  bool ascending = n.intAttr("sorted", 1) != 0;
  if (!n.requireRank(x, n.hasAttr("axis") ? 1 : 0)) return;
  std::optional<int64_t> axis = axisFirst(n, x);
  if (n.failed()) return;
  UOpRef count = x->shape[0], width = idxProduct(n.c, x->shape.drop_front()), one = n.c.index(1), zero = n.c.index(0);
  UOpRef number = n.fromIndex(count, DType::I64), ordinal = n.iota(DType::I64, {count}, 0);
  UOpRef rows = n.reshape(x, {count, width});
  if (isFloat(x->dtype)) rows = n.bin(Op::Add, rows, 0.0); // -0 sorts as 0
  UOpRef order = orderOfRows(n, rows), inOrder = n.make(Op::Gather, {rows, order}, {0});
  if (!inOrder) return;

  // A group of equal rows begins where a row differs from the one before it.
  UOpRef before = n.shrink(n.pad(inOrder, {one, zero}, {zero, zero}, 0), {zero, zero}, {count, width});
  UOpRef differs = n.bin(Op::Ne, inOrder, before);
  if (isFloat(x->dtype)) {
    UOpRef bothNaN = n.bin(Op::And, n.bin(Op::Ne, inOrder, inOrder), n.bin(Op::Ne, before, before));
    differs = n.bin(Op::And, differs, n.un(Op::Not, bothNaN));
  }
  UOpRef begins = n.reshape(n.reduce(ReduceKind::Or, differs, {1}), {count});
  begins = n.bin(Op::Or, begins, n.bin(Op::Eq, ordinal, 0.0));
  auto running = [&](UOpRef mask) { // how many are true before each, where it is true; its group's number after it
    UOpRef sum = n.make(Op::Cumulate, {n.cast(mask, DType::I64)}, {int64_t(CumulateKind::Sum), 0});
    return n.bin(Op::Sub, sum, 1);
  };
  auto at = [&](UOpRef table, UOpRef index) { return n.make(Op::Gather, {table, index}, {0}); };
  UOpRef first = compact(n, order, begins), start = compact(n, ordinal, begins), place = sorted(n, order);
  UOpRef group = at(running(begins), place); // of each row of x
  if (!first || !start || n.failed()) return;
  UOpRef groups = first->shape[0], next = n.iota(DType::I64, {groups}, 0);
  UOpRef isLast = n.bin(Op::Eq, next, n.bin(Op::Sub, n.fromIndex(groups, DType::I64), 1));
  UOpRef sizes = n.bin(Op::Sub, n.select(isLast, number, at(start, n.bin(Op::Add, next, 1))), start);
  if (!ascending) { // the groups by their first rows: those rows in the order of x
    UOpRef firstOfRow = at(first, group), isFirst = n.bin(Op::Eq, firstOfRow, ordinal);
    sizes = at(sizes, compact(n, group, isFirst));
    group = at(running(isFirst), firstOfRow);
    first = compact(n, ordinal, isFirst);
  }
  UOpRef y = at(x, first);
  if (!y) return;
  n.give(0, axis ? n.permute(y, toFront(*axis, y->rank(), true)) : y);
  if (n.wants(1)) n.give(1, first);
  if (n.wants(2)) n.give(2, group);
  if (n.wants(3)) n.give(3, sizes);
}

constexpr const char *reported = "the size of the result is a dim whose value the run reports";

constexpr Row rows[] = {
    {"Compress", 9, latest, 2, 2, compress, realTypes | boolType | complexTypes, reported},
    {"NonZero", 9, latest, 1, 1, nonZero, realTypes | boolType, reported},
    {"Unique", 11, latest, 1, 1, unique, realTypes | boolType, reported},
};

} // namespace

llvm::ArrayRef<Row> selectionRows() { return rows; }

} // namespace astra::onnx
