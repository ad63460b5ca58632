//===- Module.cpp: look-ups in a module, and origins -----------------------===//
#include "astra/IR/Module.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <algorithm>

using namespace astra;

const char *astra::transformName(Transform t) {
  static constexpr const char *names[] = {"grad", "jvp", "vmap"};
  return names[size_t(t)];
}

void Origins::add(UOpRef node, llvm::StringRef name) {
  Origin &o = byId[node->id];
  auto at = std::lower_bound(o.names.begin(), o.names.end(), name);
  if (at != o.names.end() && *at == name) return;
  ++o.count;
  o.names.insert(at, name.str());
  if (o.names.size() > 8) o.names.pop_back();
}

void Origins::inherit(UOpRef to, UOpRef from) {
  if (to == from) return;
  auto it = byId.find(from->id);
  if (it == byId.end()) return;
  Origin old = it->second; // add may rehash what `it` points to
  unsigned beyond = old.count - old.names.size();
  for (const std::string &n : old.names) add(to, n);
  byId[to->id].count += beyond;
}

const Origin *Origins::find(UOpRef node) const {
  auto it = byId.find(node->id);
  return it == byId.end() ? nullptr : &it->second;
}

template <class List, class Name> static auto *byName(List &list, llvm::StringRef name, Name nameOf) {
  for (auto &x : list)
    if (nameOf(x) == name) return &x;
  return static_cast<decltype(&list[0])>(nullptr);
}
const Param *Module::param(llvm::StringRef n) const {
  return byName(params, n, [](const Param &p) { return p.value->str; });
}
const StateVar *Module::state(llvm::StringRef n) const {
  return byName(states, n, [](const StateVar &s) { return s.value->str; });
}
const Entry *Module::entry(llvm::StringRef n) const {
  return byName(entries, n, [](const Entry &e) { return llvm::StringRef(e.name); });
}

std::vector<UOpRef> Module::roots() const {
  std::vector<UOpRef> r;
  for (const Entry &e : entries) {
    for (const Value &v : e.outputs) r.push_back(v.value);
    for (const StateUpdate &u : e.updates) r.push_back(u.value);
  }
  return r;
}

void astra::replaceLeaves(Module &m, llvm::ArrayRef<std::pair<UOpRef, UOpRef>> leaves) {
  llvm::DenseMap<UOpRef, UOpRef> other(leaves.begin(), leaves.end());
  mapValues(m, [&](UOpRef n) {
    UOpRef to = other.lookup(n);
    return to ? to : n;
  });
}

void astra::mapValues(Module &m, llvm::function_ref<UOpRef(UOpRef)> rewrite) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort(m.roots())) {
    llvm::SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(now.lookup(s));
    UOpRef to = now[n] = rewrite(m.ctx().withSources(n, src));
    m.origins.inherit(to, n);
  }
  for (Entry &e : m.entries) {
    for (Value &v : e.outputs) v.value = now.lookup(v.value);
    for (StateUpdate &u : e.updates) u.value = now.lookup(u.value);
  }
}

