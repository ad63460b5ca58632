//===- Dims.cpp: extents that shards divide --------------------------------===//
// Takes:    a module with shardings of tensors whose extents have dims.
// Gives:    the module in which such a dim n is a multiple of a new one, n_shard: a batch of n rows is n_shard rows for
//           each shard.
// Keeps:    the bounds of the dim, but for values that the shards do not divide: those are refused at the call.
#include "Partition.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseMap.h"
#include <numeric>

using namespace astra;
using namespace astra::distribute;
using llvm::Error;

UOpRef Substitution::function(UOpRef f) {
  of(f->src);
  return image[f] = c.make(Op::Func, of(f->src), f->ints);
}

List Substitution::of(ArrayRef<UOpRef> roots) {
  for (UOpRef n : topoSort(roots)) {
    if (image.count(n)) continue;
    if (UOpRef other = instead ? instead(n) : nullptr) {
      image[n] = other;
      continue;
    }
    List src, fns;
    for (UOpRef s : n->src) src.push_back(image.lookup(s));
    for (UOpRef f : n->fns) fns.push_back(image.count(f) ? image.lookup(f) : function(f));
    bool same = ArrayRef<UOpRef>(src) == n->src && ArrayRef<UOpRef>(fns) == n->fns;
    UOpRef now = same ? n : c.make(n->op, src, n->ints, n->str, n->dtype, fns);
    if (!same && !n->isIndex()) origins.inherit(now, n);
    image[n] = now;
  }
  List out;
  for (UOpRef r : roots) out.push_back(image.lookup(r));
  return out;
}

void Substitution::all(Module &m) {
  for (Equation &e : m.equations) {
    List sides = of({e.left, e.right});
    e = {sides[0], sides[1]};
    c.equations.push_back(e);
  }
  for (Param &p : m.params) p.value = of(p.value)[0];
  for (StateVar &s : m.states) s.value = of(s.value)[0];
  for (Entry &e : m.entries) {
    for (auto *values : {&e.inputs, &e.outputs})
      for (Value &v : *values) v.value = of(v.value)[0];
    for (StateUpdate &u : e.updates) u.value = of(u.value)[0];
  }
}

Nodes distribute::above(ArrayRef<UOpRef> roots, const Nodes &leaves) {
  Nodes out;
  for (UOpRef n : topoSort(roots))
    if (leaves.contains(n) || llvm::any_of(n->src, [&](UOpRef s) { return out.contains(s); })) out.insert(n);
  return out;
}

std::string distribute::placeOf(const Module &m, UOpRef n) {
  std::string text = info(n->op).mnemonic;
  const Origin *from = m.origins.find(n);
  return from && !from->names.empty() ? text + " (" + from->names[0] + ")" : text;
}

llvm::Expected<UOpRef> distribute::dimOfParts(Module &m, UOpRef d, int64_t parts) {
  std::string name = d->str.str() + "_shard";
  while (llvm::any_of(m.dims, [&](UOpRef o) { return o->str == name; })) name += '_';
  int64_t lo = (d->lo + parts - 1) / parts, hi = d->hi / parts;
  if (lo > hi)
    return llvm::createStringError("dim " + d->str + " is in " + Twine(d->lo) + ".." + Twine(d->hi) +
                                   ", where there is no multiple of " + Twine(parts) + " shards");
  UOpRef part = m.ctx().make(Op::Dim, {}, {lo, hi}, name);
  *llvm::find(m.dims, d) = part;
  return part;
}

Error distribute::divideDims(Module &m) {
  Context &c = m.ctx();
  std::vector<std::pair<UOpRef, int64_t>> scales; // in order of first use
  auto need = [&](UOpRef x, const Sharding &s, const Twine &what) -> Error {
    for (unsigned i = 0; i < s.axes.size() && i < x->rank(); ++i) {
      int64_t parts = m.mesh.count(s.axes[i]);
      for (const IndexTerm &t : terms(x->shape[i])) {
        if (t.coefficient % parts == 0) continue;
        if (t.atoms.size() != 1 || !t.atoms[0]->is(Op::Dim))
          return llvm::createStringError(what + ": axis " + Twine(i) + " has an extent of " + indexText(x->shape[i]) +
                                         ", which the " + Twine(parts) + " shards of " + shardingText(m.mesh, s) +
                                         " do not divide");
        int64_t more = parts / std::gcd(parts, t.coefficient);
        auto it = llvm::find_if(scales, [&](auto &p) { return p.first == t.atoms[0]; });
        if (it == scales.end())
          scales.push_back({t.atoms[0], more});
        else
          it->second = std::lcm(it->second, more);
      }
    }
    return Error::success();
  };
  for (const Param &p : m.params)
    if (Error e = need(p.value, p.sharding, "@" + p.value->str)) return e;
  for (const StateVar &s : m.states)
    if (Error e = need(s.value, s.sharding, "@" + s.value->str)) return e;
  for (const Entry &e : m.entries)
    for (const Value &v : e.inputs)
      if (Error error = need(v.value, v.sharding, "entry @" + e.name + ": input %" + v.name)) return error;
  if (scales.empty()) return Error::success();

  Substitution now{c, m.origins};
  for (auto [d, scale] : scales) {
    auto part = dimOfParts(m, d, scale);
    if (!part) return part.takeError();
    now.image[d] = idxMul(c, *part, c.index(scale));
  }
  now.all(m);
  return Error::success();
}
