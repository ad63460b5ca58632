//===- OpsSequence.cpp: ops along a sequence's axis ------------------------===//
// Takes:    nodes that turn round, rotate, filter, update or accumulate parts of sequences.
// Gives:    picks by computed indices, elementwise products, one contract for the causal convolution, a scan for linear
//           attention.
// Keeps:    f16 and bf16 products in f32, rounded once (N4); moved elements keep their bits.
#include "OpTable.h"
#include "ScanMaker.h"
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

AffineForm label(int64_t l) { return {{{l, 1}}, 0, 1}; }

void reverseSequences(Node &n) {
  UOpRef x = n.in(0), lengths = n.in(1);
  int64_t batch = n.intAttr("batch_axis", 1), time = n.intAttr("time_axis", 0);
  if (!n.requireRank(x, 2) || !n.requireRank(lengths, 1, 1)) return;
  if (batch + time != 1 || batch * time != 0)
    n.fail("batch_axis and time_axis are " + llvm::Twine(batch) + " and " + llvm::Twine(time) +
           ", expected 0 and 1 or 1 and 0");
  else if (lengths->shape[0] != x->shape[batch])
    n.failExtents("there are " + dimsText(lengths->shape) + " lengths for " + dimsText(x->shape[batch]) + " sequences",
                  lengths->shape, {x->shape[batch]});
  n.give(reverseSequence(n, x, lengths, batch, time));
}

// ---- rotary embedding

/// Elements begin, begin + 1, ... of the last axis.
UOpRef columns(Node &n, UOpRef x, UOpRef begin, UOpRef size) {
  if (!x) return nullptr;
  Dims at(x->rank(), n.c.index(0)), extents(x->shape.begin(), x->shape.end());
  at.back() = begin;
  extents.back() = size;
  return n.shrink(x, at, extents);
}

/// The cosines or sines of every position, broadcastable to the operand: [batch, sequence, half] with an axis of extent
/// 1 where the heads are.
UOpRef rotation(Node &n, unsigned input, int64_t half, int64_t headAxis) {
  UOpRef cache = n.in(input);
  if (!cache || cache->dtype != n.in(0)->dtype) return n.fail("the caches must be of the operand's type");
  if (n.has(3)) {
    UOpRef at = n.in(3);
    if (!n.requireRank(cache, 2, 2) || !n.requireRank(at, 2, 2)) return nullptr;
    cache = n.make(Op::Gather, {cache, at}, {0});
  } else if (!n.requireRank(cache, 3, 3)) {
    return nullptr;
  }
  if (cache && cache->shape.back()->constIndex() != half)
    return n.fail("a cache has " + dimsText(cache->shape.back()) + " columns, half of the rotated ones are " +
                  llvm::Twine(half));
  return n.unsqueeze(n.widen(cache), {headAxis});
}

