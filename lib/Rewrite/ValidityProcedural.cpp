//===- ValidityProcedural.cpp: gates of loads and stores -------------------===//
// Takes:    loads, stores and sinks whose gates are rewritten.
// Gives:    equal ones without gates that are known.
#include "Procedures.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

static std::optional<bool> known(UOpRef gate) {
  UOpRef k = uniformLiteral(gate);
  return k ? std::optional<bool>(k->ints[0] != 0) : std::nullopt;
}
static UOpRef without(Context &c, UOpRef n, unsigned source) {
  SmallVector<UOpRef, 4> src(n->src);
  src.erase(src.begin() + source);
  return c.withSources(n, src);
}

UOpRef rules::loadGate(RuleContext r, UOpRef n) {
  if (n->ntensors != 2) return nullptr;
  auto k = known(n->src[1]);
  if (!k) return nullptr;
  if (*k) return without(r.c, n, 1);
  if (bitWidth(n->dtype) > 64) return nullptr;
  UOpRef zero = r.c.literal(n->dtype, 0);
  return n->rank() == 0 ? zero : r.c.make(Op::Splat, {zero}, {n->ints[0]});
}

UOpRef rules::storeGate(RuleContext r, UOpRef n) {
  return n->ntensors == 3 && known(n->src[2]) == true ? without(r.c, n, 2) : nullptr;
}

UOpRef rules::sinkOfNothing(RuleContext r, UOpRef n) {
  SmallVector<UOpRef, 4> stores;
  for (UOpRef s : n->src)
    if (s->ntensors != 3 || known(s->src[2]) != false) stores.push_back(s);
  return stores.size() == n->src.size() || stores.empty() ? nullptr : r.c.withSources(n, stores);
}

UOpRef rules::selectOfGated(RuleContext, UOpRef n) {
  UOpRef load = n->src[1], zero = uniformLiteral(n->src[2]);
  return load->op == Op::Load && load->ntensors == 2 && load->src[1] == n->src[0] && zero && zero->ints[0] == 0
             ? load
             : nullptr;
}
