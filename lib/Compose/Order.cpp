//===- Order.cpp: sorting, selection, running folds ----------------------===//
// Takes:    operands that may be wrong in every way.
// Gives:    argsort, cumulate and compact UOps.
#include "astra/Compose/Order.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

// ---- the first of an axis

FirstOfAxis topK(Composer &b, UOpRef x, UOpRef k, int64_t axis, bool largest, bool within) {
  if (!b.requireRank(x, 1)) return {};
  axis = b.axis(axis, x->rank());
  UOpRef order = b.make(Op::ArgSort, {x}, {axis, largest});
  if (!order || !k || b.failed()) return {};
  UOpRef extent = x->shape[axis], slack = idxSub(b.c, extent, k);
  if (slack->hi < 0) {
    b.fail("k is " + dimsText(k) + ", the axis has " + dimsText(extent) + " elements");
    return {};
  }
  if (slack->lo < 0 && !within) {
    b.unsupported("k is " + dimsText(k) + ", and the axis may have fewer elements: " + dimsText(extent) +
                  b.hints.bound(slack, 0));
    return {};
  }
  Dims size(x->shape.begin(), x->shape.end());
  size[axis] = k;
  UOpRef first = b.shrink(b.withRoom(order, axis, k), Dims(x->rank(), b.idx(0)), size);
  return {b.make(Op::Pick, {x, first}, {axis}), first};
}

FirstOfAxis topKOfData(Composer &b, UOpRef x, UOpRef given, int64_t axis, bool largest) {
  if (!b.requireRank(x, 1) || !given) return {};
  axis = b.axis(axis, x->rank());
  if (b.failed()) return {};
  UOpRef extent = x->shape[axis];
  UOpRef k = b.bin(Op::Max, b.reshape(b.cast(given, DType::I64), {}), 0.0);
  k = b.bin(Op::Min, k, b.fromIndex(extent, DType::I64));
  return topK(b, x, b.make(Op::Extent, {k}, {0, extent->hi}), axis, largest, /*within=*/true);
}

// ---- running folds

UOpRef cumulate(Composer &b, CumulateKind kind, UOpRef x, int64_t axis, const CumulateOptions &options) {
  auto [exclusive, reverse] = options;
  UOpRef beginning = exclusive ? b.literal(x, kind == CumulateKind::Prod ? 1 : 0) : nullptr;
  if (exclusive && kind != CumulateKind::Sum && kind != CumulateKind::Prod)
    b.unsupported("running maxima and minima that leave each element out are not supported");
  if (b.failed() || !b.requireRank(x, 1)) return nullptr;
  axis = b.axis(axis, x->rank());
  auto turned = [&, reverse = reverse](UOpRef v) { return reverse && v ? b.make(Op::Flip, {v}, {axis}) : v; };
  UOpRef folded = b.make(Op::Cumulate, {turned(x)}, {int64_t(kind), axis});
  if (exclusive && folded) {
    Dims one(x->rank(), b.idx(0)), none = one, size(x->shape.begin(), x->shape.end());
    one[axis] = b.idx(1);
    folded = b.shrink(b.pad(folded, one, none, uint64_t(beginning->ints[0])), none, size);
  }
  return turned(folded);
}

/// A place is the greatest so far at which the fold is reached; once a NaN is the fold, each NaN reaches it.
FirstOfAxis runningExtreme(Composer &b, UOpRef x, int64_t axis, bool greatest) {
  UOpRef values = cumulate(b, greatest ? CumulateKind::Max : CumulateKind::Min, x, axis, {});
  if (!values || b.failed()) return {};
  axis = b.axis(axis, x->rank());
  UOpRef reached = b.bin(Op::Eq, x, values);
  if (isFloat(x->dtype))
    reached = b.bin(Op::Or, reached, b.bin(Op::And, b.bin(Op::Ne, x, x), b.bin(Op::Ne, values, values)));
  UOpRef place = b.select(reached, b.iota(DType::I64, x->shape, axis), b.b.litInt(DType::I64, 0));
  return {values, cumulate(b, CumulateKind::Max, place, axis, {})};
}

// ---- results whose size the data decide