/// Pairs (a, b) become (a cos - b sin, a sin + b cos). A pair lies in two halves of the rotated columns, or side by
/// side when interleaved.
void rotaryEmbedding(Node &n) {
  UOpRef x = n.widen(n.in(0));
  bool interleaved = n.intAttr("interleaved", 0) != 0;
  int64_t heads = n.intAttr("num_heads", 0), rotated = n.intAttr("rotary_embedding_dim", 0);
  if (!n.requireFloat(x) || !n.requireRank(x, 3, 4)) return;
  Dims whole(x->shape.begin(), x->shape.end());
  if (x->rank() == 3) {
    int64_t hidden = n.constExtent(x, 2, "the hidden size");
    if (heads < 1 || hidden % heads)
      n.fail(llvm::Twine(heads) + " heads (attribute 'num_heads') do not divide the hidden size " +
             llvm::Twine(hidden));
    if (n.failed()) return;
    x = n.reshape(x, {whole[0], whole[1], n.c.index(heads), n.c.index(hidden / heads)});
  }
  int64_t headAxis = whole.size() == 3 ? 2 : 1, size = n.constExtent(x, 3, "the head size");
  if (rotated == 0) rotated = size;
  if (rotated < 0 || rotated > size || rotated % 2)
    n.fail(llvm::Twine(rotated) + " columns of " + llvm::Twine(size) + " cannot be rotated in pairs");
  if (n.failed()) return;
  UOpRef cosine = rotation(n, 1, rotated / 2, headAxis), sine = rotation(n, 2, rotated / 2, headAxis);
  if (n.failed()) return;
  UOpRef zero = n.c.index(0), one = n.c.index(1), half = n.c.index(rotated / 2), width = n.c.index(rotated);
  UOpRef turned = columns(n, x, zero, width), a, b;
  Dims pairs(x->shape.begin(), x->shape.end());
  pairs.back() = half;
  if (interleaved) {
    Dims split = pairs;
    split.push_back(n.c.index(2));
    turned = n.reshape(turned, split);
    a = n.reshape(columns(n, turned, zero, one), pairs);
    b = n.reshape(columns(n, turned, one, one), pairs);
  } else {
    a = columns(n, turned, zero, half);
    b = columns(n, turned, half, half);
  }
  UOpRef real = n.bin(Op::Sub, n.bin(Op::Mul, cosine, a), n.bin(Op::Mul, sine, b));
  UOpRef imaginary = n.bin(Op::Add, n.bin(Op::Mul, sine, a), n.bin(Op::Mul, cosine, b));
  if (n.failed()) return;
  UOpRef y;
  if (interleaved) {
    Dims joined = pairs;
    joined.back() = width;
    y = n.reshape(n.concat({n.unsqueeze(real, {4}), n.unsqueeze(imaginary, {4})}, 4), joined);
  } else {
    y = n.concat({real, imaginary}, 3);
  }
  if (rotated < size) y = n.concat({y, columns(n, x, width, n.c.index(size - rotated))}, 3);
  n.give(n.cast(n.reshape(y, whole), n.in(0)->dtype));
}

// ---- caches and states

/// Each element of the result says which row of the update, if any, it comes from. A row that would lie outside of the
/// cache is dropped in the mode linear, which ONNX leaves open.
void tensorScatter(Node &n) {
  UOpRef cache = n.in(0), update = n.in(1);
  std::string mode = n.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular") n.fail("attribute 'mode' is '" + mode + "', expected linear or circular");
  if (!n.requireRank(cache, 2) || !n.requireRank(update, cache->rank(), cache->rank())) return;
  int64_t axis = n.axis(n.intAttr("axis", -2), cache->rank());
  if (axis == 0) n.fail("attribute 'axis' names the batch");
  for (unsigned i = 0; i < cache->rank(); ++i)
    if (int64_t(i) == axis ? update->shape[i]->lo > cache->shape[i]->hi : update->shape[i] != cache->shape[i])
      n.fail("the update " + dimsText(update->shape) + " does not fit the cache " + dimsText(cache->shape));
  if (n.failed()) return;
  Dims line(cache->rank(), n.c.index(1)), batch = line;
  line[axis] = cache->shape[axis];
  batch[0] = cache->shape[0];
  UOpRef row = n.iota(DType::I64, line, axis);
  if (n.has(2)) {
    UOpRef first = n.in(2);
    if (first->rank() != 1 || first->shape[0] != cache->shape[0]) {
      n.failExtents("write_indices has the shape " + dimsText(first->shape) + ", expected one for each of " +
                        dimsText(cache->shape[0]),
                    first->shape, {cache->shape[0]});
      return;
    }
    row = n.bin(Op::Sub, row, n.reshape(n.cast(first, DType::I64), batch));
    if (mode == "circular") row = n.bin(Op::Mod, row, n.fromIndex(cache->shape[axis], DType::I64));
  }
  UOpRef inside = n.bin(Op::And, n.bin(Op::Le, n.literal(row, 0), row),
                        n.bin(Op::Lt, row, n.fromIndex(update->shape[axis], DType::I64)));
  UOpRef picked = n.make(Op::Pick, {update, n.broadcastTo(row, cache->shape)}, {axis});
  n.give(n.select(inside, picked, cache));
}

