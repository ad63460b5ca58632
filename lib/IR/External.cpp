//===- External.cpp: the attribute of external -----------------------------===//
// Takes:    see External.h.
// Gives:    its packing, and the type rule.
#include "astra/IR/External.h"
#include "TypeRules.h"

using namespace astra;
using namespace astra::typing;

llvm::SmallVector<int64_t, 8> astra::encode(const ExternalSpec &s) {
  llvm::SmallVector<int64_t, 8> ints{s.deterministic, s.effects, s.batched};
  for (const Type &t : s.results) ints.append({int64_t(t.dtype), int64_t(t.shape.size())});
  return ints;
}

llvm::SmallVector<UOpRef, 8> astra::extentsOf(const ExternalSpec &s) {
  llvm::SmallVector<UOpRef, 8> extents;
  for (const Type &t : s.results) extents.append(t.shape.begin(), t.shape.end());
  return extents;
}

llvm::Expected<ExternalSpec> astra::decodeExternal(llvm::ArrayRef<int64_t> ints, llvm::ArrayRef<UOpRef> extents) {
  auto wrong = [](const char *what) { return llvm::createStringError(what); };
  if (ints.size() < 5 || ints.size() % 2 == 0 || ints.size() > 3 + 2 * mostOfExternal)
    return wrong("needs three flags and the types of 1 to 64 results");
  for (int64_t flag : ints.take_front(3))
    if (flag != 0 && flag != 1) return wrong("deterministic, effects and batched are 0 or 1");
  ExternalSpec s{ints[0] == 1, ints[1] == 1, ints[2] == 1, {}};
  for (ints = ints.drop_front(3); !ints.empty(); ints = ints.drop_front(2)) {
    if (ints[0] < 0 || ints[0] >= int64_t(numDTypes) || ints[1] < 0 || ints[1] > int64_t(extents.size()))
      return wrong("the types of its results are not what their extents say");
    s.results.push_back({DType(ints[0]), {extents.begin(), extents.begin() + ints[1]}});
    extents = extents.drop_front(ints[1]);
  }
  if (!extents.empty()) return wrong("the types of its results are not what their extents say");
  return s;
}

ExternalSpec astra::externalOf(UOpRef call) { return llvm::cantFail(decodeExternal(call->ints, call->indices())); }

UOpRef astra::callBefore(UOpRef call) {
  return call->ntensors && call->tensors().back()->is(Op::External) ? call->tensors().back() : nullptr;
}

llvm::ArrayRef<UOpRef> astra::operandsOf(UOpRef call) { return call->tensors().drop_back(callBefore(call) ? 1 : 0); }

R typing::ruleExternal(const In &in) {
  if (in.str.empty()) return in.fail("needs the name of a function");
  auto spec = decodeExternal(in.ints, in.indices());
  if (!spec) return in.fail(llvm::toString(spec.takeError()));
  auto check = [&](const llvm::Twine &what, DType t, Shape shape) -> llvm::Error {
    if (!isArithmetic(t))
      return in.fail(what + " of '" + in.str + "' is of " + info(t).text +
                     ", expected bool, an integer or a float type: convert it, a complex value into its parts");
    if (shape.size() <= mostRankOfExternal) return llvm::Error::success();
    return in.fail(what + " of '" + in.str + "' has rank " + num(shape.size()) + ", at most " +
                   num(mostRankOfExternal) + " is supported");
  };
  llvm::ArrayRef<UOpRef> operands = in.tensors();
  if (!operands.empty() && operands.back()->is(Op::External)) {
    if (!spec->effects || !externalOf(operands.back()).effects)
      return in.fail("only of calls that both have effects (effects=1) does one come after the other");
    operands = operands.drop_back();
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (auto e = check("operand " + llvm::Twine(i), operands[i]->dtype, operands[i]->shape)) return std::move(e);
  for (size_t i = 0; i < spec->results.size(); ++i) {
    const Type &t = spec->results[i];
    if (auto e = check("result " + llvm::Twine(i), t.dtype, t.shape)) return std::move(e);
    if (auto e = checkExtents(in, t.shape)) return std::move(e);
  }
  if (operands.size() + spec->results.size() > mostOfExternal)
    return in.fail("'" + in.str + "' takes and gives " + num(operands.size() + spec->results.size()) +
                   " tensors, at most " + num(mostOfExternal) + " are supported");
  return Type{};
}