UOpRef compact(Composer &b, UOpRef x, UOpRef mask) {
  if (!x || !mask || b.failed()) return nullptr;
  UOpRef count = b.reshape(b.reduce(ReduceKind::Sum, b.cast(mask, DType::I64), {0}), {});
  return b.make(Op::Compact, {x, mask, b.make(Op::Extent, {count}, {0, mask->shape[0]->hi})});
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

/// x with the axis in front, or flattened where there is none; the axis, counted from the front.
std::optional<int64_t> axisFirst(Composer &b, UOpRef &x, std::optional<int64_t> given) {
  if (!given) {
    x = b.reshape(x, {idxProduct(b.c, x->shape)});
    return std::nullopt;
  }
  int64_t axis = b.axis(*given, x->rank());
  if (!b.failed()) x = b.permute(x, toFront(axis, x->rank(), false));
  return axis;
}

} // namespace

UOpRef compress(Composer &b, UOpRef x, UOpRef mask, std::optional<int64_t> axis) {
  if (!b.requireRank(x, 1) || !b.requireRank(mask, 1, 1)) return nullptr;
  axis = axisFirst(b, x, axis);
  if (b.failed()) return nullptr;
  const std::vector<UOpRef> *known = b.elements(mask);
  if (known && llvm::all_of(*known, [](UOpRef v) { return v->constIndex().has_value(); })) {
    Payload chosen{DType::I64, {0}, {}};
    for (auto [i, keep] : llvm::enumerate(*known))
      if (int64_t at = i; keep->constIndex() != 0) {
        const auto *bytes = reinterpret_cast<const uint8_t *>(&at);
        chosen.bytes.insert(chosen.bytes.end(), bytes, bytes + 8);
        ++chosen.dims[0];
      }
    if (int64_t(known->size()) > x->shape[0]->lo)
      b.fail("the condition has " + llvm::Twine(known->size()) + " elements, the axis " + dimsText(x->shape[0]));
    x = b.failed() ? nullptr : b.make(Op::Gather, {x, b.constant(std::move(chosen))}, {0});
  } else {
    Dims size(x->shape.begin(), x->shape.end());
    size[0] = mask->shape[0];
    x = compact(b, b.shrink(x, Dims(x->rank(), b.idx(0)), size), mask);
  }
  return x && axis ? b.permute(x, toFront(*axis, x->rank(), true)) : x;
}

UOpRef nonZero(Composer &b, UOpRef x) {
  if (!x) return nullptr;
  if (x->rank() == 0) x = b.unsqueeze(x, {0});
  UOpRef mask = x->dtype == DType::Bool ? x : b.bin(Op::Ne, x, 0.0), count = idxProduct(b.c, x->shape);
  if (b.failed()) return nullptr;
  UOpRef flat = compact(b, b.iota(DType::I64, {count}, 0), b.reshape(mask, {count}));
  llvm::SmallVector<UOpRef, 4> rows(x->rank());
  for (unsigned i = x->rank(); i-- > 0 && flat;) {
    UOpRef extent = b.fromIndex(x->shape[i], DType::I64);
    rows[i] = b.unsqueeze(i ? b.bin(Op::Mod, flat, extent) : flat, {0});
    if (i) flat = b.bin(Op::FloorDiv, flat, extent);
  }
  return b.failed() ? nullptr : b.concat(rows, 0);
}

// ---- unique

namespace {

UOpRef sorted(Composer &b, UOpRef x) { return b.make(Op::ArgSort, {x}, {0, /*descending=*/0}); }

/// Rows [n, m] in lexicographic order: stable sorts by each column, the last column first.
UOpRef orderOfRows(Composer &b, UOpRef rows) {
  if (!rows || b.failed()) return nullptr;
  UOpRef height = rows->shape[0], width = rows->shape[1];
  if (width->constIndex() == 1) return sorted(b, b.reshape(rows, {height}));
  for (UOpRef extent : {height, width})
    if (isDataDim(extent))
      return b.unsupported("unique rows of " + dimsText(rows->shape) +
                           ", whose number depends on data, are not supported");
  UOpRef columns = b.make(Op::Flip, {b.permute(rows, {1, 0})}, {0}), all = b.iota(DType::I64, {height}, 0);
  UOpRef order = b.b.arg(0, DType::I64, {height}), column = b.b.arg(1, rows->dtype, {height});
  UOpRef next = b.make(Op::Gather, {order, sorted(b, b.make(Op::Gather, {column, order}, {0}))}, {0});
  if (!next || !columns || !all) return nullptr;
  UOpRef body = b.c.make(Op::Func, {next}, {2});
  UOpRef scan = b.c.make(Op::Scan, {all, columns, width}, {1, 1}, {}, DType::Void, {body});
  return b.make(Op::Proj, {scan, height}, {0}, DType::I64);
}

} // namespace

