//===- OpsAttention.cpp: scaled dot product attention ----------------------===//
// Takes:    queries, keys and values of rank 3 or 4, masks, caches.
// Gives:    two contracts and a softmax between them. Scores are [batch, key heads, queries per key head, query, key],
//           so that no key or value is repeated for grouped queries.
// Keeps:    f16 and bf16 in f32 throughout, rounded once (N4). A query that may attend to no key gives zeros, whatever
//           its scores are: masked scores are replaced by -inf, not added to.
// Does not: write caches outside the op (OpsSequence.cpp, TensorScatter).
#include "Lowering.h"
#include "OpTable.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

namespace astra::onnx {

namespace {

AffineForm label(int64_t l) { return {{{l, 1}}, 0, 1}; }

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Attention {
  UOpRef q;             // [batch, kv heads, queries per kv head, q sequence, head size]
  UOpRef k, v;          // [batch, kv heads, total sequence, head size]; in their own types
  int64_t heads, group; // of queries; queries per kv head
  UOpRef pastLength;    // 0 without a cache
  UOpRef valid;         // i64 [batch, 1, 1, 1, 1], the number of keys that are no padding; null: all
  DType compute;
  bool causal = false; // a query attends to no key behind its own: those are masked, and take no part in any sum
};

/// The inequality of a causal product or reduction: query + past - key >= 0.
AffineForm notBehind(int64_t query, int64_t key) { return {{{query, 1}, {key, -1}}, 0, 1}; }

/// A rank 3 operand [batch, sequence, heads * size] as [batch, heads, sequence, size]; one of rank 4 is that already.
UOpRef splitHeads(Node &n, UOpRef x, int64_t heads, const char *what) {
  if (!x || x->rank() == 4) return x;
  int64_t hidden = n.constExtent(x, 2, what);
  if (heads < 1 || hidden % heads)
    return n.fail(llvm::Twine(heads) + " heads do not divide " + what + " " + llvm::Twine(hidden));
  if (n.failed()) return nullptr;
  UOpRef split = n.reshape(x, {x->shape[0], x->shape[1], n.c.index(heads), n.c.index(hidden / heads)});
  return n.permute(split, {0, 2, 1, 3});
}

int64_t headCount(Node &n, UOpRef x, const char *attribute) {
  bool given = n.hasAttr(attribute);
  int64_t heads = n.intAttr(attribute, 0);
  if (x->rank() == 3 && !given) n.fail("attribute '" + llvm::Twine(attribute) + "' is needed for an input of rank 3");
  if (x->rank() == 3) return heads;
  int64_t found = n.constExtent(x, 1, "the number of heads");
  if (given && heads != found)
    n.fail("attribute '" + llvm::Twine(attribute) + "' is " + llvm::Twine(heads) + ", the input has " +
           llvm::Twine(found) + " heads");
  return found;
}

bool sameExtents(Node &n, UOpRef a, UOpRef b, llvm::ArrayRef<unsigned> axes, const char *what) {
  return llvm::all_of(axes, [&](unsigned axis) {
    return n.requireEqual(a->shape[axis], b->shape[axis], "axis " + llvm::Twine(axis) + " of " + what);
  });
}

/// Operands in their final layout, past keys and values put before the new ones.
std::optional<Attention> readOperands(Node &n) {
  UOpRef q = n.in(0), k = n.in(1), v = n.in(2);
  if (!n.requireFloat(q) || !n.requireFloat(k) || !n.requireFloat(v) || !n.requireRank(q, 3, 4) ||
      !n.requireRank(k, q->rank(), q->rank()) || !n.requireRank(v, q->rank(), q->rank()))
    return std::nullopt;
  if (q->dtype != k->dtype) n.fail("query and key are of different types");
  int64_t heads = headCount(n, q, "q_num_heads"), kvHeads = headCount(n, k, "kv_num_heads");
  if (!n.failed() && (kvHeads < 1 || heads < 1 || heads % kvHeads))
    n.fail(llvm::Twine(heads) + " query heads are not a multiple of " + llvm::Twine(kvHeads) + " key heads");
  if (n.failed()) return std::nullopt;
  bool wide = q->dtype == DType::F64 || v->dtype == DType::F64;
  Attention a{nullptr, nullptr, nullptr, heads, heads / kvHeads, n.c.index(0), nullptr, wide ? DType::F64 : DType::F32};
  q = splitHeads(n, q, heads, "the hidden size of the query");
  a.k = splitHeads(n, k, kvHeads, "the hidden size of the key");
  a.v = splitHeads(n, v, kvHeads, "the hidden size of the value");
  if (n.failed() || !sameExtents(n, q, a.k, {0, 3}, "query and key") ||
      !sameExtents(n, a.k, a.v, {0, 1, 2}, "key and value"))
    return std::nullopt;
  a.q = n.reshape(q, {q->shape[0], n.c.index(kvHeads), n.c.index(a.group), q->shape[2], q->shape[3]});
  if (n.has(4) != n.has(5)) n.fail("past_key and past_value are used together: one of them is missing");
  if (n.has(4) && n.has(6)) n.fail("nonpad_kv_seqlen speaks of a cache outside the node: it does not go with past_key");
  if (n.has(4) && n.has(5)) {
    if (!n.requireRank(n.in(4), 4, 4) || !n.requireRank(n.in(5), 4, 4) ||
        !sameExtents(n, n.in(4), n.in(5), {2}, "past_key and past_value"))
      return std::nullopt;
    a.pastLength = n.in(4)->shape[2];
    a.k = n.concat({n.in(4), a.k}, 2);
    a.v = n.concat({n.in(5), a.v}, 2);
  }
  if (n.has(6)) {
    UOpRef valid = n.in(6);
    if (!n.requireRank(valid, 1, 1) || !sameExtents(n, valid, q, {0}, "nonpad_kv_seqlen and query"))
      return std::nullopt;
    UOpRef one = n.c.index(1);
    a.valid = n.reshape(n.cast(valid, DType::I64), {valid->shape[0], one, one, one, one});
  }
  return n.failed() ? std::nullopt : std::optional(a);
}

/// q k^T * scale: the scale is one product per score, whatever the head size is.
UOpRef scores(Node &n, const Attention &a) {
  ContractSpec spec;
  spec.kept = 5;
  spec.reduced = 1;
  spec.a = {label(0), label(1), label(2), label(3), label(5)};
  spec.b = {label(0), label(1), label(4), label(5)};
  llvm::ArrayRef<UOpRef> q = a.q->shape;
  UOpRef product =
      n.contract(spec, n.cast(a.q, a.compute), n.cast(a.k, a.compute), {q[0], q[1], q[2], q[3], a.k->shape[2], q[4]});
  UOpRef size = n.fromIndex(q[4], a.compute), scale = nullptr;
  if (n.hasAttr("scale"))
    scale = n.literal(product, n.floatAttr("scale", 1));
  else if (auto constant = q[4]->constIndex())
    scale = n.literal(product, 1 / std::sqrt(double(*constant)));
  else
    scale = n.bin(Op::Div, n.literal(product, 1), n.un(Op::Sqrt, size));
  return n.bin(Op::Mul, product, scale);
}

/// The probabilities P and the values: P v, [batch, kv heads, group, query, value size].
UOpRef weighted(Node &n, const Attention &a, UOpRef p) {
  ContractSpec spec;
  spec.kept = 5;
  spec.reduced = 1;
  spec.a = {label(0), label(1), label(2), label(3), label(5)};
  spec.b = {label(0), label(1), label(5), label(4)};
  llvm::ArrayRef<UOpRef> q = a.q->shape, v = a.v->shape;
  Dims extents = {q[0], q[1], q[2], q[3], v[3], v[2]};
  if (a.causal) spec.domain = {notBehind(3, 5)}, extents.push_back(a.pastLength);
  return n.contract(spec, n.cast(p, a.compute), n.cast(a.v, a.compute), extents);
}

/// What ONNX calls the attention bias: where a key may be attended to (null: everywhere) and what is added there.
struct Mask {
  UOpRef allowed = nullptr, bias = nullptr;

