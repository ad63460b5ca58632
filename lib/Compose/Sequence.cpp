//===- Sequence.cpp: ops along a sequence's axis -------------------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what Sequence.h says.
#include "astra/Compose/Sequence.h"
#include "astra/Compose/Scan.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

UOpRef reverseSequence(Composer &b, UOpRef x, UOpRef lengths, int64_t batchAxis, int64_t timeAxis) {
  if (!x || !lengths || b.failed()) return nullptr;
  Dims time(x->rank(), b.idx(1)), batch = time;
  time[timeAxis] = x->shape[timeAxis];
  batch[batchAxis] = x->shape[batchAxis];
  UOpRef at = b.iota(DType::I64, time, timeAxis), length = b.reshape(b.cast(lengths, DType::I64), batch);
  UOpRef last = b.bin(Op::Sub, length, 1.0);
  UOpRef from = b.select(b.bin(Op::Lt, at, length), b.bin(Op::Sub, last, at), at);
  return b.make(Op::Pick, {x, b.broadcastTo(from, x->shape)}, {timeAxis});
}

// ---- rotary embedding

namespace {

/// The cosines or sines of every position, broadcastable to the operand: [batch, sequence, half] with an axis of extent
/// 1 where the heads are.
UOpRef rotation(Composer &b, UOpRef cache, DType type, UOpRef at, int64_t half, int64_t headAxis) {
  if (!cache || cache->dtype != type) return b.fail("the caches must be of the operand's type");
  if (at) {
    if (!b.requireRank(cache, 2, 2) || !b.requireRank(at, 2, 2)) return nullptr;
    cache = b.make(Op::Gather, {cache, at}, {0});
  } else if (!b.requireRank(cache, 3, 3)) {
    return nullptr;
  }
  if (cache && cache->shape.back()->constIndex() != half)
    return b.fail("a cache has " + dimsText(cache->shape.back()) + " columns, half of the rotated ones are " +
                  llvm::Twine(half));
  return b.unsqueeze(b.widen(cache), {headAxis});
}

} // namespace

UOpRef positionsFrom(Composer &b, UOpRef positions, UOpRef x) {
  if (!b.requireRank(positions, 1, 2) || !b.requireRank(x, 3, 4)) return nullptr;
  if (positions->rank() == 2) return positions;
  if (!b.requireEqual(positions->shape[0], b.idx(1), "the positions")) return nullptr;
  UOpRef count = x->shape[x->rank() - 2], ramp = b.iota(DType::I64, {b.idx(1), count}, 1);
  UOpRef at = b.bin(Op::Add, ramp, b.reshape(b.cast(positions, DType::I64), {}));
  return b.broadcastTo(at, {x->shape[0], count});
}

UOpRef rotaryEmbedding(Composer &b, UOpRef given, UOpRef cosines, UOpRef sines, UOpRef positions,
                       const RotaryOptions &options) {
  UOpRef x = b.widen(given);
  bool interleaved = options.interleaved;
  int64_t heads = options.heads, rotated = options.columns;
  if (!b.requireFloat(x) || !b.requireRank(x, 3, 4)) return nullptr;
  Dims whole(x->shape.begin(), x->shape.end());
  if (x->rank() == 3) {
    int64_t hidden = b.constExtent(x, 2, "the hidden size");
    if (heads < 1 || hidden % heads)
      b.fail(llvm::Twine(heads) + " heads (" + b.hints.option("num_heads") + ") do not divide the hidden size " +
             llvm::Twine(hidden));
    if (b.failed()) return nullptr;
    x = b.reshape(x, {whole[0], whole[1], b.idx(heads), b.idx(hidden / heads)});
  }
  int64_t headAxis = whole.size() == 3 ? 2 : 1, size = b.constExtent(x, 3, "the head size");
  if (rotated == 0) rotated = size;
  if (rotated < 0 || rotated > size || rotated % 2)
    b.fail(llvm::Twine(rotated) + " columns of " + llvm::Twine(size) + " cannot be rotated in pairs");
  if (b.failed()) return nullptr;
  UOpRef cosine = rotation(b, cosines, given->dtype, positions, rotated / 2, headAxis),
         sine = rotation(b, sines, given->dtype, positions, rotated / 2, headAxis);
  if (b.failed()) return nullptr;
  UOpRef zero = b.idx(0), one = b.idx(1), half = b.idx(rotated / 2), width = b.idx(rotated);
  UOpRef turned = b.part(x, 3, zero, width), left, right;
  Dims pairs(x->shape.begin(), x->shape.end());
  pairs.back() = half;
  if (interleaved) {
    Dims split = pairs;
    split.push_back(b.idx(2));
    turned = b.reshape(turned, split);
    left = b.reshape(b.part(turned, 4, zero, one), pairs);
    right = b.reshape(b.part(turned, 4, one, one), pairs);
  } else {
    left = b.part(turned, 3, zero, half);
    right = b.part(turned, 3, half, half);
  }
  UOpRef real = b.bin(Op::Sub, b.bin(Op::Mul, cosine, left), b.bin(Op::Mul, sine, right));
  UOpRef imaginary = b.bin(Op::Add, b.bin(Op::Mul, sine, left), b.bin(Op::Mul, cosine, right));
  if (b.failed()) return nullptr;
  UOpRef y;
  if (interleaved) {
    Dims joined = pairs;
    joined.back() = width;
    y = b.reshape(b.concat({b.unsqueeze(real, {4}), b.unsqueeze(imaginary, {4})}, 4), joined);
  } else {
    y = b.concat({real, imaginary}, 3);
  }
  if (rotated < size) y = b.concat({y, b.part(x, 3, width, b.idx(size - rotated))}, 3);
  return b.cast(b.reshape(y, whole), given->dtype);
}

