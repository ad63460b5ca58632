//===- Mma.cpp: a warp's tile by mma.sync, its operands by ldmatrix --------===//
// Takes:    the folds of a thread's tile that are one step of a unit, and where their words lie in shared memory.
// Gives:    an instruction for each two rows of a thread and 8 columns. An operand that lies line by line (linesOf)
//           comes by ldmatrix, four matrices of 8 lines by 16 bytes at once; another one word by word.
// Keeps:    which thread has which sums: the plan's. A lane reads at the places of its own row and columns with other
//           digits of its number: the lowest two bits say which columns are its own, the next three which row.
//
// In a line of shared memory the parts of 16 bytes change places with the line's number, as the copy engine of sm_90
// has it: of 8 lines that ldmatrix reads no two parts lie in one bank, and none of those that a quarter of a warp
// writes.
#include "Mma.h"
#include "../Value.h"
#include "KernelEmitter.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using namespace astra::gpu;

static constexpr uint64_t partWords = 4, linesOfMatrix = 8;

static constexpr uint32_t wordBits = 3, pointBits = 28; // of a thread's number: which words, which row or column

uint64_t gpu::swizzled(uint64_t place, unsigned line) {
  return place ^ (place / linesOfMatrix & (line - 1) & ~(partWords - 1));
}
V KernelEmitter::swizzled(V place, unsigned line) {
  return s.bxor(place, s.band(s.lshr(place, 3u), uint64_t(line - 1) & ~(partWords - 1)));
}

llvm::DenseMap<UOpRef, unsigned> gpu::linesOf(Context &c, const Linear &l, unsigned kc) {
  llvm::DenseMap<UOpRef, unsigned> lines;
  if (kc < 2 * partWords || kc > linesOfMatrix * partWords || !llvm::isPowerOf2_32(kc)) return lines;
  auto placeOf = [&](UOpRef word) -> std::pair<UOpRef, UOpRef> { // its stage, its first element there
    UOpRef x = word->op == Op::Splat || word->op == Op::Stack ? word->src[0] : word, flat = c.index(0);
    auto a = llvm::find_if(l.stages, [&](const StageArray &a) { return x->op == Op::At && a.stage == x->src[0]; });
    if (a == l.stages.end()) return {nullptr, nullptr};
    for (auto [i, stride] : llvm::zip_equal(x->indices(), a->strides))
      flat = idxAdd(c, flat, idxMul(c, i, c.index(stride)));
    return {a->stage, simplifyIndex(c, flat)};
  };
  for (const Inst &i : l.insts) {
    const UnitStep *step = i.kind == InstKind::AccUpdate ? unitStepOf(Combine(i.uop->ints[0])) : nullptr;
    if (!step || step->words % partWords || i.uop->ints[1] != int64_t(2 * step->words)) continue;
    for (unsigned side : {0u, 1u}) { // words that are neighbours, whole parts of them
      auto [stage, first] = placeOf(i.uop->tensors()[1 + side * step->words]);
      auto [other, second] = placeOf(i.uop->tensors()[2 + side * step->words]);
      if (stage && stage == other && simplifyIndex(c, idxSub(c, second, first))->constIndex() == 1 &&
          alignmentOf(first) % partWords == 0)
        lines[stage] = kc;
    }
  }
  return lines;
}

/// What lanes read of matrices whose first line is `lines` words behind `line`, the place of the line that has the
/// number of the lane among eight.
Lanes KernelEmitter::loadMatrices(unsigned array, V line, llvm::ArrayRef<int64_t> lines) {
  unsigned words = k.lines.lookup(k.linear.stages[array].stage);
  V matrix = s.band(s.lshr(machine.thread(), 3u), uint64_t(3));
  Lanes all;
  for (size_t at = 0; at < lines.size();) {
    size_t count = lines.size() - at >= 4 ? 4 : lines.size() - at >= 2 ? 2 : 1;
    V behind = s.integer(32, uint64_t(lines[at]));
    for (size_t i = 1; i < count; ++i)
      behind = s.select(s.cmp(ICmp::eq, matrix, i), s.integer(32, uint64_t(lines[at + i])), behind);
    V place = swizzled(s.add(line, behind), words);
    if (V slot = slots.lookup(array)) place = s.add(place, slot);
    mlir::Type one = s.i(32), type = one;
    if (count > 1) type = L::LLVMStructType::getLiteral(s.b.getContext(), llvm::SmallVector<mlir::Type>(count, one));
    std::string name = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + ".b16";
    V out = L::CallIntrinsicOp::create(s.b, s.loc, type, s.b.getStringAttr(name),
                                       mlir::ValueRange{this->at(arrays[array], one, place, 0)})
                .getResult(0);
    for (size_t i = 0; i < count; ++i)
      all.push_back(count > 1 ? V(L::ExtractValueOp::create(s.b, s.loc, out, int64_t(i))) : out);
    at += count;
  }
  return all;
}

