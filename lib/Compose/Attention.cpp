//===- Attention.cpp: scaled dot product attention -------------------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    scores [batch, key heads, queries per key head, query, key], a softmax and its product with the values.
#include "astra/Compose/Attention.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

namespace astra::compose {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Attention {
  UOpRef q;             // [batch, kv heads, queries per kv head, q sequence, head size]
  UOpRef k, v;          // [batch, kv heads, total sequence, head size]; in their own types
  int64_t heads, group; // of queries; queries per kv head
  UOpRef pastLength;    // 0 without a cache
  UOpRef valid;         // i64 [batch, 1, 1, 1, 1], the number of keys that are no padding; null: all
  UOpRef sink; // [1, kv heads, queries per kv head, 1, 1], a score that every row has beside its own; null: none
  DType compute;
  bool causal = false; // a query attends to no key behind its own: those are masked, and take no part in any sum
};

/// The inequality of a causal product or reduction: query + past - key >= 0.
AffineForm notBehind(int64_t query, int64_t key) { return {{{query, 1}, {key, -1}}, 0, 1}; }

/// A rank 3 operand [batch, sequence, heads * size] as [batch, heads, sequence, size]; one of rank 4 is that already.
UOpRef splitHeads(Composer &b, UOpRef x, int64_t heads, const char *what) {
  if (!x || x->rank() == 4) return x;
  int64_t hidden = b.constExtent(x, 2, what);
  if (heads < 1 || hidden % heads)
    return b.fail(llvm::Twine(heads) + " heads do not divide " + what + " " + llvm::Twine(hidden));
  if (b.failed()) return nullptr;
  UOpRef split = b.reshape(x, {x->shape[0], x->shape[1], b.idx(heads), b.idx(hidden / heads)});
  return b.permute(split, {0, 2, 1, 3});
}

int64_t headCount(Composer &b, UOpRef x, std::optional<int64_t> heads, const char *option) {
  if (x->rank() == 3 && !heads) b.fail(b.hints.option(option) + " is needed for an input of rank 3");
  if (x->rank() == 3) return heads.value_or(0);
  int64_t found = b.constExtent(x, 1, "the number of heads");
  if (heads && *heads != found)
    b.fail(b.hints.option(option) + " is " + llvm::Twine(*heads) + ", the input has " + llvm::Twine(found) + " heads");
  return found;
}

bool sameExtents(Composer &b, UOpRef x, UOpRef y, llvm::ArrayRef<unsigned> axes, const char *what) {
  return llvm::all_of(axes, [&](unsigned axis) {
    return b.requireEqual(x->shape[axis], y->shape[axis], "axis " + llvm::Twine(axis) + " of " + what);
  });
}

/// Operands in their final layout, past keys and values put before the new ones.
std::optional<Attention> readOperands(Composer &b, const AttentionOperands &given, const AttentionOptions &options) {
  UOpRef q = given.query, k = given.key, v = given.value, pastKey = given.pastKey, pastValue = given.pastValue;
  if (!b.requireFloat(q) || !b.requireFloat(k) || !b.requireFloat(v) || !b.requireRank(q, 3, 4) ||
      !b.requireRank(k, q->rank(), q->rank()) || !b.requireRank(v, q->rank(), q->rank()))
    return std::nullopt;
  if (q->dtype != k->dtype) b.fail("query and key are of different types");
  int64_t heads = headCount(b, q, options.heads, "q_num_heads"),
          kvHeads = headCount(b, k, options.keyHeads, "kv_num_heads");
  if (!b.failed() && (kvHeads < 1 || heads < 1 || heads % kvHeads))
    b.fail(llvm::Twine(heads) + " query heads are not a multiple of " + llvm::Twine(kvHeads) + " key heads");
  if (b.failed()) return std::nullopt;
  bool wide = q->dtype == DType::F64 || v->dtype == DType::F64;
  Attention a{
      nullptr, nullptr, nullptr, heads, heads / kvHeads, b.idx(0), nullptr, nullptr, wide ? DType::F64 : DType::F32};
  q = splitHeads(b, q, heads, "the hidden size of the query");
  a.k = splitHeads(b, k, kvHeads, "the hidden size of the key");
  a.v = splitHeads(b, v, kvHeads, "the hidden size of the value");
  if (b.failed() || !sameExtents(b, q, a.k, {0, 3}, "query and key") ||
      !sameExtents(b, a.k, a.v, {0, 1, 2}, "key and value"))
    return std::nullopt;
  a.q = b.reshape(q, {q->shape[0], b.idx(kvHeads), b.idx(a.group), q->shape[2], q->shape[3]});
  if (!pastKey != !pastValue) b.fail("past_key and past_value are used together: one of them is missing");
  if (pastKey && given.validKeys)
    b.fail("nonpad_kv_seqlen speaks of a cache outside the node: it does not go with past_key");
  if (pastKey && pastValue) {
    if (!b.requireRank(pastKey, 4, 4) || !b.requireRank(pastValue, 4, 4) ||
        !sameExtents(b, pastKey, pastValue, {2}, "past_key and past_value"))
      return std::nullopt;
    a.pastLength = pastKey->shape[2];
    a.k = b.concat({pastKey, a.k}, 2);
    a.v = b.concat({pastValue, a.v}, 2);
  }
  if (UOpRef valid = given.validKeys) {
    if (!b.requireRank(valid, 1, 1) || !sameExtents(b, valid, q, {0}, "nonpad_kv_seqlen and query"))
      return std::nullopt;
    UOpRef one = b.idx(1);
    a.valid = b.reshape(b.cast(valid, DType::I64), {valid->shape[0], one, one, one, one});
  }
  if (UOpRef sink = given.sink) {
    if (!b.requireRank(sink, 1, 1) || !b.requireEqual(sink->shape[0], b.idx(heads), "the sinks and the query's heads"))
      return std::nullopt;
    UOpRef one = b.idx(1);
    a.sink = b.reshape(b.cast(sink, a.compute), {one, b.idx(kvHeads), b.idx(a.group), one, one});
  }
  return b.failed() ? std::nullopt : std::optional(a);
}

/// q k^T * scale: the scale is one product per score, whatever the head size is.
UOpRef scores(Composer &b, const Attention &a, std::optional<double> given) {
  ContractSpec spec;
  spec.kept = 5;
  spec.reduced = 1;
  spec.a = {label(0), label(1), label(2), label(3), label(5)};
  spec.b = {label(0), label(1), label(4), label(5)};
  llvm::ArrayRef<UOpRef> q = a.q->shape;
  UOpRef product =
      b.contract(spec, b.cast(a.q, a.compute), b.cast(a.k, a.compute), {q[0], q[1], q[2], q[3], a.k->shape[2], q[4]});
  UOpRef size = b.fromIndex(q[4], a.compute), scale = nullptr;
  if (given)
    scale = b.literal(product, *given);
  else if (auto constant = q[4]->constIndex())
    scale = b.literal(product, 1 / std::sqrt(double(*constant)));
  else
    scale = b.bin(Op::Div, b.literal(product, 1), b.un(Op::Sqrt, size));
  return b.bin(Op::Mul, product, scale);
}

/// The probabilities P and the values: P v, [batch, kv heads, group, query, value size].
UOpRef weighted(Composer &b, const Attention &a, UOpRef p) {
  ContractSpec spec;
  spec.kept = 5;
  spec.reduced = 1;
  spec.a = {label(0), label(1), label(2), label(3), label(5)};
  spec.b = {label(0), label(1), label(5), label(4)};
  llvm::ArrayRef<UOpRef> q = a.q->shape, v = a.v->shape;
  Dims extents = {q[0], q[1], q[2], q[3], v[3], v[2]};
  if (a.causal) spec.domain = {notBehind(3, 5)}, extents.push_back(a.pastLength);
  return b.contract(spec, b.cast(p, a.compute), b.cast(a.v, a.compute), extents);
}

/// Where a key may be attended to (null: everywhere) and what is added there.
struct Mask {
  UOpRef allowed = nullptr, bias = nullptr;

