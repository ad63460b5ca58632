//===- Closure.cpp: functions from values that were lowered in place -------===//
#include "Closure.h"
#include "Lowering.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

UOpRef Closure::own(DType t, llvm::ArrayRef<UOpRef> shape) {
  std::optional<int64_t> number = n.lowering.placeholder();
  if (!number) return n.unsupported("the loops of this model carry more than 32768 values");
  UOpRef x = n.make(Op::Arg, shape, {*number}, t);
  if (x) placeholders.insert(x);
  return x;
}

bool Closure::followsData(UOpRef index) {
  auto [it, isNew] = dataDims.try_emplace(index, false);
  if (!isNew) return it->second;
  return dataDims[index] = isDataDim(index);
}

bool Closure::hasDataDim(UOpRef x) {
  return llvm::any_of(x->shape, [&](UOpRef d) { return followsData(d); }) ||
         llvm::any_of(x->indices(), [&](UOpRef d) { return followsData(d); });
}

/// Literals, ramps and their repetitions, of sizes that do not follow data: cheaper to make than to hand in.
bool Closure::isFree(UOpRef x) {
  while (!hasDataDim(x) && (x->is(Op::Expand) || x->is(Op::Reshape) || x->is(Op::Cast))) x = x->src[0];
  return !hasDataDim(x) && (x->is(Op::Const) || x->is(Op::Iota) || x->is(Op::FromIndex));
}

/// The values and what they are made of, sources first, down to what is outside.
std::vector<UOpRef> Closure::inner(llvm::ArrayRef<UOpRef> values) {
  std::vector<UOpRef> order;
  llvm::DenseSet<UOpRef> seen;
  std::vector<std::pair<UOpRef, size_t>> stack;
  auto visit = [&](UOpRef x) {
    if (!seen.insert(x).second) return;
    bool leaf = x->isIndex() ? !followsData(x) : placeholders.contains(x) || isFree(x);
    if (!leaf && !x->isIndex() && (x->is(Op::Param) || x->is(Op::Arg) || x->id < begin)) {
      outside.insert(x);
      leaf = true;
    }
    stack.push_back({x, leaf ? x->src.size() : 0});
  };
  for (UOpRef value : values) {
    visit(value);
    while (!stack.empty()) {
      auto [x, next] = stack.back();
      if (next == x->src.size()) {
        order.push_back(x);
        stack.pop_back();
      } else {
        ++stack.back().second;
        visit(x->src[next]);
      }
    }
  }
  return order;
}

bool Closure::capture(llvm::ArrayRef<UOpRef> values) {
  inner(values);
  auto open = [&](UOpRef x) { return llvm::any_of(x->shape, [&](UOpRef d) { return followsData(d); }); };
  if (llvm::none_of(values, open) && llvm::none_of(outside, open)) return true;
  n.unsupported(
      "a value whose size depends on data goes into or comes out of a loop or a branch, which is not supported");
  return false;
}

UOpRef Closure::func(llvm::ArrayRef<UOpRef> values, bool pass) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  int64_t number = 0;
  auto argument = [&](UOpRef x) { now[x] = n.c.make(Op::Arg, x->shape, {number++}, {}, x->dtype); };
  for (UOpRef x : placeholders) argument(x);
  for (UOpRef x : outside) argument(x);
  for (UOpRef x : inner(values)) {
    if (now.count(x)) continue;
    llvm::SmallVector<UOpRef, 4> src;
    for (UOpRef s : x->src) src.push_back(now.count(s) ? now[s] : s);
    now[x] = n.c.withSources(x, src);
  }
  llvm::SmallVector<UOpRef, 8> results;
  for (UOpRef x : values) results.push_back(now.lookup(x));
  if (pass)
    for (UOpRef x : outside) results.push_back(now.lookup(x));
  return n.c.make(Op::Func, results, {number});
}

} // namespace astra::onnx
