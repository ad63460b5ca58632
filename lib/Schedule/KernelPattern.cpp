//===- KernelPattern.cpp: where a graph has what another one computes ---------===//
// Takes:    see KernelPattern.h.
// Keeps:    time linear in the pattern for each node that is looked at; patterns have some ten nodes.
#include "KernelPattern.h"
#include "Inline.h"
#include "KernelGrid.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

namespace {

/// Whether an op is left out of a graph where it changes no shape.
bool isLeftOut(Op op) { return op == Op::Reshape || op == Op::Expand; }

/// Whether a symbolic integer is of dims and numbers alone.
bool isOfDims(UOpRef x) {
  return llvm::all_of(topoSort(x), [](UOpRef n) { return n->isIndex() && n->op != Op::Extent; });
}

class Matcher {
public:
  explicit Matcher(PatternMatch &m) : m(m) {}

  bool run(UOpRef pattern, UOpRef root) {
    work.emplace_back(pattern, root);
    while (!work.empty()) {
      auto [p, x] = work.pop_back_val();
      if (!(p->isIndex() ? meetIndex(p, x) : meet(p, x))) return false;
      if (x != root && !x->isIndex() && !m.leaves.contains(p) && !x->isConst()) m.inner.push_back(x);
    }
    return true;
  }

private:
  PatternMatch &m;
  Bindings seen;
  SmallVector<std::pair<UOpRef, UOpRef>, 32> work;

  bool bind(UOpRef p, UOpRef x) { return m.leaves.try_emplace(p, x).first->second == x; }

  /// Sums and products of dims are compared when the pattern is built.
  bool meetIndex(UOpRef p, UOpRef x) {
    if (p->op == Op::Dim) return x->lo >= p->lo && x->hi <= p->hi && isOfDims(x) && bind(p, x);
    return !p->isConst() || p->constIndex() == x->constIndex();
  }
  bool meetShapes(UOpRef p, UOpRef x) {
    if (p->rank() != x->rank()) return false;
    for (auto [d, e] : llvm::zip_equal(p->shape, x->shape)) work.emplace_back(d, e);
    return true;
  }
  bool meet(UOpRef p, UOpRef x) {
    if (p->dtype != x->dtype) return false;
    if (p->op == Op::Arg) return bind(p, x) && meetShapes(p, x);
    auto [known, fresh] = seen.try_emplace(p, x);
    if (!fresh) return known->second == x;
    bool same = p->op == x->op && p->ints == x->ints && p->str == x->str && p->ntensors == x->ntensors &&
                p->src.size() == x->src.size() && p->fns.empty() && x->fns.empty();
    if (!same && isLeftOut(p->op)) {
      work.emplace_back(p->src[0], x);
      return meetShapes(p, x);
    }
    if (!same) return false;
    for (auto [s, t] : llvm::zip_equal(p->src, x->src)) work.emplace_back(s, t);
    return meetShapes(p, x);
  }
};

/// Copies nodes of one Context into another.
class Copier {
public:
  Copier(Builder &b, Bindings leaves) : b(b), now(std::move(leaves)) {}

  UOpRef copy(UOpRef root) {
    for (UOpRef n : topoSort(root)) {
      if (now.contains(n)) continue;
      UOpRef to = node(n);
      if (!to) return nullptr;
      now[n] = to;
    }
    return now.lookup(root);
  }

private:
  Builder &b;
  Bindings now;

  UOpRef node(UOpRef n) {
    if (n->op == Op::Dim) return nullptr; // one that nothing of the pattern binds
    SmallVector<UOpRef, 8> src, fns;
    for (UOpRef s : n->src) src.push_back(now.lookup(s));
    std::string names = n->str.str();
    if (!n->fns.empty()) {
      UOpRef function = n->op == Op::Custom ? body(n, src, names) : nullptr;
      if (!function) return nullptr;
      fns.push_back(function);
    }
    llvm::Expected<UOpRef> to = b.c.tryMake(n->op, src, n->ints, names, n->dtype, fns);
    if (!to) {
      llvm::consumeError(to.takeError());
      return nullptr;
    }
    return isLeftOut(n->op) && (*to)->shape == src[0]->shape ? src[0] : *to;
  }

