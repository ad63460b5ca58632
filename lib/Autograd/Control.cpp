//===- Control.cpp: derivatives of cond, scan and while --------------------===//
// Takes:    a control op, which of its arguments and results carry derivatives, their tangents or cotangents.
// Gives:    a control op over differentiated functions. Forward mode: one op gives values and tangents and takes the
//           old one's place. Reverse mode: a cond calls the functions' transposes, which compute again what they need
//           from the arguments; a scan runs a second time from the end, over the values that each step began with,
//           which the first one now stacks; a while becomes a scan (Trips.cpp).
// Keeps:    functions closed; arguments and results that carry nothing stay as they are.
#include "Modes.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using llvm::ArrayRef;
using llvm::SmallVector;
using Values = std::vector<UOpRef>;

namespace {
UOpRef functionOf(Graph &g, ArrayRef<UOpRef> results, int64_t nargs) { return g.c.make(Op::Func, results, {nargs}); }

UOpRef project(Graph &g, UOpRef call, int64_t index, DType t, Shape shape) {
  return g.c.make(
      Op::Proj,
      [&] {
        Values src{call};
        llvm::append_range(src, shape);
        return src;
      }(),
      {index}, {}, t);
}
SmallVector<UOpRef, 6> stackedShape(UOpRef length, UOpRef row) {
  SmallVector<UOpRef, 6> s{length};
  llvm::append_range(s, row->shape);
  return s;
}

//===- Forward mode ---------------------------------------------------------===//

/// The arguments of a differentiated function: old argument i is `value[i]`, its tangent `tangent[i]` or -1. Groups of
/// arguments (carried values, slices, closed-over ones) keep together, values first.
struct Layout {
  SmallVector<int64_t, 8> value, tangent;
  int64_t count = 0;
  SmallVector<int64_t, 3> sizes; // of the groups
};
Layout layout(ArrayRef<int64_t> groups, llvm::function_ref<bool(int64_t)> active) {
  Layout l;
  int64_t first = 0;
  for (int64_t size : groups) {
    int64_t before = l.count;
    for (int64_t i = first; i < first + size; ++i) l.value.push_back(l.count++);
    for (int64_t i = first; i < first + size; ++i) l.tangent.push_back(active(i) ? l.count++ : -1);
    l.sizes.push_back(l.count - before);
    first += size;
  }
  return l;
}

/// `func` with its arguments renumbered, giving its results and the tangents of those that `results` names.
llvm::Expected<UOpRef> forwardFunction(Graph &g, UOpRef func, const Layout &in, const Layout &out) {
  Builder b(g.c);
  Values args = argumentsOf(func), wrt, tangents;
  llvm::DenseMap<UOpRef, UOpRef> renamed;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i]) continue;
    renamed[args[i]] = b.arg(in.value[i], args[i]->dtype, args[i]->shape);
    if (in.tangent[i] >= 0) {
      wrt.push_back(args[i]);
      // Numbered beyond the arguments until all of them are renamed.
      UOpRef d = b.arg(func->ints[0] + in.tangent[i], args[i]->dtype, args[i]->shape);
      renamed[d] = b.arg(in.tangent[i], d->dtype, d->shape);
      tangents.push_back(d);
    }
  }
  auto d = forward(g.c, func->src, wrt, tangents, g.origins);
  if (!d) return d.takeError();
  Values results(out.count);
  for (size_t i = 0; i < func->src.size(); ++i) {
    results[out.value[i]] = d->values[i];
    if (out.tangent[i] >= 0) results[out.tangent[i]] = orZeros(b, d->derivatives[i], d->values[i]);
  }
  return functionOf(g, rebuild(Graph(g.c, g.origins), results, std::move(renamed)), in.count);
}
} // namespace

