//===- Closure.cpp: functions from values that were lowered in place -------===//
#include "astra/Compose/Closure.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

UOpRef roomFor(Context &c, UOpRef extent) {
  constexpr int64_t most = int64_t(1) << 40;
  llvm::DenseMap<UOpRef, UOpRef> room;
  for (UOpRef part : indexParts(extent)) {
    llvm::SmallVector<UOpRef, 2> src;
    for (UOpRef s : part->src) src.push_back(room.lookup(s));
    room[part] = part->is(Op::Extent) ? c.index(part->hi) : c.withSources(part, src);
  }
  UOpRef found = room[extent];
  if (idxSub(c, found, extent)->lo < 0) found = c.index(extent->hi); // not seen to be monotonic
  return found->hi <= most ? found : nullptr;
}

UOpRef padTo(Composer &n, UOpRef x, llvm::ArrayRef<UOpRef> room) {
  if (!x) return nullptr;
  Dims none(x->rank(), n.c.index(0)), behind;
  for (auto [extent, to] : llvm::zip(x->shape, room)) behind.push_back(idxSub(n.c, to, extent));
  return n.pad(x, none, behind, 0);
}

UOpRef Closure::own(DType t, llvm::ArrayRef<UOpRef> shape) {
  std::optional<int64_t> number = n.placeholder();
  if (!number) return n.unsupported("the loops of this model carry more than 32768 values");
  UOpRef x = n.make(Op::Arg, shape, {*number}, t);
  if (x) placeholders.insert(x);
  return x;
}

bool Closure::followsData(UOpRef index) {
  auto [it, isNew] = dataDims.try_emplace(index, false);
  if (!isNew) return it->second;
  return dataDims[index] = isDataDim(index);
}

bool Closure::isOpen(UOpRef x) {
  return llvm::any_of(x->shape, [&](UOpRef d) { return followsData(d); });
}

bool Closure::isCarried(UOpRef x) {
  return llvm::all_of(x->shape, [&](UOpRef d) {
    return llvm::all_of(indexParts(d), [&](UOpRef part) { return !part->is(Op::Extent) || carried.count(part); });
  });
}

UOpRef Closure::inside(UOpRef extent) {
  if (!followsData(extent)) return extent;
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef part : indexParts(extent)) {
    llvm::SmallVector<UOpRef, 2> src;
    for (UOpRef s : part->src) src.push_back(now.lookup(s));
    now[part] = part->is(Op::Extent) ? carried.lookup(part) : n.c.withSources(part, src);
  }
  return now[extent];
}

bool Closure::hasDataDim(UOpRef x) {
  return isOpen(x) || llvm::any_of(x->indices(), [&](UOpRef d) { return followsData(d); });
}

/// Literals, ramps and their repetitions, of sizes that do not follow data: cheaper to make than to hand in.
bool Closure::isFree(UOpRef x) {
  while (!hasDataDim(x) && (x->is(Op::Expand) || x->is(Op::Reshape) || x->is(Op::Cast))) x = x->src[0];
  return !hasDataDim(x) && (x->is(Op::Const) || x->is(Op::Iota) || x->is(Op::FromIndex));
}

/// The values and what they are made of, sources first, down to what is outside.
std::vector<UOpRef> Closure::inner(llvm::ArrayRef<UOpRef> values) {
  std::vector<UOpRef> order;
  llvm::DenseSet<UOpRef> seen;
  std::vector<std::pair<UOpRef, size_t>> stack;
  auto visit = [&](UOpRef x) {
    if (!seen.insert(x).second) return;
    bool leaf = x->isIndex() ? carried.count(x) || !followsData(x) : placeholders.contains(x) || isFree(x);
    if (!leaf && !x->isIndex() && (x->is(Op::Param) || x->is(Op::Arg) || x->id < begin)) {
      outside.insert(x);
      leaf = true;
    }
    stack.push_back({x, leaf ? x->src.size() : 0});
    if (!outside.contains(x)) return;
    for (UOpRef extent : x->shape) // it is cut to these inside
      if (followsData(extent) && seen.insert(extent).second) stack.push_back({extent, 0});
  };
  for (UOpRef value : values) {
    visit(value);
    while (!stack.empty()) {
      auto [x, next] = stack.back();
      if (next == x->src.size()) {
        order.push_back(x);
        stack.pop_back();
      } else {
        ++stack.back().second;
        visit(x->src[next]);
      }
    }
  }
  return order;
}

bool Closure::capture(llvm::ArrayRef<UOpRef> values) {
  inner(values);
  auto open = [&](UOpRef x) { return !isCarried(x); };
  if (llvm::any_of(values, open) || llvm::any_of(placeholders, open)) {
    n.unsupported(
        "a value whose size depends on data comes out of a loop's body or is one of a Scan, which is not supported");
    return false;
  }
  while (handed.size() < outside.size()) {
    UOpRef x = outside[handed.size()];
    Dims room;
    for (UOpRef extent : x->shape) room.push_back(roomFor(n.c, extent));
    if (llvm::is_contained(room, nullptr)) {
      n.unsupported("a value of " + dimsText(x->shape) + " goes into a loop or a branch, and its size has no bound");
      return false;
    }
    handed.push_back(padTo(n, x, room));
    if (!handed.back()) return false;
  }
  return true;
}

UOpRef Closure::func(llvm::ArrayRef<UOpRef> values, bool pass) {
  llvm::DenseMap<UOpRef, UOpRef> now = carried, arguments;
  int64_t number = 0;
  auto argument = [&](UOpRef x) {
    Dims shape;
    for (UOpRef d : x->shape) shape.push_back(inside(d));
    return n.c.make(Op::Arg, shape, {number++}, {}, x->dtype);
  };
  for (UOpRef x : placeholders) now[x] = argument(x);
  for (auto [x, given] : llvm::zip(outside, handed)) {
    arguments[x] = argument(given);
    if (!isOpen(x)) now[x] = arguments[x];
  }
  for (UOpRef x : inner(values)) {
    if (now.count(x)) continue;
    llvm::SmallVector<UOpRef, 4> src;
    if (outside.contains(x)) {
      Dims cut(x->rank(), n.c.index(0));
      for (UOpRef d : x->shape) cut.push_back(now.count(d) ? now[d] : d);
      src = {arguments[x]};
      src.append(cut);
      now[x] = n.c.make(Op::Shrink, src);
      continue;
    }
    for (UOpRef s : x->src) src.push_back(now.count(s) ? now[s] : s);
    now[x] = n.c.withSources(x, src);
  }
  llvm::SmallVector<UOpRef, 8> results;
  for (UOpRef x : values) results.push_back(now.lookup(x));
  if (pass)
    for (UOpRef x : outside) results.push_back(arguments.lookup(x));
  return n.c.make(Op::Func, results, {number});
}

} // namespace astra::compose
