//===- Settled.cpp: small tensors whose values are known while building ---===//
// Takes:    nodes of the graph being built.
// Gives:    what Settled.h says.
// Keeps:    the work of one question bounded, whatever hangs below the node.
#include "astra/Compose/Settled.h"
#include "llvm/ADT/DenseSet.h"
#include <cstring>

namespace astra::compose {

namespace {

constexpr size_t mostNodes = 512;
constexpr int64_t mostElements = 1 << 22; // of all nodes together

/// Takes the elements of x from what is left; false where x is not of a kind that is computed here or too little is
/// left. A contract's work is not bounded by its elements.
bool take(UOpRef x, int64_t &left) {
  if (x->isIndex()) return x->isConst();
  if (x->is(Op::Arg) || x->is(Op::State) || x->is(Op::Random) || x->is(Op::Contract) || !x->fns.empty() ||
      has(x->op, Function) || has(x->op, Control) || has(x->op, KernelLevel))
    return false;
  int64_t count = 1;
  for (UOpRef d : x->shape) {
    if (!d->constIndex() || *d->constIndex() > left) return false;
    count *= *d->constIndex();
    if (count > left) return false;
  }
  left -= count;
  return true;
}

} // namespace

std::optional<Tensor> settledValue(Composer &b, UOpRef x) {
  return settledValue([&](UOpRef param) { return b.bytes(param); }, x, mostElements);
}

std::optional<Tensor> settledValue(llvm::function_ref<const std::vector<uint8_t> *(UOpRef)> data, UOpRef x,
                                   int64_t most) {
  if (!x) return std::nullopt;
  EvalInputs in;
  llvm::SmallVector<UOpRef, 32> open = {x};
  llvm::DenseSet<UOpRef> seen = {x};
  int64_t left = most;
  while (!open.empty()) {
    UOpRef at = open.pop_back_val();
    if (!take(at, left)) return std::nullopt;
    if (at->is(Op::Param)) {
      const std::vector<uint8_t> *bytes = data(at);
      if (!bytes) return std::nullopt;
      Tensor value{at->dtype, {}, *bytes};
      for (UOpRef d : at->shape) value.shape.push_back(*d->constIndex());
      in.params[at->str.str()] = std::move(value);
    }
    for (UOpRef s : at->src)
      if (seen.insert(s).second) open.push_back(s);
    if (seen.size() > mostNodes) return std::nullopt;
  }
  llvm::Expected<std::vector<Tensor>> values = evalNodes({x}, in);
  if (values) return std::move(values->front());
  llvm::consumeError(values.takeError());
  return std::nullopt;
}

UOpRef settled(Composer &b, UOpRef x) {
  if (!x || x->isConst() || x->is(Op::Param)) return x;
  std::optional<Tensor> value = settledValue(b, x);
  if (!value) return x;
  return b.constant({value->dtype, {value->shape.begin(), value->shape.end()}, std::move(value->bytes)});
}

std::optional<std::vector<double>> settledNumbers(Composer &b, UOpRef x) {
  if (!x || (!isFloat(x->dtype) && !isInt(x->dtype))) return std::nullopt;
  std::optional<Tensor> value = settledValue(b, x->dtype == DType::F64 ? x : b.cast(x, DType::F64));
  if (!value) return std::nullopt;
  std::vector<double> numbers(value->count());
  if (!numbers.empty()) std::memcpy(numbers.data(), value->bytes.data(), value->bytes.size());
  return numbers;
}

} // namespace astra::compose
