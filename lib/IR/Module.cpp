//===- Module.cpp: look-ups in a module, and origins -----------------------===//
#include "astra/IR/Module.h"
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

std::vector<UOpRef> Module::dimsOf(const Entry &e) const {
  llvm::DenseSet<UOpRef> seen;
  std::vector<UOpRef> work, out;
  for (const Value &v : e.inputs) work.push_back(v.value);
  for (const Value &v : e.outputs) work.push_back(v.value);
  for (const StateUpdate &u : e.updates) work.push_back(u.value);
  while (!work.empty()) {
    UOpRef x = work.back();
    work.pop_back();
    if (!seen.insert(x).second) continue;
    for (llvm::ArrayRef<UOpRef> next : {x->src, x->shape, x->fns}) work.insert(work.end(), next.begin(), next.end());
  }
  for (UOpRef d : dims)
    if (seen.contains(d)) out.push_back(d);
  return out;
}
