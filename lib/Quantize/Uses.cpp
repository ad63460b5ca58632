//===- Uses.cpp: how a module reads its weights -----------------------------===//
#include "Uses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace astra;
using namespace astra::quantize;
using llvm::ArrayRef;
using llvm::SmallVector;

static bool isIdentity(ArrayRef<int64_t> axes) {
  for (auto [i, a] : llvm::enumerate(axes))
    if (int64_t(i) != a) return false;
  return true;
}

View quantize::viewOf(UOpRef x, llvm::function_ref<View(UOpRef)> of) {
  View v;
  if (x->is(Op::Param)) {
    v.param = x;
    v.base.assign(x->shape.begin(), x->shape.end());
    v.axes.assign(llvm::seq<int64_t>(0, x->rank()).begin(), llvm::seq<int64_t>(0, x->rank()).end());
    return v;
  }
  bool passes = x->is(Op::Permute) || x->is(Op::Reshape) || x->is(Op::Cast) || x->is(Op::Tap);
  if (!passes || !(v = of(x->src[0])).param) return {};
  if (x->is(Op::Permute)) {
    SmallVector<int64_t, 4> axes;
    for (int64_t p : x->ints) axes.push_back(v.axes[p]);
    v.axes = axes;
  } else if (x->is(Op::Reshape)) {
    if (!isIdentity(v.axes)) return {};
    v.base.assign(x->shape.begin(), x->shape.end());
    v.axes.assign(llvm::seq<int64_t>(0, x->rank()).begin(), llvm::seq<int64_t>(0, x->rank()).end());
  } else if (x->is(Op::Cast) && x->dtype != DType::F32) {
    return {};
  }
  return v;
}

Uses::Uses(const Module &m) {
  for (const Param &p : m.params)
    if (p.value->dtype == DType::F32 || p.value->dtype == DType::F16 || p.value->dtype == DType::BF16) found[p.value];
  std::vector<UOpRef> roots = m.roots();
  for (UOpRef n : topoSort(roots)) {
    if (n->isIndex()) continue;
    View own = viewOf(n, [&](UOpRef s) { return views.lookup(s); });
    if (own.param && found.count(own.param)) {
      views[n] = std::move(own);
      continue;
    }
    for (auto [i, s] : llvm::enumerate(n->tensors()))
      if (auto v = views.find(s); v != views.end()) read(View(v->second), n, unsigned(i));
  }
  for (UOpRef r : roots)
    if (auto v = views.find(r); v != views.end()) found[v->second.param].other = "it is an output";
}

void Uses::read(const View &v, UOpRef reader, unsigned operand) {
  if (reader->is(Op::Contract) && operand < 2) return multiplied(v, reader, operand);
  bool rows = reader->is(Op::Gather) && operand == 0 && v.axes.size() == 2 && isIdentity(v.axes);
  if (rows && reader->ints[0] == 0) return settle(v, {0}, {1}, true);
  found[v.param].other = (llvm::Twine("it is read by ") + info(reader->op).mnemonic).str();
}

/// Each axis is of kept labels or of summed ones; those in the order of the sum.
void Uses::multiplied(const View &v, UOpRef contract, unsigned operand) {
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  ArrayRef<AffineForm> forms = operand ? s.b : s.a;
  SmallVector<int64_t, 4> kept, summed;
  SmallVector<std::pair<int64_t, int64_t>, 4> bySum; // label, axis
  for (auto [form, axis] : llvm::zip(forms, v.axes)) {
    bool sums = !form.terms.empty() && form.terms[0].first >= s.kept;
    for (auto [l, k] : form.terms)
      if ((l >= s.kept) != sums) {
        found[v.param].other = "an axis of it is summed in part";
        return;
      }
    if (sums)
      bySum.push_back({form.terms[0].first, axis});
    else
      kept.push_back(axis);
  }
  llvm::sort(bySum);
  llvm::sort(kept);
  for (auto [l, axis] : bySum) summed.push_back(axis);
  if (summed.empty())
    found[v.param].other = "no axis of it is summed";
  else
    settle(v, kept, summed, false);
}

void Uses::settle(const View &v, ArrayRef<int64_t> kept, ArrayRef<int64_t> summed, bool gather) {
  Use &u = found[v.param];
  Use now;
  for (UOpRef d : v.base) now.base.push_back(d->constIndex().value_or(0));
  now.order.assign(kept.begin(), kept.end());
  now.order.append(summed.begin(), summed.end());
  now.summed = unsigned(summed.size());
  bool first = !u.isGathered && !u.isMultiplied;
  if (first)
    u.base = now.base, u.order = now.order, u.summed = now.summed;
  else if (u.base != now.base || u.summed != now.summed || u.order != now.order)
    u.other = "products sum it along different axes";
  (gather ? u.isGathered : u.isMultiplied) = true;
}