RotaryTables rotaryTables(Composer &b, UOpRef positions, int64_t size, double base, DType type) {
  if (size < 2 || size % 2) b.fail(llvm::Twine(size) + " columns cannot be rotated in pairs");
  if (b.failed() || !positions) return {};
  constexpr DType t = DType::F64;
  UOpRef pair = b.iota(t, {b.idx(size / 2)}, 0), rate = b.bin(Op::Mul, pair, -2.0 / double(size));
  rate = b.bin(Op::Pow, b.literal(rate, base), rate);
  UOpRef angle = b.bin(Op::Mul, b.unsqueeze(b.iota(t, {positions}, 0), {1}), rate);
  return {b.cast(b.un(Op::Cos, angle), type), b.cast(b.un(Op::Sin, angle), type)};
}

UOpRef alibi(Composer &b, int64_t heads, UOpRef queries, UOpRef keys) {
  if (heads < 1 || heads & (heads - 1)) b.fail("heads is a power of two, not " + llvm::Twine(heads));
  if (b.failed() || !queries || !keys) return nullptr;
  UOpRef number = b.bin(Op::Add, b.iota(DType::F32, {b.idx(heads)}, 0), 1);
  UOpRef slope = b.unsqueeze(b.un(Op::Exp2, b.bin(Op::Mul, number, -8.0 / double(heads))), {1, 2});
  UOpRef query = b.bin(Op::Add, b.iota(DType::I64, {queries}, 0), b.scalar(idxSub(b.c, keys, queries), DType::I64));
  UOpRef apart = b.bin(Op::Sub, b.unsqueeze(query, {1}), b.iota(DType::I64, {keys}, 0));
  UOpRef distance = b.cast(b.un(Op::Abs, apart), DType::F32);
  return b.unsqueeze(b.bin(Op::Mul, slope, b.bin(Op::Sub, b.literal(distance, 0), distance)), {0});
}

// ---- caches and states

