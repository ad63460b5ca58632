//===- NGrams.cpp: n-grams counted in sequences of integers ----------------===//
// Takes:    tokens that may be of any rank; a pool that its caller has checked.
// Gives:    what NGrams.h says.
#include "astra/Compose/NGrams.h"
#include "astra/Compose/Creation.h"
#include "astra/IR/Index.h"

namespace astra::compose {

namespace {

UOpRef integers(Composer &b, const std::vector<int64_t> &values) {
  return numbersOf(b, values, {int64_t(values.size())});
}

/// How often each n-gram of one length stands in each row of x [rows, tokens] with `distance` from a token to the next:
/// i64 [rows, n-grams].
UOpRef occurrences(Composer &b, UOpRef x, const NGramPool::OfLength &g, llvm::ArrayRef<UOpRef> tokens,
                   int64_t distance) {
  UOpRef rows = x->shape[0], length = x->shape[1], zero = b.idx(0);
  UOpRef reach = b.idx(distance * (g.length - 1)), places = idxSub(b.c, length, reach);
  bool fits = places->lo >= 0;
  if (!fits) { // places without room are looked at beyond the row, and dropped
    x = b.pad(x, {zero, zero}, {zero, reach}, 0);
    places = length;
    if (b.failed()) return nullptr;
  }
  UOpRef found = nullptr;
  for (int64_t k = 0; k < g.length; ++k) {
    UOpRef seen = b.shrink(x, {zero, b.idx(k * distance)}, {rows, places});
    UOpRef same = b.bin(Op::Eq, b.unsqueeze(seen, {2}), tokens[k]);
    found = found ? b.bin(Op::And, found, same) : same;
  }
  if (!fits) {
    UOpRef last = b.bin(Op::Add, b.iota(DType::I64, {places, b.idx(1)}, 0), double(distance * (g.length - 1)));
    found = b.bin(Op::And, found, b.bin(Op::Lt, last, b.fromIndex(length, DType::I64)));
  }
  return b.squeeze(b.reduce(ReduceKind::Sum, b.cast(found, DType::I64), {1}), {1});
}

/// How often each n-gram of the pool stands in each row of x: i64 [rows, columns].
UOpRef counted(Composer &b, UOpRef x, const NGramPool &pool) {
  UOpRef counts = b.broadcastTo(b.b.litInt(DType::I64, 0), {x->shape[0], b.idx(pool.columns)});
  constexpr int64_t mostWork = 1024;
  int64_t work = 0;
  for (const NGramPool::OfLength &g : pool.grams) {
    llvm::SmallVector<UOpRef, 4> tokens;
    for (const std::vector<int64_t> &t : g.tokens) tokens.push_back(integers(b, t));
    // A distance at which no row has room for the n-gram, and every larger one, finds nothing.
    int64_t room = g.length == 1 ? (x->shape[1]->hi > 0) : (x->shape[1]->hi - 1) / (g.length - 1);
    int64_t distances = std::min(room, g.length == 1 ? 1 : std::min(pool.skips, int64_t(1) << 40) + 1);
    if (distances > mostWork || (work += distances * g.length) > mostWork)
      b.unsupported("n-grams of length " + llvm::Twine(g.length) + " with up to " + llvm::Twine(pool.skips) +
                    " tokens skipped are not supported: more than " + llvm::Twine(mostWork) + " comparisons");
    if (b.failed()) return nullptr;
    UOpRef sum = nullptr;
    for (int64_t d = 1; d <= distances; ++d) {
      UOpRef found = occurrences(b, x, g, tokens, d);
      sum = sum ? b.bin(Op::Add, sum, found) : found;
    }
    if (!sum) continue;
    UOpRef at = b.broadcastTo(integers(b, g.columns), sum->shape);
    counts = b.make(Op::Scatter, {counts, at, sum}, {1, int64_t(ScatterKind::Add)});
  }
  return counts;
}

} // namespace

UOpRef nGramScores(Composer &b, UOpRef given, const NGramPool &pool, NGramScore score, llvm::ArrayRef<float> weights) {
  UOpRef x = b.cast(given, DType::I64);
  if (!b.requireRank(x, 0, 2) || b.failed()) return nullptr;
  if (!weights.empty() && int64_t(weights.size()) != pool.columns)
    return b.fail("found " + llvm::Twine(weights.size()) + " weights for " + llvm::Twine(pool.columns) + " columns");
  bool single = x->rank() < 2;
  if (single) x = b.reshape(x, {b.idx(1), x->rank() ? x->shape[0] : b.idx(1)});
  UOpRef counts = x ? counted(b, x, pool) : nullptr;
  if (!counts) return nullptr;
  UOpRef y = b.cast(counts, DType::F32), weight = b.b.lit(DType::F32, 1);
  if (!weights.empty()) weight = numbersOf(b, weights, {pool.columns});
  if (score == NGramScore::WeightIfThere)
    y = b.select(b.bin(Op::Lt, b.b.litInt(DType::I64, 0), counts), weight, b.b.lit(DType::F32, 0));
  if (score == NGramScore::WeightedCount) y = b.bin(Op::Mul, y, weight);
  return single ? b.squeeze(y, {0}) : y;
}

} // namespace astra::compose
