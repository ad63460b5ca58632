//===- FusedAttention.cpp: attention as fused operators have it ------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what FusedAttention.h says.
#include "astra/Compose/FusedAttention.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/Sequence.h"
#include "astra/IR/Index.h"

namespace astra::compose {

namespace {

/// [batch, S, heads * size] as [batch, heads, S, size].
UOpRef byHeads(Composer &b, UOpRef x, int64_t heads, const char *what) {
  if (!b.requireRank(x, 3, 3)) return nullptr;
  int64_t hidden = b.constExtent(x, 2, what);
  if (b.failed()) return nullptr;
  if (heads < 1 || hidden % heads)
    return b.fail(llvm::Twine(heads) + " heads do not divide " + what + " " + llvm::Twine(hidden));
  return b.permute(b.reshape(x, {x->shape[0], x->shape[1], b.idx(heads), b.idx(hidden / heads)}), {0, 2, 1, 3});
}

/// [batch, heads, S, size] as [batch, S, heads * size].
UOpRef sideBySide(Composer &b, UOpRef x) {
  if (!x) return nullptr;
  llvm::ArrayRef<UOpRef> d = x->shape;
  return b.reshape(b.permute(x, {0, 2, 1, 3}), {d[0], d[2], idxMul(b.c, d[1], d[3])});
}

/// One of the tensors that lie side by side in an axis of [batch, S, heads, count, size], as [batch, S, heads * size].
UOpRef packed(Composer &b, UOpRef x, int64_t count, int64_t at) {
  if (!b.requireRank(x, 5, 5) || !b.requireEqual(x->shape[3], b.idx(count), "the packed axis")) return nullptr;
  llvm::ArrayRef<UOpRef> d = x->shape;
  return b.reshape(b.element(x, 3, at), {d[0], d[1], idxMul(b.c, d[2], d[4])});
}

/// x plus its part of a bias, which `begin` is moved behind.
UOpRef biased(Composer &b, UOpRef x, UOpRef bias, UOpRef &begin) {
  if (!x || !bias) return x;
  if (!b.requireRank(x, 1) || !b.requireRank(bias, 1, 1)) return nullptr;
  UOpRef size = x->shape.back(), part = b.part(b.withRoom(bias, 0, idxAdd(b.c, begin, size)), 0, begin, size);
  begin = idxAdd(b.c, begin, size);
  return b.cast(b.bin(Op::Add, b.widen(x), b.widen(part)), x->dtype);
}

/// What a padding mask adds to scores [batch, heads, S, keys]: `hidden` where it is not above 0.
UOpRef paddingBias(Composer &b, UOpRef mask, UOpRef batch, UOpRef queries, UOpRef keys, double hidden) {
  if (!mask) return nullptr;
  if (!isInt(mask->dtype))
    return b.fail(llvm::Twine("the mask is of type ") + info(mask->dtype).text + ", expected i32");
  UOpRef one = b.idx(1), seen = nullptr;
  if (mask->rank() == 1) {
    UOpRef key = b.iota(DType::I64, {one, keys}, 1), numbers = b.cast(mask, DType::I64);
    auto column = [&](UOpRef begin) { return b.unsqueeze(b.part(numbers, 0, begin, batch), {1}); };
    if (mask->shape[0] == batch) {
      seen = b.bin(Op::Lt, key, column(b.idx(0)));
    } else if (mask->shape[0] == idxMul(b.c, batch, b.idx(2))) {
      UOpRef begin = b.bin(Op::Le, column(batch), key);
      seen = b.bin(Op::And, b.bin(Op::Lt, key, column(b.idx(0))), begin);
    } else {
      return b.unsupported("a mask of shape " + dimsText(mask->shape) + " is not supported for a batch of " +
                           dimsText(batch) + ": give one number for each sequence, two, or a mask of the keys");
    }
    seen = b.unsqueeze(seen, {1, 2});
  } else if (mask->rank() == 2 || mask->rank() == 3) {
    if (!b.requireEqual(mask->shape[0], batch, "the mask and the batch") ||
        !b.requireEqual(mask->shape.back(), keys, "the mask and the keys"))
      return nullptr;
    if (mask->rank() == 3 && !b.requireEqual(mask->shape[1], queries, "the mask and the queries")) return nullptr;
    seen = b.bin(Op::Lt, b.literal(mask, 0), mask);
    seen = mask->rank() == 2 ? b.unsqueeze(seen, {1, 2}) : b.unsqueeze(seen, {1});
  } else {
    return b.unsupported("a mask of rank " + llvm::Twine(mask->rank()) + " is not supported: give one of the keys");
  }
  UOpRef zero = b.b.lit(DType::F32, 0);
  return b.select(seen, zero, b.b.lit(DType::F32, hidden));
}

/// The sum of what is added to scores; either may be null.
UOpRef addedBias(Composer &b, UOpRef x, UOpRef y) {
  if (!x || !y) return x ? x : y;
  return b.bin(Op::Add, b.cast(x, DType::F32), b.cast(y, DType::F32));
}

} // namespace

namespace {

/// Queries, keys and values [batch, heads, sequence, size], with their biases.
struct Projections {
  UOpRef query = nullptr, key = nullptr, value = nullptr;
};

Projections projections(Composer &b, const FusedAttentionOperands &given, int64_t heads) {
  UOpRef q = given.query, k = given.key, v = given.value, begin = b.idx(0);
  if (!b.requireFloat(q)) return {};
  if (q->rank() == 5) {
    if (k || v) b.fail("a packed query has the key and the value in it");
    UOpRef all = q;
    q = packed(b, all, 3, 0), k = packed(b, all, 3, 1), v = packed(b, all, 3, 2);
  } else if (k && k->rank() == 5) {
    if (v) b.fail("a packed key has the value in it");
    UOpRef both = k;
    k = packed(b, both, 2, 0), v = packed(b, both, 2, 1);
  }
  if (b.failed()) return {};
  if (!k || !v) {
    b.fail("key and value are needed beside a query that is not packed");
    return {};
  }
  bool inHeads = k->rank() == 4; // as a cache has them: their biases are in them
  if (given.bias && !b.requireRank(given.bias, 1, 1)) return {};
  q = byHeads(b, biased(b, q, given.bias, begin), heads, "the hidden size of the query");
  if (!inHeads) {
    k = byHeads(b, biased(b, k, given.bias, begin), heads, "the hidden size of the key");
    v = byHeads(b, biased(b, v, given.bias, begin), heads, "the hidden size of the value");
  }
  if (b.failed()) return {};
  if (given.bias && !inHeads && !b.requireEqual(given.bias->shape[0], begin, "the bias and the hidden sizes"))
    return {};
  if (!b.requireRank(k, 4, 4) || !b.requireRank(v, 4, 4)) return {};
  return {q, k, v};
}

} // namespace

AttentionResult fusedAttention(Composer &b, const FusedAttentionOperands &given, const FusedAttentionOptions &options) {
  auto [q, k, v] = projections(b, given, options.heads);
  if (!q || !k || !v) return {};
  UOpRef keys = k->shape[2];
  if (given.pastKey && b.requireRank(given.pastKey, 4, 4)) keys = idxAdd(b.c, keys, given.pastKey->shape[2]);
  UOpRef hidden = paddingBias(b, given.mask, q->shape[0], q->shape[2], keys, options.hidden);
  AttentionOperands operands;
  operands.query = q, operands.key = k, operands.value = v;
  operands.mask = addedBias(b, hidden, given.scoreBias);
  operands.pastKey = given.pastKey, operands.pastValue = given.pastValue;
  if (b.failed()) return {};
  AttentionOptions inner;
  inner.heads = inner.keyHeads = options.heads;
  inner.scale = options.scale;
  inner.causal = options.causal;
  inner.padMask = false;
  inner.shown = AttentionOptions::Shown::Masked;
  AttentionResult r = attention(b, operands, inner);
  r.result = sideBySide(b, r.result);
  return r;
}

AttentionResult bufferedAttention(Composer &b, const FusedAttentionOperands &given, UOpRef past,
                                  const FusedAttentionOptions &options) {
  auto [q, k, v] = projections(b, given, options.heads);
  if (!q || !k || !v || !past) return {};
  if (!given.pastKey || !given.pastValue) {
    b.fail("past_key and past_value are missing, which the buffer lies in");
    return {};
  }
  if (!b.requireEqual(q->shape[2], b.idx(1), "the step")) return {};
  UOpRef first = b.broadcastTo(b.cast(b.reshape(past, {}), DType::I64), {q->shape[0]});
  AttentionOperands operands;
  operands.query = q;
  operands.key = updatedCache(b, given.pastKey, k, first, 2, false);
  operands.value = updatedCache(b, given.pastValue, v, first, 2, false);
  if (b.failed()) return {};
  UOpRef mask = given.mask, rows = operands.key->shape[2];
  if (mask && !b.requireRank(mask, 2, 2)) return {};
  if (mask && mask->shape[1] != rows) {
    UOpRef none = b.idx(0), more = idxMax(b.c, none, idxSub(b.c, rows, mask->shape[1]));
    mask = b.part(b.pad(mask, {none, none}, {none, more}, 0), 1, none, rows);
  }
  UOpRef hidden = paddingBias(b, mask, q->shape[0], q->shape[2], rows, options.hidden);
  operands.mask = addedBias(b, hidden, given.scoreBias);
  operands.validKeys = b.bin(Op::Add, first, 1.0);
  AttentionOptions inner;
  inner.heads = inner.keyHeads = options.heads;
  inner.scale = options.scale;
  inner.shown = AttentionOptions::Shown::Masked;
  AttentionResult r = attention(b, operands, inner);
  r.result = sideBySide(b, r.result);
  return r;
}

JoinedProjection joinedProjection(Composer &b, UOpRef x, UOpRef weights, UOpRef bias, llvm::ArrayRef<int64_t> sizes) {
  if (!b.requireFloat(x) || !b.requireRank(x, 3, 3) || !b.requireRank(weights, 2, 2)) return {};
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 1 || size > int64_t(1) << 31) b.fail("a hidden size is " + llvm::Twine(size) + ", expected 1 to 2^31");
    sum += size;
  }
  if (b.failed() || !b.requireEqual(weights->shape[1], b.idx(sum), "the weights and the hidden sizes")) return {};
  UOpRef y = product(b, b.widen(x), b.widen(weights));
  if (bias && b.requireRank(bias, 1, 1)) y = b.bin(Op::Add, y, b.widen(bias));
  y = b.cast(y, x->dtype);
  int64_t begin = 0;
  auto next = [&](int64_t size) { return b.part(y, 2, std::exchange(begin, begin + size), size); };
  JoinedProjection result;
  result.query = next(sizes[0]);
  result.key = next(sizes[1]);
  result.value = next(sizes[2]);
  return result;
}