/// In rows along axis 0.
Unique unique(Composer &b, UOpRef x, std::optional<int64_t> axis, bool ascending, bool nansAreEqual) {
  if (!b.requireRank(x, axis ? 1 : 0)) return {};
  axis = axisFirst(b, x, axis);
  if (b.failed()) return {};
  UOpRef count = x->shape[0], width = idxProduct(b.c, x->shape.drop_front()), one = b.idx(1), zero = b.idx(0);
  UOpRef number = b.fromIndex(count, DType::I64), ordinal = b.iota(DType::I64, {count}, 0);
  UOpRef rows = b.reshape(x, {count, width});
  if (isComplex(x->dtype)) {
    rows = b.concat({b.un(Op::Real, rows), b.un(Op::Imag, rows)}, 1);
    width = idxMul(b.c, width, b.idx(2));
  }
  if (!rows) return {};
  if (isFloat(rows->dtype)) rows = b.bin(Op::Add, rows, 0.0); // -0 sorts as 0
  UOpRef order = orderOfRows(b, rows), inOrder = b.make(Op::Gather, {rows, order}, {0});
  if (!inOrder) return {};

  // A group of equal rows begins where a row differs from the one before it.
  UOpRef before = b.shrink(b.pad(inOrder, {one, zero}, {zero, zero}, 0), {zero, zero}, {count, width});
  UOpRef differs = b.bin(Op::Ne, inOrder, before);
  if (isFloat(rows->dtype) && nansAreEqual) {
    UOpRef bothNaN = b.bin(Op::And, b.bin(Op::Ne, inOrder, inOrder), b.bin(Op::Ne, before, before));
    differs = b.bin(Op::And, differs, b.un(Op::Not, bothNaN));
  }
  UOpRef begins = b.reshape(b.reduce(ReduceKind::Or, differs, {1}), {count});
  begins = b.bin(Op::Or, begins, b.bin(Op::Eq, ordinal, 0.0));
  auto running = [&](UOpRef mask) { // how many are true before each, where it is true; its group's number after it
    UOpRef sum = b.make(Op::Cumulate, {b.cast(mask, DType::I64)}, {int64_t(CumulateKind::Sum), 0});
    return b.bin(Op::Sub, sum, 1);
  };
  auto at = [&](UOpRef table, UOpRef index) { return b.make(Op::Gather, {table, index}, {0}); };
  UOpRef first = compact(b, order, begins), start = compact(b, ordinal, begins), place = sorted(b, order);
  UOpRef group = at(running(begins), place); // of each row of x
  if (!first || !start || b.failed()) return {};
  UOpRef groups = first->shape[0], next = b.iota(DType::I64, {groups}, 0);
  UOpRef isLast = b.bin(Op::Eq, next, b.bin(Op::Sub, b.fromIndex(groups, DType::I64), 1));
  UOpRef sizes = b.bin(Op::Sub, b.select(isLast, number, at(start, b.bin(Op::Add, next, 1))), start);
  if (!ascending) { // the groups by their first rows: those rows in the order of x
    UOpRef firstOfRow = at(first, group), isFirst = b.bin(Op::Eq, firstOfRow, ordinal);
    sizes = at(sizes, compact(b, group, isFirst));
    group = at(running(isFirst), firstOfRow);
    first = compact(b, ordinal, isFirst);
  }
  UOpRef y = at(x, first);
  if (!y) return {};
  return {axis ? b.permute(y, toFront(*axis, y->rank(), true)) : y, first, group, sizes};
}

UOpRef sortKey(Composer &b, UOpRef x) {
  if (!x || b.failed()) return nullptr;
  if (x->dtype == DType::U64) // the sign bit counts for most
    return b.make(Op::Bitcast, {b.bin(Op::Xor, x, b.b.bits(DType::U64, uint64_t(1) << 63))}, {}, DType::I64);
  if (isInt(x->dtype)) return b.cast(x, DType::I64);
  if (!b.requireFloat(x = b.widen(x))) return nullptr;
  bool wide = x->dtype == DType::F64;
  DType t = wide ? DType::I64 : DType::I32;
  UOpRef bits = b.make(Op::Bitcast, {x}, {}, t); // a NaN is canonical, and positive
  UOpRef most = b.b.bits(t, wide ? INT64_MAX : INT32_MAX);
  UOpRef below = b.bin(Op::Lt, bits, b.literal(bits, 0));
  return b.cast(b.select(below, b.bin(Op::Xor, bits, most), bits), DType::I64);
}

