//===- TokenSampling.cpp: the next token of a language model ----------------===//
// Takes:    operands that a front door has given their shapes.
// Gives:    what TokenSampling.h says.
#include "astra/Compose/TokenSampling.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Scan.h"
#include "astra/Numerics/Random.h"
#include <limits>

namespace astra::compose {

constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

struct Sampling {
  Composer &b;
  UOpRef batch, tokens; // extents

  UOpRef column(UOpRef x) { return b.reshape(x, {batch, b.idx(1)}); }
  UOpRef overTokens(ReduceKind kind, UOpRef x) { return b.reduce(kind, x, {1}); } // [batch, 1]

  /// Unsigned numbers in the order of the scores; both zeros are one.
  UOpRef ranks(UOpRef x) {
    UOpRef bits = b.make(Op::Bitcast, {b.bin(Op::Add, x, 0.0)}, {}, DType::U32);
    if (!bits) return nullptr;
    UOpRef sign = b.b.bits(DType::U32, 0x80000000);
    UOpRef negative = b.bin(Op::Ne, b.bin(Op::And, bits, sign), b.literal(bits, 0));
    return b.select(negative, b.un(Op::Not, bits), b.bin(Op::Or, bits, sign));
  }

  /// The greatest number [batch, 1] for which `holds`, which holds for 0 and, if for any, for all that are less. It
  /// sees nothing but the number and what is given.
  UOpRef greatest(llvm::ArrayRef<UOpRef> given, llvm::function_ref<UOpRef(UOpRef, llvm::ArrayRef<UOpRef>)> holds) {
    if (b.failed()) return nullptr;
    ScanMaker bits(b, b.idx(32)); // from the highest down
    UOpRef found = bits.carry(b.broadcastTo(b.b.bits(DType::U32, 0), {batch, b.idx(1)}));
    UOpRef bit = bits.carry(b.b.bits(DType::U32, 0x80000000));
    llvm::SmallVector<UOpRef, 4> inside;
    for (UOpRef x : given) inside.push_back(bits.close(x));
    if (b.failed()) return nullptr;
    UOpRef next = b.bin(Op::Or, found, bit);
    return bits.finish({b.select(holds(next, inside), next, found), b.bin(Op::Shr, bit, 1.0)}, {}).front();
  }

  /// Scores of tokens that the sequence has, made less.
  UOpRef penalized(UOpRef x, const TokenSamplingOperands &o) {
    UOpRef at = b.iota(DType::I32, {b.idx(1), o.history->shape[1]}, 1);
    UOpRef there = b.bin(Op::Lt, at, column(o.lengths));
    UOpRef index = b.select(there, o.history, b.literal(o.history, -1));
    UOpRef none = b.broadcastTo(b.b.bits(DType::U8, 0), {batch, tokens});
    UOpRef ones = b.broadcastTo(b.b.bits(DType::U8, 1), o.history->shape);
    UOpRef marked = b.make(Op::Scatter, {none, index, ones}, {1, int64_t(ScatterKind::Set)});
    if (!marked) return nullptr;
    UOpRef seen = b.bin(Op::Ne, marked, 0.0), by = column(o.repetition);
    UOpRef less = b.select(b.bin(Op::Lt, x, 0.0), b.bin(Op::Mul, x, by), b.bin(Op::Div, x, by));
    return b.select(seen, less, x);
  }

  /// Numbers from 0 up to 1, [batch, 1].
  UOpRef drawn(const TokenSamplingOperands &o) {
    int64_t count = b.constExtent(o.seed, 0, "the batch");
    std::vector<UOpRef> numbers;
    for (int64_t i = 0; i < count && !b.failed(); ++i) {
      UOpRef seed = b.element(o.seed, 0, i), stream = b.cast(b.element(o.lengths, 0, i), DType::U32);
      if (seed && stream) numbers.push_back(randomUniform(b.b, seed, stream, DType::F32, {b.idx(1)}));
    }
    return b.failed() ? nullptr : column(b.concat(numbers, 0));
  }
};

} // namespace