  /// The function of a kernel whose grid has other extents now.
  UOpRef body(UOpRef custom, llvm::ArrayRef<UOpRef> src, std::string &names) {
    Bindings leaves;
    for (auto [from, to] : now)
      if (from->op == Op::Dim) leaves[from] = to;
    SmallVector<llvm::StringRef, 4> old;
    custom->str.split(old, ',');
    names.clear();
    for (auto [axis, extent] : llvm::enumerate(src.drop_front(custom->ntensors))) {
      int64_t most = std::max<int64_t>(0, extent->hi - 1);
      std::string name = "program" + std::to_string(axis) + "_" + std::to_string(most + 1);
      names += (axis ? "," : "") + name;
      for (UOpRef n : topoSort(custom->fns[0]->src))
        if (n->op == Op::Dim && n->str == old[axis]) leaves[n] = b.dim(name, 0, most);
    }
    Copier inner(b, std::move(leaves));
    SmallVector<UOpRef, 2> results;
    for (UOpRef r : custom->fns[0]->src) {
      results.push_back(inner.copy(r));
      if (!results.back()) return nullptr;
    }
    return b.c.make(Op::Func, results, custom->fns[0]->ints);
  }
};

} // namespace

UOpRef astra::instantiate(Builder &b, UOpRef value, Bindings leaves) {
  return Copier(b, std::move(leaves)).copy(value);
}

/// What a value is made of by movement alone.
static UOpRef moved(UOpRef x) {
  while (has(x->op, Movement)) x = x->src[0];
  return x;
}

std::optional<PatternMatch> astra::matchPattern(Builder &b, UOpRef pattern, UOpRef root) {
  PatternMatch m;
  if (!Matcher(m).run(pattern, root) || instantiate(b, pattern, m.leaves) != root) return std::nullopt;
  llvm::DenseSet<UOpRef> outside;
  for (auto [leaf, x] : m.leaves) outside.insert(x);
  llvm::erase_if(m.inner, [&](UOpRef x) {
    UOpRef from = moved(x);
    return outside.contains(from) || from->isConst() || from->op == Op::FromIndex;
  });
  return m;
}

/// The function of a custom op whose argument number i is args[i].
static UOpRef bodyOver(Builder &b, UOpRef function, llvm::ArrayRef<UOpRef> args, int64_t count) {
  return b.c.make(Op::Func, inlineFunction(b.c, function, args), {count});
}

UOpRef astra::readingInPlace(Builder &b, UOpRef custom) {
  SmallVector<UOpRef, 8> src, args;
  for (UOpRef operand : custom->tensors()) {
    SmallVector<UOpRef, 4> chain;
    UOpRef x = operand;
    for (; has(x->op, Movement) || x->op == Op::Cast; x = x->src[0]) chain.push_back(x);
    UOpRef now = x;
    if (!x->isConst()) {
      now = b.arg(int64_t(src.size()), x->dtype, x->shape);
      src.push_back(x);
    }
    for (UOpRef step : llvm::reverse(chain)) {
      SmallVector<UOpRef, 8> parts(step->src);
      parts[0] = now;
      now = b.c.withSources(step, parts);
    }
    args.push_back(now);
  }
  UOpRef function = bodyOver(b, custom->fns[0], args, int64_t(src.size()));
  src.append(custom->indices().begin(), custom->indices().end());
  return b.c.make(Op::Custom, src, {}, custom->str, DType::Void, {function});
}

UOpRef astra::storedAs(Builder &b, UOpRef proj, DType type) {
  UOpRef custom = proj->src[0], place = custom->fns[0]->src[proj->ints[0]];
  if (custom->fns[0]->src.size() != 1 || place->op != Op::Place || place->ints[0] != 0) return nullptr;
  SmallVector<UOpRef, 12> src(place->src);
  src[0] = b.cast(src[0], type);
  return resultOf(b, customWith(b, custom, {b.c.make(Op::Place, src, place->ints)}, {}), 0);
}
