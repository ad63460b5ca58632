//===- UnitTiles.cpp: sums in the tiles of AMX ------------------------------===//
// Takes:    a loop whose sums are steps of a matrix unit that is an instruction on tiles: TDPBF16PS of amx32.
// Gives:    the loop by that instruction: up to 16 rows of one vector of columns are a tile of sums, which stays in its
//           register; a step loads the rows' words and the columns' words as they lie in memory.
// Keeps:    the loop as it is elsewhere: the text has both, and the macros of the prelude choose.
// Does not: take a loop with masks, or whose words do not lie at equal distances.
#include "FunctionEmitter.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::cemit;

namespace {
constexpr unsigned rowsOfTile = 16, lanesOfTile = 16, mostSums = 4, mostOperands = 2; // registers: 4 + 2 + 2
constexpr unsigned firstRows = mostSums, firstColumns = mostSums + mostOperands;
} // namespace

/// The distance from one load's element to another's, simplified; null where they are of two buffers.
UOpRef FunctionEmitter::apart(UOpRef from, UOpRef to) {
  if (from->src[0] != to->src[0]) return nullptr;
  return simplifyIndex(context, idxSub(context, to->indices()[0], from->indices()[0]));
}

/// The distance of neighbours of so many loads that lie at equal ones, of constants and dims alone; else null.
UOpRef FunctionEmitter::stepOf(llvm::ArrayRef<UOpRef> loads) {
  UOpRef step = context.index(0);
  for (auto [i, x] : llvm::enumerate(loads)) {
    UOpRef distance = apart(loads[0], x);
    if (i == 1) step = distance;
    if (!distance || !step || distance != simplifyIndex(context, idxMul(context, step, context.index(int64_t(i)))))
      return nullptr;
  }
  bool isOfDims = llvm::all_of(topoSort({step}), [](UOpRef x) {
    return x->op == Op::Const || x->op == Op::Dim || x->op == Op::Add || x->op == Op::Mul;
  });
  return isOfDims ? step : nullptr;
}

/// A fold's words as loads, of its row and of its columns; false where they are anything else.
bool FunctionEmitter::wordsOf(UOpRef fold, Words &row, Words &columns) {
  const UnitStep *step = unitStepOf(Combine(fold->ints[0]));
  if (!step || llvm::StringRef(step->unit->text) != "amx32" || lanesOf(fold) != lanesOfTile ||
      fold->ints[1] != int64_t(2 * step->words))
    return false;
  llvm::ArrayRef<UOpRef> a = fold->tensors().slice(1, step->words), b = fold->tensors().slice(1 + step->words);
  if (a[0]->op != Op::Splat) std::swap(a, b);
  auto isPlain = [&](UOpRef x) { return x->op == Op::Load && x->ntensors == 1 && !speculative.contains(x); };
  for (UOpRef x : a)
    if (x->op != Op::Splat || !isPlain(x->src[0])) return false;
  for (UOpRef x : a) row.push_back(x->src[0]);
  columns.assign(b.begin(), b.end());
  return llvm::all_of(b, [&](UOpRef x) { return isPlain(x) && lanesOf(x) == lanesOfTile; });
}

/// The tiles of the loop that begins there; none where it is no such loop.
std::vector<FunctionEmitter::UnitTile> FunctionEmitter::tilesOf(size_t begin) {
  if (!target.tiles || arranged.rows.count(begin)) return {};
  std::vector<UnitTile> tiles;
  speculative.clear();
  size_t end = begin + 1;
  for (; arranged.insts[end].kind != InstKind::LoopEnd; ++end) {
    const Inst &i = arranged.insts[end];
    if (i.kind != InstKind::Define && i.kind != InstKind::AccUpdate) return {};
    if (i.speculative) speculative.insert(i.uop);
  }
  for (size_t n = begin + 1; n < end; ++n) {
    UOpRef fold = arranged.insts[n].uop;
    if (arranged.insts[n].kind != InstKind::AccUpdate) continue;
    Words row, columns;
    if (!wordsOf(fold, row, columns) || stepOf(row) != context.index(1)) return {};
    auto it = llvm::find_if(tiles, [&](const UnitTile &t) {
      return t.columns == columns && t.folds.size() < rowsOfTile && t.rows[0]->src[0] == row[0]->src[0];
    });
    if (it == tiles.end()) it = tiles.insert(it, UnitTile{{}, {}, columns, nullptr, nullptr, 0, 0});
    it->folds.push_back(fold), it->rows.push_back(row[0]);
  }
  std::vector<std::pair<UOpRef, size_t>> rows; // of operands: where they begin, how many there are
  std::vector<UOpRef> columns;
  for (UnitTile &t : tiles) {
    t.rowStep = stepOf(t.rows), t.columnStep = stepOf(t.columns);
    if (!t.rowStep || !t.columnStep) return {};
    auto number = [](auto &all, auto x) {
      size_t i = llvm::find(all, x) - all.begin();
      if (i == all.size()) all.push_back(x);
      return unsigned(i);
    };
    t.rowTile = number(rows, std::pair(t.rows[0], t.rows.size())), t.columnTile = number(columns, t.columns[0]);
  }
  if (tiles.size() > mostSums || rows.size() > mostOperands || columns.size() > mostOperands) return {};
  return tiles;
}