/// Words of all points of a side, of each every fourth one from the lane's on: `points` behind the first in whole words
/// of memory. `own`: what of the first point's place the lane's number makes; `step`: from one point of eight to the
/// next. In the order of the instruction's registers, so that none is moved: two rows word by word, a column.
Lanes KernelEmitter::unitOperand(const UnitPlaces &of, bool isRow, V first, V own, int64_t step,
                                 llvm::ArrayRef<int64_t> points, unsigned words) {
  V number = machine.thread();
  llvm::SmallVector<std::pair<int64_t, unsigned>, 32> all;
  const size_t together = isRow ? 2 : 1;
  for (size_t i = 0; i < points.size(); i += together)
    for (unsigned w = 0; w < words; w += partWords)
      for (int64_t p : points.slice(i, together)) all.push_back({p, w});
  if (k.lines.contains(k.linear.stages[of.array[isRow]].stage)) {
    V line = s.add(s.sub(first, own), times(s.band(number, linesOfMatrix - 1), step));
    llvm::SmallVector<int64_t, 32> matrices;
    for (auto [p, w] : all) matrices.push_back(p + w);
    return loadMatrices(of.array[isRow], line, matrices);
  }
  V word = s.band(number, uint64_t(wordBits)), point = s.band(s.lshr(number, 2u), linesOfMatrix - 1);
  V from = s.add(s.add(s.sub(first, own), times(point, step)), times(word, of.apart[isRow]));
  Lanes out;
  for (auto [p, w] : all)
    out.push_back(loadWord(of.array[isRow], s.add(from, s.integer(32, uint64_t(p))), w * of.apart[isRow]));
  return out;
}

/// How far a place is behind the first; nothing where that is not known.
std::optional<int64_t> KernelEmitter::behind(UOpRef place, UOpRef first) {
  return simplifyIndex(c, idxSub(c, place, first))->constIndex();
}

/// Columns of the tile one beside another, of each all rows of the thread.
bool KernelEmitter::multiplyMma(llvm::ArrayRef<UOpRef> folds, const UnitInstruction &unit) {
  const UnitStep &step = *unitStepOf(Combine(folds[0]->ints[0]));
  unsigned words = step.words;
  if (lanesOf(folds[0]) != 2 || words % partWords) return false;
  size_t rows = 1;
  while (rows < folds.size() && wordsOf(folds[rows]).columns == wordsOf(folds[0]).columns) ++rows;
  if (folds.size() % rows) return false;
  UnitPlaces of;
  llvm::SmallVector<int64_t, 8> down, across;
  for (auto [n, fold] : llvm::enumerate(folds)) {
    UnitPlaces p;
    if (!findPlaces(fold, n ? p : of)) return false;
    if (!n) p = of;
    if (wordsOf(fold).row != wordsOf(folds[n % rows]).row ||
        wordsOf(fold).columns != wordsOf(folds[n - n % rows]).columns)
      return false;
    for (bool isRow : {true, false})
      if (p.array[isRow] != of.array[isRow] || p.apart[isRow] != of.apart[isRow] || p.lane != of.lane) return false;
    auto d = behind(p.first[true], of.first[true]), a = behind(p.first[false], of.first[false]);
    if (!d || !a) return false;
    if (n < rows) down.push_back(*d);
    if (n % rows == 0) across.push_back(*a);
  }
  if (dependsOnBits(of.first[true], wordBits, threads) || dependsOnBits(of.first[false], pointBits, threads))
    return false;
  auto [below, ofBelow] = digitIn(of.first[true], pointBits, threads);
  auto [pair, ofPair] = digitIn(of.first[false], wordBits, threads);
  if (!below || strideOf(below) != 4 || !pair || bitsOfRange(pair) != wordBits || ofPair != 2 * of.lane) return false;
  if (rows % 2) down.push_back(down.back()); // a row of nobody
  V number = machine.thread();
  V ownRow = times(s.band(s.lshr(number, 2u), linesOfMatrix - 1), ofBelow),
    ownColumn = times(s.band(number, uint64_t(wordBits)), ofPair);
  Lanes a = unitOperand(of, true, valueOf(of.first[true]), ownRow, ofBelow, down, words),
        b = unitOperand(of, false, valueOf(of.first[false]), ownColumn, of.lane, across, words);
  auto operand = [&](V word) -> V {
    if (step.inputs.a != MatrixInput::F16) return word;
    return L::BitcastOp::create(s.b, s.loc, mlir::VectorType::get(2, s.b.getF16Type()), word);
  };
  auto type = L::LLVMStructType::getLiteral(s.b.getContext(), llvm::SmallVector<mlir::Type>(4, s.f(32)));
  const unsigned each = words / partWords; // registers of a point
  for (size_t column = 0; column < across.size(); ++column)
    for (size_t row = 0; row < rows; row += 2) {
      UOpRef fold[] = {folds[column * rows + row], row + 1 < rows ? folds[column * rows + row + 1] : nullptr};
      Lanes upper = value(fold[0]), lower = fold[1] ? value(fold[1]) : Lanes(2, s.real(32, 0));
      llvm::SmallVector<V, 10> in;
      for (unsigned q = 0; q < 2 * each; ++q) in.push_back(operand(a[row * each + q]));
      for (unsigned q = 0; q < each; ++q) in.push_back(operand(b[column * each + q]));
      in.append({upper[0], upper[1], lower[0], lower[1]});
      V out = L::CallIntrinsicOp::create(s.b, s.loc, type, s.b.getStringAttr(unit.intrinsic), in).getResult(0);
      auto part = [&](int64_t i) -> V { return L::ExtractValueOp::create(s.b, s.loc, out, i); };
      values[fold[0]] = {part(0), part(1)};
      if (fold[1]) values[fold[1]] = {part(2), part(3)};
    }
  return true;
}