JoinedProjection thirds(Composer &b, UOpRef x) {
  if (!b.requireRank(x, 3, 3)) return {};
  int64_t all = b.constExtent(x, 2, "the last axis of the projection"), size = all / 3;
  if (all % 3) b.fail("the last axis of the projection, " + llvm::Twine(all) + ", is no multiple of 3");
  if (b.failed()) return {};
  return {b.part(x, 2, 0, size), b.part(x, 2, size, size), b.part(x, 2, 2 * size, size)};
}

std::pair<UOpRef, UOpRef> splitCache(Composer &b, UOpRef cache) {
  if (!cache || !b.requireRank(cache, 5, 5) || !b.requireEqual(cache->shape[0], b.idx(2), "the cache's first axis"))
    return {nullptr, nullptr};
  return {b.element(cache, 0, 0), b.element(cache, 0, 1)};
}

UOpRef joinedCache(Composer &b, UOpRef keys, UOpRef values) {
  return b.concat({b.unsqueeze(keys, {0}), b.unsqueeze(values, {0})}, 0);
}

/// A query with the keys and the values beside it in its last axis, taken apart.
static Projections sideBySideHeads(Composer &b, UOpRef joined, int64_t heads, int64_t keyHeads) {
  int64_t hidden = b.constExtent(joined, 2, "the last axis of the query"), all = heads + 2 * keyHeads;
  if (b.failed()) return {};
  if (hidden % all) {
    b.fail("the last axis of the query, " + llvm::Twine(hidden) + ", is no multiple of " + llvm::Twine(all) + " heads");
    return {};
  }
  int64_t size = hidden / all;
  return {b.part(joined, 2, 0, heads * size), b.part(joined, 2, heads * size, keyHeads * size),
          b.part(joined, 2, (heads + keyHeads) * size, keyHeads * size)};
}