/// The loop by tiles. Behind it stands the loop as it is, between #else and #endif.
void FunctionEmitter::tileLoop(size_t begin, llvm::ArrayRef<UnitTile> tiles) {
  uint8_t shape[64] = {1}; // as LDTILECFG reads it: the palette, at 16 bytes of a row by tile, at 48 rows
  auto setShape = [&](unsigned tile, size_t rows) { shape[16 + 2 * tile] = 64, shape[48 + tile] = uint8_t(rows); };
  for (auto [i, t] : llvm::enumerate(tiles)) {
    setShape(i, t.folds.size());
    setShape(firstRows + t.rowTile, t.folds.size());
    setShape(firstColumns + t.columnTile, t.columns.size());
  }
  std::string bytes;
  for (uint8_t x : shape) bytes += (bytes.empty() ? "" : ", ") + num(x);
  line("#if defined(TILE_DOT)");
  line("{");
  ++indent;
  line("const u8 shape[64] = {" + bytes + "};");
  line("f32 sums[256] __attribute__((aligned(64)));");
  line("TILE_SHAPE(shape);");
  auto place = [&](UOpRef fold, size_t r) {
    return "*(" + typeOf(fold) + " *)&sums[" + num(int64_t(r * lanesOfTile)) + "]";
  };
  for (auto [i, t] : llvm::enumerate(tiles)) {
    for (auto [r, fold] : llvm::enumerate(t.folds)) line(place(fold, r) + " = " + value(fold) + ";");
    line("TILE_LOAD(" + num(i) + ", sums, 64);");
  }
  UOpRef range = arranged.insts[begin].uop;
  beginLoop(range);
  for (size_t n = begin + 1; arranged.insts[n].kind != InstKind::LoopEnd; ++n)
    if (arranged.insts[n].kind == InstKind::Define && arranged.insts[n].uop->isIndex()) define(arranged.insts[n]);
  std::set<unsigned> loaded;
  auto load = [&](unsigned tile, UOpRef first, UOpRef step) {
    if (!loaded.insert(tile).second) return;
    for (UOpRef x : topoSort({step}))
      if (!x->src.empty()) inlined[x] = index(x);
    line("TILE_LOAD(" + num(tile) + ", &p" + num(first->src[0]->ints[0]) + "[" + value(first->indices()[0]) +
         "], 4 * " + (step->src.empty() ? value(step) : "(" + value(step) + ")") + ");");
  };
  for (auto [i, t] : llvm::enumerate(tiles)) {
    load(firstRows + t.rowTile, t.rows[0], t.rowStep);
    load(firstColumns + t.columnTile, t.columns[0], t.columnStep);
    line("TILE_DOT(" + num(i) + ", " + num(firstRows + t.rowTile) + ", " + num(firstColumns + t.columnTile) + ");");
  }
  endLoop(range);
  for (auto [i, t] : llvm::enumerate(tiles)) {
    line("TILE_STORE(" + num(i) + ", sums, 64);");
    for (auto [r, fold] : llvm::enumerate(t.folds)) line(value(fold) + " = " + place(fold, r) + ";");
  }
  line("TILE_RELEASE();");
  --indent;
  line("}");
  line("#else");
}