llvm::Expected<SmallVector<int64_t, 8>> autograd::forwardCall(Graph &g, UOpRef n, const Activity::Call &call,
                                                              ArrayRef<UOpRef> d) {
  Builder b(g.c);
  int64_t first = n->op == Op::Cond, args = n->ntensors - first, nresults = call.results.size();
  int64_t carried = n->op == Op::While ? args : n->op == Op::Scan ? n->ints[0] : 0;
  int64_t slices = n->op == Op::Scan ? n->ints[1] : 0;
  Layout in = layout({carried, slices, args - carried - slices}, [&](int64_t i) { return call.sources[first + i]; });
  Layout out = layout({carried, nresults - carried}, [&](int64_t i) { return call.results[i]; });

  Values src(first + in.count), fns;
  if (first) src[0] = n->src[0];
  for (int64_t i = 0; i < args; ++i) {
    UOpRef x = n->src[first + i];
    src[first + in.value[i]] = x;
    if (in.tangent[i] >= 0) src[first + in.tangent[i]] = orZeros(b, d[first + i], x);
  }
  llvm::append_range(src, n->indices());
  for (UOpRef f : n->fns) {
    bool condition = n->op == Op::While && fns.empty();
    Layout one{{0}, {-1}, 1, {}};
    auto made = forwardFunction(g, f, in, condition ? one : out);
    if (!made) return made.takeError();
    fns.push_back(*made);
  }
  SmallVector<int64_t, 2> ints(n->ints);
  if (n->op == Op::Scan) ints = {in.sizes[0], in.sizes[1]};
  UOpRef now = g.c.make(n->op, src, ints, n->str, DType::Void, fns);

  Replacement r{now, out.value};
  if (n->op == Op::While) // the carried dims follow the values
    for (size_t i = 0; i < n->indices().size(); ++i) r.number.push_back(out.count + i);
  g.replaced[n] = std::move(r);
  return out.tangent;
}

//===- Reverse mode ---------------------------------------------------------===//

static llvm::Expected<Values> backwardCond(Graph &g, UOpRef n, const Activity::Call &call, ArrayRef<UOpRef> results) {
  Builder b(g.c);
  int64_t args = n->ntensors - 1;
  Values src(n->src), given; // the cotangents follow the arguments
  SmallVector<int64_t, 8> which, active;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i]) {
      which.push_back(i);
      given.push_back(b.arg(args + given.size(), results[i]->dtype, results[i]->shape));
      src.push_back(results[i]);
    }
  for (int64_t i = 0; i < args; ++i)
    if (call.sources[1 + i]) active.push_back(i);
  Values fns;
  for (UOpRef f : n->fns) {
    Values theirs = argumentsOf(f), outputs, wrt, made;
    for (int64_t i : which) outputs.push_back(f->src[i]);
    for (int64_t i : active)
      if (theirs[i]) wrt.push_back(theirs[i]);
    auto d = backward(g.c, outputs, given, wrt, g.origins);
    if (!d) return d.takeError();
    auto next = d->derivatives.begin();
    for (int64_t i : active) made.push_back(orZeros(b, theirs[i] ? *next++ : nullptr, n->src[1 + i]));
    fns.push_back(functionOf(g, made, args + given.size()));
  }
  UOpRef now = g.c.make(Op::Cond, src, {}, {}, DType::Void, fns);
  Values out(n->ntensors);
  for (auto [k, i] : llvm::enumerate(active))
    out[1 + i] = project(g, now, k, n->src[1 + i]->dtype, n->src[1 + i]->shape);
  return out;
}

namespace {
/// The second scan of a scan, from its end. Its arguments: cotangents of carried values, sums of those of closed-over
/// values; then slices: the carried values that a step began with, inputs, cotangents of stacked outputs; then
/// closed-over values.
class BackwardScan {
public:
  BackwardScan(Graph &g, UOpRef n, const Activity::Call &call, ArrayRef<UOpRef> results)
      : g(g), b(g.c), n(n), body(n->fns[0]), length(n->indices()[0]), carried(n->ints[0]), slices(n->ints[1]),
        args(n->ntensors), results(results), theirs(argumentsOf(body)) {
    for (int64_t i = 0; i < args; ++i)
      if (call.sources[i]) (i < carried ? carries : i < carried + slices ? inputs : closed).push_back(i);
    for (int64_t i = carried; i < int64_t(results.size()); ++i)
      if (results[i]) outputs.push_back(i);
  }

  llvm::Expected<Values> run() {
    auto made = differentiate();
    if (!made) return made.takeError();
    llvm::DenseSet<UOpRef> reached;
    for (UOpRef x : topoSort(*made)) reached.insert(x);
    arguments(reached);
    UOpRef f = functionOf(g, rebuild(Graph(g.c, g.origins), *made, renamed), src.size());
    src.push_back(length);
    UOpRef now = g.c.make(Op::Scan, src, {int64_t(carries.size() + closed.size()), nslices}, {}, DType::Void, f);
    Values out(args);
    int64_t at = 0;
    for (auto *list : {&carries, &closed})
      for (int64_t i : *list) out[i] = project(g, now, at++, n->src[i]->dtype, n->src[i]->shape);
    for (int64_t i : inputs) out[i] = b.flip(project(g, now, at++, n->src[i]->dtype, n->src[i]->shape), {0});
    return out;
  }
  /// The first scan, if it has to stack more than it did.
  UOpRef stacking() const { return first; }

private:
  Graph &g;
  Builder b;
  UOpRef n, body, length;
  int64_t carried, slices, args;
  ArrayRef<UOpRef> results;
  Values theirs;
  SmallVector<int64_t, 8> carries, inputs, closed, outputs; // that carry derivatives
  llvm::DenseMap<UOpRef, UOpRef> renamed;
  Values src;
  int64_t nslices = 0;
  UOpRef first = nullptr;

