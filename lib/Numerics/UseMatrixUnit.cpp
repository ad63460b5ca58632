//===- UseMatrixUnit.cpp: which sums of products name a matrix unit --------===//
#include "Complex.h"
#include "astra/IR/Contract.h"
#include "astra/Numerics/MatrixUnit.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// The type that an operand's values have, however they are kept: that of the value which was widened to f32.
static DType origin(UOpRef x) {
  DType own = x->dtype;
  while (has(x->op, Movement)) x = x->src[0];
  return own == DType::F32 && x->is(Op::Cast) ? x->src[0]->dtype : own;
}

static std::optional<MatrixInput> inputOf(UOpRef contract, const MatrixUnit &unit) {
  DType a = origin(contract->src[0]), b = origin(contract->src[1]);
  auto t = matrixInputOf(a);
  if (a == b && t && unit.takes(*t)) return t;
  return contract->dtype == DType::F32 ? unit.plain : std::nullopt;
}

static bool isSumOfFloats(UOpRef n) { return n->is(Op::Contract) && isFloat(n->dtype) && n->ints[1] > 0; }

static UOpRef named(Context &c, UOpRef n, const MatrixUnit &unit, UnitUse &use) {
  if (!isSumOfFloats(n)) return n;
  ContractSpec s = llvm::cantFail(decodeContract(n->ints));
  auto input = inputOf(n, unit);
  if (s.unit || !input) {
    ++(s.unit ? use.named : use.strict);
    return n;
  }
  s.unit = &unit, s.input = *input;
  ++use.named;
  return c.make(Op::Contract, n->src, encode(s));
}

UnitUse astra::useMatrixUnit(Module &m, const MatrixUnit &unit) {
  UnitUse use;
  llvm::DenseMap<UOpRef, UOpRef> done;
  auto add = [&](ArrayRef<UOpRef> roots) {
    for (UOpRef n : topoSort(roots)) {
      if (done.contains(n)) continue;
      auto now = [&](UOpRef x) { return done.lookup(x); };
      SmallVector<UOpRef, 8> src(llvm::map_range(n->src, now)), fns(llvm::map_range(n->fns, now));
      UOpRef same = ArrayRef<UOpRef>(fns) == n->fns ? m.ctx().withSources(n, src)
                                                    : m.ctx().make(n->op, src, n->ints, n->str, n->dtype, fns);
      UOpRef made = named(m.ctx(), same, unit, use);
      m.origins.inherit(made, n);
      done[n] = made;
    }
  };
  std::vector<UOpRef> roots = m.roots();
  for (const Equation &e : m.equations) roots.insert(roots.end(), {e.left, e.right});
  for (UOpRef f : numerics::functionsOf(roots)) add(f);
  add(roots);
  for (Entry &e : m.entries) {
    for (Value &v : e.outputs) v.value = done.lookup(v.value);
    for (StateUpdate &u : e.updates) u.value = done.lookup(u.value);
  }
  for (Equation &e : m.equations) e = {done.lookup(e.left), done.lookup(e.right)};
  return use;
}

std::string astra::numericsOf(const Module &m, const MatrixUnit *asked) {
  std::vector<UOpRef> roots = m.roots(), bodies = numerics::functionsOf(roots);
  roots.insert(roots.end(), bodies.begin(), bodies.end());
  std::vector<bool> used(matrixUnits().size());
  if (asked) used[asked - matrixUnits().begin()] = true;
  for (UOpRef n : topoSort(roots))
    if (n->is(Op::Contract))
      if (const MatrixUnit *u = llvm::cantFail(decodeContract(n->ints)).unit) used[u - matrixUnits().begin()] = true;
  std::string names;
  for (const MatrixUnit &u : matrixUnits())
    if (used[&u - matrixUnits().begin()]) names += (names.empty() ? "device:" : ",") + std::string(u.text);
  return names.empty() ? "strict" : names;
}