/// Each element of the result says which row of the update, if any, it comes from.
UOpRef updatedCache(Composer &b, UOpRef cache, UOpRef update, UOpRef first, int64_t axis, bool circular) {
  if (!b.requireRank(cache, 2) || !b.requireRank(update, cache->rank(), cache->rank())) return nullptr;
  axis = b.axis(axis, cache->rank());
  if (axis == 0) b.fail(b.hints.option("axis") + " names the batch");
  for (unsigned i = 0; i < cache->rank(); ++i)
    if (int64_t(i) == axis ? update->shape[i]->lo > cache->shape[i]->hi : update->shape[i] != cache->shape[i])
      b.fail("the update " + dimsText(update->shape) + " does not fit the cache " + dimsText(cache->shape));
  if (b.failed()) return nullptr;
  Dims line(cache->rank(), b.idx(1)), batch = line;
  line[axis] = cache->shape[axis];
  batch[0] = cache->shape[0];
  UOpRef row = b.iota(DType::I64, line, axis);
  if (first) {
    if (first->rank() != 1 || first->shape[0] != cache->shape[0])
      return b.failExtents("write_indices has the shape " + dimsText(first->shape) + ", expected one for each of " +
                               dimsText(cache->shape[0]),
                           first->shape, {cache->shape[0]});
    row = b.bin(Op::Sub, row, b.reshape(b.cast(first, DType::I64), batch));
    if (circular) row = b.bin(Op::Mod, row, b.fromIndex(cache->shape[axis], DType::I64));
  }
  UOpRef inside = b.bin(Op::And, b.bin(Op::Le, b.literal(row, 0), row),
                        b.bin(Op::Lt, row, b.fromIndex(update->shape[axis], DType::I64)));
  UOpRef picked = b.make(Op::Pick, {update, b.broadcastTo(row, cache->shape)}, {axis});
  return b.select(inside, picked, cache);
}

CausalConvolution causalConvolution(Composer &b, UOpRef x, UOpRef w, UOpRef given, UOpRef past, bool swish) {
  UOpRef zero = b.idx(0), one = b.idx(1);
  if (!b.requireFloat(x) || !b.requireRank(x, 3, 3) || !b.requireRank(w, 3, 3)) return {};
  UOpRef batch = x->shape[0], channels = x->shape[1], length = x->shape[2];
  int64_t kernel = b.constExtent(w, 2, "the kernel's extent");
  if (kernel < 1 || w->shape[0] != channels || w->shape[1] != one || w->dtype != x->dtype)
    b.fail("the weight " + dimsText(w->shape) + " does not fit the input " + dimsText(x->shape));
  if (b.failed()) return {};
  Dims state = {batch, channels, b.idx(kernel - 1)};
  UOpRef whole = b.pad(x, {zero, zero, state[2]}, {zero, zero, zero}, 0);
  if (past) {
    if (past->shape != llvm::ArrayRef<UOpRef>(state) || past->dtype != x->dtype) {
      b.failExtents("past_state has the shape " + dimsText(past->shape) + ", expected " + dimsText(state), past->shape,
                    state);
      return {};
    }
    if (kernel > 1) whole = b.concat({past, x}, 2);
  }
  ContractSpec spec; // labels: batch, channel, position, kernel
  spec.kept = 3;
  spec.reduced = 1;
  AffineForm position{{{2, 1}, {3, 1}}, 0, 1};
  if (kernel == 1) position.terms.pop_back(); // the label is always 0
  spec.a = {label(0), label(1), position};
  spec.b = {label(1), {{}, 0, 1}, label(3)};
  UOpRef y = b.contract(spec, b.widen(whole), b.widen(w), {batch, channels, length, b.idx(kernel)});
  if (given) {
    UOpRef bias = b.widen(given);
    if (!b.requireRank(bias, 1, 1)) return {};
    y = b.bin(Op::Add, y, b.reshape(bias, {bias->shape[0], one}));
  }
  if (swish) y = b.bin(Op::Mul, y, b.un(Op::Sigmoid, y));
  return {b.cast(y, x->dtype), b.shrink(whole, {zero, zero, length}, state)};
}

// ---- linear attention

namespace {

/// [batch, length, heads * size] as [length, batch, heads, size]: the steps of a scan.
UOpRef steps(Composer &b, UOpRef x, int64_t heads, const char *what) {
  if (!b.requireRank(x, 3, 3)) return nullptr;
  int64_t width = b.constExtent(x, 2, what);
  if (b.failed() || width % heads)
    return b.fail(llvm::Twine(what) + " is " + llvm::Twine(width) + ", which " + llvm::Twine(heads) +
                  " heads do not divide");
  UOpRef split = b.reshape(b.widen(x), {x->shape[0], x->shape[1], b.idx(heads), b.idx(width / heads)});
  return b.permute(split, {1, 0, 2, 3});
}

} // namespace

