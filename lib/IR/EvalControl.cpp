//===- EvalControl.cpp: functions, cond, while, scan -----------------------===//
// Takes:    control ops with their sources evaluated.
// Gives:    the results of the functions they call.
// Keeps:    a function sees its arguments and the dims in scope; a dim that is new to it is bound by its arguments.
#include "EvalImpl.h"

using namespace astra;
using namespace astra::eval;
using Values = Evaluator::Values;

llvm::Expected<Values> Evaluator::call(UOpRef func, Scope scope, llvm::ArrayRef<TensorPtr> args) {
  if (depth == 64) return llvm::createStringError("functions nest deeper than 64");
  ++depth;
  auto r = run(func, func->src, scope, args);
  --depth;
  return r;
}

static bool truth(const Tensor &t) { return t.bytes[0]; }

llvm::Expected<Values> Evaluator::evalCond(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in) {
  return call(n->fns[truth(*in[0]) ? 0 : 1], scope.inner(), in.drop_front());
}

llvm::Expected<Values> Evaluator::evalWhile(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in) {
  UOpRef condition = n->fns[0], body = n->fns[1];
  llvm::SmallVector<llvm::StringRef> names;
  if (!n->str.empty()) n->str.split(names, ',');
  auto first = scope.values(n->indices());
  if (!first) return first.takeError();
  Dims carried = *first;
  Values values(in.begin(), in.end());
  // Which axis of which argument shows the next value of a carried dim: the first bare one.
  llvm::SmallVector<std::pair<int, int>> shownBy(names.size(), {-1, -1});
  for (UOpRef a : planOf(body, body->src).order)
    if (a->op == Op::Arg)
      for (unsigned axis = 0; axis < a->rank(); ++axis)
        for (size_t d = 0; d < names.size(); ++d)
          if (a->shape[axis]->op == Op::Dim && a->shape[axis]->str == names[d] &&
              (shownBy[d].first < 0 || shownBy[d].first > a->ints[0]))
            shownBy[d] = {int(a->ints[0]), int(axis)};
  for (uint64_t trip = 0;; ++trip) {
    Scope inner = scope.inner();
    for (auto [name, v] : llvm::zip(names, carried)) inner.dims[name] = v;
    auto go = call(condition, inner, values);
    if (!go) return go.takeError();
    if (!truth(*(*go)[0])) break;
    if (trip == options.maxTrips)
      return llvm::createStringError("while: more than %llu trips", (unsigned long long)trip);
    auto next = call(body, inner, values);
    if (!next) return next.takeError();
    values = std::move(*next);
    for (auto [at, v] : llvm::zip(shownBy, carried))
      if (at.first >= 0) v = values[at.first]->shape[at.second];
  }
  for (int64_t v : carried) {
    Tensor t = zeros(DType::I64, {});
    Native<int64_t>::store(t.bytes.data(), 0, v);
    values.push_back(std::make_shared<Tensor>(std::move(t)));
  }
  return values;
}

/// Row i of t along axis 0.
static Tensor sliceOf(const Tensor &t, int64_t i) {
  Tensor s = zeros(t.dtype, llvm::ArrayRef(t.shape).drop_front());
  std::copy_n(t.bytes.begin() + i * s.bytes.size(), s.bytes.size(), s.bytes.begin());
  return s;
}

llvm::Expected<Values> Evaluator::evalScan(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in) {
  auto length = scope.value(n->indices()[0]);
  if (!length) return length.takeError();
  UOpRef body = n->fns[0];
  size_t carries = n->ints[0], slices = n->ints[1], stacked = body->src.size() - carries;
  Values args(in.begin(), in.end());
  std::vector<Tensor> stacks(stacked);
  for (int64_t i = 0; i < *length; ++i) {
    for (size_t s = carries; s < carries + slices; ++s) args[s] = std::make_shared<Tensor>(sliceOf(*in[s], i));
    auto out = call(body, scope.inner(), args);
    if (!out) return out.takeError();
    std::copy_n(out->begin(), carries, args.begin());
    for (size_t s = 0; s < stacked; ++s) {
      const Tensor &row = *(*out)[carries + s];
      if (i == 0) {
        stacks[s].shape = row.shape;
        stacks[s].shape.insert(stacks[s].shape.begin(), *length);
      } else if (row.shape != std::vector(stacks[s].shape.begin() + 1, stacks[s].shape.end()))
        return llvm::createStringError("scan: a stacked output changes its shape between steps");
      stacks[s].dtype = row.dtype;
      stacks[s].bytes.insert(stacks[s].bytes.end(), row.bytes.begin(), row.bytes.end());
    }
  }
  Values results(args.begin(), args.begin() + carries);
  for (size_t s = 0; s < stacked; ++s) {
    if (*length == 0) { // no step says what the rows are: the body's own shape does, where the scope knows it
      auto row = scope.values(body->src[carries + s]->shape);
      if (!row) return row.takeError();
      row->insert(row->begin(), 0);
      stacks[s] = zeros(body->src[carries + s]->dtype, *row);
    }
    results.push_back(std::make_shared<Tensor>(std::move(stacks[s])));
  }
  return results;
}