  void require(Composer &b, UOpRef condition) { allowed = allowed ? b.bin(Op::And, allowed, condition) : condition; }
};

/// The mask against [batch, heads, query, key], of lower rank or extent 1 where it repeats. Where it
/// `pads`, a last axis that is shorter, be it 1, has keys missing at its end: they are not attended to.
void readMask(Composer &b, const Attention &a, UOpRef m, bool pads, Mask &mask) {
  UOpRef total = a.k->shape[2], zero = b.idx(0), one = b.idx(1);
  if (!b.requireRank(m, 1, 4)) return;
  bool boolean = m->dtype == DType::Bool;
  if (!boolean) m = b.cast(m, a.compute);
  if (pads && m && m->shape.back() != total) {
    UOpRef missing = idxSub(b.c, total, m->shape.back());
    if (missing->lo < 0) {
      b.failExtents("the mask has " + dimsText(m->shape.back()) + " keys, there are " + dimsText(total),
                    {m->shape.back()}, {total});
      return;
    }
    Dims none(m->rank(), zero), after = none;
    after.back() = missing;
    m = b.pad(m, none, after, boolean ? 0 : uint64_t(b.literal(m, -infinity)->ints[0]));
  }
  if (!m) return;
  Dims dims(4 - m->rank(), one);
  dims.append(m->shape.begin(), m->shape.end());
  auto heads = dims[1]->constIndex();
  if (heads != 1 && heads != a.heads) {
    b.fail("the mask " + dimsText(m->shape) + " does not fit " + llvm::Twine(a.heads) + " heads");
    return;
  }
  dims.insert(dims.begin() + 2, heads == 1 ? one : b.idx(a.group));
  if (heads != 1) dims[1] = a.q->shape[1];
  m = b.reshape(m, dims);
  if (boolean) return mask.require(b, m);
  mask.require(b, b.bin(Op::Ne, m, -infinity));
  mask.bias = m;
}

/// Causality, windows and padding: comparisons of a key's number with that of the query among all keys.
void readOrder(Composer &b, const Attention &a, const AttentionOptions &options, Mask &mask) {
  int64_t left = options.left, right = options.right;
  if (left < -1 || right < -1) b.fail("left_window_size and right_window_size are -1 or more");
  constexpr int64_t far = int64_t(1) << 42; // beyond every extent
  left = std::min(left, far);
  right = std::min(right, far);
  if (options.causal) right = 0; // no key after the query, whatever the window says
  UOpRef one = b.idx(1), queries = a.q->shape[3], keys = a.k->shape[2];
  UOpRef key = b.iota(DType::I64, {one, keys}, 1), query = b.iota(DType::I64, {queries, one}, 0);
  if (left >= 0 || right >= 0) {
    UOpRef offset =
        a.valid ? b.bin(Op::Sub, a.valid, b.fromIndex(queries, DType::I64)) : b.fromIndex(a.pastLength, DType::I64);
    UOpRef at = b.bin(Op::Add, query, offset);
    if (right >= 0) mask.require(b, b.bin(Op::Le, key, right ? b.bin(Op::Add, at, double(right)) : at));
    if (left >= 0) mask.require(b, b.bin(Op::Le, left ? b.bin(Op::Sub, at, double(left)) : at, key));
  }
  if (a.valid) mask.require(b, b.bin(Op::Lt, key, a.valid));
}

/// Softmax over the keys, the last axis; a row of nothing but -inf gives zeros.
UOpRef attentionWeights(Composer &b, const Attention &a, UOpRef s) {
  if (!s) return nullptr;
  constexpr int64_t query = 3, key = 4;
  auto reduce = [&](ReduceKind kind, UOpRef x) -> UOpRef {
    if (!x || !a.causal) return b.reduce(kind, x, {key});
    ReduceSpec spec{
        kind, kind == ReduceKind::Max ? ReduceOrder::Exact : ReduceOrder::Lane64, {key}, {notBehind(query, key)}};
    UOpRef folded = b.make(Op::Reduce, {x, a.pastLength}, encode(spec));
    return folded ? b.unsqueeze(folded, {key}) : nullptr;
  };
  return safeSoftmaxBy(b, s, reduce, a.sink);
}

} // namespace

