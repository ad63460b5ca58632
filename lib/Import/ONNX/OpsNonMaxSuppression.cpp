//===- OpsNonMaxSuppression.cpp: the best boxes that overlap little --------===//
// Takes:    boxes [batch, n, 4], scores [batch, class, n], a limit and thresholds that may be data.
// Gives:    a `while` whose trip chooses the best box left in every batch and class at once and drops what overlaps it;
//           then a `compact` of the chosen ones.
// Keeps:    scores in descending order, the first of equal ones first; the trips end when no box is left.
// Does not: work where the number of batches or of classes is a data dim.
#include "OpTable.h"
#include "astra/Compose/Order.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::onnx {

namespace {

/// What a trip reads and does not change, [batch, class, n] each: corners and area of the boxes, the boxes' numbers in
/// descending order of score, the thresholds as scalars.
enum Fixed { Top, Left, Bottom, Right, Area, Order, Threshold, Limit, FixedCount };
/// What it changes: the boxes left, by their places in that order; the chosen boxes by trip, -1 for none; the trip.
enum Changing { Alive = FixedCount, Chosen, Trip, Count };

UOpRef integer(Node &n, int64_t v) { return n.b.litInt(DType::I64, v); }

/// Corners with the lesser coordinate first.
void corners(Node &n, UOpRef boxes, bool centred, llvm::MutableArrayRef<UOpRef> fixed) {
  Dims begin(3, n.c.index(0)), size(boxes->shape.begin(), boxes->shape.end());
  size[2] = n.c.index(1);
  UOpRef part[4];
  for (int64_t i = 0; i < 4; ++i) {
    begin[2] = n.c.index(i);
    part[i] = n.reshape(n.shrink(boxes, begin, size), {size[0], size[1]});
  }
  for (int64_t axis = 0; axis < 2; ++axis) { // y, then x
    UOpRef least, most;
    if (centred) { // x, y, width, height
      UOpRef middle = part[1 - axis], half = n.bin(Op::Div, part[3 - axis], 2);
      least = n.bin(Op::Sub, middle, half);
      most = n.bin(Op::Add, middle, half);
    } else {
      least = n.bin(Op::Min, part[axis], part[axis + 2]);
      most = n.bin(Op::Max, part[axis], part[axis + 2]);
    }
    fixed[Top + axis] = least;
    fixed[Bottom + axis] = most;
  }
  fixed[Area] = n.bin(Op::Mul, n.bin(Op::Sub, fixed[Bottom], fixed[Top]), n.bin(Op::Sub, fixed[Right], fixed[Left]));
}

/// The box of the least place left in every row, and what is left when it and what overlaps it are gone.
struct Choice {
  UOpRef box, found, alive; // [batch, class, 1] twice, [batch, class, n]
};

Choice choose(Node &n, llvm::ArrayRef<UOpRef> v) {
  UOpRef alive = v[Alive], zero = n.b.lit(DType::F32, 0);
  // Along the places in the order of scores, the first that is alive.
  UOpRef place = n.iota(DType::I64, alive->shape, 2), none = integer(n, std::numeric_limits<int64_t>::max());
  UOpRef least = n.reduce(ReduceKind::Min, n.select(alive, place, none), {2});
  UOpRef found = n.bin(Op::Lt, least, none);
  auto chosen = [&](UOpRef x) { return n.make(Op::Pick, {x, n.select(found, least, integer(n, 0))}, {2}); };
  UOpRef top = n.bin(Op::Max, v[Top], chosen(v[Top])), left = n.bin(Op::Max, v[Left], chosen(v[Left]));
  UOpRef bottom = n.bin(Op::Min, v[Bottom], chosen(v[Bottom])), right = n.bin(Op::Min, v[Right], chosen(v[Right]));
  UOpRef overlaps = n.bin(Op::And, n.bin(Op::Lt, left, right), n.bin(Op::Lt, top, bottom));
  UOpRef shared = n.bin(Op::Mul, n.bin(Op::Sub, right, left), n.bin(Op::Sub, bottom, top));
  UOpRef area = chosen(v[Area]), whole = n.bin(Op::Sub, n.bin(Op::Add, v[Area], area), shared);
  for (UOpRef positive : {shared, v[Area], area, whole})
    overlaps = n.bin(Op::And, overlaps, n.bin(Op::Lt, zero, positive));
  UOpRef ratio = n.bin(Op::Div, shared, whole);
  UOpRef gone = n.bin(Op::And, overlaps, n.bin(Op::Lt, v[Threshold], ratio));
  gone = n.bin(Op::And, n.bin(Op::Or, gone, n.bin(Op::Eq, place, least)), found);
  return {chosen(v[Order]), found, n.bin(Op::And, alive, n.un(Op::Not, gone))};
}

UOpRef scalarOr(Node &n, unsigned i, UOpRef otherwise) { return n.has(i) ? n.reshape(n.in(i), {}) : otherwise; }

void nonMaxSuppression(Node &n) {
  UOpRef boxes = n.in(0), scores = n.in(1);
  bool centred = n.intAttr("center_point_box", 0) != 0;
  if (!n.requireRank(boxes, 3, 3) || !n.requireRank(scores, 3, 3)) return;
  UOpRef batches = scores->shape[0], classes = scores->shape[1], count = scores->shape[2];
  if (Dims wanted = {batches, count, n.c.index(4)}; boxes->shape != llvm::ArrayRef<UOpRef>(wanted))
    n.failExtents("the boxes are " + dimsText(boxes->shape) + ", the scores " + dimsText(scores->shape) +
                      ": expected [batch, n, 4] and [batch, class, n]",
                  boxes->shape, wanted);
  if (boxes->dtype != DType::F32 || scores->dtype != DType::F32) n.fail("boxes and scores must be of type f32");
  if (isDataDim(batches) || isDataDim(classes))
    n.unsupported("batches and classes whose number depends on data are not supported");
  if (count->hi > int64_t(1) << 40) n.unsupported("more than 2^40 boxes are not supported");
  if (n.failed()) return;

  std::vector<UOpRef> v(Count);
  corners(n, boxes, centred, v);
  Dims full = {batches, classes, count};
  UOpRef order = n.make(Op::ArgSort, {scores}, {2, /*descending=*/1});
  for (unsigned i = Top; i <= Area; ++i)
    v[i] = n.make(Op::Pick, {n.broadcastTo(n.unsqueeze(v[i], {1}), full), order}, {2});
  v[Order] = order;
  v[Threshold] = scalarOr(n, 3, n.b.lit(DType::F32, 0));
  // No more trips than boxes: the trips' table has a place for each.
  v[Limit] = n.bin(Op::Min, scalarOr(n, 2, integer(n, 0)), n.fromIndex(count, DType::I64));
  UOpRef ranked = n.make(Op::Pick, {scores, order}, {2});
  v[Alive] = n.has(4) ? n.bin(Op::Lt, scalarOr(n, 4, nullptr), ranked) : n.broadcastTo(n.b.lit(DType::Bool, 1), full);
  v[Chosen] = n.broadcastTo(integer(n, -1), full);
  v[Trip] = integer(n, 0);
  if (n.failed()) return;
  if (v[Threshold]->dtype != DType::F32 || v[Limit]->dtype != DType::I64)
    return void(n.fail("the thresholds must be of type f32, the number of boxes of type i64"));

  // The functions' arguments; a number of boxes that is a data dim is a carried dim in them.
  bool carried = isDataDim(count);
  std::string name = "boxes." + std::to_string(n.c.size());
  if (carried) full[2] = n.b.dim(name, 0, std::max<int64_t>(count->hi, 0));
  std::vector<UOpRef> arg, begin = v;
  for (unsigned i = 0; i < Count; ++i)
    arg.push_back(n.b.arg(i, v[i]->dtype, v[i]->rank() ? llvm::ArrayRef<UOpRef>(full) : llvm::ArrayRef<UOpRef>()));
  UOpRef anyAlive = n.reshape(n.reduce(ReduceKind::Or, arg[Alive], {0, 1, 2}), {});
  UOpRef go = n.bin(Op::And, anyAlive, n.bin(Op::Lt, arg[Trip], arg[Limit]));
  Choice choice = choose(n, arg);
  std::vector<UOpRef> next = arg;
  next[Alive] = choice.alive;
  UOpRef now = n.bin(Op::And, n.bin(Op::Eq, n.iota(DType::I64, full, 2), arg[Trip]), choice.found);
  next[Chosen] = n.select(now, choice.box, arg[Chosen]);
  next[Trip] = n.bin(Op::Add, arg[Trip], 1);
  if (n.failed()) return;
  UOpRef condition = n.c.make(Op::Func, {go}, {Count}), body = n.c.make(Op::Func, next, {Count});
  if (carried) begin.push_back(count);
  llvm::Expected<UOpRef> loop = n.c.tryMake(Op::While, begin, {}, carried ? name : "", DType::Void, {condition, body});
  if (!loop) return void(n.fail(llvm::toString(loop.takeError())));
  UOpRef chosen = n.make(Op::Proj, {*loop, batches, classes, count}, {Chosen}, DType::I64);

  // Rows [batch, class, box] of what was chosen, batch by batch and class by class.
  UOpRef total = idxProduct(n.c, {batches, classes, count}), one = n.c.index(1);
  Dims shape = {batches, classes, count};
  auto column = [&](UOpRef x) { return n.reshape(x, {total, one}); };
  UOpRef table =
      n.concat({column(n.iota(DType::I64, shape, 0)), column(n.iota(DType::I64, shape, 1)), column(chosen)}, 1);
  n.give(compact(n, table, n.reshape(n.bin(Op::Le, integer(n, 0), chosen), {total})));
}

constexpr Row rows[] = {
    {"NonMaxSuppression", 10, latest, 2, 5, nonMaxSuppression, only(DType::F32),
     "the number of boxes is a dim whose value the run reports"},
};

} // namespace

llvm::ArrayRef<Row> nonMaxSuppressionRows() { return rows; }

} // namespace astra::onnx
