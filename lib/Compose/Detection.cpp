//===- Detection.cpp: boxes in images ------------------------------------===//
// Takes:    boxes, scores, a limit and thresholds that may be data.
// Gives:    what Detection.h says.
// Keeps:    the trips end when no box is left.
// Does not: work where the number of batches or of classes is a data dim.
#include "astra/Compose/Detection.h"
#include "astra/Compose/Order.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

namespace {

/// What a trip reads and does not change, [batch, class, n] each: corners and area of the boxes, the boxes' numbers in
/// descending order of score, the thresholds as scalars.
enum Fixed { Top, Left, Bottom, Right, Area, Order, Threshold, Limit, FixedCount };
/// What it changes: the boxes left, by their places in that order; the chosen boxes by trip, -1 for none; the trip.
enum Changing { Alive = FixedCount, Chosen, Trip, Count };

UOpRef integer(Composer &b, int64_t v) { return b.b.litInt(DType::I64, v); }

/// Corners with the lesser coordinate first.
void corners(Composer &b, UOpRef boxes, bool centred, llvm::MutableArrayRef<UOpRef> fixed) {
  Dims begin(3, b.idx(0)), size(boxes->shape.begin(), boxes->shape.end());
  size[2] = b.idx(1);
  UOpRef part[4];
  for (int64_t i = 0; i < 4; ++i) {
    begin[2] = b.idx(i);
    part[i] = b.reshape(b.shrink(boxes, begin, size), {size[0], size[1]});
  }
  for (int64_t axis = 0; axis < 2; ++axis) { // y, then x
    UOpRef least, most;
    if (centred) { // x, y, width, height
      UOpRef middle = part[1 - axis], half = b.bin(Op::Div, part[3 - axis], 2);
      least = b.bin(Op::Sub, middle, half);
      most = b.bin(Op::Add, middle, half);
    } else {
      least = b.bin(Op::Min, part[axis], part[axis + 2]);
      most = b.bin(Op::Max, part[axis], part[axis + 2]);
    }
    fixed[Top + axis] = least;
    fixed[Bottom + axis] = most;
  }
  fixed[Area] = b.bin(Op::Mul, b.bin(Op::Sub, fixed[Bottom], fixed[Top]), b.bin(Op::Sub, fixed[Right], fixed[Left]));
}

/// The box of the least place left in every row, and what is left when it and what overlaps it are gone.
struct Choice {
  UOpRef box, found, alive; // [batch, class, 1] twice, [batch, class, n]
};

Choice choose(Composer &b, llvm::ArrayRef<UOpRef> v) {
  UOpRef alive = v[Alive], zero = b.b.lit(DType::F32, 0);
  // Along the places in the order of scores, the first that is alive.
  UOpRef place = b.iota(DType::I64, alive->shape, 2), none = integer(b, std::numeric_limits<int64_t>::max());
  UOpRef least = b.reduce(ReduceKind::Min, b.select(alive, place, none), {2});
  UOpRef found = b.bin(Op::Lt, least, none);
  auto chosen = [&](UOpRef x) { return b.make(Op::Pick, {x, b.select(found, least, integer(b, 0))}, {2}); };
  UOpRef top = b.bin(Op::Max, v[Top], chosen(v[Top])), left = b.bin(Op::Max, v[Left], chosen(v[Left]));
  UOpRef bottom = b.bin(Op::Min, v[Bottom], chosen(v[Bottom])), right = b.bin(Op::Min, v[Right], chosen(v[Right]));
  UOpRef overlaps = b.bin(Op::And, b.bin(Op::Lt, left, right), b.bin(Op::Lt, top, bottom));
  UOpRef shared = b.bin(Op::Mul, b.bin(Op::Sub, right, left), b.bin(Op::Sub, bottom, top));
  UOpRef area = chosen(v[Area]), whole = b.bin(Op::Sub, b.bin(Op::Add, v[Area], area), shared);
  for (UOpRef positive : {shared, v[Area], area, whole})
    overlaps = b.bin(Op::And, overlaps, b.bin(Op::Lt, zero, positive));
  UOpRef ratio = b.bin(Op::Div, shared, whole);
  UOpRef gone = b.bin(Op::And, overlaps, b.bin(Op::Lt, v[Threshold], ratio));
  gone = b.bin(Op::And, b.bin(Op::Or, gone, b.bin(Op::Eq, place, least)), found);
  return {chosen(v[Order]), found, b.bin(Op::And, alive, b.un(Op::Not, gone))};
}

} // namespace

