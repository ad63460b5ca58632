//===- OpsSelection.cpp: results whose size the data decide --------------===//
// Takes:    nodes that keep the elements that a mask or an equality names.
// Gives:    the composites of Order.h.
#include "OpTable.h"
#include "astra/Compose/Order.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

std::optional<int64_t> axisAttr(Node &n) {
  return n.hasAttr("axis") ? std::optional(n.intAttr("axis", 0)) : std::nullopt;
}

void compress(Node &n) { n.give(compress(n, n.in(0), n.in(1), axisAttr(n))); }
void nonZero(Node &n) { n.give(nonZero(n, n.in(0))); }

void unique(Node &n) {
  bool ascending = n.intAttr("sorted", 1) != 0;
  compose::Unique r = unique(n, n.in(0), axisAttr(n), ascending);
  n.give(r.values);
  if (n.wants(1)) n.give(1, r.first);
  if (n.wants(2)) n.give(2, r.group);
  if (n.wants(3)) n.give(3, r.counts);
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