namespace {

llvm::DenseSet<UOpRef> usedBy(const Entry &e) {
  llvm::DenseSet<UOpRef> seen;
  std::vector<UOpRef> work;
  for (const Value &v : e.inputs) work.push_back(v.value);
  for (const Value &v : e.outputs) work.push_back(v.value);
  for (const StateUpdate &u : e.updates) work.push_back(u.value);
  while (!work.empty()) {
    UOpRef x = work.back();
    work.pop_back();
    if (!seen.insert(x).second) continue;
    for (llvm::ArrayRef<UOpRef> next : {x->src, x->shape, x->fns}) work.insert(work.end(), next.begin(), next.end());
  }
  return seen;
}

/// Which equations an entry checks. A dim is known when the entry uses it, when an equation between known dims and this
/// one gives it, or when nothing gives it and an equation with a known dim needs it: then the caller does.
class EquationSolver {
public:
  EquationSolver(const Module &m, const Entry &e) : m(m), used(usedBy(e)) {
    for (auto [i, q] : llvm::enumerate(m.equations)) {
      states.emplace_back();
      for (UOpRef x : topoSort({q.left, q.right}))
        if (x->is(Op::Dim)) equationsWith[x].push_back(i), ++states[i].unknown;
    }
    for (UOpRef d : m.dims)
      if (used.contains(d)) know(d);
    for (size_t next = 0, asked = 0; next < ready.size() || asked < touched.size();) {
      if (next < ready.size()) {
        settle(ready[next++]);
        continue;
      }
      const Equation &q = m.equations[touched[asked]];
      if (!states[touched[asked++]].isDone)
        for (UOpRef x : topoSort({q.left, q.right}))
          if (x->is(Op::Dim) && !known.contains(x)) demanded.insert(x), know(x);
    }
    llvm::sort(found, [](const EntryEquation &a, const EntryEquation &b) { return a.number < b.number; });
  }
  bool isOfEntry(UOpRef dim) const { return used.contains(dim) || demanded.contains(dim); }
  std::vector<EntryEquation> found;

private:
  struct State {
    size_t unknown = 0;
    bool isTouched = false, isDone = false;
  };
  const Module &m;
  llvm::DenseSet<UOpRef> used, known, demanded;
  llvm::DenseMap<UOpRef, std::vector<size_t>> equationsWith;
  std::vector<State> states;
  std::vector<size_t> ready, touched; // queues of equations: with one unknown dim or none; with a known dim
  std::vector<UOpRef> solved, values;

  void know(UOpRef dim) {
    known.insert(dim);
    for (size_t i : equationsWith[dim]) {
      if (!states[i].isTouched) touched.push_back(i);
      states[i].isTouched = true;
      if (--states[i].unknown <= 1) ready.push_back(i);
    }
  }

  void settle(size_t i) {
    if (states[i].isDone) return;
    Context &c = *m.context;
    UOpRef left = idxSubstitute(c, m.equations[i].left, solved, values);
    UOpRef right = idxSubstitute(c, m.equations[i].right, solved, values), dim = nullptr;
    if (states[i].unknown) {
      for (UOpRef x : topoSort({left, right}))
        if (x->is(Op::Dim) && !known.contains(x)) dim = x;
      UOpRef value = dim ? solve(idxSub(c, left, right), dim) : nullptr;
      if (dim && !value) return;
      if (dim) {
        solved.push_back(dim), values.push_back(value);
        left = idxSubstitute(c, left, {dim}, {value}), right = idxSubstitute(c, right, {dim}, {value});
      }
    }
    states[i].isDone = true;
    found.push_back({i, left, right});
    if (dim) know(dim);
  }

  /// The dim for which the polynomial is 0, within its bounds, if it is one term of it and in no other.
  UOpRef solve(UOpRef zero, UOpRef dim) const {
    Context &c = *m.context;
    llvm::SmallVector<IndexTerm, 4> rest;
    int64_t factor = 0;
    for (IndexTerm &t : terms(zero)) {
      if (t.atoms.size() == 1 && t.atoms[0] == dim)
        factor = t.coefficient;
      else
        rest.push_back(std::move(t));
    }
    UOpRef others = fromTerms(c, rest);
    if (!factor || llvm::is_contained(topoSort(others), dim)) return nullptr;
    if (factor > 0) others = idxMul(c, others, c.index(-1));
    UOpRef quotient = idxDiv(c, others, c.index(factor > 0 ? factor : -factor));
    return idxMin(c, idxMax(c, quotient, c.index(dim->lo)), c.index(dim->hi));
  }
};

} // namespace

std::vector<UOpRef> Module::dimsOf(const Entry &e) const {
  EquationSolver solver(*this, e);
  std::vector<UOpRef> out;
  for (UOpRef d : dims)
    if (solver.isOfEntry(d)) out.push_back(d);
  return out;
}

std::vector<EntryEquation> Module::equationsOf(const Entry &e) const {
  return std::move(EquationSolver(*this, e).found);
}
