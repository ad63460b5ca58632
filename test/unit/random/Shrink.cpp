//===- Shrink.cpp: a smaller case that still fails -------------------------===//
// Takes:    a case and what it means to fail.
// Gives:    first one output, then the earliest node that fails as the only output, then inputs in place of sources, as
//           long as failing goes on.
// Keeps:    the values: an input put in place of a node holds what the evaluator gives for it.
#include "RandomGraph.h"
#include "astra/Numerics/EvalFunctions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::test;
using llvm::ArrayRef;

namespace {
/// The case with these outputs and no state updates.
RandomCase withOutputs(const RandomCase &c, ArrayRef<UOpRef> roots) {
  RandomCase r = c;
  Entry &e = r.module.entries[0];
  e.outputs.clear();
  e.updates.clear();
  for (UOpRef n : roots) e.outputs.push_back({"y" + std::to_string(e.outputs.size()), n});
  return r;
}
std::vector<UOpRef> roots(const RandomCase &c) {
  std::vector<UOpRef> r;
  for (const Value &v : c.entry().outputs) r.push_back(v.value);
  for (const StateUpdate &u : c.entry().updates) r.push_back(u.value);
  return r;
}
/// The case without one of its outputs and updates.
RandomCase without(const RandomCase &c, size_t i) {
  RandomCase r = c;
  Entry &e = r.module.entries[0];
  if (i < e.outputs.size())
    e.outputs.erase(e.outputs.begin() + i);
  else
    e.updates.erase(e.updates.begin() + (i - e.outputs.size()));
  return r;
}

/// Rebuilds the outputs over what `map` says of some of `nodes` (in topological order).
void replace(RandomCase &c, ArrayRef<UOpRef> nodes, llvm::DenseMap<UOpRef, UOpRef> &map) {
  for (UOpRef n : nodes) {
    if (map.count(n)) continue;
    llvm::SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(map.lookup(s));
    map[n] = c.module.ctx().withSources(n, src);
  }
  for (Value &v : c.module.entries[0].outputs) v.value = map.lookup(v.value);
  for (StateUpdate &u : c.module.entries[0].updates) u.value = map.lookup(u.value);
}

/// The same graph with `from` replaced by a new input that holds its value; nothing where that is not possible.
std::optional<RandomCase> withInput(const RandomCase &c, UOpRef from) {
  if (llvm::any_of(from->shape, [](UOpRef d) { return !d->isConst() && d->op != Op::Dim; })) return std::nullopt;
  EvalOptions options;
  options.function = evalFunction;
  RandomCase probe = withOutputs(c, from);
  auto value = evalEntry(probe.module, probe.entry(), probe.inputs, options);
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  RandomCase r = c;
  Context &ctx = r.module.ctx();
  Entry &e = r.module.entries[0];
  llvm::SmallVector<UOpRef, 6> shape(from->shape);
  UOpRef x = ctx.make(Op::Arg, shape, {int64_t(e.inputs.size())}, {}, from->dtype);
  llvm::DenseMap<UOpRef, UOpRef> map{{from, x}};
  replace(r, topoSort(roots(c)), map);
  e.inputs.push_back({"x" + std::to_string(e.inputs.size()), x});
  r.inputs.inputs.push_back(value->outputs[0]);
  return r;
}
/// The case without the inputs, parameters and states that the outputs do not read.
RandomCase withUsedInputs(const RandomCase &c) {
  RandomCase r = c;
  Context &ctx = r.module.ctx();
  Entry &e = r.module.entries[0];
  e.inputs.clear();
  r.inputs.inputs.clear();
  std::vector<UOpRef> nodes = topoSort(roots(c));
  llvm::DenseMap<UOpRef, UOpRef> map;
  for (auto [v, t] : llvm::zip(c.entry().inputs, c.inputs.inputs))
    if (llvm::is_contained(nodes, v.value)) {
      map[v.value] = ctx.make(Op::Arg, v.value->src, {int64_t(e.inputs.size())}, {}, v.value->dtype);
      e.inputs.push_back({v.name, map[v.value]});
      r.inputs.inputs.push_back(t);
    }
  replace(r, nodes, map);
  auto unread = [&](const auto &p) { return !llvm::is_contained(nodes, p.value); };
  llvm::erase_if(r.module.params, unread);
  llvm::erase_if(r.module.states, [&](const StateVar &s) {
    return unread(s) && llvm::none_of(e.updates, [&](const StateUpdate &u) { return u.state == s.value->str; });
  });
  return r;
}
} // namespace

RandomCase test::shrink(const RandomCase &c, llvm::function_ref<bool(const RandomCase &)> fails) {
  RandomCase best = c;
  for (UOpRef n : topoSort(roots(c))) // sources first: the earliest that fails
    if (!n->isIndex() && n->dtype != DType::Void && !has(n->op, Leaf))
      if (RandomCase one = withOutputs(c, n); fails(one)) {
        best = std::move(one);
        break;
      }
  for (size_t i = 0; roots(best).size() > 1 && i < roots(best).size();) // several fail together
    if (RandomCase fewer = without(best, i); fails(fewer))
      best = std::move(fewer);
    else
      ++i;
  for (bool smaller = true; smaller;) {
    smaller = false;
    std::vector<UOpRef> nodes = topoSort(roots(best));
    for (UOpRef n : llvm::reverse(nodes)) {
      if (n->isIndex() || n->dtype == DType::Void || has(n->op, Leaf) || llvm::is_contained(roots(best), n)) continue;
      auto cut = withInput(best, n);
      if (cut && fails(*cut)) {
        best = std::move(*cut);
        smaller = true;
        break;
      }
    }
  }
  if (RandomCase bare = withUsedInputs(best); fails(bare)) best = std::move(bare);
  return best;
}