SampledTokens sampleTokens(Composer &b, const TokenSamplingOperands &o) {
  if (!b.requireRank(o.scores, 2, 2) || !b.requireRank(o.history, 2, 2)) return {};
  Sampling s{b, o.scores->shape[0], o.scores->shape[1]};
  UOpRef number = b.iota(DType::I32, {b.idx(1), s.tokens}, 1);
  UOpRef x = b.select(o.allowed, s.penalized(o.scores, o), b.literal(o.scores, -infinity));
  UOpRef greedy = b.cast(argReduce(b, x, 1, true), DType::I32);

  // What is kept: topK of all, topP of those, and of those minP.
  UOpRef temperature = s.column(o.temperature), draws = b.bin(Op::Lt, b.literal(temperature, 0), temperature);
  x = b.bin(Op::Div, x, b.select(draws, temperature, b.literal(temperature, 1)));
  UOpRef rank = s.ranks(x), k = s.column(o.topK), p = s.column(o.topP);
  if (!x || !rank || b.failed()) return {};
  UOpRef zero = b.b.bits(DType::U32, 0);
  UOpRef least = s.greatest({rank, k}, [&](UOpRef from, llvm::ArrayRef<UOpRef> given) {
    UOpRef above = b.cast(b.bin(Op::Le, from, given[0]), DType::I32);
    return b.bin(Op::Le, given[1], s.overTokens(ReduceKind::Sum, above));
  });
  least = b.select(b.bin(Op::Lt, b.literal(k, 0), k), least, zero);
  UOpRef kept = b.bin(Op::Le, least, rank);
  UOpRef most = s.overTokens(ReduceKind::Max, x);
  UOpRef weight = b.select(kept, b.un(Op::Exp, b.bin(Op::Sub, x, most)), b.literal(x, 0));
  UOpRef enough = b.bin(Op::Mul, p, s.overTokens(ReduceKind::Sum, weight));
  least = s.greatest({rank, weight, enough}, [&](UOpRef from, llvm::ArrayRef<UOpRef> given) {
    UOpRef mass = b.select(b.bin(Op::Le, from, given[0]), given[1], b.literal(given[1], 0));
    return b.bin(Op::Le, given[2], s.overTokens(ReduceKind::Sum, mass));
  });
  least = b.select(b.bin(Op::Lt, p, 1.0), least, zero);
  kept = b.bin(Op::And, b.bin(Op::Le, least, rank), b.bin(Op::Le, s.column(o.minP), weight));
  weight = b.select(kept, weight, b.literal(weight, 0));

  // The first whose running sum is above the part of the whole that was drawn.
  UOpRef sums = b.make(Op::Cumulate, {weight}, {int64_t(CumulateKind::Sum), 1});
  if (!sums || b.failed()) return {};
  UOpRef part = b.bin(Op::Mul, s.drawn(o), s.overTokens(ReduceKind::Max, sums));
  UOpRef reached = b.bin(Op::And, b.bin(Op::Lt, part, sums), b.bin(Op::Lt, b.literal(weight, 0), weight));
  UOpRef none = b.literal(number, double(std::numeric_limits<int32_t>::max()));
  UOpRef drawn = s.overTokens(ReduceKind::Min, b.select(reached, number, none));
  UOpRef token = b.select(b.bin(Op::And, draws, b.bin(Op::Ne, drawn, none)), drawn, greedy);

  UOpRef logprobs = b.make(Op::Pick, {logSoftmax(b, o.scores, {1}), b.cast(token, DType::I64)}, {1});
  UOpRef any = s.overTokens(ReduceKind::Max, b.cast(o.allowed, DType::I32));
  token = b.select(b.bin(Op::Ne, any, 0.0), token, b.literal(token, -1));
  return {b.reshape(token, {s.batch}), b.reshape(logprobs, {s.batch})};
}

} // namespace astra::compose
