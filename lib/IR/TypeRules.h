//===- TypeRules.h: what the rules of types share ---------------------------===//
// Takes:    the parts of a node.
// Gives:    them by name, checks that several rules make, the rules of kernel ops.
// Does not: say which op has which rule (Ops.def).
#pragma once
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"

namespace astra::typing {
using R = llvm::Expected<Type>;

struct In {
  Context &c;
  Op op;
  llvm::ArrayRef<UOpRef> src;
  llvm::ArrayRef<int64_t> ints;
  llvm::StringRef str;
  DType dtype;
  llvm::ArrayRef<UOpRef> fns;
  uint32_t ntensors;

  llvm::ArrayRef<UOpRef> tensors() const { return src.take_front(ntensors); }
  llvm::ArrayRef<UOpRef> indices() const { return src.drop_front(ntensors); }
  llvm::ArrayRef<UOpRef> group(unsigned g, unsigned groups) const {
    size_t n = indices().size() / groups;
    return indices().slice(g * n, n);
  }
  llvm::Error fail(const llvm::Twine &what) const {
    return llvm::createStringError(llvm::Twine(info(op).mnemonic) + ": " + what);
  }
};

inline std::string describe(UOpRef x) { return typeText(x->dtype, x->shape); }
inline std::string num(int64_t v) { return std::to_string(v); }
inline bool isScalar(UOpRef x, DType t) { return x->dtype == t && x->rank() == 0; }
inline Type typeOf(UOpRef x) { return {x->dtype, {x->shape.begin(), x->shape.end()}}; }
inline bool sameShape(Shape a, Shape b) { return a == b; }
inline bool attributes(const In &in, size_t n) { return in.ints.size() == n; }
inline bool axisOf(int64_t axis, UOpRef x) { return axis >= 0 && axis < int64_t(x->rank()); }

/// Of a shape: its rank, and that its extents are not negative and its elements not too many.
llvm::Error checkExtents(const In &in, llvm::ArrayRef<UOpRef> shape);

// Of kernel ops (TypeRulesKernel.cpp).
R ruleRange(const In &in);
R ruleBuffer(const In &in);
R ruleLoad(const In &in);
R ruleStore(const In &in);
R ruleFold(const In &in);
R ruleRunning(const In &in);
R ruleLaneFold(const In &in);
R ruleStage(const In &in);
R ruleAt(const In &in);
R ruleSplat(const In &in);
R ruleStack(const In &in);
R ruleLanes(const In &in);
R ruleSink(const In &in);

// Of calls of functions outside of the graph (External.cpp).
R ruleExternal(const In &in);

// Between the shards of a mesh (TypeRulesMesh.cpp).
R ruleCollective(const In &in);
R ruleReshard(const In &in);

} // namespace astra::typing
