//===- Exprs.h: symbolic integers as the manifest's expressions -------------===//
// Takes:    index UOps over dims.
// Gives:    the manifest's table of postfix expressions, each stored once, and the number of each.
// Keeps:    order of first use, so equal inputs give equal tables.
// Does not: simplify (Index.h does) or evaluate (the runtime does).
#pragma once
#include "astra/IR/UOp.h"
#include "format/manifest_generated.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace astra {

class ExprTable {
public:
  /// Says that `node` (a dim, an extent, a range that a program counts) is number `dim` of the manifest's dims.
  void bind(UOpRef node, uint32_t dim) { dims[node] = dim; }

  /// The number of x's expression: constants, bound nodes, add, mul, floordiv, mod, min, max. An error if x holds
  /// anything else, or is deeper or longer than the format allows.
  llvm::Expected<uint32_t> add(UOpRef x);
  /// The same of the comparison left <= right: 1 or 0.
  llvm::Expected<uint32_t> addAtMost(UOpRef left, UOpRef right);
  uint32_t constant(int64_t value);

  /// The table, for Manifest.exprs. The numbers given so far stay right.
  std::vector<std::unique_ptr<fmt::ExprT>> take() const;

private:
  using Code = std::vector<std::pair<fmt::ExprCode, int64_t>>;
  llvm::Expected<Code> codeOf(UOpRef x) const;
  llvm::Expected<uint32_t> number(Code code);
  llvm::DenseMap<UOpRef, uint32_t> dims, known;
  std::map<Code, uint32_t> numbers;
  std::vector<Code> codes;
};

} // namespace astra