UOpRef nonMaxSuppression(Composer &b, const BoxOperands &operands) {
  UOpRef boxes = operands.boxes, scores = operands.scores;
  auto scalarOr = [&](UOpRef x, UOpRef otherwise) { return x ? b.reshape(x, {}) : otherwise; };
  if (!b.requireRank(boxes, 3, 3) || !b.requireRank(scores, 3, 3)) return nullptr;
  UOpRef batches = scores->shape[0], classes = scores->shape[1], count = scores->shape[2];
  if (Dims wanted = {batches, count, b.idx(4)}; boxes->shape != llvm::ArrayRef<UOpRef>(wanted))
    b.failExtents("the boxes are " + dimsText(boxes->shape) + ", the scores " + dimsText(scores->shape) +
                      ": expected [batch, n, 4] and [batch, class, n]",
                  boxes->shape, wanted);
  if (boxes->dtype != DType::F32 || scores->dtype != DType::F32) b.fail("boxes and scores must be of type f32");
  if (isDataDim(batches) || isDataDim(classes))
    b.unsupported("batches and classes whose number depends on data are not supported");
  if (count->hi > int64_t(1) << 40) b.unsupported("more than 2^40 boxes are not supported");
  if (b.failed()) return nullptr;

  std::vector<UOpRef> v(Count);
  corners(b, boxes, operands.centred, v);
  Dims full = {batches, classes, count};
  UOpRef order = b.make(Op::ArgSort, {scores}, {2, /*descending=*/1});
  for (unsigned i = Top; i <= Area; ++i)
    v[i] = b.make(Op::Pick, {b.broadcastTo(b.unsqueeze(v[i], {1}), full), order}, {2});
  v[Order] = order;
  v[Threshold] = scalarOr(operands.overlap, b.b.lit(DType::F32, 0));
  // No more trips than boxes: the trips' table has a place for each.
  v[Limit] = b.bin(Op::Min, scalarOr(operands.limit, integer(b, 0)), b.fromIndex(count, DType::I64));
  UOpRef ranked = b.make(Op::Pick, {scores, order}, {2});
  v[Alive] = operands.scoreThreshold ? b.bin(Op::Lt, scalarOr(operands.scoreThreshold, nullptr), ranked)
                                     : b.broadcastTo(b.b.lit(DType::Bool, 1), full);
  v[Chosen] = b.broadcastTo(integer(b, -1), full);
  v[Trip] = integer(b, 0);
  if (b.failed()) return nullptr;
  if (v[Threshold]->dtype != DType::F32 || v[Limit]->dtype != DType::I64)
    return b.fail("the thresholds must be of type f32, the number of boxes of type i64");

  // The functions' arguments; a number of boxes that is a data dim is a carried dim in them.
  bool carried = isDataDim(count);
  std::string name = "boxes." + std::to_string(b.c.size());
  if (carried) full[2] = b.b.dim(name, 0, std::max<int64_t>(count->hi, 0));
  std::vector<UOpRef> arg, begin = v;
  for (unsigned i = 0; i < Count; ++i)
    arg.push_back(b.b.arg(i, v[i]->dtype, v[i]->rank() ? llvm::ArrayRef<UOpRef>(full) : llvm::ArrayRef<UOpRef>()));
  UOpRef anyAlive = b.reshape(b.reduce(ReduceKind::Or, arg[Alive], {0, 1, 2}), {});
  UOpRef go = b.bin(Op::And, anyAlive, b.bin(Op::Lt, arg[Trip], arg[Limit]));
  Choice choice = choose(b, arg);
  std::vector<UOpRef> next = arg;
  next[Alive] = choice.alive;
  UOpRef now = b.bin(Op::And, b.bin(Op::Eq, b.iota(DType::I64, full, 2), arg[Trip]), choice.found);
  next[Chosen] = b.select(now, choice.box, arg[Chosen]);
  next[Trip] = b.bin(Op::Add, arg[Trip], 1);
  if (b.failed()) return nullptr;
  UOpRef condition = b.c.make(Op::Func, {go}, {Count}), body = b.c.make(Op::Func, next, {Count});
  if (carried) begin.push_back(count);
  llvm::Expected<UOpRef> loop = b.c.tryMake(Op::While, begin, {}, carried ? name : "", DType::Void, {condition, body});
  if (!loop) return b.fail(llvm::toString(loop.takeError()));
  UOpRef chosen = b.make(Op::Proj, {*loop, batches, classes, count}, {Chosen}, DType::I64);

  // Rows [batch, class, box] of what was chosen, batch by batch and class by class.
  UOpRef total = idxProduct(b.c, {batches, classes, count}), one = b.idx(1);
  Dims shape = {batches, classes, count};
  auto column = [&](UOpRef x) { return b.reshape(x, {total, one}); };
  UOpRef table =
      b.concat({column(b.iota(DType::I64, shape, 0)), column(b.iota(DType::I64, shape, 1)), column(chosen)}, 1);
  return compact(b, table, b.reshape(b.bin(Op::Le, integer(b, 0), chosen), {total}));
}

} // namespace astra::compose