UOpRef merged(Composer &b, UOpRef x) {
  if (!b.requireRank(x, 4, 4)) return nullptr;
  UOpRef first = b.part(x, 2, 0, 1), second = b.part(x, 2, 1, 1);
  if (!first || !second) return nullptr;
  auto key = [&](UOpRef half) { return b.part(half, 0, 0, 1); };
  auto place = [&](UOpRef half) { return b.part(half, 0, 1, 1); };
  UOpRef equal = b.bin(Op::Eq, key(first), key(second));
  UOpRef exchanged = b.bin(Op::Or, b.bin(Op::Lt, key(second), key(first)),
                           b.bin(Op::And, equal, b.bin(Op::Lt, place(second), place(first))));
  return b.concat({b.select(exchanged, second, first), b.select(exchanged, first, second)}, 2);
}

// ---- search

UOpRef searchSorted(Composer &b, UOpRef sorted, UOpRef values, bool right) {
  if (!b.requireRank(sorted, 1) || !values) return nullptr;
  if (sorted->dtype != values->dtype)
    return b.fail(llvm::Twine("values of type ") + info(values->dtype).text + " are searched in ones of type " +
                  info(sorted->dtype).text);
  int64_t axis = int64_t(sorted->rank()) - 1;
  bool ofRows = axis > 0;
  if (ofRows && (values->rank() != sorted->rank() || values->shape.drop_back() != sorted->shape.drop_back()))
    return b.fail("values " + dimsText(values->shape) + " are searched in rows " + dimsText(sorted->shape));
  auto at = [&](UOpRef index) {
    return ofRows ? b.make(Op::Pick, {sorted, index}, {axis}) : b.make(Op::Gather, {sorted, index}, {0});
  };
  UOpRef length = sorted->shape.back(), n = b.fromIndex(length, DType::I64);
  UOpRef place = b.broadcastTo(b.b.litInt(DType::I64, 0), values->shape);
  int64_t step = 1;
  while (step <= length->hi / 2) step *= 2;
  for (; step && length->hi; step /= 2) { // behind `place` elements all is settled; may it be `step` more?
    UOpRef next = b.bin(Op::Add, place, double(step));
    UOpRef element = at(b.bin(Op::Sub, next, 1)), before = b.bin(right ? Op::Le : Op::Lt, element, values);
    if (isFloat(sorted->dtype)) {
      UOpRef last = b.bin(Op::Ne, values, values);
      before = b.bin(Op::Or, before, right ? last : b.bin(Op::And, last, b.bin(Op::Eq, element, element)));
    }
    place = b.select(b.bin(Op::And, b.bin(Op::Le, next, n), before), next, place);
  }
  return place;
}

UOpRef isIn(Composer &b, UOpRef x, UOpRef y) {
  if (!x || !y) return nullptr;
  UOpRef length = idxProduct(b.c, y->shape), flat = b.reshape(y, {length});
  if (isComplex(x->dtype)) { // there is no order
    UOpRef equal = b.bin(Op::Eq, b.unsqueeze(x, {int64_t(x->rank())}), flat);
    return b.squeeze(b.reduce(ReduceKind::Or, equal, {int64_t(x->rank())}), {int64_t(x->rank())});
  }
  UOpRef inOrder = b.make(Op::Gather, {flat, b.make(Op::ArgSort, {flat}, {0, 0})}, {0});
  UOpRef place = searchSorted(b, inOrder, x, false);
  UOpRef found = b.bin(Op::Eq, b.make(Op::Gather, {inOrder, place}, {0}), x);
  return b.bin(Op::And, found, b.bin(Op::Lt, place, b.fromIndex(length, DType::I64)));
}

/// One stable sort a key, the last key first.
UOpRef orderBy(Composer &b, llvm::ArrayRef<SortKey> keys, int64_t axis) {
  UOpRef order = nullptr;
  for (const SortKey &key : llvm::reverse(keys)) {
    UOpRef value = order ? b.make(Op::Pick, {key.of, order}, {axis}) : key.of;
    UOpRef next = b.make(Op::ArgSort, {value}, {axis, key.descending});
    order = order ? b.make(Op::Pick, {order, next}, {axis}) : next;
  }
  return order;
}

} // namespace astra::compose
