//===- Hints.cpp: what to type where a dim decides ----------------------------===//
// Takes:    extents that may be too small, of either sign, or not equal.
// Gives:    the end of a sentence, with the --dim flags that help; "" where none does. The first remedy of a sentence
//           is the one that Failures.cpp takes for the line to paste.
#include "Lowering.h"
#include "Multiples.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::onnx {

std::string equalHint(Lowering &lowering, UOpRef x, UOpRef y) {
  if (!x->is(Op::Dim)) std::swap(x, y);
  std::string multiple = multipleHint(lowering, {x, y}, [&](auto with) { return with(x) == with(y); });
  if (!x->is(Op::Dim) || !multiple.empty()) return orElse(multiple, fixHint({x, y}));
  if (llvm::is_contained(topoSort(y), x)) { // "s = min(s, 40)" holds up to 40
    UOpRef other = y->is(Op::Min) ? y->src[y->src[0] == x] : nullptr;
    auto most = other ? other->constIndex() : std::nullopt;
    if (!most || *most < x->lo) return fixHint({x, y});
    return "; give --dim " + shellWord((x->str + "=" + std::to_string(x->lo) + ".." + std::to_string(*most)).str());
  }
  std::string hint = "; if they always are, say so with --dim " + shellWord((x->str + "=" + indexText(y)).str());
  return y->constIndex() ? hint : orElse(hint, fixHint({x, y}));
}

std::string DimFlags::bound(UOpRef extent, int64_t least) const {
  return boundHint(lowering.module.ctx(), extent, least);
}
std::string DimFlags::sign(UOpRef extent) const { return signHint(extent); }
std::string DimFlags::fix(llvm::ArrayRef<UOpRef> extents) const { return fixHint(extents); }
std::string DimFlags::equal(UOpRef x, UOpRef y) const { return equalHint(lowering, x, y); }
std::string DimFlags::multiple(llvm::ArrayRef<UOpRef> extents,
                               llvm::function_ref<bool(compose::WithMultiples)> holds) const {
  return multipleHint(lowering, extents, holds);
}

} // namespace astra::onnx
