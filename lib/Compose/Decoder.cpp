//===- Decoder.cpp: parts of a language model that keeps keys and values ---===//
// Takes:    operands that a front door has given their shapes.
// Gives:    what Decoder.h says: scatters into caches, two contracts with a softmax between them.
#include "astra/Compose/Decoder.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Scores.h"
#include "astra/IR/Index.h"
#include <limits>

namespace astra::compose {

constexpr double infinity = std::numeric_limits<double>::infinity();

CachePlace cachePlace(Composer &b, UOpRef lengths, UOpRef counts, UOpRef rows, int64_t capacity) {
  if (!b.requireRank(lengths, 1, 1) || !b.requireRank(counts, 1, 1)) return {};
  UOpRef batch = lengths->shape[0], one = b.idx(1);
  UOpRef before = b.cast(lengths, DType::I64), more = b.cast(counts, DType::I64);
  UOpRef row = b.iota(DType::I64, {batch, rows}, 1);
  UOpRef most = b.reduce(ReduceKind::Max, b.bin(Op::Add, before, more), {0});
  most = b.bin(Op::Max, b.reshape(most, {}), b.b.litInt(DType::I64, 1));
  CachePlace place;
  place.batch = batch, place.rows = rows, place.capacity = capacity;
  place.positions = b.bin(Op::Add, row, b.reshape(before, {batch, one}));
  place.kept = b.select(b.bin(Op::Lt, row, b.reshape(more, {batch, one})), place.positions, b.literal(row, -1));
  UOpRef none = b.literal(before, 0), full = b.literal(before, double(capacity));
  UOpRef first = b.reduce(ReduceKind::Min, b.select(b.bin(Op::Lt, none, more), before, full), {0});
  place.first = b.bin(Op::Min, b.reshape(first, {}), b.bin(Op::Sub, most, 1.0));
  if (!most || !place.kept || b.failed()) return {};
  place.most = most;
  place.used = b.b.extent(most, 1, capacity);
  return place;
}

UOpRef canonicalNaNs(Composer &b, UOpRef x) {
  if (!x || !b.requireFloat(x)) return nullptr;
  UOpRef wide = b.widen(x);
  uint64_t nan = x->dtype == DType::F16 ? 0x7e00 : x->dtype == DType::BF16 ? 0x7fc0 : 0x7fc00000;
  if (x->dtype == DType::F64) nan = 0x7ff8000000000000;
  return b.b.select(b.b.eq(wide, wide), x, b.b.bits(x->dtype, nan));
}

/// x put at these elements of each [batch, heads] of a cache; -1: nowhere.
static UOpRef scattered(Composer &b, UOpRef cache, UOpRef x, UOpRef element) {
  llvm::ArrayRef<UOpRef> d = x->shape;
  UOpRef elements = idxMul(b.c, d[2], d[3]);
  x = b.cast(x, cache->dtype);
  if (isFloat(cache->dtype)) x = canonicalNaNs(b, x);
  UOpRef index = b.reshape(b.broadcastTo(element, d), {d[0], d[1], elements});
  return b.make(Op::Scatter, {cache, index, b.reshape(x, {d[0], d[1], elements})}, {2, int64_t(ScatterKind::Set)});
}

/// [batch, 1, rows, size]: the element of a cache for each of a row.
static UOpRef elementsOf(Composer &b, const CachePlace &place, int64_t size, bool together) {
  UOpRef one = b.idx(1), kept = b.reshape(place.kept, {place.batch, one, place.rows, one});
  UOpRef column = b.iota(DType::I64, {one, one, one, b.idx(size)}, 3);
  UOpRef at = together ? b.bin(Op::Add, b.bin(Op::Mul, column, double(place.capacity)), kept)
                       : b.bin(Op::Add, b.bin(Op::Mul, kept, double(size)), column);
  return b.select(b.bin(Op::Lt, kept, 0.0), b.literal(kept, -1), at);
}

/// x [batch, heads, rows, size] as bytes, and what each row's are multiplied by.
static RowCache bytesOf(Composer &b, UOpRef x) {
  UOpRef scale = b.bin(Op::Div, b.reduce(ReduceKind::Max, b.un(Op::Abs, x), {3}), 127);
  UOpRef inverse = b.bin(Op::Div, b.literal(x, 1), scale), none = b.literal(x, 0);
  inverse = b.select(b.bin(Op::Eq, scale, none), none, inverse);
  return {b.cast(b.un(Op::RoundEven, b.bin(Op::Mul, x, inverse)), DType::I8), scale};
}

static RowCache withRows(Composer &b, const RowCache &cache, UOpRef x, const CachePlace &place, bool together) {
  if (!b.requireRank(cache.elements, 3, 3) || !b.requireRank(x, 4, 4)) return {};
  int64_t size = b.constExtent(x, 3, "the size of a head");
  if (!b.requireEqual(cache.elements->shape[2], b.idx(size * place.capacity), "the cache and its rows")) return {};
  UOpRef at = elementsOf(b, place, size, together);
  if (!cache.scales) return {scattered(b, cache.elements, x, at), nullptr};
  RowCache rows = bytesOf(b, x);
  if (b.failed()) return {};
  return {scattered(b, cache.elements, rows.elements, at),
          scattered(b, cache.scales, rows.scales, elementsOf(b, place, 1, together))};
}

RowCache withKeys(Composer &b, const RowCache &cache, UOpRef x, const CachePlace &place) {
  return withRows(b, cache, x, place, true);
}
RowCache withValues(Composer &b, const RowCache &cache, UOpRef x, const CachePlace &place) {
  return withRows(b, cache, x, place, false);
}

UOpRef withTokens(Composer &b, UOpRef cache, UOpRef x, const CachePlace &place) {
  if (!b.requireRank(cache, 2, 2) || !b.requireRank(x, 2, 2)) return nullptr;
  return b.make(Op::Scatter, {cache, place.kept, x}, {1, int64_t(ScatterKind::Set)});
}

namespace {
/// The keys that a call reads.
struct Span {
  UOpRef begin = nullptr; // i64, a multiple of 512; null: 0
  UOpRef size = nullptr;  // an extent
};
} // namespace

/// From the block of the first key that a new row sees. Blocks that no row sees weigh 0, and leaving them out keeps
/// bits: of the weighted sum, whose blocks are 512 long (N4.2), and of the softmax's, where 512 are whole turns of its
/// lanes within 4096 keys (N4.3); beyond, two chunks of 4096 are added in any order, and three would not be.
static Span spanOf(Composer &b, const CachePlace &place, int64_t window) {
  constexpr int64_t block = 512, chunk = 4096;
  if (window < 0 || place.capacity <= block || window > place.capacity - block) return {nullptr, place.used};
  UOpRef first = b.bin(Op::Max, b.bin(Op::Sub, place.first, double(window - 1)), 0.0), none = b.literal(first, 0);
  auto down = [&](int64_t to) { return b.bin(Op::And, first, -double(to)); };
  UOpRef begin = down(block);
  if (place.capacity > chunk) {
    UOpRef far = down(chunk);
    far = b.select(b.bin(Op::Le, b.bin(Op::Sub, place.most, far), double(2 * chunk)), far, none);
    begin = b.select(b.bin(Op::Le, place.most, double(chunk)), begin, far);
  }
  if (b.failed()) return {};
  return {begin, b.b.extent(b.bin(Op::Sub, place.most, begin), 1, place.capacity)};
}

UOpRef cacheAttention(Composer &b, UOpRef query, const RowCache &keys, const RowCache &values, const CachePlace &place,
                      const CacheAttentionOptions &options) {
  if (!b.requireRank(query, 4, 4) || !b.requireRank(keys.elements, 3, 3) || !b.requireRank(values.elements, 3, 3))
    return nullptr;
  int64_t heads = b.constExtent(query, 1, "the number of heads"), size = b.constExtent(query, 3, "the size of a head"),
          keyHeads = b.constExtent(keys.elements, 1, "the number of heads of the keys");
  if (!b.failed() && heads % keyHeads)
    b.fail(llvm::Twine(heads) + " query heads are not a multiple of " + llvm::Twine(keyHeads) + " key heads");
  if (b.failed()) return nullptr;
  UOpRef batch = place.batch, rows = place.rows, one = b.idx(1), capacity = b.idx(place.capacity);
  UOpRef kv = b.idx(keyHeads), group = b.idx(heads / keyHeads), d = b.idx(size);
  Span span = spanOf(b, place, options.window);
  if (b.failed()) return nullptr;
  UOpRef used = span.size;
  // [batch, key heads, queries of a key head, rows, size]; the scale is one product for each of its elements.
  UOpRef q = b.reshape(b.bin(Op::Mul, query, options.scale), {batch, kv, group, rows, d});
  auto seen = [&](UOpRef cache, llvm::ArrayRef<UOpRef> dims, int64_t axis) {
    UOpRef all = b.reshape(cache, dims);
    if (!span.begin) return b.cast(b.part(all, axis, b.idx(0), used), DType::F32);
    llvm::SmallVector<UOpRef, 12> operands{all};
    for (size_t i = 0; i < dims.size(); ++i)
      operands.push_back(int64_t(i) == axis ? span.begin : b.literal(span.begin, 0));
    Dims sizes(dims.begin(), dims.end());
    sizes[size_t(axis)] = used;
    operands.append(sizes.begin(), sizes.end());
    return b.cast(b.make(Op::SliceAt, operands), DType::F32);
  };
  UOpRef k = seen(keys.elements, {batch, kv, d, capacity}, 3), v = seen(values.elements, {batch, kv, capacity, d}, 2);
  auto scaled = [&](UOpRef x, UOpRef scales) { // [..., used]
    return scales ? b.bin(Op::Mul, x, seen(scales, {batch, kv, one, one, capacity}, 4)) : x;
  };
  ContractSpec spec;
  spec.kept = 5;
  spec.reduced = 1;
  spec.a = {label(0), label(1), label(2), label(3), label(5)};
  spec.b = {label(0), label(1), label(5), label(4)};
  UOpRef scores = scaled(b.contract(spec, q, k, {batch, kv, group, rows, used, d}), keys.scales);
  if (options.softcap > 0)
    scores = b.bin(Op::Mul, b.un(Op::Tanh, b.bin(Op::Div, scores, options.softcap)), options.softcap);
  UOpRef key = b.iota(DType::I64, {one, one, one, one, used}, 4);
  if (span.begin) key = b.bin(Op::Add, key, span.begin);
  UOpRef own = b.reshape(place.positions, {batch, one, one, rows, one});
  UOpRef allowed = b.bin(Op::Le, key, own);
  if (options.window >= 0)
    allowed = b.bin(Op::And, allowed, b.bin(Op::Lt, b.bin(Op::Sub, own, double(options.window)), key));
  scores = b.select(allowed, scores, b.literal(scores, -infinity));
  UOpRef weights = scaled(softmax(b, scores, {4}), values.scales);
  UOpRef weighted = b.contract(spec, weights, v, {batch, kv, group, rows, d, used});
  // A sum of nothing but zeros has the sign of those that were left out: +0.0 takes it away.
  UOpRef y = b.bin(Op::Add, weighted, 0.0);
  return b.reshape(b.permute(y, {0, 3, 1, 2, 4}), {idxMul(b.c, batch, rows), b.idx(heads * size)});
}

RotaryTables rotaryTables(Composer &b, llvm::ArrayRef<float> frequencies, int64_t positions, double factor) {
  int64_t columns = int64_t(frequencies.size());
  UOpRef at = b.cast(b.iota(DType::I64, {b.idx(positions), b.idx(1)}, 0), DType::F32);
  UOpRef angle = b.bin(Op::Mul, at, numbersOf(b, frequencies, {1, columns}));
  RotaryTables tables{b.un(Op::Cos, angle), b.un(Op::Sin, angle)};
  if (factor != 1) tables = {b.bin(Op::Mul, tables.cosines, factor), b.bin(Op::Mul, tables.sines, factor)};
  return tables;
}

UOpRef ranksOf(Composer &b, UOpRef shares) {
  if (!b.requireRank(shares, 2, 2)) return nullptr;
  UOpRef rows = shares->shape[0], experts = shares->shape[1], one = b.idx(1);
  UOpRef mine = b.reshape(shares, {rows, experts, one}), other = b.reshape(shares, {rows, one, experts});
  UOpRef number = b.iota(DType::I32, {one, experts, one}, 1), before = b.iota(DType::I32, {one, one, experts}, 2);
  UOpRef equal = b.bin(Op::And, b.bin(Op::Eq, other, mine), b.bin(Op::Lt, before, number));
  UOpRef ahead = b.cast(b.bin(Op::Or, b.bin(Op::Lt, mine, other), equal), DType::I32);
  return b.squeeze(b.reduce(ReduceKind::Sum, ahead, {2}), {2});
}

Routes routes(Composer &b, UOpRef scores, const RoutingOptions &options) {
  if (!b.requireRank(scores, 2, 2)) return {};
  UOpRef rows = scores->shape[0], experts = scores->shape[1], one = b.idx(1), chosen = b.idx(options.chosen);
  UOpRef share = softmax(b, scores, {1});
  UOpRef rank = ranksOf(b, share);
  // How many elements of a mask are true before each.
  auto sumsBefore = [&](UOpRef mask, int64_t axis) {
    UOpRef x = b.cast(mask, DType::I64);
    return b.bin(Op::Sub, b.make(Op::Cumulate, {x}, {int64_t(CumulateKind::Sum), axis}), x);
  };
  UOpRef taken = b.bin(Op::Lt, rank, double(options.chosen));
  UOpRef place = sumsBefore(taken, 1); // where all are NaN no one is ahead: the first experts
  taken = b.bin(Op::And, taken, b.bin(Op::Lt, place, double(options.chosen)));
  Routes r;
  r.counts = b.squeeze(b.reduce(ReduceKind::Sum, b.cast(taken, DType::I64), {0}), {0});
  r.begins = b.bin(Op::Sub, b.make(Op::Cumulate, {r.counts}, {int64_t(CumulateKind::Sum), 0}), r.counts);
  UOpRef slot = b.bin(Op::Add, sumsBefore(taken, 0), b.unsqueeze(r.begins, {0}));
  // The one expert of each place.
  UOpRef hits = b.bin(Op::And, b.reshape(taken, {rows, one, experts}),
                      b.bin(Op::Eq, b.reshape(place, {rows, one, experts}), b.iota(DType::I64, {one, chosen, one}, 1)));
  auto ofPlaces = [&](UOpRef x) {
    x = b.reshape(x, {rows, one, experts});
    return b.squeeze(b.reduce(ReduceKind::Sum, b.select(hits, x, b.literal(x, 0)), {2}), {2});
  };
  r.slots = ofPlaces(slot);
  r.weights = ofPlaces(share);
  if (options.normalized) r.weights = b.bin(Op::Div, r.weights, b.reduce(ReduceKind::Sum, r.weights, {1}));
  UOpRef all = idxMul(b.c, rows, chosen), token = b.iota(DType::I64, {rows, chosen}, 0);
  if (b.failed()) return {};
  UOpRef none = b.broadcastTo(b.b.litInt(DType::I64, 0), {b.idx(rows->hi * options.chosen)});
  r.tokens =
      b.make(Op::Scatter, {none, b.reshape(r.slots, {all}), b.reshape(token, {all})}, {0, int64_t(ScatterKind::Set)});
  return r;
}

UOpRef mixedExperts(Composer &b, UOpRef x, const Routes &r,
                    llvm::function_ref<UOpRef(UOpRef rows, int64_t expert)> expert) {
  if (!b.requireRank(x, 2, 2) || !b.requireRank(r.weights, 2, 2) || !b.requireRank(r.counts, 1, 1)) return nullptr;
  UOpRef rows = x->shape[0], width = x->shape[1], chosen = r.weights->shape[1], zero = b.b.litInt(DType::I64, 0);
  UOpRef sorted = b.make(Op::Gather, {x, r.tokens}, {0});
  UOpRef made = b.broadcastTo(b.literal(x, 0), {r.tokens->shape[0], width});
  for (int64_t e = 0, n = b.constExtent(r.counts, 0, "the experts"); e < n && !b.failed(); ++e) {
    UOpRef begin = b.element(r.begins, 0, e), count = b.b.extent(b.element(r.counts, 0, e), 0, rows->hi);
    UOpRef y = expert(b.make(Op::SliceAt, {sorted, begin, zero, count, width}), e);
    made = b.make(Op::UpdateAt, {made, y, begin, zero});
  }
  UOpRef y = b.make(Op::Gather, {made, r.slots}, {0});
  ContractSpec spec;
  spec.kept = 2;
  spec.reduced = 1;
  spec.a = {label(0), label(2)};
  spec.b = {label(0), label(2), label(1)};
  return b.contract(spec, r.weights, y, {rows, width, chosen});
}

} // namespace astra::compose