  void require(Node &n, UOpRef condition) { allowed = allowed ? n.bin(Op::And, allowed, condition) : condition; }
};

/// The mask input against [batch, heads, query, key], of lower rank or extent 1 where it repeats. From opset 24 on a
/// last axis that is shorter, be it 1, has keys missing at its end: they are not attended to.
void readMask(Node &n, const Attention &a, Mask &mask) {
  UOpRef m = n.in(3), total = a.k->shape[2], zero = n.c.index(0), one = n.c.index(1);
  if (!n.requireRank(m, 1, 4)) return;
  bool boolean = m->dtype == DType::Bool;
  if (!boolean) m = n.cast(m, a.compute);
  if (n.opset >= 24 && m && m->shape.back() != total) {
    UOpRef missing = idxSub(n.c, total, m->shape.back());
    if (missing->lo < 0) {
      n.failExtents("the mask has " + dimsText(m->shape.back()) + " keys, there are " + dimsText(total),
                    {m->shape.back()}, {total});
      return;
    }
    Dims none(m->rank(), zero), after = none;
    after.back() = missing;
    m = n.pad(m, none, after, boolean ? 0 : uint64_t(n.literal(m, -infinity)->ints[0]));
  }
  if (!m) return;
  Dims dims(4 - m->rank(), one);
  dims.append(m->shape.begin(), m->shape.end());
  auto heads = dims[1]->constIndex();
  if (heads != 1 && heads != a.heads) {
    n.fail("the mask " + dimsText(m->shape) + " does not fit " + llvm::Twine(a.heads) + " heads");
    return;
  }
  dims.insert(dims.begin() + 2, heads == 1 ? one : n.c.index(a.group));
  if (heads != 1) dims[1] = a.q->shape[1];
  m = n.reshape(m, dims);
  if (boolean) return mask.require(n, m);
  mask.require(n, n.bin(Op::Ne, m, -infinity));
  mask.bias = m;
}

/// Causality, windows and padding: comparisons of a key's number with that of the query among all keys.
void readOrder(Node &n, const Attention &a, Mask &mask) {
  bool causal = n.intAttr("is_causal", 0) != 0;
  int64_t left = n.opset >= 25 ? n.intAttr("left_window_size", -1) : -1,
          right = n.opset >= 25 ? n.intAttr("right_window_size", -1) : -1;
  if (left < -1 || right < -1) n.fail("left_window_size and right_window_size are -1 or more");
  constexpr int64_t far = int64_t(1) << 42; // beyond every extent
  left = std::min(left, far);
  right = std::min(right, far);
  if (causal) right = 0; // no key after the query, whatever the window says
  UOpRef one = n.c.index(1), queries = a.q->shape[3], keys = a.k->shape[2];
  UOpRef key = n.iota(DType::I64, {one, keys}, 1), query = n.iota(DType::I64, {queries, one}, 0);
  if (left >= 0 || right >= 0) {
    UOpRef offset =
        a.valid ? n.bin(Op::Sub, a.valid, n.fromIndex(queries, DType::I64)) : n.fromIndex(a.pastLength, DType::I64);
    UOpRef at = n.bin(Op::Add, query, offset);
    if (right >= 0) mask.require(n, n.bin(Op::Le, key, right ? n.bin(Op::Add, at, double(right)) : at));
    if (left >= 0) mask.require(n, n.bin(Op::Le, left ? n.bin(Op::Sub, at, double(left)) : at, key));
  }
  if (a.valid) mask.require(n, n.bin(Op::Lt, key, a.valid));
}

/// Softmax over the keys, the last axis; a row of nothing but -inf gives zeros.
UOpRef attentionWeights(Node &n, const Attention &a, UOpRef s) {
  if (!s) return nullptr;
  constexpr int64_t query = 3, key = 4;
  auto reduce = [&](ReduceKind kind, UOpRef x) -> UOpRef {
    if (!x || !a.causal) return n.reduce(kind, x, {key});
    ReduceSpec spec{
        kind, kind == ReduceKind::Max ? ReduceOrder::Exact : ReduceOrder::Lane64, {key}, {notBehind(query, key)}};
    UOpRef folded = n.make(Op::Reduce, {x, a.pastLength}, encode(spec));
    return folded ? n.unsqueeze(folded, {key}) : nullptr;
  };
  UOpRef most = shiftBy(n, reduce(ReduceKind::Max, s)), zero = n.literal(s, 0);
  UOpRef e = n.un(Op::Exp, n.bin(Op::Sub, s, n.select(n.bin(Op::Eq, most, -infinity), zero, most)));
  UOpRef sum = reduce(ReduceKind::Sum, e);
  UOpRef p = n.bin(Op::Div, e, n.select(n.bin(Op::Eq, sum, 0.0), n.literal(s, 1), sum));
  return withSoftmaxGradient(n, p, s, [&](UOpRef v) { return reduce(ReduceKind::Sum, v); });
}

/// The type in which softmax reads the scores and gives its result; without the attribute, `otherwise`.
DType softmaxPrecision(Node &n, DType otherwise) {
  constexpr std::pair<int64_t, DType> codes[] = {
      {1, DType::F32}, {10, DType::F16}, {11, DType::F64}, {16, DType::BF16}};
  if (!n.hasAttr("softmax_precision")) return otherwise;
  int64_t given = n.intAttr("softmax_precision", 1);
  for (auto [code, type] : codes)
    if (code == given) return type;
  n.fail("attribute 'softmax_precision' is " + llvm::Twine(given) +
         ", expected 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
  return otherwise;
}

void attention(Node &n) {
  std::optional<Attention> a = readOperands(n);
  if (!a) return;
  UOpRef q = n.in(0), s = scores(n, *a), shown = s;
  double cap = n.floatAttr("softcap", 0);
  int64_t mode = n.intAttr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) n.fail("attribute 'qk_matmul_output_mode' is " + llvm::Twine(mode) + ", expected 0 to 3");
  if (cap < 0) n.fail("attribute 'softcap' is negative");
  if (cap > 0) s = n.bin(Op::Mul, n.un(Op::Tanh, n.bin(Op::Div, s, cap)), cap);
  if (mode == 1) shown = s;
  a->causal = n.intAttr("is_causal", 0) != 0 && !a->valid;
  Mask mask;
  if (n.has(3)) readMask(n, *a, mask);
  readOrder(n, *a, mask);
  if (mask.bias) s = n.bin(Op::Add, s, mask.bias);
  if (mask.allowed) s = n.select(mask.allowed, s, n.literal(s, -infinity));
  if (mode == 2) shown = s;
  DType precision = softmaxPrecision(n, q->dtype);
  bool rounds = precision != q->dtype; // a composite on narrow operands stays wide, unless another type is asked for
  if (rounds) s = n.widen(n.cast(s, precision));
  UOpRef p = attentionWeights(n, *a, s);
  if (rounds) p = n.cast(p, precision);
  if (mode == 3) shown = p;
  UOpRef y = weighted(n, *a, p);
  if (!y || n.failed()) return;
  llvm::ArrayRef<UOpRef> d = y->shape;
  UOpRef heads = n.c.index(a->heads);
  if (q->rank() == 3)
    y = n.reshape(n.permute(y, {0, 3, 1, 2, 4}), {d[0], d[3], idxMul(n.c, heads, d[4])});
  else
    y = n.reshape(y, {d[0], heads, d[3], d[4]});
  n.give(n.cast(y, q->dtype));
  if (n.wants(1)) n.give(1, a->k);
  if (n.wants(2)) n.give(2, a->v);
  if (n.wants(3)) n.give(3, n.cast(n.reshape(shown, {d[0], heads, d[3], a->k->shape[2]}), q->dtype));
}

/// x after the graph in an attribute, if there is one, which keeps type and shape.
UOpRef modified(Node &n, UOpRef x, const char *attribute) {
  if (!x || !n.hasAttr(attribute)) return x;
  const proto::Graph *graph = n.graphAttr(attribute);
  if (n.failed()) return nullptr;
  auto results = n.lowering.body(*graph, {x}, n.scope, n.title() + ", " + attribute);
  if (!results) {
    n.failReported();
    return nullptr;
  }
  if (results->size() != 1 || (*results)[0]->dtype != x->dtype || (*results)[0]->shape != x->shape)
    return n.fail(llvm::Twine("the graph in attribute '") + attribute + "' does not give one value of the type " +
                  typeText(x->dtype, x->shape));
  return (*results)[0];
}

/// Attention with graphs that alter scores and probabilities. Softmax is the plain one: a row of -inf gives NaN.
void flexAttention(Node &n) {
  if (!n.requireRank(n.in(0), 4, 4)) return;
  std::optional<Attention> a = readOperands(n);
  if (!a) return;
  DType operand = n.in(0)->dtype, precision = softmaxPrecision(n, operand == DType::F64 ? DType::F64 : DType::F32);
  UOpRef s = n.cast(scores(n, *a), precision);
  if (!s) return;
  Dims grouped(s->shape.begin(), s->shape.end()), plain = {grouped[0], n.c.index(a->heads), grouped[3], grouped[4]};
  s = modified(n, n.reshape(s, plain), "score_mod");
  if (!s) return;
  UOpRef p = modified(n, n.cast(softmax(n, n.widen(s), {3}), precision), "prob_mod");
  UOpRef y = weighted(n, *a, n.reshape(p, grouped));
  if (y) n.give(n.cast(n.reshape(y, {plain[0], plain[1], plain[2], y->shape[4]}), operand));
}

constexpr Row rows[] = {
    {"ai.onnx.preview::FlexAttention", 1, latest, 3, 3, flexAttention, floatTypes},
    {"Attention", 23, 23, 3, 6, attention, floatTypes},
    {"Attention", 24, latest, 3, 7, attention, floatTypes,
     "a last axis of the mask that is shorter than the keys is padded, be it of extent 1"},
};

} // namespace

llvm::ArrayRef<Row> attentionRows() { return rows; }

} // namespace astra::onnx
