//===- UseMatrixUnit.cpp: which sums of products name a matrix unit --------===//
#include "Complex.h"
#include "astra/IR/Contract.h"
#include "astra/Numerics/MatrixUnit.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

/// The type that an operand's values have, however they are kept: that of the value which was widened to f32.
static DType origin(UOpRef x) {
  DType own = x->dtype;
  while (has(x->op, Movement)) x = x->src[0];
  return own == DType::F32 && x->is(Op::Cast) ? x->src[0]->dtype : own;
}

static std::optional<MatrixInputs> inputsOf(UOpRef contract, const UnitChoice &choice) {
  auto plain = contract->dtype == DType::F32 ? choice.plain : std::nullopt;
  auto of = [&](UOpRef x) {
    auto t = matrixInputOf(origin(x));
    return t && choice.unit->takes(*t) ? t : plain;
  };
  auto a = of(contract->src[0]), b = of(contract->src[1]);
  if (a && b && choice.unit->takes(MatrixInputs{*a, *b})) return MatrixInputs{*a, *b};
  return plain ? std::optional(MatrixInputs{*plain, *plain}) : std::nullopt;
}

static bool isSumOfFloats(UOpRef n) { return n->is(Op::Contract) && isFloat(n->dtype) && n->ints[1] > 0; }

llvm::Expected<UOpRef> astra::orderedBy(Context &c, UOpRef contract, StringRef order) {
  auto [unit, types] = order.split(' ');
  UnitChoice choice{matrixUnitNamed(unit)};
  if (!choice.unit)
    return llvm::createStringError("there is no matrix unit '" + unit + "'; there are " + matrixUnitNames());
  choice.plain = choice.unit->plain;
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  auto inputs = types.empty() ? inputsOf(contract, choice) : matrixInputsNamed(types);
  if (!isSumOfFloats(contract) || contract->dtype == DType::F64)
    return llvm::createStringError("matrix unit " + unit + " does not add products of " + info(contract->dtype).text);
  if (!s.outside.empty()) return llvm::createStringError("matrix unit " + unit + " does not add a third operand");
  if (!inputs)
    return llvm::createStringError("matrix unit " + unit + " has no type that " + info(contract->dtype).text +
                                   " is rounded to: name one behind it, as in 'hopper32-fp8 f8e4m3fn'");
  if (!choice.unit->takes(*inputs))
    return llvm::createStringError("matrix unit " + unit + " does not take operands of '" + types + "'");
  s.unit = choice.unit, s.inputs = *inputs;
  return c.tryMake(Op::Contract, contract->src, encode(s));
}

static UOpRef named(Context &c, UOpRef n, const UnitChoice &choice, UnitUse &use) {
  if (!isSumOfFloats(n)) return n;
  ContractSpec s = llvm::cantFail(decodeContract(n->ints));
  auto inputs = inputsOf(n, choice);
  if (s.unit || !inputs || !s.outside.empty()) { // no unit reads a third operand
    ++(s.unit ? use.named : use.strict);
    return n;
  }
  s.unit = choice.unit, s.inputs = *inputs;
  ++use.named;
  return c.make(Op::Contract, n->src, encode(s));
}

llvm::Expected<UnitChoice> astra::numericsNamed(StringRef text) {
  UnitChoice choice;
  if (text == "strict") return choice;
  if (!text.consume_front("device:"))
    return llvm::createStringError("there is no numeric contract '" + text + "'; strict is one, and device:UNIT");
  auto [unit, type] = text.split(':');
  choice.unit = matrixUnitNamed(unit);
  if (!choice.unit)
    return llvm::createStringError("there is no matrix unit '" + unit + "'; there are " + matrixUnitNames());
  choice.plain = choice.unit->plain;
  if (!text.contains(':')) return choice;
  choice.plain = matrixInputNamed(type);
  if (!choice.plain || !choice.unit->takes(*choice.plain))
    return llvm::createStringError("matrix unit " + unit + " does not take operands of '" + type + "'");
  return choice;
}

UnitUse astra::useMatrixUnit(Module &m, const UnitChoice &choice) {
  UnitUse use;
  llvm::DenseMap<UOpRef, UOpRef> done;
  auto add = [&](ArrayRef<UOpRef> roots) {
    for (UOpRef n : topoSort(roots)) {
      if (done.contains(n)) continue;
      auto now = [&](UOpRef x) { return done.lookup(x); };
      SmallVector<UOpRef, 8> src(llvm::map_range(n->src, now)), fns(llvm::map_range(n->fns, now));
      UOpRef same = ArrayRef<UOpRef>(fns) == n->fns ? m.ctx().withSources(n, src)
                                                    : m.ctx().make(n->op, src, n->ints, n->str, n->dtype, fns);
      UOpRef made = named(m.ctx(), same, choice, use);
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
