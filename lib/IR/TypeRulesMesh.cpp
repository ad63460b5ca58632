//===- TypeRulesMesh.cpp: types of collectives -----------------------------===//
// Takes:    the parts of a node between the shards of a mesh.
// Gives:    its type, of one shard's part, or a sentence.
#include "TypeRules.h"
#include "astra/IR/Mesh.h"

using namespace astra;
using namespace astra::typing;

R typing::ruleCollective(const In &in) {
  auto group = parseGroup(in.str);
  if (!group)
    return in.fail("group=\"" + in.str + "\": " + llvm::toString(group.takeError()) +
                   " (a group is written MESH/AXES, as \"data=8,model=2/data\")");
  if (in.op == Op::RankIndex) return attributes(in, 0) ? R(Type{DType::I64, {}}) : in.fail("takes no integers");
  UOpRef x = in.src[0];
  if (!isArithmetic(x->dtype))
    return in.fail("not defined on " + describe(x) + ", expected bool, an integer or a float type");
  Type t = typeOf(x);
  UOpRef size = in.c.index(group->size());
  bool stacked = in.op == Op::ReduceScatter || in.op == Op::AllToAll;
  if (stacked && (t.shape.empty() || t.shape[0] != size))
    return in.fail("found " + describe(x) + ", expected a first axis of " + num(group->size()) +
                   ", an element for each shard of the group");
  if (in.op == Op::AllReduce || in.op == Op::ReduceScatter) {
    if (in.ints.empty() || in.ints[0] < 0 || in.ints[0] > 3) return in.fail("needs a kind");
    if (in.ints[0] < 2 && x->dtype == DType::Bool) return in.fail("this kind is not defined on bool");
  }
  auto flag = [&](size_t i) { return in.ints.size() == i + 1 && (in.ints[i] == 0 || in.ints[i] == 1); };
  switch (in.op) {
  case Op::AllReduce:
    if (!flag(1)) return in.fail("same is 0 or 1");
    return t;
  case Op::ReduceScatter:
    if (!attributes(in, 1)) return in.fail("needs a kind");
    t.shape.erase(t.shape.begin());
    return t;
  case Op::AllGather:
    if (!flag(0)) return in.fail("same is 0 or 1");
    t.shape.insert(t.shape.begin(), size);
    if (auto e = checkExtents(in, t.shape)) return std::move(e);
    return t;
  case Op::Shift:
    if (!flag(1) || in.ints[0] <= -mostShards || in.ints[0] >= mostShards)
      return in.fail("needs by=, a number of shards, and wrap is 0 or 1");
    return t;
  default:
    if (!attributes(in, 0)) return in.fail("takes no integers");
    return t;
  }
}

R typing::ruleReshard(const In &in) {
  if (!attributes(in, 0) || in.str.empty()) return in.fail("needs to=, as \"(data, -)\"");
  return typeOf(in.src[0]);
}
