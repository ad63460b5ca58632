//===- Lower.cpp: one node into primitives ---------------------------------===//
#include "Lower.h"
#include "MatrixUnit.h"
#include "astra/Numerics/Functions.h"
#include "astra/Numerics/GraphValue.h"
#include "astra/Numerics/Threefry.h"

using namespace astra;
using namespace astra::numerics;
using llvm::ArrayRef;
using llvm::SmallVector;

bool numerics::isNarrow(DType t) { return t == DType::F16 || t == DType::BF16; }

// Ops that move or convert values of any type and so stay as they are in f16 and bf16.
static bool movesOnly(Op op) {
  switch (op) {
  case Op::Reduce:
  case Op::ArgReduce:
  case Op::Contract:
  case Op::Cumulate:
  case Op::Scatter:
  case Op::ArgSort: return false;
  case Op::Select:
  case Op::Cast:
  case Op::Bitcast:
  case Op::Lookup16: return true;
  default: return !has(op, Elementwise);
  }
}

static bool computesNarrow(UOpRef n) {
  return !movesOnly(n->op) && llvm::any_of(n->tensors(), [](UOpRef s) { return isNarrow(s->dtype); });
}

/// Clause N12: the same op on f32, then one rounding.
static UOpRef widen(Builder &b, UOpRef n) {
  SmallVector<UOpRef, 8> src;
  for (UOpRef s : n->src) src.push_back(isNarrow(s->dtype) ? b.cast(s, DType::F32) : s);
  return b.cast(lower(b, b.c.withSources(n, src)), n->dtype);
}

/// Element i of Threefry's stream is word i & 1 of counter i >> 1 (N13).
static UOpRef lowerRandom(Builder &b, UOpRef n) {
  UOpRef count = idxProduct(b.c, n->indices()), seed = n->src[0], stream = n->src[1];
  bool wide = count->hi > int64_t(UINT32_MAX);
  UOpRef i = b.iota(wide ? DType::U64 : DType::U32, {count}, 0);
  UOpRef pair = b.bin(Op::Shr, i, b.litInt(i->dtype, 1));
  Graph<uint32_t> high = wide ? Graph<uint32_t>(b, b.cast(b.bin(Op::Shr, pair, b.litInt(i->dtype, 32)), DType::U32))
                              : Graph<uint32_t>(uint32_t(0));
  Threefry<Graph> words(Graph<uint32_t>(b, seed), Graph<uint32_t>(b, stream),
                        Graph<uint32_t>(b, b.cast(pair, DType::U32)), high);
  UOpRef odd = b.eq(b.bin(Op::And, i, b.litInt(i->dtype, 1)), b.litInt(i->dtype, 1));
  return b.reshape(b.select(odd, words.x1.node(b), words.x0.node(b)), n->indices());
}

template <unsigned arguments, class Program32, class Program64>
static UOpRef lowerFunction(Builder &b, UOpRef n, Program32 p32, Program64 p64) {
  auto apply = [&]<class T>(auto program, T) {
    if constexpr (arguments == 1)
      return program(Graph<T>(b, n->src[0])).node(b);
    else
      return program(Graph<T>(b, n->src[0]), Graph<T>(b, n->src[1])).node(b);
  };
  return n->dtype == DType::F32 ? apply(p32, 0.0f) : apply(p64, 0.0);
}
#define FUNCTION(Name, program, arguments, ulp32, ulp64)                                                               \
  static UOpRef lower##Name(Builder &b, UOpRef n) {                                                                    \
    return lowerFunction<arguments>(                                                                                   \
        b, n, [](auto... x) { return program<float, Graph>(x...); },                                                   \
        [](auto... x) { return program<double, Graph>(x...); });                                                       \
  }
#include "astra/Numerics/Functions.def"
#undef FUNCTION

/// Gradients are taken before the stage: from here on it is its source.
static UOpRef lowerDetach(Builder &, UOpRef n) { return n->src[0]; }

namespace {
struct Row {
  Op op;
  UOpRef (*lower)(Builder &, UOpRef);
};
} // namespace
static constexpr Row rows[] = {
#define FUNCTION(Name, program, arguments, ulp32, ulp64) {Op::Name, lower##Name},
#include "astra/Numerics/Functions.def"
#undef FUNCTION
    {Op::Random, lowerRandom},       {Op::Contract, lowerMatrixUnit}, {Op::Detach, lowerDetach},
    {Op::WithGradient, lowerDetach}, {Op::Reshard, lowerDetach}, // of a module without a mesh
};

bool numerics::isPrimitive(UOpRef n) {
  return !has(n->op, Function) && n->op != Op::Random && !computesNarrow(n) &&
         !(n->is(Op::Contract) && isToBecomeWords(n));
}

UOpRef numerics::lower(Builder &b, UOpRef n) {
  if (computesNarrow(n)) return widen(b, n);
  for (const Row &row : rows)
    if (row.op == n->op) return row.lower(b, n);
  return n;
}
