//===- Multiples.cpp: which dims would have to be multiples ----------------===//
#include "Multiples.h"
#include "../DimText.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace astra::onnx {

namespace {
constexpr int64_t largest = 4096;
using Factors = llvm::MapVector<UOpRef, int64_t>; // per dim what it is a multiple of; 1: any

bool join(Factors &f, UOpRef dim, int64_t d) {
  int64_t &known = f.try_emplace(dim, 1).first->second, both = std::lcm(known, d);
  if (both > largest) return false;
  known = both;
  return true;
}

/// By what dims are divided.
Factors factorsOf(llvm::ArrayRef<UOpRef> extents) {
  Factors factors;
  for (UOpRef extent : extents)
    for (UOpRef part : topoSort(extent)) {
      if (!part->is(Op::FloorDiv) && !part->is(Op::Mod)) continue;
      int64_t d = part->src[1]->constIndex().value_or(1);
      if (d < 2 || d > largest) continue;
      for (UOpRef dim : topoSort(part->src[0]))
        if (dim->is(Op::Dim)) join(factors, dim, d);
    }
  return factors;
}

class Trial {
public:
  Trial(Lowering &lowering, llvm::function_ref<bool(WithMultiples)> holds) : lowering(lowering), holds(holds) {}

  bool succeeds(const Factors &factors) {
    Context &c = lowering.module.ctx();
    Dims from, to;
    std::vector<std::string> names;
    for (auto [dim, d] : factors) {
      if (d < 2) continue;
      auto [lo, hi] = bounds(dim, d);
      if (lo > hi) return false;
      from.push_back(dim);
      to.push_back(idxMul(c, c.make(Op::Dim, {}, {lo, hi}, newName(dim, d, names)), c.index(d)));
    }
    return !from.empty() && holds([&](UOpRef x) { return idxSubstitute(c, x, from, to); });
  }

  /// One dim after the other gets the smallest multiple for which it holds.
  void shrink(Factors &factors) {
    for (auto &[dim, d] : factors)
      for (int64_t whole = d, part = 1; part < whole; ++part) {
        if (whole % part) continue;
        d = part;
        if (succeeds(factors)) break;
        d = whole;
      }
  }

  std::string text(const Factors &factors) const {
    std::string words, flags;
    std::vector<std::string> names;
    for (auto [dim, d] : factors) {
      if (d < 2) continue;
      std::string factor = std::to_string(d), part = newName(dim, d, names);
      auto [lo, hi] = bounds(dim, d);
      words += (words.empty() ? "; if " : " and ") + dim->str.str() + " is always a multiple of " + factor;
      flags += " --dim " + shellWord(dim->str.str() + "=" + factor + "*" + part) + " --dim " + part + "=" +
               std::to_string(lo) + ".." + std::to_string(hi);
    }
    return words + ", say so with" + flags;
  }

private:
  static std::pair<int64_t, int64_t> bounds(UOpRef dim, int64_t d) { return {(dim->lo + d - 1) / d, dim->hi / d}; }
  /// A name that no dim of the model has, nor one of `names`, which it joins.
  std::string newName(UOpRef dim, int64_t d, std::vector<std::string> &names) const {
    std::string name = (isDimName(dim->str) ? dim->str.str() : "dim") + "_" + std::to_string(d);
    auto isTaken = [&] {
      return llvm::is_contained(names, name) ||
             llvm::any_of(lowering.options.dims, [&](const DimBound &b) { return b.name == name; }) ||
             llvm::any_of(lowering.module.dims, [&](UOpRef other) { return other->str == name; });
    };
    while (isTaken()) name += "_";
    names.push_back(name);
    return name;
  }

  Lowering &lowering;
  llvm::function_ref<bool(WithMultiples)> holds;
};
} // namespace

std::string multipleHint(Lowering &lowering, llvm::ArrayRef<UOpRef> extents,
                         llvm::function_ref<bool(WithMultiples)> holds,
                         llvm::ArrayRef<std::pair<UOpRef, int64_t>> others) {
  Trial trial(lowering, holds);
  const Factors divided = factorsOf(extents);
  auto said = [&](Factors factors) {
    if (!trial.succeeds(factors)) return std::string();
    trial.shrink(factors);
    return trial.text(factors);
  };
  std::string hint;
  for (int64_t deeper : {1, 2, 4, 8, 16, 32}) { // a quotient may be divided again
    Factors factors;
    bool fits = true;
    for (auto [dim, d] : divided) fits &= join(factors, dim, d * deeper);
    if (hint.empty() && fits) hint = said(factors);
  }
  for (auto [dim, d] : others) {
    Factors more = divided;
    int64_t &known = more.try_emplace(dim, 1).first->second;
    if (!hint.empty() || d > largest || known * d > largest) continue;
    known *= d; // what is divided already is divided by d once more
    hint = said(more);
  }
  return hint;
}

} // namespace astra::onnx
