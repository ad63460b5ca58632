//===- Mesh.cpp: derivatives of collectives --------------------------------===//
// Takes:    a collective, tangents of its source, or its cotangent.
// Gives:    the derivative, in which the shards go together: what is differentiated is the sum of what all shards give.
// Keeps:    linearity: a transpose is the collective that brings each part of the cotangent to where its source was.
#include "Rows.h"

using namespace astra;
using namespace astra::autograd;

static UOpRef tangentOfLinear(Builder &b, UOpRef n, Tangents d) { return d[0] ? b.c.withSources(n, {d[0]}) : nullptr; }
static constexpr int64_t sum = 0, notKnown = 0;

#define COLLECTIVE(Name, ...)                                                                                          \
  UOpRef autograd::tangent##Name(Builder &b, UOpRef n, Tangents d) { return tangentOfLinear(b, n, d); }                \
  UOpRef autograd::transpose##Name(Builder &b, UOpRef n, UOpRef g, unsigned) { return b.c.make(__VA_ARGS__); }
COLLECTIVE(AllReduce, Op::AllReduce, {g}, {sum, notKnown}, n->str)
COLLECTIVE(ReduceScatter, Op::AllGather, {g}, {notKnown}, n->str)
COLLECTIVE(AllGather, Op::ReduceScatter, {g}, {sum}, n->str)
COLLECTIVE(AllToAll, Op::AllToAll, {g}, {}, n->str)
COLLECTIVE(Shift, Op::Shift, {g}, {-n->ints[0], n->ints[1]}, n->str)
COLLECTIVE(Reshard, Op::Reshard, {g}, {}, n->str)
#undef COLLECTIVE