AttentionResult attention(Composer &b, const AttentionOperands &operands, const AttentionOptions &options) {
  using Shown = AttentionOptions::Shown;
  std::optional<Attention> a = readOperands(b, operands, options);
  if (!a) return {};
  UOpRef q = operands.query, s = scores(b, *a, options.scale), shown = s;
  double cap = options.softcap;
  if (cap < 0) b.fail(b.hints.option("softcap") + " is negative");
  if (cap > 0) s = b.bin(Op::Mul, b.un(Op::Tanh, b.bin(Op::Div, s, cap)), cap);
  if (options.shown == Shown::Capped) shown = s;
  a->causal = options.causal && !a->valid;
  Mask mask;
  if (operands.mask) readMask(b, *a, operands.mask, options.padMask, mask);
  readOrder(b, *a, options, mask);
  if (mask.bias) s = b.bin(Op::Add, s, mask.bias);
  if (mask.allowed) s = b.select(mask.allowed, s, b.literal(s, -infinity));
  if (options.shown == Shown::Masked) shown = s;
  DType precision = options.softmaxType.value_or(q->dtype);
  bool rounds = precision != q->dtype; // a composite on narrow operands stays wide, unless another type is asked for
  if (rounds) s = b.widen(b.cast(s, precision));
  UOpRef p = attentionWeights(b, *a, s);
  if (rounds) p = b.cast(p, precision);
  if (options.shown == Shown::Probabilities) shown = p;
  UOpRef y = weighted(b, *a, p);
  if (!y || b.failed()) return {};
  llvm::ArrayRef<UOpRef> d = y->shape;
  UOpRef heads = b.idx(a->heads);
  if (q->rank() == 3)
    y = b.reshape(b.permute(y, {0, 3, 1, 2, 4}), {d[0], d[3], idxMul(b.c, heads, d[4])});
  else
    y = b.reshape(y, {d[0], heads, d[3], d[4]});
  return {b.cast(y, q->dtype), a->k, a->v, b.cast(b.reshape(shown, {d[0], heads, d[3], a->k->shape[2]}), q->dtype)};
}

UOpRef modifiedAttention(Composer &b, const AttentionOperands &operands, const AttentionOptions &options,
                         llvm::function_ref<UOpRef(UOpRef)> changedScores,
                         llvm::function_ref<UOpRef(UOpRef)> changedProbabilities) {
  if (!b.requireRank(operands.query, 4, 4)) return nullptr;
  std::optional<Attention> a = readOperands(b, operands, options);
  if (!a) return nullptr;
  DType operand = operands.query->dtype;
  DType precision = options.softmaxType.value_or(operand == DType::F64 ? DType::F64 : DType::F32);
  UOpRef s = b.cast(scores(b, *a, options.scale), precision);
  if (!s) return nullptr;
  Dims grouped(s->shape.begin(), s->shape.end()), plain = {grouped[0], b.idx(a->heads), grouped[3], grouped[4]};
  s = changedScores(b.reshape(s, plain));
  if (!s) return nullptr;
  UOpRef p = changedProbabilities(b.cast(softmax(b, b.widen(s), {3}), precision));
  UOpRef y = weighted(b, *a, b.reshape(p, grouped));
  return y ? b.cast(b.reshape(y, {plain[0], plain[1], plain[2], y->shape[4]}), operand) : nullptr;
}

} // namespace astra::compose
