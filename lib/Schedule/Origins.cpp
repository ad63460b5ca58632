//===- Origins.cpp: which of the user's nodes a launch computes ------------===//
// Takes:    the origins of the module's nodes; what nodes become while they are scheduled.
// Gives:    of each launch the origins of the nodes that its kernel computes.
// Keeps:    linear time: a node has those of one other as they are, and new ones only where two meet.
// Does not: count beyond the names that a node keeps: the number of a launch's origins is a least one.
#include "Scheduler.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;

static constexpr size_t mostNames = 8;

/// The first names of a set, and how many it has.
template <class Names> static Origin firstOf(const Names &names) {
  Origin o;
  o.count = names.size();
  for (const std::string &name :
       llvm::make_range(names.begin(), std::next(names.begin(), std::min(names.size(), mostNames))))
    o.names.push_back(name);
  return o;
}

Origin Scheduler::joined(ArrayRef<const Origin *> parts) {
  std::set<std::string, ByNumber> names;
  unsigned least = 0;
  for (const Origin *o : parts) {
    names.insert(o->names.begin(), o->names.end());
    least = std::max(least, o->count);
  }
  Origin all = firstOf(names);
  all.count = std::max(all.count, least);
  return all;
}

void Scheduler::inheritOrigin(UOpRef to, UOpRef from) {
  if (to->isIndex()) return;
  const Origin *theirs = origin.lookup(from);
  if (!theirs) theirs = m.origins.find(from);
  if (!theirs) return;
  const Origin *&mine = origin[to];
  if (!mine)
    mine = theirs;
  else if (mine != theirs && mine->names != theirs->names)
    mine = &origins.emplace_back(joined({mine, theirs}));
}

void Scheduler::spreadOrigins(ArrayRef<UOpRef> order) {
  llvm::DenseSet<UOpRef> lacking, ofData;
  for (UOpRef n : order) {
    if (n->isIndex()) continue;
    if (isStored(n) || llvm::any_of(n->tensors(), [&](UOpRef s) { return ofData.contains(s); })) ofData.insert(n);
    if (!origin.lookup(n) && !m.origins.find(n)) lacking.insert(n);
  }
  for (UOpRef n : llvm::reverse(order)) {
    if (n->isIndex()) continue;
    inheritOrigin(n, n); // from the module
    for (UOpRef s : n->tensors())
      if (lacking.contains(s)) inheritOrigin(s, n);
  }
  for (UOpRef n : order)
    if (!ofData.contains(n)) origin.erase(n);
}

Origin Scheduler::takeOrigins() { return firstOf(std::exchange(computing, {})); }
