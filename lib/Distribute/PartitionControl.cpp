//===- PartitionControl.cpp: control flow on parts --------------------------===//
// Takes:    an op that calls functions, whose sources have images.
// Gives:    the op over functions on parts. A value that is carried is cut the same way in every turn.
// Keeps:    what decides, a predicate or a number of turns, equal in all shards: they come to the same collectives.
#include "Partition.h"
#include "astra/IR/External.h"

using namespace astra;
using namespace astra::distribute;

bool Partition::control(UOpRef n) {
  switch (n->op) {
  case Op::Proj: return proj(n);
  case Op::WithGradient: return withGradient(n);
  case Op::Cond: return cond(n);
  case Op::While:
  case Op::Scan: return loop(n);
  case Op::Custom:
  case Op::External: return outside(n);
  default: return fail(n, "there is no rule how it is computed on parts");
  }
}

/// Gradients are taken before this pass.
bool Partition::withGradient(UOpRef n) { return set(n, axesOf(n->src[0]), natural(n->src[0])); }

bool Partition::proj(UOpRef n) {
  const Outcome &o = frame->outcomes.at(n->src[0]);
  Axes axes = size_t(n->ints[0]) < o.axes.size() ? o.axes[n->ints[0]] : Axes(n->rank(), 0);
  auto shape = localShape(n, n->shape, axes);
  if (!shape) return false;
  List src{o.now};
  llvm::append_range(src, *shape);
  return set(n, axes, c.make(Op::Proj, src, n->ints, {}, n->dtype));
}

/// What is written for whole tensors is given whole tensors.
bool Partition::outside(UOpRef n) {
  List src;
  for (UOpRef s : n->tensors()) {
    if (s->is(Op::External)) { // the call before
      src.push_back(frame->outcomes.at(s).now);
      continue;
    }
    for (auto [i, a] : llvm::enumerate(axesOf(s)))
      if (a)
        return fail(n, said(s) + " goes to a " + info(n->op).mnemonic +
                           ", which takes whole tensors: write a reshard before it that leaves all axes whole");
    if (!src.emplace_back(whole(s))) return false;
  }
  UOpRef made = remade(n, src, now(n->indices()));
  if (!made) return false;
  frame->outcomes[n] = {made, {}};
  return true;
}

/// The values of a function whose arguments are cut like this. Null: an error.
std::unique_ptr<Partition::Frame> Partition::body(UOpRef function, ArrayRef<Axes> args) {
  auto inner = std::make_unique<Frame>();
  Frame *outer = std::exchange(frame, inner.get());
  bool ok = true;
  for (UOpRef n : topoSort(function->src)) {
    if (!n->is(Op::Arg)) continue;
    const Axes &axes = args[n->ints[0]];
    auto shape = localShape(n, n->shape, axes);
    if (!(ok = shape.has_value())) break;
    frame->images[n] = {axes, {{axes, b.arg(n->ints[0], n->dtype, *shape)}}};
  }
  ok = ok && sweep(function->src);
  frame = outer;
  return ok ? std::move(inner) : nullptr;
}

/// The function, with results that are cut as wanted.
UOpRef Partition::made(Frame &f, UOpRef function, ArrayRef<Axes> want) {
  Frame *outer = std::exchange(frame, &f);
  List results;
  for (auto [r, axes] : llvm::zip(function->src, want))
    if (!results.emplace_back(as(r, axes))) break;
  frame = outer;
  return llvm::is_contained(results, nullptr) ? nullptr : c.make(Op::Func, results, function->ints);
}

/// `args`, and what the first `carried` results cut of them, until nothing changes.
bool Partition::settle(UOpRef n, UOpRef function, std::vector<Axes> &args, size_t carried,
                       std::unique_ptr<Frame> &inner) {
  for (;;) {
    if (!(inner = body(function, args))) return false;
    bool settled = true;
    for (size_t i = 0; i < carried; ++i) {
      const Axes &next = inner->images.at(function->src[i]).axes;
      for (unsigned k = 0; k < next.size(); ++k) {
        if (!next[k] || next[k] == args[i][k]) continue;
        if (args[i][k])
          return fail(n, "carried value " + Twine(i) +
                             " is cut in one way in front of the loop and in another by a turn: "
                             "write a reshard");
        args[i][k] = next[k];
        settled = false;
      }
    }
    if (settled) return true;
  }
}

bool Partition::cond(UOpRef n) {
  std::vector<Axes> args, results;
  List src{whole(n->src[0])};
  for (UOpRef s : n->src.drop_front()) {
    args.push_back(axesOf(s));
    src.push_back(natural(s));
  }
  std::unique_ptr<Frame> branches[2];
  for (unsigned f = 0; f < 2; ++f)
    if (!(branches[f] = body(n->fns[f], args))) return false;
  for (auto [yes, no] : llvm::zip(n->fns[0]->src, n->fns[1]->src)) {
    Axes a = branches[0]->images.at(yes).axes;
    const Axes &other = branches[1]->images.at(no).axes;
    for (unsigned k = 0; k < a.size(); ++k) {
      if (a[k] && other[k] && a[k] != other[k]) return fail(n, "its branches give results that are cut in two ways");
      a[k] |= other[k];
    }
    results.push_back(a);
  }
  List fns{made(*branches[0], n->fns[0], results), made(*branches[1], n->fns[1], results)};
  if (llvm::is_contained(src, nullptr) || llvm::is_contained(fns, nullptr)) return false;
  frame->outcomes[n] = {c.make(Op::Cond, src, {}, {}, DType::Void, fns), results};
  return true;
}

bool Partition::loop(UOpRef n) {
  bool isScan = n->is(Op::Scan);
  size_t count = n->ntensors, carried = isScan ? n->ints[0] : count, slices = isScan ? n->ints[1] : 0;
  UOpRef step = n->fns.back();
  std::vector<Axes> args;
  for (size_t i = 0; i < count; ++i) {
    Axes a = axesOf(n->src[i]);
    if (i >= carried && i < carried + slices) {
      if (a[0]) return isCutThere(n, n->src[i], 0, "a scan");
      a.erase(a.begin());
    }
    args.push_back(a);
  }
  std::unique_ptr<Frame> inner;
  if (!settle(n, step, args, carried, inner)) return false;
  std::vector<Axes> results;
  for (auto [i, r] : llvm::enumerate(step->src)) results.push_back(i < carried ? args[i] : inner->images.at(r).axes);
  List fns, src;
  if (!isScan) {
    auto condition = body(n->fns[0], args);
    if (!condition || !fns.emplace_back(made(*condition, n->fns[0], Axes()))) return false;
  }
  if (!fns.emplace_back(made(*inner, step, results))) return false;
  for (size_t i = 0; i < count; ++i) {
    Axes a = args[i];
    if (i >= carried && i < carried + slices) a.insert(a.begin(), 0);
    if (!src.emplace_back(as(n->src[i], a))) return false;
  }
  llvm::append_range(src, now(n->indices()));
  for (size_t i = carried; i < results.size(); ++i) results[i].insert(results[i].begin(), 0); // stacked
  frame->outcomes[n] = {c.make(n->op, src, n->ints, n->str, DType::Void, fns), results};
  return true;
}
