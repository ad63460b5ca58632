//===- OpsSequence.cpp: ops along a sequence's axis ------------------------===//
// Takes:    nodes that turn round, rotate, filter or update parts of sequences.
// Gives:    picks by computed indices, elementwise products, one contract for the causal convolution.
// Keeps:    f16 and bf16 products in f32, rounded once (N4); moved elements keep their bits.
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

UOpRef reverseSequence(Node &n, UOpRef x, UOpRef lengths, int64_t batchAxis, int64_t timeAxis) {
  if (!x || !lengths || n.failed()) return nullptr;
  Dims time(x->rank(), n.c.index(1)), batch = time;
  time[timeAxis] = x->shape[timeAxis];
  batch[batchAxis] = x->shape[batchAxis];
  UOpRef at = n.iota(DType::I64, time, timeAxis), length = n.reshape(n.cast(lengths, DType::I64), batch);
  UOpRef last = n.bin(Op::Sub, length, 1.0);
  UOpRef from = n.select(n.bin(Op::Lt, at, length), n.bin(Op::Sub, last, at), at);
  return n.make(Op::Pick, {x, n.broadcastTo(from, x->shape)}, {timeAxis});
}

namespace {

void reverseSequences(Node &n) {
  UOpRef x = n.in(0), lengths = n.in(1);
  int64_t batch = n.intAttr("batch_axis", 1), time = n.intAttr("time_axis", 0);
  if (!n.requireRank(x, 2) || !n.requireRank(lengths, 1, 1)) return;
  if (batch + time != 1 || batch * time != 0)
    n.fail("batch_axis and time_axis are " + llvm::Twine(batch) + " and " + llvm::Twine(time) +
           ", expected 0 and 1 or 1 and 0");
  else if (lengths->shape[0] != x->shape[batch])
    n.fail("there are " + dimsText(lengths->shape) + " lengths for " + dimsText(x->shape[batch]) + " sequences");
  n.give(reverseSequence(n, x, lengths, batch, time));
}

constexpr Row rows[] = {
    {"ReverseSequence", 10, latest, 2, 2, reverseSequences},
};

} // namespace

llvm::ArrayRef<Row> sequenceRows() { return rows; }

} // namespace astra::onnx
