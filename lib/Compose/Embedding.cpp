//===- Embedding.cpp: bags of rows of a table, and gradients ---------------===//
// Takes:    operands that may not fit; indices may be outside of the table.
// Gives:    gathers of rows and scatters into bags.
#include "astra/Compose/Embedding.h"
#include "astra/Compose/Indexing.h"
#include <limits>

namespace astra::compose {

namespace {

UOpRef zeros(Composer &b, DType t, llvm::ArrayRef<UOpRef> dims) {
  return b.broadcastTo(b.make(Op::Const, {}, {0}, t), dims);
}
UOpRef column(Composer &b, UOpRef x) { return b.unsqueeze(x, {1}); }

/// Whether the operands have the ranks and types that the functions below take for granted; indices become i64.
bool accept(Composer &b, UOpRef x, Bags &bags) {
  if (!b.requireFloat(x) || !b.requireRank(x, 2, 2)) return false;
  if (!b.requireRank(bags.indices, 1, 1) || !b.requireRank(bags.offsets, 1, 1)) return false;
  UOpRef n = bags.indices->shape[0];
  if (bags.weights && (!b.requireRank(bags.weights, 1, 1) || !b.requireEqual(bags.weights->shape[0], n, "the weights")))
    return false;
  bags.indices = b.cast(bags.indices, DType::I64);
  bags.offsets = b.cast(bags.offsets, DType::I64);
  return !b.failed();
}

/// The bag of each index: how many begin at it or before, less one.
UOpRef bagOf(Composer &b, const Bags &bags) {
  UOpRef places = b.iota(DType::I64, {bags.indices->shape[0]}, 0);
  UOpRef begun = b.cast(b.bin(Op::Le, column(b, bags.offsets), b.unsqueeze(places, {0})), DType::I64);
  return b.bin(Op::Sub, b.squeeze(b.reduce(ReduceKind::Sum, begun, {0}), {0}), 1.0);
}

/// Where each index is added [n, 1]: its bag, or outside, where it does not count.
UOpRef placesOf(Composer &b, const Bags &bags, UOpRef bag) {
  if (bags.padding < 0) return column(b, bag);
  UOpRef pads = b.bin(Op::Eq, bags.indices, double(bags.padding));
  return column(b, b.select(pads, b.scalar(bags.offsets->shape[0], DType::I64), bag));
}

UOpRef sizesOf(Composer &b, const Bags &bags, UOpRef places) {
  UOpRef ones = b.broadcastTo(b.b.litInt(DType::I64, 1), {bags.indices->shape[0]});
  return scatterTuples(b, ScatterKind::Add, zeros(b, DType::I64, {bags.offsets->shape[0]}), places, ones);
}

/// x over a number of each row, at least 1.
UOpRef perSize(Composer &b, UOpRef x, UOpRef sizes) {
  return b.bin(Op::Div, x, column(b, b.cast(b.bin(Op::Max, sizes, 1.0), x->dtype)));
}

} // namespace

EmbeddingBag embeddingBag(Composer &b, UOpRef table, const Bags &given) {
  Bags bags = given;
  if (!accept(b, table, bags)) return {};
  EmbeddingBag out;
  out.bag = bagOf(b, bags);
  UOpRef picked = gather(b, table, bags.indices, 0);
  if (bags.weights) picked = b.bin(Op::Mul, picked, column(b, b.cast(bags.weights, table->dtype)));
  UOpRef places = placesOf(b, bags, out.bag), n = b.scalar(bags.indices->shape[0], DType::I64);
  out.sizes = sizesOf(b, bags, places);
  if (b.failed()) return {};
  Dims dims = {bags.offsets->shape[0], table->shape[1]};
  if (bags.mode != BagMode::Max) {
    UOpRef wide = b.widen(picked), sum = scatterTuples(b, ScatterKind::Add, zeros(b, wide->dtype, dims), places, wide);
    if (bags.mode == BagMode::Mean && sum) sum = perSize(b, sum, out.sizes);
    out.value = b.cast(sum, table->dtype);
    return out;
  }
  UOpRef least = b.broadcastTo(b.literal(table, -std::numeric_limits<double>::infinity()), dims);
  UOpRef most = scatterTuples(b, ScatterKind::Max, least, places, picked);
  out.value = b.select(column(b, b.bin(Op::Eq, out.sizes, 0.0)), b.literal(table, 0), most);
  if (!out.value || b.failed()) return {};
  UOpRef reached = b.bin(Op::Eq, picked, gather(b, out.value, out.bag, 0));
  UOpRef number = b.select(reached, column(b, b.iota(DType::I64, {bags.indices->shape[0]}, 0)), n);
  UOpRef first = scatterTuples(b, ScatterKind::Min, b.broadcastTo(n, dims), places, number);
  out.rows = gather(b, bags.indices, first, 0); // of an empty bag: outside, 0
  return out;
}

UOpRef embeddingGradient(Composer &b, UOpRef gradient, UOpRef given, UOpRef rows, int64_t padding, bool byFrequency) {
  if (!b.requireFloat(gradient) || !b.requireRank(gradient, 2, 2) || !b.requireRank(given, 1, 1)) return nullptr;
  UOpRef wide = b.widen(gradient), indices = b.cast(given, DType::I64);
  if (padding >= 0) wide = b.select(column(b, b.bin(Op::Eq, indices, double(padding))), b.literal(wide, 0), wide);
  if (!wide || b.failed()) return nullptr;
  if (byFrequency) {
    UOpRef ones = b.broadcastTo(b.literal(wide, 1), {indices->shape[0]});
    UOpRef counts = scatterTuples(b, ScatterKind::Add, zeros(b, wide->dtype, {rows}), column(b, indices), ones);
    wide = b.bin(Op::Div, wide, column(b, gather(b, counts, indices, 0)));
  }
  if (!wide || b.failed()) return nullptr;
  UOpRef none = zeros(b, wide->dtype, {rows, gradient->shape[1]});
  return b.cast(scatterTuples(b, ScatterKind::Add, none, column(b, indices), wide), gradient->dtype);
}

UOpRef embeddingBagGradient(Composer &b, UOpRef gradient, const Bags &given, UOpRef rows, bool byFrequency) {
  Bags bags = given;
  if (!accept(b, gradient, bags)) return nullptr;
  if (bags.mode == BagMode::Max) return b.fail("the gradient of maxima of bags goes by their rows");
  UOpRef bag = bagOf(b, bags), picked = gather(b, b.widen(gradient), bag, 0);
  if (b.failed()) return nullptr;
  if (bags.mode == BagMode::Mean)
    picked = perSize(b, picked, gather(b, sizesOf(b, bags, placesOf(b, bags, bag)), bag, 0));
  if (bags.weights && picked) picked = b.bin(Op::Mul, picked, column(b, b.cast(bags.weights, picked->dtype)));
  UOpRef out = picked ? embeddingGradient(b, picked, bags.indices, rows, bags.padding, byFrequency) : nullptr;
  return out ? b.cast(out, gradient->dtype) : nullptr;
}

UOpRef embeddingMaximaGradient(Composer &b, UOpRef gradient, UOpRef maxima, UOpRef sizes, UOpRef rows) {
  if (!b.requireFloat(gradient) || !b.requireRank(gradient, 2, 2) || !b.requireRank(sizes, 1, 1)) return nullptr;
  UOpRef wide = b.widen(gradient);
  wide = b.select(column(b, b.bin(Op::Lt, b.literal(sizes, 0), sizes)), wide, b.literal(wide, 0));
  if (!wide || b.failed()) return nullptr;
  UOpRef none = zeros(b, wide->dtype, {rows, gradient->shape[1]});
  return b.cast(scatterElements(b, ScatterKind::Add, none, maxima, wide, 0), gradient->dtype);
}

UOpRef embeddingWeightsGradient(Composer &b, UOpRef gradient, UOpRef table, const Bags &given) {
  Bags bags = given;
  if (!accept(b, gradient, bags)) return nullptr;
  UOpRef rows = gather(b, gradient, bagOf(b, bags), 0);
  UOpRef product = b.widen(b.bin(Op::Mul, rows, gather(b, table, bags.indices, 0)));
  if (!product || b.failed()) return nullptr;
  UOpRef sum = b.squeeze(b.reduce(ReduceKind::Sum, product, {1}), {1});
  if (bags.padding >= 0 && sum)
    sum = b.select(b.bin(Op::Eq, bags.indices, double(bags.padding)), b.literal(sum, 0), sum);
  return sum ? b.cast(sum, gradient->dtype) : nullptr;
}

} // namespace astra::compose
