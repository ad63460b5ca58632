//===- Activity.cpp: where derivatives flow --------------------------------===//
#include "Activity.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using llvm::ArrayRef;
using llvm::SmallBitVector;

std::string autograd::placeOf(UOpRef n, const Origins *origins) {
  std::string place = info(n->op).mnemonic;
  if (n->dtype != DType::Void) place += " : " + typeText(n->dtype, n->shape);
  const Origin *from = origins ? origins->find(n) : nullptr;
  if (from && !from->names.empty()) place += " (" + from->names[0] + (from->count > 1 ? " and others" : "") + ")";
  return "at " + place;
}

llvm::Error autograd::refuse(UOpRef n, const llvm::Twine &why, Origins *origins) {
  return llvm::createStringError(placeOf(n, origins) + ": " + why + " (detach stops gradients)");
}

std::vector<UOpRef> autograd::argumentsOf(UOpRef func) {
  std::vector<UOpRef> args(func->ints[0]);
  for (UOpRef n : topoSort(func->src))
    if (n->op == Op::Arg) args[n->ints[0]] = n;
  return args;
}

/// Which results of a function depend on arguments that are active. Functions are nested at most 16 deep (Verify.cpp).
static llvm::Expected<SmallBitVector> activeResults(UOpRef func, const SmallBitVector &arguments, Origins *origins) {
  std::vector<UOpRef> wrt, args = argumentsOf(func);
  for (unsigned i = 0; i < args.size(); ++i)
    if (args[i] && arguments[i] && isDifferentiable(args[i]->dtype)) wrt.push_back(args[i]);
  auto inner = activity(func->src, wrt, origins);
  if (!inner) return inner.takeError();
  SmallBitVector out(func->src.size());
  for (unsigned i = 0; i < func->src.size(); ++i) out[i] = inner->is(func->src[i]);
  return out;
}

/// A call with some sources active; carried values are followed until nothing changes.
static llvm::Expected<Activity::Call> activeCall(UOpRef n, SmallBitVector sources, Origins *origins) {
  unsigned first = n->op == Op::Cond; // source 0 of a cond is no argument
  unsigned carried = n->op == Op::While ? n->ntensors : n->op == Op::Scan ? n->ints[0] : 0;
  for (;;) {
    SmallBitVector arguments(n->ntensors - first), results(n->fns.back()->src.size());
    for (unsigned i = 0; i < arguments.size(); ++i) arguments[i] = sources[first + i];
    for (UOpRef f : n->fns) {
      if (n->op == Op::While && f == n->fns[0]) continue; // the condition gives no float
      auto some = activeResults(f, arguments, origins);
      if (!some) return some.takeError();
      results |= *some;
    }
    bool changed = false;
    for (unsigned i = 0; i < carried; ++i)
      if (results[i] && !sources[i]) sources[i] = changed = true;
    for (unsigned i = 0; i < carried; ++i)
      if (sources[i]) results[i] = true; // the loop may not run
    if (!changed) return Activity::Call{sources, results};
  }
}

/// The value of a `with_gradient` is not differentiated.
static unsigned firstActive(UOpRef n) { return n->op == Op::WithGradient; }

llvm::DenseSet<UOpRef> astra::reachedByGradients(ArrayRef<UOpRef> outputs) {
  llvm::DenseSet<UOpRef> seen, leaves;
  std::vector<UOpRef> open;
  auto visit = [&](UOpRef n) { // through what is refused too: the sweep names it
    bool ends = isInt(n->dtype) || n->dtype == DType::Bool || n->isIndex();
    if (!ends && seen.insert(n).second) open.push_back(n);
  };
  for (UOpRef o : outputs) visit(o);
  while (!open.empty()) {
    UOpRef n = open.back();
    open.pop_back();
    DerivativeKind kind = rowOf(n->op).kind;
    if (n->ntensors == 0) leaves.insert(n);
    if (kind == DerivativeKind::Nothing) continue;
    for (UOpRef s : n->tensors().drop_front(firstActive(n))) visit(s);
  }
  return leaves;
}

llvm::Expected<Activity> autograd::activity(ArrayRef<UOpRef> outputs, ArrayRef<UOpRef> wrt, Origins *origins) {
  Activity a;
  uint32_t oldest = UINT32_MAX;
  llvm::DenseSet<UOpRef> leaves(wrt.begin(), wrt.end()), seen;
  for (UOpRef w : wrt) oldest = std::min(oldest, w->id);

  auto finish = [&](UOpRef n) -> llvm::Error {
    bool is = leaves.contains(n);
    if (!is && n->op == Op::Proj) {
      auto call = a.calls.find(n->src[0]);
      is = call != a.calls.end() && uint64_t(n->ints[0]) < call->second.results.size() &&
           call->second.results[n->ints[0]] && isDifferentiable(n->dtype);
    } else if (!is) {
      SmallBitVector sources(n->ntensors);
      for (unsigned i = firstActive(n); i < n->ntensors; ++i) sources[i] = a.is(n->src[i]);
      DerivativeKind kind = rowOf(n->op).kind;
      if (sources.none() || kind == DerivativeKind::Zero) return llvm::Error::success();
      if (const char *why = refusal(n)) return refuse(n, why, origins);
      if (kind == DerivativeKind::Control && n->op != Op::WithGradient) {
        auto call = activeCall(n, sources, origins);
        if (!call) return call.takeError();
        is = call->results.any();
        if (is) a.calls[n] = std::move(*call);
      } else
        is = isDifferentiable(n->dtype);
    }
    if (is) a.active.insert(n), a.order.push_back(n);
    return llvm::Error::success();
  };

  std::vector<std::pair<UOpRef, uint32_t>> stack;
  auto visit = [&](UOpRef n) {
    if (n->id >= oldest && seen.insert(n).second)
      stack.push_back({n, leaves.contains(n) ? n->ntensors : firstActive(n)});
  };
  for (UOpRef o : outputs) {
    visit(o);
    while (!stack.empty()) {
      auto &[n, next] = stack.back();
      if (next < n->ntensors) {
        visit(n->src[next++]);
        continue;
      }
      UOpRef done = n;
      stack.pop_back();
      if (auto e = finish(done)) return std::move(e);
    }
  }
  return a;
}
