//===- OpsIndexing.cpp: ops that choose elements by index ----------------===//
// Takes:    nodes with indices that are data; slices whose axes and steps are known while importing.
// Gives:    the composites of Indexing.h; an index outside the extent, which ONNX leaves undefined, reads 0 or is
//           dropped.
#include "Lowering.h"
#include "OpTable.h"
#include "astra/Compose/Indexing.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

void gather(Node &n) { n.give(gather(n, n.in(0), n.in(1), n.intAttr("axis", 0))); }
void gatherElements(Node &n) { n.give(gatherElements(n, n.in(0), n.in(1), n.intAttr("axis", 0))); }
void gatherND(Node &n) { n.give(gatherTuples(n, n.in(0), n.in(1), n.intAttr("batch_dims", 0))); }

/// The attribute `reduction`; nothing after a failure.
std::optional<ScatterKind> scatterKind(Node &n) {
  std::string how = n.stringAttr("reduction", "none");
  const std::pair<const char *, ScatterKind> kinds[] = {{"none", ScatterKind::Set},
                                                        {"add", ScatterKind::Add},
                                                        {"mul", ScatterKind::Mul},
                                                        {"max", ScatterKind::Max},
                                                        {"min", ScatterKind::Min}};
  for (auto [name, kind] : kinds)
    if (how == name) return kind;
  n.fail("attribute 'reduction' is '" + how + "', expected none, add, mul, max or min");
  return std::nullopt;
}

void scatterElements(Node &n) {
  if (std::optional<ScatterKind> kind = scatterKind(n))
    n.give(scatterElements(n, *kind, n.in(0), n.in(1), n.in(2), n.intAttr("axis", 0)));
}

void scatterND(Node &n) {
  if (std::optional<ScatterKind> kind = scatterKind(n)) n.give(scatterTuples(n, *kind, n.in(0), n.in(1), n.in(2)));
}

// ---- slices

void sliceBy(Node &n, llvm::ArrayRef<UOpRef> starts, llvm::ArrayRef<UOpRef> ends, llvm::ArrayRef<int64_t> axes,
             llvm::ArrayRef<int64_t> steps) {
  UOpRef x = n.in(0);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    n.fail("starts, ends, axes and steps differ in length");
  for (size_t i = 0; x && i < axes.size() && !n.failed(); ++i) {
    int64_t axis = n.axis(axes[i], x->rank());
    if (!n.failed()) x = slice(n, x, axis, starts[i], ends[i], steps[i]);
  }
  n.give(x);
}

Ints firstAxes(size_t count) { return compose::axesBetween(0, count); }

/// Element i of a list of numbers, as an i64 scalar.
UOpRef numberAt(Node &n, UOpRef list, int64_t i) {
  return n.reshape(n.cast(n.make(Op::Shrink, {list, n.c.index(i), n.c.index(1)}), DType::I64), {});
}

/// Whether an operand must be read when the model runs, and can be: one number for each of a known number of axes. In
/// the body of a loop it is refused, as the loop then takes another form.
bool isReadInTheRun(Node &n, UOpRef numbers) {
  return numbers && numbers->rank() == 1 && numbers->shape[0]->constIndex() && isInt(numbers->dtype) &&
         !n.isRequiredKnown(numbers) && !n.lowering.isOfBody(numbers);
}

void slice(Node &n) {
  UOpRef x = n.in(0), starts = n.in(1), ends = n.in(2);
  if (n.failed()) return;
  bool startsInRun = isReadInTheRun(n, starts), endsInRun = isReadInTheRun(n, ends);
  auto count = [](UOpRef numbers) { return numbers->rank() == 1 ? numbers->shape[0]->constIndex().value_or(0) : 0; };
  constexpr int64_t mostAxes = 1 << 10; // an axis may be named again
  if (count(starts) > mostAxes)
    return (void)n.fail("the starts (input 1) are " + llvm::Twine(count(starts)) + " numbers; at most " +
                        llvm::Twine(mostAxes) + " are expected");
  Ints axes = n.has(3) ? n.knownInts(3, "the axes") : firstAxes(count(starts));
  Ints steps = n.has(4) ? n.knownInts(4, "the steps") : Ints(count(starts), 1);
  if (n.failed()) return;
  if (!startsInRun && !endsInRun) {
    Dims first = n.knownDims(1, "the starts"), last = n.knownDims(2, "the ends");
    if (!n.failed()) sliceBy(n, first, last, axes, steps);
    return;
  }
  if (!startsInRun) n.knownDims(1, "the starts"); // each is known, or read in the run
  if (!endsInRun) n.knownDims(2, "the ends");
  int64_t number = count(starts);
  if (!n.failed() && (count(ends) != number || int64_t(axes.size()) != number || int64_t(steps.size()) != number))
    n.fail("starts, ends, axes and steps differ in length");
  for (int64_t i = 0; x && i < number && !n.failed(); ++i) {
    int64_t axis = n.axis(axes[i], x->rank());
    if (n.failed()) return;
    UOpRef start = numberAt(n, starts, i), end = numberAt(n, ends, i);
    UOpRef first = n.knownInteger(start), last = n.knownInteger(end);
    x = first && last ? slice(n, x, axis, first, last, steps[i]) : sliceByData(n, x, axis, start, end, steps[i]);
  }
  n.give(x);
}

void sliceAttr(Node &n) {
  Dims starts, ends;
  constexpr int64_t far = int64_t(1) << 60;
  for (int64_t v : n.intsAttr("starts")) starts.push_back(n.c.index(std::clamp(v, -far, far)));
  for (int64_t v : n.intsAttr("ends")) ends.push_back(n.c.index(std::clamp(v, -far, far)));
  sliceBy(n, starts, ends, n.intsAttr("axes", firstAxes(starts.size())), Ints(starts.size(), 1));
}

void oneHot(Node &n) {
  UOpRef index = n.in(0), values = n.in(2);
  Dims depth;
  if (n.in(1) && isFloat(n.in(1)->dtype)) {
    double number = n.literalNumber(1, "the depth");
    if (!(number >= 0 && number <= 0x1p40)) n.fail("the depth (input 1) is " + std::to_string(number));
    if (!n.failed()) depth = {n.c.index(int64_t(number))};
  } else {
    depth = n.knownDims(1, "the depth");
  }
  if (n.failed() || depth.size() != 1 || !n.requireRank(values, 1, 1)) return;
  auto value = [&](int64_t i) {
    UOpRef one = n.make(Op::Shrink, {values, n.idx(i), n.idx(1)});
    return n.reshape(one, {});
  };
  n.give(oneHot(n, index, depth[0], value(0), value(1), n.intAttr("axis", -1)));
}

constexpr Row rows[] = {
    {"Gather", 1, latest, 2, 2, gather},
    {"GatherElements", 11, latest, 2, 2, gatherElements},
    {"Scatter", 9, 10, 3, 3, scatterElements},
    {"ScatterElements", 11, latest, 3, 3, scatterElements},
    {"com.microsoft::GatherND", 1, latest, 2, 2, gatherND},
    {"GatherND", 11, latest, 2, 2, gatherND},
    {"ScatterND", 11, latest, 3, 3, scatterND},
    {"Slice", 1, 9, 1, 1, sliceAttr},
    {"Slice", 10, latest, 3, 5, slice, anyType,
     "starts and ends may be data, the result's extent is then; known in the body of a Loop"},
    {"OneHot", 9, latest, 3, 3, oneHot, realTypes, "the depth must follow from constants and shapes"},
};

} // namespace

llvm::ArrayRef<Row> indexingRows() { return rows; }

} // namespace astra::onnx