/// Whether the state decays, and whether it is corrected by what it gives for the key.
LinearAttention linearAttention(Composer &b, const LinearAttentionOperands &given) {
  int64_t heads = given.heads, kvHeads = given.keyHeads;
  if (kvHeads < 1 || heads < 1 || heads % kvHeads)
    b.fail("q_num_heads is " + llvm::Twine(heads) + ", which is no positive multiple of kv_num_heads, " +
           llvm::Twine(kvHeads));
  if (b.failed()) return {};
  bool gated = given.decay, delta = given.beta;
  UOpRef q = steps(b, given.query, heads, "the query's last extent"),
         k = steps(b, given.key, kvHeads, "the key's last extent"),
         v = steps(b, given.value, kvHeads, "the value's last extent"), one = b.idx(1);
  if (b.failed()) return {};
  UOpRef length = q->shape[0], batch = q->shape[1], group = b.idx(heads / kvHeads), kv = k->shape[2];
  UOpRef keySize = k->shape[3], valueSize = v->shape[3];
  if (q->shape[3] != keySize || k->shape.take_front(2) != q->shape.take_front(2) ||
      v->shape.take_front(2) != q->shape.take_front(2))
    b.fail("query, key and value have the shapes " + dimsText(given.query->shape) + ", " + dimsText(given.key->shape) +
           " and " + dimsText(given.value->shape) + ", which do not go together");
  Dims stateShape = {batch, kv, keySize, valueSize};
  UOpRef state = b.broadcastTo(b.literal(q, 0), stateShape);
  if (given.state) {
    if (given.state->shape != llvm::ArrayRef<UOpRef>(stateShape))
      b.failExtents("past_state has the shape " + dimsText(given.state->shape) + ", expected " + dimsText(stateShape),
                    given.state->shape, stateShape);
    state = b.widen(given.state);
  }
  UOpRef decay = nullptr, beta = nullptr;
  if (gated) {
    decay = steps(b, given.decay, kvHeads, "the decay's last extent");
    if (decay && decay->shape[3] != keySize && decay->shape[3] != one)
      b.fail("the decay " + dimsText(given.decay->shape) + " is neither one per head nor one per column of the key");
    decay = b.un(Op::Exp, decay);
  }
  if (delta) {
    bool single = given.beta->rank() == 3 && given.beta->shape[2] == one;
    beta = steps(b, given.beta, single ? 1 : kvHeads, "beta's last extent");
    if (beta && beta->shape[3] != one)
      b.fail("beta " + dimsText(given.beta->shape) + " is neither one per head nor one for all");
  }
  if (b.failed()) return {};
  q = b.reshape(q, {length, batch, kv, group, keySize});
  if (decay) decay = b.unsqueeze(decay, {4}); // [length, batch, kv heads, key or 1, 1]

  ScanMaker scan(b, length);
  UOpRef s = scan.carry(state), qt = scan.slice(q), kt = scan.slice(k), vt = scan.slice(v);
  UOpRef gt = decay ? scan.slice(decay) : nullptr, bt = beta ? scan.slice(beta) : nullptr;
  ContractSpec read; // labels: batch, kv head, query of the group, value, key
  read.kept = 4;
  read.reduced = 1;
  read.a = {label(0), label(1), label(2), label(4)};
  read.b = {label(0), label(1), label(4), label(3)};
  auto seen = [&](UOpRef rows, UOpRef count) { // rows [batch, kv heads, count, key] times the state
    return b.contract(read, rows, s, {batch, kv, count, valueSize, keySize});
  };
  if (gt) s = b.bin(Op::Mul, s, gt);
  if (delta) vt = b.bin(Op::Mul, bt, b.bin(Op::Sub, vt, b.squeeze(seen(b.unsqueeze(kt, {2}), one), {2})));
  s = b.bin(Op::Add, s, b.bin(Op::Mul, b.unsqueeze(kt, {3}), b.unsqueeze(vt, {2})));
  std::vector<UOpRef> results = scan.finish({s}, {seen(qt, group)});
  if (b.failed()) return {};
  UOpRef factor = nullptr;
  if (given.scale != 0)
    factor = b.literal(q, given.scale);
  else
    factor = b.bin(Op::Div, b.literal(q, 1), b.un(Op::Sqrt, b.fromIndex(keySize, q->dtype)));
  UOpRef y = b.permute(b.bin(Op::Mul, results[1], factor), {1, 0, 2, 3, 4});
  y = b.reshape(y, {batch, length, idxMul(b.c, b.idx(heads), valueSize)});
  return {b.cast(y, given.query->dtype), b.cast(results[0], (given.state ? given.state : given.query)->dtype)};
}

} // namespace astra::compose