/// A depthwise convolution over the state and the input; what lies before the sequence is 0 without a state.
void causalConvolution(Node &n) {
  UOpRef x = n.in(0), w = n.in(1), zero = n.c.index(0), one = n.c.index(1);
  std::string activation = n.stringAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.fail("attribute 'activation' is '" + activation + "', expected none, silu or swish");
  if (!n.requireFloat(x) || !n.requireRank(x, 3, 3) || !n.requireRank(w, 3, 3)) return;
  UOpRef batch = x->shape[0], channels = x->shape[1], length = x->shape[2];
  int64_t kernel = n.constExtent(w, 2, "the kernel's extent");
  if (kernel < 1 || w->shape[0] != channels || w->shape[1] != one || w->dtype != x->dtype)
    n.fail("the weight " + dimsText(w->shape) + " does not fit the input " + dimsText(x->shape));
  if (n.failed()) return;
  Dims state = {batch, channels, n.c.index(kernel - 1)};
  UOpRef whole = n.pad(x, {zero, zero, state[2]}, {zero, zero, zero}, 0);
  if (n.has(3)) {
    UOpRef past = n.in(3);
    if (past->shape != llvm::ArrayRef<UOpRef>(state) || past->dtype != x->dtype) {
      n.failExtents("past_state has the shape " + dimsText(past->shape) + ", expected " + dimsText(state), past->shape,
                    state);
      return;
    }
    if (kernel > 1) whole = n.concat({past, x}, 2);
  }
  ContractSpec spec; // labels: batch, channel, position, kernel
  spec.kept = 3;
  spec.reduced = 1;
  AffineForm position{{{2, 1}, {3, 1}}, 0, 1};
  if (kernel == 1) position.terms.pop_back(); // the label is always 0
  spec.a = {label(0), label(1), position};
  spec.b = {label(1), {{}, 0, 1}, label(3)};
  UOpRef y = n.contract(spec, n.widen(whole), n.widen(w), {batch, channels, length, n.c.index(kernel)});
  if (n.has(2)) {
    UOpRef bias = n.widen(n.in(2));
    if (!n.requireRank(bias, 1, 1)) return;
    y = n.bin(Op::Add, y, n.reshape(bias, {bias->shape[0], one}));
  }
  if (activation != "none") y = n.bin(Op::Mul, y, n.un(Op::Sigmoid, y));
  n.give(n.cast(y, x->dtype));
  if (n.wants(1)) n.give(1, n.shrink(whole, {zero, zero, length}, state));
}

// ---- linear attention

/// [batch, length, heads * size] as [length, batch, heads, size]: the steps of a scan.
UOpRef steps(Node &n, UOpRef x, int64_t heads, const char *what) {
  if (!n.requireRank(x, 3, 3)) return nullptr;
  int64_t width = n.constExtent(x, 2, what);
  if (n.failed() || width % heads)
    return n.fail(llvm::Twine(what) + " is " + llvm::Twine(width) + ", which " + llvm::Twine(heads) +
                  " heads do not divide");
  UOpRef split = n.reshape(n.widen(x), {x->shape[0], x->shape[1], n.c.index(heads), n.c.index(width / heads)});
  return n.permute(split, {1, 0, 2, 3});
}

