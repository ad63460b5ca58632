//===- WithRule.cpp: values with a derivative that is stated ---------------===//
// Takes, gives: WithRule.h.
#include "WithRule.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

UOpRef withRule(Composer &b, UOpRef value, llvm::ArrayRef<UOpRef> sources, Rule rule) {
  if (!value || (!isFloat(value->dtype) && !isComplex(value->dtype)) || !b.wantsGradients() ||
      llvm::any_of(value->shape, isDataDim))
    return value;
  llvm::SmallVector<UOpRef, 4> inside;
  auto argument = [&](UOpRef like) {
    inside.push_back(b.b.arg(inside.size(), like->dtype, like->shape));
    return inside.back();
  };
  UOpRef result = argument(value);
  for (UOpRef s : sources) argument(s);
  llvm::SmallVector<UOpRef, 4> given(llvm::ArrayRef<UOpRef>(inside).drop_front());
  UOpRef cotangent = argument(value);
  llvm::SmallVector<UOpRef, 2> gives = rule(result, given, cotangent);
  if (b.failed() || llvm::is_contained(gives, nullptr)) return nullptr;
  UOpRef function = b.c.make(Op::Func, gives, {int64_t(inside.size())});
  for (int time = 0; time < 2; ++time) { // the second: the rule reads the value, which has the rule for that
    llvm::SmallVector<UOpRef, 4> src = {value};
    src.append(sources.begin(), sources.end());
    value = b.c.make(Op::WithGradient, src, {}, {}, DType::Void, {function});
  }
  return value;
}

} // namespace astra::compose
