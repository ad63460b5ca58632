//===- EvalExternal.cpp: functions of the program --------------------------===//
// Takes:    an external op with its sources evaluated, and the functions of EvalOptions.
// Gives:    what the function of that name gives.
// Keeps:    a function sees canonical NaNs, as in a bundle; it cannot change the size of its results.
#include "EvalImpl.h"
#include "astra/IR/External.h"

using namespace astra;
using namespace astra::eval;
using Values = Evaluator::Values;

llvm::Expected<Values> Evaluator::evalExternal(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in) {
  auto function = options.externals.find(n->str.str());
  if (function == options.externals.end())
    return llvm::createStringError("external: the function '" + n->str +
                                   "' is not registered where this is evaluated: it is of the program that runs a "
                                   "bundle, which registers it by this name");
  std::vector<Tensor> operands, results;
  for (const TensorPtr &t : in.take_front(operandsOf(n).size())) canonicalizeNaN(operands.emplace_back(*t));
  for (const Type &t : externalOf(n).results) {
    auto shape = scope.values(t.shape);
    if (!shape) return shape.takeError();
    __int128 bytes = byteSize(t.dtype);
    for (int64_t d : *shape) bytes = std::min<__int128>(bytes * std::max<int64_t>(d, 0), __int128(1) << 64);
    if (bytes > (__int128(1) << 36))
      return llvm::createStringError("external: a result of '" + n->str + "' exceeds 64 GiB");
    results.push_back(zeros(t.dtype, *shape));
  }
  std::vector<Tensor> asked = results;
  if (auto e = function->second(operands, results))
    return llvm::createStringError("function '" + n->str + "' failed: " + llvm::toString(std::move(e)));
  Values out;
  for (auto [i, t] : llvm::enumerate(results)) {
    if (t.dtype != asked[i].dtype || t.shape != asked[i].shape)
      return llvm::createStringError("external: '" + n->str + "' changes the type of a result");
    if (auto e = checkBytes(t, "result " + llvm::Twine(i) + " of '" + n->str + "'")) return std::move(e);
    out.push_back(std::make_shared<Tensor>(std::move(t)));
  }
  return out;
}
