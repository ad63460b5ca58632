//===- OpsOpset6.cpp: what opset 7 changed ---------------------------------===//
// Takes:    nodes of opset 6 whose meaning is not that of later opsets.
// Gives:    the same node as opset 7 or 9 says it: operands reshaped, attributes that have gone checked; the row of
//           that opset lowers it.
// Does not: compute.
#include "OpTable.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

template <int Opset> void asOpset(Node &n) { findRow(n.opType(), Opset)->lower(n); }

/// The second operand is repeated along the axes of the first before `axis` and behind its own: it gets axes of extent
/// 1 there. Without `broadcast` the shapes are equal.
void aligned(Node &n) {
  UOpRef x = n.in(0), y = n.in(1);
  if (n.opset < 6) n.ignoreAttr("consumed_inputs");
  bool repeats = n.intAttr("broadcast", 0) != 0, hasAxis = n.hasAttr("axis");
  int64_t start = n.intAttr("axis", 0);
  if (!x || !y) return;
  if (!repeats && (hasAxis || !llvm::equal(x->shape, y->shape))) {
    n.fail("the operands have the shapes " + dimsText(x->shape) + " and " + dimsText(y->shape) + ", which opset " +
           llvm::Twine(n.opset) + " takes with attribute 'broadcast' 1 only");
    return;
  }
  bool single = llvm::all_of(y->shape, [](UOpRef d) { return d->constIndex() == 1; });
  if (single) {
    n.setInput(1, n.reshape(y, {}));
  } else if (hasAxis) {
    int64_t rank = x->rank(), width = y->rank(), first = start < 0 ? start + rank : start;
    if (first < 0 || first > rank - width) {
      n.fail("operand 1 of rank " + llvm::Twine(width) + " does not fit at axis " + llvm::Twine(start) + " of rank " +
             llvm::Twine(rank));
      return;
    }
    Dims shape(y->shape.begin(), y->shape.end());
    shape.append(size_t(rank - width - first), n.c.index(1));
    n.setInput(1, n.reshape(y, shape));
  } else if (y->rank() > x->rank()) {
    n.fail("operand 1 has a higher rank than operand 0");
    return;
  }
  asOpset<7>(n);
}

/// A slope of rank 1 belongs to channels.
void prelu(Node &n) {
  UOpRef x = n.in(0), slope = n.in(1);
  if (n.opset < 6) n.ignoreAttr("consumed_inputs");
  if (!x || !slope) return;
  if (slope->rank() == 1 && slope->shape[0]->constIndex() != 1 && x->rank() >= 2)
    n.setInput(1, n.perChannel(slope, x->rank()));
  asOpset<7>(n);
}

void gemm(Node &n) {
  if (!n.intAttr("broadcast", 0)) n.requireRank(n.in(2), 2, 2);
  asOpset<7>(n);
}

constexpr Row rows[] = {
    {"Add", 1, 6, 2, 2, aligned, numberTypes},
    {"Sub", 1, 6, 2, 2, aligned, numberTypes},
    {"Mul", 1, 6, 2, 2, aligned, numberTypes},
    {"Div", 1, 6, 2, 2, aligned, numberTypes},
    {"Pow", 1, 6, 2, 2, aligned, realTypes, "", input(1)},
    {"And", 1, 6, 2, 2, aligned, boolType},
    {"Or", 1, 6, 2, 2, aligned, boolType},
    {"Xor", 1, 6, 2, 2, aligned, boolType},
    {"Less", 1, 6, 2, 2, aligned, realTypes},
    {"Greater", 1, 6, 2, 2, aligned, realTypes},
    {"Equal", 1, 6, 2, 2, aligned},
    {"PRelu", 1, 6, 2, 2, prelu, realTypes},
    {"Gemm", 1, 6, 3, 3, gemm, realTypes},
    {"AveragePool", 1, 6, 1, 1, asOpset<7>, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> opset6Rows() { return rows; }

} // namespace astra::onnx