  /// A cotangent inside of the body, numbered beyond its arguments until all are renamed: of carry i, or result i.
  UOpRef given(int64_t i) { return b.arg(args + i, body->src[i]->dtype, body->src[i]->shape); }
  /// The sum so far of the cotangents of a closed-over value.
  UOpRef sumOf(int64_t i) { return b.arg(args + body->src.size() + i, n->src[i]->dtype, n->src[i]->shape); }

  llvm::Expected<Values> differentiate() {
    Values ys, seeds, wrt, made;
    for (auto *list : {&carries, &outputs})
      for (int64_t i : *list) ys.push_back(body->src[i]), seeds.push_back(given(i));
    for (auto *list : {&carries, &closed, &inputs})
      for (int64_t i : *list)
        if (theirs[i]) wrt.push_back(theirs[i]);
    auto d = backward(g.c, ys, seeds, wrt, g.origins);
    if (!d) return d.takeError();
    auto next = d->derivatives.begin();
    auto take = [&](int64_t i) { return theirs[i] ? *next++ : nullptr; };
    for (int64_t i : carries) made.push_back(orZeros(b, take(i), body->src[i]));
    for (int64_t i : closed) {
      UOpRef part = take(i);
      made.push_back(part ? b.add(sumOf(i), part) : sumOf(i));
    }
    for (int64_t i : inputs) {
      UOpRef part = take(i);
      made.push_back(part ? part : zeros(b, n->src[i]->dtype, n->src[i]->shape.drop_front()));
    }
    return made;
  }

  void arguments(const llvm::DenseSet<UOpRef> &reached) {
    auto argument = [&](UOpRef inside, UOpRef outside) {
      renamed[inside] = b.arg(src.size(), inside->dtype, inside->shape);
      src.push_back(outside);
    };
    auto slice = [&](UOpRef inside, UOpRef outside) {
      argument(inside, b.flip(outside, {0}));
      ++nslices;
    };
    auto used = [&](int64_t i) { return theirs[i] && reached.contains(theirs[i]); };
    for (int64_t i : carries) argument(given(i), orZeros(b, results[i], n->src[i]));
    for (int64_t i : closed) argument(sumOf(i), zerosLike(b, n->src[i]));
    Values all(body->src);
    SmallVector<int64_t, 8> kept;
    for (int64_t i = 0; i < carried; ++i)
      if (used(i)) kept.push_back(i), all.push_back(theirs[i]);
    if (!kept.empty()) first = g.c.make(Op::Scan, n->src, n->ints, {}, DType::Void, functionOf(g, all, args));
    for (auto [k, i] : llvm::enumerate(kept))
      slice(theirs[i], project(g, first, body->src.size() + k, theirs[i]->dtype, stackedShape(length, theirs[i])));
    for (int64_t i = carried; i < carried + slices; ++i)
      if (used(i)) slice(theirs[i], n->src[i]);
    for (int64_t i : outputs) slice(given(i), results[i]);
    for (int64_t i = carried + slices; i < args; ++i)
      if (used(i)) argument(theirs[i], n->src[i]);
  }
};
} // namespace

llvm::Expected<Values> autograd::backwardCall(Graph &g, UOpRef n, const Activity::Call &call,
                                              ArrayRef<UOpRef> results) {
  if (n->op == Op::Cond) return backwardCond(g, n, call, results);
  UOpRef scan = n;
  if (n->op == Op::While) {
    auto bounded = boundedScan(g, n);
    if (!bounded) return bounded.takeError();
    scan = *bounded;
  }
  BackwardScan second(g, scan, call, results);
  auto sources = second.run();
  if (!sources) return sources;
  UOpRef now = second.stacking() ? second.stacking() : scan;
  if (now != n) {
    SmallVector<int64_t, 8> number(n->fns.back()->src.size());
    for (auto [i, k] : llvm::enumerate(number)) k = i;
    g.replaced[n] = {now, number};
  }
  return sources;
}
