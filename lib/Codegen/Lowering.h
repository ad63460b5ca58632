//===- Lowering.h: the regions of one kernel --------------------------------===//
// Lower.cpp stores element by element and row by row, LowerContract.cpp tile by tile.
#pragma once
#include "Value.h"
#include "astra/Codegen/Lower.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"

namespace astra {

class Lowering {
public:
  Lowering(Context &c, const KernelSpec &spec, const Plan &plan, const RowTile *tileOfRows)
      : c(c), spec(spec), plan(plan), rowTile(tileOfRows), values(c, spec, tileOfRows) {}

  Kernel run();
  Kernel byDims(llvm::SmallVectorImpl<UOpRef> &loops);
  /// Of the stores that there are.
  Kernel kernel();

private:
  UOpRef div(UOpRef a, UOpRef b) { return simplifyIndex(c, idxDiv(c, a, b)); }
  UOpRef mod(UOpRef a, UOpRef b) { return simplifyIndex(c, idxMod(c, a, b)); }
  UOpRef mul(UOpRef a, UOpRef b) { return idxMul(c, a, b); }
  UOpRef add(UOpRef a, UOpRef b) { return idxAdd(c, a, b); }
  UOpRef sub(UOpRef a, UOpRef b) { return idxSub(c, a, b); }
  UOpRef num(int64_t v) { return c.index(v); }

  void programs(); // LowerPrograms.cpp
  void program(UOpRef place);
  UOpRef withDataDims(UOpRef place);
  bool keepsRows() const;
  UOpRef rowNumber(UOpRef p, UOpRef rows, UOpRef &inside);
  UOpRef rowItems(UOpRef rows);
  void storeAt(llvm::ArrayRef<UOpRef> at, UOpRef inside);
  void storeSum(llvm::SmallVector<UOpRef, 6> index, UOpRef inside, UOpRef own = nullptr);
  void frame();
  void map();
  void blocks();
  void lines();
  void alongLine(llvm::ArrayRef<UOpRef> outerDims, llvm::ArrayRef<UOpRef> innerDims, unsigned width, unsigned unroll,
                 bool overlaps, llvm::function_ref<void(llvm::ArrayRef<UOpRef>)> store);
  void transposed();
  void cooperative();
  void rows();
  void contract();
  void contract(const Phase &phase);
  void block(const Phase &phase);
  struct Span { // of a label of a tile: `count` times `size` from `begin` on
    UOpRef begin, count;
    unsigned size;
    bool partial = false; // the last of its lanes are not there
    UOpRef end = nullptr; // of the label: what goes over it begins earlier, to end there; null: nothing does
  };
  std::tuple<UOpRef, UOpRef, UOpRef> banded(UOpRef item, UOpRef rows, UOpRef columns);
  bool movesRows(UOpRef m) const;
  void tile(const Phase &phase, llvm::ArrayRef<UOpRef> kept, const Span &columns, const Span &down);

  Context &c;
  const KernelSpec &spec;
  const Plan &plan;
  const RowTile *rowTile; // null: all rows
  ValueAt values;
  std::vector<UOpRef> stores;
  std::optional<WarpGroupTile> warpGroups;
  llvm::DenseSet<UOpRef> known; // data dims as kernels read them
};

} // namespace astra