/// The update rule says whether the state decays and whether it is corrected by what it gives for the key.
void linearAttention(Node &n) {
  n.ignoreAttr("chunk_size"); // a hint
  std::string rule = n.stringAttr("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    n.fail("attribute 'update_rule' is '" + rule + "', expected linear, gated, delta or gated_delta");
  int64_t heads = n.intAttr("q_num_heads", 0), kvHeads = n.intAttr("kv_num_heads", 0);
  double scale = n.floatAttr("scale", 0);
  if (kvHeads < 1 || heads < 1 || heads % kvHeads)
    n.fail("q_num_heads is " + llvm::Twine(heads) + ", which is no positive multiple of kv_num_heads, " +
           llvm::Twine(kvHeads));
  if (n.has(4) != gated) n.fail("the input decay goes with the rules gated and gated_delta, the rule is " + rule);
  if (n.has(5) != delta) n.fail("the input beta goes with the rules delta and gated_delta, the rule is " + rule);
  if (n.failed()) return;
  UOpRef q = steps(n, n.in(0), heads, "the query's last extent"),
         k = steps(n, n.in(1), kvHeads, "the key's last extent"),
         v = steps(n, n.in(2), kvHeads, "the value's last extent"), one = n.c.index(1);
  if (n.failed()) return;
  UOpRef length = q->shape[0], batch = q->shape[1], group = n.c.index(heads / kvHeads), kv = k->shape[2];
  UOpRef keySize = k->shape[3], valueSize = v->shape[3];
  if (q->shape[3] != keySize || k->shape.take_front(2) != q->shape.take_front(2) ||
      v->shape.take_front(2) != q->shape.take_front(2))
    n.fail("query, key and value have the shapes " + dimsText(n.in(0)->shape) + ", " + dimsText(n.in(1)->shape) +
           " and " + dimsText(n.in(2)->shape) + ", which do not go together");
  Dims stateShape = {batch, kv, keySize, valueSize};
  UOpRef state = n.broadcastTo(n.literal(q, 0), stateShape);
  if (n.has(3)) {
    if (n.in(3)->shape != llvm::ArrayRef<UOpRef>(stateShape))
      n.failExtents("past_state has the shape " + dimsText(n.in(3)->shape) + ", expected " + dimsText(stateShape),
                    n.in(3)->shape, stateShape);
    state = n.widen(n.in(3));
  }
  UOpRef decay = nullptr, beta = nullptr;
  if (gated) {
    decay = steps(n, n.in(4), kvHeads, "the decay's last extent");
    if (decay && decay->shape[3] != keySize && decay->shape[3] != one)
      n.fail("the decay " + dimsText(n.in(4)->shape) + " is neither one per head nor one per column of the key");
    decay = n.un(Op::Exp, decay);
  }
  if (delta) {
    bool single = n.in(5)->rank() == 3 && n.in(5)->shape[2] == one;
    beta = steps(n, n.in(5), single ? 1 : kvHeads, "beta's last extent");
    if (beta && beta->shape[3] != one)
      n.fail("beta " + dimsText(n.in(5)->shape) + " is neither one per head nor one for all");
  }
  if (n.failed()) return;
  q = n.reshape(q, {length, batch, kv, group, keySize});
  if (decay) decay = n.unsqueeze(decay, {4}); // [length, batch, kv heads, key or 1, 1]

  ScanMaker scan(n, length);
  UOpRef s = scan.carry(state), qt = scan.slice(q), kt = scan.slice(k), vt = scan.slice(v);
  UOpRef gt = decay ? scan.slice(decay) : nullptr, bt = beta ? scan.slice(beta) : nullptr;
  ContractSpec read; // labels: batch, kv head, query of the group, value, key
  read.kept = 4;
  read.reduced = 1;
  read.a = {label(0), label(1), label(2), label(4)};
  read.b = {label(0), label(1), label(4), label(3)};
  auto seen = [&](UOpRef rows, UOpRef count) { // rows [batch, kv heads, count, key] times the state
    return n.contract(read, rows, s, {batch, kv, count, valueSize, keySize});
  };
  if (gt) s = n.bin(Op::Mul, s, gt);
  if (delta) vt = n.bin(Op::Mul, bt, n.bin(Op::Sub, vt, n.squeeze(seen(n.unsqueeze(kt, {2}), one), {2})));
  s = n.bin(Op::Add, s, n.bin(Op::Mul, n.unsqueeze(kt, {3}), n.unsqueeze(vt, {2})));
  std::vector<UOpRef> results = scan.finish({s}, {seen(qt, group)});
  if (n.failed()) return;
  UOpRef factor = nullptr;
  if (scale != 0)
    factor = n.literal(q, scale);
  else
    factor = n.bin(Op::Div, n.literal(q, 1), n.un(Op::Sqrt, n.fromIndex(keySize, q->dtype)));
  UOpRef y = n.permute(n.bin(Op::Mul, results[1], factor), {1, 0, 2, 3, 4});
  y = n.reshape(y, {batch, length, idxMul(n.c, n.c.index(heads), valueSize)});
  n.give(n.cast(y, n.in(0)->dtype));
  if (n.wants(1)) n.give(1, n.cast(results[0], (n.has(3) ? n.in(3) : n.in(0))->dtype));
}

constexpr Row rows[] = {
    {"CausalConvWithState", 27, latest, 2, 4, causalConvolution, floatTypes},
    {"LinearAttention", 27, latest, 3, 6, linearAttention, floatTypes},
    {"ReverseSequence", 10, latest, 2, 2, reverseSequences},
    {"RotaryEmbedding", 23, latest, 3, 4, rotaryEmbedding, floatTypes},
    {"TensorScatter", 24, latest, 2, 3, tensorScatter, anyType,
     "in the mode linear a row outside of the cache is dropped"},
};

} // namespace

llvm::ArrayRef<Row> sequenceRows() { return rows; }

} // namespace astra::onnx
