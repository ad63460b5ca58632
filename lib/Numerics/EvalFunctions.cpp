//===- EvalFunctions.cpp: function ops for the reference evaluator ---------===//
#include "astra/Numerics/EvalFunctions.h"
#include "Lower.h"

using namespace astra;

llvm::Expected<Tensor> astra::evalFunction(UOpRef node, llvm::ArrayRef<Tensor> sources) {
  if (!has(node->op, Function) || !isFloat(node->dtype) || sources.size() != node->tensors().size())
    return llvm::createStringError(llvm::Twine("found ") + info(node->op).mnemonic + " of " + info(node->dtype).text +
                                   ", expected a function op of a float type");
  // The same op on flat arguments, in a graph of its own.
  Context c;
  Builder b(c);
  EvalInputs in;
  llvm::SmallVector<UOpRef, 2> arguments;
  for (const Tensor &s : sources) {
    arguments.push_back(b.arg(int64_t(arguments.size()), s.dtype, {b.idx(s.count())}));
    in.inputs.push_back({s.dtype, {s.count()}, s.bytes});
  }
  auto call = c.tryMake(node->op, arguments);
  if (!call) return call.takeError();
  auto values = evalNodes(numerics::lower(b, *call), in);
  if (!values) return values.takeError();
  Tensor result = std::move(values->front());
  result.shape = sources[0].shape;
  return result;
}