AttentionResult cachedAttention(Composer &b, const CachedAttentionOperands &given,
                                const CachedAttentionOptions &options) {
  UOpRef q = given.query, k = given.key, v = given.value;
  int64_t heads = options.heads, keyHeads = options.keyHeads;
  if (!b.requireFloat(q) || !b.requireRank(q, 3, 3)) return {};
  if (heads < 1 || keyHeads < 1 || heads % keyHeads || heads > 1 << 20)
    b.fail(llvm::Twine(heads) + " query heads are not a multiple of " + llvm::Twine(keyHeads) + " key heads");
  if (!k != !v) b.fail("key and value are given together, or the query has both in it");
  if (!given.pastKey != !given.pastValue) b.fail("past_key and past_value are used together: one of them is missing");
  if (!given.cosines != !given.sines) b.fail("cosines and sines are used together: one of them is missing");
  if (b.failed()) return {};
  if (!k) {
    auto [query, key, value] = sideBySideHeads(b, q, heads, keyHeads);
    q = query, k = key, v = value;
    if (b.failed()) return {};
  }
  q = byHeads(b, q, heads, "the hidden size of the query");
  k = byHeads(b, k, keyHeads, "the hidden size of the key");
  v = byHeads(b, v, keyHeads, "the hidden size of the value");
  if (b.failed()) return {};
  LayerNormalizationOptions norm{-1, options.epsilon, DType::F32};
  if (given.queryNorm) q = rmsNormalization(b, q, given.queryNorm, norm).value;
  if (given.keyNorm) k = rmsNormalization(b, k, given.keyNorm, norm).value;
  if (b.failed()) return {};

  // Where the new keys begin in each sequence, and how many rows the caches have.
  UOpRef batch = q->shape[0], count = q->shape[2], rows = given.pastKey ? nullptr : count, grown = b.idx(0);
  if (!b.requireRank(given.last, 1, 1) ||
      !b.requireEqual(given.last->shape[0], batch, "the numbers of keys and the batch"))
    return {};
  UOpRef total = given.total, known = nullptr;
  if (!total) {
    b.fail("the total number of keys is missing");
    return {};
  }
  if (const std::vector<UOpRef> *elements = b.elements(total); elements && elements->size() == 1)
    known = elements->front();
  total = b.cast(b.reshape(total, {}), DType::I64);
  UOpRef queries = b.fromIndex(count, DType::I64), last = b.cast(given.last, DType::I64);
  UOpRef before = b.bin(Op::Sub, b.bin(Op::Add, last, 1.0), queries);
  UOpRef first = b.select(b.bin(Op::Eq, total, queries), b.literal(before, 0), before);
  if (given.pastKey) {
    if (!b.requireRank(given.pastKey, 4, 4) || !b.requireRank(given.pastValue, 4, 4)) return {};
    rows = given.pastKey->shape[2];
    if (known) grown = idxMax(b.c, b.idx(0), idxSub(b.c, known, rows));
  } else if (known && known != count) {
    grown = idxMax(b.c, b.idx(0), idxSub(b.c, known, count));
  }
  auto cached = [&](UOpRef past, UOpRef update) -> UOpRef {
    if (!update) return nullptr;
    Dims none(4, b.idx(0)), behind = none;
    behind[2] = grown;
    if (past) {
      past = b.pad(past, none, behind, 0);
    } else {
      Dims dims(update->shape.begin(), update->shape.end());
      dims[2] = idxAdd(b.c, count, grown);
      past = b.broadcastTo(b.c.literal(update->dtype, 0), dims);
    }
    if (past && past->dtype != update->dtype)
      return b.unsupported(llvm::Twine("a cache of type ") + info(past->dtype).text +
                           " is not supported: its type is that of the query, " + info(update->dtype).text);
    return updatedCache(b, past, update, first, 2, false);
  };
  if (given.cosines) {
    if (!b.requireRank(given.cosines, 2, 2)) return {};
    RotaryOptions rotary;
    rotary.interleaved = options.interleaved;
    rotary.columns = 2 * b.constExtent(given.cosines, 1, "the columns of the cosines");
    UOpRef positions = given.positions;
    if (!positions)
      positions = b.bin(Op::Add, b.unsqueeze(first, {1}), b.iota(DType::I64, {b.idx(1), count}, 1));
    else if (positions->rank() == 2)
      positions = b.broadcastTo(positions, {batch, count});
    q = rotaryEmbedding(b, q, given.cosines, given.sines, positions, rotary);
    k = rotaryEmbedding(b, k, given.cosines, given.sines, positions, rotary);
  }
  AttentionOperands operands;
  operands.query = q;
  operands.key = cached(given.pastKey, k);
  operands.value = cached(given.pastValue, v);
  operands.mask = given.scoreBias;
  operands.validKeys = b.bin(Op::Add, first, queries);
  operands.sink = given.sink ? given.sink : options.zeroSink ? b.broadcastTo(b.literal(q, 0), {b.idx(heads)}) : nullptr;
  if (b.failed()) return {};
  AttentionOptions inner;
  inner.heads = heads, inner.keyHeads = keyHeads;
  inner.scale = options.scale;
  inner.softcap = options.softcap;
  inner.causal = options.causal;
  inner.left = options.window;
  AttentionResult r = attention(b, operands, inner);
  r.result = sideBySide(b, r.result);
  r.scores = nullptr;
  return r;
}

} // namespace astra::compose
